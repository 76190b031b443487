"""Made-up data sets of the names and dimensions that the studies measure, with curves of about the
true shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

HEADS = ["fixed", "linear", "two_layer"]
WORDS = [f"topic{t}.word{k}" for t in range(4) for k in range(2)]
EVIL_WORD = "<b>word</b>"
BEYOND = ["as in the paper", "three layers, tanh", "contextual inputs", "Adam"]


def words(count: int) -> list[str]:
    return [*WORDS[: count - 1], EVIL_WORD]


def laws(seeds: int = 8, rows: int = 30, count: int = 2) -> dict[str, xr.Dataset]:
    """What the conservation laws' claims draw: small positive numbers."""
    rng = np.random.default_rng(0)
    labels: dict[str, list[Any]] = {
        "head": HEADS,
        "rule": ["gradient descent", "momentum 0.9", "Adam"],
        "seed": list(range(seeds)),
        "step": list(range(0, 10 * rows, 10)),
        "step_size": [0.1, 0.05, 0.025],
        "word": words(count),
    }

    def data(**variables: str) -> xr.Dataset:
        arrays = {
            name: (axes.split(), 10 ** rng.uniform(-3, 0, [len(labels[a]) for a in axes.split()]))
            for name, axes in variables.items()
        }
        used = {axis for axes in variables.values() for axis in axes.split()}
        return xr.Dataset(arrays, coords={axis: labels[axis] for axis in sorted(used)})

    each = {"sen_error", "identity_error"}
    return {
        "laws": data(
            score_sum_error="head seed step",
            balance_error="head seed",
            **dict.fromkeys(each, "head seed step word"),
        ),
        "float32": data(score_sum_error="seed step"),
        "laws under Adam": data(score_sum_error="seed step"),
        "optimizers": data(
            score_sum_error="rule seed step",
            loss="rule seed step",
            balance_error="rule seed",
            **dict.fromkeys(each, "rule seed step word"),
        ),
        "step sizes": data(balance_error="head step_size seed"),
        "trained query": data(
            query_balance_error="step_size seed",
            query_turn="step_size seed",
            key_sum="step_size seed",
            query_turn_adam="seed",
            key_sum_adam="seed",
        ),
    }


def course(
    seeds: int,
    rows: int,
    count: int,
    steps: int = 5000,
    dips: bool = False,
    rng: np.random.Generator | None = None,
) -> xr.Dataset:
    """One setting's training: scores that wait, rise and saturate; norms on the relation's curve; a
    prediction.
    """
    rng = rng or np.random.default_rng(1)
    step = np.linspace(0, steps, rows + 1).round().astype(int)
    grid = {"seed": range(seeds), "step": step, "word": words(count)}
    dims = ("seed", "step", "word")

    def array(values: Any, over: tuple[str, ...] = dims) -> xr.DataArray:
        return xr.DataArray(values, {d: list(grid[d]) for d in over}, over)

    t = array(step.astype(float), ("step",))
    onset = array(rng.uniform(0.05, 0.25, (seeds, count)) * steps, ("seed", "word"))
    high = array(rng.uniform(2.5, 4.5, (seeds, count)), ("seed", "word"))
    dip = array(rng.random((seeds, count)) < 0.4, ("seed", "word")) & dips
    score = high * np.log1p((t / onset) ** 3) / np.log1p(
        (t / onset) ** 3 + 6
    ) - 0.05 * dip * np.exp(-(((t - 0.03 * steps) / (0.02 * steps)) ** 2))
    score = (score * (t > 0)).transpose(*dims)
    query = array(rng.uniform(0.4, 1.4, seeds), ("seed",))
    start = 0.3 if dips else 1e-6
    scaled = np.sqrt(np.maximum(0, 2 * (score + np.expm1(score) / 20)) + (query * start) ** 2)
    noise = array(rng.normal(0, 2e-3, (seeds, len(step), count)))
    error = abs(noise).where(score > 0.05)
    loss = np.exp(-score.mean("word")) * 1.4
    data = xr.Dataset(
        {
            "score": score,
            "scaled_norm": scaled * (1 + noise),
            "predicted_scaled_norm": scaled,
            "query_norm": query,
            "norm": scaled * (1 + noise) / query,
            "loss": loss,
            "accuracy_test": 1 - 0.75 * loss / 1.4,
            "attention": np.exp(score) / (np.exp(score) + 20),
            "separation_score": 1 - 0.5 * loss / 1.4,
            "separation_norm": 1 - 0.4 * loss / 1.4,
            "sen_error": error,
            "sen_error_corrected": error / 3,
            "sen_error_refined": error / 2,
            "identity_error": error * 1e-10,
            "predicted_score": score * (1 + noise),
            "predicted_norm": scaled / query,
            "predicted_attention": np.exp(score) / (np.exp(score) + 20),
            "predicted_loss": loss * 1.01,
            "score_error": error,
            "final_error": error.isel(step=-1, drop=True),
            "rank_agreement": 1 - 1e-5 * dip,
            "onset": onset,
            "predicted_onset": onset * 1.01,
            "onset_error": 0.01 + 0 * onset,
            "dip": dip,
            "depth": -0.05 * dip - 1e-5,
            "alignment": high * (0.5 - dip),
            "dip_step": (0.03 * steps + 0 * onset).where(dip),
            "fall_together": (1.0 + 0 * onset).where(dip),
        }
    )
    # A word that never gets anywhere in one run: nothing is known of its error and onset.
    nowhere = (data.seed == 0) & (data.word == EVIL_WORD)
    for name in (
        "sen_error",
        "sen_error_corrected",
        "sen_error_refined",
        "score_error",
        "onset",
        "predicted_onset",
    ):
        data[name] = data[name].where(~nowhere)
    return data


