"""Newton's method with all eigenvalues of the Hessian: to a minimum, or to any stationary point."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attnlab.landscape._problem import Problem

# Each step tries all of these dampings at once, relative to the largest curvature.
_DAMPINGS = (0.0, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
_FLOOR = 1e-13
_NEAR = 1e-8  # relative to max(‖θ‖, 1): a shorter last step is not taken
_FALL = (
    0.1  # a step at a small gradient must reduce it to this share, as Newton's steps do at the end
)

Filter = Callable[[Array, Array], Array]


class Descent(NamedTuple):
    """State of a Newton iteration: the point, its merit, the gradient of L, and whether it continues.

    ``curvature`` is the smallest eigenvalue of the Hessian before the last step.
    """

    theta: Float[Array, "parameters"]
    merit: Float[Array, ""]
    gradient: Float[Array, "parameters"]
    curvature: Float[Array, ""]
    steps: Int[Array, ""]
    moving: Bool[Array, ""]


def newton_minimum(
    problem: Problem, theta: Float[Array, "parameters"], *, tolerance: float, steps: int
) -> Descent:
    """Saddle-free Newton (Dauphin et al. 2014): ``θ − V (|Λ| + μ)⁻¹ Vᵀ ∇L`` with ``∇²L = V Λ Vᵀ``.

    Of ten dampings μ the one with the smallest L is taken; among those equal up to rounding, the
    one with the smallest gradient. At a stationary point with negative curvature the step follows
    that direction. Ends at ``‖∇L‖_∞ ≤ tolerance`` without negative curvature, when no step helps, or
    after ``steps``. A small gradient alone may leave θ as far as ``‖∇L‖/λ_min`` from the minimum, so
    steps longer than 1e-8 max(‖θ‖, 1) continue as long as each divides the gradient by ten.
    """

    def filtered(values: Array, damping: Array) -> Array:
        return 1 / (jnp.abs(values) + damping)

    return _descend(problem, theta, _loss, filtered, tolerance, steps, escape=True)


def newton_stationary(
    problem: Problem, theta: Float[Array, "parameters"], *, tolerance: float, steps: int
) -> Descent:
    """Levenberg–Marquardt on ``½‖∇L‖²``: ``θ − V Λ (Λ² + μ²)⁻¹ Vᵀ ∇L``.

    It converges to stationary points of any kind.
    """

    def filtered(values: Array, damping: Array) -> Array:
        return values / (values**2 + damping**2)

    return _descend(problem, theta, _squared_gradient, filtered, tolerance, steps, escape=False)


def _loss(value: Array, gradient: Array) -> Array:
    return value


def _squared_gradient(value: Array, gradient: Array) -> Array:
    return 0.5 * jnp.vdot(gradient, gradient)


def _descend(
    problem: Problem,
    theta: Array,
    merit: Callable[[Array, Array], Array],
    filtered: Filter,
    tolerance: float,
    steps: int,
    escape: bool,
) -> Descent:
    look = jax.value_and_grad(problem.value)

    def step(at: Descent) -> Descent:
        values, vectors = jnp.linalg.eigh(problem.hessian(at.theta))
        still = jnp.max(jnp.abs(at.gradient)) <= tolerance
        saddle = (
            values[0] < -1e-7 * jnp.maximum(jnp.abs(values[-1]), 1e-3)
            if escape
            else jnp.asarray(False)
        )
        tries = at.theta[None] - _steps(values, vectors, at.gradient, filtered)
        tries = jnp.where(still & saddle, at.theta[None] + _along(vectors[:, 0], len(tries)), tries)
        losses, gradients = jax.vmap(look)(tries)
        merits = jax.vmap(merit)(losses, gradients)
        best = _best(merits, gradients)
        helps = _better(merits[best], gradients[best], at.merit, at.gradient)
        taken = helps & (~still | saddle | _polishes(tries[best], gradients[best], at))
        after = Descent(tries[best], merits[best], gradients[best], values[0], at.steps + 1, taken)
        kept = at._replace(curvature=values[0], moving=jnp.asarray(False))
        return jax.tree.map(lambda new, old: jnp.where(taken, new, old), after, kept)

    def goes_on(at: Descent) -> Array:
        return at.moving & (at.steps < steps)

    value, gradient = look(theta)
    zero = jnp.zeros((), jnp.int32)
    start = Descent(
        theta,
        merit(value, gradient),
        gradient,
        jnp.full_like(value, jnp.nan),
        zero,
        jnp.isfinite(value),
    )
    return jax.lax.while_loop(goes_on, step, start)


def _steps(
    values: Array, vectors: Array, gradient: Array, filtered: Filter
) -> Float[Array, "tries parameters"]:
    """A step per damping, without directions that are flat up to rounding: their gradient is noise."""
    largest = jnp.max(jnp.abs(values))
    dampings = jnp.asarray(_DAMPINGS, values.dtype) * largest
    weights = jax.vmap(filtered, in_axes=(None, 0))(values, dampings)
    weights = jnp.where(
        (jnp.abs(values) > _FLOOR * largest)[None], weights, jnp.zeros_like(weights)
    )
    return (weights * (vectors.T @ gradient)[None]) @ vectors.T


def _along(vector: Array, tries: int) -> Float[Array, "tries parameters"]:
    """Both ways along a unit vector, at lengths from 1e-4 to 1."""
    half = jnp.logspace(-4, 0, tries // 2, dtype=vector.dtype)
    return jnp.concatenate([half, -half])[:, None] * vector[None]


def _best(
    merits: Float[Array, "tries"], gradients: Float[Array, "tries parameters"]
) -> Int[Array, ""]:
    """The smallest merit; among those within rounding of it, the smallest gradient."""
    merits = jnp.where(jnp.isfinite(merits), merits, jnp.inf)
    least = jnp.min(merits)
    equal = merits <= least + _rounding(least)
    return jnp.argmin(jnp.where(equal, jnp.max(jnp.abs(gradients), axis=1), jnp.inf))


def _better(merit: Array, gradient: Array, old: Array, old_gradient: Array) -> Bool[Array, ""]:
    """Lower by more than rounding; or no higher than rounding, with a smaller gradient."""
    smaller = jnp.max(jnp.abs(gradient)) < jnp.max(jnp.abs(old_gradient))
    return (merit < old - _rounding(old)) | ((merit <= old + _rounding(old)) & smaller)


def _polishes(theta: Array, gradient: Array, at: Descent) -> Bool[Array, ""]:
    """Whether a step is not negligible and reduces the gradient to ``_FALL`` of its size."""
    far = jnp.linalg.norm(theta - at.theta) > _NEAR * jnp.maximum(jnp.linalg.norm(at.theta), 1.0)
    return far & (jnp.max(jnp.abs(gradient)) <= _FALL * jnp.max(jnp.abs(at.gradient)))


def _rounding(merit: Array) -> Array:
    return 8 * jnp.finfo(merit.dtype).eps * jnp.abs(merit)
