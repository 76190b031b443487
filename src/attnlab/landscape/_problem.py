"""A loss as a function of one flat vector of parameters, for all measurements of the landscape."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from attnlab._errors import AttnlabError
from attnlab.models import trained_parts

Loss = Callable[[Any, PyTree], Array]
DENSE_LIMIT = 2000  # parameters up to which the whole matrix is computed


class Problem(eqx.Module):
    """``L(θ) = loss(model(θ), data) + ½ λ ‖θ‖²``, with all trained parameters in one vector θ.

    - ``loss(model, data) → scalar``; ``data``: any PyTree of arrays;
    - ``l2``: λ, on every trained parameter;
    - ``trained(model)``: filter of what is trained; by default every floating array outside
      ``Frozen`` modules.

    The given model is never changed. Loss and derivatives are compiled programs.

    >>> from attnlab.models import BaselineConfig
    >>> model = BaselineConfig(numbers=3, hidden=2).init(jax.random.key(0))
    >>> data = {"x": jnp.ones((4, 3)), "y": jnp.zeros(4)}
    >>> problem = Problem.of(model, squared_error, data, l2=0.1)
    >>> problem.start.shape, problem.gradient(problem.start).shape
    ((8,), (8,))
    """

    start: Float[Array, "parameters"]
    data: PyTree
    rest: PyTree
    loss: Loss = eqx.field(static=True)
    unravel: Callable[[Array], PyTree] = eqx.field(static=True)
    l2: Float[Array, ""]

    @classmethod
    def of(
        cls,
        model: Any,
        loss: Loss,
        data: PyTree,
        *,
        l2: float = 0.0,
        trained: Callable[[Any], PyTree] | None = None,
    ) -> Problem:
        """The problem whose start is the model's parameters."""
        if not l2 >= 0:
            raise AttnlabError(f"l2={l2}: expected a number ≥ 0")
        chosen, rest = eqx.partition(
            model, trained_parts(model) if trained is None else trained(model)
        )
        moving, still = eqx.partition(chosen, eqx.is_inexact_array)
        leaves = jax.tree.leaves(moving)
        if not leaves:
            raise AttnlabError("no floating array of the model is trained: expected at least one")
        kinds = {leaf.dtype for leaf in leaves}
        if len(kinds) > 1:
            raise AttnlabError(
                f"trained parameters have the types {sorted(map(str, kinds))}: expected one type"
            )
        start, unravel = ravel_pytree(moving)
        return cls(
            start,
            data,
            eqx.combine(still, rest),
            loss,
            unravel,
            jnp.asarray(l2, start.dtype),
        )

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return self.start.shape[0]

    @property
    def arrays(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of each trained array, in the order of θ."""
        moving = jax.eval_shape(self.unravel, self.start)
        return [
            (jax.tree_util.keystr(path, simple=True, separator="."), leaf.shape)
            for path, leaf in jax.tree_util.tree_leaves_with_path(moving)
        ]

    @property
    def names(self) -> np.ndarray:
        """The name of the array of each parameter."""
        names, shapes = zip(*self.arrays, strict=True)
        return np.repeat(names, [math.prod(shape) for shape in shapes])

    @property
    def trained(self) -> PyTree:
        """The filter of trained arrays: true for every array of the model that is in θ."""
        moving = self.unravel(self.start)
        return jax.tree.map(
            lambda leaf: leaf is not None, moving, is_leaf=lambda leaf: leaf is None
        )

    def model(self, theta: Float[Array, "parameters"]) -> Any:
        """The model with these parameters."""
        return eqx.combine(self.unravel(theta), self.rest)

    def flatten(self, model: Any) -> Float[Array, "parameters"]:
        """θ of another model of the same kind and shapes; ``flatten(model(θ)) = θ``."""
        try:
            theta, unravel = ravel_pytree(eqx.filter(model, self.trained))
        except ValueError as error:
            raise AttnlabError(
                f"a model whose structure differs from the problem's: {error}"
            ) from None
        if unravel != self.unravel:
            raise AttnlabError(
                "a model whose shapes, types or settings differ from the problem's; expected a "
                "model of the same kind and sizes"
            )
        return theta

    @eqx.filter_jit
    def value(self, theta: Float[Array, "parameters"]) -> Float[Array, ""]:
        """``L(θ)``."""
        return self.plain(theta) + 0.5 * self.l2 * jnp.vdot(theta, theta)

    @eqx.filter_jit
    def plain(self, theta: Float[Array, "parameters"]) -> Float[Array, ""]:
        """The loss without the penalty."""
        return self.loss(self.model(theta), self.data)

    @eqx.filter_jit
    def gradient(self, theta: Float[Array, "parameters"]) -> Float[Array, "parameters"]:
        """``∇L(θ)``."""
        return jax.grad(self.value)(theta)

    @eqx.filter_jit
    def hvp(
        self, theta: Float[Array, "parameters"], vector: Float[Array, "parameters"]
    ) -> Float[Array, "parameters"]:
        """``∇²L(θ) v``, by forward over reverse differentiation."""
        return jax.jvp(self.gradient, (theta,), (vector,))[1]

    @eqx.filter_jit
    def hessian(self, theta: Float[Array, "parameters"]) -> Float[Array, "parameters parameters"]:
        """``∇²L(θ)``, symmetric to the last bit."""
        h = jax.lax.map(
            lambda v: self.hvp(theta, v), jnp.eye(self.parameters, dtype=theta.dtype), batch_size=64
        )
        return 0.5 * (h + h.T)


@dataclass(frozen=True)
class MeanSquare:
    """The loss ``mean r²`` with ``r = residuals(model, data)``, for Levenberg–Marquardt.

    >>> half = MeanSquare(lambda model, data: model * data - 2.0)
    >>> float(half(jnp.asarray(1.0), jnp.array([1.0, 3.0])))
    1.0
    """

    residuals: Callable[[Any, PyTree], Array]

    def __call__(self, model: Any, data: PyTree) -> Array:
        """The loss."""
        return jnp.mean(self.residuals(model, data) ** 2)


def differences(model: Any, data: PyTree) -> Array:
    """``model(x) − y`` over ``data["x"]``, ``data["y"]``; the model takes one input."""
    return jax.vmap(model)(data["x"]) - data["y"]


squared_error = MeanSquare(differences)
"""``mean (model(x) − y)²`` over ``data["x"]``, ``data["y"]``; the model takes one input."""


def cross_entropy(model: Any, data: PyTree) -> Array:
    """Mean cross-entropy of the logits ``model(x)`` over ``data["x"]`` and class numbers ``data["y"]``."""
    logits = jax.vmap(model)(data["x"])
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, data["y"]))


def usual_loss(data: Any) -> Loss:
    """Squared error for targets that are floating numbers, cross-entropy for class numbers."""
    if not isinstance(data, Mapping) or not {"x", "y"} <= set(data):
        named = sorted(map(str, data)) if isinstance(data, Mapping) else type(data).__name__
        raise AttnlabError(
            f'data of {named}: expected {{"x": inputs, "y": targets}}, or your own loss'
        )
    return (
        squared_error
        if jnp.issubdtype(jnp.asarray(data["y"]).dtype, jnp.floating)
        else cross_entropy
    )
