"""The executor that computes on a Dask cluster."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import queue
import sys
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab._errors import AttnlabError
from attnlab.sweeps._source import CodeChanged
from attnlab.sweeps.executors import _dask_worker, _messages
from attnlab.sweeps.executors._chunks import Chunk, Chunks, Retries, undone
from attnlab.sweeps.executors._dask_client import connect
from attnlab.sweeps.executors._environment import differences, versions
from attnlab.sweeps.executors._executor import AbstractExecutor, Interrupt, Job, Outcome
from attnlab.sweeps.executors._worker_process import TICK_SECONDS, checked_limit
from attnlab.sweeps.store._store import save_block, save_failures

if TYPE_CHECKING:
    from distributed import Client, Future, Security

# How many tasks there are at once: enough that Dask sees a queue and scales the cluster up, also from
# no worker, and few enough that the sizes of later chunks follow the times of earlier ones.
_TASKS_PER_THREAD, _LEAST_TASKS, _TASKS_WITHOUT_WORKERS = 2, 8, 16
_RETRIES = 2  # by Dask, of a task that raised: a worker process that dies is no such case
_LOOK_SECONDS = 1.0
_REQUEST_SECONDS = 0.5  # Ctrl-C must end a command within two seconds
_STOP_SECONDS = 1.3
_GRACE_SECONDS = 30.0  # beyond the time limit of a run, after which silent workers are restarted


class Cluster(AbstractExecutor):
    """The workers of a Dask cluster, with one process for each of their threads.

    - ``scheduler``: its address (``"tcp://host:8786"``), the file that ``dask scheduler
      --scheduler-file`` writes, or a Dask client;
    - ``time_limit``: a run that takes longer than so many seconds (compiling included) is stopped
      and counts as failed;
    - ``security``: a ``distributed.Security`` for TLS; by default what Dask's configuration says;
    - ``quiet``: do not print the dashboard's address.

    A chunk of runs is an ordinary Dask task that any worker may take (one that has compiled runs of
    its kind is preferred): scaling, stealing and trying
    again are Dask's. Workers receive settings, compute them as ``Processes`` does, and send results,
    which have the same bits if the processors are of one kind. A worker computes nothing unless it
    has all versions on which results depend; one that dies loses only its chunks. If the scheduler
    is lost, and does not come back soon, an error says so.

    Used as a context, connection and processes stay between sweeps:

        with Cluster("scheduler.json", time_limit=600) as executor:
            run_plan(first, "a", executor=executor)
            run_plan(second, "b", executor=executor)
    """

    def __init__(
        self,
        scheduler: str | Path | Client,
        *,
        time_limit: float | None = None,
        security: Security | None = None,
        quiet: bool = False,
    ):
        self._limit, self._quiet = checked_limit(time_limit), quiet
        self._scheduler, self._security = scheduler, security
        self._connected: Client | None = None
        self._owner = ""
        self._keeps = False

    def __enter__(self) -> Cluster:
        self._keeps = True
        self._client  # noqa: B018  (connects)
        return self

    def __exit__(self, *error: object) -> None:
        self._keeps = False
        self._disconnect()

    @property
    def width(self) -> int:
        """The number of all workers' threads now, at least one; others may join later."""
        threads: dict[str, int] = {}
        with suppress(OSError):  # the scheduler may just be lost; outcomes waits for it
            threads = _request(self._client, self._client.nthreads)
        return max(1, sum(threads.values()))

    def outcomes(self, job: Job, chunks: Chunks, interrupt: Interrupt) -> Generator[Outcome]:
        """Keep every worker busy until all chunks are computed."""
        self._owner = self._owner or uuid.uuid4().hex
        tasks = _Tasks(job, self._client, self._owner, self._limit)
        try:
            while not interrupt.pressed:
                tasks.submit(chunks)
                if tasks.is_idle and not len(chunks):
                    return
                yield from tasks.collect(TICK_SECONDS)
            self._end_processes()
            deadline = time.monotonic() + _STOP_SECONDS
            while tasks.running and tasks.is_connected and time.monotonic() < deadline:
                yield from tasks.collect(TICK_SECONDS)
        finally:
            tasks.cancel()
            if not self._keeps:
                self._disconnect()

    @property
    def _client(self) -> Client:
        """The client; connects, and prints the address of the dashboard, if there is none."""
        if self._connected is None:
            self._connected = connect(self._scheduler, self._security)
            if not self._quiet and self._connected.scheduler_info()["services"].get("dashboard"):
                _notify(f"dashboard: {self._connected.dashboard_link}")
        return self._connected

    def _disconnect(self) -> None:
        """End the workers' processes and the connection; a client that was given stays open."""
        client = self._connected
        if client is None:
            return
        self._end_processes()
        if client is not self._scheduler:
            client.close(timeout=1)
        self._connected = None

    def _end_processes(self) -> None:
        """End the processes of this client; those that compute first return what is finished."""
        owner, self._owner = self._owner, ""
        if owner and self._client.status == "running":
            with suppress(OSError):  # workers that do not answer end their idle processes later
                _request(self._client, self._client.run, _dask_worker.end, owner, on_error="ignore")


