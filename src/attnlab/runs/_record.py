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
from attnlab.runs._files import read_json, write_json
from attnlab.runs._plan import Plan

SCHEMA = 1
KIND = "attnlab sweep"


@dataclass(frozen=True)
class Failure:
    """A run that did not end: why, and the traceback."""

    hash: str
    settings: Mapping[str, Any]
    cause: str
    traceback: str

    def to_json(self) -> dict[str, Any]:
        """The record as stored."""
        return {**asdict(self), "settings": dict(self.settings)}


@dataclass(frozen=True)
class Block:
    """The label of a block: which runs are in the file of this name, and what the file must be."""

    stem: str
    sha256: str
    size: int
    runs: tuple[str, ...]


def origin() -> dict[str, Any]:
    """By which version of what the data was made."""
    return {"package": __version__, "commit": _commit()}


def write_plan(path: Path, plan: Plan) -> None:
    """Store the plan with its origin; a plan that changed keeps the date of the first."""
    before = read_json(path)
    created = before.get("created") if isinstance(before, dict) else None
    head = {"schema": SCHEMA, "kind": KIND, **origin(), "machine": _machine(), "created": created or _now()}
    write_json(path, {**head, "changed": _now(), "plan": plan.to_json()})


def read_plan(path: Path) -> Plan:
    """The stored plan, or in words why the file is none."""
    record = read_json(path)
    if not isinstance(record, dict) or record.get("kind") != KIND:
        raise AttnlabError(f"{path} is not the plan of a sweep: expected what attnlab writes there; use another folder")
    if record.get("schema") != SCHEMA:
        raise AttnlabError(
            f"{path} has schema {record.get('schema')!r}, this attnlab ({__version__}) reads {SCHEMA}: "
            f"use the version that wrote it ({record.get('package', 'unknown')}), or another folder"
        )
    return Plan.from_json(record.get("plan", {}))


def write_block_label(folder: Path, block: Block) -> None:
    """Store a block's label beside where the block will be; writing that makes the names of both last."""
    write_json(folder / f"{block.stem}.json", {"schema": SCHEMA, **asdict(block), **origin()}, sync_folder=False)


def read_block_label(path: Path) -> Block | None:
    """The label, or ``None`` where the file is none."""
    record = read_json(path)
    try:
        if record["schema"] != SCHEMA or record["stem"] != path.stem:
            return None
        return Block(record["stem"], record["sha256"], int(record["size"]), tuple(map(str, record["runs"])))
    except (KeyError, TypeError, ValueError):
        return None


def write_failures(folder: Path, failures: Iterable[Failure], *, stamp: str | None = None) -> str | None:
    """Store failures in one new file; its name, which begins with the time or the ``stamp`` and sorts by it."""
    records = [failure.to_json() for failure in failures]
    if not records:
        return None
    name = f"{stamp or f'{time.time_ns():020d}'}-{uuid.uuid4().hex[:8]}.json"
    write_json(folder / name, {"schema": SCHEMA, "when": _now(), "failures": records})
    return name


def read_failures(path: Path) -> list[Failure] | None:
    """The failures in a file, or ``None`` where the file holds none."""
    record = read_json(path)
    try:
        if record["schema"] != SCHEMA:
            return None
        return [Failure(r["hash"], r["settings"], r["cause"], r["traceback"]) for r in record["failures"]]
    except (KeyError, TypeError):
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
        "system": platform.system(), "machine": platform.machine(), "cores": os.cpu_count(),
        "python": platform.python_version(), "packages": versions,
    }  # fmt: skip


@cache
def _commit() -> str | None:
    """The commit of the source tree that attnlab runs from, if it is one."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        answer = subprocess.run(["git", *words], cwd=here, capture_output=True, text=True, timeout=10, check=False)
        return answer.stdout.strip() if answer.returncode == 0 else ""

    try:
        tracked = git("ls-files", "--", "../__init__.py")
        return (git("rev-parse", "HEAD") or None) if tracked else None
    except (OSError, subprocess.TimeoutExpired):
        return None
