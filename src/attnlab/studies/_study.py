"""A study: the sweep that a question needs, and what is measured from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.stats import CONFIDENCE
from attnlab.sweeps import Plan

if TYPE_CHECKING:
    import xarray as xr

Scale = Literal["quick", "paper"]
Data = Mapping[str, "xr.Dataset"]


@dataclass(frozen=True)
class Study:
    """One question.

    - ``plan(scale, seeds)``: the sweep to run: some *arms* (settings to compare), each with the
      same seeds;
    - ``measure(arms)``: labelled data sets that claims judge and figures draw, from one data set
      per arm; a study that finds intervals by itself takes ``confidence`` as well.
    """

    name: str
    plan: Callable[[Scale, int], Plan]
    measure: Callable[..., Data]

    def measured(self, arms: Data, confidence: float = CONFIDENCE) -> Data:
        """What ``measure`` finds; ``confidence`` is for a study that finds intervals by itself."""
        if confidence == CONFIDENCE:
            return self.measure(arms)
        takes = "confidence" in inspect.signature(self.measure).parameters
        return self.measure(arms, confidence=confidence) if takes else self.measure(arms)


def arm_plan(
    work: str,
    name: str,
    arms: Mapping[str, Mapping[str, Any]],
    seeds: int | Mapping[str, int],
    *,
    first: int = 0,
) -> Plan:
    """A sweep of arms × seeds. The work function's settings have the fields ``arm`` (only a label)
    and ``seed``.

    ``seeds`` may differ from arm to arm: then it is a number by label. They are counted from
    ``first``.
    """
    counts = seeds if isinstance(seeds, Mapping) else dict.fromkeys(arms, seeds)
    settings = [
        {**arm, "arm": label, "seed": first + k}
        for label, arm in arms.items()
        for k in range(counts[label])
    ]
    return Plan.of_list(work, name=name, settings=settings)


def split_arms(data: xr.Dataset, *, keep_failed: bool = False) -> dict[str, xr.Dataset]:
    """One data set per arm with a ``seed`` dimension, from a sweep's data set with a ``run``
    dimension.

    Settings are dropped, and a variable that shares its name with one (``x_in_run``) is ``x`` again.
    Rows that no run of an arm has (another arm records other steps) are dropped, and so are failed
    runs unless ``keep_failed``: then they are nan, so that what was asked for and is missing can be
    counted.
    """
    arms: dict[str, xr.Dataset] = {}
    for label in dict.fromkeys(data.arm.values.tolist()):
        part = data.isel(run=np.flatnonzero(data.arm.values == label))
        seeds = part.seed.values
        part = part.reset_coords(drop=True).assign_coords(run=seeds).rename(run="seed")
        part = part.rename({name: str(name).removesuffix("_in_run") for name in part.data_vars})
        if "step" in part.dims:
            part = part.dropna("step", how="all")
        finished = part.dropna("seed", how="all")
        if finished.sizes["seed"] == 0:
            raise AttnlabError(f"no run of the arm {label!r} finished: nothing can be measured")
        arms[str(label)] = part if keep_failed else finished
    return arms
