"""The smallest work function, for the examples in this room's docstrings."""

from __future__ import annotations

from dataclasses import dataclass

import xarray as xr

from attnlab.sweeps._context import RunContext


@dataclass(frozen=True)
class Power:
    """Which power of which number."""

    number: float
    exponent: int = 2


def work(settings: Power, context: RunContext) -> xr.Dataset:
    """``number ** exponent``."""
    del context
    return xr.Dataset({"power": settings.number**settings.exponent})
