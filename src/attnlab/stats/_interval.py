"""An estimate with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attnlab._errors import AttnlabError
from attnlab._html import card, interval_bar

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """``low ≤ high`` at ``confidence``, and the ``estimate``.

    If the values give no interval, both ends are nan and ``reason`` explains why.

    >>> print(Interval(low=0.9, high=1.2, estimate=1.0, confidence=0.95))
    1 [0.9, 1.2]
    """

    low: float
    high: float
    estimate: float
    confidence: float = CONFIDENCE
    reason: str = ""

    @property
    def exists(self) -> bool:
        """Whether there is an interval."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def __str__(self) -> str:
        if not self.exists:
            return f"{self.estimate:.3g} (no interval: {self.reason})"
        return f"{self.estimate:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def _repr_html_(self) -> str:
        bar = interval_bar(self.low, self.estimate, self.high, label=str(self))
        rows = {"confidence": f"{100 * self.confidence:g} %"} if self.exists else {}
        return card(str(self), rows, bar)


def check_confidence(confidence: float) -> None:
    """Raise an error for a confidence outside (0, 1)."""
    if not 0 < confidence < 1:
        raise AttnlabError(
            f"confidence={confidence}: expected a number between 0 and 1, such as {CONFIDENCE}"
        )
