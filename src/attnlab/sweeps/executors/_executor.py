"""What an executor is, how a chunk of runs is computed and stored, and the executor that computes
in this process.
"""

from __future__ import annotations

import signal
import threading
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab._errors import AttnlabError
from attnlab.sweeps._plan import Run
from attnlab.sweeps._source import CodeChanged, Watch
from attnlab.sweeps._work import LoadedWork, load_work
from attnlab.sweeps.store._manifest import Block, Failure
from attnlab.sweeps.store._stack import Stack
from attnlab.sweeps.store._store import save_failures, save_runs

if TYPE_CHECKING:
    from attnlab.sweeps.executors._chunks import Chunks

_PENDING_BYTES = 64_000_000  # finished runs that are kept in memory before they are written
_TRACEBACK_CHARACTERS = 20_000


@dataclass(frozen=True)
class Job:
    """What every worker of a sweep must know; ``source`` is the hash of the code that the sweep was
    started with, ``batch`` how many runs one call of a batched work function computes, ``path``
    where to import from besides the path of the process that starts the worker.
    """

    work: str
    folder: Path
    root_seed: int
    source: str
    batch: int | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of a chunk: the blocks that were written, the failures, and the time of each run.

    ``refused`` is the operating system's message if the disk refused a write; then nothing more can
    be stored.
    """

    blocks: tuple[Block, ...]
    failures: tuple[Failure, ...]
    seconds: tuple[float, ...]
    refused: str | None = None


class AbstractExecutor(ABC):
    """Where runs are computed. An executor takes chunks of runs and yields their outcomes, in any
    order.

    The process that computes a chunk also writes it to the store: ``Worker.compute`` does both. A
    run must not depend on where it is computed, nor on the other runs of its chunk or group.
    """

    @property
    @abstractmethod
    def width(self) -> int:
        """How many chunks are computed at once."""

    def rest(self) -> None:  # noqa: B027  (most executors keep nothing)
        """Release what is kept between sweeps, since there will be none for a long time."""

    @abstractmethod
    def outcomes(self, job: Job, chunks: Chunks, interrupt: Interrupt) -> Generator[Outcome]:
        """Compute all chunks; once ``interrupt.pressed``, end within two seconds and keep what is
        finished.
        """


class InProcess(AbstractExecutor):
    """Computes in this process, one run after another: for debugging, and where processes cannot be
    started.

    JAX uses as many threads as it was started with; single-threaded results need ``XLA_FLAGS`` and
    ``NPROC`` set before.
    """

    @property
    def width(self) -> int:
        """One."""
        return 1

    def outcomes(self, job: Job, chunks: Chunks, interrupt: Interrupt) -> Generator[Outcome]:
        """Compute chunk by chunk. Ctrl-C ends the run that is being computed."""
        worker = Worker(job, load_work(job.work), guard=interrupt.raising)
        for chunk in chunks:
            yield worker.compute(chunk, lambda: interrupt.pressed)
            if interrupt.pressed:
                return


class Interrupt:
    """Whether Ctrl-C was pressed (or ``stopped`` says so), and whether it raises
    ``KeyboardInterrupt`` at once.
    """

    def __init__(self, stopped: Callable[[], bool] = lambda: False):
        self._pressed, self._stopped = False, stopped
        self.raises = False

    @property
    def pressed(self) -> bool:
        """Whether to end."""
        return self._pressed or self._stopped()

    def press(self) -> None:
        """Ask to end."""
        self._pressed = True

    def raising(self) -> AbstractContextManager[None]:
        """In this context Ctrl-C also raises ``KeyboardInterrupt`` at once."""
        return _Raising(self)


class _Raising(AbstractContextManager[None]):
    def __init__(self, interrupt: Interrupt):
        self._interrupt = interrupt

    def __enter__(self) -> None:
        self._interrupt.raises = True

    def __exit__(self, *error: object) -> None:
        self._interrupt.raises = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into an orderly end; a second one raises at once. Only in the main
    thread.
    """
    state = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield state
        return
    before = signal.getsignal(signal.SIGINT)

    def handler(number: int, frame: object) -> None:
        del number, frame
        again = state.pressed
        state.press()
        if again or state.raises:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handler)
    try:
        yield state
    finally:
        signal.signal(signal.SIGINT, before)


