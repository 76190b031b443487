"""Liu et al. (2021) on text: attention pooling saves no labels worth having (docs/theory.md#b2)."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import Claim, Control, Criterion, Data, Grid, Scale, Source, Sweep, given_interval
from attnlab.papers import PROTOTYPE, ROTTEN_TOMATOES
from attnlab.papers.liu2021.curve_sweeps import Curves, end
from attnlab.papers.liu2021.pooling_sweeps import (
    TASK,
    PoolingCurves,
    TopicPooling,
    topic_pooling,
)
from attnlab.papers.liu2021.sample_figures import tuning_table
from attnlab.papers.liu2021.word_settings import FIT_WORDS, on_texts
from attnlab.papers.lu2021.text_sweeps import corpus_path
from attnlab.report import Figure, learning_curves, needed_figure, ratio_figure

if TYPE_CHECKING:
    import xarray as xr

WORTHWHILE = 1.25  # that of attnlab.complexity, which would load SciPy; a test compares them
_POOLINGS = ("mean-pooling", "attention-pooling")
_POINT = 0.01
_SIZES: dict[Scale, int] = {"quick": 4, "paper": 7}
_TUNING: dict[Scale, dict[str, Any]] = {
    # Of the whole grid, sentiment text chooses these.
    "quick": {"step_sizes": (0.0017, 0.0028, 0.0046), "steps": 600},
    "paper": {"steps": 1500},
}


class TextPooling(PoolingCurves, label="text pooling"):
    """Mean and attention pooling on sentences, at the level that both reach."""


def common_level(accuracy: xr.DataArray) -> float:
    """What both kinds of pooling reach with all labels, less a point, rounded down to a whole
    percent.
    """
    ends = accuracy.sel(student=list(_POOLINGS)).isel(size=-1).mean("seed")
    return max(math.floor(100 * (float(ends.min()) - _POINT) + 1e-9) / 100, 0.01)


@lru_cache(maxsize=8)
def pooling_sweep(corpus: str = ROTTEN_TOMATOES) -> Sweep:
    """Learning curves of both kinds of pooling on one corpus, which is read when runs are planned."""
    source = corpus_path(corpus)

    def grid(scale: Scale, seeds: int) -> Grid:
        parts = al.data.text_parts(source)
        most, count = len(parts.train), _SIZES[scale]
        sizes = tuple(round(float(n)) for n in np.geomspace(most / 2 ** (count - 1), most, count))
        base = {**on_texts(source, parts.hash), "sizes": sizes, **_TUNING[scale]}
        return Grid({student: base | {"student": student} for student in _POOLINGS}, seeds)

    return Sweep(
        name="text pooling" if source == ROTTEN_TOMATOES else f"text pooling {Path(source).name}",
        work=FIT_WORDS,
        grid=grid,
        measure=_measure,
        tables=(TextPooling,),
    )


def _measure(arms: Data, confidence: float | None = None) -> Data:
    """Labels needed for what both reach with all labels, less a point."""
    level = common_level(al.lab.along([arm["accuracy"] for arm in arms.values()], "student", arms))
    question = al.complexity.Question(
        level, "accuracy", falling=False, statistic="mean", against="mean-pooling"
    )
    table = al.complexity.tabulate(
        {(student, "text"): arm for student, arm in arms.items()},
        question,
        dim="task",
        confidence=confidence or al.stats.CONFIDENCE,
    )
    return {TextPooling.label: table}


def _ratio(name: str, table: type[Curves], task: str) -> Criterion:
    """What mean pooling needs over what attention pooling needs is not worth having."""
    measure = end(table, "ratio", student="attention-pooling", task=task)
    return Criterion(name, measure, given_interval <= WORTHWHILE)


def figures(data: Data) -> list[Figure]:
    """Learning curves, labels needed, their ratio, and what validation chose."""
    table = TextPooling.of(data)
    tuned = tuning_table(table, id="text_pooling_tuning", title="What validation data chose")
    return [
        learning_curves(table, id="text_pooling_curves", title="Accuracy against labelled texts"),
        needed_figure(table, id="text_pooling_needed", title="Labels needed"),
        ratio_figure(
            table, id="text_pooling_ratio", title="How many times fewer labels than mean pooling"
        ),
        *([] if tuned is None else [tuned]),
    ]


def claim_on(corpus: str) -> Claim:
    """The claim on one corpus."""
    return Claim(
        id="liu2021.text",
        rank=20,
        title="On sentiment text attention pooling saves no labels worth having",
        why="Most sentences of sentiment text hold several words that tell the label, so that "
        "their plain mean tells it, too. Attention can save only what a mean loses to the "
        "other words, and that is little because telling words add up in a mean as well.",
        finding={
            "holds": "On sentiment text attention pooling saves no labels worth having",
            "fails": "On sentiment text attention pooling saves labels",
            "inconclusive": "Whether attention pooling saves labels on sentiment text is undecided",
        },
        statement=f"Mean pooling needs less than {WORTHWHILE:g} times the labels of attention "
        "pooling for the accuracy that both reach, less a point.",
        source=Source("ours", note="a negative case, ordinary sentiment text"),
        provenance=PROTOTYPE,
        sweeps=(pooling_sweep(corpus), topic_pooling),
        criteria=(_ratio("mean over attention pooling (ratio)", TextPooling, "text"),),
        controls=(
            Control(
                "topic words",
                "On the topic task, where one word tells the label, the same must be rejected.",
                (
                    _ratio(
                        "mean over attention pooling, topic task (ratio)",
                        TopicPooling,
                        TASK,
                    ),
                ),
            ),
        ),
        how_measured="Test accuracy, mean over seeds, against the number of labelled training "
        "texts; both students have the same dimension, start, minibatches and grid of step sizes, "
        "chosen on validation texts. Labels needed by interpolation in log n, the ratio from paired "
        "seeds with a bootstrap interval.",
        refuted_by=f"A ratio that is surely above {WORTHWHILE:g}.",
        notes=(
            "The ratio depends on the tuning grid: with large steps only, mean pooling looks "
            "better than attention.",
        ),
        figures=figures,
    )
