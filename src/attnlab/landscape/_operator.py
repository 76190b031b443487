"""The curvature as a product ``v ↦ ∇²L(θ) v``, for all parameters or one group of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attnlab._errors import AttnlabError
from attnlab.landscape._problem import Problem
from attnlab.models import WordAttention

Vector = Float[Array, "parameters"]
Places = Int[Array, "size"] | None


def groups(problem: Problem) -> dict[str, int]:
    """The named arrays of the parameters with their sizes, in their order.

    >>> from attnlab.landscape._problem import squared_error
    >>> from attnlab.models import SelfAttentionConfig
    >>> model = SelfAttentionConfig(embedding_dim=2, words=3, key_dim=1).init(jax.random.key(0))
    >>> groups(Problem.of(model, squared_error, {"x": jnp.zeros((1, 2, 3)), "y": jnp.zeros(1)}))
    {'layer.w_query': 2, 'layer.w_key': 2, 'layer.w_value': 6, 'head.w1': 54, 'head.w2': 6}
    """
    sizes: dict[str, int] = {}
    for name, shape in problem.arrays:
        sizes[name] = sizes.get(name, 0) + math.prod(shape)
    return sizes


def places_of(problem: Problem, group: str | None) -> Places:
    """The indices of a group's parameters; ``"head"`` is ``head.w1`` and ``head.w2``, ``None`` all."""
    if group is None:
        return None
    names = list(groups(problem))
    chosen = {name for name in names if name == group or name.startswith(f"{group}.")}
    if not chosen:
        raise AttnlabError(
            f"group={group!r}: no parameters of that name; expected one of {', '.join(names)}"
        )
    return jnp.asarray(np.flatnonzero(np.isin(problem.names, list(chosen))), jnp.int32)


def size_of(problem: Problem, places: Places) -> int:
    """The number of parameters of the group."""
    return problem.parameters if places is None else places.shape[0]


def at(problem: Problem, theta: Vector | None) -> Vector:
    """The given point, checked; the problem's start by default."""
    if theta is None:
        return problem.start
    point = jnp.asarray(theta)
    if point.shape != problem.start.shape or point.dtype != problem.start.dtype:
        raise AttnlabError(
            f"theta has shape {point.shape} and type {point.dtype}; expected "
            f"{problem.start.shape} and {problem.start.dtype}, as problem.start"
        )
    return point


def curvature(problem: Problem, theta: Vector, places: Places = None) -> Callable[[Array], Array]:
    """``v ↦ P ∇²L(θ) Pᵀ v``, P the rows of the identity at ``places``.

    ``linearize`` computes once what depends on θ only, so each product costs less than a gradient.
    """
    _, product = jax.linearize(problem.gradient, theta)
    if places is None:
        return product

    def block(v: Array) -> Array:
        return product(jnp.zeros_like(theta).at[places].set(v))[places]

    return block


class Piece(NamedTuple):
    """One array of the parameters: its name, where it begins in θ, and its shape."""

    name: str
    begin: int
    shape: tuple[int, ...]

    @property
    def span(self) -> slice:
        """Where it lies in θ."""
        return slice(self.begin, self.begin + math.prod(self.shape))


def pieces(problem: Problem) -> list[Piece]:
    """The arrays of the parameters, in their order."""
    found: list[Piece] = []
    begin = 0
    for name, shape in problem.arrays:
        found.append(Piece(name, begin, shape))
        begin += math.prod(shape)
    return found


_OUT_IN = ("w_query", "w_key", "w_value", "w_values")


def input_axis(problem: Problem, name: str) -> int:
    """The axis of a weight matrix that runs over the layer's inputs.

    Ours are (inputs, outputs), but for the matrices of ``AttentionLayer``; a ``weight`` elsewhere
    is Equinox's, which is (outputs, inputs).
    """
    last = [part for part in name.split(".") if not part.isdigit()][-1:] or [""]
    ours = isinstance(problem.rest, WordAttention) and name == "head.weight"
    return 1 if last[0] in _OUT_IN or (last[0] == "weight" and not ours) else 0
