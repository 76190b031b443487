"""Paths between two minima: a straight line after matching hidden units, a trained curve, barriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float
from scipy.optimize import linear_sum_assignment

from attnlab._errors import AttnlabError
from attnlab.landscape._operator import Vector, at
from attnlab.landscape._problem import Problem
from attnlab.models import Baseline, TwoLayerHead

ModelT = TypeVar("ModelT")
_ON_CURVE = 25  # points of the curve in the training loss


@dataclass(frozen=True, eq=False)
class Connection:
    """The loss along a path θ(t) from a (t = 0) to b (t = 1).

    - ``data``: ``loss`` and ``excess`` over ``t``, the excess over the line from L(a) to L(b);
    - ``bend``: (parameters,), the middle of a curve; ``None`` for the straight line.
    """

    data: xr.Dataset
    kind: Literal["straight", "curved"]
    bend: np.ndarray | None = None

    @property
    def barrier(self) -> float:
        """``max_t L(θ(t)) − (1−t)·L(a) − t·L(b)`` over the computed points; never below 0."""
        return float(self.data.excess.max())

    @property
    def place(self) -> float:
        """t of the barrier."""
        return float(self.data.t[int(np.argmax(self.data.excess.values))])

    @property
    def height(self) -> float:
        """How far the path rises above the higher end."""
        ends = max(float(self.data.loss[0]), float(self.data.loss[-1]))
        return float(self.data.loss.max()) - ends

    def __str__(self) -> str:
        return (
            f"On the {self.kind} path from loss {float(self.data.loss[0]):.6g} to "
            f"{float(self.data.loss[-1]):.6g} the "
            f"barrier is {self.barrier:.4g} at t = {self.place:.3g} ({len(self.data.t)} points)."
        )


def straight_path(problem: Problem, a: Vector, b: Vector, *, points: int = 101) -> Connection:
    """The loss on ``θ(t) = (1−t)·a + t·b``.

    ``align`` the two models first: otherwise the barrier is mostly due to the order of hidden units.

    >>> from attnlab.landscape import quadratic
    >>> ends = jnp.array([1.0, 0.0]), jnp.array([-1.0, 0.0])
    >>> path = straight_path(quadratic(jnp.diag(jnp.array([-2.0, 1.0]))), *ends)
    >>> path.barrier, path.place
    (1.0, 0.5)
    """
    return _along(problem, at(problem, a), at(problem, b), None, points)


def curved_path(
    problem: Problem,
    a: Vector,
    b: Vector,
    *,
    steps: int = 500,
    step_size: float = 0.01,
    points: int = 101,
) -> Connection:
    """The loss on ``θ(t) = (1−t)²·a + 2t(1−t)·c + t²·b``, with c trained to lower its mean.

    c starts in the middle of the line, where the curve is the line, and follows Adam on the mean
    loss over 25 points. The c with the lowest barrier is kept, so a curve is never worse than the
    line (on those points). Garipov et al. (2018), Loss surfaces, mode connectivity, and fast
    ensembling of DNNs.

    >>> from attnlab.landscape import quadratic
    >>> ends = jnp.array([1.0, 0.0]), jnp.array([-1.0, 0.0])
    >>> around = lambda theta, _: (jnp.vdot(theta, theta) - 1) ** 2 + 0.1 * theta[1]
    >>> ring = Problem.of(jnp.zeros(2), around, jnp.zeros(0))
    >>> straight_path(ring, *ends).barrier > 0.99, curved_path(ring, *ends).barrier < 0.2
    (True, True)
    """
    if steps < 1:
        raise AttnlabError(f"steps={steps}: expected at least 1")
    if not step_size > 0:
        raise AttnlabError(f"step_size={step_size}: expected a number > 0")
    first, last = at(problem, a), at(problem, b)
    bend = _bent(problem, first, last, steps, step_size)
    return _along(problem, first, last, bend, points)


def align(reference: ModelT, model: ModelT) -> ModelT:
    """``model`` with its hidden units permuted to match those of ``reference``: the same function.

    In every two-layer head the order maximises ``Σ ⟨weights, reference's weights⟩`` (weight
    matching, solved exactly as an assignment). Rotations of query, key and value spaces are not
    undone.

    >>> from attnlab.models import BaselineConfig
    >>> model = BaselineConfig(numbers=3, hidden=4).init(jax.random.key(0))
    >>> order = jnp.array([2, 0, 3, 1])
    >>> shuffled = Baseline(model.w1[:, order], model.w2[order], model.sharpness)
    >>> bool(jnp.all(align(model, shuffled).w1 == model.w1))
    True
    """
    theirs, ours = _heads(reference), _heads(model)
    if jax.tree.structure(reference) != jax.tree.structure(model) or not ours:
        raise AttnlabError(
            f"{type(reference).__name__} and {type(model).__name__} cannot be matched: expected "
            "two models of the same kind and size, with a two-layer head"
        )
    return eqx.tree_at(
        _heads, model, [_matched(one, other) for one, other in zip(theirs, ours, strict=True)]
    )


def _is_head(node: Any) -> bool:
    return isinstance(node, Baseline | TwoLayerHead)


def _heads(model: Any) -> list[Any]:
    return [node for node in jax.tree.leaves(model, is_leaf=_is_head) if _is_head(node)]


def _matched(reference: Any, head: Any) -> Any:
    """One head with its units in the best order."""
    gain = sum(one @ other.T for one, other in zip(_units(reference), _units(head), strict=True))
    order = jnp.asarray(linear_sum_assignment(gain, maximize=True)[1])
    if isinstance(head, Baseline):
        return Baseline(jnp.asarray(head.w1)[:, order], jnp.asarray(head.w2)[order], head.sharpness)
    return TwoLayerHead(
        jnp.asarray(head.weight1)[:, order],
        jnp.asarray(head.bias1)[order],
        jnp.asarray(head.weight2)[order],
        head.bias2,
    )


def _units(head: Any) -> list[np.ndarray]:
    """The weights of each hidden unit, in rows: incoming, outgoing, and its bias."""
    if isinstance(head, Baseline):
        return [np.asarray(head.w1).T, np.asarray(head.w2)]
    return [np.asarray(head.weight1).T, np.asarray(head.weight2), np.asarray(head.bias1)[:, None]]


def _along(problem: Problem, a: Vector, b: Vector, bend: Vector | None, points: int) -> Connection:
    if points < 3:
        raise AttnlabError(f"points={points}: expected at least 3")
    t = np.linspace(0.0, 1.0, points)
    middle = 0.5 * (a + b) if bend is None else bend
    losses = np.asarray(_losses(problem, a, b, middle, jnp.asarray(t, a.dtype)), np.float64)
    excess = losses - (1 - t) * losses[0] - t * losses[-1]
    data = xr.Dataset({"loss": ("t", losses), "excess": ("t", excess)}, coords={"t": t})
    return (
        Connection(data, "straight", None)
        if bend is None
        else Connection(data, "curved", np.asarray(bend))
    )


@eqx.filter_jit
def _losses(
    problem: Problem, a: Vector, b: Vector, bend: Vector, t: Float[Array, "points"]
) -> Float[Array, "points"]:
    """The loss on the curve; with the bend halfway between the ends it is the straight line."""
    return jax.lax.map(
        lambda at: problem.value((1 - at) ** 2 * a + 2 * at * (1 - at) * bend + at**2 * b), t
    )


@eqx.filter_jit
def _bent(problem: Problem, a: Vector, b: Vector, steps: int, step_size: float) -> Vector:
    """The trained bend."""
    t = jnp.linspace(0, 1, _ON_CURVE, dtype=a.dtype)
    rule = optax.adam(step_size)

    def cost(bend: Vector) -> tuple[Array, Array]:
        losses = _losses(problem, a, b, bend, t)
        return jnp.mean(losses), jnp.max(losses - (1 - t) * losses[0] - t * losses[-1])

    def step(state: tuple[Any, ...], _: None) -> tuple[tuple[Any, ...], None]:
        bend, moments, best, lowest = state
        (_, barrier), gradient = jax.value_and_grad(cost, has_aux=True)(bend)
        better = barrier < lowest
        best, lowest = jnp.where(better, bend, best), jnp.where(better, barrier, lowest)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes its counters with floats
            update, moments = rule.update(gradient, moments)
        return (optax.apply_updates(bend, update), moments, best, lowest), None

    middle = 0.5 * (a + b)
    start = (middle, rule.init(middle), middle, jnp.asarray(jnp.inf, a.dtype))
    return jax.lax.scan(step, start, None, length=steps)[0][2]