@dataclass(frozen=True)
class _Task:
    """A task that is being computed: its chunk, and the worker that it prefers, if any."""

    chunk: Chunk
    future: Future
    prefers: str | None


class _Tasks:
    """The Dask tasks of a sweep, of which each computes a chunk."""

    def __init__(self, job: Job, client: Client, owner: str, limit: float | None):
        self._job, self._client, self._owner, self._limit = job, client, owner, limit
        self._retries = Retries(job)
        self.running: dict[str, _Task] = {}
        self._done: list[tuple[Chunk, str]] = []  # with the workers that have compiled their kinds
        self._answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._versions = versions()
        self._submitted = self._threads = 0
        self._looked, self._asked = 0.0, time.monotonic()
        self._notified: set[str] = set()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being computed, nor to be tried again."""
        return not self.running and not self._retries.waiting

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler is there, as far as Dask knows."""
        return self._client.status == "running"

    def submit(self, chunks: Chunks) -> None:
        """Submit tasks while few are waiting."""
        if self._client.status == "connecting":
            self._notify_once("lost the scheduler; trying to connect again")
            return
        if not self.is_connected:
            raise AttnlabError(
                "lost the Dask scheduler; all runs that finished before are kept: start the "
                "scheduler and its workers, and the same command again"
            )
        self._look()
        chunks.workers = max(1, self._threads)
        most = max(_LEAST_TASKS, _TASKS_PER_THREAD * self._threads + 2)
        while len(self.running) < (most if self._threads else _TASKS_WITHOUT_WORKERS):
            last, worker = self._done.pop() if self._done else (None, None)
            waiting = self._retries.waiting
            chunk = waiting.popleft() if waiting else chunks.take(after=last)
            if chunk is None:
                return
            self._submit(chunk, worker)

    def _look(self) -> None:
        """Look how many threads there are, and for workers that are silent; not too often."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        # A scheduler may be busy, and answer next time; one without attnlab only restarts by itself.
        with suppress(OSError, ImportError):
            threads = _request(self._client, self._client.nthreads)
            self._threads = sum(threads.values())
            self._free_stuck(threads)
            if not self._threads:
                self._notify_once("the cluster has no workers now; waiting for some to join")
            if self._limit is not None and now - self._asked > _GRACE_SECONDS:
                self._asked = now
                asked = _dask_worker.restart_silent, self._owner, self._limit + _GRACE_SECONDS
                _request(self._client, self._client.run_on_scheduler, *asked, wait=False)

    def _free_stuck(self, workers: Iterable[str]) -> None:
        """Cancel tasks that no worker has. Dask keeps a task waiting for the worker that it prefers,
        and that has left while there was no other.
        """
        there = (None, *workers)
        left = {key for key, task in self.running.items() if task.prefers not in there}
        if left:
            held = _request(self._client, self._client.processing)
            stuck = left.difference(*held.values())
            self._client.cancel([self.running[key].future for key in stuck])

    def _submit(self, chunk: Chunk, worker: str | None) -> None:
        self._submitted += 1
        # What stands before the first hyphen is the name on Dask's dashboard.
        key = f"{self._job.work.rpartition(':')[2]}-{self._owner}-{self._submitted}"
        job = replace(self._job, folder=Path(), path=_own_path())  # they need not see the store
        task = {
            "key": key,
            "owner": self._owner,
            "versions": self._versions,
            "limit": self._limit,
            "job": json.loads(_messages.job_message(job)),
            "chunk": json.loads(_messages.chunk_message(chunk)),
        }
        request = json.dumps(task).encode()
        future = self._client.submit(
            _portable_compute(),
            request,
            key=key,
            pure=False,
            retries=_RETRIES,
            workers=[worker] if worker else None,
            allow_other_workers=bool(worker),
        )
        self.running[key] = _Task(chunk, future, worker)
        loop: Any = self._client.loop
        loop.add_callback(self._await_answer, key, future)

    async def _await_answer(self, key: str, future: Future) -> None:
        try:
            answer = await future.result()
        except BaseException as error:  # also when it was cancelled
            answer = error
        self._answers.put((key, answer))

    def collect(self, seconds: float) -> Iterator[Outcome]:
        """Wait for answers for so long; their outcomes."""
        with suppress(queue.Empty):
            key, answer = self._answers.get(timeout=seconds)
            while True:
                yield from self._read(self.running.pop(key).chunk, answer)
                key, answer = self._answers.get_nowait()

    def cancel(self) -> None:
        """Cancel what is left."""
        if self.is_connected:
            self._client.cancel([task.future for task in self.running.values()])

    def _read(self, chunk: Chunk, answer: Any) -> Iterator[Outcome]:
        """The outcomes in an answer; runs in none of them are tried again, or failed."""
        from distributed import KilledWorker

        if isinstance(answer, CancelledError | asyncio.CancelledError):
            self._retries.put_back(chunk)  # the connection was lost, or the cluster restarted
        elif isinstance(answer, KilledWorker):
            cause = "the Dask workers that computed it died"
            yield from self._retries.died(chunk, cause, str(answer))
        elif isinstance(answer, BaseException):
            raise AttnlabError(
                f"a task failed {_RETRIES + 1} times on the cluster: {answer!r}"
            ) from answer
        else:
            worker = f"worker {answer['worker']}"
            self._compare(worker, answer["versions"])
            outcomes = [_messages.read_outcome(json.loads(text)) for text in answer["outcomes"]]
            for outcome in outcomes:
                yield self._stored(worker, outcome, answer["files"])
            if answer.get("changed"):
                raise CodeChanged(
                    f"{worker} has other code than this command ({answer['error']}); if nothing "
                    "was edited, install the same attnlab there, and give it the same files"
                )
            if "error" in answer:
                raise AttnlabError(f"{worker}: {answer['error']}")
            self._retries.put_back(undone(chunk, outcomes))
            self._done.append((chunk, answer["worker"]))

    def _compare(self, worker: str, theirs: dict[str, str]) -> None:
        found = differences(self._versions, theirs)
        if found:
            listing = ", ".join(
                f"{name} {there} (needed: {here})" for name, (here, there) in found.items()
            )
            raise AttnlabError(
                f"{worker} has {listing}: results would depend on where a run is computed; install "
                "the same versions there, or start this command in the workers' environment"
            )
        if theirs.get("processor") != self._versions.get("processor"):
            self._notify_once(
                "workers have another kind of processor than this machine: results may differ in "
                "their last bits"
            )

    def _stored(self, worker: str, outcome: Outcome, files: dict[str, bytes]) -> Outcome:
        """The outcome, after its blocks and failures are written to the store."""
        if outcome.refused is not None:
            return replace(outcome, refused=f"on {worker}: {outcome.refused}")
        try:
            for block in outcome.blocks:
                if hashlib.sha256(files[block.stem]).hexdigest() != block.sha256:
                    raise OSError(
                        f"block {block.stem} of {worker} did not arrive as it was written"
                    )
                save_block(self._job.folder, block, files[block.stem])
            save_failures(self._job.folder, outcome.failures)
        except OSError as error:
            return Outcome((), (), outcome.seconds, refused=str(error))
        return outcome

    def _notify_once(self, text: str) -> None:
        if text not in self._notified:
            self._notified.add(text)
            _notify(text)


def _portable_compute() -> Callable[[bytes], dict[str, Any]]:
    """``_dask_worker.compute``, found when it is called: Dask sends a nested function by value, so that
    a worker without attnlab can load it and say so. A function that cannot be loaded would end the
    worker.
    """

    def compute(request: bytes) -> dict[str, Any]:
        try:
            from attnlab.sweeps.executors import _dask_worker
        except ImportError:
            from distributed import get_worker

            versions = {"attnlab": "not installed, or another one"}
            return {"worker": get_worker().address, "versions": versions}
        return _dask_worker.compute(request)

    return compute


def _notify(text: str) -> None:
    print(f"attnlab: {text}", file=sys.stderr, flush=True)


def _request(client: Client, method: Any, *args: Any, **options: Any) -> Any:
    """Call a method of the client, but do not wait long for the network."""
    return client.sync(method, *args, callback_timeout=_REQUEST_SECONDS, **options)


def _own_path() -> tuple[str, ...]:
    """Where this process imports from besides its installation, which workers need not share."""
    installed = (sys.prefix, sys.base_prefix)
    return tuple(entry or os.getcwd() for entry in sys.path if not entry.startswith(installed))
