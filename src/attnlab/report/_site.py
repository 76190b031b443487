"""A page in a folder, with its figures; or a site: the question, stories, what did not hold, the ledger.

All pages of a site share one style sheet and one script for their figures, in ``assets/``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from markupsafe import Markup

from attnlab._csv import write_csv
from attnlab._errors import AttnlabError
from attnlab._places import (
    is_folder,
    is_remote,
    make_folder,
    place,
    put_bytes,
    write_atomically,
)
from attnlab.report._html import asset, render, render_template, style
from attnlab.report._page import Figure, Page, Section
from attnlab.report._pdf import pdf as pdf_of
from attnlab.report._story import Book, Chapter, Derivation, Story, Term
from attnlab.report._svg import svg
from attnlab.report._typeset import Glossary

# A page that is opened from a disk may load what lies beside it: "file:" for browsers in which
# 'self' means nothing there.
_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file: 'unsafe-inline'; "
    "img-src 'self' file: data: blob:; base-uri 'none'; form-action 'none'"
)
_REFUTED = ("fails", "inconclusive")
_FRONT_HEIGHT = 400
_PLOTLY = "plotly-cartesian.min.js"
_USED = re.compile(r'data-term="([^"]*)"')
_TERMS = "<!-- terms -->"
_ASSETS = ("page.js", "theme.js", _PLOTLY, "plotly.LICENSE")


@dataclass(frozen=True)
class _Shown:
    """A chapter with what its references stand for; ``missing`` says what was not run."""

    chapter: Chapter
    figure: Figure | None
    section: Section | None
    missing: str

    @property
    def derivation(self) -> Derivation | None:
        return self.chapter.derivation


def write_folder(
    page: Page, folder: str | Path, *, single: bool = False, pdf: bool = False
) -> Path:
    """Write the page, and beside it each figure's drawing and data as ``figures/<id>.svg`` and
    ``.csv``, with ``pdf`` as ``.pdf``, too; of a page with something ``pending`` only the page.

    A page with a book becomes a site, of which ``index.html`` is the first page, unless ``single``;
    every other page is one file, ``report.html``.
    """
    out = place(folder)
    is_site = page.book is not None and not single
    path = out / ("index.html" if is_site else "report.html")
    if is_folder(path):
        raise AttnlabError(f"{path} is a folder; expected a file, or a name that is free")
    try:
        make_folder(out)
        if is_site:
            _write_site(page, out)
        else:
            write_atomically(path, render(page).encode())
        if not page.pending:
            _write_figures(page, out / "figures", pdf)
    except OSError as error:
        raise _cannot_write(path, error) from error
    return path


def _write_figures(page: Page, folder: Path, with_pdf: bool) -> None:
    make_folder(folder)
    for figure in (f for entry in page.sections for f in entry.figures):
        if figure.plotly:
            drawing = svg(figure, standalone=True)
            _put(folder / f"{figure.id}.svg", drawing.encode())
            if with_pdf:
                _put(folder / f"{figure.id}.pdf", pdf_of(drawing))
        _put(folder / f"{figure.id}.csv", csv_of(figure).encode())


def csv_of(figure: Figure) -> str:
    """The figure's numbers as the text of a CSV file."""
    table = io.StringIO(newline="")
    write_csv(table, [list(figure.table), *zip_longest(*figure.table.values())])
    return table.getvalue()


def _put(path: Path, content: bytes) -> None:
    """Write a file of which half would do no harm."""
    if is_remote(path):
        put_bytes(path, content)
    else:
        path.write_bytes(content)


def _cannot_write(path: Path, error: OSError) -> AttnlabError:
    return AttnlabError(
        f"cannot write {path} ({error}): free some space or make it writable, then run `attnlab "
        "report`"
    )


def _write_site(page: Page, folder: Path) -> None:
    """Write all pages; of a page with something ``pending`` only the first one."""
    assert page.book is not None
    site = _Site(page, page.book)
    assets = folder / "assets"
    make_folder(assets)
    _put(assets / "page.css", style().encode())
    for name in _ASSETS:
        _put(assets / name, asset(name).encode())
    if not page.pending:
        make_folder(folder / "claims")
        for path, text in site.pages():
            _put(folder / path, text.encode())
    write_atomically(folder / "index.html", site.index().encode())


