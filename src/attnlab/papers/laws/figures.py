"""Parts of figures that several claims about exact laws draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.papers.lu2021.sweeps import head_name
from attnlab.report import DotRow

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr


def worst(errors: xr.DataArray) -> np.ndarray:
    """The largest error of each run."""
    return errors.max([dim for dim in errors.dims if dim != "seed"]).values


def head_rows(errors: xr.DataArray, limit: float) -> list[DotRow]:
    """A row of dots for each head, a dot for each run, with the limit."""
    heads = errors["head"].values.tolist()
    return [DotRow(head_name(head), worst(errors.sel(head=head)), limit) for head in heads]
