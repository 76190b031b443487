"""Figures of certified points: their errors, and how flat minima are; what several claims draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.papers.liu2021.point_settings import GOOD
from attnlab.papers.liu2021.point_sweeps import HALF, Flatness, Minima
from attnlab.report import DotRow, Figure, Mark, dots_figure, estimate, number, rows_figure

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.stats import Interval, Location

ERROR = "prediction error, E(ŷ − g)² / Var g"
MEASURES = {
    "largest": "largest eigenvalue",
    "trace": "trace of the Hessian",
    "trace_per_parameter": "trace per parameter",
    "keskar": "Keskar's ε-sharpness",
    "sam": "SAM sharpness",
    "adaptive_sam": "adaptive SAM sharpness",
    "petzka": "Petzka's relative flatness",
}
_NAMES = {
    "known-attention": "known gate",
    "known-weights": "known weights",
    "known-weights-plain": "known weights, no w_V",
    "words-baseline": "MLP on words",
}


def model_name(model: str) -> str:
    """A model as figures call it."""
    return _NAMES.get(model, model)


def models_of(table: xr.Dataset) -> list[str]:
    """The models that a table has."""
    return [str(model) for model in table["model"].values]


def finite(values: xr.DataArray) -> np.ndarray:
    """All entries that are numbers, in one row."""
    array = np.asarray(values, dtype=float).ravel()
    return array[np.isfinite(array)]


def mean_of(values: xr.DataArray) -> float:
    """The mean of all entries that are numbers; nan without any."""
    known = finite(values)
    return float(known.mean()) if known.size else np.nan


def interval_over(values: xr.DataArray, statistic: Location) -> Interval | None:
    """A statistic over seeds with its interval; ``None`` if no seed has a value."""
    known = finite(values)
    return al.stats.interval_of(known, statistic) if known.size else None


def share_over(shares: xr.DataArray) -> Interval | None:
    """The mean of each problem's own share with its exact interval; ``None`` without any.

    Problems that were asked for and have no share count as unknown.
    """
    known = finite(shares)
    unknown = int(al.lab.asked_of(shares).sum()) - known.size
    if not known.size:
        return None
    return al.stats.share_interval(float(known.sum()), known.size, unknown=unknown)


def error_row(label: str, errors: xr.DataArray) -> DotRow:
    """A dot for each point with an error; the good ones lie on the shaded side."""
    return DotRow(label, finite(errors), GOOD)


def drawable(rows: Sequence[DotRow]) -> list[DotRow]:
    """The rows in which anything was found; with none at all, the first stays, empty."""
    return [row for row in rows if np.size(row.values)] or list(rows[:1])


def minima_errors(table: xr.Dataset, n: int, **titles: Any) -> Figure:
    """The error of every certified minimum with n samples, a row for each model."""
    errors = table[Minima.error].sel(samples=n)
    rows = [error_row(model_name(name), errors.sel(model=name)) for name in models_of(table)]
    return dots_figure(
        drawable(rows),
        x_label=ERROR,
        caption="One dot per certified minimum (of all problems and starts; equal ones are counted "
        "as often as they were found), the bar is the median. On the shaded side a minimum is "
        "good.",
        **titles,
    )


def flatness_ratios(table: xr.Dataset, model: str, **titles: Any) -> Figure:
    """The median ratio of every measure of flatness, with its interval."""
    ratios = table[Flatness.ratio].sel(model=model)
    marks = [_mark(ratios.sel(measure=measure), measure) for measure in MEASURES]
    pairs = number(mean_of(table[Flatness.pairs].sel(model=model)))
    return rows_figure(
        marks,
        x_label="ratio at equal training error",
        lines={f"{HALF:g}": HALF, "1": 1.0},
        caption=f"Medians over seeds with 95 % intervals, from {pairs} matched pairs a seed. Left "
        "of 1 the first model is flatter, left of 0.5 twice as flat. A crossed circle: no pair of "
        "minima matched.",
        **titles,
    )


def _mark(ratios: xr.DataArray, measure: str) -> Mark:
    name = MEASURES[measure]
    found = interval_over(ratios, "median ratio")
    if found is None:
        return Mark(name, 1.0, 0.0, np.inf, "unknown", estimate(found))
    low, high = (found.low, found.high) if found.exists else (0.0, np.inf)
    return Mark(name, found.estimate, low, high, said=estimate(found))
