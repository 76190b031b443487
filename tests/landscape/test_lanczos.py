"""Ritz values against dense eigenvalues, also where the Krylov space ends early or is cut off on
purpose.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnlab._precision  # noqa: F401
from attnlab._errors import AttnlabError
from attnlab.landscape._lanczos import lanczos, residual, ritz


@partial(jax.jit, static_argnums=2)
def _ritz(a, start, depth):
    return ritz(lanczos(lambda w: a @ w, start, depth))


def _symmetric(size, seed=0, dtype=np.float64):
    a = np.random.default_rng(seed).normal(size=(size, size))
    return jnp.asarray((a + a.T) / 2, dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_all_eigenvalues_at_full_depth(dtype, tolerance):
    a = _symmetric(40, dtype=dtype)
    start = jax.random.normal(jax.random.key(1), (40,), dtype)
    found = _ritz(a, start, 40)
    exact = np.linalg.eigvalsh(np.asarray(a, np.float64))
    np.testing.assert_allclose(found.values, exact, atol=tolerance * np.abs(exact).max())
    assert found.values.dtype == dtype


def test_basis_is_orthonormal_and_the_relation_holds():
    a = _symmetric(60)
    t = lanczos(lambda w: a @ w, jax.random.normal(jax.random.key(1), (60,)), 20)
    q, tri = (
        np.asarray(t.basis),
        np.diag(t.alphas) + np.diag(t.betas[:-1], 1) + np.diag(t.betas[:-1], -1),
    )
    np.testing.assert_allclose(q @ q.T, np.eye(20), atol=1e-13)
    rest = np.asarray(a) @ q.T - q.T @ tri
    np.testing.assert_allclose(rest[:, :-1], 0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(rest[:, -1]), t.betas[-1], rtol=1e-12)


def test_every_residual_bounds_the_distance_to_an_eigenvalue():
    a = _symmetric(80, seed=3)
    exact = np.linalg.eigvalsh(np.asarray(a))
    found = _ritz(a, jax.random.normal(jax.random.key(0), (80,)), 25)
    for value, bound, vector in zip(found.values, found.residuals, found.vectors, strict=True):
        assert np.abs(exact - float(value)).min() <= float(bound) + 1e-12
        assert float(residual(lambda w: a @ w, value, vector)) == pytest.approx(
            float(bound), abs=1e-12
        )


@pytest.mark.parametrize(
    "values", [[0.0] * 12, [2.0] * 12, [1.0] * 6 + [3.0] * 6, [0.0] * 11 + [1.0]]
)
def test_goes_on_where_the_space_is_invariant(values):
    a = jnp.diag(jnp.asarray(values))
    found = _ritz(a, jax.random.normal(jax.random.key(0), (12,)), 12)
    np.testing.assert_allclose(found.values, sorted(values), atol=1e-12)
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(12), atol=1e-12)


def test_weights_are_those_of_a_quadrature():
    a, start = _symmetric(30), jax.random.normal(jax.random.key(4), (30,))
    found = _ritz(a, start, 6)
    unit = np.asarray(start / jnp.linalg.norm(start))
    for power in range(12):  # a Gauss rule of 6 nodes is exact up to degree 11
        exact = unit @ np.linalg.matrix_power(np.asarray(a), power) @ unit
        np.testing.assert_allclose(found.first @ found.values**power, exact, rtol=1e-9, atol=1e-9)


def test_alone_and_mapped_agree():
    a = _symmetric(20)
    starts = jax.random.normal(jax.random.key(0), (3, 20))
    many = jax.jit(jax.vmap(lambda v: ritz(lanczos(lambda w: a @ w, v, 8)).values))(starts)
    np.testing.assert_allclose(many[1], _ritz(a, starts[1], 8).values, rtol=1e-10)


def test_refuses_a_depth_beyond_the_space():
    with pytest.raises(AttnlabError, match="depth=4"):
        lanczos(lambda v: v, jnp.ones(3), 4)
