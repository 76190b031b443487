"""Minima and their flatness: grids, variables, criteria and texts that several claims share.

docs/theory.md#b3 and docs/theory.md#b4 have the setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import (
    Criterion,
    Data,
    Grid,
    Scale,
    Source,
    Sweep,
    Table,
    median_ratio,
    share,
    variable,
)
from attnlab.papers import restated
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.point_settings import FLATNESS, GOOD

if TYPE_CHECKING:
    import xarray as xr

WORK = "attnlab.papers.liu2021.point_runs:find_points"
SIZES = (128, 512)  # training samples of a problem
HALF = 0.5  # a minimum is called flatter if a measure is at most this share of the baseline's
# Problems for each seed asked for: a share of minima varies between problems, and they are cheap.
PROBLEMS: dict[Scale, int] = {"quick": 2, "paper": 3}

SOURCE = Source("stated", PAPER, "every local minimum has a low prediction error")
FLATTER = Source("rebuilt", PAPER, "flatness of its minima")
CAVEAT = (
    "These are measurements on small problems with l2 = 0.001; the theorems of the paper have "
    "assumptions of their own and are not tested."
)
HOW = (
    "Each problem (a teacher, its noisy samples) is minimised from 9 starts at the scales 0.1, 1 "
    "and 3 until ‖∇L‖ ≤ 1e-8 in float64; a point counts as a minimum if all eigenvalues of its "
    "Hessian but the zero modes of symmetry are positive beyond δ. Error is E(ŷ − g)²/Var g on "
    "2000 noiseless points. Intervals of shares are exact, over problems."
)
FLAT_HOW = (
    "At the lowest of three certified minima, n = 150, over one grid of penalties for both "
    "models, which have about as many parameters; of each seed all pairs of penalties whose "
    "training errors agree within 20 % are compared, and the mean of their log ratios counts; "
    "seeds without such a pair are not usable. Curvature is that of the loss without its penalty. "
    "Intervals are those of a median of log ratios over seeds."
)
MATCH = (
    "Models of one size fit unequally well, so that equal training errors belong to unequal "
    "penalties: attention has the larger one, and a penalty alone makes minima flatter. Matched by "
    "width at equal penalties, an MLP on words needs some four times the parameters, and the ratio "
    "depends on that width."
)


class Minima(Table, label="minima"):
    """Where the starts of each problem ended, by model and number of samples."""

    certified = variable("share of starts that end at a certified minimum or saddle")
    minima = variable("how many starts end at a certified minimum")
    good = variable("share of good ones among these, good being an error of at most 0.1")
    typical = variable("median error of the problem's minima")
    error = variable("error of each minimum, by start")
    value = variable("loss with penalty of each minimum, by start")
    distinct = variable("how many minima differ when symmetries are undone")
    zero_modes = variable("zero modes of symmetry of each minimum, by start")
    fall = variable("exponent of the median error in n")


class Flatness(Table, label="flatness"):
    """Measures of flatness of a model over its baseline's, at equal training error."""

    ratio = variable("ratio of a measure, geometric mean over matched pairs of penalties")
    pairs = variable("how many pairs of penalties match")


def good_minima(model: str, words: str, n: int, least: float) -> Criterion:
    """That a model has a share of good minima of at least ``least``, with n samples."""

    def measure(data: Data) -> xr.DataArray:
        return Minima.good(data, model=model, samples=n)

    since = restated(f"mean, with an interval, ≥ {least:g}")
    name = f"share of good minima, {words}, n = {n}"
    return Criterion(name, measure, share >= least, provenance=since)


def flatter(model: str, words: str) -> tuple[Criterion, ...]:
    """That a model's minima are at least twice as flat as the baseline's, by two measures."""

    def of(measure: str) -> Any:
        return Flatness.ratio.at(model=model, measure=measure)

    names = {"trace": "trace of the Hessian", "petzka": "Petzka's relative flatness"}
    since = restated(f"median, with an interval, ≤ {HALF}")
    return tuple(
        Criterion(f"{name}, {words}", of(measure), median_ratio <= HALF, provenance=since)
        for measure, name in names.items()
    )


_MODELS: dict[Scale, tuple[str, ...]] = {
    "quick": ("known-attention", "known-weights-plain", "self-attention", "baseline"),
    "paper": (
        "known-attention",
        "known-weights",
        "known-weights-plain",
        "self-attention",
        "baseline",
    ),
}
_CLASSIFIERS = ("known-attention", "self-attention", "baseline")


def _label(model: str, setting: float) -> str:
    return f"{model}/{setting}"


def _by_model(arms: Data) -> dict[str, dict[str, xr.Dataset]]:
    """The arms by model and setting, from labels such as ``baseline/128``."""
    found: dict[str, dict[str, xr.Dataset]] = {}
    for label, data in arms.items():
        model, setting = label.rsplit("/", 1)
        found.setdefault(model, {})[setting] = data
    return found


def _minima_grid(scale: Scale, seeds: int) -> Grid:
    """All models at both sizes, and labels without meaning; at paper scale two layers and
    classification as well.
    """
    kinds: dict[str, dict[str, Any]] = {model: {"model": model} for model in _MODELS[scale]}
    kinds["shuffled labels"] = {"model": "known-attention", "shuffled": True}
    counts = dict.fromkeys(kinds, PROBLEMS[scale] * seeds)
    if scale == "paper":
        more: dict[str, dict[str, Any]] = {"multi-layer": {"model": "multi-layer"}}
        more |= {f"{model}, labels": {"model": model, "classes": 2} for model in _CLASSIFIERS}
        kinds |= more
        counts |= dict.fromkeys(more, seeds)
    arms, problems = {}, {}
    for (kind, settings), n in product(kinds.items(), SIZES):
        # All sizes are cut from the largest sample, so that they share one compiled program.
        arms[_label(kind, n)] = {**settings, "samples": n, "drawn": max(SIZES)}
        problems[_label(kind, n)] = counts[kind]
    return Grid(arms, problems)


