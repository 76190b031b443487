"""Hidden spaces of a model that may be transformed without changing its output."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array

from attnlab.models import (
    Baseline,
    KnownAttention,
    KnownWeights,
    LinearHead,
    MultiLayer,
    SelfAttention,
    TwoLayerHead,
    WordAttention,
)

Matrices = list[Any]


@dataclass(frozen=True)
class Space:
    """A space of ``size`` dimensions inside a model.

    ``M`` on its primal matrices and ``M⁻ᵀ`` on its dual ones do not change the model's output, for
    every invertible M. With l2, the loss is unchanged only if M is a rotation or reflection.

    - ``read(model)`` → (primal, dual), two lists of matrices (size, any), a column per vector of the
      space;
    - ``write(model, primal, dual)`` → the model with these matrices;
    - ``turns``: whether M may be a rotation or reflection; otherwise it is a positive factor;
    - ``meets_head``: whether the dual matrix is w₁ of the head, a column per word and hidden unit,
      units last.

    Your own model declares its spaces by a method ``hidden_spaces() → list[Space]``.
    """

    name: str
    size: int
    read: Callable[[Any], tuple[Matrices, Matrices]]
    write: Callable[[Any, Matrices, Matrices], Any]
    turns: bool = True
    meets_head: bool = False

    def act(self, model: Any, matrix: Array | np.ndarray, inverse: Array | np.ndarray) -> Any:
        """The model after ``M``, given with its inverse."""
        primal, dual = self.read(model)
        return self.write(
            model, [matrix @ each for each in primal], [inverse.T @ each for each in dual]
        )


def hidden_spaces(model: Any) -> list[Space]:
    """The hidden spaces of a model.

    In every layer: queries with keys, and values; the scale of each unit if φ is ReLU; in word
    attention: query with keys, and embeddings with a linear head. The values of an inner layer have
    a space only without residual sums, which would tie them to the input. An unknown model has none,
    unless it has a method ``hidden_spaces``.

    >>> import jax
    >>> from attnlab.models import SelfAttentionConfig
    >>> [(s.name, s.size) for s in hidden_spaces(SelfAttentionConfig(key_dim=2, value_dim=3).init(jax.random.key(0)))]
    [('queries and keys of layer 0', 2), ('values of layer 0', 3)]
    """
    own: Any = getattr(model, "hidden_spaces", None)
    if own is not None:
        return list(own())
    if isinstance(model, Baseline):
        return _units(model, lambda m: m)
    if isinstance(model, KnownAttention):
        return _units(model.head, lambda m: m.head)
    if isinstance(model, SelfAttention):
        return _stack(model, lambda m: [m.layer], residual=True)
    if isinstance(model, MultiLayer):
        return _stack(model, lambda m: list(m.layers), residual=model.residual)
    if isinstance(model, KnownWeights):
        return _known(model)
    if isinstance(model, WordAttention):
        return word_spaces(model, lambda m: m, lambda _, words: words)
    return []


def word_spaces(
    model: WordAttention, find: Callable[[Any], Any], put: Callable[[Any, Any], Any]
) -> list[Space]:
    """The spaces of word attention inside another model.

    ``find(whole)`` returns the word attention, ``put(whole, words)`` the whole with another one.
    """

    def attending(m: Any, first: Matrices, second: Matrices) -> Any:
        return put(
            m, eqx.tree_at(lambda w: [w.query, w.keys], find(m), [first[0][:, 0], second[0].T])
        )

    def reading(m: Any, first: Matrices, second: Matrices) -> Any:
        return put(
            m,
            eqx.tree_at(
                lambda w: [w.embeddings, _first_layer(w.head)], find(m), [first[0].T, second[0]]
            ),
        )

    spaces = [
        Space(
            "query and keys",
            model.query.shape[0],
            lambda m: ([find(m).query[:, None]], [find(m).keys.T]),
            attending,
        )
    ]
    if isinstance(model.head, LinearHead | TwoLayerHead):
        d = model.embeddings.shape[1]
        spaces.append(
            Space(
                "embeddings",
                d,
                lambda m: ([find(m).embeddings.T], [_first_layer(find(m).head)]),
                reading,
            )
        )
    return spaces


def _first_layer(head: Any) -> Array:
    return head.weight if isinstance(head, LinearHead) else head.weight1


def head_of(model: Any) -> Callable[[Any], Baseline] | None:
    """The accessor of a model's two-layer network, whose hidden units may be permuted, or ``None``."""
    if isinstance(model, Baseline):
        return lambda m: m
    return (lambda m: m.head) if isinstance(getattr(model, "head", None), Baseline) else None


