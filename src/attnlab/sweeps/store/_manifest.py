"""The JSON files of a sweep: the plan with its origin, the labels of blocks, failures."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from attnlab import __version__
from attnlab._errors import AttnlabError
from attnlab._json import seal, unseal
from attnlab._places import read_bytes, read_if_any, write_atomically
from attnlab.sweeps._plan import Plan

SCHEMA = 1
KIND, _BLOCK, _FAILURES = "attnlab sweep", "attnlab block", "attnlab failures"
_AGAIN = (
    "use another folder; if this one holds a sweep, remove the file and run the same plan again: "
    "finished runs are kept"
)
_SOURCES_SHAPE = {"current": str, "earlier": [str], "keep": bool}
_BLOCK_SHAPE = {
    "stem": str,
    "sha256_of_block": str,
    "size": range(2**53),
    "runs": [str],
    "source": str,
}
_FAILURE_SHAPE = {
    "hash": str,
    "settings": {str: object},
    "cause": str,
    "traceback": str,
    "source": str,
}


@dataclass(frozen=True)
class Sources:
    """Whose runs count: those of the code with the hash ``current``; with ``keep`` also those of
    all other code.

    ``earlier`` are the hashes that were current before, the oldest first. A hash is empty for runs
    that were stored before hashes were recorded.
    """

    current: str = ""
    earlier: tuple[str, ...] = ()
    keep: bool = False

    def after(self, current: str, *, keep: bool) -> Sources:
        """What counts when a sweep resumes with code that has the hash ``current``."""
        earlier = dict.fromkeys([*self.earlier, self.current])
        return Sources(current, tuple(name for name in earlier if name != current), keep)

    def rank(self, source: str) -> int | None:
        """Of two versions of a run the one with the lower rank counts; ``None`` never counts."""
        if source == self.current:
            return 0
        if not self.keep:
            return None
        known = self.earlier[::-1]
        return 1 + (known.index(source) if source in known else len(known))


@dataclass(frozen=True)
class Failure:
    """A run that failed: why, the traceback, and the hash of the code that made it."""

    hash: str
    settings: Mapping[str, Any]
    cause: str
    traceback: str
    source: str = ""

    def to_json(self) -> dict[str, Any]:
        """The record as stored."""
        return {**asdict(self), "settings": dict(self.settings)}


@dataclass(frozen=True)
class Block:
    """The label of a block: which runs are in the file of this name, made by which code, and the
    size and checksum of the file.
    """

    stem: str
    sha256: str
    size: int
    runs: tuple[str, ...]
    source: str = ""


def origin() -> dict[str, Any]:
    """The version of attnlab, and its commit, that made the data."""
    return {"package": __version__, "commit": _commit()}


def write_plan(path: Path, plan: Plan, sources: Sources) -> None:
    """Store the plan with its origin and whose runs count; a changed plan keeps the date of the
    first one.
    """
    before = _read_record(path, KIND, {"created": str})
    created = before["created"] if before else _now()
    head = {**origin(), "machine": _machine(), "created": created, "changed": _now()}
    content = {**head, "sources": asdict(sources), "plan": plan.to_json()}
    write_atomically(path, seal(KIND, SCHEMA, content))


def read_plan(path: Path) -> tuple[Plan, Sources]:
    """The stored plan and whose runs count; an error says why the file is not a plan."""
    shape = {"created": str, "plan": {str: object}, "sources": _SOURCES_SHAPE}
    what = "the plan of a sweep"
    record = unseal(
        read_bytes(path), path, kind=KIND, schema=SCHEMA, what=what, again=_AGAIN, shape=shape
    )
    sources = record["sources"]
    try:
        plan = Plan.from_json(record["plan"])
    except AttnlabError as error:
        raise AttnlabError(f"{path}: {error}; {_AGAIN}") from None
    return plan, Sources(sources["current"], tuple(sources["earlier"]), sources["keep"])


def write_block_label(folder: Path, block: Block) -> None:
    """Store a block's label next to where the block will be; writing the block then syncs the names
    of both.
    """
    content = asdict(block)
    label = {**content, "sha256_of_block": content.pop("sha256"), **origin()}
    write_atomically(folder / f"{block.stem}.json", seal(_BLOCK, SCHEMA, label), sync_folder=False)


def read_block_label(path: Path) -> Block | None:
    """The label, or ``None`` where the file is not one."""
    record = _read_record(path, _BLOCK, _BLOCK_SHAPE)
    if record is None or record["stem"] != path.stem:
        return None
    runs = tuple(record["runs"])
    return Block(record["stem"], record["sha256_of_block"], record["size"], runs, record["source"])


def write_failures(
    folder: Path, failures: Iterable[Failure], *, stamp: str | None = None
) -> str | None:
    """Store failures in one new file; returns its name, which begins with the time, or with
    ``stamp``, so that names sort by age.
    """
    records = [failure.to_json() for failure in failures]
    if not records:
        return None
    name = f"{stamp or f'{time.time_ns():020d}'}-{uuid.uuid4().hex[:8]}.json"
    content = {"name": name, "when": _now(), "failures": records}
    write_atomically(folder / name, seal(_FAILURES, SCHEMA, content))
    return name


def read_failures(path: Path) -> list[Failure] | None:
    """The failures in a file, or ``None`` where the file is not one of failures."""
    record = _read_record(path, _FAILURES, {"name": str, "failures": [_FAILURE_SHAPE]})
    if record is None or record["name"] != path.name:
        return None
    names = ("hash", "settings", "cause", "traceback", "source")
    return [Failure(*(failure[name] for name in names)) for failure in record["failures"]]


def _read_record(path: Path, kind: str, shape: Mapping[str, Any]) -> dict[str, Any] | None:
    """A sealed record, or ``None`` where there is none, or the file is damaged."""
    data = read_if_any(path)
    if data is None:
        return None
    try:
        return unseal(data, path, kind=kind, schema=SCHEMA, what=kind, again="", shape=shape)
    except AttnlabError:
        return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _machine() -> dict[str, Any]:
    """What numbers may depend on; nothing that identifies the machine."""
    packages = ("numpy", "scipy", "xarray", "zarr", "jax", "jaxlib")
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": versions,
    }


@cache
def _commit() -> str | None:
    """The commit of the Git repository that attnlab is imported from, if it is in one."""
    here = Path(__file__).parents[2]

    def git(*words: str) -> str:
        answer = subprocess.run(
            ["git", *words], cwd=here, capture_output=True, text=True, timeout=10, check=False
        )
        return answer.stdout.strip() if answer.returncode == 0 else ""

    try:
        tracked = git("ls-files", "--", "__init__.py")
        return (git("rev-parse", "HEAD") or None) if tracked else None
    except (OSError, subprocess.TimeoutExpired):
        return None
