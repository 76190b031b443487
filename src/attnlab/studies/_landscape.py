"""How good and how flat are minima? The sweeps behind Liu et al. (2021), second half
(docs/theory.md#b3, docs/theory.md#b4).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from attnlab.studies._measure import axis, side_by_side
from attnlab.studies._points import FLATNESS as MEASURES
from attnlab.studies._points import WORK
from attnlab.studies._study import Data, Scale, Study, arm_plan

GOOD = 0.1  # prediction error with which a minimum is called good
SIZES = (128, 512)
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
# Problems for each seed asked for: a share of minima varies between problems, and they are cheap.
_PROBLEMS: dict[Scale, int] = {"quick": 2, "paper": 3}
_CLASSES = ("known-attention", "self-attention", "baseline")
_PAIRS = {"known-attention": "baseline", "self-attention": "words-baseline"}
_L2S: dict[Scale, tuple[float, ...]] = {
    "quick": (1e-3, 4e-3, 1.6e-2, 6.4e-2, 0.128),
    "paper": (5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2, 0.128),
}
_FLAT_PROBLEMS: dict[Scale, int] = {"quick": 2, "paper": 4}
_OTHERS = 5  # seeds that a control compares each seed with
_NEAR = 0.2  # training errors are matched to within this share


def _label(*parts: Any) -> str:
    return "/".join(str(part) for part in parts)


def _minima(scale: Scale, seeds: int):
    """All models at both sizes; labels without meaning; at paper scale two layers and
    classification as well.
    """
    arms: dict[str, Mapping[str, Any]] = {}
    common = {"drawn": max(SIZES)}
    for model, n in product(_MODELS[scale], SIZES):
        arms[_label(model, n)] = {"model": model, "samples": n, **common}
    for n in SIZES:
        arms[_label("shuffled labels", n)] = {
            "model": "known-attention",
            "samples": n,
            "shuffled": True,
            **common,
        }
    counts = dict.fromkeys(arms, _PROBLEMS[scale] * seeds)
    if scale == "paper":
        extra = {
            _label("multi-layer", n): {"model": "multi-layer", "samples": n, **common}
            for n in SIZES
        }
        for model, n in product(_CLASSES, SIZES):
            extra[_label(f"{model}, labels", n)] = {
                "model": model,
                "samples": n,
                "classes": 2,
                **common,
            }
        arms |= extra
        counts |= dict.fromkeys(extra, seeds)
    return arm_plan(WORK, "minima", arms, counts)


def _measure_minima(arms: Data) -> Data:
    by = {tuple(label.rsplit("/", 1)): data for label, data in arms.items()}
    names = list(dict.fromkeys(model for model, _ in by))
    rows = [
        side_by_side([_good(by[name, str(n)]) for n in SIZES], "samples", SIZES) for name in names
    ]
    table = side_by_side(rows, "model", names)
    table["fall"] = np.log(
        table.typical.sel(samples=SIZES[1]) / table.typical.sel(samples=SIZES[0])
    ) / np.log(SIZES[1] / SIZES[0])
    return {"minima": table}


def _good(data: xr.Dataset) -> xr.Dataset:
    """Of each problem: shares of certified minima and of good ones among them, errors, and how many
    differ.
    """
    minimum, known = data.kind == "minimum", data.kind != ""
    errors = data.error.where(minimum)
    return xr.Dataset(
        {
            "certified": data.kind.isin(["minimum", "saddle"]).sum("start") / known.sum("start"),
            "minima": minimum.sum("start"),
            "good": (errors <= GOOD).sum("start")
            / minimum.sum("start").where(minimum.sum("start") > 0),
            "typical": errors.median("start"),
            "error": errors,
            "value": data.value.where(minimum),
            "distinct": _distinct(data.group.where(minimum)),
            "zero_modes": data.zero_modes.where(minimum),
        }
    )


def _distinct(groups: xr.DataArray) -> xr.DataArray:
    rows = groups.transpose("seed", "start").values
    return xr.DataArray(
        [len(set(row[row >= 0].tolist())) for row in rows],
        dims="seed",
        coords={"seed": groups.seed},
    )


def _saddles(scale: Scale, seeds: int):
    """Stationary points of any kind of the two models of known attention, and of the baseline."""
    arms = {model: {"model": model, "saddles": True} for model in ("known-attention", "baseline")}
    if scale == "paper":
        arms["known-weights-plain"] = {"model": "known-weights-plain", "saddles": True}
    return arm_plan(WORK, "saddles", arms, (1 if scale == "quick" else _PROBLEMS[scale]) * seeds)


def _measure_saddles(arms: Data) -> Data:
    parts = []
    for data in arms.values():
        still = data.kind.isin(["minimum", "saddle", "degenerate"])
        saddle = data.kind == "saddle"
        errors = data.error.where(still)
        parts.append(
            xr.Dataset(
                {
                    "certified": still.sum("start") / (data.kind != "").sum("start"),
                    "saddles": saddle.sum("start"),
                    "good": (errors <= GOOD).sum("start")
                    / still.sum("start").where(still.sum("start") > 0),
                    "error": errors,
                    "saddle_error": data.error.where(saddle),
                    "down": data.down.where(still),
                }
            )
        )
    return {"saddles": side_by_side(parts, "model", arms)}


def _flatness(scale: Scale, seeds: int):
    """Attention and its baseline over a grid of penalties, so that pairs of equal training error
    can be found.
    """
    models = [model for pair in _PAIRS.items() for model in pair]
    arms = {
        _label(model, l2): {
            "model": model,
            "samples": 150,
            "l2": l2,
            "starts": 3,
            "scales": (1.0,),
            "flat": "lowest",
        }
        for model, l2 in product(models, _L2S[scale])
    }
    return arm_plan(WORK, "flatness", arms, _FLAT_PROBLEMS[scale] * seeds)


def _measure_flatness(arms: Data) -> Data:
    """Of each seed the attention/baseline ratio of every measure, averaged over matched pairs; and
    baseline pairs.
    """
    best = {label: _lowest(data) for label, data in arms.items()}
    found = {}
    for model, other in _PAIRS.items():
        mine, theirs = (
            [best[label] for label in best if label.rsplit("/", 1)[0] == name]
            for name in (model, other)
        )
        found[model] = _matched(mine, theirs)
        if model == "known-attention":
            # The control: the baseline of one seed against the baselines of some others.
            others = [one.roll(seed=shift) for one in theirs for shift in range(1, _OTHERS + 1)]
            found["baseline"] = _matched(others, theirs)
    return {"flatness": side_by_side(list(found.values()), "model", found)}


def _lowest(data: xr.Dataset) -> xr.Dataset:
    """The certified minimum of lowest value of each problem."""
    names = ["loss", *(f"flat_{name}" for name in MEASURES)]
    value = data.value.where(data.kind == "minimum").fillna(np.inf)
    at = data[names].isel(start=value.argmin("start")).drop_vars("start", errors="ignore")
    return at.where(value.min("start") < np.inf)


def _matched(mine: list[xr.Dataset], theirs: list[xr.Dataset]) -> xr.Dataset:
    """Mean log ratio over all pairs of penalties whose training errors agree to within a fifth."""
    names = [f"flat_{name}" for name in MEASURES]
    logs, near = [], []
    for a, b in product(mine, theirs):
        close = abs(np.log(a.loss / b.loss)) <= np.log1p(_NEAR)
        near.append(close)
        logs.append(
            xr.concat(
                [xr.where(close, np.log(a[name] / b[name]), np.nan) for name in names],
                axis("measure", MEASURES),
            )
        )
    every = xr.concat(logs, dim="pair")
    return xr.Dataset(
        {"ratio": np.exp(every.mean("pair")), "pairs": xr.concat(near, dim="pair").sum("pair")}
    ).transpose("measure", "seed")


MINIMA = Study("minima", _minima, _measure_minima)
SADDLES = Study("saddles", _saddles, _measure_saddles)
FLATNESS = Study("flatness", _flatness, _measure_flatness)
