"""Does attention pooling save labels on sentiment text? The sweep behind Liu et al. (2021) on text."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr

from attnlab.complexity import Question, tabulate
from attnlab.stats import CONFIDENCE
from attnlab.studies._measure import axis
from attnlab.studies._study import Data, Scale, Study, arm_plan
from attnlab.studies._text import ROTTEN_TOMATOES, text_parts
from attnlab.studies._text_answers import common_level
from attnlab.studies._text_claims import named_source
from attnlab.studies._text_students import STEP_SIZES, WORK
from attnlab.sweeps import Plan

_STUDENTS = ("mean-pooling", "attention-pooling")
_SIZES: dict[Scale, int] = {"quick": 4, "paper": 7}
_GRIDS: dict[Scale, dict[str, Any]] = {
    # Of the whole grid, sentiment text chooses these.
    "quick": {"step_sizes": (0.0017, 0.0028, 0.0046), "steps": 600},
    "paper": {"step_sizes": STEP_SIZES, "steps": 1500},
}


@lru_cache(maxsize=8)
def text_pooling_study(source: str = ROTTEN_TOMATOES) -> Study:
    """Mean and attention pooling on one source of labelled texts; arguments as for ``text_study``."""
    given = named_source(source)

    def plan(scale: Scale, seeds: int) -> Plan:
        parts = text_parts(given)
        most = len(parts.train)
        sizes = tuple(
            round(float(n))
            for n in np.geomspace(most / 2 ** (_SIZES[scale] - 1), most, _SIZES[scale])
        )
        base = {"folder": given, "data": parts.hash, "sizes": sizes, **_GRIDS[scale]}
        return arm_plan(
            WORK, name, {student: base | {"student": student} for student in _STUDENTS}, seeds
        )

    name = "text pooling" if given == ROTTEN_TOMATOES else f"text pooling {Path(given).name}"
    return Study(name, plan, _measure)


def _measure(arms: Data, confidence: float = CONFIDENCE) -> Data:
    """Labels needed for what both reach with all labels, less a point."""
    accuracy = xr.concat([arm.accuracy for arm in arms.values()], axis("student", arms))
    level = common_level(cast(xr.DataArray, accuracy))
    given = {(student, "text"): arm for student, arm in arms.items()}
    question = Question(level, "accuracy", falling=False, statistic="mean", against="mean-pooling")
    return {"text pooling": tabulate(given, question, dim="task", confidence=confidence)}
