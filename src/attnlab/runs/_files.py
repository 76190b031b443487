"""Files that are whole or absent."""

from __future__ import annotations

import hashlib
import json
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from attnlab._places import is_remote, listed, modified, move, put_bytes, read_bytes, remove

_TEMPORARY = ".tmp-"
_SETTLED_SECONDS = 60.0


def write_atomic(path: Path, data: bytes, *, sync_folder: bool = True) -> None:
    """Write under a temporary name in the same folder, flush to disk, rename: never half a file under ``path``.

    Without ``sync_folder`` the new name may be forgotten in a loss of power until something else is written there.
    At a URL the file is put under its own name: object stores show it whole or not at all.
    """
    if is_remote(path):
        put_bytes(path, data)
        return
    temporary = path.with_name(f"{_TEMPORARY}{uuid.uuid4().hex}")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if sync_folder:
        _sync_folder(path.parent)


def write_json(path: Path, content: Any, *, sync_folder: bool = True) -> None:
    """The same for JSON."""
    write_atomic(path, json.dumps(content, indent=1).encode(), sync_folder=sync_folder)


def read_json(path: Path) -> Any:
    """The content of a JSON file, or ``None`` where the file holds none.

    A URL that cannot be reached is an error: what lies there may be as it should be.
    """
    try:
        return json.loads(read_bytes(path))
    except ValueError:
        return None
    except OSError as error:
        if is_remote(path) and not isinstance(error, FileNotFoundError):
            raise
        return None


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    if is_remote(path):
        return hashlib.sha256(read_bytes(path)).hexdigest()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def set_aside(path: Path) -> Path:
    """Rename a file that is not what it should be to ``*.bad``; nothing is deleted or overwritten."""
    present = listed(path.parent)
    aside = path.with_name(path.name + ".bad")
    number = 1
    while aside.name in present:
        number += 1
        aside = path.with_name(f"{path.name}.{number}.bad")
    move(path, aside)
    return aside


def is_settled(path: Path) -> bool:
    """Whether nobody can still be at work on a file: it is older than the last breath of an orphaned process."""
    written = modified(path)
    return written is not None and time.time() - written > _SETTLED_SECONDS


def remove_temporaries(folder: Path) -> None:
    """Remove our own half-written files that a killed process left behind."""
    for name in listed(folder):
        if name.startswith(_TEMPORARY) and is_settled(folder / name):
            remove(folder / name)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
