"""The second section of a study's page: does attention pay, and how many labels are needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from attnlab.report._curves import learning_curves
from attnlab.report._marks import Kind, Mark, off_grid, rows_figure, shown
from attnlab.report._page import Card, Figure, Section
from attnlab.report._study_parts import missing, percent, shortened
from attnlab.report._text import plain

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_WANTED = {"curves": "Learning curves", "needed": "Labels needed for the target"}
_OUTCOMES = {"exact": "crossed", "at least": "not reached", "at most": "already met"}


def pays_section(
    data: Data, about: Mapping[str, Any], absent: Mapping[str, str], cards: tuple[Card, ...]
) -> Section:
    """Learning curves of the students with the target, and the labels that each needs for it."""
    figures = []
    data = {
        name: one
        for name, one in data.items()
        if name != "curves" or bool(one["accuracy"].notnull().any())
    }
    if "curves" in data:
        figures.append(accuracy_curves(data["curves"], data.get("needed"), id="accuracy_curves"))
    if "needed" in data:
        figures.append(labels_figure(data["needed"], id="labels_needed"))
    told = [str(each) for each in about.get("extrapolation") or ()]
    return Section(
        "pays",
        "Does attention pay?",
        "Accuracy on test data against the number of labelled texts: attention pooling, mean "
        "pooling of as many "
        "dimensions, and TF-IDF with logistic regression, all tuned alike.",
        body=(*missing(_WANTED, data, absent, section="pays"), *([" ".join(told)] if told else [])),
        cards=cards,
        figures=tuple(figures),
        how_measured=" ".join(str(each) for each in about.get("tuned") or ()),
    )


def accuracy_curves(curves: xr.Dataset, needed: xr.Dataset | None, *, id: str) -> Figure:
    """``accuracy`` (student, seed, size) against size, with the target and where each student meets
    it.
    """
    target = float(curves.attrs["target"])
    figure = learning_curves(
        _tabulated(curves, needed, target),
        id=id,
        title="How accuracy grows with labels",
        y_label="test accuracy",
        caption="Line: mean over seeds; band: 10–90 % of seeds. Open circle: where the line first "
        "meets the target, "
        "with its 95 % interval; a triangle: not reached (pointing right) or already met (left) "
        "on this grid.",
    )
    style = figure.plotly["layout"]
    style["xaxis"]["title"]["text"] = "labelled training texts"
    for trace in figure.plotly["data"]:
        trace |= (
            {"name": plain(f"target {percent(target)}")}
            if trace.get("name", "").startswith("level ")
            else {}
        )
    return figure


def _tabulated(curves: xr.Dataset, needed: xr.Dataset | None, target: float) -> xr.Dataset:
    """The curves in the form that ``learning_curves`` draws."""
    students = [str(name) for name in curves["student"].values]
    told = {"score": "accuracy", "falling": False, "level": target, "statistic": "mean"}
    numbers = {
        name: np.full(len(students), np.nan) for name in ("needed", "needed_low", "needed_high")
    }
    kinds, said = ["not run"] * len(students), [""] * len(students)
    for mark in marks_of(needed) if needed is not None else ():
        if mark.label in students and mark.kind in _OUTCOMES:
            k = students.index(mark.label)
            numbers["needed"][k], numbers["needed_low"][k], numbers["needed_high"][k] = (
                mark.value,
                mark.low,
                mark.high,
            )
            kinds[k], said[k] = _OUTCOMES[mark.kind], f"{shown(mark)} labels for {percent(target)}"
    table = curves[["accuracy"]].assign_attrs(told).assign_coords(student=students)
    return table.assign(
        {name: ("student", values) for name, values in numbers.items()}
        | {"needed_kind": ("student", kinds), "needed_said": ("student", said)}
    )


def marks_of(needed: xr.Dataset) -> list[Mark]:
    """The labels that each student needs, as marks; an unknown number has no place and stands at
    the least known.
    """
    values, low, high = (
        np.asarray(needed[name].values, dtype=float) for name in ("value", "low", "high")
    )
    known = values[np.isfinite(values)]
    marks = []
    for k, student in enumerate(str(name) for name in needed["student"].values):
        kind = cast(Kind, str(needed["kind"].values[k]))
        value = values[k] if np.isfinite(values[k]) else float(known.min()) if known.size else 1.0
        kind = kind if np.isfinite(values[k]) else "unknown"
        least, most = 0.0 if np.isnan(low[k]) else low[k], np.inf if np.isnan(high[k]) else high[k]
        mark = Mark(shortened(student), float(value), float(least), float(most), kind, "")
        marks.append(replace(mark, text=f"{plain(mark.label)}<br>{shown(mark)} labels"))
    return marks


def labels_figure(needed: xr.Dataset, *, id: str) -> Figure:
    """A row for each student: labels needed for the target, with interval or as a bound."""
    target = needed.attrs.get("target")
    level = f"{percent(target)} accuracy" if target is not None else "the target"
    marks = marks_of(needed)
    bounds = off_grid([mark for mark in marks if mark.kind != "unknown"])
    unknown = (
        "A crossed circle: unknown; its place says nothing."
        if any(m.kind == "unknown" for m in marks)
        else ""
    )
    return rows_figure(
        marks,
        id=id,
        title=f"Labels needed for {level}",
        x_label="labelled training texts",
        caption=" ".join(filter(None, ["Bars: 95 % intervals over seeds.", bounds, unknown])),
    )
