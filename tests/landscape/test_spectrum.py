"""Eigenvalues, traces and densities against dense NumPy; what has not converged says so."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import TopicTask
from attnlab.landscape import (
    Problem,
    density,
    exact_spectrum,
    extremes,
    groups,
    quadratic,
    trace,
    word_problem,
)
from attnlab.landscape._density import recurrence
from attnlab.models import SelfAttentionConfig, WordAttentionConfig, literal_logits

pytestmark = pytest.mark.slow


def self_attention(dtype="float64", l2=0.0):
    """A problem of 134 parameters, at a point that is no minimum: its curvature has both signs."""
    model = SelfAttentionConfig(embedding_dim=4, words=5).init(jax.random.key(0))
    x, y = (
        jax.random.normal(jax.random.key(1), (60, 4, 5)),
        jax.random.normal(jax.random.key(2), (60,)),
    )
    model = jax.tree.map(lambda leaf: leaf.astype(dtype), model)
    return Problem.of(model, mean_square, {"x": x.astype(dtype), "y": y.astype(dtype)}, l2=l2)


def mean_square(model, data):
    return jnp.mean((jax.vmap(model)(data["x"]) - data["y"]) ** 2)


def dense(problem):
    """The matrix by central differences of the gradient: no second derivative of JAX's."""
    gradient, theta, step = (
        eqx.filter_jit(problem.gradient),
        np.asarray(problem.start, np.float64),
        1e-5,
    )
    rows = []
    for i in range(len(theta)):
        e = np.zeros_like(theta)
        e[i] = step
        rows.append(
            (
                np.asarray(gradient(jnp.asarray(theta + e)))
                - np.asarray(gradient(jnp.asarray(theta - e)))
            )
            / (2 * step)
        )
    return 0.5 * (np.array(rows) + np.array(rows).T)


@pytest.fixture(scope="module")
def problem():
    return self_attention(l2=0.01)


@pytest.fixture(scope="module")
def matrix(problem):
    return dense(problem)


def drawn(values, seed=0):
    """A symmetric matrix with these eigenvalues, and the problem whose curvature it is."""
    q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    return quadratic(jnp.asarray((q * np.asarray(values)[None, :]) @ q.T))


def test_the_dense_spectrum_is_that_of_finite_differences(problem, matrix):
    found = exact_spectrum(problem)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(matrix), atol=1e-7)
    assert found.trace == pytest.approx(np.trace(matrix), abs=1e-6)
    assert found.error < 1e-10
    assert f"{problem.parameters} eigenvalues" in str(found)


@pytest.mark.parametrize("group", ["layer", "layer.w_value", "head.w1"])
def test_a_group_is_a_block(problem, matrix, group):
    inside = np.array([name == group or name.startswith(group + ".") for name in problem.names])
    block = matrix[np.ix_(inside, inside)]
    assert inside.sum() == sum(n for name, n in groups(problem).items() if name.startswith(group))
    np.testing.assert_allclose(
        exact_spectrum(problem, group=group).values, np.linalg.eigvalsh(block), atol=1e-7
    )
    assert extremes(problem, group=group).largest[0].settled == pytest.approx(
        np.linalg.eigvalsh(block)[-1], abs=1e-7
    )
    found = trace(problem, group=group).interval
    assert found.low - 1e-6 <= np.trace(block) <= found.high + 1e-6


def test_lanczos_is_dense_to_ten_digits_and_in_single_precision_to_five(problem):
    true = exact_spectrum(problem).values
    for asked, digits in ((problem, 1e-10), (self_attention("float32", l2=0.01), 1e-5)):
        found = extremes(asked, k=3)
        assert found.converged
        for end, expected in ((found.largest, true[::-1]), (found.smallest, true)):
            for one, value in zip(end, expected, strict=False):
                assert abs(one.value - value) <= digits * true[-1]
                assert one.residual <= digits * true[-1]


def test_vectors_and_bounds_hold(problem):
    h = np.asarray(problem.hessian(problem.start))
    true = np.linalg.eigvalsh(h)
    for depth in (3, 8, 64):
        found = extremes(problem, k=2, depth=depth, max_depth=depth)
        assert found.largest[0].bound <= true[-1] + 1e-12
        assert found.largest[1].bound <= true[-2] + 1e-12
        assert found.smallest[0].bound >= true[0] - 1e-12
        for one, v in zip(found.largest, found.largest_vectors, strict=True):
            assert np.linalg.norm(h @ v - one.value * v) <= one.residual + 1e-10
            assert np.abs(true - one.value).min() <= one.residual + 1e-12


def test_an_early_stopped_lanczos_is_not_converged_and_not_compared():
    problem = drawn(np.arange(1.0, 301.0))
    early = extremes(problem, depth=5, max_depth=5)
    assert not early.converged
    assert early.depth == 5
    assert "NOT CONVERGED" in str(early)
    with pytest.raises(AttnlabError, match="must not be compared"):
        _ = early.largest[0].settled
    late = extremes(problem, max_depth=300)
    assert late.largest[0].settled == pytest.approx(300.0, abs=1e-8)
    assert late.smallest[0].settled == pytest.approx(1.0, abs=1e-8)
    assert 32 < late.depth <= 300


def test_the_start_is_the_seed_and_the_whole_space_is_exact():
    problem = drawn([5.0, 2.0, -1.0])
    found = extremes(problem, k=3, seed=4)
    assert [round(e.value, 9) for e in found.largest] == [5.0, 2.0, -1.0]
    assert "seed 4" in str(found)
    with pytest.raises(AttnlabError, match="no parameters of that name"):
        extremes(problem, group="head")
    with pytest.raises(AttnlabError, match="theta has shape"):
        extremes(problem, jnp.zeros(2))


