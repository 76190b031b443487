"""Liu et al. (2021) on text: attention pooling saves no labels worth having (docs/theory.md#b2)."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Grid,
    Measure,
    Provenance,
    Scale,
    Source,
    Sweep,
    given_interval,
)
from attnlab.papers import ROTTEN_TOMATOES
from attnlab.papers.liu2021.curve_sweeps import Curves, end, tuning_cautions
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
_SIZES: dict[Scale, int] = {"quick": 3, "paper": 4}
# Two step sizes to start from, between those that both kinds of pooling chose on seeds 0 to 2.
_FITS = {"steps": 600, "embedding_dim": 4, "step_sizes": (0.0028, 0.0046)}
# Accuracies at which labels are compared, fixed before the seeds that are judged; of other corpora
# the level is what both kinds of pooling reach, less a point.
LEVELS = {ROTTEN_TOMATOES: 0.72}


class TextPooling(PoolingCurves, label="text pooling"):
    """Mean and attention pooling on sentences, at one level of accuracy."""


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
        most, count = len(al.data.text_parts(source).train), _SIZES[scale]
        sizes = tuple(round(float(n)) for n in np.geomspace(most / 8, most, count))
        return Grid(both_poolings(source, sizes), seeds)

    return Sweep(
        name="text pooling" if source == ROTTEN_TOMATOES else f"text pooling {Path(source).name}",
        work=FIT_WORDS,
        grid=grid,
        measure=partial(measure_pooling, TextPooling, LEVELS.get(source)),
        tables=(TextPooling,),
    )


def both_poolings(source: str, sizes: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """The arms: each seed draws its own training, validation and test texts, the same for both."""
    content = al.data.text_parts(source).hash
    base = {**on_texts(source, content), **_FITS, "sizes": sizes, "resplit": True}
    return {student: base | {"student": student} for student in _POOLINGS}


def measure_pooling(
    table: type[PoolingCurves], level: float | None, arms: Data, confidence: float | None = None
) -> Data:
    """Labels needed for a level, or for what both reach with all labels, less a point."""
    if level is None:
        every = al.lab.along([arm["accuracy"] for arm in arms.values()], "student", arms)
        level = common_level(every)
    question = al.complexity.Question(
        level, "accuracy", falling=False, statistic="mean", against="mean-pooling"
    )
    found = al.complexity.tabulate(
        {(student, "text"): arm for student, arm in arms.items()},
        question,
        dim="task",
        confidence=confidence or al.stats.CONFIDENCE,
    )
    return {table.label: found}


def saving(table: type[Curves], task: str = "text") -> Measure:
    """What mean pooling needs over what attention pooling needs."""
    return end(table, "ratio", student="attention-pooling", task=task)


def pooling_figures(table: type[PoolingCurves], data: Data, *, id: str) -> list[Figure]:
    """Learning curves, labels needed, their ratio, and what validation chose."""
    found = table.of(data)
    tuned = tuning_table(found, id=f"{id}_tuning", title="What validation data chose")
    return [
        learning_curves(found, id=f"{id}_curves", title="Accuracy against labelled texts"),
        needed_figure(found, id=f"{id}_needed", title="Labels needed"),
        ratio_figure(
            found, id=f"{id}_ratio", title="How many times fewer labels than mean pooling"
        ),
        *([] if tuned is None else [tuned]),
    ]


HOW_MEASURED = (
    "Test accuracy, mean over seeds, against the number of labelled training texts. Each seed draws "
    "its own training, validation and test texts, so that the interval includes the draw of the "
    "texts; both students have the same texts, dimension, start, minibatches and way of tuning: a "
    "grid of step sizes, chosen on validation texts, that goes on where an end was chosen. Labels "
    "needed by interpolation in log n, the ratio from paired seeds."
)


def claim_on(corpus: str) -> Claim:
    """The claim on one corpus."""
    level = LEVELS.get(corpus)
    where = "that both reach, less a point" if level is None else f"{level:g}"
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
        f"pooling for the accuracy {where}.",
        source=Source("ours", note="a negative case, ordinary sentiment text"),
        provenance=Provenance(
            "after",
            "2026-11-19",
            "seeds 0 to 2",
            moved_from="one division of the texts, at what both poolings reach, less a point",
        ),
        sweeps=(pooling_sweep(corpus), topic_pooling),
        criteria=(
            Criterion(
                "mean over attention pooling (ratio)",
                saving(TextPooling),
                given_interval <= WORTHWHILE,
            ),
        ),
        controls=(
            Control(
                "topic words",
                "On the topic task, where one word tells the label, the same must be rejected.",
                (
                    Criterion(
                        "mean over attention pooling, topic task (ratio)",
                        saving(TopicPooling, TASK),
                        given_interval <= WORTHWHILE,
                    ),
                ),
            ),
        ),
        how_measured=HOW_MEASURED,
        refuted_by=f"A ratio that is surely above {WORTHWHILE:g}.",
        notes=(
            "The ratio depends on the tuning grid: with large steps only, mean pooling looks "
            "better than attention. From one division of the texts to another the labels needed "
            "differ by a factor of two.",
        ),
        figures=partial(pooling_figures, TextPooling, id="text_pooling"),
        cautions=tuning_cautions({"": TextPooling}),
    )
