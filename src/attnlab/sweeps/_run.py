"""Computing a plan."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from attnlab._errors import AttnlabError
from attnlab._places import is_private
from attnlab.sweeps._plan import Plan, Run
from attnlab.sweeps._progress import Event, Reporter, interruptible, progress_bar
from attnlab.sweeps._results import Results, stale_words
from attnlab.sweeps._work import load_work
from attnlab.sweeps.executors._chunks import Chunks
from attnlab.sweeps.executors._executor import AbstractExecutor, InProcess, Interrupt, Job, Outcome
from attnlab.sweeps.executors._processes import Processes
from attnlab.sweeps.store._store import Store, StoreWarning, disk_error


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
    """Compute what a plan asks for and the folder does not hold yet.

    - ``folder``: a folder, or the URL of one (``"s3://bucket/sweep"``). It has one owner at a time:
      a second call on it raises an error that says who is at work there.
    - ``processes``: how many worker processes, by default one for each core; 0 computes in this
      process. Or any ``executor``. Results do not depend on it, bit for bit, as long as each
      process has one thread.
    - ``progress``: whether to draw a bar on standard error, by default where that is a terminal;
      ``on_event`` is called with an ``Event`` at the beginning and after every chunk.
    - ``failure_limit``: the share of runs that may fail before ``Results.ok`` is false. A run that
      raises never stops the sweep. Failed runs are tried again in the next call unless
      ``retry_failed`` is false.

    - ``keep``: use stored runs that other code made, too. By default runs of a work function that
      was edited since, or of which anything that it reaches was, stay in the folder, are not used
      (``Results.stale`` counts them) and are computed again, with the same random numbers as
      before.

    Interrupted at any moment, by Ctrl-C or ``kill -9``, the same call goes on where it was. Ctrl-C
    does not raise: what is finished is stored and ``Results.interrupted`` is true. A second Ctrl-C
    raises ``KeyboardInterrupt``. A work function must therefore raise, not return half a result,
    when it is interrupted.

    >>> import tempfile
    >>> plan = Plan("attnlab.sweeps._example:work", name="powers", grid={"number": [1, 2, 3], "exponent": [2, 3]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run_plan(plan, folder, processes=0)
    ...     results.dataset().power.sel(number=3).values.tolist()
    [9.0, 27.0]
    """
    if not 0 <= failure_limit <= 1:
        raise AttnlabError(f"failure_limit={failure_limit}: expected a share between 0 and 1")
    if executor is None:
        executor = InProcess() if processes == 0 else Processes(processes)
    elif processes is not None:
        raise AttnlabError("both processes and executor given: give one of them")
    _refuse_edited(plan.work)
    with Store.open(folder, plan, keep=keep) as store:
        failed = {} if retry_failed else store.failures
        stored = store.finished
        missing = [run for run in plan.runs if run.hash not in stored and run.hash not in failed]
        with interruptible() as interrupt:
            if missing:
                _compute(store, missing, executor, interrupt, progress, on_event)
            if not interrupt.pressed:
                _consolidate(store)
    # Read anew: what lies on the disk is the truth, also where a worker stored runs and died before
    # it could say so.
    return Results(Store.read(folder), failure_limit=failure_limit, interrupted=interrupt.pressed)


def _refuse_edited(work: str) -> None:
    """Refuse to run what this process has loaded if the files say something else by now: workers
    would load that.
    """
    if load_work(work).source.is_edited:
        raise AttnlabError(
            f"the code of {work} was edited after this process had loaded it; restart Python (in "
            "a notebook: "
            "restart the kernel), so that runs are made by the new code"
        )


def _compute(
    store: Store,
    missing: list[Run],
    executor: AbstractExecutor,
    interrupt: Interrupt,
    progress: bool | None,
    on_event: Callable[[Event], None] | None,
) -> None:
    """Have the missing runs computed, and take notice of every outcome."""
    plan, foreign = store.plan, store.foreign
    chunks = Chunks(missing, executor.width)
    done = 0
    with progress_bar(progress) as bar, ExitStack() as stack:
        reached = stack.enter_context(_reached(store.folder, executor))
        job = Job(plan.work, reached, plan.root_seed, store.sources.current)
        outcomes = stack.enter_context(closing(executor.outcomes(job, chunks, interrupt)))
        stale = sum(run.hash in foreign for run in missing)
        if stale and not bar.disable:
            bar.console.print(stale_words(stale), markup=False, highlight=False)
        reporter = Reporter(plan.name, len(plan.runs), len(plan.runs) - len(missing), bar, on_event)
        reporter.tell(0, 0, 0)
        for outcome in outcomes:
            if reached is not store.folder:
                _adopt(store, reached, outcome)
            store.note(outcome.blocks, outcome.failures)
            chunks.observe(outcome.seconds)
            finished, failed = (
                sum(len(block.runs) for block in outcome.blocks),
                len(outcome.failures),
            )
            done += finished + failed
            reporter.tell(finished, failed, running=len(missing) - len(chunks) - done)
            if outcome.refused is not None:
                raise disk_error(store.folder, outcome.refused)
            store.keep_few_files()


@contextmanager
def _reached(folder: Path, executor: AbstractExecutor) -> Iterator[Path]:
    """Where workers write: the folder itself, or a temporary one where it lies in the memory of
    this process.
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
    """Tidy up at the end of a sweep; everything is stored already, so that a full disk is no
    misfortune here.
    """
    try:
        store.consolidate()
    except OSError as error:
        warnings.warn(
            f"small blocks of {store.folder} were not merged ({error}); no run is lost",
            StoreWarning,
            stacklevel=3,
        )
