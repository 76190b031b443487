"""Curvature along training, recorded inside the compiled loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attnlab._errors import AttnlabError
from attnlab.landscape._lanczos import lanczos, residual, ritz
from attnlab.landscape._operator import curvature
from attnlab.landscape._problem import Problem
from attnlab.landscape._words import trained_words, word_loss
from attnlab.training import AbstractProbe, Frame, InstantProbe, Moment, Transition

Dims = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Curvature(AbstractProbe):
    """λ_max of the training loss, by ``depth`` Lanczos steps from one fixed random vector, at the recorded steps.

    - ``sharpness``: the Ritz value, which is never above λ_max (but for rounding);
    - ``sharpness_residual``: within so much of it lies an eigenvalue; small against it means converged;
    - ``edge``: ``λ_max·step_size/2``; plain descent is stable only below 1 (the edge of stability, THEORY C5). Nan at
      step 0 and in a flow, where no step has been taken.

    The curvature is that of the loss on *all* training data, without the optimiser's weight decay, in the model's own
    trained parameters, also where training keeps reduced coordinates. Each look costs ``depth + 2`` products of about
    two gradients each: ``every`` looks only at steps that it divides, and leaves nan in the rows between.

    >>> from attnlab.training import Every, GradientDescent, train_model
    >>> import equinox as eqx
    >>> class Bowl(eqx.Module):
    ...     theta: Array
    >>> def loss(bowl, data):
    ...     return 0.5 * jnp.mean(data @ bowl.theta**2)
    >>> run = train_model(
    ...     lambda key: Bowl(jnp.ones(2)), loss, jnp.array([[1.0, 3.0]]), steps=20, when=Every(10),
    ...     optimizer=GradientDescent(0.1), record=(Curvature(depth=2),),
    ... )
    >>> run.data.sharpness[0].round(9).values.tolist(), run.data.edge[0, 1:].round(9).values.tolist()
    ([3.0, 3.0, 3.0], [0.15, 0.15])
    """

    depth: int = 16
    every: int = 1
    seed: int = 0

    def __post_init__(self):
        if self.depth < 1 or self.every < 1:
            raise AttnlabError(f"depth={self.depth}, every={self.every}: expected numbers ≥ 1")

    @property
    def dims(self) -> Dims:
        """Three numbers."""
        return {"sharpness": (), "sharpness_residual": (), "edge": ()}

    @property
    def every_step(self) -> bool:
        """It looks only when a row is recorded."""
        return False

    @property
    def needs_context(self) -> bool:
        """No."""
        return False

    def initial(self, moment: Moment) -> Array:
        """The step size, not yet known."""
        return jnp.full((), jnp.nan, moment.evaluation.loss.dtype)

    def follow(self, memory: Array, transition: Transition) -> Array:
        """The step size of the step that was taken."""
        return jnp.full_like(memory, transition.step_size)

    def measure(self, memory: Array, moment: Moment) -> dict[str, Array]:
        """The row to record."""
        if self.every == 1:
            value, error = self._look(moment)
        else:
            nothing = jnp.full((), jnp.nan, memory.dtype)
            value, error = jax.lax.cond(
                moment.step % self.every == 0, lambda: self._look(moment), lambda: (nothing, nothing)
            )
        return {"sharpness": value, "sharpness_residual": error, "edge": 0.5 * memory * value}

    def _look(self, moment: Moment) -> tuple[Array, Array]:
        problem = _problem(moment)
        product = curvature(problem, problem.start)
        start = jax.random.normal(jax.random.key(self.seed), problem.start.shape, problem.start.dtype)
        found = ritz(lanczos(product, start, min(self.depth, problem.parameters)))
        value = found.values[-1]
        return value, jnp.maximum(residual(product, value, found.vectors[-1]), found.residuals[-1])


@dataclass(frozen=True)
class Parameters(InstantProbe):
    """``theta``: all trained parameters in one vector, ordered as in ``Problem``: the path that a surface shows.

    For small models: a row has as many numbers as the model.
    """

    @property
    def dims(self) -> Dims:
        """A number per parameter."""
        return {"theta": ("parameter",)}

    def look(self, moment: Moment) -> dict[str, Array]:
        """θ."""
        return {"theta": _problem(moment).start}


def _problem(moment: Moment) -> Problem:
    """The training loss at this moment, in the model's own trained parameters."""
    if isinstance(moment.coordinates, Frame):
        return Problem.of(moment.model(), word_loss, moment.objective.incidence, trained=trained_words)
    return Problem.of(moment.trained, _frame_loss, (moment.coordinates, moment.data), trained=_all)


def _frame_loss(trained: Any, data: tuple[Any, Any]) -> Array:
    frame, objective = data
    return objective.loss(frame, trained)


def _all(trained: Any) -> Any:
    return jax.tree.map(lambda _: True, trained)
