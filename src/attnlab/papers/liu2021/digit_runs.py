"""The work function of noisy digits (docs/theory.md#b2): one student, one seed, all sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array

from attnlab.data import Canvases, CanvasTask, Digits, load_digits
from attnlab.models import (
    AttentionPoolingConfig,
    BaselineConfig,
    PatchAttentionConfig,
    PatchGrid,
    answers,
)
from attnlab.papers.liu2021.curve_runs import (
    InType,
    Learner,
    SampleLoss,
    SampleMeasure,
    Start,
    call,
    learning_curve,
    predicted_labels,
)
from attnlab.papers.liu2021.digit_settings import ATTENTION, DigitFitSettings
from attnlab.sweeps import RunContext

_KEYS = 2**31 - 2  # far from the keys of other studies of the same root
_DRAWN = {"predicted": ("example",), "attention_map": ("example", "row", "column")}


def canvas_task(s: DigitFitSettings) -> CanvasTask:
    """Where the images come from."""
    return CanvasTask(s.canvas, s.spacing, s.fragments, s.fragment_size, s.noise_std)


def student_config(
    s: DigitFitSettings, classes: int
) -> BaselineConfig | PatchAttentionConfig | AttentionPoolingConfig:
    """How the student starts."""
    if s.student not in ATTENTION:
        return BaselineConfig(s.canvas**2, s.hidden, classes, math.inf)
    grid, size = PatchGrid(s.canvas, s.canvas, s.patch, s.stride), s.embedding_dim
    if s.student == "attention-pooling":
        return AttentionPoolingConfig(grid, size, size, classes)
    return PatchAttentionConfig(grid, size, s.key_dim, size, size, classes)


@dataclass(frozen=True)
class Look:
    """What is measured of a fit: validation loss and wrong validation labels, test accuracy, and of
    the first ``pictures`` test images the details.
    """

    pictures: int
    attends: bool

    def __call__(self, model: Any, checks: Mapping[str, Any]) -> dict[str, Array]:
        """All of it for one model."""
        test = checks["test"]
        found = SampleMeasure(call, "accuracy")(model, checks)
        valid = checks["valid"]
        wrong = predicted_labels(answers(model, valid["x"]), valid["y"]) != valid["y"]
        found["valid_error"] = jnp.mean(wrong.astype(found["valid_loss"].dtype))
        predicted = predicted_labels(jax.vmap(model)(test["x"]), test["y"])
        found["predicted"] = predicted[: self.pictures]
        if self.attends:
            maps = jax.vmap(model.attention_map)(test["x"])
            found["attention_on_digit"] = jnp.mean(jnp.sum(maps * checks["masks"], axis=(1, 2)))
            found["attention_map"] = maps[: self.pictures]
        return found


def fit_digits(settings: DigitFitSettings, context: RunContext) -> xr.Dataset:
    """Fit one student on nested samples of every size; for each size keep the fit that validation
    chose.

    With dimension ``size``: ``accuracy`` on test images, ``valid_loss``, ``train_loss``,
    ``settling``, the chosen ``step_size`` and ``weight_decay``, and for attention
    ``attention_on_digit``, its mean share on the digit's square, to be compared with
    ``digit_area``, the share that even attention has. Of the largest size and the first ``pictures``
    test images, the same for all students of a seed: ``image``, ``mask``, ``digit``, ``predicted``,
    ``attention_map``.
    """
    s, attends = settings, settings.student in ATTENTION
    digits = _digits(s.digits, s.shrink)
    train, valid, test = _drawn(
        context.root_seed,
        s.seed,
        s.digits,
        s.shrink,
        canvas_task(s),
        s.available,
        s.valid_points,
        s.test_points,
    )
    checks: dict[str, Any] = {"valid": _seen(valid, s), "test": _seen(test, s)}
    if attends:
        checks["masks"] = jnp.asarray(test.masks)
    learner = Learner(
        InType(Start(student_config(s, digits.classes)), s.dtype),
        SampleLoss(call),
        Look(s.pictures, attends),
        dims=_DRAWN,
    )
    key = _keys(context.root_seed, s.seed)[0]
    found = learning_curve(learner, _seen(train, s), checks, s, key=key)
    largest = found.sel(size=max(s.sizes), drop=True)
    found = found.assign({name: largest[name] for name in _DRAWN if name in found})
    return found.assign(
        digit_area=float(test.masks.mean()),
        image=(("example", "row", "column"), test.images[: s.pictures]),
        mask=(("example", "row", "column"), test.masks[: s.pictures]),
        digit=("example", test.labels[: s.pictures]),
    )


def _seen(drawn: Canvases, s: DigitFitSettings) -> dict[str, Array]:
    """What a student sees of the images; dense students share their shapes, and so one compiled
    program.
    """
    images = drawn.images
    if s.student == "known-mask":
        images = images * drawn.masks
    elif s.student == "wrong-mask":
        images = images * drawn.other_masks
    return {"x": jnp.asarray(images, s.dtype), "y": jnp.asarray(drawn.labels, jnp.int32)}


def _keys(root_seed: int, seed: int) -> Array:
    """Keys of a seed: fits, split of the digits, then training, validation and test images."""
    return jax.random.split(
        jax.random.fold_in(jax.random.fold_in(jax.random.key(root_seed), _KEYS), seed), 5
    )


@lru_cache(maxsize=1)
def _digits(source: str, shrink: int) -> Digits:
    return load_digits(source, shrink=shrink)


@lru_cache(maxsize=4)
def _drawn(
    root_seed: int,
    seed: int,
    source: str,
    shrink: int,
    task: CanvasTask,
    images: int,
    validation: int,
    test: int,
) -> tuple[Canvases, ...]:
    """Training, validation and test images of digits that the others do not have; kept for students
    of one seed.
    """
    keys = _keys(root_seed, seed)
    parts = _digits(source, shrink).split(key=keys[1])
    wanted = zip(parts, (images, validation, test), keys[2:], strict=True)
    return tuple(task.sample(part, max(2, count), key=key) for part, count, key in wanted)
