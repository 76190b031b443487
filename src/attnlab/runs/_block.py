"""One block: a ZIP file with a Zarr (version 3) group for each stack of runs."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.runs._stack import RUN_DIM, Column, Stack

if TYPE_CHECKING:
    import xarray as xr

_HEADER = "attnlab"
_CHUNK_BYTES = 16_000_000
_RESERVED_ATTRS = ("_FillValue", "missing_value", "scale_factor", "add_offset", "dtype", "units", "calendar")
_RESERVED_ATTRS += ("coordinates", "_ARRAY_DIMENSIONS", "grid_mapping", "bounds", "ancillary_variables")

Chosen = Callable[[dict[str, Any]], Iterable[str]]


def pack(stacks: Iterable[Stack]) -> bytes:
    """The bytes of a block. Everything stays in memory, so that a full disk can only refuse the one final write."""
    import zarr.storage

    entries: dict[str, Any] = {}
    memory = zarr.storage.MemoryStore(entries)
    for position, stack in enumerate(stacks):
        data, chunks = _to_dataset(stack)
        data.to_zarr(
            memory, group=f"stack{position}", mode="w", zarr_format=3, consolidated=False, write_empty_chunks=True,
            encoding={name: {"chunks": shape} for name, shape in chunks.items()},
        )  # fmt: skip
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, value in sorted(entries.items()):
            archive.writestr(zipfile.ZipInfo(name), value.to_bytes())
    return buffer.getvalue()


def unpack(block: Path | bytes, chosen: Chosen | None = None) -> list[Stack]:
    """The stacks of a block whose checksum is known to be right; of each only the ``chosen`` variables.

    The block is a local file, of which only what is chosen is read, or its bytes. ``chosen`` maps a stack's header
    (``{name: {"dims", "coord", …}}``) to names.
    """
    import xarray as xr
    import zarr.buffer
    import zarr.storage

    with zipfile.ZipFile(io.BytesIO(block) if isinstance(block, bytes) else block) as archive:
        groups = sorted({name.split("/")[0] for name in archive.namelist() if name.startswith("stack")})
        if isinstance(block, bytes):
            entries = {name: zarr.buffer.cpu.Buffer.from_bytes(archive.read(name)) for name in archive.namelist()}
            store = zarr.storage.MemoryStore(dict(entries), read_only=True)
        else:
            store = zarr.storage.ZipStore(block, mode="r", read_only=True)
    try:
        stacks = []
        for group in groups:
            data = xr.open_zarr(store, group=group, consolidated=False, chunks=None, decode_cf=False)
            stacks.append(_from_dataset(data, chosen))
        return stacks
    finally:
        store.close()


def _to_dataset(stack: Stack) -> tuple[xr.Dataset, dict[str, tuple[int, ...]]]:
    """A stack as a data set with a leading run dimension, and the shape of each variable's chunks.

    Coordinates that all runs share are stored once; attributes lie exact in the header, and for other readers also
    with the variables, as far as they mean nothing special there.
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
            "stored": stored, "dims": list(column.dims), "coord": column.is_coord, "attrs": dict(column.attrs)
        }  # fmt: skip
    texts = [json.dumps(dict(attrs)) for attrs in stack.attrs]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    distinct = [json.loads(text) for text in places]
    head = {
        "runs": list(stack.hashes), "variables": header, "attrs": distinct, "attrs_of": [places[t] for t in texts]
    }  # fmt: skip
    return xr.Dataset(variables, attrs={_HEADER: head}), chunks


def _chunk_shape(values: np.ndarray) -> tuple[int, ...]:
    """Whole rows, as many as make a chunk of useful size."""
    if values.ndim == 0:
        return ()
    row = max(values.nbytes // max(len(values), 1), 1)
    rows = min(max(_CHUNK_BYTES // row, 1), max(len(values), 1))
    return (rows, *(max(size, 1) for size in values.shape[1:]))


def _from_dataset(data: xr.Dataset, chosen: Chosen | None) -> Stack:
    head = data.attrs[_HEADER]
    runs, header = tuple(head["runs"]), head["variables"]
    wanted = set(header if chosen is None else chosen(header))
    columns = {}
    for name, about in header.items():
        if name not in wanted:
            continue
        variable = data.variables[about["stored"]]
        values = variable.values
        if values.dtype.kind in "OT":
            values = np.array(values.tolist(), dtype=np.str_).reshape(values.shape)
        if RUN_DIM not in variable.dims:
            values = np.broadcast_to(values, (len(runs), *values.shape))
        columns[name] = Column(tuple(about["dims"]), values, about["attrs"], about["coord"])
    return Stack(runs, columns, tuple(head["attrs"][place] for place in head["attrs_of"]))
