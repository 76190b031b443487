"""What ``attnlab digits`` must know of the digits before its runs start."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax

from attnlab.data import load_digits
from attnlab.papers.liu2021.digit_runs import canvas_task, student_config
from attnlab.papers.liu2021.digit_settings import DigitFitSettings


def prepare(given: Mapping[str, Any], students: Sequence[str]) -> tuple[DigitFitSettings, str]:
    """The settings of all fits, and a hash of the digits' content.

    ``given`` are fields of `DigitFitSettings`; lengths that are ``None`` are measured in digits.
    Settings with which no image can be drawn, or no student made, are refused here.
    """
    digits = load_digits(given["digits"], shrink=given["shrink"])
    side = digits.images.shape[1]
    half = max(1, side // 2)
    usual = {
        "canvas": 3 * side,
        "spacing": side,
        "fragment_size": half,
        "patch": side,
        "stride": half,
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    settings = DigitFitSettings(**(usual | chosen))
    canvas_task(settings).sample(digits, 2, key=jax.random.key(0))
    for student in students:
        student_config(replace(settings, student=student), digits.classes)
    return settings, hashlib.sha256(digits.images.tobytes() + digits.labels.tobytes()).hexdigest()
