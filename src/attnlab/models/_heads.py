"""Heads map a context to logits: fixed linear, trained linear, two-layer, or user-defined."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from attnlab._errors import AttnlabError


class AbstractHead(eqx.Module):
    """``head(c) = finish(c @ projection())``.

    The linear first layer is separate so that it can be applied before pooling. ``finish`` may drop
    a shift common to all logits, which does not change the softmax.
    """

    @abc.abstractmethod
    def projection(self) -> Float[Array, "d columns"] | None:
        """The linear first layer; ``None`` for the identity."""

    @abc.abstractmethod
    def finish(self, projected: Float[Array, "columns"]) -> Float[Array, "classes"]:
        """The rest of the head, after the first layer."""

    @abc.abstractmethod
    def __call__(self, context: Float[Array, "d"]) -> Float[Array, "classes"]:
        """Logits of one context."""

    @abc.abstractmethod
    def first_weight(self) -> Float[Array, "d columns"] | None:
        """The first layer's weights, whose balance with the embeddings is conserved, or ``None``."""


class LinearHead(AbstractHead):
    """``logits = c @ weight``, without bias.

    With two classes the softmax depends only on the difference of the logits, so only one number
    per word is pooled.
    """

    weight: Float[Array, "d classes"]

    def projection(self) -> Float[Array, "d columns"]:
        """The weights; their difference for two classes."""
        return self.weight[:, :1] - self.weight[:, 1:] if self.weight.shape[1] == 2 else self.weight

    def finish(self, projected: Float[Array, "columns"]) -> Float[Array, "classes"]:
        """The projected context itself; ``(z, 0)`` for two classes."""
        if self.weight.shape[1] == 2:
            return jnp.concatenate([projected, jnp.zeros_like(projected)])
        return projected

    def __call__(self, context: Float[Array, "d"]) -> Float[Array, "classes"]:
        """Logits of one context."""
        return context @ self.weight

    def first_weight(self) -> Float[Array, "d classes"]:
        """The weights."""
        return self.weight


class TwoLayerHead(AbstractHead):
    """``logits = relu(c @ weight1 + bias1) @ weight2 + bias2``."""

    weight1: Float[Array, "d hidden"]
    bias1: Float[Array, "hidden"]
    weight2: Float[Array, "hidden classes"]
    bias2: Float[Array, "classes"]

    def projection(self) -> Float[Array, "d hidden"]:
        """The first layer's weights."""
        return self.weight1

    def finish(self, projected: Float[Array, "hidden"]) -> Float[Array, "classes"]:
        """First bias, ReLU and the second layer."""
        return jax.nn.relu(projected + self.bias1) @ self.weight2 + self.bias2

    def __call__(self, context: Float[Array, "d"]) -> Float[Array, "classes"]:
        """Logits of one context."""
        return self.finish(context @ self.weight1)

    def first_weight(self) -> Float[Array, "d hidden"]:
        """The first layer's weights."""
        return self.weight1


class OwnHead(AbstractHead):
    """A user-defined head: any Equinox module (or function) from one context to logits.

    Its arrays are parameters; everything else it holds (activations, sizes) is static.
    """

    arrays: PyTree
    rest: Any = eqx.field(static=True)

    @classmethod
    def of(cls, function: Callable[[Array], Array]) -> OwnHead:
        """Wrap a module or function."""
        arrays, rest = eqx.partition(function, eqx.is_array)
        return cls(arrays, rest)

    def projection(self) -> None:
        """``None``: the first layer is unknown, so whole contexts are pooled."""
        return

    def finish(self, projected: Float[Array, "d"]) -> Float[Array, "classes"]:
        """The user's function."""
        return self(projected)

    def __call__(self, context: Float[Array, "d"]) -> Float[Array, "classes"]:
        """Logits of one context."""
        return eqx.combine(self.arrays, self.rest)(context)

    def first_weight(self) -> None:
        """``None``: the first layer is unknown."""
        return


_BLOCK = 1024  # numbers are drawn in multiples of so many
HeadMaker = Callable[..., Callable[[Array], Array]]


def make_head(
    kind: str | HeadMaker,
    key: Key[Array, ""],
    d: int,
    classes: int,
    *,
    hidden: int = 10,
    scale: float = 1.0,
) -> AbstractHead:
    """Draw a head, in float64.

    - ``"fixed"`` (FC): entries N(0, 1) with ``W_jj = 1``, times ``scale``;
    - ``"linear"`` (TC) and ``"two_layer"`` (TL): uniform in ±1/√fan_in, times ``scale``;
    - a function ``(key, d, classes) → head`` for your own.

    >>> make_head("fixed", jax.random.key(0), 3, 2).weight.diagonal().tolist()
    [1.0, 1.0]
    """

    def uniform(part: int, shape: tuple[int, ...], fan_in: int) -> Array:
        # Numbers do not depend on how many are drawn: one size for all, so that one is compiled.
        bound, count = scale / fan_in**0.5, math.prod(shape)
        size = count + -count % _BLOCK
        drawn = jax.random.uniform(
            jax.random.fold_in(key, part), (size,), jnp.float64, -bound, bound
        )
        return drawn[:count].reshape(shape)

    if kind == "fixed":
        weight = jax.random.normal(key, (d, classes), jnp.float64)
        return LinearHead(jnp.where(np.eye(d, classes, dtype=bool), 1.0, weight) * scale)
    if kind == "linear":
        return LinearHead(uniform(0, (d, classes), d))
    if kind == "two_layer":
        return TwoLayerHead(
            uniform(0, (d, hidden), d),
            uniform(1, (hidden,), d),
            uniform(2, (hidden, classes), hidden),
            uniform(3, (classes,), hidden),
        )
    if callable(kind):
        head = kind(key, d, classes)
        return head if isinstance(head, AbstractHead) else OwnHead.of(head)
    raise AttnlabError(
        f"head={kind!r}: expected 'fixed', 'linear', 'two_layer' or a function (key, d, classes) "
        "→ head"
    )
