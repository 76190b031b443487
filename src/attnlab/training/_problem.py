"""Interface between the loop and a problem: data with a loss, and a map from coordinates to models."""

from __future__ import annotations

import abc
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

Trained = PyTree[Float[Array, "..."]]


_TOGETHER, _NARROW = 4, 16


def tall_product(
    tall: Float[Array, "rows inner"], small: Float[Array, "inner columns"]
) -> Float[Array, "rows columns"]:
    """``tall @ small``, for many rows of a few numbers.

    In float32 XLA takes twice as long for ten columns as for forty: four rows are multiplied
    together, by a block-diagonal matrix.

    >>> tall, small = jnp.arange(15.0, dtype="float32").reshape(5, 3), jnp.ones((3, 2), "float32")
    >>> bool((tall_product(tall, small) == tall @ small).all())
    True
    """
    rows, inner = tall.shape
    if tall.dtype != jnp.float32 or max(small.shape) > _NARROW or rows < _TOGETHER * inner:
        return tall @ small
    blocks = jnp.kron(jnp.eye(_TOGETHER, dtype=small.dtype), small)
    whole = jnp.pad(tall, ((0, -rows % _TOGETHER), (0, 0)))
    found = whole.reshape(-1, _TOGETHER * inner) @ blocks
    return found.reshape(-1, small.shape[1])[:rows]


class Outer(eqx.Module):
    """The product ``left @ right.T``, kept as its factors.

    A gradient by embeddings has this form, with fewer columns than the embeddings have. Multiplied
    where the update uses it, it is never written to memory.
    """

    left: Float[Array, "rows columns"]
    right: Float[Array, "d columns"]

    def product(self) -> Float[Array, "rows d"]:
        """The product."""
        return tall_product(self.left, self.right.T)


class Evaluation(NamedTuple):
    """Loss and gradient of one step, and ``Σ_n a_n c_n·g_n`` per word if a probe needs it.

    ``wide`` means that the fast formulas are invalid here: none of the numbers may be used.
    """

    loss: Float[Array, ""]
    factors: PyTree
    context_term: Float[Array, "words"] | None
    wide: Bool[Array, ""]

    @property
    def gradient(self) -> Trained:
        """The gradient; ``factors`` has some of its arrays as an ``Outer``."""
        return jax.tree.map(
            lambda leaf: leaf.product() if isinstance(leaf, Outer) else leaf,
            self.factors,
            is_leaf=lambda leaf: isinstance(leaf, Outer),
        )


class AbstractFrame(eqx.Module):
    """The constants of one run, and the map from trained coordinates to the model."""

    @abc.abstractmethod
    def initial(self) -> Trained:
        """Coordinates at the start."""

    @abc.abstractmethod
    def model(self, trained: Trained) -> Any:
        """The whole model."""

    @abc.abstractmethod
    def gradient_norm(self, gradient: Trained) -> Float[Array, ""]:
        """Norm of the gradient in the model's own trained parameters."""


FrameT = TypeVar("FrameT", bound=AbstractFrame)


class AbstractObjective(eqx.Module, Generic[FrameT]):
    """Data, and the mean loss of a model on them."""

    @property
    @abc.abstractmethod
    def examples(self) -> int:
        """Number of examples, for minibatches."""

    @abc.abstractmethod
    def evaluate(
        self, frame: FrameT, trained: Trained, batch: Int[Array, "batch"] | None, *, context: bool
    ) -> Evaluation:
        """Loss and gradient, on all examples or on a minibatch."""

    @abc.abstractmethod
    def loss(self, frame: FrameT, trained: Trained) -> Float[Array, ""]:
        """Loss on all examples."""

    @abc.abstractmethod
    def guarding(self, on: bool) -> AbstractObjective[FrameT]:
        """The same objective with or without its guard.

        With the guard it is valid for all parameters; without, ``Evaluation.wide`` reports where it
        is not.
        """
