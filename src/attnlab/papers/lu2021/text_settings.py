"""Settings of a training run on labelled sentences."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab._errors import AttnlabError
from attnlab.papers import ROTTEN_TOMATOES

TRAIN_TEXT = "attnlab.papers.lu2021.text_runs:train_text"
WRONG_QUERY = 1.2  # by which the control takes |q| too large
_HEADS = ("fixed", "linear")


@dataclass(frozen=True)
class TextSettings:
    """One training run on real text; the defaults are those of docs/theory.md#a7 for the fixed
    head (linear: embedding_dim 100, 30 000 steps).

    - ``seed`` draws the initial parameters; sentences are the same in all runs. ``arm`` is a label
      and nothing else.
    - ``source``: ``"rotten-tomatoes"``, or the path of a file, or of a folder with training,
      validation and test file; ``data``: the content hash that it must have (``TextParts.hash``),
      so that stored runs belong to their data.
    - ``every``: recorded steps, on which the best validation loss is looked for.
    - ``permuted``: training labels in random order, drawn by the seed: the control.
    - ``padding``: a trainable word fills every sentence up to the longest training sentence, as in
      the authors' code; off by default, since it is another model (docs/theory.md#a7).
    - ``surroundings``: record what the refined relation needs. ``top``: words kept in the tables.
    - ``batch_size``: sentences a step, all by default. ``keep``: the model of the best validation
      loss, as scores and projected table, and the attention of some test sentences along training.
    """

    arm: str = ""
    seed: int = 0
    source: str = ROTTEN_TOMATOES
    data: str = ""
    head: str = "fixed"
    embedding_dim: int = 200
    steps: int = 12_000
    step_size: float = 0.1
    embedding_std: float = 1e-6
    key_dim: int = 10
    query_std: float = 0.3
    every: int = 250
    permuted: bool = False
    padding: bool = False
    surroundings: bool = False
    top: int = 200
    permutations: int = 200
    pairs: int = 4
    dtype: str = "float32"
    batch_size: int | None = None
    keep: bool = False
    shown: int = 12

    def __post_init__(self):
        if self.head not in _HEADS:
            raise AttnlabError(f"head={self.head!r}: expected one of {', '.join(_HEADS)}")
        for name in ("embedding_dim", "steps", "key_dim", "every", "top", "pairs"):
            if getattr(self, name) < 1:
                raise AttnlabError(f"{name}={getattr(self, name)}: expected at least 1")
        if not self.step_size > 0:
            raise AttnlabError(f"step_size={self.step_size}: expected a positive number")