SPECTRA = {
    "decay": 1.0 / np.arange(1, 121),
    "outliers": np.r_[np.full(115, 0.01), 1, 2, 4, 8, 16],
    "both signs": np.r_[np.linspace(-1, 3, 120)],
    "one": np.r_[10.0, np.zeros(119)],
}


@pytest.mark.parametrize("name", SPECTRA)
def test_the_interval_of_the_trace_covers(name):
    """200 repetitions: the 95 % interval holds the truth in at least 90 %, and 16 probes come
    within 15 %.
    """
    problem, true = drawn(SPECTRA[name]), SPECTRA[name].sum()
    found = [trace(problem, seed=seed) for seed in range(200)]
    covered = np.mean([f.interval.low <= true <= f.interval.high for f in found])
    near = np.mean([abs(f.estimate / true - 1) <= 0.15 for f in found])
    assert covered >= 0.9
    assert near >= 0.95
    assert len(found[0].values) == 16
    assert "standard error" in str(found[0])


def test_plain_hutchinson_is_offered_and_its_interval_is_wider():
    problem = drawn(SPECTRA["outliers"])
    plain, deflated = trace(problem, deflate=0), trace(problem)
    assert plain.standard_error > 3 * deflated.standard_error
    z = np.asarray(
        jax.random.rademacher(jax.random.split(jax.random.key(0))[1], (16, 120), jnp.float64)
    )
    a = np.asarray(problem.data)
    np.testing.assert_allclose(plain.values, np.einsum("pi,ij,pj->p", z, a, z), rtol=1e-10)


def test_a_small_trace_is_computed():
    found = trace(drawn([1.0, 2.0, 4.0]))
    assert found.exact
    assert found.standard_error == 0
    assert found.interval.low <= 7 <= found.interval.high


def test_the_quadrature_is_exact_for_polynomials():
    a, depth = np.asarray(drawn(SPECTRA["decay"]).data), 6
    z = np.random.default_rng(1).normal(size=120)
    alphas, betas = map(np.asarray, recurrence(lambda v: jnp.asarray(a) @ v, jnp.asarray(z), depth))
    values, vectors = np.linalg.eigh(
        np.diag(alphas) + np.diag(betas[:-1], 1) + np.diag(betas[:-1], -1)
    )
    for power in range(2 * depth):
        expected = z @ np.linalg.matrix_power(a, power) @ z / (z @ z)
        assert (vectors[0] ** 2 * values**power).sum() == pytest.approx(expected, rel=1e-9)


def test_the_density_is_that_of_the_eigenvalues(problem):
    true = exact_spectrum(problem).values
    found = density(problem, probes=32, depth=40)
    x, sigma = found.data.eigenvalue.values, found.data.attrs["smoothing"]
    expected = np.exp(-0.5 * ((x[:, None] - true[None, :]) / sigma) ** 2).sum(1) / (
        len(true) * sigma * np.sqrt(2 * np.pi)
    )
    assert np.trapezoid(found.data.density, x) == pytest.approx(1, abs=1e-3)
    inside = (found.data.low.values <= expected + 1e-9) & (
        expected <= found.data.high.values + 1e-9
    )
    assert inside.mean() > 0.8
    assert found.data.attrs["seed"] == 0
    assert "32 probes of 40 Lanczos steps" in str(found)
    share, error = found.share(0.5, np.inf)
    assert abs(share - (true >= 0.5).mean()) < 4 * error


def test_the_density_of_one_repeated_eigenvalue():
    found = density(quadratic(3.0 * jnp.eye(20)), depth=10)
    assert found.share(2.99, 3.01)[0] == pytest.approx(1)
    assert np.isfinite(found.data.density).all()


def test_too_large_matrices_are_refused():
    large = Problem.of(jnp.zeros(3000), lambda theta, _: jnp.sum(theta**2), jnp.zeros(0))
    with pytest.raises(AttnlabError, match="up to 2000"):
        exact_spectrum(large)
    with pytest.raises(AttnlabError, match="GiB"):
        extremes(Problem.of(jnp.zeros(2**24), lambda t, _: jnp.sum(t**2), jnp.zeros(0)))
    assert extremes(large).largest[0].settled == pytest.approx(2)


def test_word_attention_through_the_kernel():
    """Products through the compiled row sums are those of the literal equation's curvature."""
    corpus = TopicTask(topics=2, topic_words=2, dictionary=24, noise_words=4).sample(
        8, key=jax.random.key(0)
    )
    config = WordAttentionConfig.for_corpus(
        corpus,
        embedding_dim=3,
        key_dim=2,
        embedding_std=0.5,
        key_std=0.5,
        head="linear",
        query_norm=1.0,
        trained=("embeddings", "keys", "query", "head"),
    )
    problem = word_problem(config.init(jax.random.key(1)), corpus)
    assert list(groups(problem)) == ["embeddings", "keys", "query", "head.weight"]

    def literal(model, labels):
        chosen = jax.nn.log_softmax(literal_logits(model, corpus))[jnp.arange(len(corpus)), labels]
        return -jnp.mean(chosen)

    model, labels = problem.model(problem.start), jnp.asarray(corpus.labels)
    assert float(problem.value(problem.start)) == pytest.approx(
        float(literal(model, labels)), rel=1e-12
    )
    expected = exact_spectrum(Problem.of(model, literal, labels))
    np.testing.assert_allclose(
        extremes(problem, max_depth=64).largest[0].value, expected.largest, rtol=1e-10
    )
    np.testing.assert_allclose(exact_spectrum(problem).values, expected.values, atol=1e-10)
