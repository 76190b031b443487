"""Minima and their flatness: grids, variables, criteria and texts that several claims share.

docs/theory.md#b3 and docs/theory.md#b4 have the setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import (
    Criterion,
    Data,
    Grid,
    Provenance,
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
EVERY = 0.9  # the share of problems of which all minima are asked to be good
# Problems for each seed asked for. Those of the gate decide about a share of 0.95 of the minima, which
# takes 72 problems without an exception; what is asked of the other models is decided by fewer.
PROBLEMS: dict[Scale, int] = {"quick": 2, "paper": 3}
_PROBLEMS_OF: dict[str, dict[Scale, int]] = {
    "known-attention": {"quick": 14, "paper": 14},
    "known-weights-plain": {"quick": 8, "paper": 8},
}

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
    "2000 noiseless points; a minimum with an error of at most 0.1 is good. Counted are problems of "
    "which every certified minimum is good; intervals are exact, over problems."
)
FLAT_HOW = (
    "At the lowest of three certified minima, n = 150, over one grid of penalties for all models. "
    "Judged is the curvature for each live parameter at equal penalties: a measure over the number "
    "of parameters that have an influence on the output, attention's over the baseline's, each "
    "parameter being penalised alike; of each seed the mean of the log ratios over the penalties "
    "counts. Matched error, shown with it: all pairs of penalties whose training errors agree "
    "within 20 %, without regard to dead parameters; seeds without such a pair are not usable. "
    "Curvature is that of the loss without its penalty. Intervals are those of a median of log "
    "ratios over seeds."
)
MATCH = (
    "At equal training error two other things differ: the number of live parameters (of the gate's "
    "36 parameters 24 have no influence) and the penalty, which is larger by far with attention, "
    "and a penalty alone makes minima flatter. The figure has both. At equal penalties the ratio "
    "rises with the penalty, from below 1 to above: what is judged is its mean over the grid."
)


class Minima(Table, label="minima"):
    """Where the starts of each problem ended, by model and number of samples."""

    certified = variable("share of starts that end at a certified minimum or saddle")
    minima = variable("how many starts end at a certified minimum")
    good = variable("share of good ones among these, good being an error of at most 0.1")
    every = variable("whether all of them are good")
    lowest = variable("error of the minimum of least value")
    typical = variable("median error of the problem's minima")
    error = variable("error of each minimum, by start")
    value = variable("loss with penalty of each minimum, by start")
    distinct = variable("how many minima differ when symmetries are undone")
    zero_modes = variable("zero modes of symmetry of each minimum, by start")
    fall = variable("exponent of the median error in n")


class Flatness(Table, label="flatness"):
    """Measures of flatness of a model over its baseline's (model, measure, seed)."""

    ratio = variable("at equal training error, geometric mean over matched pairs of penalties")
    pairs = variable("how many pairs of penalties match")
    penalty = variable("penalty over the baseline's, geometric mean over matched pairs")
    equal = variable("per live parameter, at each penalty (l2) that both have")
    each = variable("per live parameter, geometric mean over the penalties")
    live = variable("parameters that have an influence on the output")
    parameters = variable("parameters, dead ones among them")


def good_minima(model: str, words: str, n: int, least: float) -> Criterion:
    """That a model has a share of good minima of at least ``least``, with n samples."""
    return Criterion(
        f"share of good minima, {words}, n = {n}",
        Minima.good.at(model=model, samples=n),
        share >= least,
        provenance=restated(f"mean, with an interval, ≥ {least:g}"),
    )


def every_minimum_good(model: str, words: str, n: int, *, before: str = "") -> Criterion:
    """That every minimum of a model is good, in nearly all problems with n samples.

    ``before``: what was asked until then.
    """
    return Criterion(
        f"problems in which every minimum is good, {words}, n = {n}",
        Minima.every.at(model=model, samples=n),
        share >= EVERY,
        provenance=Provenance(
            "after", "2026-11-19", "seeds 0 to 111 of the gate, of others from 0 on", before
        ),
    )


JUDGED = {"trace": "trace of the Hessian", "petzka": "Petzka's relative flatness"}


def flatter(model: str, words: str) -> tuple[Criterion, ...]:
    """That a model's minima are at least twice as flat as its baseline's, by two measures, for each
    live parameter and at equal penalties.
    """
    since = Provenance(
        "after",
        "2026-11-19",
        "its own runs, seeds from 0 on, and an audit's (docs/theory.md)",
        f"median ratio, with an interval, ≤ {HALF} at equal training error",
    )
    return tuple(
        Criterion(
            f"{name} per live parameter, {words}",
            Flatness.each.at(model=model, measure=measure),
            median_ratio <= HALF,
            provenance=since,
        )
        for measure, name in JUDGED.items()
    )


