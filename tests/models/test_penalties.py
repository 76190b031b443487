import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from attnlab._errors import AttnlabError
from attnlab.models import attention_entropy, entropy_bound, entropy_penalty, query_l1, toward

RNG = np.random.default_rng(0)


def test_entropy_is_that_of_scipy_along_any_axis():
    weights = RNG.dirichlet(np.full(6, 0.3), size=(4, 5))
    weights[0, 0] = [0, 1, 0, 0, 0, 0]
    for axis, moved in ((-1, weights), (0, np.moveaxis(weights, -1, 0))):
        found = attention_entropy(jnp.asarray(moved), axis=axis)
        assert np.allclose(found, scipy.stats.entropy(weights, axis=-1), rtol=0, atol=1e-14)
    assert entropy_penalty(jnp.asarray(weights)) == pytest.approx(
        scipy.stats.entropy(weights, axis=-1).mean(), 1e-14
    )


def test_the_derivative_of_the_entropy_is_finite_where_a_weight_is_zero():
    gradient = jax.grad(entropy_penalty)(jnp.array([[0.25, 0.75, 0.0]]))
    assert np.allclose(gradient, [[-1 - np.log(0.25), -1 - np.log(0.75), 0.0]])


def random_rows(rows, words, generator):
    """Logits whose norms range from tiny to large, a few words sticking out of some rows."""
    z = generator.normal(size=(rows, words)) * np.exp(generator.uniform(-4, 3, (rows, 1)))
    spiked = generator.random(rows) < 0.5
    z[spiked, 0] += generator.exponential(5, spiked.sum())
    return z


@pytest.mark.parametrize("words", [1, 2, 3, 8, 50])
def test_no_softmax_has_less_entropy_than_the_bound(words):
    z = random_rows(4000, words, np.random.default_rng(words))
    entropy = scipy.stats.entropy(scipy.special.softmax(z, axis=1), axis=1)
    for logits in (z, z - z.mean(axis=1, keepdims=True)):
        bound = np.asarray(bound_of(np.linalg.norm(logits, axis=1), words))
        assert (entropy >= bound - 1e-12).all()
        assert (bound >= 0).all()
    if words > 1:  # the control: a bound with β larger by a tenth is violated
        worse = scipy.special.softmax(extreme(2.0, words))
        assert scipy.stats.entropy(worse) < literal_bound(2.0, words, 1.1)


bound_of = jax.jit(entropy_bound)


def extreme(sigma, words):
    """One logit against all others, of norm σ."""
    z = np.full(words, -sigma / np.sqrt(words * (words - 1)))
    z[0] = sigma * np.sqrt((words - 1) / words)
    return z


def literal_bound(sigma, t, factor=1.0):
    beta = factor * np.exp(-sigma * np.sqrt(t / (t - 1)))
    return np.log(1 + (t - 1) * beta) + sigma * np.sqrt(t * (t - 1)) * beta / (1 + (t - 1) * beta)


@pytest.mark.parametrize("words", [2, 3, 8, 50])
@pytest.mark.parametrize("sigma", [0.0, 0.1, 1.0, 5.0, 20.0])
def test_the_bound_is_met_at_the_extremal_point(words, sigma):
    z = extreme(sigma, words)
    assert np.linalg.norm(z) == pytest.approx(sigma, rel=1e-14)
    bound = float(bound_of(sigma, words))
    assert bound == pytest.approx(
        scipy.stats.entropy(scipy.special.softmax(z)), rel=1e-9, abs=1e-13
    )
    assert bound == pytest.approx(literal_bound(sigma, words), rel=1e-12)


def test_the_bound_takes_a_number_of_words_per_row():
    norms, words = jnp.array([1.0, 2.0, 1.0]), jnp.array([3, 5, 1])
    expected = [literal_bound(1.0, 3), literal_bound(2.0, 5), 0.0]
    assert np.allclose(entropy_bound(norms, words), expected, rtol=1e-14)
    assert np.isfinite(jax.grad(lambda s: jnp.sum(entropy_bound(s, words)))(norms)).all()
    assert entropy_bound(jnp.float32(1.0), 3).dtype == jnp.float32


def test_penalties_are_their_formulas():
    weights, given = RNG.dirichlet(np.ones(4), size=(2, 3)), RNG.dirichlet(np.ones(4), size=(2, 3))
    expected = np.mean(
        [
            np.sum((w - g) ** 2)
            for w, g in zip(weights.reshape(6, 4), given.reshape(6, 4), strict=True)
        ]
    )
    assert float(toward(jnp.asarray(weights), jnp.asarray(given))) == pytest.approx(
        expected, rel=1e-14
    )
    assert float(toward(jnp.asarray(weights), jnp.asarray(weights))) == 0
    assert float(query_l1(jnp.array([[1.0, -2.0], [0.0, 3.0]]))) == 6
    with pytest.raises(AttnlabError, match=r"given weights of shape \(3,\)"):
        toward(jnp.ones((2, 3)), jnp.ones(3))
