"""Figures of certified points: their errors, and how flat minima are; what several claims draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.papers.liu2021.point_settings import GOOD
from attnlab.papers.liu2021.point_sweeps import EVERY, HALF, JUDGED, SIZES, Flatness, Minima
from attnlab.report import (
    DotRow,
    Figure,
    Mark,
    dots_figure,
    estimate,
    heat_table,
    number,
    rows_figure,
    tone_of,
)

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
    "narrow-baseline": "baseline on the relevant numbers",
    "words-baseline": "MLP on words",
    "multi-layer": "two learned layers",
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
        "as often as they were found; of very many in a row, only some of the good ones), the bar is "
        "the median. On the shaded side a minimum is good.",
        **titles,
    )


def minima_shares(table: xr.Dataset, asked: tuple[str, int], **titles: Any) -> Figure:
    """In how many problems every minimum is good, by model and samples; ``asked`` is the model and
    the number of samples of which `EVERY` is asked.
    """
    models = models_of(table)
    cells, tones = [], []
    for model in models:
        words, marks = [], []
        for n in SIZES:
            every = table[Minima.every].sel(model=model, samples=n)
            found, known = share_over(every), finite(every)
            words.append(f"{estimate(found)}, {int(known.sum())} of {known.size}")
            marks.append(tone_of(found, least=EVERY) if asked == (model, n) else "")
            if asked == (model, n):
                words[-1] += f"; asked: ≥ {number(EVERY)}"
        good = [
            number(mean_of(table[Minima.good].sel(model=model, samples=n))).replace("nan", "–")
            for n in SIZES
        ]
        cells.append([*words, *good])
        tones.append([*marks, *("" for _ in SIZES)])
    return heat_table(
        [model_name(model) for model in models],
        [
            *(f"every minimum good, n = {n}" for n in SIZES),
            *(f"good minima, n = {n}" for n in SIZES),
        ],
        cells,
        tones=tones,
        caption="Share of problems in which every certified minimum is good, with exact 95 % "
        f"intervals; to show {number(EVERY)} takes {al.stats.trials_needed(EVERY)} problems without "
        "an exception. Beside it the share of good minima, as a mean over problems.",
        **titles,
    )


def flatness_ratios(table: xr.Dataset, model: str, **titles: Any) -> Figure:
    """The median ratio of the measures of flatness per live parameter at equal penalties, of their
    mean and at each penalty, and at equal error.
    """
    own = table.sel(model=model)
    marks = []
    for measure in JUDGED:
        ratios = own[Flatness.each].sel(measure=measure)
        marks.append(_mark(ratios, f"{MEASURES[measure]}, equal penalties"))
        for l2 in own["l2"].values:
            at = own[Flatness.equal].sel(measure=measure, l2=l2)
            marks.append(_mark(at, f"… at the penalty {number(float(l2))}"))
        ratios = own[Flatness.ratio].sel(measure=measure)
        marks.append(_mark(ratios, f"{MEASURES[measure]}, equal error (not per parameter)"))
    return rows_figure(
        marks,
        x_label="ratio to the baseline",
        lines={f"{HALF:g}": HALF, "1": 1.0},
        caption="Medians over seeds with 95 % intervals. Left of 1 the first model is flatter, "
        f"left of {HALF:g} twice as flat. At equal penalties: per live parameter, of which it has "
        f"{_count(own[Flatness.live])} among {_count(own[Flatness.parameters])}. At equal error: "
        f"not per parameter, from {number(mean_of(own[Flatness.pairs]))} matched pairs of "
        f"penalties a seed; there its penalty is {number(_typical(own[Flatness.penalty]))} times "
        "the baseline's (geometric mean). A crossed circle: no pair of minima matched.",
        **titles,
    )


def flatness_measures(table: xr.Dataset, model: str, **titles: Any) -> Figure:
    """The median ratio of every measure of flatness at equal error, with its interval."""
    ratios = table[Flatness.ratio].sel(model=model)
    marks = [_mark(ratios.sel(measure=measure), MEASURES[measure]) for measure in MEASURES]
    return rows_figure(
        marks,
        x_label="ratio at equal training error",
        lines={f"{HALF:g}": HALF, "1": 1.0},
        caption="Medians over seeds with 95 % intervals, with dead parameters and unequal "
        "penalties. A crossed circle: no pair of minima matched.",
        **titles,
    )


def _count(values: xr.DataArray) -> str:
    return number(mean_of(values))


def _typical(ratios: xr.DataArray) -> float:
    """The geometric mean; nan without any."""
    known = finite(ratios)
    return float(np.exp(np.log(known).mean())) if known.size else np.nan


def _mark(ratios: xr.DataArray, name: str) -> Mark:
    found = interval_over(ratios, "median ratio")
    if found is None:
        return Mark(name, 1.0, 0.0, np.inf, "unknown", estimate(found))
    low, high = (found.low, found.high) if found.exists else (0.0, np.inf)
    return Mark(name, found.estimate, low, high, said=estimate(found))
