"""What a page is made of. All of it is frozen, and ``dataclasses.asdict`` of it is JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attnlab._errors import AttnlabError

if TYPE_CHECKING:
    from attnlab.report._story import Book

VERDICTS = ("holds", "fails", "inconclusive", "reported", "not run")
SAVINGS = ("saves", "no advantage", "costs", "inconclusive")
_DECIDED = ("holds", "fails")


@dataclass(frozen=True)
class Grid:
    """A small table that is read at a glance; ``tones``: ``good``, ``bad``, ``mixed``, ``h0`` …
    ``h4`` or empty.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    tones: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Sentence:
    """One shaded sentence: words, how strong each is shaded and a remark on them, step by step.

    - ``known``: whether the model has seen each word; one that it has not is grey and never shaded.
    - ``shades`` (step × word): whole per cent, 100 the strongest.
    - ``remarks``, ``right`` (step): what stands below the sentence then, and whether it is right.
    """

    words: tuple[str, ...]
    known: tuple[bool, ...]
    label: str
    shades: tuple[tuple[int, ...], ...]
    remarks: tuple[str, ...]
    right: tuple[bool, ...]


@dataclass(frozen=True)
class Shaded:
    """Sentences under a time slider, of which ``steps`` names the places; it opens at ``start``,
    which is shown without a script, too.
    """

    steps: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    start: int = -1


@dataclass(frozen=True)
class Figure:
    """One figure: what is drawn, what it says in words, and its numbers.

    - ``plotly``: ``{"data", "layout", "frames"}`` in Plotly's terms and in the light colours. Text
      from data must have gone through `plain`. Traces with ``meta = {"choice": k}`` are shown when
      the reader picks ``choices[k]``; ``frames`` give a time slider.
    - ``table``: column name → values, what the CSV button saves; ``note`` says what was left out.
    - ``grid``: shown instead of the plot, which then serves the image buttons only.
    - ``shaded``: shown instead of a plot; there is no image to save then.
    """

    id: str
    title: str
    caption: str
    alt: str
    plotly: dict[str, Any]
    table: dict[str, list[Any]]
    note: str = ""
    choices: tuple[str, ...] = ()
    choice_label: str = "Show"
    grid: Grid | None = None
    shaded: Shaded | None = None

    def __post_init__(self):
        check_id(self.id, "figure")


@dataclass(frozen=True)
class CriterionRow:
    """One measured number against its threshold; ``relation`` (``≤``, ``≥``) is shown before the
    threshold.

    ``reading`` is the verdict in words (“holds on average”), ``runs`` how many runs are within and
    which is the worst.
    """

    name: str
    kind: str = ""
    statistic: float | str | None = None
    interval: tuple[float, float] | None = None
    threshold: float | str | tuple[float, float] | None = None
    verdict: str = "not run"
    relation: str = ""
    unit: str = ""
    reading: str = ""
    runs: str = ""


@dataclass(frozen=True)
class ControlRow:
    """A case whose answer is known: ``ok`` if it came out as it ``should`` (``reject`` or
    ``accept``).
    """

    id: str
    should: str
    verdict: str
    ok: bool


@dataclass(frozen=True)
class Card:
    """A verdict at a glance: a label, a statement, a verdict or None, and the number that says
    most.

    Its verdict is one of a section's (``VERDICTS``) or that of a comparison (``SAVINGS``).
    ``measure`` names the number, ``note`` stands beside the verdict, ``link`` is a section's id.
    """

    label: str
    text: str
    verdict: str | None = None
    headline: str = ""
    measure: str = ""
    note: str = ""
    link: str = ""
    alarm: bool = False

    def __post_init__(self):
        _check_verdict(self.verdict, f"card {self.label!r}", (*VERDICTS, *SAVINGS[:3]))


@dataclass(frozen=True)
class Section:
    """One part of the page, with or without a verdict.

    ``folded``: only title and statement are shown until the reader opens it.
    ``statement`` is what is put to the test, ``expected`` the verdict that it should get,
    ``reading`` the verdict in words and ``reason`` why it is so; ``cautions`` stand right under the
    verdict. ``source`` and ``facts`` stand at the end; web addresses in ``source`` can be followed.
    ``finding`` is a title that says what came out, shown instead of ``title``; ``why`` says why it
    is so. Both may have formulas, ``$…$``. ``tags`` (paper, section, source) are what a ledger can
    be filtered by.
    """

    id: str
    title: str
    statement: str = ""
    verdict: str | None = None
    expected: str | None = None
    body: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    figures: tuple[Figure, ...] = ()
    criteria: tuple[CriterionRow, ...] = ()
    controls: tuple[ControlRow, ...] = ()
    how_measured: str = ""
    refuted_by: str = ""
    command: str = ""
    source: str = ""
    reason: str = ""
    cautions: tuple[str, ...] = ()
    reading: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    finding: str = ""
    why: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    folded: bool = False

    def __post_init__(self):
        check_id(self.id, "section")
        _check_verdict(self.verdict, f"section {self.id!r}")

    @property
    def heading(self) -> str:
        """What stands above the section: what was found, if that has a title."""
        return self.finding or self.title

    @property
    def contradicts(self) -> bool:
        """Whether a decided verdict is the opposite of the expected one."""
        return (
            self.verdict in _DECIDED and self.expected in _DECIDED and self.verdict != self.expected
        )

    @property
    def headline(self) -> CriterionRow | None:
        """The criterion that says most: the first that has the section's verdict, else the first
        measured one.
        """
        measured = [c for c in self.criteria if c.statistic is not None]
        agreeing = [c for c in measured if c.verdict == self.verdict]
        return next(iter([*agreeing, *measured]), None)


@dataclass(frozen=True)
class Page:
    """A whole page: the question, the answer in a sentence or two, the sections, where it comes
    from.

    ``cards`` stand at the top; when there are none, every section with a verdict gets one.
    ``provenance`` is shown in the footer, in its order: versions, seeds, machine, date, command.
    ``book``: what a folder of pages tells around the sections; without it there is one page.
    ``pending`` says what is still to come on a page that is written while a command runs; such a
    page loads itself again.
    """

    title: str
    question: str
    summary: str = ""
    sections: tuple[Section, ...] = ()
    cards: tuple[Card, ...] = ()
    provenance: dict[str, str] = field(default_factory=dict)
    pending: str = ""
    book: Book | None = None

    def __post_init__(self):
        _check_unique([section.id for section in self.sections], "section")
        _check_unique(
            [figure.id for section in self.sections for figure in section.figures], "figure"
        )


def check_id(name: str, what: str) -> None:
    """Refuse an id that could not be an anchor or a file name."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", name):
        raise AttnlabError(
            f"the {what} id {name!r} is not an anchor: begin with a letter, go on with letters, "
            "digits, dots, dashes"
        )


def _check_unique(names: list[str], what: str) -> None:
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise AttnlabError(
            f"the {what} id {doubles[0]!r} occurs twice on the page; give each {what} its own"
        )


def _check_verdict(verdict: str | None, where: str, known: Sequence[str] = VERDICTS) -> None:
    if verdict is not None and verdict not in known:
        raise AttnlabError(
            f"{where} has the verdict {verdict!r}; expected one of {', '.join(known)}"
        )
