"""Every stationary point is good, which one certified saddle refutes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Grid,
    Provenance,
    Scale,
    Source,
    Sweep,
    Table,
    every_run,
    variable,
)
from attnlab.papers import PROTOTYPE
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
from attnlab.papers.liu2021.point_settings import GOOD
from attnlab.papers.liu2021.point_sweeps import (
    CAVEAT,
    PROBLEMS,
    WORK,
    Minima,
    minima,
    share_good,
)
from attnlab.report import DotRow, Figure, dots_figure, estimate, heat_table

if TYPE_CHECKING:
    import xarray as xr


_ASKED = {
    "known-attention": "known gate",
    "self-attention": "learned self-attention",
    "multi-layer": "two learned layers",
}
_STATIONARY = ["minimum", "saddle", "degenerate"]
_OURS = Source("ours", note="the paper's attention is known")
_SEEN = Provenance("after", "2026-11-19", "its own runs, seeds from 0 on")
_SAMPLES = 128
_AT_POINT = ("value", "gradient", "distance", "delta", "smallest", "largest", "down")


class Saddles(Table, label="saddles"):
    """Stationary points of any kind of each problem, by model, problem and start."""

    certified = variable("share of searches that end at a certified stationary point")
    saddles = variable("how many end at a saddle")
    good = variable("share of good ones among the certified points")
    error = variable("error of each certified point, by start")
    saddle_error = variable("error of each saddle, by start")
    down = variable("directions in which the loss falls from each certified point, by start")
    value = variable("loss with penalty of each certified point")
    gradient = variable("‖∇L‖_∞ there")
    distance = variable("distance to the stationary point, by Newton's method")
    delta = variable("what rounding may do to an eigenvalue")
    smallest = variable("least eigenvalue of the Hessian")
    largest = variable("greatest eigenvalue of the Hessian")
    eigenvalues = variable("all eigenvalues of the Hessian (mode)")


def _grid(scale: Scale, seeds: int) -> Grid:
    """Known and learned attention, a stack of two layers, and the baseline.

    One certified point is enough to refute: at quick scale a few problems are searched. Those of
    learned attention, whose searches are long where they do not end, start small and mostly end at
    saddles.
    """
    problems = max(1, seeds // 2) if scale == "quick" else PROBLEMS[scale] * seeds
    models = ["known-attention", "baseline"]
    if scale == "paper":
        models.append("known-weights-plain")
    arms: dict[str, dict[str, Any]] = {m: {"model": m, "saddles": True} for m in models}
    counts = dict.fromkeys(models, problems)
    for model in ("self-attention", "multi-layer"):
        arms[model] = {"model": model, "saddles": True, "starts": 2, "scales": (0.1,)}
        counts[model] = max(1, seeds // 2) if scale == "quick" else seeds
    return Grid(arms, counts)


def _measure(arms: Data) -> Data:
    parts = [_measure_problems(points) for points in arms.values()]
    return {Saddles.label: al.lab.side_by_side(parts, "model", arms)}


def _measure_problems(points: xr.Dataset) -> xr.Dataset:
    stationary = points.kind.isin(_STATIONARY)
    saddle = points.kind == "saddle"
    known = (points.kind != "").sum("start")  # a run that failed has no kind
    return al.lab.dataset(
        {
            Saddles.certified: stationary.sum("start") / known,
            Saddles.saddles: saddle.sum("start"),
            Saddles.good: share_good(points, stationary),
            Saddles.error: points.error.where(stationary),
            Saddles.saddle_error: points.error.where(saddle),
            Saddles.eigenvalues: points.eigenvalues.where(stationary),
            **{name: points[name].where(stationary) for name in _AT_POINT},
        }
    )


saddles = Sweep("saddles", WORK, _grid, _measure, (Saddles,))


def every_point_good(model: str, words: str) -> Criterion:
    """That no certified stationary point of a model is bad: one counterexample refutes it."""
    known = model == "known-attention"
    return Criterion(
        f"error of every certified stationary point, {words}",
        Saddles.error.at(model=model),
        every_run <= GOOD,
        provenance=replace(_SEEN, moved_from="share ≥ 0.95 of the points" if known else ""),
        source=None if known else _OURS,
    )


def counterexample(table: xr.Dataset, model: str) -> xr.Dataset | None:
    """The certified stationary point of a model with the largest error; none without a bad one."""
    points = table.sel(model=model).stack(point=("seed", "start"))
    errors = points[Saddles.error]
    if not bool((errors > GOOD).any()):
        return None
    return points.isel(point=int(errors.fillna(-np.inf).argmax("point")))


def figures(data: Data) -> list[Figure]:
    """A counterexample of each model, its eigenvalues, the errors of all saddles beside those of
    minima, and how many were found.
    """
    table = Saddles.of(data)
    models = models_of(table)
    of_minima = Minima.error(data, model="known-attention", samples=_SAMPLES)
    lowest = Minima.lowest(data, model="known-attention", samples=_SAMPLES)
    rows = [
        error_row("lowest minima of the known gate", lowest),
        error_row("minima of the known gate", of_minima),
    ]
    for model in models:
        errors = table[Saddles.saddle_error].sel(model=model)
        rows.append(error_row(f"saddles of the {model_name(model)}", errors))
    return [
        *_counterexamples(table, models),
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


def _counterexamples(table: xr.Dataset, models: list[str]) -> list[Figure]:
    """The worst certified point of each model, with its certificate and its eigenvalues."""
    columns = {
        Saddles.error: "error",
        Saddles.gradient: "‖∇L‖_∞",
        Saddles.distance: "stationary point within",
        Saddles.smallest: "λ_min",
        Saddles.delta: "rounding δ",
        Saddles.largest: "λ_max",
        Saddles.down: "directions down",
    }
    rows, cells, spectra = [], [], []
    for model in models:
        point = counterexample(table, model)
        if point is None:
            continue
        problem, start = point["point"].item()
        rows.append(f"{model_name(model)}, problem {problem}, start {start}")
        cells.append([float(point[name]) for name in columns])
        values, delta = finite(point[Saddles.eigenvalues]), float(point[Saddles.delta])
        spectra += [
            DotRow(f"{model_name(model)}, down", -values[values < -delta], delta),
            DotRow(f"{model_name(model)}, up", values[values > delta], delta),
        ]
    if not rows:
        return []
    return [
        heat_table(
            rows,
            list(columns.values()),
            cells,
            id="counterexamples",
            title="A certified counterexample for each model",
            tones=[["bad", *[""] * (len(columns) - 1)] for _ in rows],
            caption="The certified stationary point with the largest error. By Newton's method and "
            "Kantorovich's theorem a stationary point lies within the distance given; an eigenvalue "
            "below −δ is surely negative, so that it is no minimum.",
        ),
        dots_figure(
            drawable(spectra),
            id="counterexample_spectra",
            title="Eigenvalues of the Hessian at the counterexamples",
            x_label="|λ|",
            names=("within rounding δ", "beyond rounding δ"),
            caption="One dot per eigenvalue, by sign; those within rounding δ, the zero modes of "
            "symmetry among them, are left out. The shaded side ends at δ.",
        ),
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
    title="Every stationary point is good: certified saddles refute it",
    statement="No certified stationary point of known attention has an error above "
    f"{GOOD}; nor one of learned self-attention, nor of a stack of two layers.",
    why="Hidden units that are all alike get equal gradients, so that among the networks with "
    "equal units there is always a stationary point, and often it predicts no better than a "
    "constant. It is a saddle because units that part from each other lower the loss. Descent "
    "leaves such points; a sentence about every stationary point includes them.",
    finding={
        "holds": "No bad stationary point was found",
        "fails": "Certified saddles are bad: not every stationary point is good",
        "inconclusive": "Whether every stationary point is good is undecided",
    },
    source=Source("stated", PAPER, "section 3, every stationary point has a low error"),
    provenance=PROTOTYPE,
    sweeps=(saddles, minima),
    criteria=tuple(every_point_good(model, words) for model, words in _ASKED.items()),
    controls=(
        Control(
            "lowest minimum",
            "The certified minimum of least loss of each problem of the known gate must be found "
            "good.",
            (
                Criterion(
                    "error of the lowest certified minimum, known gate",
                    Minima.lowest.at(model="known-attention", samples=_SAMPLES),
                    every_run <= GOOD,
                    provenance=_SEEN,
                ),
            ),
            should="accept",
        ),
    ),
    how_measured="Stationary points of any kind are found by minimising ‖∇L‖² from the same "
    "starts, and certified as above; a search that ends at ‖∇L‖ > 1e-8 counts for nothing. The "
    "statement is universal: one certified point with an error above "
    f"{GOOD} refutes it, and the figure shows the worst of each model. Nothing found would prove "
    "nothing.",
    refuted_by="One certified stationary point that is bad.",
    expected="fails",
    notes=(
        "The sentence “every stationary point is good” is false as a universal statement; “every "
        "local minimum” holds for nearly all problems with a known gate.",
        CAVEAT,
    ),
    figures=figures,
)