class _Site:
    """The pages of one folder."""

    def __init__(self, page: Page, book: Book):
        self.page, self.book = page, book
        self.sections = {section.id: section for section in page.sections if section.verdict}
        self.glossaries = {up: Glossary(book.terms, f"{up}glossary.html") for up in ("", "../")}

    def index(self) -> str:
        """The first page: question, figure, answer, verdicts and doors."""
        figure, _ = self._figure(self.book.figure)
        if figure is not None and figure.plotly:  # the page is one screen
            layout = {**figure.plotly["layout"], "height": _FRONT_HEIGHT}
            figure = replace(figure, plotly={**figure.plotly, "layout": layout})
        return self._render(
            "index.html",
            figure=figure,
            against=self._not_held(),
            judged=list(self.sections.values()),
            figures=figure is not None,
        )

    def pages(self) -> Iterator[tuple[str, str]]:
        """All other pages: path and text."""
        for story in self.book.stories:
            yield f"{story.id}.html", self._story(story)
        yield "open.html", self._open()
        yield "ledger.html", self._ledger()
        if self.book.terms:
            yield "glossary.html", self._glossary()
        for section in self.sections.values():
            yield f"claims/{section.id}.html", self._claim(section)

    def _render(self, name: str, *, up: str = "", figures: bool = False, **content: Any) -> str:
        """A page, with the meaning of every term that stands on it."""
        text = render_template(
            name,
            self.glossaries[up],
            page=self.page,
            book=self.book,
            policy=Markup(_POLICY),
            up=up,
            plotly=_PLOTLY if figures else "",
            **content,
        )
        used = {term for names in _USED.findall(text) for term in names.split()}
        shown = [one for one in self.meanings if one[0] in used]
        return text.replace(
            _TERMS, render_template("terms.html", self.glossaries[up], terms=shown), 1
        )

    @cached_property
    def meanings(self) -> list[tuple[str, Term, Markup, Markup]]:
        """Of every term its anchor, symbol and meaning; what they contain is not explained again."""
        bare = Glossary(())
        return [
            (
                name,
                term,
                bare.math(term.latex) if term.latex else Markup(),
                bare.typeset(term.meaning),
            )
            for name, term in zip(self.glossaries[""].ids, self.book.terms, strict=True)
        ]

    def _figure(self, wanted: str | Figure | None) -> tuple[Figure | None, str]:
        """A figure, and the id of the section that has to be run where there is none yet."""
        if wanted is None or isinstance(wanted, Figure):
            return wanted, ""
        name, _, own = wanted.partition("/")
        section = self.sections.get(name)
        if section is None or not section.figures:
            return None, name
        if not own:
            return section.figures[0], ""
        known = {figure.id: figure for figure in section.figures}
        if own not in known:
            raise AttnlabError(
                f"a story asks for the figure {wanted!r}; expected one of {', '.join(known)}"
            )
        return known[own], ""

    def _story(self, story: Story) -> str:
        shown, seen = [], set[str]()
        for chapter in story.chapters:
            figure, missing = self._figure(chapter.figure)
            name = figure.id if figure else ""
            if name in seen:
                name = f"{name}-{chapter.id}"
            seen.add(name)
            figure = replace(figure, id=name) if figure else None
            section = self.sections.get(chapter.claim)
            shown.append(_Shown(chapter, figure, section, missing))
        has_figures = any(one.figure for one in shown)
        return self._render("story.html", story=story, chapters=shown, figures=has_figures)

    def _not_held(self) -> list[Section]:
        """What was refuted, then what is undecided."""
        return [s for verdict in _REFUTED for s in self.sections.values() if s.verdict == verdict]

    def _open(self) -> str:
        drawn = [replace(s, figures=s.figures[:1]) for s in self._not_held()]
        absent = [s for s in self.sections.values() if s.verdict == "not run"]
        return self._render("open.html", against=drawn, absent=absent)

    def _ledger(self) -> str:
        rows = list(self.sections.values())
        return self._render("ledger.html", rows=rows, choices=_choices(rows), map=_by_place(rows))

    def _glossary(self) -> str:
        return self._render("glossary.html", symbols=self.meanings)

    def _claim(self, section: Section) -> str:
        names = list(self.sections)
        k = names.index(section.id)
        before = self.sections[names[k - 1]] if k else None
        after = self.sections[names[k + 1]] if k + 1 < len(names) else None
        told = [
            (story, chapter)
            for story in self.book.stories
            for chapter in story.chapters
            if chapter.claim == section.id
        ]
        return self._render(
            "claim.html",
            up="../",
            section=section,
            before=before,
            after=after,
            told=told,
            derivation=next((d for d in self.book.derivations if d.id == section.id), None),
            figures=bool(section.figures),
        )


def _choices(rows: Sequence[Section]) -> dict[str, list[str]]:
    """The values that the ledger can be filtered by, under their names."""
    names = dict.fromkeys(name for row in rows for name in row.tags)
    found = {name: list(dict.fromkeys(row.tags.get(name, "") for row in rows)) for name in names}
    found["verdict"] = list(dict.fromkeys(row.verdict or "" for row in rows))
    return {name: [value for value in values if value] for name, values in found.items()}


def _by_place(rows: Sequence[Section]) -> list[tuple[str, str, list[Section]]]:
    """Statements by paper and section."""
    found: dict[tuple[str, str], list[Section]] = {}
    for row in rows:
        key = row.tags.get("paper", ""), row.tags.get("section", "")
        found.setdefault(key, []).append(row)
    return [(paper, place, own) for (paper, place), own in found.items()]
