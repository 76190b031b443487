"""Curvature along training, recorded inside the compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attnlab._errors import AttnlabError
from attnlab.landscape._density import quadratures
from attnlab.landscape._lanczos import lanczos, residual, ritz
from attnlab.landscape._operator import curvature, places_of, size_of
from attnlab.landscape._problem import Problem
from attnlab.landscape._trace import operator_trace
from attnlab.landscape._words import trained_words, word_loss
from attnlab.training import AbstractProbe, Frame, InstantProbe, Moment, Transition

Dims = dict[str, tuple[str, ...]]
_DEFLATED = 8


@dataclass(frozen=True)
class Curvature(AbstractProbe):
    """The curvature of the training loss at recorded steps: extreme eigenvalues, trace and density.

    - ``sharpness``, ``smallest``: the extreme Ritz values of ``depth`` Lanczos steps from one fixed
      random vector; up to rounding, λ_max is at least the first and λ_min at most the second;
    - ``sharpness_residual``, ``smallest_residual``: an eigenvalue lies within this distance of each;
      small means converged;
    - ``edge``: ``λ_max·step_size/2``; plain descent is stable only below 1 (the edge of stability,
      docs/theory.md#c5). Nan at step 0 and in a flow, where no step has been taken;
    - with ``probes``: ``trace`` and ``trace_error``, its standard error, as ``trace`` estimates it
      with a few deflated dimensions; with ``nodes`` also ``node`` and ``weight`` (probe, place),
      quadratures of so many Lanczos steps whose mean over probes is the spectral density.

    ``group`` takes the block of some parameters (``groups(problem)``) and appends its name to each
    variable. The curvature is that of the loss on *all* training data, without weight decay, in the
    model's own trained parameters, even if training uses reduced coordinates. Each measurement
    costs ``depth + 3`` products of about two gradients each: with ``every``, only steps that it
    divides are measured, and the rows between are nan.

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
    >>> run.data.sharpness[0].round(9).values.tolist(), run.data.smallest[0].round(9).values.tolist()
    ([3.0, 3.0, 3.0], [1.0, 1.0, 1.0])
    >>> run.data.edge[0, 1:].round(9).values.tolist()
    [0.15, 0.15]
    """

    depth: int = 16
    every: int = 1
    seed: int = 0
    group: str | None = None
    probes: int = 0
    nodes: int = 0

    def __post_init__(self):
        if self.depth < 1 or self.every < 1:
            raise AttnlabError(f"depth={self.depth}, every={self.every}: expected numbers ≥ 1")
        if (
            self.probes == 1
            or self.probes < 0
            or self.nodes < 0
            or (self.nodes and not self.probes)
        ):
            raise AttnlabError(
                f"probes={self.probes}, nodes={self.nodes}: expected 0 probes or at least 2, and "
                "nodes only with probes"
            )

    @property
    def dims(self) -> Dims:
        """Numbers, and for the density nodes and weights of every probe."""
        names = ["sharpness", "sharpness_residual", "edge", "smallest", "smallest_residual"]
        found: Dims = dict.fromkeys(
            (*names, *(("trace", "trace_error") if self.probes else ())), ()
        )
        if self.nodes:
            found |= {"node": ("probe", "place"), "weight": ("probe", "place")}
        return {self._named(name): dims for name, dims in found.items()}

    def _named(self, name: str) -> str:
        return name if self.group is None else f"{name}_{self.group}"

    @property
    def every_step(self) -> bool:
        """False: it is evaluated only when a row is recorded."""
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
            found = self._look(moment)
        else:
            shapes = jax.eval_shape(lambda: self._look(moment))
            nothing = jax.tree.map(lambda leaf: jnp.full(leaf.shape, jnp.nan, leaf.dtype), shapes)
            found = jax.lax.cond(
                moment.step % self.every == 0, lambda: self._look(moment), lambda: nothing
            )
        found["edge"] = 0.5 * memory * found["sharpness"]
        return {self._named(name): value for name, value in found.items()}

    def _look(self, moment: Moment) -> dict[str, Array]:
        problem = _problem(moment)
        places = places_of(problem, self.group)
        product, size = curvature(problem, problem.start, places), size_of(problem, places)
        start = jax.random.normal(jax.random.key(self.seed), (size,), problem.start.dtype)
        pairs = ritz(lanczos(product, start, min(self.depth, size)))
        found = {}
        for name, end in (("sharpness", -1), ("smallest", 0)):
            value = pairs.values[end]
            off = jnp.maximum(residual(product, value, pairs.vectors[end]), pairs.residuals[end])
            found |= {name: value, f"{name}_residual": off}
        return found | self._probed(product, start)

    def _probed(self, product: Callable[[Array], Array], start: Array) -> dict[str, Array]:
        """Trace and density, if requested."""
        if not self.probes:
            return {}
        key, size = jax.random.fold_in(jax.random.key(self.seed), 1), start.shape[0]
        each = operator_trace(product, start, key, self.probes, min(_DEFLATED, size))
        found = {"trace": jnp.mean(each), "trace_error": jnp.std(each, ddof=1) / self.probes**0.5}
        if self.nodes:
            found["node"], found["weight"] = quadratures(
                product, start, key, self.probes, min(self.nodes, size)
            )
        return found


@dataclass(frozen=True)
class Parameters(InstantProbe):
    """``theta``: all trained parameters in one vector, ordered as in ``Problem``.

    For paths on a surface, and for small models: a row has as many numbers as the model.
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
        return Problem.of(
            moment.model(), word_loss, moment.objective.incidence, trained=trained_words
        )
    return Problem.of(moment.trained, _frame_loss, (moment.coordinates, moment.data), trained=_all)


def _frame_loss(trained: Any, data: tuple[Any, Any]) -> Array:
    frame, objective = data
    return objective.loss(frame, trained)


def _all(trained: Any) -> Any:
    return jax.tree.map(lambda _: True, trained)