def _stack(model: Any, layers: Callable[[Any], list[Any]], residual: bool) -> list[Space]:
    last = len(layers(model)) - 1
    inner = [] if residual else [_between(i, layers, model) for i in range(last)]
    attending = [_queries(i, layers, model) for i in range(last + 1)]
    values = _values(f"values of layer {last}", lambda m: layers(m)[last].w_value, model)
    # Inner values come first: alignment works from the input on.
    return [*inner, *attending, values, *_units(model.head, lambda m: m.head)]


def _queries(i: int, layers: Callable[[Any], list[Any]], model: Any) -> Space:
    """``(w_K x)ᵀ(w_Q x)`` does not change if w_Q is multiplied by M and w_K by M⁻ᵀ."""

    def write(m: Any, first: Matrices, second: Matrices) -> Any:
        return eqx.tree_at(
            lambda n: [layers(n)[i].w_query, layers(n)[i].w_key], m, [*first, *second]
        )

    size = layers(model)[i].w_query.shape[0]
    name = f"queries and keys of layer {i}"
    return Space(name, size, lambda m: ([layers(m)[i].w_query], [layers(m)[i].w_key]), write)


def _between(i: int, layers: Callable[[Any], list[Any]], model: Any) -> Space:
    def inputs(m: Any) -> list[Array]:
        following = layers(m)[i + 1]
        return [following.w_query, following.w_key, following.w_value]

    return _inner(f"values of layer {i}", lambda m: layers(m)[i].w_value, inputs, model)


def _known(model: KnownWeights) -> list[Space]:
    units = _units(model.head, lambda m: m.head)
    if model.w_values is None:
        return units
    last = len(model.w_values) - 1
    inner = [_known_between(i, model) for i in range(0 if model.residual else last)]
    return [*inner, _values(f"values of layer {last}", lambda m: m.w_values[last], model), *units]


def _known_between(i: int, model: KnownWeights) -> Space:
    return _inner(
        f"values of layer {i}", lambda m: m.w_values[i], lambda m: [m.w_values[i + 1]], model
    )


def _inner(name: str, value: Callable, inputs: Callable, model: Any) -> Space:
    """The values of a layer that only the next layer's matrices read."""

    def write(m: Any, first: Matrices, second: Matrices) -> Any:
        return eqx.tree_at(
            lambda n: [value(n), *inputs(n)], m, [*first, *[each.T for each in second]]
        )

    return Space(
        name, value(model).shape[0], lambda m: ([value(m)], [each.T for each in inputs(m)]), write
    )


def _values(name: str, value: Callable, model: Any) -> Space:
    """The values of the last layer, read by the head: w₁ is p blocks of d_v rows, one per word."""
    size = value(model).shape[0]

    def read(m: Any) -> tuple[Matrices, Matrices]:
        w1 = m.head.w1
        return [value(m)], [w1.reshape(-1, size, w1.shape[1]).transpose(1, 0, 2).reshape(size, -1)]

    def write(m: Any, first: Matrices, second: Matrices) -> Any:
        rows, hidden = m.head.w1.shape
        w1 = second[0].reshape(size, rows // size, hidden).transpose(1, 0, 2).reshape(rows, hidden)
        return eqx.tree_at(lambda n: [value(n), n.head.w1], m, [*first, w1])

    return Space(name, size, read, write, meets_head=True)


def _units(head: Baseline, where: Callable[[Any], Baseline]) -> list[Space]:
    """The scale of every ReLU unit, one dimension each; none for a smooth activation."""
    if not math.isinf(head.sharpness):
        return []
    return [_unit(j, where) for j in range(head.w1.shape[1])]


def _unit(j: int, where: Callable[[Any], Baseline]) -> Space:
    def read(m: Any) -> tuple[Matrices, Matrices]:
        return [where(m).w1[:, j][None]], [where(m).w2[j][None]]

    def write(m: Any, first: Matrices, second: Matrices) -> Any:
        w1, w2 = _set(where(m).w1.T, j, first[0][0]).T, _set(where(m).w2, j, second[0][0])
        return eqx.tree_at(lambda n: [where(n).w1, where(n).w2], m, [w1, w2])

    return Space(f"scale of unit {j}", 1, read, write, turns=False)


def _set(matrix: Any, row: int, values: Any) -> Any:
    """A copy of a NumPy or JAX matrix with one row replaced."""
    if hasattr(matrix, "at"):
        return matrix.at[row].set(values)
    copy = matrix.copy()
    copy[row] = values
    return copy
