"""A study: the sweeps that a question needs, and what is measured from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import xarray as xr

from attnlab.runs import Plan

Scale = Literal["quick", "paper"]
Data = Mapping[str, xr.Dataset]


@dataclass(frozen=True)
class Study:
    """One question.

    - ``plans(scale, seeds)``: the sweeps to run, by name; a sweep's name is unique over all studies, so that studies
      can share it.
    - ``measure(sweeps)``: labelled data sets that claims judge and figures draw, from the sweeps' data sets.
    """

    name: str
    plans: Callable[[Scale, int], Mapping[str, Plan]]
    measure: Callable[[Data], Data]
