"""Locks: a folder has one owner at a time."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import threading
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from attnlab._errors import AttnlabError
from attnlab._json import mismatch, parse_json
from attnlab._places import (
    is_file,
    is_remote,
    listed,
    read_if_any,
    remove,
    set_aside,
    write_atomically,
)

_BEAT_SECONDS = 20.0
_STALE_SECONDS = 120.0
_MOMENT_SECONDS = 0.5
_ROUNDS = 20
_FILE, _FOLDER = "lock", "locks"
_LONGEST = 10_000  # bytes that are read of a lock file, which has about a hundred
_SHAPES = {
    "pid": range(1, 2**31),
    "host": str,
    "machine": str,
    "since": float,
    "beat": float,
    "held": bool,
}
_LATEST = 253_402_300_799.0  # the last second that a date can have, in the year 9999

if sys.platform == "win32":
    import msvcrt

    def _take(file: IO[bytes]) -> bool:
        """Lock a file until it is closed; false where another process has locked it.

        Windows lets nobody else read what is locked: the locked byte is far behind the content.
        """
        file.seek(2**30)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _take(file: IO[bytes]) -> bool:
        """Lock a file until it is closed; false where another process has locked it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def lock_of(folder: Path) -> FolderLock | UrlLock:
    """The lock of a sweep's folder, not yet acquired."""
    return UrlLock(folder) if is_remote(folder) else FolderLock(folder)


def unlock(folder: Path) -> list[str]:
    """Remove the lock of a command that no longer exists from a folder; returns who held it, as
    text.
    """
    if not is_remote(folder):
        return FolderLock(folder).clear()
    found = _flags(folder)
    for name in found:
        remove(folder / _FOLDER / name)
    return [_words(flag) for flag in found.values()]


class FolderLock:
    """The lock file of a local folder, with process and host of its holder.

    The operating system frees the lock when its holder dies, so that the next command takes it
    over. The file itself stays: removing it would let two commands hold two locks.
    """

    lost: str | None = None

    def __init__(self, folder: Path):
        self._path = folder / _FILE
        self._file: IO[bytes] | None = None

    def acquire(self) -> None:
        """Take the lock; an error names who holds it."""
        if self._is_foreign():
            raise AttnlabError(
                f"{self._path} is not a file: expected attnlab's lock file there, or nothing; run "
                f"`attnlab runs {self._path.parent} --unlock` to rename it"
            )
        file = open(self._path, "a+b")  # noqa: SIM115  (held until release)
        try:
            file.seek(0)
            holder = _parsed(file.read(_LONGEST))
            taken = not _take(file)
            if taken:
                holder = self._holder(file)
            # A lock that another machine holds may not be seen here, but its name in the file is.
            if taken or holder.get("host") not in (None, socket.gethostname()):
                raise AttnlabError(
                    f"{self._path.parent} is in use by {_words(holder)}: wait until it ends, or "
                    "stop it; if that machine no longer runs, use "
                    f"`attnlab runs {self._path.parent} --unlock`"
                )
            about = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
            self._write(file, json.dumps(about).encode())
        except BaseException:
            file.close()
            raise
        self._file = file

    def release(self) -> None:
        """Release the lock."""
        if self._file is not None:
            with suppress(OSError):
                self._write(self._file, b"")
            self._file.close()
            self._file = None

    def clear(self) -> list[str]:
        """Forget a holder on another machine; a live one on this machine keeps the lock."""
        if self._is_foreign():
            return [f"something that attnlab did not write; it is now {set_aside(self._path)}"]
        if not self._path.exists():
            return []
        with open(self._path, "r+b") as file:
            holder = _parsed(file.read(_LONGEST))
            if not _take(file):
                raise AttnlabError(
                    f"{self._path.parent} is in use by {_words(holder)}, which is running: stop "
                    "it instead"
                )
            self._write(file, b"")
        return [_words(holder)] if holder else []

    def _is_foreign(self) -> bool:
        """Whether something other than a file has the name of the lock."""
        return os.path.lexists(self._path) and not self._path.is_file()

    @staticmethod
    def _holder(file: IO[bytes]) -> dict[str, Any]:
        """Who holds the lock; who took it a moment ago may not have written its name yet."""
        holder: dict[str, Any] = {}
        for _ in range(_ROUNDS):
            file.seek(0)
            holder = _parsed(file.read(_LONGEST))
            elsewhere = holder.get("host") != socket.gethostname()
            if holder.get("pid") and (elsewhere or _is_alive(holder["pid"])):
                return holder
            time.sleep(_MOMENT_SECONDS / _ROUNDS)
        return {"pid": _locking_process(file), "host": socket.gethostname()}

    @staticmethod
    def _write(file: IO[bytes], content: bytes) -> None:
        file.seek(0)
        file.truncate()
        file.write(content)
        file.flush()


