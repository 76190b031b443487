"""What the training loop needs to know of a problem: data with a loss, and a way from coordinates
to the model.
"""

from __future__ import annotations

import abc
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PyTree

Trained = PyTree[Float[Array, "..."]]


class Evaluation(NamedTuple):
    """Loss and gradient of one step, with ``Σ_n a_n c_n·g_n`` per word where a probe asks for it.

    ``wide`` says that the fast formulas do not hold here, so that none of the numbers may be used.
    """

    loss: Float[Array, ""]
    gradient: Trained
    context_term: Float[Array, "words"] | None
    wide: Bool[Array, ""]


class AbstractFrame(eqx.Module):
    """What does not move in one run, and the way from the trained coordinates to the model."""

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
        """Loss and gradient, on all examples or on a minibatch of them."""

    @abc.abstractmethod
    def loss(self, frame: FrameT, trained: Trained) -> Float[Array, ""]:
        """Loss on all examples."""

    @abc.abstractmethod
    def guarding(self, on: bool) -> AbstractObjective[FrameT]:
        """The same objective; ``on`` makes it hold everywhere, else ``Evaluation.wide`` tells where
        it does not.
        """
