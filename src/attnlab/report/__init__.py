"""Figures and pages, drawn from stored records and labelled data only; nothing is computed here.

A page is declared with frozen objects and rendered to one HTML file that needs no network:

>>> from attnlab.report import Page, Section, render
>>> page = Page(title="Laws", question="Is the sum of scores conserved?", sections=(Section(id="a", title="A"),))
>>> render(page).startswith("<!doctype html>")
True
"""

from attnlab.report._bands import band_figure, theory_figure
from attnlab.report._claims import claims_page, write_report
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._heat import heat_table
from attnlab.report._page import Card, Control, Criterion, Figure, Grid, Page, Section
from attnlab.report._relation import relation_figure
from attnlab.report._render import render, write_page
from attnlab.report._text import number, plain

__all__ = [
    # what a page is made of
    "Page",
    "Section",
    "Card",
    "Criterion",
    "Control",
    "Figure",
    "Grid",
    # figures
    "band_figure",
    "theory_figure",
    "relation_figure",
    "dots_figure",
    "DotRow",
    "heat_table",
    # from page to file
    "render",
    "write_page",
    # the page of a reproduction
    "claims_page",
    "write_report",
    # text
    "number",
    "plain",
]
