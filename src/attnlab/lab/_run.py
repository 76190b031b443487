"""Running an experiment: folder, sweeps, record and page, once for all of them."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import xarray as xr

from attnlab._errors import AttnlabError
from attnlab._html import card
from attnlab._places import is_file, place
from attnlab.lab._experiment import Answers, Bench, Experiment, Interrupted
from attnlab.lab._folder import FIELDS, RECORD, SCHEMA, taken_folder
from attnlab.lab._settings import Settings
from attnlab.lab._tables import Data
from attnlab.report import Card, Page, Section, number, printable, write_folder
from attnlab.sweeps import (
    AbstractExecutor,
    Event,
    executor_for,
    load_record,
    provenance,
    save_record,
    stale_message,
)
from attnlab.sweeps import read_record as read_content

_IN_PAGE = ("title", "question", "summary", "cards", "absent", "settings", "command")


@dataclass(frozen=True)
class Record:
    """What an experiment left in a folder.

    - ``experiment``: its name; ``data``: the measured data sets by name;
    - ``about``: title, question, ``summary``, ``cards``, ``settings``, ``absent``, command and
      provenance, and ``stale``, in words, where other code made some of the stored runs;
    - ``content``: what else the experiment answers, such as the verdicts of claims;
    - ``page``: the file that `run` wrote for a reader to open.
    """

    experiment: str
    folder: Path
    data: dict[str, xr.Dataset]
    about: dict[str, Any]
    content: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    ok: bool = True
    page: Path | None = None

    @property
    def cards(self) -> tuple[Card, ...]:
        """The answers."""
        return tuple(Card(**entry) for entry in self.about["cards"])

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {one.label: one.text for one in self.cards}
        rows["folder"] = self.folder
        summary = " ".join(printable(line) for line in self.about.get("summary", ()))
        return card(self.about["title"], rows, sentence=summary)


def run(
    experiment: Experiment[Any],
    settings: Settings,
    folder: str | Path,
    *,
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_stage: Callable[[str], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
    command: str = "",
    keep: bool = False,
    overwrite: bool = False,
) -> Record:
    """Ask the question: run what it needs, measure, answer, and write ``record.json`` and the page.

    Interrupted at any moment and called again, it resumes; finished, it computes nothing again. A
    page that cannot be drawn is an error, after the record was stored. ``keep`` as in `run_plan`.
    While it runs, the page shows what is known so far, where the experiment says so.

    A folder that holds something else is refused, unless ``overwrite``: then files of the same
    names are replaced, and nothing else is deleted.
    """
    experiment = experiment.bound(settings)
    started = time.monotonic()
    with taken_folder(folder, experiment.name, settings.subject, overwrite=overwrite) as out:
        with executor_for(processes, executor) as chosen:
            bench = Bench(out, chosen, progress, on_stage, on_event, keep)

            def draw_draft(data: Data, pending: str) -> None:
                answers = experiment.answers(settings, data, bench.found)
                about = _about(experiment, answers, command)
                known = Record(experiment.name, out, dict(data), about, bench.found)
                write_folder(replace(_page_of(experiment, known), pending=pending), out)

            bench.on_draft = draw_draft
            try:
                data = dict(experiment.measure(settings, bench))
            except Interrupted:
                return Record(experiment.name, out, {}, {}, interrupted=True)
        content = bench.found
        answers = experiment.answers(settings, data, content)
        about = _about(experiment, answers, command) | provenance(time.monotonic() - started)
        stale = stale_message(bench.results)
        about |= {"stale": stale} if stale else {}
        stored = {"experiment": experiment.name, "about": about, "content": content}
        save_record(out, RECORD, SCHEMA, stored, data)
        ok = all(each.ok for each in bench.results)
        record = Record(experiment.name, out, data, about, content, ok=ok)
        return replace(record, page=write_page(experiment, record))


def _about(experiment: Experiment[Any], answers: Answers, command: str) -> dict[str, Any]:
    facts = {k: list(v) if isinstance(v, tuple) else v for k, v in answers.facts.items()}
    return {
        "title": experiment.title,
        "question": answers.question,
        "summary": list(answers.summary) or [card.text for card in answers.cards],
        "cards": [asdict(card) for card in answers.cards],
        "absent": dict(answers.absent),
        "settings": facts,
        "command": command,
    }


def page(experiment: Experiment[Any], record: Record) -> Page:
    """The page of a record. Nothing is computed."""
    record = replace(record, about=printable(record.about))  # it may hold text of users
    about, cards = record.about, record.cards
    on_cards = {card.text for card in cards}  # what a card says need not be said twice
    summary = [sentence for sentence in about["summary"] if sentence not in on_cards]
    again = Section(
        id="again",
        title="Reproduce this",
        statement="The same settings give the same numbers.",
        command=about["command"],
        facts={str(key): _text_of(value) for key, value in about["settings"].items()},
    )
    sections = tuple(experiment.sections(record))
    origin = {str(k).capitalize(): _text_of(v) for k, v in about.items() if k not in _IN_PAGE}
    return Page(
        title=about["title"],
        question=about["question"],
        summary=" ".join(summary),
        sections=(*sections, again) if about["command"] or about["settings"] else sections,
        cards=cards,
        provenance=origin,
        book=experiment.book(record),
    )


def _text_of(value: Any) -> str:
    """A setting or version in words: lists with commas, what is absent as a dash.

    >>> _text_of(["keys", "head"]), _text_of(None), _text_of(False), _text_of(1e-6)
    ('keys, head', '–', 'no', '1e-06')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(_text_of, value))
    return number(value) if value is None or isinstance(value, bool) else str(value)


def write_page(
    experiment: Experiment[Any], record: Record, *, single: bool = False, pdf: bool = False
) -> Path:
    """Write the page, or the first page of a site unless ``single``, and each figure's drawing and
    data in ``figures/``; ``pdf``: as PDF, too.
    """
    return write_folder(_page_of(experiment, record), record.folder, single=single, pdf=pdf)


def _page_of(experiment: Experiment[Any], record: Record) -> Page:
    """The page; where it cannot be drawn, an error that says where."""
    try:
        return page(experiment, record)
    except (AttnlabError, OSError):
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise AttnlabError(
            f"the page of {record.folder} cannot be drawn ({type(error).__name__}: {error}; "
            f"{Path(last.filename).name}, line {last.lineno}): the record holds other content than "
            "the page needs; run the command again"
        ) from error


def read_record(folder: str | Path) -> Record:
    """What an experiment wrote. Nothing is computed."""
    out = place(folder)
    stored, data = load_record(out, RECORD, SCHEMA, FIELDS, "attnlab reproduce")
    return Record(stored["experiment"], out, data, stored["about"], stored["content"])


def stored_content(folder: Path, experiment: str) -> Mapping[str, Any]:
    """The content of an earlier record of this experiment; empty where there is none to read."""
    if not is_file(folder / RECORD):
        return {}
    try:
        stored = read_content(folder, RECORD, SCHEMA, FIELDS, "attnlab reproduce")
    except AttnlabError:  # damaged, or of another version: it is about to be written again
        return {}
    return stored["content"] if stored["experiment"] == experiment else {}
