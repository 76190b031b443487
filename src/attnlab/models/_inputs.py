"""Distributions of inputs (docs/theory.md#b2): numbers of mean 0, and of variance 1 but for one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnlab._errors import AttnlabError

INPUTS = ("normal", "rademacher", "uniform", "heavy-tailed", "correlated", "decaying")
_DEGREES = 5  # of freedom: the fewest whole ones with which the fourth moment is finite
_SHARED = 0.5  # correlation of any two numbers
# Fourth moment over the squared variance, of one number.
_KURTOSIS = {"rademacher": 1.0, "uniform": 1.8, "heavy-tailed": 3 + 6 / (_DEGREES - 4)}


@dataclass(frozen=True)
class Inputs:
    """How the numbers x₀, …, x_{p−1} of an input are distributed; the columns of a matrix in turn.

    - ``"normal"``: independent N(0, 1); ``"rademacher"``: independent ±1; ``"uniform"``:
      independent on ±√3;
    - ``"heavy-tailed"``: independent, Student's t with 5 degrees of freedom over its deviation: the
      fourth moment is finite (9), the sixth is not, so that it is not sub-Gaussian;
    - ``"correlated"``: normal, any two with correlation ½;
    - ``"decaying"``: independent normal, x_j with variance 1/(j + 1).

    >>> Inputs("decaying").covariance(3).diagonal().round(3).tolist()
    [1.0, 0.5, 0.333]
    """

    kind: str = "normal"

    def __post_init__(self):
        if self.kind not in INPUTS:
            raise AttnlabError(f"inputs={self.kind!r}: expected one of {', '.join(INPUTS)}")

    def draw(
        self, n: int, shape: tuple[int, ...], rng: np.random.Generator
    ) -> Float[np.ndarray, "n ..."]:
        """``n`` inputs, row by row: fewer are the start of more."""
        if self.kind == "normal":
            return rng.standard_normal((n, *shape))
        return (
            self._numbers(n, math.prod(shape), rng)
            .reshape((n, *reversed(shape)))
            .transpose(0, *range(len(shape), 0, -1))
        )

    def _numbers(self, n: int, p: int, rng: np.random.Generator) -> Float[np.ndarray, "n p"]:
        if self.kind == "rademacher":
            return np.where(rng.random((n, p)) < 0.5, -1.0, 1.0)
        if self.kind == "uniform":
            return math.sqrt(3) * (2 * rng.random((n, p)) - 1)
        if self.kind == "heavy-tailed":
            return math.sqrt((_DEGREES - 2) / _DEGREES) * rng.standard_t(_DEGREES, (n, p))
        if self.kind == "correlated":
            z = rng.standard_normal((n, p + 1))
            return math.sqrt(1 - _SHARED) * z[:, 1:] + math.sqrt(_SHARED) * z[:, :1]
        return rng.standard_normal((n, p)) / np.sqrt(np.arange(1.0, p + 1))

    def covariance(self, numbers: int) -> Float[np.ndarray, "p p"]:
        """Σ = E x xᵀ of inputs of so many numbers."""
        if self.kind == "correlated":
            return _SHARED + (1 - _SHARED) * np.eye(numbers)
        if self.kind == "decaying":
            return np.diag(1 / np.arange(1.0, numbers + 1))
        return np.eye(numbers)

    @property
    def kurtosis(self) -> float:
        """``E x_j⁴ / (E x_j²)²`` of one number."""
        return _KURTOSIS.get(self.kind, 3.0)
