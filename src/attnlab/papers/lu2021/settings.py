"""Settings of the work functions of this paper, one training run each."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab._errors import AttnlabError

HEADS = ("fixed", "linear", "two_layer", "deep")
RECORDS = ("laws", "relation", "curves")
OPTIMIZERS = ("descent", "adam")


@dataclass(frozen=True)
class TopicSettings:
    """One training run on the topic task (docs/theory.md#a1); the defaults are the reference
    setting.

    - ``seed`` draws data and initial parameters alike, so that runs of equal seed are paired across
      other settings; ``arm`` is a label and nothing else.
    - ``head``: ``"fixed"``, ``"linear"``, ``"two_layer"``, or ``"deep"``, three trained layers with
      tanh between. ``trained`` names the parts that move (the head's own choice by default);
      ``query_norm`` fixes |q|.
    - ``optimizer``: ``"descent"`` (with ``momentum``, ``weight_decay``, ``batch_size``) or
      ``"adam"``.
    - ``record``: ``"laws"`` every law's quantities, ``"relation"`` what the score–norm relation
      needs in all forms, ``"curves"`` scores, norms, attention and separation only. ``rows``: how
      many steps are recorded.
    - ``predict``: the reduced model's prediction beside what training did, with m halved too, as a
      control; ``ending``: final scores and norms of all words.
    - ``context``: how much of the context each topic word makes up.
    - ``loss_floor``: the step is ``step_size / max(loss, loss_floor)``, so that descent reaches far
      times; the time of each row is recorded.
    - ``reach``: attention acts on a convolution over so many neighbours to each side, itself
      trained, instead of on single words; with ``frozen_context`` the convolution is frozen and
      acts on the keys as well.
    """

    arm: str = ""
    seed: int = 0
    head: str = "fixed"
    optimizer: str = "descent"
    step_size: float = 0.1
    momentum: float = 0.0
    weight_decay: float = 0.0
    batch_size: int | None = None
    steps: int = 5000
    rows: int = 100
    embedding_std: float = 1e-6
    query_norm: float | None = None
    head_scale: float = 1.0
    trained: tuple[str, ...] | None = None
    topics: int = 4
    topic_words: int = 2
    topic_probabilities: tuple[float, ...] | None = None
    topic_words_in_sentence: int = 1
    topic_noise: float = 0.0
    label_noise: float = 0.0
    dictionary: int = 5000
    noise_words: int = 20
    sentences: int = 4000
    test_sentences: int = 1000
    dtype: str = "float64"
    record: str = "laws"
    surroundings: bool = False
    context: bool = False
    loss_floor: float | None = None
    predict: bool = False
    ending: bool = False
    reach: int | None = None
    frozen_context: bool = False

    def __post_init__(self):
        for name, allowed in (
            ("head", HEADS),
            ("record", RECORDS),
            ("optimizer", OPTIMIZERS),
        ):
            if getattr(self, name) not in allowed:
                raise AttnlabError(
                    f"{name}={getattr(self, name)!r}: expected one of {', '.join(allowed)}"
                )
        for name in ("rows", "sentences", "test_sentences", "steps"):
            if getattr(self, name) < 1:
                raise AttnlabError(f"{name}={getattr(self, name)}: expected at least 1")
        if not self.step_size > 0 or not 0 <= self.momentum < 1 or not self.weight_decay >= 0:
            raise AttnlabError(
                f"step_size={self.step_size} must be positive, momentum={self.momentum} between 0 "
                "and 1, "
                f"weight_decay={self.weight_decay} ≥ 0"
            )
        if self.batch_size is not None and not 1 <= self.batch_size <= self.sentences:
            raise AttnlabError(
                f"batch_size={self.batch_size}: expected 1 to {self.sentences}, the number of "
                "sentences"
            )
        if self.optimizer == "adam" and self.momentum:
            raise AttnlabError(
                f"momentum={self.momentum}: Adam has its own; use optimizer='descent' with momentum"
            )
        if self.loss_floor is not None and (self.optimizer == "adam" or self.head == "two_layer"):
            raise AttnlabError(
                f"loss_floor={self.loss_floor}: expected plain descent with a fixed or linear head"
            )
        if self.frozen_context and self.reach is None:
            raise AttnlabError("frozen_context=True without reach: give reach=1, a convolution")
        if isinstance(self.trained, str):
            raise AttnlabError(
                f"trained={self.trained!r}: give a tuple of parts, as ('{self.trained}',)"
            )

    @property
    def others(self) -> int:
        """m: how many words stand beside a topic word in its sentence."""
        return self.noise_words + self.topic_words_in_sentence - 1


@dataclass(frozen=True)
class FarSettings:
    """One flow of the reduced model from a start drawn as ``TopicSettings`` draws it, with the
    population's numbers.

    ``last`` is the last time, ``rows`` the number of times recorded, evenly spaced in the logarithm
    from 0.1 on.
    """

    arm: str = ""
    seed: int = 0
    head: str = "fixed"
    last: float = 1e12
    rows: int = 101
    embedding_std: float = 1e-6
    query_norm: float | None = None
    topics: int = 4
    topic_words: int = 2
    noise_words: int = 20