def endings(seeds: int, others: int = 60) -> xr.Dataset:
    """Final scores and norms of all words."""
    rng = np.random.default_rng(2)
    topical = np.arange(8 + others) < 8
    values = {
        f"final_{n}": (("seed", "any_word"), rng.normal(0, 0.1, (seeds, 8 + others)) + k * topical)
        for n, k in (("score", 4), ("norm", 3))
    }
    return xr.Dataset(
        values,
        {"seed": range(seeds), "any_word": range(8 + others), "topical": ("any_word", topical)},
    )


def joined(sets: list[xr.Dataset], dim: str, labels: list[str]) -> xr.Dataset:
    return xr.concat(sets, dim=xr.DataArray(labels, dims=dim, name=dim), join="outer")


def lu2021(seeds: int = 8, rows: int = 30, count: int = 3) -> dict[str, xr.Dataset]:
    """What lu2021.beyond_sen draws, and a flow to far times."""
    rng = np.random.default_rng(3)
    time = np.geomspace(0.1, 1e12, 40)
    grow = 2 * np.log1p(np.log1p(time)) * np.ones((2, seeds, count, 1))
    far = xr.Dataset(
        {
            "score": (("head", "seed", "word", "time"), grow),
            "attention": (("head", "seed", "word", "time"), grow / 10),
            "loss": (("head", "seed", "time"), np.ones((2, seeds, 1)) / (1 + time)),
        },
        {"head": HEADS[:2], "seed": range(seeds), "word": words(count), "time": time},
    )
    return {
        "asymptotics": far,
        "beyond": joined(
            [course(seeds, rows // 2, count, rng=rng) for _ in BEYOND], "setting", BEYOND
        ),
    }


def dynamics(seeds: int = 4, rows: int = 40, count: int = 3) -> xr.Dataset:
    """One configuration, with everything that its page can show."""
    data = course(seeds, rows, count, dips=True)
    data["predicted_scaled_norm"] = data.predicted_scaled_norm.where(data.step > 0, 1e-3)
    data["suppressed_until"], data["saturation"] = data.dip_step, 3 * data.onset
    phase = xr.ones_like(data.score)
    phase = phase.where(~(data.step < data.dip_step), 0.0)
    phase = phase.where(~(data.step >= data.onset), 2.0)
    data["phase"] = phase.where(~(data.step >= data.saturation), 3.0)
    return data
