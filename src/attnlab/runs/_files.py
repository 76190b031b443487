"""Files that are whole or absent, and a folder that one command owns."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from attnlab._errors import AttnlabError

_TEMPORARY = ".tmp-"
_SETTLED_SECONDS = 60.0


def write_atomic(path: Path, data: bytes, *, sync_folder: bool = True) -> None:
    """Write under a temporary name in the same folder, flush to disk, rename: never half a file under ``path``.

    Without ``sync_folder`` the new name may be forgotten in a loss of power until something else is written there.
    """
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
    """The content of a JSON file, or ``None`` where the file holds none."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def set_aside(path: Path) -> Path:
    """Rename a file that is not what it should be to ``*.bad``; nothing is deleted or overwritten."""
    aside = path.with_name(path.name + ".bad")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.{number}.bad")
    os.replace(path, aside)
    return aside


def is_settled(path: Path) -> bool:
    """Whether nobody can still be at work on a file: it is older than the last breath of an orphaned process."""
    try:
        return time.time() - path.stat().st_mtime > _SETTLED_SECONDS
    except OSError:
        return False


def remove_temporaries(folder: Path) -> None:
    """Remove our own half-written files that a killed process left behind."""
    for path in folder.glob(f"{_TEMPORARY}*"):
        if is_settled(path):
            path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class FolderLock:
    """A folder's lock file, with process and host of who holds it.

    The operating system frees the lock when its holder dies, so that the lock of a dead process is simply taken over.
    The file itself stays: removing it would let two commands hold two locks.
    """

    def __init__(self, folder: Path):
        self._path = folder / "lock"
        self._file: IO[str] | None = None

    def acquire(self) -> None:
        """Take the lock, or say who holds it."""
        file = open(self._path, "a+", encoding="utf-8")  # noqa: SIM115  (held until release)
        try:
            file.seek(0)
            holder = self._holder(file.read())
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Locks of another machine may be invisible here; what it wrote is not.
                taken = holder.get("host") not in (None, socket.gethostname())
            except BlockingIOError:
                taken = True
            if taken:
                raise AttnlabError(
                    f"{self._path.parent} is in use by process {holder.get('pid', '?')} on {holder.get('host', '?')}: "
                    f"wait until it ends, or stop it; if that machine is gone, remove {self._path}"
                )
            self._write(file, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        except BaseException:
            file.close()
            raise
        self._file = file

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            with suppress(OSError):
                self._write(self._file, "")
            self._file.close()
            self._file = None

    @staticmethod
    def _write(file: IO[str], text: str) -> None:
        file.seek(0)
        file.truncate()
        file.write(text)
        file.flush()

    @staticmethod
    def _holder(text: str) -> dict[str, Any]:
        try:
            holder = json.loads(text)
        except ValueError:
            return {}
        return holder if isinstance(holder, dict) else {}
