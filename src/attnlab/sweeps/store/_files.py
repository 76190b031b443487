"""Files that are whole or absent."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

from attnlab._json import parse_json
from attnlab._places import is_remote, listed, modified, move, read_bytes, remove
from attnlab._whole import TEMPORARY, write_whole

_SETTLED_SECONDS = 60.0


def write_atomic(path: Path, data: bytes, *, sync_folder: bool = True) -> None:
    """Never half a file under ``path``, and its name on disk too.

    Without ``sync_folder`` the new name may be forgotten in a loss of power until something else is
    written there.
    """
    write_whole(path, data)
    if sync_folder and not is_remote(path):
        _sync_folder(path.parent)


def write_json(path: Path, content: Any, *, sync_folder: bool = True) -> None:
    """The same for JSON."""
    write_atomic(path, json.dumps(content, indent=1).encode(), sync_folder=sync_folder)


def read_json(path: Path) -> Any:
    """The content of a JSON file, or ``None`` where the file holds none.

    A URL that cannot be reached is an error: what lies there may be as it should be.
    """
    try:
        return parse_json(read_bytes(path))
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
    """Whether nobody can still be at work on a file: it is older than the last breath of an
    orphaned process.
    """
    written = modified(path)
    return written is not None and time.time() - written > _SETTLED_SECONDS


def remove_temporaries(folder: Path) -> None:
    """Remove our own half-written files that a killed process left behind."""
    for name in listed(folder):
        if name.startswith(TEMPORARY) and is_settled(folder / name):
            remove(folder / name)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
