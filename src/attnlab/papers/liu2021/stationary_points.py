"""Known attention: every stationary point is good, which its saddles refute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attnlab as al
from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Grid,
    Scale,
    Source,
    Sweep,
    Table,
    share,
    variable,
)
from attnlab.papers import PROTOTYPE, restated
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.point_figures import (
    ERROR,
    drawable,
    error_row,
    finite,
    mean_of,
    model_name,
    models_of,
    share_over,
)
from attnlab.papers.liu2021.point_sweeps import (
    CAVEAT,
    PROBLEMS,
    WORK,
    Minima,
    good_minima,
    minima,
    share_good,
)
from attnlab.report import Figure, dots_figure, estimate, heat_table

if TYPE_CHECKING:
    import xarray as xr


class Saddles(Table, label="saddles"):
    """Stationary points of any kind of each problem, by model."""

    certified = variable("share of searches that end at a certified stationary point")
    saddles = variable("how many end at a saddle")
    good = variable("share of good ones among the certified points")
    error = variable("error of each certified point, by start")
    saddle_error = variable("error of each saddle, by start")
    down = variable("directions in which the loss falls from each certified point, by start")


def _grid(scale: Scale, seeds: int) -> Grid:
    """The models of known attention, and the baseline."""
    models = ["known-attention", "baseline"]
    if scale == "paper":
        models.append("known-weights-plain")
    problems = 1 if scale == "quick" else PROBLEMS[scale]
    return Grid({model: {"model": model, "saddles": True} for model in models}, problems * seeds)


def _measure(arms: Data) -> Data:
    parts = [_measure_problems(points) for points in arms.values()]
    return {Saddles.label: al.lab.side_by_side(parts, "model", arms)}


def _measure_problems(points: xr.Dataset) -> xr.Dataset:
    stationary = points.kind.isin(["minimum", "saddle", "degenerate"])
    saddle = points.kind == "saddle"
    known = (points.kind != "").sum("start")  # a run that failed has no kind
    return al.lab.dataset(
        {
            Saddles.certified: stationary.sum("start") / known,
            Saddles.saddles: saddle.sum("start"),
            Saddles.good: share_good(points, stationary),
            Saddles.error: points.error.where(stationary),
            Saddles.saddle_error: points.error.where(saddle),
            Saddles.down: points.down.where(stationary),
        }
    )


saddles = Sweep("saddles", WORK, _grid, _measure, (Saddles,))


def figures(data: Data) -> list[Figure]:
    """The errors of saddles beside those of minima, and how many were found."""
    table = Saddles.of(data)
    models = models_of(table)
    of_minima = Minima.error(data, model="known-attention", samples=128)
    rows = [error_row("minima of the known gate", of_minima)]
    for model in models:
        errors = table[Saddles.saddle_error].sel(model=model)
        rows.append(error_row(f"saddles of the {model_name(model)}", errors))
    return [
        dots_figure(
            drawable(rows),
            id="saddle_errors",
            title="Saddles against minima: the error of each",
            x_label=ERROR,
            caption="One dot per certified point, the bar is the median. On the shaded side a "
            "point is good. An error of 1 is that of a constant.",
        ),
        _counts(table, models),
    ]


def _counts(table: xr.Dataset, models: list[str]) -> Figure:
    columns = [
        "searches certified",
        "saddles per problem",
        "good stationary points",
        "directions down, at most",
    ]
    cells = []
    for model in models:
        found = table.sel(model=model)
        down = finite(found[Saddles.down])
        good = estimate(share_over(found[Saddles.good]))
        counts = [mean_of(found[name]) for name in (Saddles.certified, Saddles.saddles)]
        cells.append([*counts, good, float(down.max(initial=0))])
    return heat_table(
        [model_name(model) for model in models],
        columns,
        cells,
        id="saddle_counts",
        title="What was found",
        tones=[[""] * len(columns) for _ in models],
        caption="Stationary points of any kind. Shares of good ones with 95 % intervals over "
        "problems.",
    )


claim = Claim(
    id="liu2021.stationary_points",
    rank=12,
    title="With known attention, every stationary point is good",
    statement="Of all certified stationary points of known attention, saddles among them, 95 % are "
    "good.",
    source=Source("stated", PAPER, "section 3, every stationary point has a low error"),
    provenance=PROTOTYPE,
    sweeps=(saddles, minima),
    criteria=(
        Criterion(
            "share of good stationary points, known gate",
            Saddles.good.at(model="known-attention"),
            share >= 0.95,
            provenance=restated("mean, with an interval, ≥ 0.95"),
        ),
    ),
    controls=(
        Control(
            "minima only",
            "Of its minima the same must be found true.",
            (good_minima("known-attention", "known gate", 128, 0.95),),
            should="accept",
        ),
    ),
    how_measured="Stationary points of any kind are found by minimising ‖∇L‖² from the same "
    "starts, and certified as above; a search that ends at ‖∇L‖ > 1e-8 counts for nothing. Shares "
    "are per problem, their intervals exact over problems.",
    refuted_by="Certified stationary points that are bad: saddles have an error near 1.",
    expected="fails",
    notes=(
        "The sentence “every stationary point is good” is false as a universal statement; “every "
        "local minimum” nearly holds for known attention.",
        CAVEAT,
    ),
    figures=figures,
)
