"""Settings of learning curves of pooled words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnlab._errors import AttnlabError

POOLING = ("mean-pooling", "attention-pooling")
STUDENTS = (*POOLING, "topic-counts")
STEP_SIZES, WEIGHT_DECAYS = (0.03, 0.1), (0.0, 0.1)


@dataclass(frozen=True)
class PoolingSettings:
    """One student of the topic task at several numbers of training sentences (docs/theory.md#b2).

    - ``seed`` draws sentences and initial parameters, so that students of equal seed are paired;
      ``arm`` is a label and nothing else.
    - ``student``: ``"mean-pooling"`` (all words of a sentence weigh the same),
      ``"attention-pooling"`` (their weights are learned too), or the control ``"topic-counts"``, a
      two-layer network of ``hidden`` units on how often each topic word occurs: it is told which
      words matter.
    - ``sizes``: numbers of training sentences, the first of the ``sentences`` that are drawn, in a
      random order: students of different sizes still see nested sentences.
    - Tuning, the same for every student: all pairs of ``step_sizes`` and ``weight_decays``, chosen
      by the loss on ``valid_sentences`` further sentences.
    """

    arm: str = ""
    seed: int = 0
    student: str = "attention-pooling"
    sizes: tuple[int, ...] = tuple(2**k for k in range(3, 13))
    sentences: int = 4096
    steps: int = 600
    batch_size: int = 64
    optimizer: str = "adam"
    step_sizes: tuple[float, ...] = STEP_SIZES
    weight_decays: tuple[float, ...] = WEIGHT_DECAYS
    valid_sentences: int = 500
    test_sentences: int = 2000
    topics: int = 4
    topic_words: int = 2
    dictionary: int = 5000
    noise_words: int = 20
    embedding_dim: int = 10
    embedding_std: float = 1e-6
    hidden: int = 10
    dtype: str = "float32"

    def __post_init__(self):
        if self.student not in STUDENTS:
            raise AttnlabError(f"student={self.student!r}: expected one of {', '.join(STUDENTS)}")
        check_sizes(self.sizes, self.sentences)
        if min(self.valid_sentences, self.test_sentences) < 1:
            raise AttnlabError(
                f"valid_sentences={self.valid_sentences}, test_sentences={self.test_sentences}: "
                "expected at least 1"
            )
        if self.dtype not in ("float32", "float64"):
            raise AttnlabError(f"dtype={self.dtype!r}: expected 'float32' or 'float64'")


def check_sizes(sizes: Sequence[int], available: int) -> None:
    """Refuse sizes that do not increase, or that ask for more sentences than there are."""
    if not len(sizes) or min(sizes) < 1 or (np.diff(sizes) <= 0).any() or max(sizes) > available:
        raise AttnlabError(
            f"sizes={list(sizes)}: expected increasing numbers of sentences from 1 to "
            f"{available}, the training sentences that there are"
        )
