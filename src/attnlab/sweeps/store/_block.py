"""A block: one ZIP file with a Zarr (version 3) group for each stack of runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._json import mismatch
from attnlab.sweeps.store._stack import RUN_DIM, Column, Stack
from attnlab.sweeps.store._zarr import PACKED_BYTES, Damaged, open_zarr, pack_zarr

if TYPE_CHECKING:
    import xarray as xr

_HEADER = "attnlab"
_HEAD = {
    "runs": [str],
    "variables": {str: {"stored": str, "dims": [str], "coord": bool, "attrs": {str: object}}},
    "attrs": [{str: object}],
    "attrs_of": [range(2**31)],
}
_CHUNK_BYTES = 16_000_000
_MOST_PADDING = 1000
_RESERVED_ATTRS = (  # xarray gives these a meaning when it writes or reads
    "_FillValue",
    "missing_value",
    "scale_factor",
    "add_offset",
    "dtype",
    "units",
    "calendar",
    "coordinates",
    "_ARRAY_DIMENSIONS",
    "grid_mapping",
    "bounds",
    "ancillary_variables",
)

Chosen = Callable[[dict[str, Any]], Iterable[str]]


def pack(stacks: Iterable[Stack]) -> bytes:
    """The bytes of a block."""
    groups, encoding = {}, {}
    for position, stack in enumerate(stacks):
        data, chunks = _to_dataset(stack)
        groups[f"stack{position}"] = data
        encoding[f"stack{position}"] = {name: {"chunks": shape} for name, shape in chunks.items()}
    return pack_zarr(groups, encoding)


def unpack(block: Path | bytes, chosen: Chosen | None = None) -> list[Stack]:
    """The stacks of a block whose checksum was verified; of each only the ``chosen`` variables.

    The block is a local file, of which only what is chosen is read, or its bytes. ``chosen`` maps a
    stack's header (``{name: {"dims", "coord", …}}``) to names. Raises ``Damaged`` for a block that
    ``pack`` did not make.
    """
    import xarray as xr

    with open_zarr(block) as (store, groups):
        stacks = []
        for group in groups:
            if group.startswith("stack"):
                data = xr.open_zarr(
                    store,
                    group=group,
                    consolidated=False,
                    chunks=None,
                    decode_cf=False,
                    zarr_format=3,
                )
                stacks.append(_from_dataset(data, chosen))
        return stacks


def _to_dataset(stack: Stack) -> tuple[xr.Dataset, dict[str, tuple[int, ...]]]:
    """A stack as a data set with a leading run dimension, and the shape of each variable's chunks.

    Coordinates that all runs share are stored once. The exact attributes are in the header; for
    other readers they are also stored with the variables, except the reserved ones.
    """
    import xarray as xr

    variables, header, chunks = {}, {}, {}
    for name, column in stack.columns.items():
        shared = column.is_coord and column.is_shared
        # xarray reserves the name of a dimension for its labels, which have no run dimension.
        stored = f"{name}.per_run" if name in column.dims and not shared else name
        values = column.values[0] if shared else column.values
        dims = column.dims if shared else (RUN_DIM, *column.dims)
        if values.dtype.kind == "U":
            values = values.astype(np.dtypes.StringDType())
        visible = {key: value for key, value in column.attrs.items() if key not in _RESERVED_ATTRS}
        variables[stored] = xr.Variable(dims, values, visible)
        chunks[stored] = _chunk_shape(values)
        header[name] = {
            "stored": stored,
            "dims": list(column.dims),
            "coord": column.is_coord,
            "attrs": dict(column.attrs),
        }
    texts = [json.dumps(dict(attrs)) for attrs in stack.attrs]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    distinct = [json.loads(text) for text in places]
    head = {
        "runs": list(stack.hashes),
        "variables": header,
        "attrs": distinct,
        "attrs_of": [places[text] for text in texts],
    }
    return xr.Dataset(variables, attrs={_HEADER: head}), chunks


def _chunk_shape(values: np.ndarray) -> tuple[int, ...]:
    """Complete rows, as many as make a chunk of useful size."""
    if values.ndim == 0:
        return ()
    row = max(values.nbytes // max(len(values), 1), 1)
    rows = min(max(_CHUNK_BYTES // row, 1), max(len(values), 1))
    return (rows, *(max(size, 1) for size in values.shape[1:]))


def _from_dataset(data: xr.Dataset, chosen: Chosen | None) -> Stack:
    head = data.attrs.get(_HEADER)
    wrong = mismatch(head, _HEAD)
    if wrong or head is None:
        raise Damaged(f"the header of a stack: {wrong}")
    runs, header = tuple(head["runs"]), head["variables"]
    highest, count = max(head["attrs_of"], default=0), max(len(head["attrs"]), 1)
    if len(head["attrs_of"]) != len(runs) or highest >= count:
        raise Damaged("the header of a stack does not give each run its attributes")
    wanted = set(header if chosen is None else chosen(header))
    columns = {
        name: _column(data, about, len(runs)) for name, about in header.items() if name in wanted
    }
    return Stack(runs, columns, tuple(head["attrs"][place] for place in head["attrs_of"]))


def _column(data: xr.Dataset, about: dict[str, Any], runs: int) -> Column:
    variable, dims = data.variables[about["stored"]], tuple(about["dims"])
    is_shared = RUN_DIM not in variable.dims
    expected = dims if is_shared else (RUN_DIM, *dims)
    if variable.dims != expected or (not is_shared and len(variable) != runs):
        raise Damaged(
            f"the variable {about['stored']!r} has the dimensions {variable.sizes}: not those of "
            "its header"
        )
    values = variable.values
    if values.dtype.kind in "OT":
        values = _fixed_width(values)
    if is_shared:
        values = np.broadcast_to(values, (runs, *values.shape))
    return Column(dims, values, about["attrs"], about["coord"])


def _fixed_width(values: np.ndarray) -> np.ndarray:
    """Strings in NumPy's fixed width, that of the longest; refused where that one is far longer
    than the others, since all would take its space.
    """
    texts = values.ravel().tolist()
    lengths = [len(text) for text in texts]
    if 4 * max(lengths, default=0) * len(texts) > max(PACKED_BYTES, _MOST_PADDING * sum(lengths)):
        raise Damaged(f"the longest of {len(texts)} strings has {max(lengths)} letters")
    return np.array(texts, dtype=np.str_).reshape(values.shape)
