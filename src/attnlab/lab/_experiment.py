"""An experiment: what is varied, run, measured, answered and drawn, as one object."""

from __future__ import annotations

import abc
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab._settings import Settings
from attnlab.lab._tables import Data
from attnlab.report import Book, Card, Section

if TYPE_CHECKING:
    from attnlab.lab._run import Record
    from attnlab.sweeps import AbstractExecutor, Event, Plan, Results

S = TypeVar("S", bound=Settings)
_FIRST_DRAFT = 5.0  # seconds
_DRAFT_SHARE = 0.03  # of the time may be spent on drawing pages that are not final


class Interrupted(Exception):
    """Ctrl-C was pressed in a sweep. What is finished is stored; `run` turns this into a record."""


@dataclass(frozen=True)
class Answers:
    """What an experiment found, in words.

    - ``cards``: one answer each, with a headline number and perhaps a verdict; ``summary``:
      sentences that are printed (by default those of the cards);
    - ``question``: what was asked, with the numbers of these settings;
    - ``absent``: for what a page cannot show, by section, why;
    - ``facts``: the settings as a page shows them.
    """

    question: str
    cards: tuple[Card, ...] = ()
    summary: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TextTable:
    """A table for the terminal. Cells are text; a verdict is coloured, an empty row is a rule.

    ``one_line``: no row is broken; cells of the last column are cut where they are too long.
    ``under``: cautions that stand under a row of such a table, by its place.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    one_line: bool = False
    under: Mapping[int, Sequence[str]] = field(default_factory=dict)


class Experiment(abc.ABC, Generic[S]):
    """One question that can be asked again and again; the machinery is `attnlab.lab.run`.

    ``name`` is the command, ``title`` the page's; the docstring of a subclass is the command's
    help, with an example, unless ``help`` is given. ``settings`` is a frozen dataclass, its options are the command's.
    """

    name: str
    title: str
    settings: type[S]
    help: str = ""

    def bound(self, settings: S) -> Experiment[S]:
        """The experiment that these settings ask for; itself, unless they choose its parts."""
        return self

    @abc.abstractmethod
    def measure(self, settings: S, bench: Bench) -> Data:
        """Run the sweeps that the settings need, by ``bench.sweep``, and measure them.

        What is found besides data sets, as JSON, goes into ``bench.found``.
        """

    @abc.abstractmethod
    def answers(self, settings: S, data: Data, found: Mapping[str, Any]) -> Answers:
        """Answer the question from what was measured and ``found`` alone."""

    @abc.abstractmethod
    def sections(self, record: Record) -> Sequence[Section]:
        """Draw the page's sections from the stored record alone."""

    def book(self, record: Record) -> Book | None:
        """What a site tells around the sections; without it they stand on one page."""
        return None

    def shown(self, record: Record) -> Iterable[str | TextTable]:
        """What a command prints: sentences and tables."""
        return record.about["summary"]

    def details(self, record: Record) -> Iterable[str | TextTable]:
        """All that can be printed, where `shown` is a summary."""
        return self.shown(record)

    def as_json(self, record: Record) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {"about": record.about, **record.content}

    def exit_code(self, settings: S, record: Record) -> int:
        """The exit code of a finished command whose runs did not fail."""
        return 0

    def failed_runs(self, record: Record) -> str:
        """What is said where too many runs failed."""
        folder = record.folder
        return f"too many runs failed; `attnlab runs {folder}` groups them by cause"


@dataclass
class Bench:
    """Where an experiment runs its sweeps: a folder, an executor, and who is told about it."""

    folder: Path
    executor: AbstractExecutor
    progress: bool | None = None
    on_stage: Callable[[str], None] | None = None
    on_event: Callable[[Event], None] | None = None
    keep: bool = False
    failure_limit: float = 0.1
    on_draft: Callable[[Data, str], None] | None = None
    results: list[Results] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)
    _next_draft: float = field(default_factory=lambda: time.monotonic() + _FIRST_DRAFT)

    def stage(self, message: str) -> None:
        """Say what comes next, where somebody listens."""
        if self.on_stage is not None:
            self.on_stage(message)

    def draft(self, data: Data, pending: str) -> None:
        """Let the page show what is known so far; ``pending`` says in words what is to come.

        Drawing takes a small share of the time, so most calls draw nothing; a command of a few
        seconds draws no draft at all.
        """
        started = time.monotonic()
        if self.on_draft is None or started < self._next_draft:
            return
        with suppress(AttnlabError):  # the final page will say why it cannot be drawn
            self.on_draft(data, pending)
        ended = time.monotonic()
        self._next_draft = ended + (ended - started) / _DRAFT_SHARE

    def sweep(self, plan: Plan, name: str, *, required: bool = True) -> Results:
        """Run a plan in ``runs/name``; resumes from what an interrupted call left there.

        Raises if no run finished, unless the sweep is not ``required``.
        """
        results = al.sweeps.run_plan(
            plan,
            self.folder / "runs" / name,
            executor=self.executor,
            progress=self.progress,
            on_event=self.on_event,
            failure_limit=self.failure_limit,
            keep=self.keep,
        )
        if results.interrupted:
            raise Interrupted
        self.results.append(results)
        if required and results.finished == 0:
            cause = results.failures[0].cause
            raise AttnlabError(f"all {results.failed} runs failed: {cause}")
        return results


def digest(settings: Mapping[str, Any]) -> str:
    """Eight characters that name a sweep's folder by its settings.

    >>> digest({"samples": 128})
    'a89976bc'
    """
    text = json.dumps(dict(settings), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
