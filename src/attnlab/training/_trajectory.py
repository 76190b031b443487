"""The result of a training call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab._html import card, sparkline

ModelT = TypeVar("ModelT", bound=eqx.Module)
_SHOWN = 32  # runs that a notebook draws


@dataclass(frozen=True)
class Trajectory(Generic[ModelT]):
    """Recorded rows of all runs, how each run ended, and the trained models.

    - ``data``: one labelled data set with dimensions (seed, step, …). Rows that a run did not reach
      are nan. ``status`` is how each run ended (``finished``, ``stopped early``, ``non-finite``,
      ``interrupted``, ``not started``), ``reason`` the same in a sentence, ``last_step`` its last
      step.
    - ``models``: the final parameters of each run (the best ones after early stopping);
      ``model(seed)`` returns one.
    """

    data: xr.Dataset
    models: dict[int, ModelT]

    def model(self, seed: int) -> ModelT:
        """The final model of the run with this seed."""
        if seed not in self.models:
            raise AttnlabError(f"no model of seed {seed}; expected one of {sorted(self.models)}")
        return self.models[seed]

    @property
    def finished(self) -> bool:
        """Whether every run finished or stopped early."""
        return all(s in ("finished", "stopped early") for s in self.data.status.values.tolist())

    def _repr_html_(self) -> str:
        data, seeds = self.data, self.data.sizes["seed"]
        ended = Counter(data.status.values.tolist())
        recorded = {
            str(name): ", ".join(map(str, values.dims))
            for name, values in data.data_vars.items()
            if values.dims[:2] == ("seed", "step")
        }
        rows: dict[str, object] = {
            "runs": ", ".join(f"{count} {status}" for status, count in ended.items()),
            "rows": f"{data.sizes['step']}, steps {data.step.values[0]} to {data.step.values[-1]}",
            "recorded": "; ".join(f"{name} ({dims})" for name, dims in recorded.items()),
        }
        drawn = next((name for name, dims in recorded.items() if dims == "seed, step"), None)
        if drawn is None:
            return card(f"Trajectory of {seeds} runs", rows)
        steps, shown = data.step.values.tolist(), data[drawn].values[:_SHOWN]
        picture = sparkline(
            [(steps, run.tolist()) for run in shown], label=f"{drawn} of each run against step"
        )
        rows["drawn"] = (
            f"{drawn} of {len(shown)} runs, last {float(data[drawn][:, -1].median()):.3g} (median)"
        )
        return card(f"Trajectory of {seeds} runs", rows, picture)


class Recorder:
    """Collects rows on the host, run by run."""

    def __init__(self, seeds: Sequence[int], steps: np.ndarray):
        self.seeds, self.steps = list(seeds), steps
        self.values: dict[str, np.ndarray] = {}
        self.status = ["not started"] * len(self.seeds)
        self.reason = ["interrupted before this run started"] * len(self.seeds)
        self.last_step = np.full(len(self.seeds), -1)
        self.best_step = np.full(len(self.seeds), -1)
        self.per_run: dict[str, np.ndarray] = {}
        self.models: dict[int, Any] = {}

    def write(self, position: int, first: int, rows: dict[str, np.ndarray]) -> None:
        """Store rows ``first, first + 1, …`` of the run at ``position``."""
        for name, block in rows.items():
            if name not in self.values:
                shape = (len(self.seeds), len(self.steps), *block.shape[1:])
                kind = block.dtype if np.issubdtype(block.dtype, np.floating) else np.float64
                self.values[name] = np.full(shape, np.nan, kind)
            self.values[name][position, first : first + len(block)] = block

    def note(self, position: int, **numbers: float) -> None:
        """Store numbers of a whole run."""
        for name, number in numbers.items():
            self.per_run.setdefault(name, np.full(len(self.seeds), np.nan))[position] = number

    def end(
        self, position: int, status: str, reason: str, step: int, best_step: int | None = None
    ) -> None:
        """Store how a run ended, and clear rows that it did not reach."""
        self.status[position] = status
        self.reason[position] = reason
        self.last_step[position] = step
        if best_step is not None:
            self.best_step[position] = best_step
        unreached = self.steps >= step if status == "non-finite" else self.steps > step
        for values in self.values.values():
            values[position, unreached] = np.nan

    def dataset(
        self, dims: dict[str, tuple[str, ...]], words: Sequence[str] | None, attrs: dict[str, Any]
    ) -> xr.Dataset:
        """The labelled data set."""
        variables: dict[str, Any] = {
            name: (("seed", "step", *dims[name]), values) for name, values in self.values.items()
        }
        variables |= {name: (("seed",), values) for name, values in self.per_run.items()}
        variables["status"] = (("seed",), np.asarray(self.status, dtype=np.str_))
        variables["reason"] = (("seed",), np.asarray(self.reason, dtype=np.str_))
        variables["last_step"] = (("seed",), self.last_step)
        if (self.best_step >= 0).any():
            variables["best_step"] = (("seed",), self.best_step)
        coords: dict[str, Any] = {"seed": self.seeds, "step": self.steps}
        if words is not None and any("word" in axes for axes in dims.values()):
            coords["word"] = np.asarray(words, dtype=np.str_)
        data = xr.Dataset(variables, coords=coords, attrs=attrs)
        if "loss_floor" in attrs:  # each run has its own time: the probe Elapsed records it
            return data
        return data.assign_coords(time=("step", self.steps * attrs["step_size"]))


def to_host(tree: Any) -> Any:
    """The same tree with NumPy arrays as leaves; random keys stay as they are."""
    return jax.tree.map(lambda leaf: np.asarray(leaf) if _has_numbers(leaf) else leaf, tree)


def _has_numbers(leaf: object) -> bool:
    return isinstance(leaf, jax.Array) and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
