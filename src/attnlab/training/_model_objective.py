"""The objective of ``train_model``: any Equinox module, any arrays, any loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from attnlab._errors import AttnlabError
from attnlab.training._problem import AbstractFrame, AbstractObjective, Evaluation, Trained


class ModelFrame(AbstractFrame):
    """A module in three parts: trained arrays, frozen arrays, and static content."""

    moving: PyTree
    still: PyTree
    program: Any = eqx.field(static=True)

    @classmethod
    def of(cls, model: eqx.Module, trained: Callable[[Any], PyTree] | None) -> ModelFrame:
        """Partition a module; ``trained(model)`` filters what is trained, by default all floats."""
        chosen, rest = (model, None) if trained is None else eqx.partition(model, trained(model))
        moving, left = eqx.partition(chosen, eqx.is_inexact_array)
        if not jax.tree.leaves(moving):
            why = "it has no" if trained is None else "trained(model) is true for no"
            raise AttnlabError(
                f"nothing of {type(model).__name__} is trained: {why} floating array"
            )
        still, program = eqx.partition(
            left if rest is None else eqx.combine(left, rest), eqx.is_array
        )
        return cls(moving, still, program)

    def initial(self) -> Trained:
        """The trained arrays."""
        return self.moving

    def model(self, trained: Trained) -> Any:
        """The whole module."""
        return eqx.combine(trained, self.still, self.program)

    def gradient_norm(self, gradient: Trained) -> Float[Array, ""]:
        """Root of the sum of squares."""
        first, *others = [jnp.sum(g**2) for g in jax.tree.leaves(gradient)]
        return jnp.sqrt(sum(others, start=first))


class ModelObjective(AbstractObjective[ModelFrame]):
    """A user-defined loss on a PyTree of arrays whose first axis runs over examples."""

    data: PyTree
    function: Callable[[Any, PyTree], Array] = eqx.field(static=True)

    @classmethod
    def of(
        cls, data: PyTree, function: Callable[[Any, PyTree], Array], dtype: np.dtype, name: str
    ) -> ModelObjective:
        """Copy data to JAX, floating arrays in ``dtype``; ``name`` is used in errors."""
        arrays = [np.shape(leaf) for leaf in jax.tree.leaves(data)]
        counts = {shape[0] if shape else None for shape in arrays}
        if len(counts) != 1 or not all(counts):
            raise AttnlabError(
                f"{name} holds arrays of the shapes {arrays}; expected at least one array, all "
                "with the same number ≥ 1 of examples along their first axis"
            )
        return cls(jax.tree.map(lambda leaf: as_dtype(jnp.asarray(leaf), dtype), data), function)

    @property
    def examples(self) -> int:
        """Length of the first axis."""
        return jax.tree.leaves(self.data)[0].shape[0]

    def guarding(self, on: bool) -> ModelObjective:
        """Itself: a user-defined loss has no guard."""
        del on
        return self

    def loss(self, frame: ModelFrame, trained: Trained) -> Float[Array, ""]:
        """Loss on all examples."""
        return self._cost(frame, trained, self.data)

    def evaluate(
        self,
        frame: ModelFrame,
        trained: Trained,
        batch: Int[Array, "batch"] | None,
        *,
        context: bool,
    ) -> Evaluation:
        """Loss and gradient by automatic differentiation, on all examples or on a minibatch."""
        assert not context, "train_model checks that no probe needs words"
        data = self.data if batch is None else jax.tree.map(lambda leaf: leaf[batch], self.data)
        loss, gradient = jax.value_and_grad(lambda t: self._cost(frame, t, data))(trained)
        return Evaluation(loss, gradient, None, jnp.zeros((), bool))

    def _cost(self, frame: ModelFrame, trained: Trained, data: PyTree) -> Float[Array, ""]:
        value = self.function(frame.model(trained), data)
        if jnp.shape(value) != () or not jnp.issubdtype(jnp.result_type(value), jnp.floating):
            got = f"shape {jnp.shape(value)} and type {jnp.result_type(value)}"
            raise AttnlabError(
                f"loss returned {got}; expected one real number, the mean over the batch's examples"
            )
        return jnp.asarray(value)


def as_dtype(leaf: Any, dtype: np.dtype) -> Any:
    """Cast a floating array; everything else is returned unchanged."""
    floating = eqx.is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating)
    return leaf.astype(dtype) if floating else leaf