def flatter_at_equal_error(model: str, words: str) -> tuple[Criterion, ...]:
    """The same at equal training error, where dead parameters and a larger penalty count too."""
    return tuple(
        Criterion(
            f"{name} at equal error, {words}",
            Flatness.ratio.at(model=model, measure=measure),
            median_ratio <= HALF,
            provenance=restated(f"median, with an interval, ≤ {HALF}"),
        )
        for measure, name in JUDGED.items()
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
    counts = {kind: _PROBLEMS_OF.get(kind, PROBLEMS)[scale] * seeds for kind in kinds}
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
    good = share_good(points, minimum)
    known = (points.kind != "").sum("start")  # a run that failed has no kind
    return al.lab.dataset(
        {
            Minima.certified: points.kind.isin(["minimum", "saddle"]).sum("start") / known,
            Minima.minima: minimum.sum("start"),
            Minima.good: good,
            Minima.every: (good == 1).where(good.notnull()),
            Minima.lowest: _of_lowest(points, "error"),
            Minima.typical: errors.median("start"),
            Minima.error: errors,
            Minima.value: points.value.where(minimum),
            Minima.distinct: _distinct(points.group.where(minimum)),
            Minima.zero_modes: points.zero_modes.where(minimum),
        }
    )


def _of_lowest(points: xr.Dataset, name: str) -> xr.DataArray:
    """A column at the certified minimum of least value of each problem; nan without any."""
    value = points.value.where(points.kind == "minimum")
    found = points[name].isel(start=value.fillna(np.inf).argmin("start"))
    return found.drop_vars("start", errors="ignore").where(value.notnull().any("start"))


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


# Whose flatness is compared with whose; the narrow baseline has as many live parameters as the gate.
_BASELINE_OF = {
    "known-attention": "baseline",
    "narrow-baseline": "baseline",
    "self-attention": "words-baseline",
}
_PENALTIES: dict[Scale, tuple[float, ...]] = {
    "quick": (1e-3, 4e-3, 1.6e-2, 6.4e-2, 0.128),
    "paper": (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2, 0.128),
}
_FLAT_PROBLEMS: dict[Scale, int] = {"quick": 2, "paper": 4}
_NEAR = 0.2  # training errors are matched to within this share


def _flatness_grid(scale: Scale, seeds: int) -> Grid:
    """Models and their baselines over a grid of penalties."""
    common = {"samples": 150, "starts": 3, "scales": (1.0,), "flat": "lowest"}
    models = dict.fromkeys([*_BASELINE_OF, *_BASELINE_OF.values()])
    arms = {
        _label(model, l2): {"model": model, "l2": l2, **common}
        for model, l2 in product(models, _PENALTIES[scale])
    }
    return Grid(arms, _FLAT_PROBLEMS[scale] * seeds)


def _measure_flatness(arms: Data) -> Data:
    """Each model over its baseline, at equal penalties and at equal training errors."""
    lowest = {
        model: {float(l2): _lowest(data) for l2, data in by_penalty.items()}
        for model, by_penalty in _by_model(arms).items()
    }
    found = {
        model: _matched(lowest[model], lowest[other]).merge(
            _equally_penalised(lowest[model], lowest[other])
        )
        for model, other in _BASELINE_OF.items()
    }
    return {Flatness.label: al.lab.side_by_side(list(found.values()), "model", found)}


def _measures(points: xr.Dataset) -> xr.DataArray:
    """The measures of flatness (measure, seed)."""
    parts = [points[f"flat_{name}"] for name in FLATNESS]
    return al.lab.along(parts, "measure", FLATNESS)


def _lowest(points: xr.Dataset) -> xr.Dataset:
    """Training loss and flatness at the certified minimum of lowest value of each problem."""
    names = ["loss", *(f"flat_{name}" for name in FLATNESS)]
    found = {name: _of_lowest(points, name) for name in names}
    return al.lab.dataset(found).assign(live=points.live, parameters=points.parameters)


_ByPenalty = Mapping[float, "xr.Dataset"]


def _equally_penalised(mine: _ByPenalty, theirs: _ByPenalty) -> xr.Dataset:
    """Ratios of measures per live parameter at each penalty."""
    both = [l2 for l2 in mine if l2 in theirs]
    ratios = [
        (_measures(mine[l2]) / mine[l2].live) / (_measures(theirs[l2]) / theirs[l2].live)
        for l2 in both
    ]
    equal = al.lab.along(ratios, "l2", both)
    first = mine[both[0]]
    return al.lab.dataset(
        {
            Flatness.equal: equal,
            Flatness.each: np.exp(np.log(equal).mean("l2")),
            Flatness.live: first.live,
            Flatness.parameters: first.parameters,
        }
    ).transpose("measure", "l2", "seed")


def _matched(mine: _ByPenalty, theirs: _ByPenalty) -> xr.Dataset:
    """Ratios over all pairs of penalties whose training errors agree to within a fifth."""
    logs, penalties = [], []
    for (own, a), (other, b) in product(mine.items(), theirs.items()):
        match = abs(np.log(a.loss / b.loss)) <= np.log1p(_NEAR)
        logs.append(np.log((_measures(a) / _measures(b)).where(match)))
        penalties.append((match * np.log(own / other)).where(match))
    penalty = _over_pairs(penalties)
    found = al.lab.dataset(
        {
            Flatness.ratio: np.exp(_over_pairs(logs).mean("pair")),
            Flatness.pairs: penalty.notnull().sum("pair"),
            Flatness.penalty: np.exp(penalty.mean("pair")),
        }
    )
    return found.transpose("measure", "seed")


def _over_pairs(parts: Sequence[xr.DataArray]) -> xr.DataArray:
    return al.lab.along(parts, "pair", range(len(parts)))


minima = Sweep("minima", WORK, _minima_grid, _measure_minima, (Minima,))
flatness = Sweep("flatness", WORK, _flatness_grid, _measure_flatness, (Flatness,))
