"""Exact intervals of shares of runs."""

from __future__ import annotations

import math

from scipy.special import betaincinv

from attnlab._errors import AttnlabError
from attnlab.stats._interval import CONFIDENCE, Interval, check_confidence


def share_interval(
    successes: float, trials: int, *, unknown: int = 0, confidence: float = CONFIDENCE
) -> Interval:
    """The exact interval of a share (Clopper and Pearson 1934) of independent trials.

    - ``successes`` s may be fractional if a problem has several starts: the sum over problems of
      each one's own share. Such a sum varies no more than a binomial of the same mean (Hoeffding
      1956), so the interval is conservative.
    - ``unknown``: further trials with unknown outcome (failed, unmatched). The low end counts them
      as misses, the high end as successes; the estimate is that of the known ones.

    ``low`` solves P[X ≥ s | low] = (1 − confidence)/2, ``high`` P[X ≤ s | high] = (1 −
    confidence)/2.

    >>> print(share_interval(16, 16))
    1 [0.794, 1]
    >>> print(share_interval(15, 15, unknown=1))
    1 [0.698, 1]
    """
    check_confidence(confidence)
    if trials < 1 or not 0 <= successes <= trials or unknown < 0:
        raise AttnlabError(
            f"{successes:g} successes of {trials} trials, {unknown} unknown: expected at least "
            "one trial, 0 ≤ successes ≤ trials and unknown ≥ 0"
        )
    every = trials + unknown
    low = _quantile(successes, every - successes + 1, (1 - confidence) / 2)
    high = _quantile(successes + unknown + 1, trials - successes, (1 + confidence) / 2)
    return Interval(low, high, successes / trials, confidence)


def _quantile(a: float, b: float, share: float) -> float:
    """The quantile of a beta distribution; with a parameter of zero, all mass is at one end."""
    if a <= 0:
        return 0.0
    return 1.0 if b <= 0 else float(betaincinv(a, b, share))


def trials_needed(share: float, *, confidence: float = CONFIDENCE) -> int:
    """The number of trials without a miss that proves a share of at least ``share``.

    >>> trials_needed(0.95), trials_needed(0.8)
    (72, 17)
    """
    check_confidence(confidence)
    if not 0 < share < 1:
        raise AttnlabError(
            f"share={share}: expected a number between 0 and 1; no number of runs proves a share "
            "of 1"
        )
    return math.ceil(math.log((1 - confidence) / 2) / math.log(share))


def may_violate(violating: int, runs: int, *, confidence: float = CONFIDENCE) -> float:
    """An exact one-sided upper bound of the share of runs beyond a bound, given how many were.

    >>> f"{may_violate(0, 4):.0%}"
    '53%'
    """
    check_confidence(confidence)
    if runs < 1 or not 0 <= violating <= runs:
        raise AttnlabError(
            f"{violating} of {runs} runs: expected at least one run and 0 ≤ violating ≤ runs"
        )
    return _quantile(violating + 1, runs - violating, confidence)
