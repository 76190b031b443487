"""How one variant of attention trains: error and attention along the way, when it sets off, and
where it stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Array

from attnlab.stats import crossing
from attnlab.training import Adam, InstantProbe, Logarithmic, ModelObjective, Moment, train_model

_ROWS = 40  # recorded steps
_LOOKED_AT = 500  # test samples that are looked at along the way
_WAY = 0.05  # a score that moves by less than this never sets off


@dataclass(frozen=True)
class _Looked(InstantProbe):
    """What a study's measure says of test samples, under the same names."""

    function: Callable[[Any, Any], dict[str, Array]]
    names: tuple[str, ...]

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """A number each."""
        return dict.fromkeys(self.names, ())

    def look(self, moment: Moment) -> dict[str, Array]:
        """Measure now."""
        part = moment.split("test")
        assert isinstance(part, ModelObjective)
        found = self.function(moment.model(), {"valid": part.data, "test": part.data})
        return {name: found[name] for name in self.names}


def train_course(
    start: Callable[[Any], Any],
    loss: Callable[[Any, Any], Any],
    measure: Callable[[Any, Any], Any],
    train: Any,
    test: Any,
    *,
    names: tuple[str, ...],
    steps: int,
    step_size: float,
    weight_decay: float,
    batch_size: int,
    seed: int,
    moving: Callable[[Any], Any] | None = None,
    dtype: str = "float32",
) -> tuple[xr.Dataset, Any]:
    """Train once by Adam with a constant step: what ``names`` of ``measure`` did on the way, and
    the trained model.

    The data set has the dimension ``step``; a name x is there as ``course_x``. ``onset`` is that of
    the last name, see ``onset_step``.
    """
    import jax

    few = jax.tree.map(lambda leaf: leaf[:_LOOKED_AT], test)
    count = jax.tree.leaves(train)[0].shape[0]
    run = train_model(
        start,
        loss,
        train,
        steps=steps,
        seeds=[seed],
        optimizer=Adam(step_size, weight_decay=weight_decay),
        record=(_Looked(measure, names),),
        when=Logarithmic(_ROWS),
        splits={"test": few},
        batch_size=min(batch_size, count),
        trained=moving,
        dtype=dtype,
        progress=False,
    )
    data = run.data.isel(seed=0, drop=True)
    found = xr.Dataset({f"course_{name}": data[name] for name in names})
    found = found.drop_vars([name for name in found.coords if name != "step"])
    return found.assign(
        onset=onset_step(data.step.values, data[names[-1]].values, rising=names[-1] != "error")
    ), run.model(seed)


def onset_step(steps: np.ndarray, score: np.ndarray, *, rising: bool) -> float:
    """The step at which a score has gone half of its way from the first to the last value; nan if
    it gets nowhere.

    Scores are shares, or errors in units of the teacher's variance: a way of less than 0.05 is
    none.

    >>> onset_step(np.array([0, 10, 20, 30]), np.array([1.0, 1.0, 0.0, 0.0]), rising=False)
    15.0
    >>> onset_step(np.array([0, 10]), np.array([0.06, 0.07]), rising=True)
    nan
    """
    first, last = float(score[0]), float(score[-1])
    way = last - first if rising else first - last
    if not way >= _WAY:
        return float("nan")
    return crossing(steps, score, (first + last) / 2, log_x=False, rising=rising).value
