"""From the runs of a sweep to labelled tables that claims and figures read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError


def split_arms(data: xr.Dataset, *, keep_failed: bool = False) -> dict[str, xr.Dataset]:
    """One data set for each arm, with a ``seed`` dimension, from a sweep's with a ``run`` dimension.

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


def dataset(variables: dict[str, Any]) -> xr.Dataset:
    """A data set of labelled arrays by name."""
    return xr.Dataset(variables)


def labelled(values: Any, **labels: Any) -> xr.DataArray:
    """An array with these labels along its dimensions, in their order."""
    return xr.DataArray(values, labels, tuple(labels))


def axis(name: str, labels: Iterable[Any]) -> xr.DataArray:
    """A new dimension with these labels, for ``along`` and ``side_by_side``."""
    return xr.DataArray(np.asarray(list(labels)), dims=name, name=name)


def along(parts: Sequence[Any], name: str, labels: Iterable[Any], **more: Any) -> Any:
    """Arrays or data sets of equal seeds along a new dimension."""
    return xr.concat(parts, dim=axis(name, labels), **more)


def side_by_side(parts: Sequence[xr.Dataset], name: str, labels: Iterable[Any]) -> xr.Dataset:
    """Data sets along a new dimension; a coordinate ``asked`` says which seeds each was asked for.

    Where parts have different seeds, the table has all of them, and nan where a part was never run:
    what is asked for and missing must be told from what was not asked for.

    >>> few, many = (xr.Dataset({"x": ("seed", np.ones(n))}, {"seed": range(n)}) for n in (1, 3))
    >>> side_by_side([few, many], "arm", ["few", "many"]).asked.values.tolist()
    [[True, False, False], [True, True, True]]
    """
    dim = axis(name, labels)
    bare = [part.drop_vars("asked", errors="ignore") for part in parts]
    table = cast(xr.Dataset, xr.concat(bare, dim=dim, join="outer"))
    if "seed" not in table.dims:
        return table
    seeds = table["seed"].values
    asked = [_asked(part).reindex(seed=seeds).fillna(False).astype(bool) for part in parts]
    return table.assign_coords(asked=xr.concat(asked, dim=dim, join="outer", fill_value=False))


def _asked(part: xr.Dataset) -> xr.DataArray:
    if "asked" in part.coords:
        return part.coords["asked"]
    seeds = part["seed"].values
    return xr.DataArray(np.ones(len(seeds), bool), dims="seed", coords={"seed": seeds})


def asked_of(*values: xr.DataArray) -> np.ndarray:
    """Whether each seed was asked for in all of some measurements of equal seeds: (seeds,)."""
    masks = [value.coords["asked"].values for value in values if "asked" in value.coords]
    return np.all([np.ones(values[0].sizes["seed"], bool), *masks], axis=0)
