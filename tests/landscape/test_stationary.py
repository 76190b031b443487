"""Minima against scipy and closed forms; every method ends at 1e-8; alone equals among others;
escape is said.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from attnlab._errors import AttnlabError
from attnlab.landscape import (
    MeanSquare,
    Problem,
    certify,
    find_saddles,
    group_points,
    minimise,
    quadratic,
    squared_error,
)
from attnlab.models import SelfAttentionConfig, make_teacher

pytestmark = pytest.mark.slow

CONFIG = SelfAttentionConfig(
    embedding_dim=2, words=2, key_dim=2, value_dim=2, hidden=2, scale="dim", factor=3.0
)


@pytest.fixture(scope="module")
def problem():
    teacher = make_teacher("self-attention", key=jax.random.key(0), attention=CONFIG)
    x, y = teacher.sample(40, key=jax.random.key(1))
    return Problem.of(CONFIG.init(jax.random.key(2)), squared_error, {"x": x, "y": y}, l2=1e-3)


@pytest.fixture(scope="module")
def starts(problem):
    return jnp.stack([problem.flatten(CONFIG.init(jax.random.key(seed))) for seed in range(4)])


@pytest.fixture(scope="module")
def found(problem, starts):
    return minimise(problem, starts)


def test_every_start_is_certified_with_the_zero_modes_of_the_formula(problem, found):
    assert found.status.values.tolist() == ["stationary"] * 4
    assert float(found.gradient.max()) <= 1e-8
    for theta in found.theta.values:
        certificate = certify(problem, jnp.asarray(theta))
        dense = np.linalg.eigvalsh(
            np.asarray(jax.jit(jax.hessian(problem.value))(jnp.asarray(theta)))
        )
        assert certificate.kind == "minimum"
        assert certificate.zero_modes == 2 == (np.abs(dense) < 1e-7).sum()
        np.testing.assert_allclose(certificate.smallest.value, dense[dense > 1e-7].min(), rtol=1e-5)


def test_scipy_finds_nothing_lower_nearby(problem, found):
    look = jax.jit(jax.value_and_grad(problem.value))
    best = int(np.argmin(found.value.values))
    ended = minimize(
        lambda t: tuple(map(np.asarray, look(t))),
        found.theta.values[best] + 1e-3,
        jac=True,
        method="BFGS",
    )
    assert ended.fun >= float(found.value[best]) - 1e-12


def test_start_alone_gives_the_bits_of_start_among_others(problem, starts, found):
    alone, pair = minimise(problem, starts[2:3]), minimise(problem, starts[1:3])
    assert np.array_equal(alone.theta.values[0], found.theta.values[2])
    assert np.array_equal(pair.theta.values, found.theta.values[1:3])


def test_levenberg_marquardt_ends_at_minima_too(problem, starts):
    other = minimise(problem, starts, method="lm")
    assert other.status.values.tolist() == ["stationary"] * 4
    assert {certify(problem, jnp.asarray(theta)).kind for theta in other.theta.values} == {
        "minimum"
    }
    assert (
        len(set(group_points(problem, np.repeat(other.theta.values[:1], 2, axis=0)).tolist())) == 1
    )


def test_newton_leaves_a_saddle_and_find_saddles_finds_it():
    double_well = Problem.of(jnp.zeros(2), lambda t, _: (t[0] ** 2 - 1.0) ** 2 + t[1] ** 2, None)
    found = minimise(double_well, jnp.zeros((1, 2)), method="newton")
    assert abs(found.theta.values[0]).tolist() == pytest.approx([1.0, 0.0], abs=1e-8)
    saddle = find_saddles(double_well, jnp.array([[0.3, 0.5]]))
    assert saddle.theta.values[0].tolist() == pytest.approx([0.0, 0.0], abs=1e-8)
    assert certify(double_well, jnp.asarray(saddle.theta.values[0])).kind == "saddle"


def test_a_quadratic_has_its_closed_form():
    a = jnp.array([[3.0, 1.0], [1.0, 2.0]])
    problem = quadratic(a, l2=0.5)
    shifted = Problem.of(problem.start, lambda t, m: problem.loss(t, m) - t[0], a, l2=0.5)
    found = minimise(shifted, jnp.ones((1, 2)))
    np.testing.assert_allclose(
        found.theta.values[0], np.linalg.solve(np.asarray(a) + 0.5 * np.eye(2), [1, 0]), atol=1e-9
    )


def test_without_a_penalty_weights_that_escape_are_said_to():
    # Separable classes: the logistic loss falls for ever as the weight grows.
    problem = Problem.of(
        jnp.zeros(1), lambda w, x: jnp.mean(jax.nn.softplus(-w[0] * x)), jnp.ones(3)
    )
    found = minimise(problem, jnp.zeros((1, 1)), steps=60, newton_steps=20, tolerance=1e-30)
    assert found.status.values.tolist() == ["weights escape"]
    assert float(found.norm[0]) > 10


def test_levenberg_marquardt_needs_squares(problem, starts):
    plain = Problem.of(jnp.zeros(2), lambda t, _: jnp.sum(t), None)
    with pytest.raises(AttnlabError, match="mean of squares"):
        minimise(plain, jnp.zeros((1, 2)), method="lm")
    with pytest.raises(AttnlabError, match="float64"):
        minimise(problem, starts.astype(jnp.float32))
    with pytest.raises(AttnlabError, match="shape"):
        minimise(problem, starts[0])


def test_mean_square_is_the_loss_of_its_residuals(problem):
    assert isinstance(problem.loss, MeanSquare)
    r = problem.loss.residuals(problem.model(problem.start), problem.data)
    assert float(problem.plain(problem.start)) == pytest.approx(
        float(np.mean(np.asarray(r) ** 2)), rel=1e-14
    )
