"""Settings that all learning curves share, and those of learning curves on a teacher."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from attnlab._errors import AttnlabError

MASKS = ("static-mask", "gate", "moving-block")
ON_VECTORS = (*MASKS, "dense")
ON_WORDS = ("self-attention", "mlp", "multi-layer")
TEACHERS = (*ON_VECTORS, *ON_WORDS)
VECTOR_STUDENTS = ("baseline", "known-attention", "vacuous-mask", "wrong-mask", "self-attention")
WORD_STUDENTS = ("baseline", "known-weights", "wrong-weights", "self-attention", "multi-layer")
STUDENTS = tuple(dict.fromkeys((*VECTOR_STUDENTS, *WORD_STUDENTS)))
SIZES = tuple(2**k for k in range(3, 13))


@dataclass(frozen=True)
class FitSettings:
    """One student at several sample sizes: what every learning curve is told, and checks.

    - ``seed`` draws samples and initial parameters, so that students of equal seed are paired;
      ``arm`` is a label and nothing else.
    - ``sizes``: numbers of training samples, out of ``drawn`` (the largest size by default): runs
      with as many sizes and equally many drawn share one compiled program.
    - ``steps``, ``batch_size``, ``optimizer``: of each fit, see `attnlab.training.Recipe`.
    - Tuning, the same for every student: all pairs of ``step_sizes`` and ``weight_decays``, chosen
      by the loss on ``valid_points`` further samples. ``test_points`` more measure the result.
      Where the choice is an end of its grid, the grid goes on there, up to ``widen`` times, by the
      ratio of its last two values (3 after a decay of 0). A grid of one value stays as it is.
    """

    counted: ClassVar[str] = "samples"

    arm: str = ""
    seed: int = 0
    sizes: tuple[int, ...] = SIZES
    drawn: int | None = None
    steps: int = 1500
    batch_size: int = 64
    optimizer: str = "adam"
    step_sizes: tuple[float, ...] = (0.02,)
    weight_decays: tuple[float, ...] = (0.0, 0.1)
    widen: int = 0
    valid_points: int = 500
    test_points: int = 2000
    dtype: str = "float32"

    def __post_init__(self):
        if not self.sizes or min(self.sizes) < 1 or (np.diff(self.sizes) <= 0).any():
            raise AttnlabError(
                f"sizes={list(self.sizes)}: expected increasing positive numbers of {self.counted}"
            )
        if min(self.test_points, self.valid_points) < 2:
            raise AttnlabError(
                f"test_points={self.test_points}, valid_points={self.valid_points}: expected at "
                "least 2 of each"
            )
        if self.widen < 0:
            raise AttnlabError(f"widen={self.widen}: expected at least 0")
        if self.steps < 1 or self.batch_size < 1:
            raise AttnlabError(f"steps={self.steps} and batch_size={self.batch_size} must be ≥ 1")
        if self.dtype not in ("float32", "float64"):
            raise AttnlabError(f"dtype={self.dtype!r}: expected 'float32' or 'float64'")

    @property
    def available(self) -> int:
        """How many training samples are drawn."""
        return max(max(self.sizes), self.drawn or 0)


@dataclass(frozen=True)
class SampleSettings(FitSettings):
    """One student fitted to one teacher at several sample sizes (docs/theory.md#b2); the defaults
    are the masks' protocol. What `FitSettings` says holds; ``seed`` draws the teacher too.

    - ``teacher``: a kind of ``make_teacher``, or ``"file.py:function"``, a function of a key that
      returns an object with ``sample(n, key=…, noisy=…)``. ``classes`` 0 is regression, with
      noise of standard deviation ``noise_std``; 2 or more make the teacher label its inputs, of
      which a share ``label_noise`` is flipped.
    - ``student``: a name, or ``"file.py:function"``, a function of (key, shape) that returns an
      Equinox module. ``hidden``: units of the baseline (8 on vectors, 24 on matrices by
      default); ``depth``: layers of a multi-layer teacher or student. ``kept``: the share of the
      relevant features that a known mask or gate lets through; those beyond it are lost.
    - ``sharpness``: τ of the softplus units of teacher and student; 0 stands for ReLU, its limit for
      τ → ∞, which a stored plan cannot hold.
    - ``inputs``: how the teacher's inputs are distributed, see `attnlab.models.Inputs`.
    - ``code``: a fingerprint of files that teacher or student are read from, so that a changed file
      is run again.
    """

    teacher: str = "static-mask"
    student: str = "baseline"
    features: int = 16
    relevant: int = 4
    depth: int = 1
    noise_std: float = 0.2
    label_noise: float = 0.0
    classes: int = 0
    hidden: int | None = None
    sharpness: float = 4.0
    kept: float = 1.0
    inputs: str = "normal"
    code: str = ""

    def __post_init__(self):
        super().__post_init__()
        if self.classes == 1 or self.classes < 0:
            raise AttnlabError(f"classes={self.classes}: expected 0 for regression, or at least 2")
        if self.sharpness < 0:
            raise AttnlabError(
                f"sharpness={self.sharpness}: expected a number above 0, or 0 for ReLU"
            )
        if not 0 < self.kept <= 1:
            raise AttnlabError(f"kept={self.kept}: expected a share above 0 and up to 1")
        if self.label_noise and not self.classes:
            raise AttnlabError(
                f"label_noise={self.label_noise}: regression has no labels; give noise_std, or classes"
            )

    @property
    def softplus(self) -> float:
        """τ as the models take it."""
        return self.sharpness or math.inf
