"""Certificates against dense numpy eigenvalues and quadratics of known inertia; what must not be
said is not said.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.landscape import Problem, certify, quadratic, squared_error
from attnlab.landscape._certify import missed
from attnlab.models import BaselineConfig

pytestmark = pytest.mark.slow


def _matrix(eigenvalues, seed=0):
    values = np.asarray(eigenvalues, float)
    q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    return jnp.asarray(q @ np.diag(values) @ q.T)


@pytest.mark.parametrize(
    ("eigenvalues", "kind", "inertia"),
    [
        ([3.0, 1.0, 1e-6], "minimum", (0, 0, 3)),
        ([3.0, 1.0, -1e-6], "saddle", (1, 0, 2)),
        ([3.0, 0.0, 0.0], "degenerate", (0, 2, 1)),
        ([3.0, 0.0, -2.0], "saddle", (1, 1, 1)),
        ([-3.0, -1.0, -1.0], "saddle", (3, 0, 0)),
    ],
)
def test_quadratics_of_known_inertia(eigenvalues, kind, inertia):
    certificate = certify(quadratic(_matrix(eigenvalues)))
    assert (certificate.kind, certificate.inertia) == (kind, inertia)
    for bounded, exact in (
        (certificate.smallest, min(eigenvalues)),
        (certificate.largest, max(eigenvalues)),
    ):
        assert bounded.low <= exact <= bounded.high
        assert bounded.direction == "between"
    assert ("minimum" in str(certificate)) == (kind == "minimum")


def test_a_saddle_made_by_hand_is_not_called_a_minimum():
    # One hidden unit, one input: by θ → 0 the gradient of a symmetric pair of outputs vanishes, the
    # curvature does not.
    problem = Problem.of(
        jnp.zeros(2), lambda m, y: (m[0] * m[1] - y) ** 2, jnp.asarray(1.0), l2=0.1
    )
    certificate = certify(problem, jnp.zeros(2))
    assert certificate.kind == "saddle"
    assert certificate.smallest.high < 0
    np.testing.assert_allclose(
        [certificate.smallest.value, certificate.largest.value], [-1.9, 2.1], rtol=1e-12
    )
    assert certify(problem, jnp.zeros(2), dense=1, depth=2).kind == "saddle"


def test_a_point_with_a_gradient_is_not_stationary_and_says_its_gradient():
    model = BaselineConfig(numbers=3, hidden=2).init(jax.random.key(0))
    data = {"x": jax.random.normal(jax.random.key(1), (9, 3)), "y": jnp.ones(9)}
    certificate = certify(model, squared_error, data, l2=0.01)
    problem = Problem.of(model, squared_error, data, l2=0.01)
    dense = np.linalg.eigvalsh(np.asarray(jax.hessian(problem.value)(problem.start)))
    assert certificate.kind == "not stationary"
    assert certificate.gradient == pytest.approx(
        float(jnp.abs(problem.gradient(problem.start)).max()), rel=1e-12
    )
    np.testing.assert_allclose(
        [certificate.smallest.value, certificate.largest.value], dense[[0, -1]], rtol=1e-10
    )
    assert str(certificate).startswith("Not stationary")


def test_above_the_limit_the_word_minimum_is_never_used():
    eigenvalues = np.linspace(0.5, 4.0, 60)
    certificate = certify(quadratic(_matrix(eigenvalues)), dense=10, depth=60)
    assert certificate.kind == "no negative curvature found"
    assert "minimum" not in str(certificate)
    assert certificate.distance is None
    assert "stationary means ‖∇L‖ ≤ 1e-08" in str(certificate)
    assert certificate.inertia is None
    assert certificate.smallest.direction == "at most"
    assert certificate.largest.direction == "at least"
    assert certificate.smallest.high >= 0.5 - 1e-9
    assert certificate.largest.low <= 4.0 + 1e-9
    assert certificate.smallest.converged
    assert certificate.floor is not None
    assert certificate.floor <= 0.5


def test_lanczos_stopped_early_is_reported_as_not_converged():
    certificate = certify(quadratic(_matrix(np.linspace(0.5, 100.0, 80))), dense=10, depth=4)
    assert not certificate.smallest.converged
    assert "not converged" in str(certificate)
    with pytest.raises(AttnlabError, match="not be compared"):
        _ = certificate.smallest.settled
    assert certificate.floor == -math.inf  # so few steps exclude nothing


def test_one_sided_bounds_hold_for_every_seed():
    a = _matrix([-0.01, *np.linspace(0.5, 100.0, 79)])
    problem = quadratic(a)
    for seed in range(5):
        certificate = certify(problem, dense=10, depth=12, seed=seed)
        assert certificate.smallest.high >= -0.01 - 1e-12
        assert certificate.largest.low <= 100 + 1e-12
        assert certificate.kind in ("saddle", "no negative curvature found")


def test_what_lanczos_misses_is_within_the_stated_share():
    eigenvalues = np.concatenate([[0.0], np.linspace(0.2, 1.0, 199)])
    a = jnp.diag(jnp.asarray(eigenvalues))
    share = missed(20, 200, 0.05)
    problem = quadratic(a)
    far = [certify(problem, dense=1, depth=20, seed=seed).smallest.value for seed in range(40)]
    assert np.mean(np.asarray(far) > share * 1.0) <= 0.05


def test_error_and_gap_are_in_the_sentence():
    certificate = certify(quadratic(jnp.eye(2)), error=0.3, best=0.1)
    assert certificate.gap == pytest.approx(0.2)
    assert str(certificate).endswith("prediction error 0.3, 0.2 above the best known.")


def test_float32_has_a_wider_delta():
    wide, narrow = certify(quadratic(jnp.eye(3, dtype=jnp.float32))), certify(quadratic(jnp.eye(3)))
    assert wide.delta > 1e6 * narrow.delta


def test_given_tangents_are_counted_and_wrong_ones_refused():
    def ring(theta, _):
        return (jnp.vdot(theta, theta) - 1.0) ** 2

    problem = Problem.of(jnp.array([1.0, 0.0]), ring, None)
    assert certify(problem).kind == "degenerate"
    certificate = certify(problem, tangents=jnp.array([[0.0, 2.0]]))
    assert (certificate.kind, certificate.zero_modes, certificate.inertia) == (
        "minimum",
        1,
        (0, 0, 1),
    )
    with pytest.raises(AttnlabError, match="not symmetries"):
        certify(problem, tangents=jnp.array([[1.0, 0.0]]))


def test_a_model_that_is_nan_cannot_be_certified():
    model = BaselineConfig(numbers=2, hidden=1).init(jax.random.key(0))
    broken = eqx.tree_at(lambda m: m.w2, model, jnp.full((1, 1), jnp.nan))
    certificate = certify(broken, squared_error, {"x": jnp.ones((1, 2)), "y": jnp.ones(1)})
    assert not certificate.stationary
    assert "the loss is not a number" in str(certificate)


def test_neither_problem_nor_loss_is_refused():
    with pytest.raises(AttnlabError, match="expected certify"):
        certify(jnp.ones(2))
