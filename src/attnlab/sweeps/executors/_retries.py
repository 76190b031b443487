"""What becomes of runs whose process died or took too long: the same rules wherever they are
computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from attnlab.sweeps._plan import Run
from attnlab.sweeps.executors._chunks import Chunk
from attnlab.sweeps.executors._executor import Job, Outcome
from attnlab.sweeps.store._manifest import Failure
from attnlab.sweeps.store._store import save_failures

MOST_DEATHS = 3  # the first attempt and two more
# What a run does wrong kills its own process, seldom the worker that started it: workers die
# because their machine is taken away. A sweep with many such deaths must not count runs as failed
# that did nothing.
MOST_WORKER_DEATHS = 10


def undone(runs: Iterable[Run], outcomes: Iterable[Outcome]) -> Chunk:
    """The runs that are in none of the outcomes, in their order."""
    done = {run_hash for outcome in outcomes for block in outcome.blocks for run_hash in block.runs}
    done |= {failure.hash for outcome in outcomes for failure in outcome.failures}
    return tuple(run for run in runs if run.hash not in done)


class Retries:
    """Runs that are to be tried again, ``waiting``; and how often the process of each has died.

    A chunk whose process died is tried again run by run. A run that was there three times counts as
    failed (of Dask workers: ten times); so does a run that exceeded its time limit, at once: it
    would do so again.
    """

    def __init__(self, job: Job):
        self._job = job
        self._deaths: dict[tuple[str, int], int] = {}
        self.waiting: deque[Chunk] = deque()

    def back(self, runs: Chunk) -> None:
        """Runs that were lost through no fault of theirs: they go first."""
        if runs:
            self.waiting.appendleft(runs)

    def died(
        self,
        runs: Chunk,
        cause: str,
        last_words: str,
        *,
        counts: bool = True,
        most: int = MOST_DEATHS,
    ) -> list[Outcome]:
        """Their process died; it ``counts`` if it had begun to compute. After ``most`` of these a
        run has failed.
        """
        lost = []
        for run in runs:
            deaths = self._deaths[run.hash, most] = self._deaths.get((run.hash, most), 0) + counts
            if deaths >= most:
                lost.append(
                    Failure(run.hash, dict(run.settings), cause, last_words, self._job.source)
                )
            else:
                self.waiting.append((run,))
        return self._record(lost)

    def late(self, runs: Chunk, at: str | None, limit: float) -> list[Outcome]:
        """Of these runs, the one with the hash ``at`` took longer than ``limit`` seconds; nothing
        ails the others.
        """
        self.back(tuple(run for run in runs if run.hash != at))
        cause, no_traceback = (
            f"took longer than the time limit of {limit:g} s",
            "(none: its process was ended)",
        )
        source = self._job.source
        slow = [
            Failure(r.hash, dict(r.settings), cause, no_traceback, source)
            for r in runs
            if r.hash == at
        ]
        return self._record(slow)

    def _record(self, lost: list[Failure]) -> list[Outcome]:
        if not lost:
            return []
        try:
            save_failures(self._job.folder, lost)
        except OSError as error:
            return [Outcome((), (), (), refused=str(error))]
        return [Outcome((), tuple(lost), ())]