class UrlLock:
    """The lock of a folder at a URL, where "create only if absent" does not exist.

    Every command that wants the folder first writes a flag of its own, ``locks/<id>.json``, and then
    reads the others': of two commands at least one sees the other. A command that sees no other
    holds the folder. One that sees a holder, or a candidate with a lower id, removes its flag and
    gives up; the lowest candidate waits for the others to do so. The holder renews its flag every
    20 s; a flag that was not renewed for two minutes, or whose process on this machine is dead, is
    ignored.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._id = uuid.uuid4().hex
        self._path = folder / _FOLDER / f"{self._id}.json"
        self._since = time.time()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.lost: str | None = None

    def acquire(self) -> None:
        """Take the lock; an error names who holds it."""
        self._since = time.time()
        self._put(held=False)
        try:
            self._decide()
            self._put(held=True)
        except BaseException:
            with suppress(OSError):
                remove(self._path)
            raise
        for name, flag in _flags(self._folder).items():
            if name != self._path.name and _is_stale(flag):
                remove(self._folder / _FOLDER / name)
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Release the lock."""
        if self._thread is None:
            return
        self._ended.set()
        self._thread.join()
        self._thread = None
        with suppress(OSError):
            remove(self._path)

    def _decide(self) -> None:
        """Return when no other command wants the folder; raise when another may hold it."""
        for patience in reversed(range(_ROUNDS)):
            others = self._others()
            if not others:
                return
            for name, flag in others.items():
                if flag.get("held") or name < self._path.name or not patience:
                    raise self._taken(flag)
            time.sleep(_MOMENT_SECONDS)

    def _others(self) -> dict[str, dict[str, Any]]:
        flags = _flags(self._folder)
        return {
            name: flag
            for name, flag in flags.items()
            if name != self._path.name and not _is_stale(flag)
        }

    def _taken(self, flag: dict[str, Any]) -> AttnlabError:
        silent = min(max(0.0, time.time() - flag.get("beat", time.time())), _STALE_SECONDS)
        return AttnlabError(
            f"{self._folder} is in use by {_words(flag)}, last active {silent:.0f} s ago: wait "
            "until it ends, or stop it; if it was killed, try again in "
            f"{max(1.0, _STALE_SECONDS - silent):.0f} s, or use "
            f"`attnlab runs {self._folder} --unlock`"
        )

    def _put(self, *, held: bool) -> None:
        flag = {
            "schema": 1,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "machine": _machine(),
            "since": self._since,
            "beat": time.time(),
            "held": held,
        }
        write_atomically(self._path, json.dumps(flag, indent=1).encode())

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_SECONDS):
            with suppress(OSError):  # the network may fail for a while; two minutes are allowed
                self.renew()
            if self.lost is not None:
                return

    def renew(self) -> None:
        """Renew the flag; where another command took the lock, note that and leave it alone."""
        later = [
            flag
            for flag in self._others().values()
            if flag.get("held") and flag.get("since", 0.0) > self._since
        ]
        if later:
            self.lost = _words(later[0])
        elif not is_file(self._path):
            self.lost = "a command that removed its lock (`attnlab runs --unlock`)"
        else:
            self._put(held=True)


def _flags(folder: Path) -> dict[str, dict[str, Any]]:
    """All flags by name. One that was removed in the meantime does not count; one that cannot be
    read counts as held.
    """
    found = {}
    for name in listed(folder / _FOLDER):
        if name.endswith(".json"):
            data = read_if_any(folder / _FOLDER / name)
            if data is not None or is_file(folder / _FOLDER / name):
                found[name] = {"held": True, **_parsed(data or b"")}
    return found


def _is_stale(flag: dict[str, Any]) -> bool:
    if time.time() - flag.get("beat", time.time()) > _STALE_SECONDS:
        return True
    return flag.get("machine") == _machine() and not _is_alive(flag.get("pid"))


def _is_alive(pid: int | None) -> bool:
    """Whether a process of this machine lives; where that cannot be asked, whether it may."""
    if pid is None or sys.platform == "win32":  # where os.kill(pid, 0) would interrupt it
        return True
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False
    except OSError:
        return True


def _locking_process(file: IO[bytes]) -> int | str:
    """The process that holds a lock, as Linux lists it, where the file does not name it."""
    with suppress(OSError):
        number = f":{os.fstat(file.fileno()).st_ino} "
        for line in Path("/proc/locks").read_text().splitlines():
            if number in line and "->" not in line:
                return int(line.split()[4])
    return "unknown"


def _machine() -> str:
    """A name for the set of processes that this one can see: this machine since its last boot, and
    this container on it.
    """
    about = socket.gethostname()
    with suppress(OSError):
        about += Path("/proc/sys/kernel/random/boot_id").read_text()
        about += os.readlink("/proc/self/ns/pid")
    return hashlib.sha256(about.encode()).hexdigest()[:16]


def _parsed(content: bytes) -> dict[str, Any]:
    """The fields of a lock or flag, without those of a wrong type; none where it cannot be read."""
    try:
        flag = parse_json(content)
    except ValueError:
        return {}
    if not isinstance(flag, dict):
        return {}
    return {
        name: flag[name]
        for name, shape in _SHAPES.items()
        if mismatch(flag.get(name), shape) is None
    }


def _words(holder: dict[str, Any]) -> str:
    """Who and since when.

    >>> _words({"pid": 12, "host": "there", "since": 0.0})
    'process 12 on there since 1970-01-01 00:00 UTC'
    """
    text = f"process {holder.get('pid', '?')} on {holder.get('host', '?')[:80]}"
    since = holder.get("since")
    if since is None or not 0 <= since <= _LATEST:
        return text
    return f"{text} since {datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M} UTC"
