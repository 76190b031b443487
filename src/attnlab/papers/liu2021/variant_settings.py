"""Variants of attention by name, and the settings of the work function that fits them to a teacher."""

from __future__ import annotations

from dataclasses import dataclass

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.papers.liu2021.curve_settings import FitSettings

PENALTIES = ("entropy", "l1", "prior", "wrong-prior")
TEACHER_WORK = "attnlab.papers.liu2021.variant_runs:fit_variant"


@dataclass(frozen=True)
class Variant:
    """``normaliser`` as ``make_normaliser`` takes it, and ``strength`` times a ``penalty`` on the
    training loss.

    - ``"entropy"``: the mean entropy of attention, which pushes towards few words;
    - ``"l1"``: ``Σ|q_i|`` of the query;
    - ``"prior"``: ``|a − given|²``, given being the weights that are right; ``"wrong-prior"``:
      those of other words.

    >>> Variant.of("softmax:0.25+entropy:0.1")
    Variant(normaliser='softmax:0.25', penalty='entropy', strength=0.1)
    """

    normaliser: str = "softmax"
    penalty: str = ""
    strength: float = 0.0

    @classmethod
    def of(cls, name: str) -> Variant:
        """From its name: ``NORMALISER`` or ``NORMALISER+PENALTY:STRENGTH``."""
        normaliser, plus, rest = name.partition("+")
        al.models.make_normaliser(normaliser)
        if not plus:
            return cls(normaliser)
        penalty, _, strength = rest.partition(":")
        try:
            value = float(strength)
        except ValueError:
            value = float("nan")
        if penalty not in PENALTIES or not 0 < value < float("inf"):
            raise AttnlabError(
                f"variant {name!r}: expected a penalty after '+', one of {', '.join(PENALTIES)}, "
                "with a strength above 0, as in softmax+entropy:0.1"
            )
        return cls(normaliser, penalty, value)


@dataclass(frozen=True)
class VariantSettings(FitSettings):
    """One variant fitted to one teacher at several sample sizes; the defaults are the protocol of
    docs/theory.md#b5. What `FitSettings` says holds; ``seed`` draws the teacher too.

    - ``variant``: as ``Variant.of`` takes it.
    - The teacher attends with equal weights to those ``relevant`` of the ``words`` whose ``u·x_z``
      is largest, u being a unit vector on the first ``informative`` of ``embedding_dim``
      coordinates: 1 is the hard teacher, all words the dense one.
    - ``course``: whether one more training at the largest size is followed step by step.
    """

    variant: str = "softmax"
    relevant: int = 1
    noise_std: float = 0.2
    words: int = 16
    embedding_dim: int = 8
    informative: int = 2
    hidden: int = 16
    query_std: float = 0.1
    sizes: tuple[int, ...] = (64, 128, 256, 512, 1024, 2048)
    step_sizes: tuple[float, ...] = (0.01,)
    course: bool = False

    def __post_init__(self):
        super().__post_init__()
        Variant.of(self.variant)
        if not 1 <= self.relevant <= self.words:
            raise AttnlabError(
                f"relevant={self.relevant}: expected 1 (hard) to {self.words} (dense), the words"
            )
        if not 1 <= self.informative <= self.embedding_dim:
            raise AttnlabError(
                f"informative={self.informative}: expected 1 to {self.embedding_dim}, the "
                "coordinates of a word"
            )
        if self.noise_std < 0:
            raise AttnlabError(f"noise_std={self.noise_std}: expected at least 0")
