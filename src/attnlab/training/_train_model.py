"""``train_model``: any Equinox module, with the loop, probes and optimisers of ``train``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, PyTree

from attnlab._errors import AttnlabError
from attnlab.training._drive import AbstractJob, ModelT, Settings, drive, run_keys
from attnlab.training._loop import EarlyStopping, Fixed, Shared
from attnlab.training._model_objective import ModelFrame, ModelObjective, as_dtype
from attnlab.training._optimizers import GradientDescent
from attnlab.training._probes import AbstractProbe, Loss, no_words
from attnlab.training._schedule import Every, Schedule
from attnlab.training._trajectory import Trajectory

_DEFAULT_PROBES: tuple[AbstractProbe, ...] = (Loss(),)


def train_model(
    init: Callable[[Array], ModelT],
    loss: Callable[[Any, Any], Array],
    data: PyTree,
    *,
    steps: int,
    seeds: int | Iterable[int] = 1,
    optimizer: Any = GradientDescent(0.1),  # noqa: B008  (frozen)
    record: Sequence[AbstractProbe] = _DEFAULT_PROBES,
    when: Schedule = Every(10),  # noqa: B008  (frozen)
    splits: Mapping[str, PyTree] | None = None,
    batch_size: int | None = None,
    stop: EarlyStopping | None = None,
    trained: Callable[[Any], PyTree] | None = None,
    root_seed: int = 0,
    dtype: DTypeLike = "float64",
    batch_of_runs: int | Literal["auto"] = 1,
    progress: bool | None = None,
) -> Trajectory[ModelT]:
    """Train one Equinox module per seed and record what the probes measure.

    A step is ``θ ← θ − step_size·∂/∂θ loss(model(θ), batch)``.

    - ``init``: a function from a JAX key to an Equinox module. The key of run ``k`` comes from
      ``fold_in(key(root_seed), k)``, so the run does not depend on the other runs.
    - ``loss``: ``loss(model, batch) → scalar``, the *mean* over the batch's examples, traced by
      JAX. Define it once: a new function is compiled again.
    - ``data``: a PyTree of arrays of shapes (examples, …); a batch has the same structure and
      ``batch_size`` examples. ``splits``: further data of that structure by name, for
      ``Loss("test")`` and early stopping.
    - ``trained``: ``trained(model) → filter``, a PyTree of booleans (or a prefix of one) that
      selects what is trained; by default every floating array. Everything else stays fixed.
    - ``record``: ``Loss``, ``GradientNorm``, ``Measure(name, function_of_the_model)`` and your own
      probes; probes of words need ``train``.
    - ``dtype``: floating arrays of model and data are rounded to it.

    All else is as in ``train``.

    Least squares, whose minimum is known:

    >>> class Line(eqx.Module):
    ...     slope: Array
    >>> def loss(line, batch):
    ...     x, y = batch
    ...     return jnp.mean((line.slope * x - y) ** 2)
    >>> x = jnp.linspace(-1.0, 1.0, 50)
    >>> run = train_model(lambda key: Line(jax.random.normal(key)), loss, (x, 3 * x), steps=400, seeds=2)
    >>> [round(float(run.model(seed).slope), 6) for seed in (0, 1)]
    [3.0, 3.0]
    """
    parts = dict(splits or {})
    for probe in record:
        if probe.needs_context:
            raise no_words(probe)
    kind = jnp.dtype(dtype) if str(dtype) in ("float32", "float64") else np.dtype("float64")
    _check_loss(loss)
    objective = ModelObjective.of(data, loss, kind, "data")
    settings = Settings.of(
        steps=steps,
        seeds=seeds,
        optimizer=optimizer,
        record=record,
        when=when,
        batch_size=batch_size,
        stop=stop,
        root_seed=root_seed,
        dtype=dtype,
        batch_of_runs=batch_of_runs,
        progress=progress,
        examples=(objective.examples, "examples"),
        splits=list(parts),
    )
    pieces = {
        name: ModelObjective.of(part, loss, kind, f"the split {name!r}")
        for name, part in parts.items()
    }
    for name, piece in pieces.items():
        _check_split(name, piece, objective)
    shared = Shared(objective, pieces, jnp.zeros(0, jnp.int32), settings.step_size)
    return drive(
        settings, _ModelJob(init, settings.dtype, root_seed, trained), shared, words=None, attrs={}
    )


class _ModelJob(AbstractJob[ModelT]):
    """Any module."""

    def __init__(
        self,
        init: Callable[[Array], ModelT],
        dtype: np.dtype,
        root_seed: int,
        trained: Callable[[Any], PyTree] | None,
    ):
        self.init, self.dtype, self.root_seed, self.trained = init, dtype, root_seed, trained

    def fixed(self, seed: int) -> Fixed:
        """Frame and minibatch key of one run."""
        model_key, batch_key = run_keys(self.root_seed, seed)
        model = self.init(model_key)
        if not isinstance(model, eqx.Module):
            raise AttnlabError(
                f"init returned {type(model).__name__}, expected an Equinox module (equinox.Module)"
            )
        arrays = jax.tree.map(
            lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, model
        )
        if any(eqx.is_array(leaf) and jnp.iscomplexobj(leaf) for leaf in jax.tree.leaves(arrays)):
            raise AttnlabError(
                "init returned a module with complex arrays; keep real and imaginary parts as two "
                "arrays"
            )
        return Fixed(
            ModelFrame.of(
                jax.tree.map(lambda leaf: as_dtype(leaf, self.dtype), arrays), self.trained
            ),
            batch_key,
        )

    def notes(self, fixed: Fixed) -> dict[str, float]:
        """Nothing."""
        del fixed
        return {}


def _check_loss(loss: object) -> None:
    try:
        hash(loss)
    except TypeError:
        raise AttnlabError(
            f"loss={loss!r} is not hashable, which JAX needs; give a plain function (model, batch) "
            "→ mean loss, and put arrays into data"
        ) from None
    if not callable(loss):
        raise AttnlabError(f"loss={loss!r}: expected a function (model, batch) → mean loss")


def _check_split(name: str, part: ModelObjective, objective: ModelObjective) -> None:
    """Raise an error for a split whose structure differs from the training data."""
    got, expected = (
        jax.tree.map(lambda leaf: (leaf.shape[1:], str(leaf.dtype)), o.data)
        for o in (part, objective)
    )
    if got != expected:
        raise AttnlabError(
            f"the split {name!r} has examples of the form {got}; expected that of data, {expected}"
        )
