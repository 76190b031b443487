"""An estimate with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attnlab._errors import AttnlabError


@dataclass(frozen=True)
class Interval:
    """``low ≤ high`` at confidence ``level``, and the ``estimate`` they belong to.

    Numbers, or arrays of one shape where many quantities were estimated at once.

    >>> Interval(low=0.9, high=1.2, estimate=1.0, level=0.95)
    Interval(low=0.9, high=1.2, estimate=1.0, level=0.95)
    """

    low: Any
    high: Any
    estimate: Any
    level: float


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < level < 1:
        raise AttnlabError(f"level={level}: expected a confidence level between 0 and 1, such as 0.95")
