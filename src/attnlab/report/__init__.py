"""Figures and pages, drawn from stored records and labelled data only; nothing is computed here.

A page is declared with frozen objects and rendered to one HTML file that needs no network:

>>> from attnlab.report import Page, Section, render
>>> page = Page(title="Laws", question="Is the sum of scores conserved?", sections=(Section(id="a", title="A"),))
>>> render(page).startswith("<!doctype html>")
True
"""

from attnlab.report._bands import band_figure, theory_figure
from attnlab.report._chosen import chosen
from attnlab.report._curves import learning_curves
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._estimates import estimated, tone_of
from attnlab.report._heat import heat_table
from attnlab.report._histogram import histogram_figure
from attnlab.report._marks import Mark, off_grid, rows_figure, shown
from attnlab.report._needed import needed_figure, ratio_figure, ratio_rows, ratios_against
from attnlab.report._overlay import overlay_figure
from attnlab.report._page import Card, Control, Criterion, Figure, Grid, Page, Section, Shaded
from attnlab.report._palette import SERIES
from attnlab.report._paths import paths_figure
from attnlab.report._pictures import PictureRow, pictures_figure
from attnlab.report._ratio_map import ratio_map
from attnlab.report._relation import relation_figure
from attnlab.report._render import render, write_folder, write_page
from attnlab.report._sample_tables import answers_table, further_table, tuning_table
from attnlab.report._scatter import scatter_figure
from attnlab.report._shaded import shaded_figure
from attnlab.report._shares import ShareRow, shares_figure
from attnlab.report._shown import (
    counted,
    distinct,
    harmless,
    missing,
    percent,
    plain_table,
    quoted,
    shortened,
)
from attnlab.report._stages import stages_figure
from attnlab.report._surface import descent_figure, path_figure, surface_figure
from attnlab.report._text import head_name, interval, measured, number, plain, told

__all__ = [
    "band_figure",
    "theory_figure",
    "chosen",
    "learning_curves",
    "DotRow",
    "dots_figure",
    "estimated",
    "tone_of",
    "heat_table",
    "histogram_figure",
    "Mark",
    "off_grid",
    "rows_figure",
    "shown",
    "needed_figure",
    "ratio_figure",
    "ratio_rows",
    "ratios_against",
    "overlay_figure",
    "Card",
    "Control",
    "Criterion",
    "Figure",
    "Grid",
    "Page",
    "Section",
    "Shaded",
    "SERIES",
    "paths_figure",
    "PictureRow",
    "pictures_figure",
    "ratio_map",
    "relation_figure",
    "render",
    "write_folder",
    "write_page",
    "answers_table",
    "further_table",
    "tuning_table",
    "scatter_figure",
    "shaded_figure",
    "ShareRow",
    "shares_figure",
    "counted",
    "distinct",
    "harmless",
    "missing",
    "percent",
    "plain_table",
    "quoted",
    "shortened",
    "stages_figure",
    "descent_figure",
    "path_figure",
    "surface_figure",
    "head_name",
    "interval",
    "measured",
    "number",
    "plain",
    "told",
]
