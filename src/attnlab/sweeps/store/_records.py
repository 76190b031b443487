"""Records of commands: a JSON file, and next to it measured data sets, one zipped Zarr store each."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attnlab
from attnlab._errors import AttnlabError
from attnlab._json import seal, unseal
from attnlab._places import (
    disk_error,
    is_file,
    leads_outside,
    make_folder,
    read_bytes,
    reading,
    write_atomically,
)
from attnlab.sweeps.store._zarr import Damaged, open_zarr, pack_zarr

if TYPE_CHECKING:
    import xarray as xr


def slug(name: str) -> str:
    """A form of a name that every file system accepts.

    >>> slug("two heads, 8 seeds")
    'two-heads-8-seeds'
    """
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")


def provenance(seconds: float) -> dict[str, Any]:
    """Versions, machine, date and duration, as every record states them."""
    import jax

    return {
        "attnlab": attnlab.__version__,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(seconds, 1),
    }


def save_record(
    folder: Path, name: str, schema: int, content: Mapping[str, Any], data: Mapping[str, xr.Dataset]
) -> None:
    """Write the data sets of a record, then ``content`` as the JSON file ``name`` with their
    checksums; each file atomically.
    """
    try:
        record = {**content, "data": _save_datasets(folder, data)}
        write_atomically(folder / name, seal(_kind(name), schema, record))
    except OSError as error:
        raise disk_error(folder, error) from error


def read_record(
    folder: Path, name: str, schema: int, fields: Mapping[str, Any], command: str
) -> dict[str, Any]:
    """A record that ``command`` wrote, without its data sets; an error where anything is wrong with
    it.

    ``fields``: the expected shape of each, as ``attnlab._json.mismatch`` takes it.
    """
    path, again = folder / name, f"run `{command}` again"
    with reading(folder):
        if not is_file(path):
            raise AttnlabError(f"{folder} has no {name}; run `{command} --out {folder}` first")
        data = read_bytes(path)
    shape = {**fields, "data": {str: {"file": str, "bytes": int, "sha256": str}}}
    what = "a record of attnlab"
    return unseal(data, path, kind=_kind(name), schema=schema, what=what, again=again, shape=shape)


def load_record(
    folder: Path, name: str, schema: int, fields: Mapping[str, Any], command: str
) -> tuple[dict[str, Any], dict[str, xr.Dataset]]:
    """The ``fields`` of a record, as ``read_record`` takes them, and its data sets."""
    record = read_record(folder, name, schema, fields, command)
    again = f"run `{command}` again"
    content = {field: record[field] for field in fields}
    data = {
        label: _load(folder, label, about, folder / name, again)
        for label, about in record["data"].items()
    }
    return content, data


def _kind(name: str) -> str:
    return f"attnlab {name.removesuffix('.json')}"


def _file(label: str) -> str:
    """The only file name that a data set may have: a record that names another file is refused, so
    that it cannot lead out of its folder.
    """
    return f"data/{slug(label)}-{hashlib.sha256(label.encode()).hexdigest()[:8]}.zarr.zip"


def _save_datasets(folder: Path, data: Mapping[str, xr.Dataset]) -> dict[str, dict[str, Any]]:
    """Write data sets to ``folder/data``; returns file, size and checksum by label."""
    make_folder(folder / "data")
    files = {}
    for label, one in data.items():
        packed = pack_zarr({"": one})
        write_atomically(folder / _file(label), packed)
        digest = hashlib.sha256(packed).hexdigest()
        files[label] = {"file": _file(label), "bytes": len(packed), "sha256": digest}
    return files


def _load(
    folder: Path, label: str, about: Mapping[str, Any], record: Path, again: str
) -> xr.Dataset:
    """A data set that ``save_record`` wrote."""
    import xarray as xr

    if about["file"] != _file(label):
        raise AttnlabError(
            f"{record} names the file {about['file'][:80]!r}: expected {_file(label)!r}; {again}"
        )
    path = folder / about["file"]
    with reading(folder):
        if not is_file(path):
            raise AttnlabError(f"{path} is missing; {again}")
        if leads_outside(path, folder):
            raise AttnlabError(
                f"{path} is a link that leads out of {folder}: expected a file there; {again}"
            )
        packed = read_bytes(path)
    if hashlib.sha256(packed).hexdigest() != about["sha256"]:
        raise AttnlabError(
            f"{path} is not the file that {record.name} was written with: its checksum differs, "
            f"because it is cut off, damaged or from another run; {again}"
        )
    try:
        with open_zarr(packed) as (store, _):
            return xr.open_zarr(store, consolidated=False, chunks=None, zarr_format=3).load()
    except Damaged as error:
        raise AttnlabError(f"{path} cannot be read ({error}); {again}") from None
