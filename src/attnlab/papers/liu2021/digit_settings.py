"""Settings of learning curves on noisy digits."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab._errors import AttnlabError

MASKED = ("baseline", "known-mask", "wrong-mask")  # two-layer networks on pixels
ATTENTION = ("patch-attention", "attention-pooling")
STUDENTS = (*MASKED, *ATTENTION)


@dataclass(frozen=True)
class DigitFitSettings:
    """One student of one seed, for all sample sizes.

    - ``seed`` draws digits, images and initial parameters, so that students of equal seed are
      paired; ``arm`` is a label and nothing else.
    - ``student``: ``"baseline"`` (a two-layer network on pixels), ``"known-mask"`` (the same on
      images of which all but the digit's square is zero), ``"wrong-mask"`` (with the mask of
      another image: the control), ``"patch-attention"`` or ``"attention-pooling"`` (on the image
      alone).
    - ``digits``, ``shrink``: as in ``load_digits``; ``canvas`` to ``noise_std``: as in
      ``CanvasTask``.
    - Every student has the same ``step_sizes`` × ``weight_decays`` to choose from on ``validation``
      images.
    - ``hidden``: units of the dense students; ``embedding_dim``: size of every layer of the
      attention students (fewer parameters than the dense ones have with the defaults);
      ``key_dim``: d_q of self-attention.
    - ``patch``, ``stride``: the patches. ``drawn``: how many test images are kept for drawing.
    """

    arm: str = ""
    seed: int = 0
    student: str = "baseline"
    sizes: tuple[int, ...] = (39, 78, 156, 312, 625, 1250)
    digits: str = "sklearn"
    shrink: int = 1
    canvas: int = 24
    spacing: int = 8
    fragments: int = 4
    fragment_size: int = 4
    noise_std: float = 0.1
    validation: int = 300
    test: int = 1000
    steps: int = 400
    batch_size: int = 64
    step_sizes: tuple[float, ...] = (0.003, 0.01)
    weight_decays: tuple[float, ...] = (0.1, 1.0)
    hidden: int = 32
    embedding_dim: int = 64
    patch: int = 8
    stride: int = 4
    key_dim: int = 8
    drawn: int = 12

    def __post_init__(self):
        if self.student not in STUDENTS:
            raise AttnlabError(f"student={self.student!r}: expected one of {', '.join(STUDENTS)}")
        if not self.sizes or min(self.sizes) < 1:
            raise AttnlabError(
                f"sizes={self.sizes}: expected one or more numbers of training images ≥ 1"
            )
        if not 1 <= self.drawn <= self.test or min(self.validation, self.test) < 2:
            raise AttnlabError(
                f"validation={self.validation} and test={self.test} must be ≥ 2, "
                f"drawn={self.drawn} from 1 to test"
            )
