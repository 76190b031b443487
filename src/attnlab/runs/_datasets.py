"""What a command leaves behind: a record in JSON, and beside it measured data sets, one zipped Zarr store each."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xarray as xr

import attnlab
from attnlab._errors import AttnlabError
from attnlab._places import is_file, is_remote, make_folder, read_bytes, reading
from attnlab.runs._files import write_atomic
from attnlab.runs._store import disk_error


def slug(name: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")


def provenance(seconds: float) -> dict[str, Any]:
    """With what, where, when and how long: what every record says about itself."""
    import jax

    return {
        "attnlab": attnlab.__version__, "python": platform.python_version(), "jax": jax.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores", "date": time.strftime("%Y-%m-%d"),
        "seconds": round(seconds, 1),
    }  # fmt: skip


def save_record(
    folder: Path, name: str, schema: int, content: Mapping[str, Any], data: Mapping[str, xr.Dataset]
) -> None:
    """Write ``content`` as the JSON file ``name``, with the data sets that belong to it; never half of it."""
    try:
        record = {"schema": schema, **content, "data": save_datasets(folder, data)}
        text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        write_atomic(folder / name, text.encode())
    except OSError as error:
        raise disk_error(folder, error) from error


def load_record(
    folder: Path, name: str, schema: int, fields: Sequence[str], command: str
) -> tuple[dict[str, Any], dict[str, xr.Dataset]]:
    """The ``fields`` of a record that ``command`` wrote, and its data sets; whatever is wrong with it is an error."""
    path = folder / name
    with reading(folder):
        if not is_file(path):
            raise AttnlabError(f"{folder} has no {name}; run `{command} --out {folder}` first")
        text = read_bytes(path)
    try:
        record = json.loads(text)
        content, found, files = {field: record[field] for field in fields}, record["schema"], record["data"]
    except (ValueError, KeyError, TypeError) as error:
        raise AttnlabError(f"{path} is not a record of attnlab ({error!r}); run `{command}` again") from None
    if found != schema:
        raise AttnlabError(f"{path} has schema {found}, this version reads {schema}; run `{command}` again")
    return content, load_datasets(folder, files)


def save_datasets(folder: Path, data: Mapping[str, xr.Dataset]) -> dict[str, str]:
    """Write data sets to ``folder/data``; their paths in the folder, by label. A half-written file is never seen."""
    make_folder(folder / "data")
    files = {}
    for label, one in data.items():
        files[label] = f"data/{slug(label)}-{hashlib.sha256(label.encode()).hexdigest()[:8]}.zarr.zip"
        _write(one, folder / files[label])
    return files


def load_datasets(folder: Path, files: Mapping[str, str]) -> dict[str, xr.Dataset]:
    """The data sets that ``save_datasets`` wrote."""
    import zarr.storage

    data = {}
    for label, name in files.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with _on_disk(folder / name) as path:
                    store = zarr.storage.ZipStore(path, mode="r")
                    data[label] = xr.open_zarr(store, consolidated=False, chunks=None).load()
                    store.close()
        except Exception as error:
            raise AttnlabError(f"{folder / name} cannot be read ({error}); run the command again") from None
    return data


def _write(data: xr.Dataset, path: Path) -> None:
    import zarr.storage

    with tempfile.TemporaryDirectory(prefix="attnlab-") as folder, warnings.catch_warnings():
        # Zarr warns that fixed-width strings have no specification yet.
        warnings.simplefilter("ignore")
        temporary = Path(folder) / path.name
        store = zarr.storage.ZipStore(temporary, mode="w")
        data.to_zarr(store, consolidated=False)
        store.close()
        write_atomic(path, temporary.read_bytes())


@contextmanager
def _on_disk(path: Path) -> Iterator[Path]:
    """A file of this machine with the same content."""
    if not is_remote(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="attnlab-") as folder:
        copy = Path(folder) / path.name
        copy.write_bytes(read_bytes(path))
        yield copy
