"""What lies in a sweep's folder besides data: the plan with its origin, blocks' labels, failures."""

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
from attnlab._places import is_remote, read_bytes
from attnlab._sealed import seal, unseal
from attnlab.sweeps._plan import Plan
from attnlab.sweeps.store._files import write_atomic

SCHEMA = 1
KIND, _BLOCK, _FAILURES = "attnlab sweep", "attnlab block", "attnlab failures"
_AGAIN = (
    "use another folder; where a sweep lies in this one, remove the file and run the same plan "
    "again: finished runs "
    "are kept"
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

    ``earlier`` are the hashes that were current before, the oldest first. Before hashes were
    stored, they were empty.
    """

    current: str = ""
    earlier: tuple[str, ...] = ()
    keep: bool = False

    def after(self, current: str, *, keep: bool) -> Sources:
        """What counts when a sweep goes on with code that has the hash ``current``."""
        earlier = dict.fromkeys([*self.earlier, self.current])
        return Sources(current, tuple(name for name in earlier if name != current), keep)

    def rank(self, source: str) -> int | None:
        """Of two versions of a run the one with the lower rank counts, one with ``None`` never."""
        if source == self.current:
            return 0
        if not self.keep:
            return None
        known = self.earlier[::-1]
        return 1 + (known.index(source) if source in known else len(known))


@dataclass(frozen=True)
class Failure:
    """A run that did not end: why, the traceback, and the hash of the code that made it."""

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
    """The label of a block: which runs are in the file of this name, by which code, and what the
    file must be.
    """

    stem: str
    sha256: str
    size: int
    runs: tuple[str, ...]
    source: str = ""


def origin() -> dict[str, Any]:
    """By which version of what the data was made."""
    return {"package": __version__, "commit": _commit()}


def write_plan(path: Path, plan: Plan, sources: Sources) -> None:
    """Store the plan with its origin and whose runs count; a plan that changed keeps the date of
    the first.
    """
    before = _read_record(path, KIND, {"created": str})
    created = before["created"] if before else _now()
    head = {**origin(), "machine": _machine(), "created": created, "changed": _now()}
    write_atomic(
        path, seal(KIND, SCHEMA, {**head, "sources": asdict(sources), "plan": plan.to_json()})
    )


def read_plan(path: Path) -> tuple[Plan, Sources]:
    """The stored plan and whose runs count, or in words why the file is none."""
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
    """Store a block's label beside where the block will be; writing that makes the names of both
    last.
    """
    content = asdict(block)
    label = {**content, "sha256_of_block": content.pop("sha256"), **origin()}
    write_atomic(folder / f"{block.stem}.json", seal(_BLOCK, SCHEMA, label), sync_folder=False)


def read_block_label(path: Path) -> Block | None:
    """The label, or ``None`` where the file is none."""
    record = _read_record(path, _BLOCK, _BLOCK_SHAPE)
    if record is None or record["stem"] != path.stem:
        return None
    runs = tuple(record["runs"])
    return Block(record["stem"], record["sha256_of_block"], record["size"], runs, record["source"])


def write_failures(
    folder: Path, failures: Iterable[Failure], *, stamp: str | None = None
) -> str | None:
    """Store failures in one new file; its name, which begins with the time or the ``stamp`` and
    sorts by it.
    """
    records = [failure.to_json() for failure in failures]
    if not records:
        return None
    name = f"{stamp or f'{time.time_ns():020d}'}-{uuid.uuid4().hex[:8]}.json"
    write_atomic(
        folder / name, seal(_FAILURES, SCHEMA, {"name": name, "when": _now(), "failures": records})
    )
    return name


def read_failures(path: Path) -> list[Failure] | None:
    """The failures in a file, or ``None`` where the file holds none."""
    record = _read_record(path, _FAILURES, {"name": str, "failures": [_FAILURE_SHAPE]})
    if record is None or record["name"] != path.name:
        return None
    names = ("hash", "settings", "cause", "traceback", "source")
    return [Failure(*(failure[name] for name in names)) for failure in record["failures"]]


def _read_record(path: Path, kind: str, shape: Mapping[str, Any]) -> dict[str, Any] | None:
    """A sealed record, or ``None`` where the file is none.

    A URL that cannot be reached is an error: what lies there may be as it should be.
    """
    try:
        return unseal(
            read_bytes(path), path, kind=kind, schema=SCHEMA, what=kind, again="", shape=shape
        )
    except AttnlabError:
        return None
    except OSError as error:
        if is_remote(path) and not isinstance(error, FileNotFoundError):
            raise
        return None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _machine() -> dict[str, Any]:
    """What may matter for numbers; nothing that names the machine."""
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
    """The commit of the source tree that attnlab runs from, if it is one."""
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
