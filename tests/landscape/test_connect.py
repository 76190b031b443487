"""Matching of hidden units against brute force, barriers against closed forms."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.landscape import Problem, align, curved_path, quadratic, squared_error, straight_path
from attnlab.models import (
    Baseline,
    BaselineConfig,
    SelfAttentionConfig,
    TwoLayerHead,
    WordAttentionConfig,
)

X = jax.random.normal(jax.random.key(1), (60, 3))


def shuffled(head, order):
    return Baseline(head.w1[:, order], head.w2[order], head.sharpness)


def test_matching_undoes_a_permutation_and_keeps_the_function():
    model = SelfAttentionConfig(embedding_dim=3, words=4, hidden=6).init(jax.random.key(0))
    order = jnp.asarray(np.random.default_rng(0).permutation(6))
    other = eqx.tree_at(lambda m: m.head, model, shuffled(model.head, order))
    back = align(model, other)
    for one, two in zip(jax.tree.leaves(model), jax.tree.leaves(back), strict=True):
        np.testing.assert_array_equal(one, two)
    x = jnp.ones((3, 4))
    assert float(other(x)) == pytest.approx(float(back(x)), rel=1e-12)


def test_the_order_is_the_best_of_all():
    a, b = (BaselineConfig(numbers=3, hidden=5).init(jax.random.key(k)) for k in (0, 1))
    found = align(a, b)

    def gain(model):
        return float((a.w1 * model.w1).sum() + (a.w2 * model.w2).sum())

    best = max(gain(shuffled(b, jnp.asarray(order))) for order in itertools.permutations(range(5)))
    assert gain(found) == pytest.approx(best, rel=1e-12)


def test_two_layer_heads_of_words_are_matched_with_their_biases():
    model = WordAttentionConfig(words=5, classes=2, head="two_layer", hidden=4).init(
        jax.random.key(0)
    )
    head, order = model.head, jnp.array([3, 1, 0, 2])
    assert isinstance(head, TwoLayerHead)
    other = TwoLayerHead(head.weight1[:, order], head.bias1[order], head.weight2[order], head.bias2)
    back = align(model, eqx.tree_at(lambda m: m.head, model, other))
    assert isinstance(back.head, TwoLayerHead)
    np.testing.assert_array_equal(back.head.bias1, head.bias1)
    np.testing.assert_array_equal(back.head.weight2, head.weight2)


def test_models_of_two_kinds_are_refused():
    with pytest.raises(AttnlabError, match="cannot be matched"):
        align(
            BaselineConfig(numbers=3, hidden=4).init(jax.random.key(0)),
            SelfAttentionConfig().init(jax.random.key(0)),
        )


def test_the_barrier_is_the_rise_over_the_line_between_the_ends():
    """½θᵀAθ with A = diag(−2, 1) between (1, 0) and (−1, 1): ½(−2(1−2t)² + t²), a line from −1 to
    −½ below it.
    """
    problem = quadratic(jnp.diag(jnp.array([-2.0, 1.0])))
    found = straight_path(problem, jnp.array([1.0, 0.0]), jnp.array([-1.0, 1.0]), points=1001)
    t = np.linspace(0, 1, 1001)
    excess = 0.5 * (-2 * (1 - 2 * t) ** 2 + t**2) - (-1 * (1 - t) - 0.5 * t)
    np.testing.assert_allclose(found.data.excess, excess, atol=1e-12)
    assert found.barrier == pytest.approx(excess.max(), abs=1e-12)
    assert found.place == pytest.approx(t[excess.argmax()])
    assert found.height == pytest.approx(
        (0.5 * (-2 * (1 - 2 * t) ** 2 + t**2)).max() + 0.5, abs=1e-12
    )
    assert "barrier" in str(found)


def test_relabelled_copies_have_a_barrier_until_they_are_matched():
    model = BaselineConfig(numbers=3, hidden=6).init(jax.random.key(0))
    problem = Problem.of(model, squared_error, {"x": X, "y": jax.vmap(model)(X)})
    other = shuffled(model, jnp.array([3, 4, 5, 0, 1, 2]))
    apart = straight_path(problem, problem.start, problem.flatten(other))
    assert apart.barrier > 1e-3
    assert (
        straight_path(problem, problem.start, problem.flatten(align(model, other))).barrier < 1e-20
    )
    around = curved_path(problem, problem.start, problem.flatten(other), steps=200)
    assert around.kind == "curved"
    assert around.barrier < 0.6 * apart.barrier
    assert float(around.data.loss[0]) == pytest.approx(0, abs=1e-12)
    assert float(around.data.loss[-1]) == pytest.approx(0, abs=1e-12)


def test_a_curve_is_never_worse_than_the_line():
    bowl = quadratic(jnp.eye(2))
    ends = jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])
    assert (
        curved_path(bowl, *ends, steps=50, points=25).barrier
        <= straight_path(bowl, *ends, points=25).barrier
    )
    with pytest.raises(AttnlabError, match="steps=0: expected at least 1"):
        curved_path(bowl, *ends, steps=0)