class Worker:
    """Computes chunks and stores them. Finished runs stay in memory until the chunk is done or
    ``flush`` is called.

    ``flush`` may be called from another thread; ``lock`` is held whenever finished runs are moved.
    Raises ``CodeChanged`` where the work function is not the one of the job, or loads a module that
    was edited in the meantime.
    """

    def __init__(
        self,
        job: Job,
        work: LoadedWork,
        guard: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ):
        if work.source.hash != job.source:
            raise CodeChanged(
                f"the code of {job.work} changed while the sweep was under way; all runs that "
                "finished before are kept, start the same command again"
            )
        self._job, self._work, self._guard = job, work, guard
        self._watch = Watch(work.source)
        self.lock = threading.RLock()
        self._reset()

    def _reset(self) -> None:
        self._stacks: list[Stack] = []
        self._blocks: list[Block] = []
        self._failures: list[Failure] = []
        self._seconds: list[float] = []

    def compute(self, chunk: Iterable[Run], stopped: Callable[[], bool]) -> Outcome:
        """Compute the runs, one by one or in groups, and store them; a run that raises is recorded as
        failed.
        """
        try:
            for group in _groups(chunk, self._work.batch or 1):
                if stopped():
                    break
                started = time.perf_counter()
                results = self._attempt(group)
                seconds = (time.perf_counter() - started) / len(group)
                with self.lock:
                    for result in results:
                        self._collect(result, seconds)
        except KeyboardInterrupt:
            if not stopped():
                raise
        except OSError as error:  # of the store: _attempt catches what a work function raises
            return self._refused(error)
        return self.flush()

    def flush(self) -> Outcome:
        """Store what is finished; returns what was done since the last time."""
        with self.lock:
            self._watch.check()
            try:
                self._write()
                save_failures(self._job.folder, self._failures)
            except OSError as error:
                return self._refused(error)
            outcome = Outcome(tuple(self._blocks), tuple(self._failures), tuple(self._seconds))
            self._reset()
            return outcome

    def _refused(self, error: OSError) -> Outcome:
        outcome = Outcome(tuple(self._blocks), (), tuple(self._seconds), refused=str(error))
        self._reset()
        return outcome

    def _attempt(self, group: Sequence[Run]) -> list[Stack | Failure]:
        """The results of a group. If it raises, its halves are tried: only runs that raise alone fail."""
        try:
            return self._call(group)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # even SystemExit: a work function must not end the sweep
            if len(group) == 1:
                return [_failure(group[0], error, self._job.source)]
        half = len(group) // 2
        return self._attempt(group[:half]) + self._attempt(group[half:])

    def _call(self, group: Sequence[Run]) -> list[Stack | Failure]:
        """Call the work function, a batched one always with as many runs: the last is repeated."""
        work, batch = self._work, self._work.batch
        calls: list[Any] = [work.settings.build(run.settings) for run in group]
        contexts = [run.context(self._job.root_seed) for run in group]
        with self._guard():
            if batch is None:
                data = [work.function(calls[0], contexts[0])]
            else:
                missing = batch - len(group)
                calls, contexts = calls + calls[-1:] * missing, contexts + contexts[-1:] * missing
                data = _one_for_each(work.function(calls, contexts), batch)
            return [Stack.of_run(run.hash, one) for run, one in zip(group, data, strict=False)]

    def _collect(self, result: Stack | Failure, seconds: float) -> None:
        self._seconds.append(seconds)
        if isinstance(result, Failure):
            self._failures.append(result)
            return
        self._stacks.append(result)
        if sum(stack.nbytes for stack in self._stacks) > _PENDING_BYTES:
            self._watch.check()
            self._write()

    def _write(self) -> None:
        if self._stacks:
            self._blocks.append(save_runs(self._job.folder, self._stacks, self._job.source))
            self._stacks = []


def _groups(runs: Iterable[Run], size: int) -> Iterator[list[Run]]:
    """Neighbouring runs of one kind, at most so many. A full group is given at once: the runs after it
    have not been asked for, which would count as starting them.
    """
    group: list[Run] = []
    for run in runs:
        if group and run.kind != group[0].kind:
            yield group
            group = []
        group.append(run)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _one_for_each(data: Any, batch: int) -> Sequence[Any]:
    if not isinstance(data, Sequence) or len(data) != batch:
        got = f"{len(data)} of them" if isinstance(data, Sequence) else type(data).__name__
        raise AttnlabError(
            f"the batched work function returned {got}: expected a list of {batch} data sets, one "
            "for each entry of settings"
        )
    return data


def _failure(run: Run, error: BaseException, source: str) -> Failure:
    text = "".join(traceback.format_exception(error))
    message = str(error).strip() or "(no message)"
    cause = message if isinstance(error, AttnlabError) else f"{type(error).__name__}: {message}"
    return Failure(run.hash, dict(run.settings), cause[:500], text[-_TRACEBACK_CHARACTERS:], source)
