"""Which runs are handed out together, and what becomes of runs whose process died or took too long.

The rules are the same wherever runs are computed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from attnlab.sweeps._plan import Run
from attnlab.sweeps.executors._executor import Job, Outcome
from attnlab.sweeps.store._manifest import Failure
from attnlab.sweeps.store._store import save_failures

_TARGET_SECONDS = 5.0
_MOST_CALLS = 64  # of the work function, of which each computes one run or one group
MOST_DEATHS = 3  # the first attempt and two more

Chunk = tuple[Run, ...]


class Chunks:
    """The runs still to do, handed out a few at a time.

    A chunk holds about five seconds of work, judged by the runs so far, so that writing it costs
    little and a killed process loses little. Runs that differ only in their seed are of one kind
    and share compiled code: ``take(after=…)`` continues with the kind of the worker's last chunk,
    and gives different kinds to different workers. ``workers`` may change on the way, and ``size``
    is that of the first chunks, by default one run. Of a batched work function, a chunk holds whole
    groups of ``batch`` runs of one kind, as far as there are so many left.
    """

    def __init__(
        self, runs: Sequence[Run], workers: int, batch: int = 1, *, size: int | None = None
    ):
        self._kinds: dict[str, deque[Run]] = {}
        for run in runs:
            self._kinds.setdefault(run.kind, deque()).append(run)
        self._claimed: set[str] = set()
        self._left, self.workers, self._batch = len(runs), workers, batch
        self._seconds: deque[float] = deque(maxlen=32)
        self._size = size or batch

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> Iterator[Chunk]:
        chunk = None
        while chunk := self.take(after=chunk):
            yield chunk

    def observe(self, seconds: Sequence[float]) -> None:
        """Learn how long runs take. Sizes grow step by step: the first run of a kind also compiles."""
        if seconds:
            self._seconds.extend(seconds)
            # The lower median, since only few runs compile.
            typical = sorted(self._seconds)[(len(self._seconds) - 1) // 2]
            wanted = math.ceil(_TARGET_SECONDS / max(typical, 1e-6))
            self._size = max(self._batch, min(wanted, 4 * self._size, _MOST_CALLS * self._batch))

    def take(self, after: Chunk | None = None) -> Chunk | None:
        """The next chunk for a worker whose last one was ``after``; ``None`` when all are handed
        out.
        """
        size = self._size
        if self.workers > 1:  # towards the end chunks shrink, so that all workers end together
            size = min(size, math.ceil(self._left / (2 * self.workers)))
        # Groups that fit, at least one; a group that is not full takes as much time as a full one.
        groups = max(1, size // self._batch)
        taken: list[Run] = []
        last = after[-1].kind if after else None
        while groups and self._kinds:
            last = last if last in self._kinds else self._next_kind()
            self._claimed.add(last)
            waiting = self._kinds[last]
            while waiting and groups:
                taken += [waiting.popleft() for _ in range(min(self._batch, len(waiting)))]
                groups -= 1
            if not waiting:
                del self._kinds[last]
        self._left -= len(taken)
        return tuple(taken) or None

    def _next_kind(self) -> str:
        """A kind that no worker computes, or else the one with most runs left."""
        for kind in self._kinds:
            if kind not in self._claimed:
                return kind
        return max(self._kinds, key=lambda kind: len(self._kinds[kind]))


def undone(runs: Iterable[Run], outcomes: Iterable[Outcome]) -> Chunk:
    """The runs that are in none of the outcomes, in their order."""
    done = {run_hash for outcome in outcomes for block in outcome.blocks for run_hash in block.runs}
    done |= {failure.hash for outcome in outcomes for failure in outcome.failures}
    return tuple(run for run in runs if run.hash not in done)


class Retries:
    """Runs that are to be tried again, ``waiting``; and how often the process of each has died.

    A chunk whose process died is tried again run by run. After three deaths a run counts as failed.
    A run that exceeded its time limit counts as failed at once: it would do so again.
    """

    def __init__(self, job: Job):
        self._job = job
        self._deaths: dict[str, int] = {}
        self.waiting: deque[Chunk] = deque()

    def put_back(self, runs: Chunk) -> None:
        """Runs that were lost without a fault of their own: they are tried first."""
        if runs:
            self.waiting.appendleft(runs)

    def died(
        self, runs: Chunk, cause: str, stderr_tail: str, *, counts: bool = True
    ) -> list[Outcome]:
        """The process of these runs died; that ``counts`` if it had started to compute."""
        failures = []
        for run in runs:
            deaths = self._deaths[run.hash] = self._deaths.get(run.hash, 0) + counts
            if deaths >= MOST_DEATHS:
                failures.append(self._failure(run, cause, stderr_tail))
            else:
                self.waiting.append((run,))
        return self._record(failures)

    def exceeded(self, runs: Chunk, slow: str | None, limit: float) -> list[Outcome]:
        """Of these runs, the one with the hash ``slow`` took longer than ``limit`` seconds; the
        other runs are unaffected. Of a group that was computed in one call nobody knows which run
        was slow: its runs are tried again one by one.
        """
        started = 1 + next((i for i, run in enumerate(runs) if run.hash == slow), -1)
        if self._job.batch is not None and started > 1:
            self.waiting.extend((run,) for run in runs[:started])
            self.put_back(runs[started:])
            return []
        self.put_back(tuple(run for run in runs if run.hash != slow))
        cause = f"took longer than the time limit of {limit:g} s"
        no_traceback = "(none: its process was ended)"
        failures = [self._failure(run, cause, no_traceback) for run in runs if run.hash == slow]
        return self._record(failures)

    def _failure(self, run: Run, cause: str, traceback: str) -> Failure:
        return Failure(run.hash, dict(run.settings), cause, traceback, self._job.source)

    def _record(self, failures: list[Failure]) -> list[Outcome]:
        if not failures:
            return []
        try:
            save_failures(self._job.folder, failures)
        except OSError as error:
            return [Outcome((), (), (), refused=str(error))]
        return [Outcome((), tuple(failures), ())]