def _measure_minima(arms: Data) -> Data:
    rows = {}
    for model, by_size in _by_model(arms).items():
        parts = [_measure_problems(by_size[str(n)]) for n in SIZES]
        rows[model] = al.lab.side_by_side(parts, "samples", SIZES)
    table = al.lab.side_by_side(list(rows.values()), "model", rows)
    first, last = (table[Minima.typical].sel(samples=n) for n in SIZES)
    table[Minima.fall] = np.log(last / first) / np.log(SIZES[1] / SIZES[0])
    return {Minima.label: table}


def _measure_problems(points: xr.Dataset) -> xr.Dataset:
    """The variables of `Minima` of each problem, from what `find_points` found."""
    minimum = points.kind == "minimum"
    errors = points.error.where(minimum)
    known = (points.kind != "").sum("start")  # a run that failed has no kind
    return al.lab.dataset(
        {
            Minima.certified: points.kind.isin(["minimum", "saddle"]).sum("start") / known,
            Minima.minima: minimum.sum("start"),
            Minima.good: share_good(points, minimum),
            Minima.typical: errors.median("start"),
            Minima.error: errors,
            Minima.value: points.value.where(minimum),
            Minima.distinct: _distinct(points.group.where(minimum)),
            Minima.zero_modes: points.zero_modes.where(minimum),
        }
    )


def share_good(points: xr.Dataset, counted: xr.DataArray) -> xr.DataArray:
    """The share of good points among those that count; nan for a problem without any."""
    good = counted & (points.error <= GOOD)
    count = counted.sum("start")
    return good.sum("start") / count.where(count > 0)


def _distinct(groups: xr.DataArray) -> xr.DataArray:
    """How many groups of equal points each seed has; a group below zero is none."""
    rows = groups.transpose("seed", "start").values
    counts = [len(set(row[row >= 0].tolist())) for row in rows]
    return al.lab.labelled(counts, seed=groups.seed.values)


_WITH_BASELINES = ("known-attention", "baseline", "self-attention", "words-baseline")
_PENALTIES: dict[Scale, tuple[float, ...]] = {
    "quick": (1e-3, 4e-3, 1.6e-2, 6.4e-2, 0.128),
    "paper": (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2, 0.128),
}
_FLAT_PROBLEMS: dict[Scale, int] = {"quick": 2, "paper": 4}
_OTHERS = 5  # seeds that a control compares each seed with
_NEAR = 0.2  # training errors are matched to within this share


def _flatness_grid(scale: Scale, seeds: int) -> Grid:
    """Attention and its baseline over a grid of penalties, of which pairs of equal training error
    are taken.
    """
    common = {"samples": 150, "starts": 3, "scales": (1.0,), "flat": "lowest"}
    arms = {
        _label(model, l2): {"model": model, "l2": l2, **common}
        for model, l2 in product(_WITH_BASELINES, _PENALTIES[scale])
    }
    return Grid(arms, _FLAT_PROBLEMS[scale] * seeds)


def _measure_flatness(arms: Data) -> Data:
    """Attention over its baseline; and, as a control, the baseline of one seed over those of some
    others.
    """
    lowest = {
        model: [_lowest(data) for data in by_penalty.values()]
        for model, by_penalty in _by_model(arms).items()
    }
    baselines = lowest["baseline"]
    others = [one.roll(seed=shift) for one in baselines for shift in range(1, _OTHERS + 1)]
    found = {
        "known-attention": _matched(lowest["known-attention"], baselines),
        "baseline": _matched(others, baselines),
        "self-attention": _matched(lowest["self-attention"], lowest["words-baseline"]),
    }
    return {Flatness.label: al.lab.side_by_side(list(found.values()), "model", found)}


def _measures() -> list[str]:
    """What `find_points` calls the measures of flatness."""
    return [f"flat_{name}" for name in FLATNESS]


def _lowest(points: xr.Dataset) -> xr.Dataset:
    """Training loss and flatness at the certified minimum of lowest value of each problem."""
    value = points.value.where(points.kind == "minimum").fillna(np.inf)
    found = points[["loss", *_measures()]].isel(start=value.argmin("start"))
    return found.drop_vars("start", errors="ignore").where(value.min("start") < np.inf)


def _matched(mine: Sequence[xr.Dataset], theirs: Sequence[xr.Dataset]) -> xr.Dataset:
    """Ratios over all pairs of penalties whose training errors agree to within a fifth."""
    logs, matches = [], []
    for a, b in product(mine, theirs):
        match = abs(np.log(a.loss / b.loss)) <= np.log1p(_NEAR)
        ratios = [(a[name] / b[name]).where(match) for name in _measures()]
        matches.append(match)
        logs.append(np.log(al.lab.along(ratios, "measure", FLATNESS)))
    ratio = np.exp(_over_pairs(logs).mean("pair"))
    pairs = _over_pairs(matches).sum("pair")
    found = al.lab.dataset({Flatness.ratio: ratio, Flatness.pairs: pairs})
    return found.transpose("measure", "seed")


def _over_pairs(parts: Sequence[xr.DataArray]) -> xr.DataArray:
    return al.lab.along(parts, "pair", range(len(parts)))


minima = Sweep("minima", WORK, _minima_grid, _measure_minima, (Minima,))
flatness = Sweep("flatness", WORK, _flatness_grid, _measure_flatness, (Flatness,))
