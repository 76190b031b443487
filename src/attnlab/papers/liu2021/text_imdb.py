"""Liu et al. (2021) on IMDB: whole reviews, classified with and without attention
(docs/theory.md#b2).
"""

from __future__ import annotations

from functools import lru_cache, partial

from attnlab._errors import MissingData
from attnlab.lab import Claim, Control, Criterion, Grid, Provenance, Scale, Source, Sweep
from attnlab.lab import given_interval as ratio
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.curve_sweeps import tuning_cautions
from attnlab.papers.liu2021.pooling_sweeps import (
    TASK,
    AgainstCounts,
    PoolingCurves,
    topic_pooling,
)
from attnlab.papers.liu2021.text import (
    HOW_MEASURED,
    both_poolings,
    measure_pooling,
    pooling_figures,
    saving,
)
from attnlab.papers.liu2021.word_settings import FIT_WORDS

_SOURCE, _LEVEL, _LEAST = "imdb", 0.85, 1.1
_SIZES = (512, 1024, 2048, 4096)


class ImdbPooling(PoolingCurves, label="imdb pooling"):
    """Mean and attention pooling on IMDB's reviews."""


@lru_cache(maxsize=1)
def imdb_sweep() -> Sweep:
    """Learning curves of both kinds of pooling, at paper scale."""

    def grid(scale: Scale, seeds: int) -> Grid:
        if scale == "quick":
            raise MissingData(
                "25 000 long reviews take too long for quick scale: add --scale paper (about five "
                "CPU-minutes)"
            )
        return Grid(both_poolings(_SOURCE, _SIZES), seeds)

    return Sweep(
        name="imdb pooling",
        work=FIT_WORDS,
        grid=grid,
        measure=partial(measure_pooling, ImdbPooling, _LEVEL),
        tables=(ImdbPooling,),
    )


def claim_on(corpus: str) -> Claim:
    """The claim, which has a corpus of its own."""
    del corpus
    return Claim(
        id="liu2021.text_imdb",
        rank=21,
        title="On long reviews attention pooling saves labels",
        statement=f"On IMDB's reviews mean pooling needs at least {_LEAST:g} times the labels of "
        f"attention pooling for the accuracy {_LEVEL:g}.",
        why="A review has hundreds of words and a few that tell the label, and a plain mean mixes "
        "them all: it takes more labels to average the others out. Attention saves labels "
        "because it weighs the others down, so that the telling words make up more of what the "
        "classifier sees.",
        finding={
            "holds": "On long reviews attention pooling saves labels",
            "fails": "On long reviews attention pooling saves no labels",
            "inconclusive": "Whether attention pooling saves labels on long reviews is undecided",
        },
        source=Source("seen", PAPER, "IMDB with and without attention; labels needed are ours"),
        provenance=Provenance(
            "after", "2026-11-19", "seeds 0 and 1, and an audit's ratio, 1.43 [1.27, 1.61]"
        ),
        sweeps=(imdb_sweep(), topic_pooling),
        criteria=(
            Criterion(
                "mean over attention pooling, IMDB (ratio)", saving(ImdbPooling), ratio >= _LEAST
            ),
        ),
        controls=(
            Control(
                "counts of the topic words",
                "On the topic task, a network that is told the words that matter needs no attention.",
                (
                    Criterion(
                        "topic-word counts over attention pooling (ratio)",
                        saving(AgainstCounts, TASK),
                        ratio >= _LEAST,
                    ),
                ),
            ),
        ),
        how_measured=f"{HOW_MEASURED} Of a review at most 400 words are read, drawn at random; the "
        "20 000 most frequent words are known.",
        refuted_by=f"A ratio that is surely below {_LEAST:g}.",
        notes=("At paper scale only.",),
        figures=partial(pooling_figures, ImdbPooling, id="imdb_pooling"),
        cautions=tuning_cautions({"": ImdbPooling}),
    )
