"""What a story is made of: chapters with a figure and a derivation, and a glossary.

In all texts ``$…$`` is LaTeX mathematics, typeset when a page is written. All of it is frozen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure, check_id

_REFERENCE = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+(/[A-Za-z][A-Za-z0-9._-]*)?")


@dataclass(frozen=True)
class Term:
    """A symbol or a word of the glossary.

    - ``symbol``: how it stands in plain text (``ν``, ``topic word``); pages explain it there;
    - ``latex``: how it stands in formulas, without dollars (``\\nu``); empty for a word;
    - ``meaning``: one sentence, with ``$…$``; ``unit``: what it is measured in, if anything.
    """

    symbol: str
    latex: str
    meaning: str
    unit: str = ""


@dataclass(frozen=True)
class Line:
    """A line of a derivation: a formula, why it follows, and the curve that it explains.

    ``lights`` is the name of a trace in the figure beside it, which is drawn strongly while a
    reader is at this line; empty for none.
    """

    latex: str
    words: str
    lights: str = ""


@dataclass(frozen=True)
class Derivation:
    """Some lines that follow from each other."""

    id: str
    title: str
    lines: tuple[Line, ...]

    def __post_init__(self):
        check_id(self.id, "derivation")


@dataclass(frozen=True)
class Chapter:
    """One step of a story.

    - ``body``: paragraphs; ``{lu2021.sen:criterion}`` in them is a number of the record;
    - ``figure``: a claim's figure as ``"lu2021.sen/sen_relation"``, its first figure as
      ``"lu2021.sen"``, or a figure; ``claim``: the id of the claim that the chapter is about.
    """

    id: str
    title: str
    body: tuple[str, ...]
    figure: str | Figure | None = None
    derivation: Derivation | None = None
    claim: str = ""

    def __post_init__(self):
        check_id(self.id, "chapter")
        if isinstance(self.figure, str) and not _REFERENCE.fullmatch(self.figure):
            raise AttnlabError(
                f"chapter {self.id!r}: figure={self.figure!r}; expected 'claim.id/figure' or "
                "'claim.id'"
            )


@dataclass(frozen=True)
class Story:
    """A question and the chapters that answer it. ``id`` is the name of its page."""

    id: str
    title: str
    question: str
    chapters: tuple[Chapter, ...]

    def __post_init__(self):
        check_id(self.id, "story")
        names = [chapter.id for chapter in self.chapters]
        doubles = sorted({name for name in names if names.count(name) > 1})
        if doubles:
            raise AttnlabError(f"story {self.id!r}: the chapter {doubles[0]!r} occurs twice")


@dataclass(frozen=True)
class Book:
    """All that is told around the claims: the first page, the stories and the glossary.

    - ``question``, ``why``: the first page's question and the few sentences that answer it;
    - ``figure``: the figure on the first page, as in `Chapter`;
    - ``open_intro``: the paragraphs above what did not hold.
    - ``derivations``: each stands on the page of the claim whose id it has.
    """

    question: str
    why: tuple[str, ...]
    figure: str | Figure | None = None
    stories: tuple[Story, ...] = ()
    terms: tuple[Term, ...] = ()
    open_intro: tuple[str, ...] = ()
    derivations: tuple[Derivation, ...] = ()
