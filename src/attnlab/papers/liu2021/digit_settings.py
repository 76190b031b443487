"""Settings of learning curves on noisy digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from attnlab._errors import AttnlabError
from attnlab.papers.liu2021.curve_settings import FitSettings

MASKED = ("baseline", "known-mask", "wrong-mask")  # two-layer networks on pixels
ATTENTION = ("patch-attention", "attention-pooling")
STUDENTS = (*MASKED, *ATTENTION)


@dataclass(frozen=True)
class DigitFitSettings(FitSettings):
    """One student of one seed, for all numbers of images; `FitSettings` has what is not said here.

    - ``student``: ``"baseline"`` (a two-layer network on pixels), ``"known-mask"`` (the same on
      images of which all but the digit's square is zero), ``"wrong-mask"`` (with the mask of
      another image: the control), ``"patch-attention"`` or ``"attention-pooling"`` (on the image
      alone).
    - ``digits``, ``shrink``: as in ``load_digits``; ``canvas`` to ``noise_std``: as in
      ``CanvasTask``.
    - ``hidden``: units of the dense students; ``embedding_dim``: size of every layer of the
      attention students (fewer parameters than the dense ones have with the defaults);
      ``key_dim``: d_q of self-attention.
    - ``patch``, ``stride``: the patches. ``pictures``: how many test images are kept
      for drawing.
    """

    counted: ClassVar[str] = "images"

    student: str = "baseline"
    sizes: tuple[int, ...] = (39, 78, 156, 312, 625, 1250)
    steps: int = 400
    step_sizes: tuple[float, ...] = (0.003, 0.01)
    weight_decays: tuple[float, ...] = (0.1, 1.0)
    valid_points: int = 300
    test_points: int = 1000
    digits: str = "sklearn"
    shrink: int = 1
    canvas: int = 24
    spacing: int = 8
    fragments: int = 4
    fragment_size: int = 4
    noise_std: float = 0.1
    hidden: int = 32
    embedding_dim: int = 64
    patch: int = 8
    stride: int = 4
    key_dim: int = 8
    pictures: int = 12

    def __post_init__(self):
        super().__post_init__()
        if self.student not in STUDENTS:
            raise AttnlabError(f"student={self.student!r}: expected one of {', '.join(STUDENTS)}")
        if not 1 <= self.pictures <= self.test_points:
            raise AttnlabError(
                f"pictures={self.pictures}: expected from 1 to test_points={self.test_points}"
            )
