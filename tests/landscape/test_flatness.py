"""Flatness against closed forms and dense sums; two measures must not see a rescaling of layers."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.landscape import Problem, exact_spectrum, flatness, quadratic, squared_error
from attnlab.landscape._flatness import petzka
from attnlab.landscape._operator import pieces
from attnlab.models import Baseline, BaselineConfig, SelfAttentionConfig

pytestmark = pytest.mark.slow

X = jax.random.normal(jax.random.key(1), (40, 3))
Y = jax.random.normal(jax.random.key(2), (40,))


def relu(l2=0.0):
    model = BaselineConfig(numbers=3, hidden=4, sharpness=math.inf).init(jax.random.key(0))
    return Problem.of(model, squared_error, {"x": X, "y": Y}, l2=l2)


def rescaled(problem, factors):
    """Hidden unit s times c_s in the first layer, divided by it in the second: the same function of
    a ReLU network.
    """
    model, c = problem.model(problem.start), jnp.asarray(factors)
    return problem.flatten(Baseline(model.w1 * c[None, :], model.w2 / c[:, None], model.sharpness))


def test_closed_forms_on_a_quadratic():
    diagonal, theta = np.array([3.0, 2.0, 0.5, -1.0]), jnp.zeros(4)
    found = flatness(quadratic(jnp.diag(jnp.asarray(diagonal))), theta, epsilon=0.1, rho=0.2)
    assert found.largest == 3
    assert found.trace == 4.5
    assert found.trace_per_parameter == 4.5 / 4
    assert found.sam == pytest.approx(0.5 * 3 * 0.2**2, rel=1e-9)
    box = 0.5 * (np.maximum(diagonal, 0) * 0.1**2).sum()
    assert found.keskar == pytest.approx(100 * box, rel=1e-3)
    assert found.adaptive_sam == 0  # a coordinate that is 0 has no size to be perturbed by
    assert found.petzka == {}


def test_keskar_and_adaptive_sam_away_from_zero():
    diagonal, theta = np.array([3.0, 2.0, 0.5]), np.array([0.5, -2.0, 1.0])
    problem = quadratic(jnp.diag(jnp.asarray(diagonal)))
    found = flatness(
        problem, jnp.asarray(theta), epsilon=0.1, adaptive_rho=0.3, starts=8, steps=200
    )
    loss = 0.5 * (diagonal * theta**2).sum()
    reach = 0.1 * (np.abs(theta) + 1)
    corner = 0.5 * (diagonal * (np.abs(theta) + reach) ** 2).sum() - loss
    assert found.keskar == pytest.approx(100 * corner / (1 + loss), rel=1e-12)
    draws = np.random.default_rng(0).normal(size=(200_000, 3))
    z = 0.3 * np.abs(theta) * draws / np.linalg.norm(draws, axis=1, keepdims=True)
    rises = 0.5 * ((theta + z) ** 2 @ diagonal) - loss
    assert found.adaptive_sam >= rises.max() - 1e-9
    assert found.adaptive_sam == pytest.approx(rises.max(), rel=1e-3)


def test_the_scale_invariant_ones_are_and_the_others_are_not():
    problem = relu()
    before = flatness(problem)
    after = flatness(problem, rescaled(problem, [3.0] * 4))
    assert after.loss == pytest.approx(before.loss, rel=1e-12)
    for layer, value in before.petzka.items():
        assert after.petzka[layer] == pytest.approx(value, rel=1e-9)
    assert after.relative_flatness == pytest.approx(before.relative_flatness, rel=1e-9)
    assert after.adaptive_sam == pytest.approx(before.adaptive_sam, rel=1e-3)
    unit_by_unit = flatness(problem, rescaled(problem, [4.0, 0.25, 2.0, 0.5]))
    assert unit_by_unit.petzka["w1"] == pytest.approx(before.petzka["w1"], rel=1e-9)
    assert unit_by_unit.adaptive_sam == pytest.approx(before.adaptive_sam, rel=1e-3)
    for name in ("largest", "trace", "keskar", "sam"):
        assert after.measures[name] != pytest.approx(before.measures[name], rel=0.05)


def test_petzka_is_its_definition():
    """Neuron by neuron from the dense matrix, for both orders of axes."""
    model = SelfAttentionConfig(embedding_dim=2, words=3, key_dim=2, value_dim=2, hidden=3).init(
        jax.random.key(0)
    )
    x = jax.random.normal(jax.random.key(3), (30, 2, 3))
    problem = Problem.of(model, squared_error, {"x": x, "y": Y[:30]})
    h, theta = np.asarray(problem.hessian(problem.start)), np.asarray(problem.start)
    for piece in pieces(problem):
        place = np.arange(piece.span.start, piece.span.stop).reshape(piece.shape)
        neurons = place if piece.name.startswith("layer") else place.T
        expected = sum(
            (theta[s] @ theta[t]) * np.trace(h[np.ix_(s, t)]) for s in neurons for t in neurons
        )
        same = (pytest.approx(expected, rel=1e-9, abs=1e-12), 0.0)
        assert petzka(problem, problem.start, piece, matrix=h) == same
        if piece.name == "layer.w_value":
            assert petzka(problem, problem.start, piece) == same


def test_the_penalty_is_left_out_unless_asked_for():
    with_penalty = relu(l2=0.3)
    assert flatness(with_penalty).trace == pytest.approx(exact_spectrum(relu()).trace)
    assert flatness(with_penalty, penalised=True).trace == pytest.approx(
        exact_spectrum(with_penalty).trace
    )


def test_above_the_dense_limit_it_is_estimated(monkeypatch):
    monkeypatch.setattr("attnlab.landscape._flatness.DENSE_LIMIT", 50)
    model = BaselineConfig(numbers=20, hidden=5).init(jax.random.key(0))
    x = jax.random.normal(jax.random.key(3), (50, 20))
    problem = Problem.of(model, squared_error, {"x": x, "y": jnp.zeros(50)})
    found = flatness(problem, steps=5, starts=1)
    h = np.asarray(problem.hessian(problem.start))
    assert found.largest == pytest.approx(np.linalg.eigvalsh(h)[-1], rel=1e-9)
    assert abs(found.trace - np.trace(h)) < 5 * found.trace_error
    w = np.asarray(model.w1)
    blocks = h[:100, :100].reshape(20, 5, 20, 5)
    expected = np.einsum("st,asat->", w.T @ w, blocks)
    assert abs(found.petzka["w1"] - expected) < 5 * found.petzka_error
    assert "Petzka" in str(found)


def test_nonsense_is_refused():
    with pytest.raises(AttnlabError, match="expected numbers > 0"):
        flatness(relu(), rho=0.0)
