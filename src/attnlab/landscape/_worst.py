"""The largest increase of the loss in a neighbourhood of a point."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnlab.landscape._operator import Vector
from attnlab.landscape._problem import Problem

Shape = Literal["box", "ball"]
_SHARES = 0.5 ** np.arange(7)
_LEAST_GAIN = 1e-13  # a step that gains less, relatively, is the last one


@eqx.filter_jit
def largest_rise(
    problem: Problem,
    theta: Vector,
    scale: Vector,
    starts: Float[Array, "starts parameters"],
    shape: Shape,
    steps: int,
) -> Float[Array, "starts"]:
    """``max L(θ + scale ⊙ z) − L(θ)`` over the box ``|z_i| ≤ 1`` or the ball ``‖z‖₂ ≤ 1``, per start.

    Conditional gradient: with s the point of the neighbourhood farthest along the gradient, move to
    the best of ``z + γ(s − z)``, γ = 1, ½, … 1/64, or stay. For a convex loss γ = 1 never decreases
    the value; for a quadratic one in a ball it is the power method. The result is a lower bound of
    the maximum.
    """
    here = problem.value(theta)

    def rise(z: Array) -> Array:
        return problem.value(theta + scale * z) - here

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        number, z, value = state
        towards = _furthest(jax.grad(rise)(z), shape) - z
        tried = z[None, :] + jnp.asarray(_SHARES, z.dtype)[:, None] * towards[None, :]
        values = jax.vmap(rise)(tried)
        best = jnp.argmax(values)
        better = values[best] > value
        # A point that stays would stay for ever, and one that hardly gains has arrived.
        gains = values[best] - value > _LEAST_GAIN * jnp.abs(values[best])
        return (
            jnp.where(gains, number + 1, steps),
            jnp.where(better, tried[best], z),
            jnp.where(better, values[best], value),
        )

    def climb(start: Array) -> Array:
        first = jnp.clip(start, -1, 1) if shape == "box" else start / jnp.linalg.norm(start)
        begin = (jnp.zeros((), jnp.int64), first, rise(first))
        return jax.lax.while_loop(lambda state: state[0] < steps, step, begin)[2]

    return jnp.maximum(jax.lax.map(climb, starts), 0)


def _furthest(gradient: Float[Array, "parameters"], shape: Shape) -> Float[Array, "parameters"]:
    if shape == "box":
        return jnp.sign(gradient)
    return gradient / jnp.maximum(jnp.linalg.norm(gradient), jnp.finfo(gradient.dtype).tiny)
