"""Zero modes against the formulas of docs/theory.md#b3 and the dense Hessian; permuted and rotated
copies are one point.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import ortho_group

from attnlab.landscape import (
    Problem,
    aligned,
    group_points,
    hidden_spaces,
    same_point,
    squared_error,
    tangents,
    zero_modes,
)
from attnlab.models import (
    Baseline,
    BaselineConfig,
    Gate,
    KnownAttentionConfig,
    KnownWeightsConfig,
    MultiLayerConfig,
    SelfAttentionConfig,
)

SMALL = SelfAttentionConfig(embedding_dim=3, words=2, key_dim=2, value_dim=3, hidden=2)
KEY = jax.random.key(0)


def _known(base, values=True):
    teacher = base.init(jax.random.key(9))
    return KnownWeightsConfig(base, values).init(KEY, teacher=teacher)


def _stack(residual):
    return MultiLayerConfig(SMALL, depth=2, residual=residual)


# model, zero modes with l2, zero modes without
CASES = {
    "baseline": (BaselineConfig(numbers=6, hidden=2).init(KEY), 0, 0),
    "relu": (BaselineConfig(numbers=6, hidden=2, sharpness=math.inf).init(KEY), 0, 2),
    "known f": (KnownAttentionConfig(BaselineConfig(6, 2), Gate((0, 1), 6)).init(KEY), 0, 0),
    "self-attention": (SMALL.init(KEY), 1 + 3, 4 + 9),
    "known weights": (_known(SMALL), 3, 9),
    "known weights without": (_known(SMALL, values=False), 0, 0),
    "stack with sums": (_stack(True).init(KEY), 1 + 1 + 3, 4 + 4 + 9),
    "plain stack": (_stack(False).init(KEY), 1 + 1 + 3 + 3, 4 + 4 + 9 + 9),
    "known weights, plain stack": (_known(_stack(False)), 3 + 3, 9 + 9),
}


def _problem(model, l2, seed=0):
    shape = (4, 6) if isinstance(model, Baseline) or hasattr(model, "mask") else (4, 3, 2)
    x = jax.random.normal(jax.random.key(seed), shape)
    return Problem.of(model, squared_error, {"x": x, "y": jnp.ones(4)}, l2=l2)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("l2", [0.1, 0.0])
def test_as_many_tangents_as_the_formula_says_and_the_loss_is_flat_along_them(name, l2):
    model, with_l2, without = CASES[name]
    problem = _problem(model, l2)
    found = tangents(problem, problem.start)
    assert found.shape[0] == np.linalg.matrix_rank(found) == (with_l2 if l2 else without)
    # An exact symmetry: the slope vanishes along the orbit everywhere, not only at stationary
    # points.
    np.testing.assert_allclose(
        found @ np.asarray(eqx.filter_jit(problem.gradient)(problem.start)), 0, atol=1e-13
    )


def _turned(model, seed=0):
    """A copy under random rotations of every space, with its hidden units in another order."""
    generator = np.random.default_rng(seed)
    for space in hidden_spaces(model):
        if space.turns:
            m = (
                ortho_group.rvs(space.size, random_state=generator)
                if space.size > 1
                else -np.eye(1)
            )
            model = space.act(model, jnp.asarray(m), jnp.asarray(m.T))
    where = (lambda m: m) if isinstance(model, Baseline) else (lambda m: m.head)
    order = generator.permutation(where(model).w1.shape[1])[::-1].copy()
    head = where(model)
    return eqx.tree_at(
        lambda m: [where(m).w1, where(m).w2], model, [head.w1[:, order], head.w2[order]]
    )


@pytest.mark.parametrize("name", CASES)
def test_rotated_and_permuted_copies_are_one_point(name):
    model = CASES[name][0]
    problem = _problem(model, 0.1)
    copy = problem.flatten(_turned(model, seed=3))
    assert float(problem.value(copy)) == pytest.approx(
        float(problem.value(problem.start)), rel=1e-12
    )
    np.testing.assert_allclose(aligned(problem, copy, problem.start), problem.start, atol=1e-12)
    assert not same_point(problem, copy + 0.01, problem.start)


def test_groups_count_copies_once():
    model = CASES["self-attention"][0]
    problem = _problem(model, 0.1)
    other = problem.start + 0.1
    copies = [problem.flatten(_turned(model, seed)) for seed in (1, 2)]
    points = jnp.stack([copies[0], other, copies[1], problem.start])
    assert group_points(problem, points).tolist() == [0, 1, 0, 0]


def test_a_sign_is_a_symmetry_where_queries_have_one_dimension():
    config = SelfAttentionConfig(embedding_dim=3, words=2, key_dim=1, value_dim=2, hidden=2)
    model = config.init(KEY)
    flipped = eqx.tree_at(
        lambda m: [m.layer.w_query, m.layer.w_key],
        model,
        [-model.layer.w_query, -model.layer.w_key],
    )
    problem = _problem(model, 0.1)
    assert same_point(problem, problem.flatten(flipped), problem.start)


def test_a_relu_unit_has_no_sign():
    model = CASES["relu"][0]
    problem = _problem(model, 0.1)
    assert not same_point(problem, -problem.start, problem.start)


def test_fewer_zero_modes_where_values_are_rank_deficient():
    model = SelfAttentionConfig(embedding_dim=3, words=2, key_dim=2, value_dim=3, hidden=2).init(
        KEY
    )
    direction = jnp.array([1.0, 2.0, 3.0])
    w1 = model.head.w1.reshape(2, 3, 2)
    thin = (w1.sum(axis=1, keepdims=True) * direction[None, :, None]).reshape(6, 2)
    model = eqx.tree_at(
        lambda m: [m.layer.w_value, m.head.w1],
        model,
        [direction[:, None] * model.layer.w_value[:1], thin],
    )
    problem = _problem(model, 0.1)
    # Three rotations of one vector in space span two tangents; the queries keep their one.
    assert np.linalg.matrix_rank(tangents(problem, problem.start)) == 1 + 2


def test_what_is_not_trained_is_no_symmetry():
    model = SMALL.init(KEY)
    mask = eqx.tree_at(
        lambda m: m.head.w1,
        jax.tree.map(lambda _: True, eqx.filter(model, eqx.is_inexact_array)),
        False,
    )
    data = {"x": jnp.ones((1, 3, 2)), "y": jnp.zeros(1)}
    problem = Problem.of(model, squared_error, data, l2=0.1, trained=lambda _: mask)
    assert (
        tangents(problem, problem.start).shape[0] == 1
    )  # of queries and keys; the values meet the frozen w1


def test_a_model_of_ones_own_names_its_spaces():
    class Product(eqx.Module):
        inner: Baseline

        def hidden_spaces(self):
            return []

        def __call__(self, x):
            return self.inner(x)

    model = Product(BaselineConfig(6, 2, sharpness=math.inf).init(KEY))
    problem = Problem.of(model, squared_error, {"x": jnp.ones((1, 6)), "y": jnp.ones(1)})
    assert zero_modes(problem, problem.start).shape == (0, 14)
