"""Several single-threaded worker processes, each a fresh interpreter."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import IO, Any

from attnlab._errors import AttnlabError
from attnlab.runs import _wire
from attnlab.runs._chunks import Chunk, Chunks
from attnlab.runs._environment import usable_cores, worker_environment
from attnlab.runs._execute import AbstractExecutor, Interrupt, Job, Outcome
from attnlab.runs._record import Failure
from attnlab.runs._store import save_failures

_MOST_DEATHS = 3  # the first attempt and two more
_PATIENCE_SECONDS = 1.2
_TICK_SECONDS = 0.1


class Processes(AbstractExecutor):
    """``count`` worker processes, by default one for each core.

    Each is a new interpreter with one thread (nothing is forked, nothing pickled, the caller's ``__main__`` is not
    imported) that compiles once and keeps compiled code between sweeps. A process that dies loses only the chunk that
    it was computing: its runs are tried again one by one, at most twice, and then count as failed. What work functions
    print is kept only to explain a death.

    Used as a context, the processes stay between sweeps, and so does what they have compiled:

        with Processes(2) as executor:
            run_plan(first, "a", executor=executor)
            run_plan(second, "b", executor=executor)
    """

    def __init__(self, count: int | None = None):
        count = usable_cores() if count is None else count
        if type(count) is not int or count < 1:
            raise AttnlabError(f"processes={count!r}: expected a whole number ≥ 1, or 0 to compute in this process")
        self._count = count
        self._keeps = False
        self._kept: list[_Child] = []

    def __enter__(self) -> Processes:
        self._keeps = True
        return self

    def __exit__(self, *error: object) -> None:
        self._keeps = False
        while self._kept:
            self._kept.pop().end()

    @property
    def width(self) -> int:
        """The number of processes."""
        return self._count

    def outcomes(self, job: Job, chunks: Chunks, interrupt: Interrupt) -> Generator[Outcome]:
        """Keep every process busy until all chunks are computed."""
        pool = _Pool(job, min(self._count, len(chunks)), self._kept)
        try:
            while not interrupt.pressed:
                pool.hand_out(chunks)
                if pool.is_idle:
                    if self._keeps:
                        self._kept += pool.release()
                    return
                yield from pool.listen(_TICK_SECONDS)
            yield from pool.stop()
        finally:
            pool.kill()


class _Pool:
    """Worker processes, the chunks they are at, and the runs of the dead that are to be tried again."""

    def __init__(self, job: Job, count: int, kept: list[_Child]):
        self._job = job
        self._kept = kept
        self._selector = selectors.DefaultSelector()
        self._again: deque[Chunk] = deque()
        self._deaths: dict[str, int] = {}
        self._early_deaths = 0
        self._environment = worker_environment()
        self._children: list[_Child] = []
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        child = self._kept.pop() if self._kept else _Child(self._environment)
        child.begin(self._job)
        self._children.append(child)
        self._selector.register(child.answers, selectors.EVENT_READ, child)

    @property
    def is_idle(self) -> bool:
        return not self._again and all(child.chunk is None for child in self._children)

    def hand_out(self, chunks: Chunks) -> None:
        for child in self._children:
            if child.chunk is None:
                chunk = self._again.popleft() if self._again else chunks.take(after=child.last)
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
                    raise AttnlabError(f"a worker process cannot load the work function: {message['cause']}")
                child.ready, self._early_deaths = True, 0
                if message["say"] == "outcome":
                    child.chunk = None
                    yield _wire.read_outcome(message)
            if ended:
                yield from self._bury(child)

    def _bury(self, child: _Child) -> Iterator[Outcome]:
        """A process died: replace it, and decide what becomes of its runs."""
        chunk = child.chunk
        self._selector.unregister(child.answers)
        self._children.remove(child)
        cause, last_words = child.end(patience=1.0)  # its output may end a moment before itself
        if not child.ready:
            self._early_deaths += 1
            if self._early_deaths >= _MOST_DEATHS:
                raise AttnlabError(f"worker processes do not start ({cause}): {last_words or 'they left no message'}")
        lost = []
        for run in chunk or ():
            self._deaths[run.hash] = self._deaths.get(run.hash, 0) + child.ready
            if self._deaths[run.hash] >= _MOST_DEATHS:
                lost.append(Failure(run.hash, dict(run.settings), cause, last_words))
            else:
                self._again.append((run,))
        self._start()
        if lost:
            yield self._record(lost)

    def _record(self, lost: list[Failure]) -> Outcome:
        try:
            save_failures(self._job.folder, lost)
        except OSError as error:
            return Outcome((), (), (), refused=str(error))
        return Outcome((), tuple(lost), ())

    def stop(self) -> Iterator[Outcome]:
        """Ask all processes to store what is finished and leave; those that do not answer are killed soon."""
        for child in self._children:
            child.say(_wire.line({"do": "stop"}))
        deadline = time.monotonic() + _PATIENCE_SECONDS
        waiting = list(self._children)
        while waiting and time.monotonic() < deadline:
            for key, _ in self._selector.select(_TICK_SECONDS):
                messages, ended = key.data.read()
                yield from (_wire.read_outcome(message) for message in messages if message["say"] == "outcome")
                if ended:
                    self._selector.unregister(key.fileobj)
                    waiting.remove(key.data)

    def release(self) -> list[_Child]:
        """Give the processes away, alive and idle."""
        given, self._children = self._children, []
        for child in given:
            self._selector.unregister(child.answers)
        return given

    def kill(self) -> None:
        for child in self._children:
            child.end()
        self._selector.close()


class _Child:
    """One worker process."""

    def __init__(self, environment: dict[str, str]):
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed in end)
        # A process group of its own: Ctrl-C reaches the parent alone, which then decides. Safe path: the caller's
        # folder is not searched before the standard library.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "attnlab.runs._worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._stderr, env=environment, bufsize=0, process_group=0,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self.answers = self._process.stdin, self._process.stdout
        os.set_blocking(self.answers.fileno(), False)
        self._rest = b""
        self.ready = False
        self.chunk: Chunk | None = None
        self.last: Chunk | None = None

    def begin(self, job: Job) -> None:
        self.ready, self.last = False, None
        self.say(_wire.job_message(job, sys.path))

    def say(self, message: bytes) -> None:
        with suppress(OSError):  # of a process that has just died; reading from it will tell
            while message:
                message = message[self._orders.write(message) :]

    def give(self, chunk: Chunk) -> None:
        self.chunk = self.last = chunk
        self.say(_wire.chunk_message(chunk))

    @property
    def has_died(self) -> bool:
        return self._process.poll() is not None

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """The messages that have arrived, and whether they were the last."""
        died = self.has_died  # asked before reading: what a dead process has said is then all there
        try:
            data = os.read(self.answers.fileno(), 1 << 20)
            ended = not data
        except BlockingIOError:
            data, ended = b"", died
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(text) for text in lines], ended

    def end(self, patience: float = 0.0) -> tuple[str, str]:
        """End the process; how it ended, and the last that it wrote to standard error."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._process.kill()
        code = self._process.wait()
        for pipe in (self._orders, self.answers):
            with suppress(OSError):
                pipe.close()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - 2000))
        last_words = self._stderr.read().decode(errors="replace").strip()
        self._stderr.close()
        return f"process died with signal {-code}" if code < 0 else f"process ended with code {code}", last_words
