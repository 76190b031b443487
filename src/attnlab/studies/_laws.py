"""Do the exact laws of training hold? The sweeps behind docs/theory.md#a4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import xarray as xr

from attnlab.papers.lu2021.sweeps import WORK
from attnlab.studies._lu2021 import HEAD_KINDS
from attnlab.studies._measure import axis, measure_relation
from attnlab.studies._study import Data, Scale, Study, arm_plan

_STEP_SIZES = (0.1, 0.05, 0.025)
_QUERY = {"trained": ("embeddings", "keys", "query")}
_RULES: dict[str, dict[str, Any]] = {
    "gradient descent": {},
    "SGD": {"batch_size": 100},
    "momentum 0.9": {"momentum": 0.9},
    "weight decay 1e-3": {"weight_decay": 1e-3},
    "Adam": {"optimizer": "adam", "step_size": 0.01},
}

# Quick runs are smaller, not fewer: sentences and dictionary shrink, words per sentence stay. A
# comparison of rules needs some sentences (the relation's error falls with their number), the exact
# laws hardly any.
_RULE_SIZES: dict[Scale, dict[str, Any]] = {
    "paper": {"steps": 5000},
    "quick": {"sentences": 1000, "test_sentences": 250, "dictionary": 1250, "steps": 3000},
}
_LAW_SIZES: dict[Scale, dict[str, Any]] = {
    "paper": {"steps": 5000},
    "quick": {"sentences": 300, "test_sentences": 200, "dictionary": 400, "steps": 4000},
}


def _laws(scale: Scale, seeds: int):
    """All three heads; the fixed head in float32 too, and under Adam, the control."""
    base = _LAW_SIZES[scale]
    arms = {head: base | {"head": head} for head in HEAD_KINDS}
    arms |= {"float32": base | {"dtype": "float32"}, "Adam": base | _RULES["Adam"]}
    return arm_plan(WORK, "laws", arms, seeds)


def _optimizers(scale: Scale, seeds: int):
    """A trained linear head under five optimisers."""
    base = _RULE_SIZES[scale] | {"head": "linear"}
    return arm_plan(WORK, "optimizers", {name: base | rule for name, rule in _RULES.items()}, seeds)


def _step_sizes(scale: Scale, seeds: int):
    """Equal training time, half that of the reference, at three step sizes: is the drift linear in
    the step?
    """
    base = _LAW_SIZES[scale]
    steps = base["steps"] // 2
    arms: dict[str, Mapping[str, Any]] = {}
    for size in _STEP_SIZES:
        length = base | {"step_size": size, "steps": round(steps * 0.1 / size)}
        arms |= {f"{head} {size}": length | {"head": head} for head in ("linear", "two_layer")}
        arms[f"query {size}"] = length | _QUERY
    arms["query Adam"] = base | _QUERY | {"optimizer": "adam", "step_size": 0.01, "steps": steps}
    return arm_plan(WORK, "step sizes", arms, seeds)


def _measure_laws(arms: Data) -> Data:
    from attnlab.dynamics import balance_error, score_sum_error

    heads = [
        measure_relation(arms[h]).assign(balance_error=balance_error(arms[h])) for h in HEAD_KINDS
    ]
    single = xr.Dataset({"score_sum_error": score_sum_error(arms["float32"])})
    laws = cast(xr.Dataset, xr.concat(heads, dim=axis("head", HEAD_KINDS)))
    return {"laws": laws, "float32": single, "laws under Adam": measure_relation(arms["Adam"])}


def _measure_optimizers(arms: Data) -> Data:
    measured = []
    for name in _RULES:
        drift = (arms[name].balance_drift / arms[name].head_square).max("step")
        measured.append(measure_relation(arms[name]).assign(balance_error=drift))
    rules = xr.concat(measured, dim=axis("rule", _RULES), coords="minimal", compat="override")
    return {"optimizers": cast(xr.Dataset, rules)}


def _measure_step_sizes(arms: Data) -> Data:
    from attnlab.dynamics import balance_error, query_balance_error

    sizes = axis("step_size", _STEP_SIZES)

    def over_sizes(name: str, of) -> xr.DataArray:
        return xr.concat([of(arms[f"{name} {h}"]) for h in _STEP_SIZES], dim=sizes).transpose(
            "step_size", "seed"
        )

    heads = ("linear", "two_layer")
    drift = xr.concat([over_sizes(head, balance_error) for head in heads], dim=axis("head", heads))
    balance = xr.Dataset({"balance_error": drift})
    balance["slope"] = _slope(drift)
    queries = over_sizes("query", query_balance_error)
    adam = arms["query Adam"]
    query = xr.Dataset(
        {
            "query_balance_error": queries,
            "slope": _slope(queries),
            "query_turn": over_sizes("query", lambda run: run.query_turn.max("step")),
            "key_sum": over_sizes("query", lambda run: run.key_sum.max("step")),
            "query_balance_error_adam": query_balance_error(adam),
            "query_turn_adam": adam.query_turn.max("step"),
            "key_sum_adam": adam.key_sum.max("step"),
        }
    )
    return {"step sizes": balance, "trained query": query}


def _slope(drift: xr.DataArray) -> xr.DataArray:
    from attnlab.dynamics import order_in_step

    ordered = drift.transpose("step_size", ...)
    return ordered.isel(step_size=0, drop=True).copy(
        data=order_in_step(drift.step_size.values, ordered.values)
    )


HEAD_LAWS = Study("laws", _laws, _measure_laws)
OPTIMIZERS = Study("optimizers", _optimizers, _measure_optimizers)
STEP_SIZES = Study("step sizes", _step_sizes, _measure_step_sizes)
