"""A sweep that claims share: which runs are made, and what is measured from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab._tables import Data, Table

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.sweeps import Plan

Scale = Literal["quick", "paper"]


@dataclass(frozen=True)
class Grid:
    """Arms, the settings to compare by label, each run with some seeds, counted from ``first``.

    ``seeds`` is one number for all arms, or one for each label.
    """

    arms: Mapping[str, Mapping[str, Any]]
    seeds: int | Mapping[str, int]
    first: int = 0

    def runs(self) -> list[dict[str, Any]]:
        """The settings of every run; ``arm`` is only a label."""
        seeds = self.seeds
        counts = seeds if isinstance(seeds, Mapping) else dict.fromkeys(self.arms, seeds)
        return [
            {**arm, "arm": label, "seed": self.first + k}
            for label, arm in self.arms.items()
            for k in range(counts[label])
        ]

    def plan(self, work: str, name: str) -> Plan:
        """The plan of these runs of a work function."""
        return al.sweeps.Plan.of_list(work, name=name, settings=self.runs())


@dataclass(frozen=True)
class Sweep:
    """Runs of one work function, and their measurement.

    - ``work`` names the work function, ``"package.module:function"``; its settings have the fields
      ``arm`` and ``seed``. It is loaded when runs are made.
    - ``grid(scale, seeds)``: the arms and how many seeds each has.
    - ``measure(arms)``: labelled data sets by name, from one data set for each arm. If it finds
      intervals by itself it also takes ``confidence``.
    - ``tables``: the declared variables of what is measured; a sweep without any is not checked.
    """

    name: str
    work: str
    grid: Callable[[Scale, int], Grid]
    measure: Callable[..., Data]
    tables: tuple[type[Table], ...] = ()

    def plan(self, scale: Scale, seeds: int, first: int = 0) -> Plan:
        """The runs at this scale; ``first`` is added to every seed."""
        grid = self.grid(scale, seeds)
        return replace(grid, first=grid.first + first).plan(self.work, self.name)

    def measured(self, arms: Data, confidence: float | None = None) -> dict[str, xr.Dataset]:
        """What ``measure`` finds, checked against the declared tables."""
        takes = "confidence" in inspect.signature(self.measure).parameters
        more = {"confidence": confidence} if takes and confidence is not None else {}
        found = dict(self.measure(arms, **more))
        known = {table.label: table for table in self.tables}
        needed = {label for label, table in known.items() if not table.optional}
        if known and not needed <= set(found) <= set(known):
            raise AttnlabError(
                f"the sweep {self.name!r} measures {sorted(found)}; its tables are {sorted(known)}"
            )
        for label, dataset in found.items():
            if known:
                known[label].check(dataset)
        return found
