"""Where training is heading: the reduced model's flow to times that no training reaches (THEORY A6)."""

from __future__ import annotations

from dataclasses import dataclass

import xarray as xr

from attnlab.runs import RunContext
from attnlab.studies._dynamics import predict_one
from attnlab.studies._topic import TopicSettings


@dataclass(frozen=True)
class FarSettings:
    """One flow of the reduced model from a start drawn as ``TopicSettings`` draws it, with the population's numbers.

    ``last`` is the last time, ``rows`` the number of times recorded, evenly spaced in the logarithm from 0.1 on.
    """

    arm: str = ""
    seed: int = 0
    head: str = "fixed"
    last: float = 1e12
    rows: int = 101
    embedding_std: float = 1e-6
    query_length: float | None = None
    topics: int = 4
    topic_words: int = 2
    noise_words: int = 20


def flow_far(settings: FarSettings, context: RunContext) -> xr.Dataset:
    """Integrate the reduced flow; the data set has dimensions (time, word)."""
    s = settings
    start = TopicSettings(
        seed=s.seed, head=s.head, embedding_std=s.embedding_std, query_length=s.query_length, topics=s.topics,
        topic_words=s.topic_words, noise_words=s.noise_words,
    )  # fmt: skip
    return predict_one(start, s.last, s.rows, context.root_seed)
