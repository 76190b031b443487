"""Columns of numbers that grow on disk, with a journal: all data before its last entry is complete."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import write_array_header_1_0

JOURNAL = "journal.json"


class Spool:
    """One-dimensional arrays on disk that grow by appending; little is held in memory.

    ``columns``: name → type; with ``npy`` they are NumPy files (``name.npy``, valid after
    ``finish``), otherwise plain numbers. An existing folder is resumed from the end of its journal,
    with the ``state`` stored there; what was appended later is cut off. ``state`` is ``None`` if
    nothing can be resumed, or if ``stamp``, a hash of all that the columns depend on, differs:
    everything then starts from the beginning.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with Spool(folder, {"words": "int32"}) as spool:
    ...     spool.append("words", np.arange(3))
    ...     spool.commit({"blocks": 1})
    ...     spool.append("words", np.arange(9))  # and then the power fails
    >>> with Spool(folder, {"words": "int32"}) as spool:
    ...     spool.state, spool.column("words").tolist()
    ({'blocks': 1}, [0, 1, 2])
    """

    def __init__(
        self, folder: str | Path, columns: Mapping[str, str], *, stamp: str = "", npy: bool = False
    ):
        self.folder, self._stamp, self._npy = Path(folder), stamp, npy
        self._types = {name: np.dtype(kind).newbyteorder("<") for name, kind in columns.items()}
        self.state: dict[str, Any] | None = None
        sizes = self._taken_up()
        self._open, self._files = ExitStack(), {}
        for name in columns:
            path = self.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            file = self._files[name] = self._open.enter_context(
                path.open("r+b" if sizes else "w+b")
            )
            if sizes:
                file.truncate(sizes[name])
            elif npy:
                _write_head(file, self._types[name], 0)
            file.seek(0, os.SEEK_END)

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def path(self, name: str) -> Path:
        """The file of a column."""
        return self.folder / (f"{name}.npy" if self._npy else name)

    def append(self, name: str, values: np.ndarray | bytes) -> None:
        """Append numbers to a column."""
        data = (
            values
            if isinstance(values, bytes)
            else np.ascontiguousarray(values, self._types[name]).data
        )
        self._files[name].write(data)

    def commit(self, state: dict[str, Any]) -> None:
        """Write the current sizes, and the state to resume from, to the journal."""
        sizes = {}
        for name, file in self._files.items():
            file.flush()
            os.fsync(file.fileno())
            sizes[name] = file.tell()
        temporary = self.folder / f"{JOURNAL}.new"
        temporary.write_text(
            json.dumps({"stamp": self._stamp, "sizes": sizes, "state": state}), "utf-8"
        )
        os.replace(temporary, self.folder / JOURNAL)
        self.state = state

    def column(self, name: str) -> np.ndarray:
        """A column as it is so far, memory-mapped."""
        self._files[name].flush()
        if not os.path.getsize(self.path(name)):
            return np.zeros(0, self._types[name])
        return np.memmap(self.path(name), self._types[name], "r")

    def finish(self) -> None:
        """Complete NumPy files: write the final length into their headers."""
        for name, file in self._files.items():
            size = file.tell()
            file.seek(0)
            _write_head(file, self._types[name], 0)
            count = (size - file.tell()) // self._types[name].itemsize
            file.seek(0)
            # NumPy leaves room for a longer number: this takes as many bytes, whatever the count.
            _write_head(file, self._types[name], count)
            file.seek(0, os.SEEK_END)
            file.flush()
            os.fsync(file.fileno())

    def _taken_up(self) -> dict[str, int]:
        """The sizes in a journal, if all columns exist; ``None`` otherwise."""
        try:
            journal = json.loads((self.folder / JOURNAL).read_text("utf-8"))
            sizes = {name: int(journal["sizes"][name]) for name in self._types}
            if journal["stamp"] != self._stamp or any(
                self.path(name).stat().st_size < size for name, size in sizes.items()
            ):
                return {}
            self.state = journal["state"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return sizes


def _write_head(file: Any, kind: np.dtype, count: int) -> None:
    write_array_header_1_0(file, {"descr": kind.str, "fortran_order": False, "shape": (count,)})
