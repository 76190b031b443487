"""Settings of the search for stationary points, and what its models and measures are called."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab._errors import AttnlabError

ON_VECTORS = ("baseline", "narrow-baseline", "known-attention")
ON_WORDS = (
    "words-baseline",
    "known-weights",
    "known-weights-plain",
    "self-attention",
    "multi-layer",
)
MODELS = (*ON_VECTORS, *ON_WORDS)
FLATNESS = ("largest", "trace", "trace_per_parameter", "keskar", "sam", "adaptive_sam", "petzka")
GOOD = 0.1  # prediction error with which a minimum is called good


@dataclass(frozen=True)
class PointSettings:
    """One problem and how its stationary points are looked for; the defaults are those of
    docs/theory.md#b3.

    - ``seed`` draws teacher, data and starts; ``arm`` is a label and nothing else.
    - ``model``: on 8 numbers of which a gate lets 2 through, ``"baseline"``, ``"known-attention"``
      and ``"narrow-baseline"``, which is given these 2 alone (4 hidden units); on 3 words of
      dimension 2, ``"words-baseline"`` (5 hidden units, about as many parameters as attention),
      ``"known-weights"`` with a trained w_V, ``"known-weights-plain"`` without,
      ``"self-attention"``, and ``"multi-layer"`` of two layers. The teacher is a gate,
      self-attention, or a stack of two layers.
    - ``samples`` n with ``noise_std``, the first of ``drawn`` (n by default): problems of equally many
      drawn share one compiled program; ``shuffled`` labels have nothing to do with their inputs.
      ``classes`` 0 is regression; 2 label by the sign of the teacher's output, for cross-entropy.
    - ``l2``: λ of ½λ‖θ‖²; ``starts`` at the ``scales`` in turn. ``saddles`` looks for stationary
      points of any kind instead of minima.
    - ``inputs``, ``sharpness`` τ of teacher and models on vectors, see `attnlab.models.Inputs` and
      `attnlab.models.softplus`; those on words keep normal inputs and τ = 4.
    - ``flat``: measures of flatness, ``"all"`` at every certified minimum, ``"lowest"`` at the one
      of least L, ``""`` nowhere. ``keep``: the points themselves.
    """

    arm: str = ""
    seed: int = 0
    model: str = "self-attention"
    samples: int = 128
    drawn: int | None = None
    noise_std: float = 0.2
    shuffled: bool = False
    classes: int = 0
    l2: float = 1e-3
    starts: int = 9
    scales: tuple[float, ...] = (0.1, 1.0, 3.0)
    saddles: bool = False
    flat: str = ""
    keep: bool = False
    test_points: int = 2000
    inputs: str = "normal"
    sharpness: float = 4.0

    def __post_init__(self):
        if self.model not in MODELS:
            raise AttnlabError(f"model={self.model!r}: expected one of {', '.join(MODELS)}")
        if (
            min(self.samples, self.starts) < 1
            or self.test_points < 2
            or not self.scales
            or min(self.scales) <= 0
        ):
            raise AttnlabError(
                f"samples={self.samples}, starts={self.starts}, test_points={self.test_points}, "
                f"scales={self.scales}: "
                "expected positive numbers"
            )
        if self.drawn is not None and self.drawn < self.samples:
            raise AttnlabError(f"drawn={self.drawn}: expected at least samples={self.samples}")
        if self.model not in ON_VECTORS and (self.inputs, self.sharpness) != ("normal", 4.0):
            raise AttnlabError(
                f"inputs={self.inputs!r}, sharpness={self.sharpness:g} with model={self.model!r}: "
                f"other than 'normal' and 4 only for {', '.join(ON_VECTORS)}"
            )
        if self.flat not in ("", "lowest", "all"):
            raise AttnlabError(f"flat={self.flat!r}: expected 'lowest', 'all' or ''")
        if self.l2 < 0 or self.classes not in (0, 2):
            raise AttnlabError(f"l2={self.l2} must be ≥ 0, classes={self.classes} must be 0 or 2")
