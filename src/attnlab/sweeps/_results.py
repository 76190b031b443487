"""The results of a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab._errors import AttnlabError
from attnlab._html import card, shares_bar
from attnlab._places import reading
from attnlab.sweeps._combine import combine
from attnlab.sweeps._plan import Plan
from attnlab.sweeps._settings import nearest
from attnlab.sweeps.store._store import Store

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class FailureGroup:
    """Runs that failed for one cause: how many, which (their indices in the plan), and the
    traceback of one.
    """

    cause: str
    count: int
    runs: tuple[int, ...]
    traceback: str


def stale_message(results: Iterable[Results]) -> str:
    """A message about the runs of some sweeps that other code made; empty if there are none."""
    results = list(results)
    stale, reused = sum(each.stale for each in results), sum(each.reused for each in results)
    messages = []
    if stale:
        messages.append(unused_message(stale))
    if reused:
        verb = "was" if reused == 1 else "were"
        messages.append(f"{reused} of the runs used {verb} made by other code (`--keep`)")
    return "; ".join(messages)


def unused_message(count: int) -> str:
    """The message about stored runs that are not used, because other code made them.

    >>> unused_message(48)
    '48 runs were made by other code; kept, not used (`--keep` uses them)'
    """
    runs = "run was" if count == 1 else "runs were"
    return f"{count} {runs} made by other code; kept, not used (`--keep` uses them)"


class Results:
    """The stored runs of a plan. Their counts are read at once, their data when asked for.

    ``asked = finished + failed + missing``; runs are missing only where a sweep was interrupted.
    ``ok`` says whether at most the share ``failure_limit`` of all runs failed. Runs of a work
    function that was edited since are ``stale``, that is, stored and not used; or ``reused``, if
    the sweep was run with ``keep``.
    """

    def __init__(self, store: Store, *, failure_limit: float = 0.1, interrupted: bool = False):
        self.plan: Plan = store.plan
        self.folder: Path = store.folder
        self.failure_limit, self.interrupted = failure_limit, interrupted
        self._store = store
        stored, failed = store.finished, store.failures
        self._finished = [run for run in self.plan.runs if run.hash in stored]
        asked, fresh, foreign = {run.hash for run in self.plan.runs}, store.fresh, store.foreign
        reused = (asked & stored) - fresh
        self.reused, self.stale = len(reused), len((asked & foreign) - reused)
        self._failed = [(run, failed[run.hash]) for run in self.plan.runs if run.hash in failed]

    @classmethod
    def read(cls, folder: str | Path, *, failure_limit: float = 0.1) -> Results:
        """The results in a folder or at a URL, of a finished sweep or not.

        Nothing is computed, and no code of the user is imported.
        """
        return cls(Store.read(folder), failure_limit=failure_limit)

    def __repr__(self) -> str:
        counts = f"{self.finished} of {self.asked} runs finished, {self.failed} failed"
        return f"Results({self.plan.name!r}: {counts})"

    def _repr_html_(self) -> str:
        counts = {"finished": self.finished, "failed": self.failed, "missing": self.missing}
        text = ", ".join(f"{count} {name}" for name, count in counts.items())
        rows: dict[str, object] = {"runs": f"{text}, of {self.asked}", "folder": self.folder}
        rows |= {f"failed, {group.count} times": group.cause for group in self.failures}
        if message := stale_message([self]):
            rows["other code"] = message
        return card(f"Sweep {self.plan.name!r}", rows, shares_bar(counts, label=text))

    @property
    def asked(self) -> int:
        """Number of runs in the plan."""
        return len(self.plan.runs)

    @property
    def finished(self) -> int:
        """Number of runs whose data is stored."""
        return len(self._finished)

    @property
    def failed(self) -> int:
        """Number of runs that failed."""
        return len(self._failed)

    @property
    def missing(self) -> int:
        """Number of runs that were not computed yet."""
        return self.asked - self.finished - self.failed

    @property
    def ok(self) -> bool:
        """Whether the share of failed runs is within ``failure_limit``."""
        return self.failed <= self.failure_limit * self.asked

    @property
    def failures(self) -> tuple[FailureGroup, ...]:
        """Failed runs grouped by cause, the most frequent first."""
        groups: dict[str, list[tuple[int, str]]] = {}
        for run, failure in self._failed:
            groups.setdefault(failure.cause, []).append((run.index, failure.traceback))
        ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
        return tuple(
            FailureGroup(cause, len(runs), tuple(index for index, _ in runs), runs[0][1])
            for cause, runs in ordered
        )

    def dataset(self) -> xr.Dataset:
        """All variables of all runs in one labelled data set.

        The dimensions of the plan (the grid's fields, or ``run`` with the settings as coordinates)
        come before those of the runs; missing and failed runs are nan (see ``select``).
        """
        return self._load(None)

    def select(self, variables: Sequence[str]) -> xr.Dataset:
        """The same with only some variables, and their coordinates; the others are not read.

        Integers and booleans become floats where runs are missing, strings become empty.
        """
        wanted = [variables] if isinstance(variables, str) else list(variables)
        seen: set[str] = set()

        def chosen(header: dict[str, Any]) -> Iterable[str]:
            seen.update(header)
            dims = {dim for name in wanted if name in header for dim in header[name]["dims"]}
            return [
                name
                for name, about in header.items()
                if name in wanted or (about["coord"] and dims.issuperset(about["dims"]))
            ]

        data = self._load(chosen)
        unknown = [name for name in wanted if name not in seen]
        if unknown and seen:
            raise AttnlabError(
                f"the runs have no variable {unknown[0]!r}: {nearest(unknown[0], sorted(seen))}"
            )
        return data

    def run(self, index: int) -> xr.Dataset:
        """One run's data set, exactly as its work function returned it, attributes included."""
        if not 0 <= index < self.asked:
            raise AttnlabError(f"run {index}: the plan has the runs 0 to {self.asked - 1}")
        return self._store.run(self.plan.runs[index].hash)

    def _load(self, chosen: Callable[[dict[str, Any]], Iterable[str]] | None) -> xr.Dataset:
        with reading(self.folder):
            stacks = list(self._store.stacks((run.hash for run in self._finished), chosen))
        found = {run_hash for stack in stacks for run_hash in stack.hashes}
        # Runs whose block proved damaged no longer count.
        self._finished = [run for run in self._finished if run.hash in found]
        data = combine(self.plan, stacks)
        about = {
            "plan": self.plan.name,
            "work": self.plan.work,
            "root_seed": self.plan.root_seed,
            "settings": json.dumps(dict(self.plan.base)),
            "asked": self.asked,
            "finished": self.finished,
            "failed": self.failed,
        }
        return data.assign_attrs({**data.attrs, **about})
