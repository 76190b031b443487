"""Equality of points up to symmetry: alignment of hidden units and hidden spaces, and groups."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import linear_sum_assignment

from attnlab.landscape._operator import at
from attnlab.landscape._problem import Problem
from attnlab.landscape._spaces import Space, head_of, hidden_spaces


def aligned(
    problem: Problem, theta: Float[Array, "parameters"], to: Float[Array, "parameters"]
) -> Float[np.ndarray, "parameters"]:
    """The copy of ``theta`` under the model's symmetries that is nearest to ``to``.

    Hidden spaces are rotated by Procrustes' solution (including reflections, hence the sign of a
    one-dimensional space). Hidden units are permuted by the best assignment of (w₂, w₁), with w₁
    composed with the values of the last layer, so that it does not depend on their rotation.
    """
    mine, other = _numpy(problem, theta), _numpy(problem, to)
    spaces = [space for space in hidden_spaces(mine) if space.turns]
    # The primal matrices do not depend on the order of units: align them first, then the units, then
    # the spaces again with all their matrices.
    for space in spaces:
        mine = _turned(space, mine, space.read(mine)[0], space.read(other)[0])
    mine = _exchanged(mine, other)
    for space in spaces:
        mine = _turned(space, mine, _all(space, mine), _all(space, other))
    return np.asarray(problem.flatten(jax.tree.map(jnp.asarray, mine)))


def same_point(
    problem: Problem,
    a: Float[Array, "parameters"],
    b: Float[Array, "parameters"],
    *,
    tolerance: float = 1e-4,
) -> bool:
    """Whether two points are equal up to symmetry: ``‖aligned(a) − b‖ ≤ tolerance · ‖b‖``.

    >>> from attnlab.landscape import squared_error
    >>> from attnlab.models import Baseline, BaselineConfig
    >>> model = BaselineConfig(numbers=2, hidden=3).init(jax.random.key(0))
    >>> copy = Baseline(model.w1[:, ::-1], model.w2[::-1])
    >>> problem = Problem.of(model, squared_error, {"x": jnp.ones((1, 2)), "y": jnp.zeros(1)})
    >>> same_point(problem, problem.flatten(copy), problem.start)
    True
    """
    apart = np.linalg.norm(aligned(problem, a, b) - np.asarray(b))
    return bool(apart <= tolerance * max(float(np.linalg.norm(np.asarray(b))), 1e-300))


def group_points(
    problem: Problem,
    thetas: Float[Array | np.ndarray, "points parameters"],
    *,
    tolerance: float = 1e-4,
) -> Int[np.ndarray, "points"]:
    """The group of each point: equal points share a number, in order of first appearance.

    A point is compared with the first of each group. Points whose losses differ by more than
    ``tolerance`` (relative) are not aligned.
    """
    points = jnp.asarray(thetas)
    values = np.asarray(_values(problem, points))
    firsts: list[int] = []
    numbers = np.zeros(len(points), int)
    for k in range(len(points)):
        for number, first in enumerate(firsts):
            close = abs(values[k] - values[first]) <= tolerance * abs(values[first])
            if close and same_point(problem, points[k], points[first], tolerance=tolerance):
                numbers[k] = number
                break
        else:
            numbers[k] = len(firsts)
            firsts.append(k)
    return numbers


@eqx.filter_jit
def _values(problem: Problem, points: Array) -> Float[Array, "points"]:
    return jax.lax.map(problem.value, points)


def _numpy(problem: Problem, theta: Array) -> Any:
    arrays, rest = eqx.partition(problem.model(at(problem, theta)), eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(np.asarray, arrays), rest)


def _all(space: Space, model: Any) -> list[Any]:
    primal, dual = space.read(model)
    return [*primal, *dual]


def _turned(space: Space, model: Any, mine: list[Any], other: list[Any]) -> Any:
    """The model after the rotation M that brings ``M·mine`` nearest to ``other``."""
    u, _, v = np.linalg.svd(sum(b @ a.T for a, b in zip(mine, other, strict=True)))
    return space.act(model, u @ v, (u @ v).T)


def _exchanged(mine: Any, other: Any) -> Any:
    """``mine`` with its hidden units in the order of ``other``."""
    where = head_of(mine)
    if where is None:
        return mine
    a, b = _signatures(mine, where(mine)), _signatures(other, where(other))
    cost = ((b[:, None] - a[None]) ** 2).sum(axis=2)
    order = linear_sum_assignment(cost)[1]
    head = where(mine)
    return eqx.tree_at(
        lambda m: [where(m).w1, where(m).w2], mine, [head.w1[:, order], head.w2[order]]
    )


def _signatures(model: Any, head: Any) -> Float[np.ndarray, "units numbers"]:
    """w₂ and w₁ of each hidden unit; w₁ is composed with w_V if values may be rotated."""
    w1 = head.w1
    for space in hidden_spaces(model):
        if space.meets_head:
            (value,), (dual,) = space.read(model)
            w1 = (value.T @ dual).reshape(-1, w1.shape[1])
    return np.concatenate([head.w2, w1.T], axis=1)
