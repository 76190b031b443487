"""Pooling on the topic task: the sweep, and the variables of pooling, that claims share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attnlab as al
from attnlab.lab import Data, Grid, Scale, Sweep, variable
from attnlab.papers.liu2021.curve_sweeps import Curves
from attnlab.papers.liu2021.word_settings import COUNTS, FIT_WORDS, POOLING

if TYPE_CHECKING:
    import xarray as xr

TASK = "topic task"  # the only label of the dimension ``task``
LEVEL = 0.9  # accuracy that is asked for

# Quick sentences come from a smaller dictionary; at both scales each student has sizes around its
# own crossing.
_BASE: dict[Scale, dict[str, Any]] = {
    "quick": {
        "dictionary": 2000,
        "embedding_dim": 4,
        "steps": 300,
        "batch_size": 32,
        "drawn": 2048,
        "valid_points": 300,
        "test_points": 1000,
        "widen": 2,
    },
    "paper": {"dictionary": 5000, "drawn": 4096, "step_sizes": (0.03, 0.1, 0.3), "widen": 2},
}
_FEW = (8, 16, 32, 64, 128)
_MANY: dict[Scale, tuple[int, ...]] = {
    "quick": (128, 256, 512, 1024, 2048),
    "paper": (256, 512, 1024, 2048, 4096),
}
# Plain descent, tuned by itself: rare words do not get Adam's large steps, and mean pooling needs
# far less.
_DESCENT = {"optimizer": "descent", "step_sizes": (1.0, 4.0, 16.0), "weight_decays": (0.0,)}


class PoolingCurves(Curves):
    """Learning curves of pooling (student, task, seed, size)."""

    attention = variable("mean attention on topic words in test sentences", optional=True)
    entropy = variable("mean entropy of attention in test sentences", optional=True)


class TopicPooling(PoolingCurves, label="topic pooling"):
    """All students under Adam, compared with mean pooling."""


class AgainstCounts(PoolingCurves, label="topic pooling, counts"):
    """Attention pooling under Adam, compared with counts of the topic words."""


class UnderDescent(PoolingCurves, label="topic pooling, descent"):
    """Mean and attention pooling under plain gradient descent."""


def _grid(scale: Scale, seeds: int) -> Grid:
    arms: dict[str, dict[str, Any]] = {
        "mean-pooling": {"sizes": _MANY[scale]},
        "attention-pooling": {"sizes": _FEW},
        COUNTS: {"sizes": _FEW},
    }
    arms = {student: {"student": student, **arm} for student, arm in arms.items()}
    for student in POOLING:
        arms[_under_descent(student)] = {"student": student, "sizes": _FEW, **_DESCENT}
    return Grid({label: _BASE[scale] | arm for label, arm in arms.items()}, seeds)


def _under_descent(student: str) -> str:
    return f"{student}, descent"


def _measure(arms: Data, confidence: float | None = None) -> Data:
    def ask(found: Data, against: str) -> xr.Dataset:
        question = al.complexity.Question(
            LEVEL, "accuracy", falling=False, statistic="mean", against=against
        )
        return al.complexity.tabulate(
            {(student, TASK): arm for student, arm in found.items()},
            question,
            dim="task",
            confidence=confidence or al.stats.CONFIDENCE,
        )

    adam = {student: arms[student] for student in (*POOLING, COUNTS)}
    attending = {student: adam[student] for student in ("attention-pooling", COUNTS)}
    descent = {student: arms[_under_descent(student)] for student in POOLING}
    return {
        TopicPooling.label: ask(adam, "mean-pooling"),
        AgainstCounts.label: ask(attending, COUNTS),
        UnderDescent.label: ask(descent, "mean-pooling"),
    }


topic_pooling = Sweep(
    "topic pooling", FIT_WORDS, _grid, _measure, (TopicPooling, AgainstCounts, UnderDescent)
)
