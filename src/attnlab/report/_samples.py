"""The page of ``attnlab samples``: how many samples each student needs, and how many it saves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._curves import learning_curves
from attnlab.report._dynamics import again_section, card_of_entry
from attnlab.report._marks import is_numeric
from attnlab.report._needed import needed_figure, ratio_figure
from attnlab.report._page import Page, Section
from attnlab.report._render import write_folder
from attnlab.report._sample_tables import answers_table, further_table, tuning_table
from attnlab.report._text import number, told

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_ELSEWHERE = ("settings", "command", "summary", "cards", "title", "question")


def samples_page(data: Data, about: Mapping[str, Any]) -> Page:
    """One page about the needed samples of some students.

    ``data["samples"]`` is what ``attnlab.studies.tabulate`` returns: the score with dimensions
    (student, features, seed, size); ``needed``, ``ratio`` and ``exponent`` with ``_low``,
    ``_high``, ``_kind``; ``verdict``, ``reached``; and, where stored, ``predicted``,
    ``extrapolated``, ``unsettled`` and the tuning that was chosen.

    ``about``: ``summary`` (sentences), ``cards`` (label, text, headline, measure, verdict),
    ``command`` and ``settings``. All else is shown as where the page comes from.
    """
    table, settings = data["samples"], about.get("settings") or {}
    cards = tuple(card_of_entry(entry) for entry in about.get("cards") or ())
    return Page(
        title=str(about.get("title", "attnlab: how many samples does attention save?")),
        question=str(about.get("question", "How many samples does each student need?")),
        summary=""
        if cards
        else " ".join(map(str, about.get("summary") or ())),  # cards say it at a glance
        sections=(
            _curves(table, settings),
            _needed(table),
            *_ratio(table),
            *_fits(table, settings),
            again_section(about),
        ),
        cards=cards,
        provenance={str(k).capitalize(): told(v) for k, v in about.items() if k not in _ELSEWHERE},
    )


def write_samples(folder: str | Path, data: Data, about: Mapping[str, Any]) -> Path:
    """Write ``report.html``, and each figure's drawing and data in ``figures/``."""
    return write_folder(samples_page(data, about), folder)


def _curves(table: xr.Dataset, settings: Mapping[str, Any]) -> Section:
    y_label, what = (
        "",
        "the error is E(ŷ − g)²/Var g on points without noise: 1 for a constant, 0 for the truth",
    )
    if settings.get("classes"):
        y_label, what = (
            "share of wrong labels",
            "the error is the share of wrong labels on points without noise",
        )
    level = number(float(table.attrs["level"]))
    return Section(
        "curves",
        "Learning curves",
        f"How the {table.attrs['score']} goes with the number of training samples n; {what}.",
        figures=(
            learning_curves(
                table,
                id="learning_curves",
                title=f"When is {table.attrs['score']} {level} reached?",
                y_label=y_label,
            ),
        ),
    )


def _needed(table: xr.Dataset) -> Section:
    title, figures = (
        "Needed samples",
        [needed_figure(table, id="needed", title="Samples needed for the level")],
    )
    if is_numeric(table):
        title = "Needed samples, and how they grow"
        figures[0] = needed_figure(
            table, id="needed", title="Samples needed, against the number of features"
        )
    figures.append(answers_table(table, id="answers", title="The same in numbers"))
    further = further_table(table, id="further", title="What a power law expects")
    figures += [further] if further is not None else []
    statement = (
        "Where the curve over seeds first meets the level, interpolated in log n between the sizes "
        "that were run."
    )
    return Section("needed", title, statement, figures=tuple(figures))


def _ratio(table: xr.Dataset) -> tuple[Section, ...]:
    """Nothing for a single student."""
    against = str(table.attrs["against"])
    if not any(str(kind) not in ("not run", "") for kind in np.ravel(table["ratio_kind"].values)):
        return ()
    statement = f"The samples that {against} needs, over those that each other student needs, from paired seeds."
    figure = ratio_figure(table, id="ratio", title=f"How many times fewer samples than {against}")
    return (Section("ratio", "How many samples are saved?", statement, figures=(figure,)),)


def _fits(table: xr.Dataset, settings: Mapping[str, Any]) -> tuple[Section, ...]:
    offered = {
        "step_size": settings.get("step_sizes") or (),
        "weight_decay": settings.get("weight_decays") or (),
    }
    figure = tuning_table(table, id="tuning", title="What validation data chose", offered=offered)
    if figure is None:
        return ()
    statement = "Students are only comparable if all were tuned alike, and if their training had come to an end."
    return (Section("fits", "What was tuned", statement, figures=(figure,)),)
