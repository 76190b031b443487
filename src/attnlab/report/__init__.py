"""Drawing library: pages and figures from labelled data; nothing is computed here.

A page is declared with frozen objects and rendered to one HTML file that needs no network:

>>> from attnlab.report import Page, Section, render
>>> page = Page(title="Laws", question="Is the sum of scores conserved?", sections=(Section(id="a", title="A"),))
>>> render(page).startswith("<!doctype html>")
True
"""

import importlib
from typing import TYPE_CHECKING

from attnlab.report._curves import band_figure, overlay_figure, stages_figure, theory_figure
from attnlab.report._page import Card, ControlRow, CriterionRow, Figure, Page, Section
from attnlab.report._pictures import PictureRow, pictures_figure, shaded_figure
from attnlab.report._points import (
    histogram_figure,
    paths_figure,
    relation_figure,
    scatter_figure,
)
from attnlab.report._rows import (
    DotRow,
    Mark,
    bounds_note,
    dots_figure,
    rows_figure,
    shares_figure,
)
from attnlab.report._samples import (
    answers_table,
    learning_curves,
    needed_figure,
    ratio_figure,
    ratio_rows,
    ratios_against,
)
from attnlab.report._story import Book, Chapter, Derivation, Line, Story, Term
from attnlab.report._style import MAX_SERIES, menu_figure
from attnlab.report._surfaces import barrier_figure, surface_figure
from attnlab.report._tables import heat_table, plain_table, ratio_map, tone_of
from attnlab.report._words import (
    counted,
    distinct,
    estimate,
    interval,
    number,
    percent,
    printable,
    quoted,
    shortened,
)

if TYPE_CHECKING:
    from attnlab.report._drawing import Drawing
    from attnlab.report._html import render
    from attnlab.report._site import csv_of, write_folder
    from attnlab.report._svg import svg
    from attnlab.report._typeset import mathml

__all__ = [
    "Card",
    "DotRow",
    "Drawing",
    "Figure",
    "Page",
    "Section",
    "band_figure",
    "dots_figure",
    "heat_table",
    "histogram_figure",
    "learning_curves",
    "number",
    "scatter_figure",
    "write_folder",
]


# What typesets and writes pages is imported when it is used: a list of commands needs none of it.
_LATER = {
    "Drawing": "_drawing",
    "csv_of": "_site",
    "mathml": "_typeset",
    "render": "_html",
    "svg": "_svg",
    "write_folder": "_site",
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(importlib.import_module(f"attnlab.report.{_LATER[name]}"), name)
    raise AttributeError(f"module 'attnlab.report' has no attribute {name!r}")
