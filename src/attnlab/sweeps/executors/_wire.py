"""What parent and worker processes say to each other: lines of JSON, never pickle."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from attnlab._places import place, whole_name
from attnlab.sweeps._plan import Run
from attnlab.sweeps._settings import freeze
from attnlab.sweeps.executors._executor import Job, Outcome
from attnlab.sweeps.store._manifest import Block, Failure


def line(content: dict[str, Any]) -> bytes:
    """One message."""
    return json.dumps(content).encode() + b"\n"


def job_message(job: Job, path: Iterable[str], *, tell: bool = False) -> bytes:
    """The first message to a worker: what it must know, where the parent imports from, whether to
    ``tell`` each run.
    """
    about = {
        "work": job.work,
        "folder": whole_name(job.folder),
        "root_seed": job.root_seed,
        "source": job.source,
    }
    return line({"do": "begin", "job": about, "path": list(path), "tell": tell})


def chunk_message(runs: Iterable[Run]) -> bytes:
    """Runs to compute."""
    return line(
        {"do": "chunk", "runs": [[run.index, dict(run.settings), run.hash] for run in runs]}
    )


def outcome_message(outcome: Outcome) -> bytes:
    """What became of a chunk."""
    return line(
        {
            "say": "outcome",
            "blocks": [asdict(block) for block in outcome.blocks],
            "failures": [failure.to_json() for failure in outcome.failures],
            "seconds": list(outcome.seconds),
            "refused": outcome.refused,
        }
    )


def read_job(message: dict[str, Any]) -> Job:
    """The inverse of ``job_message``."""
    about = message["job"]
    return Job(about["work"], place(about["folder"]), about["root_seed"], about["source"])


def read_chunk(message: dict[str, Any]) -> tuple[Run, ...]:
    """The inverse of ``chunk_message``."""
    return tuple(
        Run(index, {name: freeze(value) for name, value in settings.items()}, run_hash)
        for index, settings, run_hash in message["runs"]
    )


def read_outcome(message: dict[str, Any]) -> Outcome:
    """The inverse of ``outcome_message``."""
    return Outcome(
        tuple(Block(**{**block, "runs": tuple(block["runs"])}) for block in message["blocks"]),
        tuple(Failure(**failure) for failure in message["failures"]),
        tuple(message["seconds"]),
        message["refused"],
    )
