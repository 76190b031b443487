"""Known attention: the error at minima falls as samples grow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnlab.lab import Claim, Control, Criterion, Data, Source, median
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.point_figures import interval_over, model_name, models_of
from attnlab.papers.liu2021.point_sweeps import CAVEAT, HOW, Minima, minima
from attnlab.report import Figure, band_figure, estimate, heat_table, tone_of

if TYPE_CHECKING:
    import xarray as xr

_EXPONENT = -0.5  # four times the samples halve the error
_JUDGED = {"known-attention": "known gate", "known-weights-plain": "known weights"}


_MOVED = replace(
    PROTOTYPE,
    seen="a prototype's and its own runs",
    moved_from="median, with an interval, ≤ -0.25; at first ≤ -0.5, of weights with w_V",
)


def falls(model: str, words: str) -> Criterion:
    """That the median error of a model falls at least like the square root of n."""

    def measure(data: Data) -> xr.DataArray:
        asked = Minima.typical(data, model=model)["asked"].all("samples")
        return Minima.fall(data, model=model).assign_coords(asked=asked)

    return Criterion(
        f"exponent of the median error in n, {words}",
        measure,
        median <= _EXPONENT,
        provenance=_MOVED,
    )


def figures(data: Data) -> list[Figure]:
    """The error against samples, and its exponent."""
    table = Minima.of(data)
    return [_errors(table), _exponents(table)]


def _errors(table: xr.Dataset) -> Figure:
    sizes = table["samples"].values.astype(float)
    errors = table[Minima.typical].transpose("model", "seed", "samples")
    series = {
        model_name(model): errors.sel(model=model).dropna("seed", how="all")
        for model in models_of(table)
    }
    start = float(np.nanmedian(errors.sel(model="known-attention").isel(samples=0)))
    return band_figure(
        sizes,
        series,
        id="fall_errors",
        title="The error of minima against samples",
        x_label="samples",
        y_label="median error of a problem's minima",
        log_x=True,
        log_y=True,
        singles=0,
        guides={"slope −1/2": (sizes, start * (sizes / sizes[0]) ** _EXPONENT)},
        caption="Line: median over problems. Band: 10–90 % of problems. The guide begins at the "
        "known gate's.",
    )


def _exponents(table: xr.Dataset) -> Figure:
    cells, tones = [], []
    for model in models_of(table):
        found = interval_over(table[Minima.fall].sel(model=model), "median")
        cells.append([estimate(found)])
        tones.append([tone_of(found, most=_EXPONENT) if model in _JUDGED else ""])
    return heat_table(
        [model_name(model) for model in models_of(table)],
        ["exponent of the error in n"],
        cells,
        id="fall_exponents",
        title="How fast the error falls",
        tones=tones,
        caption="Median over problems, with its 95 % interval; −0.5 or less is asked for of the "
        "two models of known attention.",
    )


claim = Claim(
    id="liu2021.error_falls_with_n",
    rank=13,
    title="The error of known attention's minima falls as samples grow",
    statement="From 128 to 512 samples the prediction error at minima falls at least like the "
    "square root of n.",
    why="At a minimum with its hidden units in the right places, what is left of the error is "
    "noise in the estimated weights, which falls as samples average it out. A penalty of the "
    "same size at every n slows the fall, because its bias does not average out.",
    finding={
        "holds": "The error at minima of known attention falls as samples grow",
        "fails": "The error at minima of known attention falls too slowly with samples",
        "inconclusive": "How fast the error at minima falls with samples is undecided",
    },
    source=Source("rebuilt", PAPER, "how the error at minima depends on n"),
    provenance=PROTOTYPE,
    sweeps=(minima,),
    criteria=tuple(falls(model, words) for model, words in _JUDGED.items()),
    controls=(
        Control(
            "labels without meaning",
            "With shuffled labels more samples do not bring the error down like that.",
            (falls("shuffled labels", "shuffled labels"),),
        ),
    ),
    how_measured=f"{HOW} Per problem the median error over its certified minima is compared "
    "between the two sizes.",
    refuted_by="An exponent above −0.5.",
    notes=(
        "The penalty is the same for both sizes, so that its bias is a floor under the error, "
        "which slows its fall.",
        CAVEAT,
    ),
    figures=figures,
)
