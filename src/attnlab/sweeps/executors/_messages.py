"""The messages between a worker process and its parent: lines of JSON, never pickle."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from attnlab._places import absolute_name, place
from attnlab.sweeps._plan import Run
from attnlab.sweeps._settings import freeze
from attnlab.sweeps.executors._executor import Job, Outcome
from attnlab.sweeps.store._manifest import Block, Failure


def message(kind: str, **content: Any) -> bytes:
    """One message.

    >>> message("stop")
    b'{"type": "stop"}\\n'
    """
    return json.dumps({"type": kind, **content}).encode() + b"\n"


def job_message(job: Job, *, announce: bool = False) -> bytes:
    """The first message to a worker: the job, and whether the worker is to ``announce`` each run."""
    about = {**vars(job), "folder": absolute_name(job.folder)}
    return message("job", job=about, announce=announce)


def chunk_message(runs: Iterable[Run]) -> bytes:
    """Runs to compute."""
    return message("chunk", runs=[[run.index, dict(run.settings), run.hash] for run in runs])


def outcome_message(outcome: Outcome) -> bytes:
    """What became of a chunk."""
    return message(
        "outcome",
        blocks=[asdict(block) for block in outcome.blocks],
        failures=[failure.to_json() for failure in outcome.failures],
        seconds=list(outcome.seconds),
        refused=outcome.refused,
    )


def read_job(content: dict[str, Any]) -> Job:
    """The inverse of ``job_message``."""
    about = content["job"]
    return Job(**{**about, "folder": place(about["folder"]), "path": tuple(about["path"])})


def read_chunk(content: dict[str, Any]) -> tuple[Run, ...]:
    """The inverse of ``chunk_message``."""
    return tuple(
        Run(index, {name: freeze(value) for name, value in settings.items()}, run_hash)
        for index, settings, run_hash in content["runs"]
    )


def read_outcome(content: dict[str, Any]) -> Outcome:
    """The inverse of ``outcome_message``."""
    return Outcome(
        tuple(Block(**{**block, "runs": tuple(block["runs"])}) for block in content["blocks"]),
        tuple(Failure(**failure) for failure in content["failures"]),
        tuple(content["seconds"]),
        content["refused"],
    )
