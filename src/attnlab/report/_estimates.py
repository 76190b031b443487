"""Estimates with intervals as cells of a table show them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attnlab.report._text import interval, number

if TYPE_CHECKING:
    from attnlab.stats import Interval


def estimated(found: Interval | None) -> str:
    """The estimate, with its interval if it has one; a dash where nothing was measured.

    >>> from attnlab.stats import Interval
    >>> estimated(Interval(0.9, 1.2, 1.0)), estimated(Interval(math.nan, math.nan, 1.0))
    ('1 [0.9, 1.2]', '1')
    """
    if found is None:
        return number(None)
    ends = f" {interval((found.low, found.high))}" if found.exists else ""
    return f"{number(found.estimate)}{ends}"


def tone_of(found: Interval | None, *, least: float = -math.inf, most: float = math.inf) -> str:
    """The tone of a cell: whether the interval lies within two limits, beyond them, or across one.

    >>> from attnlab.stats import Interval
    >>> [tone_of(Interval(0.9, 1.2, 1.0), most=limit) for limit in (0.5, 1.0, 2.0)]
    ['bad', 'mixed', 'good']
    """
    if found is None or not found.exists:
        return ""
    if least <= found.low and found.high <= most:
        return "good"
    return "bad" if found.high < least or found.low > most else "mixed"
