"""Who says what a claim says, and when its thresholds were set."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from attnlab._errors import AttnlabError

SourceKind = Literal["stated", "seen", "rebuilt", "ours"]
ProvenanceKind = Literal["paper", "before", "after"]

_SAID = {
    "stated": "Stated in {}",
    "seen": "Seen in the experiments of {}",
    "rebuilt": "Our reconstruction of a part of {} that we do not have",
    "ours": "Ours",
}
_SECTION = re.compile(r"(section|appendix|figure|table|theorem) [A-Z]?[\d.]*\w", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Source:
    """Who says what a claim says.

    - ``kind``: ``"stated"`` in the paper's text, ``"seen"`` in its experiments, ``"rebuilt"`` by us
      because we do not have that part of the paper, or ``"ours"``;
    - ``paper``: the authors and the year; ``note``: the section, or what is ours about it.

    >>> Source("stated", "Lu, Mao and Nayak (2021)", "section 4").words
    'Stated in Lu, Mao and Nayak (2021): section 4'
    >>> Source("ours", note="beyond the papers").words
    'Ours: beyond the papers'
    """

    kind: SourceKind
    paper: str = ""
    note: str = ""

    def __post_init__(self):
        _check(self.kind, get_args(SourceKind), "source")
        if (self.kind == "ours") == bool(self.paper):
            raise AttnlabError(
                f"source {self.kind!r} with paper={self.paper!r}: expected a paper, unless the claim "
                "is ours"
            )

    @property
    def words(self) -> str:
        """As a reader would say it."""
        said = _SAID[self.kind].format(self.paper)
        return f"{said}: {self.note}" if self.note else said

    @property
    def section(self) -> str:
        """The part of the paper, where the note begins with one.

        >>> Source("stated", "Lu, Mao and Nayak (2021)", "section 4, the score").section
        'section 4'
        """
        found = _SECTION.match(self.note)
        return found.group().lower() if found else ""


@dataclass(frozen=True)
class Provenance:
    """When a threshold or an expectation was set, and what had been seen by then.

    - ``kind``: ``"paper"``, the number is the paper's; ``"before"`` measuring; ``"after"`` a look;
    - ``date``: when, as 2026-11-19; ``seen``: what had been looked at, for ``"after"``;
    - ``moved_from``: what it was before, if it was set once and then moved.

    >>> Provenance("after", "2026-11-19", "seeds 0 to 7").words
    'set on 2026-11-19, after seeing seeds 0 to 7'
    >>> Provenance("after", "2026-11-19", "seeds 0 to 7", moved_from="mean ≤ 0.5").words
    'moved on 2026-11-19 from “mean ≤ 0.5”, after seeing seeds 0 to 7'
    >>> Provenance("before", "2026-11-19").words
    'set on 2026-11-19, before measuring'
    """

    kind: ProvenanceKind
    date: str = ""
    seen: str = ""
    moved_from: str = ""

    def __post_init__(self):
        _check(self.kind, get_args(ProvenanceKind), "provenance")
        if self.kind != "paper" and not _DATE.fullmatch(self.date):
            raise AttnlabError(
                f"provenance {self.kind!r} with date={self.date!r}: expected a date such as "
                "2026-11-19"
            )
        if (self.kind == "after") != bool(self.seen):
            raise AttnlabError(
                f"provenance {self.kind!r} with seen={self.seen!r}: expected what had been seen "
                "for 'after', and nothing otherwise"
            )
        if self.kind == "paper" and (self.date or self.moved_from):
            raise AttnlabError(
                f"provenance 'paper' with date={self.date!r}, moved_from={self.moved_from!r}: a "
                "number of the paper has neither; expected Provenance('paper')"
            )

    @property
    def words(self) -> str:
        """As a reader would say it."""
        if self.kind == "paper":
            return "from the paper"
        set_ = (
            f"moved on {self.date} from “{self.moved_from}”"
            if self.moved_from
            else f"set on {self.date}"
        )
        when = "before measuring" if self.kind == "before" else f"after seeing {self.seen}"
        return f"{set_}, {when}"


def _check(given: Any, known: tuple[str, ...], name: str) -> None:
    if given not in known:
        raise AttnlabError(f"{name} {given!r}: expected one of {', '.join(map(repr, known))}")
