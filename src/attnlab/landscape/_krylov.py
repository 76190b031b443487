"""Minimisation by Hessian products alone, for problems too large for the whole matrix."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import minimize

from attnlab.landscape._problem import Problem

_MEMORY = 20


def minimise_krylov(
    problem: Problem, starts: Float[Array, "starts parameters"], tolerance: float, steps: int, newton_steps: int
) -> tuple[Float[np.ndarray, "starts parameters"], Int[np.ndarray, "starts"], Int[np.ndarray, "starts"]]:
    """From every start L-BFGS, then trust-region Newton with conjugate gradients (Steihaug), both scipy's, until
    ``‖∇L‖₂ ≤ tolerance``; where each ended, and the steps of both.
    """
    ended = [_one(problem, np.asarray(start), tolerance, steps, newton_steps) for start in starts]
    thetas, first, second = zip(*ended, strict=True)
    return np.stack(thetas), np.asarray(first), np.asarray(second)


def _one(problem: Problem, start: np.ndarray, tolerance: float, steps: int, newton_steps: int) -> Any:
    def look(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _look(problem, jnp.asarray(theta))
        return float(value), np.array(gradient)

    def product(theta: np.ndarray, vector: np.ndarray) -> np.ndarray:
        return np.array(_product(problem, jnp.asarray(theta), jnp.asarray(vector)))

    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": _MEMORY, "ftol": 0.0, "gtol": tolerance}
    first = minimize(look, start, jac=True, method="L-BFGS-B", options=options)
    if np.max(np.abs(first.jac)) <= tolerance:
        return first.x, first.nit, 0
    # Rounding of L, about 1e-16, hides gains below it, so that the trust region is let end and begun anew.
    point, taken = first.x, 0
    for _ in range(4):
        second = minimize(
            look, point, jac=True, hessp=product, method="trust-ncg",
            options={"maxiter": newton_steps - taken, "gtol": 0.5 * tolerance},
        )  # fmt: skip
        better = np.linalg.norm(second.jac) < np.linalg.norm(look(point)[1])
        point, taken = (second.x if better else point), taken + second.nit
        if not better or np.max(np.abs(second.jac)) <= tolerance or taken >= newton_steps:
            break
    return point, first.nit, taken


@eqx.filter_jit
def _look(problem: Problem, theta: Array) -> tuple[Array, Array]:
    return jax.value_and_grad(problem.value)(theta)


@eqx.filter_jit
def _product(problem: Problem, theta: Array, vector: Array) -> Array:
    return problem.hvp(theta, vector)
