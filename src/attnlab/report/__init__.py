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
from attnlab.report._marks import Mark, rows_figure
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
from attnlab.report._stages import stages_figure
from attnlab.report._study_page import study_page, write_study
from attnlab.report._surface import descent_figure, path_figure, surface_figure
from attnlab.report._text import head_name, interval, measured, number, plain, told

__all__ = [
    # what a page is made of
    "Page",
    "Section",
    "Card",
    "Criterion",
    "Control",
    "Figure",
    "Grid",
    "Shaded",
    # figures
    "band_figure",
    "theory_figure",
    "relation_figure",
    "dots_figure",
    "DotRow",
    "heat_table",
    "scatter_figure",
    "paths_figure",
    "histogram_figure",
    "overlay_figure",
    "chosen",
    "learning_curves",
    "Mark",
    "rows_figure",
    "needed_figure",
    "ratio_figure",
    "answers_table",
    "tuning_table",
    "pictures_figure",
    "PictureRow",
    "ratio_map",
    "SERIES",
    "ratio_rows",
    "ratios_against",
    "further_table",
    "shaded_figure",
    "stages_figure",
    "descent_figure",
    "path_figure",
    "surface_figure",
    # from page to file
    "render",
    "write_page",
    "write_folder",
    # the page of a user's texts
    "study_page",
    "write_study",
    # text
    "estimated",
    "tone_of",
    "head_name",
    "interval",
    "measured",
    "number",
    "plain",
    "told",
]
