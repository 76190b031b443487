"""Computing a plan, and reporting its progress."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn

from attnlab._errors import AttnlabError
from attnlab._places import disk_error, is_private
from attnlab._progress import progress_bar
from attnlab.sweeps._plan import Plan, Run
from attnlab.sweeps._results import Results, unused_message
from attnlab.sweeps._work import load_work
from attnlab.sweeps.executors._chunks import Chunks
from attnlab.sweeps.executors._executor import (
    AbstractExecutor,
    InProcess,
    Interrupt,
    Job,
    Outcome,
    interruptible,
)
from attnlab.sweeps.executors._processes import executor_for
from attnlab.sweeps.store._store import Store, StoreWarning


@dataclass(frozen=True)
class Event:
    """The progress of a sweep: runs asked for, finished, failed and being computed; runs per
    second; seconds left.

    ``rate`` counts the runs that this call computed. The last two are ``None`` while there are no
    such runs.
    """

    asked: int
    finished: int
    failed: int
    running: int
    rate: float | None
    seconds_left: float | None


def run_plan(
    plan: Plan,
    folder: str | Path,
    *,
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_event: Callable[[Event], None] | None = None,
    failure_limit: float = 0.1,
    retry_failed: bool = True,
    keep: bool = False,
) -> Results:
    """Compute the runs of a plan that the folder does not hold yet.

    - ``folder``: a folder, or the URL of one (``"s3://bucket/sweep"``). It has one owner at a time:
      a second call on it raises an error that names the owner.
    - ``processes``: how many worker processes, by default one for each core; 0 computes in this
      process. Or any ``executor``. Results do not depend on it, bit for bit, as long as each
      process has one thread.
    - ``progress``: whether to draw a bar on standard error, by default where that is a terminal;
      ``on_event`` is called with an ``Event`` at the start and after every chunk.
    - ``failure_limit``: the share of runs that may fail before ``Results.ok`` is false. A run that
      raises never stops the sweep. Failed runs are tried again in the next call unless
      ``retry_failed`` is false.
    - ``keep``: use stored runs that other code made, too. By default, if the work function or
      anything that it reaches was edited since, stored runs stay in the folder, are not used
      (``Results.stale`` counts them) and are computed again, with the same random numbers as
      before.

    Interrupted at any moment, by Ctrl-C or ``kill -9``, the same call resumes. Ctrl-C does not
    raise: finished runs are stored and ``Results.interrupted`` is true. A second Ctrl-C raises
    ``KeyboardInterrupt``. A work function must therefore raise, not return half a result, when it
    is interrupted.

    >>> import tempfile
    >>> plan = Plan("attnlab.sweeps._example:work", name="powers", grid={"number": [1, 2, 3], "exponent": [2, 3]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run_plan(plan, folder, processes=0)
    ...     results.dataset().power.sel(number=3).values.tolist()
    [9.0, 27.0]
    """
    if not 0 <= failure_limit <= 1:
        raise AttnlabError(f"failure_limit={failure_limit}: expected a share between 0 and 1")
    with executor_for(processes, executor) as chosen:
        _refuse_edited(plan.work)
        with Store.open(folder, plan, keep=keep) as store:
            done = store.finished if retry_failed else store.finished | set(store.failures)
            missing = [run for run in plan.runs if run.hash not in done]
            with interruptible() as interrupt:
                if missing:
                    _compute(store, missing, chosen, interrupt, progress, on_event)
                if not interrupt.pressed:
                    _consolidate(store)
    # Read again from the disk: a worker may have stored runs and died before it could report them.
    return Results(Store.read(folder), failure_limit=failure_limit, interrupted=interrupt.pressed)


def _refuse_edited(work: str) -> None:
    """Refuse a work function whose files were edited since this process loaded them: workers would
    load the new code.
    """
    if load_work(work).source.is_edited:
        raise AttnlabError(
            f"the code of {work} was edited after this process had loaded it; restart Python (in "
            "a notebook: restart the kernel), so that runs are made by the new code"
        )


def _compute(
    store: Store,
    missing: list[Run],
    executor: AbstractExecutor,
    interrupt: Interrupt,
    progress: bool | None,
    on_event: Callable[[Event], None] | None,
) -> None:
    """Have the missing runs computed, and register every outcome."""
    plan, foreign = store.plan, store.foreign
    batch = load_work(plan.work).batch
    chunks = Chunks(missing, executor.width, batch or 1)
    done = 0
    with _progress_bar(progress) as bar, ExitStack() as stack:
        target = stack.enter_context(_writable_folder(store.folder, executor))
        job = Job(plan.work, target, plan.root_seed, store.sources.current, batch)
        outcomes = stack.enter_context(closing(executor.outcomes(job, chunks, interrupt)))
        stale = sum(run.hash in foreign for run in missing)
        if stale and not bar.disable:
            bar.console.print(unused_message(stale), markup=False, highlight=False)
        reporter = _Reporter(
            plan.name, len(plan.runs), len(plan.runs) - len(missing), bar, on_event
        )
        reporter.report(0, 0, 0)
        for outcome in outcomes:
            if target is not store.folder:
                _adopt(store, target, outcome)
            store.note(outcome.blocks, outcome.failures)
            chunks.observe(outcome.seconds)
            finished = sum(len(block.runs) for block in outcome.blocks)
            failed = len(outcome.failures)
            done += finished + failed
            reporter.report(finished, failed, running=len(missing) - len(chunks) - done)
            if outcome.refused is not None:
                raise disk_error(store.folder, outcome.refused)
            store.keep_few_files()


@contextmanager
def _writable_folder(folder: Path, executor: AbstractExecutor) -> Iterator[Path]:
    """Where workers write: the folder itself, or a temporary one if it is in the memory of this
    process.
    """
    if not is_private(folder) or isinstance(executor, InProcess):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="attnlab-") as spool:
        for part in ("blocks", "failures"):
            (Path(spool) / part).mkdir()
        yield Path(spool)


def _adopt(store: Store, spool: Path, outcome: Outcome) -> None:
    try:
        store.adopt(spool, outcome.blocks, outcome.failures)
    except OSError as error:
        raise disk_error(store.folder, error) from error


def _consolidate(store: Store) -> None:
    """Merge small files at the end of a sweep. Best effort: running out of disk here loses nothing."""
    try:
        store.consolidate()
    except OSError as error:
        warnings.warn(
            f"small blocks of {store.folder} were not merged ({error}); no run is lost",
            StoreWarning,
            stacklevel=3,
        )


class _Reporter:
    """Reports progress to a callback and a bar."""

    def __init__(
        self,
        title: str,
        asked: int,
        finished: int,
        bar: Progress,
        on_event: Callable[[Event], None] | None,
    ):
        self._asked, self._finished, self._failed = asked, finished, 0
        self._computed, self._started = 0, time.monotonic()
        self._bar, self._on_event = bar, on_event
        self._task = bar.add_task(title, total=asked, text="")

    def report(self, finished: int, failed: int, running: int) -> None:
        """So many more runs have finished or failed."""
        self._finished += finished
        self._failed += failed
        self._computed += finished + failed
        left = self._asked - self._finished - self._failed
        elapsed = max(time.monotonic() - self._started, 1e-9)
        rate = self._computed / elapsed if self._computed else None
        seconds_left = left / rate if rate else None
        event = Event(self._asked, self._finished, self._failed, running, rate, seconds_left)
        self._bar.update(self._task, completed=self._finished + self._failed, text=_words(event))
        if self._on_event is not None:
            self._on_event(event)


@contextmanager
def _progress_bar(shown: bool | None) -> Iterator[Progress]:
    """By default on a terminal or in a notebook; a log gets only its last state."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[text]}", markup=False),
    )
    with progress_bar(shown, *columns, transient=False) as bar:
        yield bar


def _words(event: Event) -> str:
    """The progress in one line.

    >>> _words(Event(asked=200, finished=50, failed=1, running=2, rate=3.0, seconds_left=75.4))
    '50/200 runs, 1 failed, 3.0 runs/s, 1:15 left'
    """
    text = f"{event.finished}/{event.asked} runs, {event.failed} failed"
    if event.rate is None or event.seconds_left is None:
        return text
    minutes, seconds = divmod(round(event.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
    return f"{text}, {event.rate:.1f} runs/s, {clock} left"
