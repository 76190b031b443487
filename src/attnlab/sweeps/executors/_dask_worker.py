"""What a Dask worker does for a sweep: it passes chunks on to worker processes, which it keeps.

These are the same single-threaded interpreters that ``Processes`` starts, so that results have the
same bits. One that hangs can be killed, while the Dask worker stays responsive; when the Dask worker
dies, the input of its processes ends, and they end with it. Everything here is called by Dask, with
JSON, and returns JSON and bytes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from attnlab._places import place, read_bytes
from attnlab.sweeps.executors import _messages
from attnlab.sweeps.executors._environment import versions, worker_environment
from attnlab.sweeps.executors._executor import Outcome
from attnlab.sweeps.executors._worker_process import TICK_SECONDS, WorkerProcess

_IDLE_SECONDS = 120.0
# Ctrl-C must end a command within two seconds, of which the client waits 1.3 for its workers.
_STOP_SECONDS = 0.8


def describe(token_place: str, token: str) -> dict[str, Any]:
    """The versions on this worker, and whether it sees the client's store, that is, the token in
    it.
    """
    try:
        shared = read_bytes(place(token_place)).decode() == token
    except Exception:  # for whatever reason this worker cannot read there, it sends its results
        shared = False
    return {"versions": versions(), "shared": shared}


def stop(sweep: str) -> None:
    """Store or send what is finished of a sweep, and compute no more of it."""
    _stopped.add(sweep)


def end_idle(owner: str) -> None:
    """End the idle processes that were started for a client."""
    for slot in _slots.remove(lambda slot: slot.owner == owner):
        slot.end()


def compute(request: bytes) -> dict[str, Any]:
    """Have a chunk computed; what became of it, as ``DaskPool`` reads it."""
    task = json.loads(request)
    slot = _slots.take(task["sweep"], task["owner"])
    reusable = False
    try:
        answer = _compute_in(slot, task, _wanted(task["key"], task["sweep"]))
        reusable = answer["ended"] is None
        return answer
    finally:
        if reusable:
            _slots.put(slot)
        else:
            slot.end()


@dataclass
class _Slot:
    """A worker process, the client and sweep that it works for, and where it writes if it does not
    see the store.
    """

    owner: str
    process: WorkerProcess = field(default_factory=lambda: WorkerProcess(worker_environment()))
    sweep: str = ""
    spool: tempfile.TemporaryDirectory[str] | None = None
    idle_since: float = 0.0

    def start_job(self, task: dict[str, Any]) -> None:
        self.sweep = task["sweep"]
        job = _messages.read_job(task)
        self._clear()
        if not task["shared"]:
            self.spool = tempfile.TemporaryDirectory(
                prefix="attnlab-", dir=_scratch(), ignore_cleanup_errors=True
            )
            for part in ("blocks", "failures"):
                (Path(self.spool.name) / part).mkdir()
            job = replace(job, folder=Path(self.spool.name))
        # The client's import path comes last: the installation of this machine is the one whose
        # versions were compared.
        path = [*sys.path, *(entry for entry in task["path"] if entry not in sys.path)]
        self.process.start_job(job, path=path, limit=task["limit"])

    def take_files(self, outcomes: list[Outcome]) -> dict[str, bytes]:
        """The bytes of all blocks that the client has to store; they are removed here."""
        if self.spool is None:
            return {}
        found = {}
        for block in (block for outcome in outcomes for block in outcome.blocks):
            path = Path(self.spool.name) / "blocks" / f"{block.stem}.zip"
            found[block.stem] = path.read_bytes()
            path.unlink()
            path.with_suffix(".json").unlink()
        return found

    def end(self) -> None:
        self.process.end()
        self._clear()

    def _clear(self) -> None:
        if self.spool is not None:
            self.spool.cleanup()
            self.spool = None


class _Slots:
    """The slots of this worker whose processes are idle, those used last at the end."""

    def __init__(self):
        self._idle: list[_Slot] = []
        self._lock = threading.Lock()
        self._cleaner: threading.Thread | None = None

    def take(self, sweep: str, owner: str) -> _Slot:
        """One that worked for this sweep, or for this client; or else a new one."""
        with self._lock:
            for fits in (lambda slot: slot.sweep == sweep, lambda slot: slot.owner == owner):
                for slot in reversed(self._idle):
                    if fits(slot) and not slot.process.has_died:
                        self._idle.remove(slot)
                        return slot
        return _Slot(owner)

    def put(self, slot: _Slot) -> None:
        slot.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(slot)
            if self._cleaner is None:
                self._cleaner = threading.Thread(target=self._clean, daemon=True)
                self._cleaner.start()

    def remove(self, which: Callable[[_Slot], bool]) -> list[_Slot]:
        """Remove some of the idle ones, and return them."""
        with self._lock:
            removed = [slot for slot in self._idle if which(slot)]
            self._idle = [slot for slot in self._idle if slot not in removed]
        return removed

    def _clean(self) -> None:
        """End processes that have been idle for a while: a client that was killed does not end its
        own.
        """
        while True:
            time.sleep(_IDLE_SECONDS / 10)
            for slot in self.remove(
                lambda slot: time.monotonic() - slot.idle_since > _IDLE_SECONDS
            ):
                slot.end()


_slots = _Slots()
_stopped: set[str] = set()


def _compute_in(slot: _Slot, task: dict[str, Any], wanted: Callable[[], bool]) -> dict[str, Any]:
    """Give the chunk to the process and wait for it."""
    if slot.sweep != task["sweep"]:
        slot.start_job(task)
    process = slot.process
    process.compute(_messages.read_chunk(task))
    while True:
        messages, ended = process.wait_and_read(TICK_SECONDS)
        for message in messages:
            if message["type"] in ("broken", "changed"):
                return _answer(slot, [], message["type"], message["cause"])
            process.is_ready = True
            if message["type"] == "outcome":
                process.chunk = None
                return _answer(slot, [_messages.read_outcome(message)], None)
        if ended:
            return _answer(slot, [], "died", *process.end(patience=1.0))
        if process.is_overdue:
            return _answer(slot, process.stop(), "overdue")
        if not wanted():
            return _answer(slot, process.stop(_STOP_SECONDS), "stopped")


def _answer(
    slot: _Slot, outcomes: list[Outcome], ended: str | None, cause: str = "", stderr_tail: str = ""
) -> dict[str, Any]:
    """Outcomes as messages, blocks as bytes where the client stores them, and how the process
    ended, if it did.
    """
    return {
        "outcomes": [_messages.outcome_message(outcome) for outcome in outcomes],
        "files": slot.take_files(outcomes),
        "ended": ended,
        "cause": cause,
        "stderr_tail": stderr_tail,
        "is_ready": slot.process.is_ready,
        "current_run": slot.process.current_run,
    }


def _wanted(key: str, sweep: str) -> Callable[[], bool]:
    """Whether a task is still wanted: not when its client is lost, nor when this worker is about to
    close.
    """
    from distributed import get_worker
    from distributed.core import Status

    worker = get_worker()
    leaving = (Status.closing, Status.closed, Status.failed)

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return (
            sweep not in _stopped
            and worker.status not in leaving
            and task is not None
            and task.state != "cancelled"
        )

    return wanted


def _scratch() -> str:
    """Dask's folder for this worker, which Dask clears even after a kill."""
    from distributed import get_worker

    return get_worker().local_directory
