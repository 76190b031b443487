"""Settings of the work functions of these claims."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab._errors import AttnlabError

WORDS = (2, 3, 5, 8, 16, 64, 256)  # numbers of words T of the rows of logits
TOO_LARGE = 1.5  # the control's β is so many times too large: its bound lies too high


@dataclass(frozen=True)
class EdgeSettings:
    """One run of full-batch descent on word attention; the defaults are those of docs/theory.md#c5.

    - ``seed`` draws sentences and start; ``arm`` is a label and nothing else.
    - Sentences of ``length`` words, one of them of its topic, from a vocabulary of ``words``; a
      share ``flipped`` of the labels (in expectation) is another class than the topic's. The loss
      is the mean over sentences of ``|logits − one-hot label|²``.
    - Embeddings, keys, query and the linear head are all trained, from ``init_std`` per entry.
    - ``rows``: how often λ_max is looked at, by ``depth`` Lanczos steps.
    - ``flow``: the gradient flow itself for the time ``steps × step_size``, instead of descent.
    """

    arm: str = ""
    seed: int = 0
    step_size: float = 1.0
    steps: int = 10_000
    rows: int = 100
    depth: int = 32
    topics: int = 2
    topic_words: int = 4
    words: int = 60
    length: int = 8
    sentences: int = 200
    embedding_dim: int = 8
    flipped: float = 0.1
    init_std: float = 0.3
    flow: bool = False

    def __post_init__(self):
        for name in ("steps", "rows", "depth", "sentences", "embedding_dim", "length"):
            if getattr(self, name) < 1:
                raise AttnlabError(f"{name}={getattr(self, name)}: expected at least 1")
        for name in ("step_size", "init_std"):
            if not getattr(self, name) > 0:
                raise AttnlabError(f"{name}={getattr(self, name)}: expected a positive number")
        of_topics = self.topics * self.topic_words
        if self.words <= of_topics:
            raise AttnlabError(
                f"words={self.words}: expected more than the {of_topics} topic words"
            )
        chance = 1 - 1 / self.topics
        if not 0 <= self.flipped <= chance:
            raise AttnlabError(
                f"flipped={self.flipped}: expected 0 to {chance:.3g}, where labels are chance"
            )


@dataclass(frozen=True)
class EntropySettings:
    """``rows`` random rows of logits; ``seed`` draws them, ``arm`` is only a label."""

    arm: str = ""
    seed: int = 0
    rows: int = 7500

    def __post_init__(self):
        if self.rows < len(WORDS):
            raise AttnlabError(
                f"rows={self.rows}: expected at least {len(WORDS)}, one for each number of words"
            )
