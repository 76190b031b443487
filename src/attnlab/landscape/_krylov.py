"""Minimisation by Hessian-vector products, for problems too large for the whole matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, cg

from attnlab.landscape._problem import Problem

_MEMORY = 20
_MOST_PRODUCTS = 500

_Look = Callable[[np.ndarray], tuple[float, np.ndarray]]
_Product = Callable[[np.ndarray, np.ndarray], np.ndarray]


def minimise_krylov(
    problem: Problem,
    starts: Float[Array, "starts parameters"],
    tolerance: float,
    steps: int,
    newton_steps: int,
) -> tuple[
    Float[np.ndarray, "starts parameters"], Int[np.ndarray, "starts"], Int[np.ndarray, "starts"]
]:
    """From every start: SciPy's L-BFGS, then its trust-region Newton-CG (Steihaug).

    Both run until ``‖∇L‖₂ ≤ tolerance``, followed by one more Newton step. Returns the final points
    and the steps of both methods.
    """
    ended = [_one(problem, np.asarray(start), tolerance, steps, newton_steps) for start in starts]
    thetas, first, second = zip(*ended, strict=True)
    return np.stack(thetas), np.asarray(first), np.asarray(second)


def _one(
    problem: Problem, start: np.ndarray, tolerance: float, steps: int, newton_steps: int
) -> Any:
    def look(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _look(problem, jnp.asarray(theta))
        return float(value), np.array(gradient)

    def product(theta: np.ndarray, vector: np.ndarray) -> np.ndarray:
        return np.array(_product(problem, jnp.asarray(theta), jnp.asarray(vector)))

    options = {
        "maxiter": steps,
        "maxfun": 2 * steps,
        "maxcor": _MEMORY,
        "ftol": 0.0,
        "gtol": tolerance,
    }
    first = minimize(look, start, jac=True, method="L-BFGS-B", options=options)
    if np.max(np.abs(first.jac)) <= tolerance:
        return _polished(look, product, first.x, tolerance), first.nit, 0
    # Gains below the rounding of L, about 1e-16, make the trust region shrink to nothing: restart it.
    point, taken = first.x, 0
    for _ in range(4):
        second = minimize(
            look,
            point,
            jac=True,
            hessp=product,
            method="trust-ncg",
            options={"maxiter": newton_steps - taken, "gtol": 0.5 * tolerance},
        )
        better = np.linalg.norm(second.jac) < np.linalg.norm(look(point)[1])
        point, taken = (second.x if better else point), taken + second.nit
        if not better or np.max(np.abs(second.jac)) <= tolerance or taken >= newton_steps:
            break
    return _polished(look, product, point, tolerance), first.nit, taken


def _polished(look: _Look, product: _Product, point: np.ndarray, tolerance: float) -> np.ndarray:
    """If the gradient is small, one more Newton step, kept if it divides the gradient by ten.

    A small gradient alone may leave the point as far as ``‖∇L‖/λ_min`` from the minimum.
    """
    gradient = look(point)[1]
    if np.max(np.abs(gradient)) > tolerance:
        return point
    shape = (len(point), len(point))
    hessian = LinearOperator(shape, lambda v: product(point, v), dtype=point.dtype)  # pyright: ignore
    step, _ = cg(hessian, -gradient, rtol=1e-4, maxiter=_MOST_PRODUCTS)
    after = look(point + step)[1]
    falls = np.max(np.abs(after)) <= 0.1 * np.max(np.abs(gradient))
    return point + step if falls else point


@eqx.filter_jit
def _look(problem: Problem, theta: Array) -> tuple[Array, Array]:
    return jax.value_and_grad(problem.value)(theta)


@eqx.filter_jit
def _product(problem: Problem, theta: Array, vector: Array) -> Array:
    return problem.hvp(theta, vector)
