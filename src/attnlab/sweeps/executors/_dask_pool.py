"""The workers of a Dask cluster during one sweep, and their chunks."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import queue
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from concurrent.futures import Future as Promise
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attnlab._errors import AttnlabError
from attnlab._places import TEMPORARY, absolute_name, disk_error, remove, write_atomically
from attnlab.sweeps._source import CodeChanged
from attnlab.sweeps.executors import _dask_client, _dask_worker, _messages
from attnlab.sweeps.executors._chunks import (
    MOST_DEATHS,
    MOST_WORKER_DEATHS,
    Chunk,
    Chunks,
    Retries,
    undone,
)
from attnlab.sweeps.executors._dask_client import SchedulerConnection, notify
from attnlab.sweeps.executors._environment import differences, versions
from attnlab.sweeps.executors._executor import Job, Outcome
from attnlab.sweeps.store._store import save_block, save_failures

if TYPE_CHECKING:
    from distributed import Future

_DESCRIPTION_SECONDS = 30.0
_NO_WORKERS_SECONDS = 3.0
_STOP_SECONDS = 1.3
_MOST_QUESTIONS = 5
_IMPORT_ERRORS = ("ModuleNotFoundError", "ImportError", "AttributeError")


@dataclass
class _Worker:
    """A worker: its threads, whether it sees the store (``None``: not known yet), and its last
    chunk.
    """

    threads: int
    shared: bool | None = None
    last_chunk: Chunk | None = None
    early_deaths: int = 0


@dataclass(frozen=True)
class _Lease:
    """A chunk that was given to a worker."""

    address: str
    chunk: Chunk
    shared: bool
    future: Future


class DaskPool:
    """Gives each worker as many chunks as it has threads, and collects their outcomes.

    A chunk is a Dask task that only one worker may take, so that this class decides which worker
    computes what: kinds of runs stay with the worker that has compiled them, and no worker gets any
    before its versions were compared. The caller's thread never waits for the network: coroutines
    do, and put the answers into the inbox.
    """

    def __init__(
        self, job: Job, connection: SchedulerConnection, *, owner: str, limit: float | None
    ):
        self._job, self._connection, self._owner, self._limit = job, connection, owner, limit
        self._sweep, self._token = uuid.uuid4().hex, uuid.uuid4().hex
        self._token_place = job.folder / f"{TEMPORARY}{self._token}"
        self._retries = Retries(job)
        self._workers: dict[str, _Worker] = {}
        self._leases: dict[str, _Lease] = {}
        self._versions = versions()
        self._watch: Promise[Any] | None = None
        self._unanswered: dict[str, int] = {}
        self._notified: set[str] = set()
        self._reset()

    def _reset(self) -> None:
        self._workers.clear()
        self._leases.clear()
        self._inbox: _dask_client.Inbox = queue.SimpleQueue()
        self._started_at = self._last_seen = time.monotonic()
        self._scheduler_known = self._all_known = False
        self.is_silent = False

    def start(self) -> None:
        """Start to watch the workers."""
        self._reset()
        try:
            write_atomically(self._token_place, self._token.encode())
        except OSError as error:
            raise disk_error(self._job.folder, error) from error
        client = self._connection.client
        self._watch = self._connection.spawn(_dask_client.watch_workers(client, self._inbox))
        self._connection.spawn(_dask_client.ask_scheduler(client, self._probe, self._inbox))

    @property
    def _probe(self) -> tuple[str, str]:
        return absolute_name(self._token_place), self._token

    @property
    def is_started(self) -> bool:
        """Whether the workers are watched."""
        return self._watch is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being computed, nor to be tried again."""
        return not self._leases and not self._retries.waiting

    def hand_out(self, chunks: Chunks) -> None:
        """Give chunks to idle workers, once the versions of all workers that were there at the
        start are known.
        """
        if not self._may_start():
            return
        busy: dict[str, int] = {}
        for lease in self._leases.values():
            busy[lease.address] = busy.get(lease.address, 0) + 1
        for address, worker in self._workers.items():
            while worker.shared is not None and busy.get(address, 0) < worker.threads:
                waiting = self._retries.waiting
                chunk = waiting.popleft() if waiting else chunks.take(after=worker.last_chunk)
                if chunk is None:
                    return
                self._submit(address, worker, chunk)
                busy[address] = busy.get(address, 0) + 1

    def _may_start(self) -> bool:
        """Whether all workers that were there at the start are known; one that does not answer is
        waited for for half a minute.
        """
        waited = time.monotonic() - self._started_at > _DESCRIPTION_SECONDS
        all_described = bool(self._workers) and all(
            worker.shared is not None for worker in self._workers.values()
        )
        self._all_known = self._all_known or all_described or waited
        return self._all_known and self._scheduler_known

    def _submit(self, address: str, worker: _Worker, chunk: Chunk) -> None:
        key = f"attnlab-{uuid.uuid4().hex}"
        task = {
            **json.loads(_messages.job_message(self._job, _own_path())),
            **json.loads(_messages.chunk_message(chunk)),
            "key": key,
            "sweep": self._sweep,
            "owner": self._owner,
            "limit": self._limit,
            "shared": worker.shared,
        }
        try:
            future = self._connection.client.submit(
                _dask_worker.compute,
                json.dumps(task).encode(),
                key=key,
                workers=[address],
                pure=False,
                allow_other_workers=False,
            )
        except Exception:  # of a client that has just lost its scheduler, which is noticed soon
            self._retries.put_back(chunk)
            return
        worker.last_chunk = chunk
        self._leases[key] = _Lease(address, chunk, bool(worker.shared), future)
        self._connection.spawn(_dask_client.await_answer(key, future, self._inbox))

    def wait(self, seconds: float) -> Iterator[Outcome]:
        """Wait for messages for so long; the outcomes among them."""
        with suppress(queue.Empty):
            message = self._inbox.get(timeout=seconds) if seconds else self._inbox.get_nowait()
            while True:
                yield from self._handle(*message)
                message = self._inbox.get_nowait()

    def _handle(self, kind: str, about: Any, content: Any) -> Iterator[Outcome]:
        if kind == "answer":
            yield from self._handle_answer(about, content)
        elif kind == "workers":
            yield from self._refresh_workers(content)
        elif kind == "description":
            self._register_worker(about, content)
        elif kind == "scheduler":
            self._refuse("the scheduler", content)
            self._scheduler_known = True
        else:
            self.is_silent = True

    def _refresh_workers(self, threads: dict[str, int]) -> Iterator[Outcome]:
        """Ask new workers to describe themselves; chunks of workers that left are tried again."""
        for address in [address for address in self._workers if address not in threads]:
            del self._workers[address]
            for key in [key for key, lease in self._leases.items() if lease.address == address]:
                yield from self._worker_died(self._leases.pop(key), f"{address} left the cluster")
        for address in [address for address in threads if address not in self._workers]:
            self._workers[address] = _Worker(threads[address])
            self._connection.spawn(
                _dask_client.ask_worker(self._connection.client, address, self._probe, self._inbox)
            )
        if threads:
            self._last_seen = time.monotonic()
        elif time.monotonic() - self._last_seen > _NO_WORKERS_SECONDS:
            self._notify_once("the cluster has no workers now; waiting for some to join")

    def _register_worker(self, address: str, answer: Any) -> None:
        """Note what a worker says about itself, or that it does not answer."""
        worker = self._workers.get(address)
        if worker is None:
            return
        if isinstance(answer, dict):
            self._compare(address, answer["versions"])
            worker.shared = answer["shared"]
            return
        self._refuse(f"worker {address}", answer)
        self._unanswered[address] = self._unanswered.get(address, 0) + 1
        if self._unanswered[address] >= _MOST_QUESTIONS:
            raise AttnlabError(
                f"worker {address} does not answer: {answer!r}; stop it, or read its log"
            )
        del self._workers[address]  # if it is still there, the next refresh asks it again

    def _refuse(self, who: str, answer: Any) -> None:
        """Raise if attnlab's functions are missing there: then not even tasks can be loaded."""
        if isinstance(answer, BaseException) and any(
            name in repr(answer) for name in _IMPORT_ERRORS
        ):
            raise AttnlabError(
                f"{who} has no attnlab, or another one ({answer}): this command has attnlab "
                f"{self._versions['attnlab']}; start scheduler and workers in an environment with "
                "the same"
            )

    def _compare(self, address: str, theirs: dict[str, str]) -> None:
        found = differences(self._versions, theirs)
        if found:
            listing = ", ".join(
                f"{name} {there} (needed: {here})" for name, (here, there) in found.items()
            )
            raise AttnlabError(
                f"worker {address} has {listing}: results would depend on where a run is "
                "computed; install the same versions there, or start this command in the workers' "
                "environment"
            )
        if theirs.get("processor") != self._versions.get("processor"):
            self._notify_once(
                "workers have another kind of processor than this machine: results may differ in "
                "their last bits"
            )

    def _handle_answer(self, key: str, answer: Any) -> Iterator[Outcome]:
        """Handle the answer of a worker, or the error that came instead."""
        lease = self._leases.pop(key, None)
        if lease is None:  # its worker left in the meantime, and its runs are tried again
            return
        if isinstance(answer, CancelledError | asyncio.CancelledError):
            self._retries.put_back(lease.chunk)  # the scheduler has forgotten it
        elif isinstance(answer, BaseException):
            yield from self._worker_died(lease, f"{lease.address}: {answer!r}")
        else:
            yield from self._collect(lease, answer)

    def _collect(self, lease: _Lease, answer: dict[str, Any]) -> Iterator[Outcome]:
        """The outcomes in an answer; runs that are in none of them are tried again, or failed."""
        outcomes = [_messages.read_outcome(json.loads(text)) for text in answer["outcomes"]]
        for outcome in outcomes:
            yield self._stored(lease, outcome, answer["files"])
        left = undone(lease.chunk, outcomes)
        worker = self._workers.get(lease.address, _Worker(0))
        if answer["ended"] is None:
            worker.early_deaths = 0
        elif answer["ended"] == "broken":
            raise AttnlabError(
                f"worker {lease.address} cannot load the work function: {answer['cause']}"
            )
        elif answer["ended"] == "changed":
            raise CodeChanged(
                f"worker {lease.address} has other code than this command ({answer['cause']}); if "
                "nothing was edited, install the same attnlab there, and give it the same files"
            )
        elif answer["ended"] == "stopped":
            self._retries.put_back(left)
        elif answer["ended"] == "overdue" and self._limit is not None:
            yield from self._retries.exceeded(left, answer["current_run"], self._limit)
        else:
            worker.early_deaths = 0 if answer["is_ready"] else worker.early_deaths + 1
            if worker.early_deaths >= MOST_DEATHS:
                raise AttnlabError(
                    f"processes do not start on worker {lease.address} ({answer['cause']}): "
                    f"{answer['stderr_tail'] or 'they left no message'}"
                )
            yield from self._retries.died(
                left, answer["cause"], answer["stderr_tail"], counts=answer["is_ready"]
            )

    def _stored(self, lease: _Lease, outcome: Outcome, files: dict[str, bytes]) -> Outcome:
        """The outcome, after writing to the store what its worker could not write."""
        if outcome.refused is not None:
            return replace(outcome, refused=f"on worker {lease.address}: {outcome.refused}")
        if lease.shared:
            return outcome
        try:
            for block in outcome.blocks:
                if hashlib.sha256(files[block.stem]).hexdigest() != block.sha256:
                    raise OSError(
                        f"block {block.stem} of worker {lease.address} did not arrive as it was "
                        "written"
                    )
                save_block(self._job.folder, block, files[block.stem])
            save_failures(self._job.folder, outcome.failures)
        except OSError as error:
            return Outcome((), (), outcome.seconds, refused=str(error))
        return outcome

    def _worker_died(self, lease: _Lease, explanation: str) -> Iterator[Outcome]:
        lease.future.cancel()
        cause = "the Dask worker that computed it died"
        yield from self._retries.died(lease.chunk, cause, explanation, most=MOST_WORKER_DEATHS)

    def scheduler_lost(self) -> None:
        """The scheduler is lost: all chunks that were being computed are tried again."""
        self._stop_watching()
        for lease in self._leases.values():
            self._retries.put_back(lease.chunk)
        self._leases.clear()

    def stop(self) -> Iterator[Outcome]:
        """Have all workers store or send what is finished; their outcomes, as far as they arrive in
        time.
        """
        if self._leases and self._connection.is_open:
            busy = sorted({lease.address for lease in self._leases.values()})
            self._connection.spawn(
                _dask_client.stop_sweep(self._connection.client, busy, self._sweep)
            )
            deadline = time.monotonic() + _STOP_SECONDS
            while self._leases and time.monotonic() < deadline:
                yield from self.wait(0.05)

    def close(self) -> None:
        """Cancel what is left."""
        self._stop_watching()
        for lease in self._leases.values():
            with suppress(Exception):  # the scheduler may be lost
                lease.future.cancel()
        self._leases.clear()
        with suppress(OSError):
            remove(self._token_place)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _notify_once(self, text: str) -> None:
        if text not in self._notified:
            self._notified.add(text)
            notify(text)


def _own_path() -> list[str]:
    """Where this process imports from besides its installation, which workers need not share."""
    return [
        entry or os.getcwd()
        for entry in sys.path
        if not entry.startswith((sys.prefix, sys.base_prefix))
    ]
