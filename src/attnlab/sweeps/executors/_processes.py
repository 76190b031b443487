"""Several single-threaded worker processes, each a fresh interpreter."""

from __future__ import annotations

import selectors
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from attnlab._errors import AttnlabError
from attnlab.sweeps._source import CodeChanged
from attnlab.sweeps.executors import _messages
from attnlab.sweeps.executors._chunks import MOST_DEATHS, Chunks, Retries, undone
from attnlab.sweeps.executors._environment import usable_cores, worker_environment
from attnlab.sweeps.executors._executor import AbstractExecutor, InProcess, Interrupt, Job, Outcome
from attnlab.sweeps.executors._worker_process import (
    STOP_SECONDS,
    TICK_SECONDS,
    WorkerProcess,
    checked_limit,
)


class Processes(AbstractExecutor):
    """``count`` worker processes, by default one for each core.

    Each is a new interpreter with one thread (nothing is forked, nothing pickled, the caller's
    ``__main__`` is not imported), which compiles once and keeps compiled code between sweeps. A
    process that dies loses only the chunk that it was computing: its runs are tried again one by
    one, at most twice, and then count as failed. What work functions print is kept only to explain
    a death. A run that takes longer than ``time_limit`` seconds (compiling included) is stopped and
    counts as failed.

    Used as a context, the processes stay between sweeps, and so does their compiled code:

        with Processes(2) as executor:
            run_plan(first, "a", executor=executor)
            run_plan(second, "b", executor=executor)
    """

    def __init__(self, count: int | None = None, *, time_limit: float | None = None):
        count = usable_cores() if count is None else count
        if type(count) is not int or count < 1:
            raise AttnlabError(
                f"processes={count!r}: expected a whole number ≥ 1, or 0 to compute in this process"
            )
        self._count, self._limit = count, checked_limit(time_limit)
        self._keeps = False
        self._kept: list[WorkerProcess] = []

    def __enter__(self) -> Processes:
        self._keeps = True
        return self

    def __exit__(self, *error: object) -> None:
        self._keeps = False
        self.rest()

    def rest(self) -> None:
        """End the processes that wait for another sweep, which would start new ones."""
        while self._kept:
            self._kept.pop().end()

    @property
    def width(self) -> int:
        """The number of processes."""
        return self._count

    def outcomes(self, job: Job, chunks: Chunks, interrupt: Interrupt) -> Generator[Outcome]:
        """Keep every process busy until all chunks are computed."""
        pool = _Pool(job, min(self._count, len(chunks)), self._kept, self._limit)
        try:
            while not interrupt.pressed:
                pool.hand_out(chunks)
                if pool.is_idle:
                    if self._keeps:
                        self._kept += pool.release()
                    return
                yield from pool.wait(TICK_SECONDS)
            yield from pool.stop()
        finally:
            pool.kill()


@contextmanager
def executor_for(
    processes: int | None, executor: AbstractExecutor | None
) -> Iterator[AbstractExecutor]:
    """The given ``executor``, or else so many processes (0: this one) until the end of the context."""
    if executor is not None and processes is not None:
        raise AttnlabError("both processes and executor given: give one of them")
    if executor is not None:
        yield executor
    elif processes == 0:
        yield InProcess()
    else:
        with Processes(processes) as made:
            yield made


class _Pool:
    """Worker processes during one sweep, their chunks, and the runs that are to be tried again."""

    def __init__(self, job: Job, count: int, kept: list[WorkerProcess], limit: float | None):
        self._job, self._limit = job, limit
        self._kept = kept
        self._selector = selectors.DefaultSelector()
        self._retries = Retries(job)
        self._early_deaths = 0
        self._environment = worker_environment()
        self._workers: list[WorkerProcess] = []
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        try:
            worker = self._kept.pop()
        except IndexError:
            worker = WorkerProcess(self._environment)
        worker.start_job(self._job, limit=self._limit)
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)

    @property
    def is_idle(self) -> bool:
        return not self._retries.waiting and all(worker.chunk is None for worker in self._workers)

    def hand_out(self, chunks: Chunks) -> None:
        for worker in self._workers:
            if worker.chunk is None:
                waiting = self._retries.waiting
                chunk = waiting.popleft() if waiting else chunks.take(after=worker.last_chunk)
                if chunk is None:
                    return
                worker.compute(chunk)

    def wait(self, seconds: float) -> Iterator[Outcome]:
        """Wait for messages for so long; the outcomes among them."""
        with_messages = [key.data for key, _ in self._selector.select(seconds)]
        # The output of a dead process may be held open by a process that it started.
        died = [
            worker for worker in self._workers if worker not in with_messages and worker.has_died
        ]
        for worker in (*with_messages, *died):
            messages, ended = worker.read()
            for message in messages:
                if message["type"] == "broken":
                    raise AttnlabError(
                        f"a worker process cannot load the work function: {message['cause']}"
                    )
                if message["type"] == "changed":
                    raise CodeChanged(message["cause"])
                worker.is_ready, self._early_deaths = True, 0
                if message["type"] == "outcome":
                    worker.chunk = None
                    yield _messages.read_outcome(message)
            if ended:
                yield from self._replace_dead_worker(worker)
        for worker in [worker for worker in self._workers if worker.is_overdue]:
            yield from self._replace_overdue_worker(worker)

    def _replace_dead_worker(self, worker: WorkerProcess) -> Iterator[Outcome]:
        """Start another process, and decide what becomes of the runs of the one that died."""
        self._remove(worker)
        cause, stderr_tail = worker.end(patience=1.0)  # its output may end a moment before it does
        if not worker.is_ready:
            self._early_deaths += 1
            if self._early_deaths >= MOST_DEATHS:
                reason = stderr_tail or "they left no message"
                raise AttnlabError(f"worker processes do not start ({cause}): {reason}")
        self._start()
        runs = worker.chunk or ()
        yield from self._retries.died(runs, cause, stderr_tail, counts=worker.is_ready)

    def _replace_overdue_worker(self, worker: WorkerProcess) -> Iterator[Outcome]:
        """Store what the process of an overdue run has finished, and start another process."""
        assert self._limit is not None, "without a limit no run is overdue"
        self._remove(worker)
        outcomes = worker.stop()
        worker.end()
        self._start()
        yield from outcomes
        left = undone(worker.chunk or (), outcomes)
        yield from self._retries.exceeded(left, worker.current_run, self._limit)

    def _remove(self, worker: WorkerProcess) -> None:
        self._selector.unregister(worker.output)
        self._workers.remove(worker)

    def stop(self) -> Iterator[Outcome]:
        """Ask all processes to store what is finished and to end; their outcomes, as far as they
        arrive in time.
        """
        for worker in self._workers:
            worker.send(_messages.message("stop"))
        deadline = time.monotonic() + STOP_SECONDS
        waiting = list(self._workers)
        while waiting and time.monotonic() < deadline:
            for key, _ in self._selector.select(TICK_SECONDS):
                messages, ended = key.data.read()
                for message in messages:
                    if message["type"] == "outcome":
                        yield _messages.read_outcome(message)
                if ended:
                    self._selector.unregister(key.fileobj)
                    waiting.remove(key.data)

    def release(self) -> list[WorkerProcess]:
        """Hand the idle processes over to the caller."""
        released, self._workers = self._workers, []
        for worker in released:
            self._selector.unregister(worker.output)
        return released

    def kill(self) -> None:
        for worker in self._workers:
            worker.end()
        self._selector.close()
