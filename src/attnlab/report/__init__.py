"""Figures and pages, drawn from stored records and labelled data only; nothing is computed here.

A page is declared with frozen objects and rendered to one HTML file that needs no network:

>>> from attnlab.report import Page, Section, render
>>> page = Page(title="Laws", question="Is the sum of scores conserved?", sections=(Section(id="a", title="A"),))
>>> render(page).startswith("<!doctype html>")
True
"""

from attnlab.report._bands import band_figure, theory_figure
from attnlab.report._chosen import chosen
from attnlab.report._claims import claims_page, write_report
from attnlab.report._compare_page import compare_page, write_compare
from attnlab.report._curves import learning_curves
from attnlab.report._digits import attention_pictures, digits_page, write_digits
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._dynamics import dynamics_page, write_dynamics
from attnlab.report._heat import heat_table
from attnlab.report._histogram import histogram_figure
from attnlab.report._landscape_page import (
    descent_figure,
    landscape_page,
    path_figure,
    surface_figure,
    write_landscape,
)
from attnlab.report._lu2021 import sen_error_figure, sen_relation
from attnlab.report._marks import Mark, off_grid, rows_figure, shown
from attnlab.report._needed import needed_figure, ratio_figure
from attnlab.report._overlay import overlay_figure
from attnlab.report._page import Card, Control, Criterion, Figure, Grid, Page, Section, Shaded
from attnlab.report._paths import paths_figure
from attnlab.report._phases import phase_figure, phase_table
from attnlab.report._relation import relation_figure
from attnlab.report._render import render, write_folder, write_page
from attnlab.report._sample_tables import tuning_table
from attnlab.report._samples import samples_page, write_samples
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
    "phase_figure",
    "phase_table",
    "chosen",
    "learning_curves",
    "needed_figure",
    "ratio_figure",
    "tuning_table",
    "attention_pictures",
    "shaded_figure",
    "ShareRow",
    "shares_figure",
    "plain_table",
    "Mark",
    "off_grid",
    "rows_figure",
    "shown",
    "sen_error_figure",
    "sen_relation",
    "descent_figure",
    "path_figure",
    "surface_figure",
    # from page to file
    "render",
    "write_page",
    "write_folder",
    # the page of a reproduction
    "claims_page",
    "write_report",
    # the page of one configuration
    "dynamics_page",
    "write_dynamics",
    # the page of needed samples
    "samples_page",
    "write_samples",
    # the page of noisy digits
    "digits_page",
    "write_digits",
    # the page of a landscape
    "landscape_page",
    "write_landscape",
    # the page of variants of attention
    "compare_page",
    "write_compare",
    # text, and text of users made safe to show
    "counted",
    "distinct",
    "harmless",
    "missing",
    "percent",
    "quoted",
    "shortened",
    "head_name",
    "interval",
    "measured",
    "number",
    "plain",
    "told",
]
