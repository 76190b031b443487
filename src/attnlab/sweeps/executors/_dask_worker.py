"""What a Dask worker does for a sweep: it hands chunks on to child processes, which it keeps.

A child is the same single-threaded interpreter that ``Processes`` starts, so that results have the
same bits. It can be killed when it hangs, while the Dask worker goes on giving signs of life; when
the Dask worker dies, its children's input ends, and they end with it. Everything here is called by
Dask, with JSON, and answers with JSON and bytes.
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
from attnlab.sweeps.executors import _wire
from attnlab.sweeps.executors._environment import worker_environment
from attnlab.sweeps.executors._executor import Outcome
from attnlab.sweeps.executors._versions import versions
from attnlab.sweeps.executors._worker_process import TICK_SECONDS, Child

_IDLE_SECONDS = 120.0
_STOP_PATIENCE = (
    0.8  # the client waits twice as long, and Ctrl-C must end a command within two seconds
)


def hello(token_place: str, token: str) -> dict[str, Any]:
    """What results depend on here, and whether this worker sees the client's store: the token that
    lies there.
    """
    try:
        shared = read_bytes(place(token_place)).decode() == token
    except (
        Exception
    ):  # whatever keeps this worker from reading there, it then sends its results back
        shared = False
    return {"versions": versions(), "shared": shared}


def stop(sweep: str) -> None:
    """Store or answer what is finished of a sweep, and compute no more of it."""
    _stopped.add(sweep)


def dismiss(owner: str) -> None:
    """End the idle processes that were started for a client."""
    for desk in _desks.leave(lambda desk: desk.owner == owner):
        desk.end()


def compute(order: bytes) -> dict[str, Any]:
    """Have a chunk computed; what became of it, as ``Answer`` of the client's side reads it."""
    asked = json.loads(order)
    desk = _desks.take(asked["sweep"], asked["owner"])
    kept = False
    try:
        answer = _attend(desk, asked, _wanted(asked["key"], asked["sweep"]))
        kept = answer["ended"] is None
        return answer
    finally:
        if kept:
            _desks.put(desk)
        else:
            desk.end()


@dataclass
class _Desk:
    """A child process, for whom it works, and where it writes if it does not see the store."""

    owner: str
    child: Child = field(default_factory=lambda: Child(worker_environment()))
    sweep: str = ""
    spool: tempfile.TemporaryDirectory[str] | None = None
    idle_since: float = 0.0

    def begin(self, asked: dict[str, Any]) -> None:
        self.sweep = asked["sweep"]
        job = _wire.read_job(asked)
        self._clear()
        if not asked["shared"]:
            self.spool = tempfile.TemporaryDirectory(
                prefix="attnlab-", dir=_scratch(), ignore_cleanup_errors=True
            )
            for part in ("blocks", "failures"):
                (Path(self.spool.name) / part).mkdir()
            job = replace(job, folder=Path(self.spool.name))
        # What the client imports from comes last: this machine's own installation is the one that
        # was compared.
        own = [*sys.path, *(entry for entry in asked["path"] if entry not in sys.path)]
        self.child.begin(job, path=own, limit=asked["limit"])

    def take_files(self, outcomes: list[Outcome]) -> dict[str, bytes]:
        """The bytes of all blocks that the client has to store, which need not lie here any longer."""
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
        self.child.end()
        self._clear()

    def _clear(self) -> None:
        if self.spool is not None:
            self.spool.cleanup()
            self.spool = None


class _Desks:
    """The idle child processes of this worker, those used last at the end."""

    def __init__(self):
        self._idle: list[_Desk] = []
        self._lock = threading.Lock()
        self._janitor: threading.Thread | None = None

    def take(self, sweep: str, owner: str) -> _Desk:
        """A process that works for this sweep already, or for this client; or else a new one."""
        with self._lock:
            for fits in (lambda desk: desk.sweep == sweep, lambda desk: desk.owner == owner):
                for desk in reversed(self._idle):
                    if fits(desk) and not desk.child.has_died:
                        self._idle.remove(desk)
                        return desk
        return _Desk(owner)

    def put(self, desk: _Desk) -> None:
        desk.idle_since = time.monotonic()
        with self._lock:
            self._idle.append(desk)
            if self._janitor is None:
                self._janitor = threading.Thread(target=self._tidy, daemon=True)
                self._janitor.start()

    def leave(self, which: Callable[[_Desk], bool]) -> list[_Desk]:
        """Take some out of the idle ones."""
        with self._lock:
            gone = [desk for desk in self._idle if which(desk)]
            self._idle = [desk for desk in self._idle if desk not in gone]
        return gone

    def _tidy(self) -> None:
        """End processes that nobody has needed for a while: a client that was killed does not
        dismiss its own.
        """
        while True:
            time.sleep(_IDLE_SECONDS / 10)
            for desk in self.leave(lambda desk: time.monotonic() - desk.idle_since > _IDLE_SECONDS):
                desk.end()


_desks = _Desks()
_stopped: set[str] = set()


def _attend(desk: _Desk, asked: dict[str, Any], wanted: Callable[[], bool]) -> dict[str, Any]:
    """Give the chunk to the child and wait for it."""
    if desk.sweep != asked["sweep"]:
        desk.begin(asked)
    child = desk.child
    child.give(_wire.read_chunk(asked))
    while True:
        messages, ended = child.listen(TICK_SECONDS)
        for message in messages:
            if message["say"] in ("broken", "changed"):
                return _answer(desk, [], message["say"], message["cause"])
            child.ready = True
            if message["say"] == "outcome":
                child.chunk = None
                return _answer(desk, [_wire.read_outcome(message)], None)
        if ended:
            return _answer(desk, [], "died", *child.end(patience=1.0))
        if child.overdue:
            return _answer(desk, child.settle(), "late")
        if not wanted():
            return _answer(desk, child.settle(_STOP_PATIENCE), "stopped")


def _answer(
    desk: _Desk, outcomes: list[Outcome], ended: str | None, cause: str = "", last_words: str = ""
) -> dict[str, Any]:
    """Outcomes as messages, blocks as bytes where the client stores them, and how the child ended,
    if it did.
    """
    return {
        "outcomes": [_wire.outcome_message(outcome) for outcome in outcomes],
        "files": desk.take_files(outcomes),
        "ended": ended,
        "cause": cause,
        "last_words": last_words,
        "ready": desk.child.ready,
        "at": desk.child.at,
    }


def _wanted(key: str, sweep: str) -> Callable[[], bool]:
    """Whether anybody still waits for a task: not when its client is gone, nor when this worker is
    about to close.
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
    """Dask's own folder for this worker, which it clears even after a kill."""
    from distributed import get_worker

    return get_worker().local_directory
