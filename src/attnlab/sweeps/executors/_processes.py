"""Several single-threaded worker processes, each a fresh interpreter."""

from __future__ import annotations

import selectors
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from attnlab._errors import AttnlabError
from attnlab.sweeps._source import CodeChanged
from attnlab.sweeps.executors import _wire
from attnlab.sweeps.executors._chunks import Chunks
from attnlab.sweeps.executors._environment import usable_cores, worker_environment
from attnlab.sweeps.executors._executor import AbstractExecutor, InProcess, Interrupt, Job, Outcome
from attnlab.sweeps.executors._retries import MOST_DEATHS, Retries, undone
from attnlab.sweeps.executors._worker_process import (
    PATIENCE_SECONDS,
    TICK_SECONDS,
    Child,
    checked_limit,
)


class Processes(AbstractExecutor):
    """``count`` worker processes, by default one for each core.

    Each is a new interpreter with one thread (nothing is forked, nothing pickled, the caller's
    ``__main__`` is not imported) that compiles once and keeps compiled code between sweeps. A
    process that dies loses only the chunk that it was computing: its runs are tried again one by
    one, at most twice, and then count as failed. What work functions print is kept only to explain
    a death. A run that takes longer than ``time_limit`` seconds (compiling included) is stopped and
    counts as failed.

    Used as a context, the processes stay between sweeps, and so does what they have compiled:

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
        self._kept: list[Child] = []

    def __enter__(self) -> Processes:
        self._keeps = True
        return self

    def __exit__(self, *error: object) -> None:
        self._keeps = False
        self.rest()

    def rest(self) -> None:
        """End the processes that wait for a further sweep; it would start new ones."""
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
                yield from pool.listen(TICK_SECONDS)
            yield from pool.stop()
        finally:
            pool.kill()


@contextmanager
def executor_for(
    processes: int | None, executor: AbstractExecutor | None
) -> Iterator[AbstractExecutor]:
    """The ``executor`` that was given, or else processes (0: this one) that stay until the end of
    the context.
    """
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
    """Worker processes, the chunks they are at, and the runs of the dead that are to be tried
    again.
    """

    def __init__(self, job: Job, count: int, kept: list[Child], limit: float | None):
        self._job, self._limit = job, limit
        self._kept = kept
        self._selector = selectors.DefaultSelector()
        self._retries = Retries(job)
        self._early_deaths = 0
        self._environment = worker_environment()
        self._children: list[Child] = []
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        child = self._kept.pop() if self._kept else Child(self._environment)
        child.begin(self._job, limit=self._limit)
        self._children.append(child)
        self._selector.register(child.answers, selectors.EVENT_READ, child)

    @property
    def is_idle(self) -> bool:
        return not self._retries.waiting and all(child.chunk is None for child in self._children)

    def hand_out(self, chunks: Chunks) -> None:
        for child in self._children:
            if child.chunk is None:
                waiting = self._retries.waiting
                chunk = waiting.popleft() if waiting else chunks.take(after=child.last)
                if chunk is None:
                    return
                child.give(chunk)

    def listen(self, seconds: float) -> Iterator[Outcome]:
        """Outcomes that arrive in the meantime."""
        speaking = [key.data for key, _ in self._selector.select(seconds)]
        # A dead process whose output is held open by a process of its own says nothing more.
        silent = [child for child in self._children if child not in speaking and child.has_died]
        for child in (*speaking, *silent):
            messages, ended = child.read()
            for message in messages:
                if message["say"] == "broken":
                    raise AttnlabError(
                        f"a worker process cannot load the work function: {message['cause']}"
                    )
                if message["say"] == "changed":
                    raise CodeChanged(message["cause"])
                child.ready, self._early_deaths = True, 0
                if message["say"] == "outcome":
                    child.chunk = None
                    yield _wire.read_outcome(message)
            if ended:
                yield from self._bury(child)
        for child in [child for child in self._children if child.overdue]:
            yield from self._stop_late(child)

    def _bury(self, child: Child) -> Iterator[Outcome]:
        """A process died: replace it, and decide what becomes of its runs."""
        self._remove(child)
        cause, last_words = child.end(patience=1.0)  # its output may end a moment before itself
        if not child.ready:
            self._early_deaths += 1
            if self._early_deaths >= MOST_DEATHS:
                said = last_words or "they left no message"
                raise AttnlabError(f"worker processes do not start ({cause}): {said}")
        self._start()
        yield from self._retries.died(child.chunk or (), cause, last_words, counts=child.ready)

    def _stop_late(self, child: Child) -> Iterator[Outcome]:
        """A run exceeds its time limit: store what its process has finished, and replace the
        process.
        """
        assert self._limit is not None, "without a limit nothing is late"
        self._remove(child)
        told = child.settle()
        child.end()
        self._start()
        yield from told
        yield from self._retries.late(undone(child.chunk or (), told), child.at, self._limit)

    def _remove(self, child: Child) -> None:
        self._selector.unregister(child.answers)
        self._children.remove(child)

    def stop(self) -> Iterator[Outcome]:
        """Ask all processes to store what is finished and leave; those that do not answer are
        killed soon.
        """
        for child in self._children:
            child.say(_wire.line({"do": "stop"}))
        deadline = time.monotonic() + PATIENCE_SECONDS
        waiting = list(self._children)
        while waiting and time.monotonic() < deadline:
            for key, _ in self._selector.select(TICK_SECONDS):
                messages, ended = key.data.read()
                yield from (
                    _wire.read_outcome(message)
                    for message in messages
                    if message["say"] == "outcome"
                )
                if ended:
                    self._selector.unregister(key.fileobj)
                    waiting.remove(key.data)

    def release(self) -> list[Child]:
        """Give the processes away, alive and idle."""
        given, self._children = self._children, []
        for child in given:
            self._selector.unregister(child.answers)
        return given

    def kill(self) -> None:
        for child in self._children:
            child.end()
        self._selector.close()
