"""Schedules: at which steps a row is recorded. Step 0 and the last step always are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from attnlab._errors import AttnlabError


@dataclass(frozen=True)
class Every:
    """Every ``k``-th step.

    >>> Every(4).steps(10).tolist()
    [0, 4, 8, 10]
    """

    k: int = 1

    def __post_init__(self):
        if self.k < 1:
            raise AttnlabError(f"Every({self.k}): expected a whole number of steps ≥ 1")

    def steps(self, last: int) -> Int[ndarray, "rows"]:
        """The recorded steps of a run of ``last`` steps."""
        return np.unique(np.append(np.arange(0, last + 1, self.k), last))


@dataclass(frozen=True)
class Logarithmic:
    """About ``count`` steps, evenly spaced in the logarithm.

    >>> Logarithmic(4).steps(1000).tolist()
    [0, 1, 10, 100, 1000]
    """

    count: int = 100

    def __post_init__(self):
        if self.count < 2:
            raise AttnlabError(f"Logarithmic({self.count}): expected at least 2 steps")

    def steps(self, last: int) -> Int[ndarray, "rows"]:
        """The recorded steps of a run of ``last`` steps."""
        spaced = np.round(np.geomspace(1, max(last, 1), self.count)).astype(np.int64)
        return np.unique(np.concatenate([[0], spaced[spaced <= last], [last]]))


@dataclass(frozen=True)
class At:
    """Given steps.

    >>> At((5, 50)).steps(100).tolist()
    [0, 5, 50, 100]
    """

    given: tuple[int, ...]

    def steps(self, last: int) -> Int[ndarray, "rows"]:
        """The recorded steps of a run of ``last`` steps."""
        chosen = np.asarray(self.given, np.int64)
        outside = chosen[(chosen < 0) | (chosen > last)]
        if outside.size:
            raise AttnlabError(
                f"At: step {outside[0]}: expected steps from 0 to {last}, the length of a run"
            )
        return np.unique(np.concatenate([[0], chosen, [last]]))


Schedule = Every | Logarithmic | At
