"""Do the laws of training hold? The sweeps behind THEORY A3 and A4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from attnlab.runs import Plan
from attnlab.studies._study import Data, Scale, Study

_WORK = "attnlab.studies._topic:train_topic"
_HEADS = ["fixed", "linear", "two_layer"]

# Quick runs are smaller, not fewer: sentences, dictionary and steps shrink, words per sentence stay.
_SIZES: dict[Scale, dict[str, Any]] = {
    "paper": {},
    "quick": {"sentences": 1000, "test_sentences": 250, "dictionary": 1250, "steps": 2500},
}
_QUERY = ("embeddings", "keys", "query")
_STEP_SIZES = (0.1, 0.05, 0.025)
_RULES: dict[str, dict[str, Any]] = {
    "gradient descent": {},
    "SGD": {"batch_size": 100},
    "momentum 0.9": {"momentum": 0.9},
    "weight decay 1e-3": {"weight_decay": 1e-3},
    "Adam": {"optimizer": "adam", "step_size": 0.01},
}


def _reference(scale: Scale, seeds: int) -> Mapping[str, Plan]:
    """The reference task with all three heads, and Adam as the control."""
    base = _SIZES[scale] | {"surroundings": True}
    return {
        "reference": Plan(_WORK, name="reference", base=base, grid={"head": _HEADS, "seed": range(seeds)}),
        "float32": Plan(_WORK, name="float32", base=base | {"dtype": "float32"}, grid={"seed": range(seeds)}),
    }


def _optimizers(scale: Scale, seeds: int) -> Mapping[str, Plan]:
    """A trained linear head under five optimisers."""
    base = _SIZES[scale] | {"head": "linear"}
    return {
        name: Plan(_WORK, name=name, base=base | rule, grid={"seed": range(seeds)}) for name, rule in _RULES.items()
    }


def _step_sizes(scale: Scale, seeds: int) -> Mapping[str, Plan]:
    """Equal training time at three step sizes, half that of the reference: is the drift linear in the step?"""
    base = _SIZES[scale]
    time = 0.05 * base.get("steps", 5000)
    plans = {}
    for size in _STEP_SIZES:
        length = {"step_size": size, "steps": round(time / size)}
        head, query = f"head, step {size}", f"query, step {size}"
        grid = {"head": ["linear", "two_layer"], "seed": range(seeds)}
        plans[head] = Plan(_WORK, name=head, base=base | length, grid=grid)
        plans[query] = Plan(_WORK, name=query, base=base | length | {"trained": _QUERY}, grid={"seed": range(seeds)})
    adam = {"trained": _QUERY, "optimizer": "adam", "step_size": 0.01, "steps": round(time / 0.1)}
    plans["query, Adam"] = Plan(_WORK, name="query, Adam", base=base | adam, grid={"seed": range(seeds)})
    return plans


def _measure_sen(data: xr.Dataset) -> xr.Dataset:
    """Everything that the relation's claims judge, and its prediction for the figures."""
    from attnlab.dynamics import identity_error, score_sum_error, sen_error, sen_norm

    others = 20
    start = data.norm.sel(step=0, drop=True)
    measured = {
        "score": data.score, "norm": data.norm, "query_norm": data.query_norm, "loss": data.loss,
        "accuracy_test": data.accuracy_test,
        "scaled_norm": data.query_norm * data.norm,
        "predicted_norm": sen_norm(data.score, others=others, query_norm=data.query_norm, initial_norm=start),
        "sen_error": sen_error(data, others),
        "sen_error_corrected": sen_error(data, others, form="corrected"),
        "sen_error_wrong_query": sen_error(data.assign(query_norm=1.2 * data.query_norm), others),
        "identity_error": identity_error(data),
        "score_sum_error": score_sum_error(data),
    }  # fmt: skip
    if "others_mass" in data:
        measured["sen_error_refined"] = sen_error(data, others, form="refined")
    return xr.Dataset(measured)


def _measure_reference(sweeps: Data) -> Data:
    from attnlab.dynamics import balance_error, score_sum_error

    reference = sweeps["reference"]
    measured = _measure_sen(reference).assign(balance_error=balance_error(reference))
    single = xr.Dataset({"score_sum_error": score_sum_error(sweeps["float32"])})
    return {"reference": measured, "float32": single}


def _measure_optimizers(sweeps: Data) -> Data:
    measured = []
    for name in _RULES:
        data = sweeps[name]
        drift = (data.balance_drift / data.head_square).max("step")
        measured.append(_measure_sen(data).assign(balance_error=drift))
    rules = xr.DataArray(list(_RULES), dims="rule", name="rule")
    return {"optimizers": xr.concat(measured, dim=rules, join="outer", coords="minimal", compat="override")}


def _measure_step_sizes(sweeps: Data) -> Data:
    from attnlab.dynamics import balance_error, order_in_step, query_balance_error

    sizes = xr.DataArray(np.array(_STEP_SIZES), dims="step_size", name="step_size")
    heads = xr.concat([balance_error(sweeps[f"head, step {h}"]) for h in _STEP_SIZES], dim=sizes)
    heads = heads.transpose("step_size", "head", "seed")
    runs = [sweeps[f"query, step {h}"] for h in _STEP_SIZES]
    queries = xr.concat([query_balance_error(run) for run in runs], dim=sizes).transpose("step_size", "seed")
    adam = sweeps["query, Adam"]
    head_data = xr.Dataset({"balance_error": heads})
    head_data["slope"] = (("head", "seed"), order_in_step(sizes.values, heads.values))
    query_data = xr.Dataset(
        {
            "query_balance_error": queries,
            "query_turn": xr.concat([run.query_turn.max("step") for run in runs], dim=sizes),
            "key_sum": xr.concat([run.key_sum.max("step") for run in runs], dim=sizes),
            "query_balance_error_adam": query_balance_error(adam),
            "query_turn_adam": adam.query_turn.max("step"),
            "key_sum_adam": adam.key_sum.max("step"),
        }
    )
    query_data["slope"] = (("seed",), order_in_step(sizes.values, queries.values))
    return {"step sizes": head_data, "trained query": query_data}


REFERENCE = Study("reference", _reference, _measure_reference)
OPTIMIZERS = Study("optimizers", _optimizers, _measure_optimizers)
STEP_SIZES = Study("step sizes", _step_sizes, _measure_step_sizes)
