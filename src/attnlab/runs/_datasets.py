"""Measured data sets beside a record: one zipped Zarr store each."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

import xarray as xr

from attnlab._errors import AttnlabError


def slug(name: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-")


def save_datasets(folder: Path, data: Mapping[str, xr.Dataset]) -> dict[str, str]:
    """Write data sets to ``folder/data``; their paths in the folder, by label. A half-written file is never seen."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
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
                store = zarr.storage.ZipStore(folder / name, mode="r")
                data[label] = xr.open_zarr(store, consolidated=False, chunks=None).load()
                store.close()
        except Exception as error:
            raise AttnlabError(f"{folder / name} cannot be read ({error}); run the command again") from None
    return data


def _write(data: xr.Dataset, path: Path) -> None:
    import zarr.storage

    temporary = path.with_name(path.name + ".part")
    with warnings.catch_warnings():
        # Zarr warns that fixed-width strings have no specification yet.
        warnings.simplefilter("ignore")
        store = zarr.storage.ZipStore(temporary, mode="w")
        data.to_zarr(store, consolidated=False)
        store.close()
    temporary.replace(path)
