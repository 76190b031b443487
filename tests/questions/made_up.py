"""A work function in place of training: curves of variants whose truth is known."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnlab.papers.liu2021.variant_settings import VariantSettings
from attnlab.sweeps import RunContext

WORK = "tests.questions.made_up:fit_made_up"


def fit_made_up(s: VariantSettings, context: RunContext) -> xr.Dataset:
    """Errors factor · 50/n with a luck of each seed, and what else `fit_variant` records.

    The factor of softmax:T is T, that of top-k is k + 1, of softmax with a penalty its strength, 1
    of all others. With more than 1500 steps, softmax has half of its error.
    """
    name, _, number = s.variant.partition("+")[-1 if "+" in s.variant else 0].partition(":")
    factor = float(number) if number else 1.0
    if name.startswith("top"):
        factor = 1.0 + float(name.removeprefix("top"))
    if s.variant == "softmax" and s.steps > 1500:
        factor = 0.5
    rng = np.random.default_rng([s.seed, *s.variant.encode()])
    luck = np.exp(0.3 * np.random.default_rng(s.seed).normal() + 0.05 * rng.normal())
    error = factor * 50 / np.array(s.sizes) * luck
    columns = {
        "error": error,
        "valid_loss": error,
        "train_loss": error / 2,
        "settling": 0 * error,
        "entropy": 0 * error + np.log(2.0),
        "attention": 0 * error + 0.7,
        "step_size": 0 * error + s.step_sizes[0],
        "weight_decay": 0 * error + s.weight_decays[0],
    }
    found = xr.Dataset({k: ("size", v) for k, v in columns.items()}, {"size": list(s.sizes)})
    if not s.course:
        return found
    course = {f"course_{k}": ("step", [1.0, 0.5]) for k in ("error", "entropy", "attention")}
    found = found.assign(course).assign_coords(step=[0, 9])
    return found.assign(onset=factor, sharpness=3.0)
