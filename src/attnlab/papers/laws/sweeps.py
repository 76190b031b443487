"""Grids and declared variables that the claims about exact laws share (docs/theory.md#a4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attnlab as al
from attnlab.lab import Data, Grid, Scale, Sweep, Table, variable
from attnlab.papers.lu2021.sweeps import (
    ADAM,
    HEADS,
    WORK,
    Relation,
    fewer,
    measure_relation,
)

if TYPE_CHECKING:
    import xarray as xr

# An exact law may fail by rounding errors of float64 alone, which these bound.
SUM_ROUNDING = 1e-13
IDENTITY_ROUNDING = 1e-12

STEP_SIZES = (0.1, 0.05, 0.025)
TRAINED_HEADS = ("linear", "two_layer")
RULES: dict[str, dict[str, Any]] = {
    "gradient descent": {},
    "SGD": {"batch_size": 100},
    "momentum 0.9": {"momentum": 0.9},
    "weight decay 1e-3": {"weight_decay": 1e-3},
    "Adam": ADAM,
}
_QUERY = {"trained": ("embeddings", "keys", "query")}

# Quick runs are smaller: sentences and dictionary shrink, words per sentence stay. A comparison of
# rules needs some sentences (the relation's error falls with their number), the exact laws hardly
# any. A law that every run must keep to rounding is asked of half of the seeds; an exponent, judged
# by its mean, of all.
_RULE_SIZES: dict[Scale, dict[str, Any]] = {
    "paper": {"steps": 5000},
    "quick": {"sentences": 1000, "test_sentences": 250, "dictionary": 1250, "steps": 3000},
}
_LAW_SIZES: dict[Scale, dict[str, Any]] = {
    "paper": {"steps": 5000},
    "quick": {"sentences": 300, "test_sentences": 200, "dictionary": 400, "steps": 4000},
}


class Laws(Relation, label="laws"):
    """Every law along training, under each head."""

    balance_error = variable("change of EᵀE − WWᵀ at the last step, over ‖WWᵀ‖")


class SinglePrecision(Table, label="float32"):
    """The fixed head in float32."""

    score_sum_error = variable("|Σs| / Σ|s| over all words")


class UnderAdam(Relation, label="laws under Adam"):
    """The fixed head under Adam, which rescales every coordinate by itself."""


class Rules(Relation, label="optimizers"):
    """A trained linear head under each rule."""

    balance_error = variable("largest change of EᵀE − WWᵀ along training, over ‖WWᵀ‖")


class StepSizes(Table, label="step sizes"):
    """Drift after equal training time in steps of different size, by head."""

    balance_error = variable("change of EᵀE − WWᵀ at the last step, over ‖WWᵀ‖")
    slope = variable("exponent of the drift in the step size")


class TrainedQuery(Table, label="trained query"):
    """The laws of a trained query, in steps of different size and under Adam."""

    query_balance_error = variable("change of KᵀK − qqᵀ at the last step, over |q|²")
    slope = variable("exponent of the drift in the step size")
    query_turn = variable("largest 1 − cos(q, q₀) along training")
    key_sum = variable("largest coordinate of |Σκ| along training")
    query_balance_error_adam = variable("query_balance_error under Adam")
    query_turn_adam = variable("query_turn under Adam")
    key_sum_adam = variable("key_sum under Adam")


def _laws_grid(scale: Scale, seeds: int) -> Grid:
    """All three heads; the fixed head in float32 too, and under Adam, the control."""
    base = _LAW_SIZES[scale]
    arms = {head: base | {"head": head} for head in HEADS}
    arms |= {"float32": base | {"dtype": "float32"}, "Adam": base | ADAM}
    return Grid(arms, fewer(scale, seeds))


def _measure_laws(arms: Data) -> Data:
    heads = []
    for head in HEADS:
        drift = al.dynamics.balance_error(arms[head])
        heads.append(measure_relation(arms[head]).assign({Laws.balance_error: drift}))
    single = al.dynamics.score_sum_error(arms["float32"])
    return {
        Laws.label: al.lab.along(heads, "head", HEADS),
        SinglePrecision.label: al.lab.dataset({SinglePrecision.score_sum_error: single}),
        UnderAdam.label: measure_relation(arms["Adam"]),
    }


laws = Sweep("laws", WORK, _laws_grid, _measure_laws, (Laws, SinglePrecision, UnderAdam))


def _optimizers_grid(scale: Scale, seeds: int) -> Grid:
    """A trained linear head under five rules."""
    base = _RULE_SIZES[scale] | {"head": "linear"}
    return Grid({name: base | rule for name, rule in RULES.items()}, fewer(scale, seeds))


def _measure_optimizers(arms: Data) -> Data:
    measured = []
    for name in RULES:
        drift = (arms[name].balance_drift / arms[name].head_square).max("step")
        measured.append(measure_relation(arms[name]).assign({Rules.balance_error: drift}))
    rules = al.lab.along(measured, "rule", RULES, coords="minimal", compat="override")
    return {Rules.label: rules}


optimizers = Sweep("optimizers", WORK, _optimizers_grid, _measure_optimizers, (Rules,))


def _step_sizes_grid(scale: Scale, seeds: int) -> Grid:
    """Equal training time, half that of the reference, in steps of three sizes."""
    base = _LAW_SIZES[scale]
    steps = base["steps"] // 2
    arms: dict[str, dict[str, Any]] = {}
    for size in STEP_SIZES:
        length = base | {"step_size": size, "steps": round(steps * 0.1 / size)}
        arms |= {f"{head} {size}": length | {"head": head} for head in TRAINED_HEADS}
        arms[f"query {size}"] = length | _QUERY
    arms["query Adam"] = base | _QUERY | ADAM | {"steps": steps}
    return Grid(arms, seeds)


def _measure_step_sizes(arms: Data) -> Data:
    def over_sizes(name: str, of: Callable[[xr.Dataset], xr.DataArray]) -> xr.DataArray:
        each = [of(arms[f"{name} {size}"]) for size in STEP_SIZES]
        return al.lab.along(each, "step_size", STEP_SIZES).transpose("step_size", "seed")

    def turn(run: xr.Dataset) -> xr.DataArray:
        return run.query_turn.max("step")

    def key_sum(run: xr.Dataset) -> xr.DataArray:
        return run.key_sum.max("step")

    drifts = [over_sizes(head, al.dynamics.balance_error) for head in TRAINED_HEADS]
    drift = al.lab.along(drifts, "head", TRAINED_HEADS)
    queries = over_sizes("query", al.dynamics.query_balance_error)
    adam = arms["query Adam"]
    balance: dict[str, Any] = {StepSizes.balance_error: drift, StepSizes.slope: _slope(drift)}
    query: dict[str, Any] = {
        TrainedQuery.query_balance_error: queries,
        TrainedQuery.slope: _slope(queries),
        TrainedQuery.query_turn: over_sizes("query", turn),
        TrainedQuery.key_sum: over_sizes("query", key_sum),
        TrainedQuery.query_balance_error_adam: al.dynamics.query_balance_error(adam),
        TrainedQuery.query_turn_adam: turn(adam),
        TrainedQuery.key_sum_adam: key_sum(adam),
    }
    return {
        StepSizes.label: al.lab.dataset(balance),
        TrainedQuery.label: al.lab.dataset(query),
    }


def _slope(drift: xr.DataArray) -> xr.DataArray:
    """The exponent of a drift in the step size, for each seed."""
    ordered = drift.transpose("step_size", ...)
    slopes = al.dynamics.order_in_step(drift.step_size.values, ordered.values)
    return ordered.isel(step_size=0, drop=True).copy(data=slopes)


step_sizes = Sweep(
    "step sizes", WORK, _step_sizes_grid, _measure_step_sizes, (StepSizes, TrainedQuery)
)
