"""What does training word attention do, and does theory say so? The sweeps behind Lu et al. (2021),
docs/theory.md#a3 to docs/theory.md#a6.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, cast

import xarray as xr

from attnlab.papers.lu2021.sweeps import WORK
from attnlab.studies._measure import (
    OTHERS,
    axis,
    log_agreement,
    measure_endings,
    measure_relation,
    predicted_errors,
    side_by_side,
)
from attnlab.studies._study import Data, Scale, Study, arm_plan

HEAD_KINDS = ("fixed", "linear", "two_layer")
_ADAM = {"optimizer": "adam", "step_size": 0.01}
_LEVELS = (0.1, 0.5)  # losses at which heads are compared

# Quick runs are smaller, not shorter: sentences and dictionary shrink, words per sentence and steps
# stay, since what is claimed of the end of training needs its steps. Theory's error falls with the
# number of sentences, so where a prediction is judged the task keeps its size, and half of the
# seeds do.
_SMALL: dict[Scale, dict[str, Any]] = {
    "paper": {},
    "quick": {"sentences": 400, "test_sentences": 200, "dictionary": 500},
}
_MIDDLE: dict[Scale, dict[str, Any]] = {
    "paper": {},
    "quick": {"sentences": 1000, "test_sentences": 250, "dictionary": 1250, "steps": 3000},
}


def _more(scale: Scale, seeds: int) -> int:
    """More seeds where runs are small: a share of seeds needs more of them than an average."""
    return seeds + seeds // 2 if scale == "quick" else seeds


def _fewer(scale: Scale, seeds: int) -> int:
    """Fewer where runs are large and what is judged is a bound."""
    return max(1, seeds // 2) if scale == "quick" else seeds


# The reference task, with everything that theory predicts of it.


def _reference(scale: Scale, seeds: int):
    base = {
        "record": "relation",
        "surroundings": True,
        "predict": True,
        "rows": 200 if scale == "paper" else 100,
    }
    # The longest first, so that no process waits at the end.
    arms = {head: base | {"head": head, "ending": True} for head in reversed(HEAD_KINDS)}
    arms["Adam"] = (
        _SMALL[scale] | {"record": "relation", "surroundings": True, "steps": 2500} | _ADAM
    )
    counts = dict.fromkeys(arms, _fewer(scale, seeds))
    if scale == "quick":
        counts["two_layer"] = max(1, seeds // 4)  # its steps are three times as dear
    return arm_plan(WORK, "reference", arms, counts)


def _measure_reference(arms: Data) -> Data:
    from attnlab.dynamics import suppression

    heads, endings = [], []
    for head in HEAD_KINDS:
        run = arms[head]
        found = measure_relation(run).merge(predicted_errors(run))
        found["rank_agreement"] = log_agreement(run)
        found["dip"] = suppression(run).dip.where(_ran(run))
        for name in (
            "attention",
            "separation_score",
            "separation_norm",
            "predicted_score",
            "predicted_norm",
            "predicted_attention",
            "predicted_loss",
        ):
            found[name] = run[name]
        heads.append(found)
        endings.append(measure_endings(run))
    return {
        "reference": side_by_side(heads, "head", HEAD_KINDS),
        "endings": side_by_side(endings, "head", HEAD_KINDS),
        "Adam": measure_relation(arms["Adam"]),
    }


REFERENCE = Study("reference", _reference, _measure_reference)


# Other starts, and data with nothing to learn.


def _starts(scale: Scale, seeds: int):
    short = _MIDDLE[scale] | {"record": "curves"}
    small = _SMALL[scale] | {"record": "curves"}
    arms = {
        "fixed 0.1": short | {"embedding_std": 0.1},
        "linear 0.1": short | {"embedding_std": 0.1, "head": "linear"},
        "fixed 0.3": small | {"embedding_std": 0.3, "rows": 250},
        "fixed 1.0": small | {"embedding_std": 1.0, "rows": 250},
        "labels at random": small | {"label_noise": 1.0},
    }
    few = _fewer(scale, seeds)
    return arm_plan(
        WORK, "starts", arms, dict.fromkeys(arms, few) | {"fixed 0.3": _more(scale, seeds)}
    )


def _ran(run: xr.Dataset) -> xr.DataArray:
    """Which runs finished: a run that failed has no score, which is not the same as no dip."""
    return run.score.notnull().any(["step", "word"])


def _measure_starts(arms: Data) -> Data:
    from attnlab.dynamics import sen_error, separation, suppression

    relation = []
    for head in ("fixed", "linear"):
        run = arms[f"{head} 0.1"]
        found = xr.Dataset(
            {"sen_error": sen_error(run, OTHERS), "score": run.score, "norm": run.norm}
        )
        # The control: the same without |ν₀|², as if embeddings had started at zero.
        unstarted = run.assign(norm=run.norm.where(run.step > 0, 0.0))
        found["sen_error_without_start"] = sen_error(unstarted, OTHERS)
        relation.append(found)
    dips = []
    for name in ("fixed 0.3", "fixed 1.0"):
        run = arms[name]
        found = suppression(run).merge(run[["score", "norm", "alignment"]])
        found["rank_agreement"] = log_agreement(run)
        found["alignment_auc"] = separation(-run.alignment, found.dip)
        found["dip"] = found.dip.where(_ran(run))
        dips.append(found)
    random = arms["labels at random"]
    return {
        "std 0.1": cast(xr.Dataset, xr.concat(relation, dim=axis("head", ("fixed", "linear")))),
        "std 0.3": dips[0],
        "std 1.0": dips[1],
        "labels at random": random[
            ["loss", "accuracy_test", "separation_score", "separation_norm", "attention"]
        ],
    }


STARTS = Study("starts", _starts, _measure_starts)


# How much a head of low capacity leaves to attention.

CAPACITY_ARMS: dict[str, dict[str, Any]] = {
    "two-layer": {"head": "two_layer"},
    "linear": {"head": "linear"},
    "fixed": {"head": "fixed"},
    "fixed, W × 0.18": {"head": "fixed", "head_scale": 0.18},
    "linear from fixed W": {"head": "fixed", "trained": ("embeddings", "keys", "head")},
}


def _capacity(scale: Scale, seeds: int):
    base = _SMALL[scale] | {"record": "curves"}
    arms = {name: base | arm for name, arm in CAPACITY_ARMS.items()}
    counts = {name: seeds if "W" in name else _more(scale, seeds) for name in arms}
    return arm_plan(WORK, "capacity", arms, counts)


def _measure_capacity(arms: Data) -> Data:
    from attnlab.dynamics import at_loss

    found = []
    for name in CAPACITY_ARMS:
        run = arms[name]
        mean = run.score.mean("word")
        one = xr.Dataset(
            {"mean_score": mean, "loss": run.loss, "final_score": mean.isel(step=-1, drop=True)}
        )
        for level in _LEVELS:
            one[f"score_at_{level:g}"] = at_loss(mean, run.loss, level)
        found.append(one)
    return {"capacity": side_by_side(found, "setting", CAPACITY_ARMS)}


CAPACITY = Study("capacity", _capacity, _measure_capacity)


# Which parts must be trained?

PARTS = ("query", "keys", "embeddings", "head")
_FULL = {"fixed": ("keys", "embeddings"), "linear": ("keys", "embeddings", "head")}
ABLATIONS = ("full", "keys frozen", "embeddings frozen")
_FROZEN = {"full": (), "keys frozen": ("keys",), "embeddings frozen": ("embeddings",)}


def _kept(head: str, ablation: str) -> tuple[str, ...]:
    """The parts that an ablation still trains."""
    return tuple(part for part in _FULL[head] if part not in _FROZEN[ablation])


def _combination_arms(scale: Scale) -> dict[str, tuple[str, tuple[str, ...]]]:
    """All choices of trained parts that the ablations do not already hold, by name: head and parts."""
    if scale == "quick":
        return {}
    known = {(head, frozenset(_kept(head, name))) for head in _FULL for name in ABLATIONS}
    chosen = {}
    for count in range(1, 5):
        for parts in combinations(PARTS, count):
            head = "linear" if "head" in parts else "fixed"
            if (head, frozenset(parts)) not in known:
                chosen[f"{head}: {' + '.join(parts)}"] = (head, parts)
    return chosen


def _ablation(scale: Scale, seeds: int):
    base = _SMALL[scale] | {"record": "curves", "embedding_std": 0.1, "steps": 6000, "rows": 120}
    arms: dict[str, Mapping[str, Any]] = {}
    for head in _FULL:
        for name in ABLATIONS:
            arms[f"{head} {name}"] = base | {"head": head, "trained": _kept(head, name)}
    others = {
        name: base | {"head": head, "trained": parts}
        for name, (head, parts) in _combination_arms(scale).items()
    }
    counts = dict.fromkeys(arms, seeds) | dict.fromkeys(others, min(seeds, 4))
    return arm_plan(WORK, "ablation", arms | others, counts)


def _measure_ablation(arms: Data) -> Data:
    def curves(run: xr.Dataset) -> xr.Dataset:
        return xr.Dataset(
            {
                "loss": run.loss,
                "accuracy_test": run.accuracy_test,
                "mean_score": run.score.mean("word"),
                "mean_norm": run.norm.mean("word"),
                "mean_attention": run.attention.mean("word"),
            }
        )

    heads = []
    for head in _FULL:
        each = [curves(arms[f"{head} {name}"]) for name in ABLATIONS]
        heads.append(side_by_side(each, "setting", ABLATIONS))
    found = {"ablation": side_by_side(heads, "head", _FULL)}
    names = list(arms)
    ends = [curves(arms[name]).isel(step=-1, drop=True) for name in names]
    found["combinations"] = side_by_side(ends, "setting", names)
    return found


ABLATION = Study("ablation", _ablation, _measure_ablation)


# To times that no training reaches.


def _asymptotics(scale: Scale, seeds: int):
    arms = {
        head: {"head": head} for head in (("fixed",) if scale == "quick" else ("fixed", "linear"))
    }
    return arm_plan("attnlab.papers.lu2021.runs:flow_far", "asymptotics", arms, _more(scale, seeds))


def _measure_asymptotics(arms: Data) -> Data:
    from attnlab.dynamics import loss_exponent, score_rate, score_slowdown

    heads = []
    for run in arms.values():
        one = run[["score", "norm", "attention", "loss"]]
        one["loss_exponent"] = loss_exponent(run.loss)
        one["score_rate"] = score_rate(run.score)
        one["score_slowdown"] = score_slowdown(run.score)
        heads.append(one)
    return {"asymptotics": side_by_side(heads, "head", arms)}


ASYMPTOTICS = Study("asymptotics", _asymptotics, _measure_asymptotics)
