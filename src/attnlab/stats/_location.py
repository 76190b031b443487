"""Intervals of means, medians and ratios over runs, in closed form (no resampling)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import stdtrit

from attnlab._errors import AttnlabError
from attnlab.stats._interval import CONFIDENCE, Interval, check_confidence

Location = Literal["mean", "median", "lognormal mean", "geometric mean", "median ratio"]
LOCATIONS: tuple[str, ...] = get_args(Location)
MIN_RUNS = 8

_ON_LOGS = ("lognormal mean", "geometric mean", "median ratio")


def interval_of(
    values: Any, statistic: Location = "median", *, confidence: float = CONFIDENCE
) -> Interval:
    """The interval of a statistic over independent runs; ``values`` has one number per run.

    - ``"mean"``: Student's t.
    - ``"median"``: Hettmansperger and Sheather (1986), order statistics with interpolation.
    - ``"geometric mean"``, ``"median ratio"``: the same two of the logarithms, for ratios of paired
      runs.
    - ``"lognormal mean"``: Cox's interval of the mean of a positive, skewed variable: with mean m
      and variance v of the logarithms ``m + v/2 ± t √(v/n + v²/(2(n − 1)))``, exponentiated. Choose
      it when the variable is declared, never after looking at its values.

    With fewer than 8 runs, or if all values are equal, there is no interval. From 8 runs on, a
    nominal 95 % interval covers at least 94 % if its assumption holds (``make coverage``).

    >>> print(interval_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], "mean"))
    4.5 [2.45, 6.55]
    >>> print(interval_of([2.0] * 8))
    2 (no interval: all 8 values are equal)
    """
    check_confidence(confidence)
    if statistic not in LOCATIONS:
        raise AttnlabError(
            f"statistic={statistic!r}: expected one of {', '.join(map(repr, LOCATIONS))}"
        )
    data = _checked(values)
    if statistic in _ON_LOGS:
        if (data <= 0).any():
            raise AttnlabError(
                f"{int((data <= 0).sum())} values are not positive: {statistic!r} needs positive "
                "values"
            )
        data = np.log(data)
    estimate, ends = _METHODS[statistic]
    back: Callable[[float], float] = math.exp if statistic in _ON_LOGS else float
    reason = _no_interval(data, statistic, confidence)
    if reason:
        return Interval(math.nan, math.nan, back(estimate(data)), confidence, reason)
    low, high = ends(data, confidence)
    return Interval(back(low), back(high), back(estimate(data)), confidence)


def _checked(values: Any) -> np.ndarray:
    data = np.asarray(values, np.float64)
    if data.ndim != 1 or data.size == 0:
        raise AttnlabError(f"values of shape {data.shape}: expected one number for each run")
    if not np.isfinite(data).all():
        raise AttnlabError(
            f"{int((~np.isfinite(data)).sum())} of {data.size} values are nan or infinite: "
            "expected finite numbers; leave failed runs out first, and count them"
        )
    return data


def _no_interval(data: np.ndarray, statistic: str, confidence: float) -> str:
    """Why there is no interval; empty if there is one."""
    if len(data) < MIN_RUNS:
        return f"{len(data)} runs, an interval needs at least {MIN_RUNS}"
    if data.min() == data.max():
        return f"all {len(data)} values are equal"
    # The widest interval of a median is from the smallest to the largest value.
    if "median" in statistic and 1 - 2.0 ** (1 - len(data)) < confidence:
        return f"{len(data)} runs, too few for a median at confidence {confidence:g}"
    return ""


def _lognormal_mean(logs: np.ndarray) -> float:
    return float(logs.mean() + logs.var(ddof=1) / 2) if len(logs) > 1 else float(logs[0])


def _median(data: np.ndarray) -> float:
    return float(np.median(data))


def _mean(data: np.ndarray) -> float:
    return float(data.mean())


def _student(data: np.ndarray, confidence: float) -> tuple[float, float]:
    reach = _t(len(data), confidence) * float(data.std(ddof=1)) / math.sqrt(len(data))
    return _mean(data) - reach, _mean(data) + reach


def _cox(logs: np.ndarray, confidence: float) -> tuple[float, float]:
    variance = float(logs.var(ddof=1))
    spread = math.sqrt(variance / len(logs) + variance**2 / (2 * (len(logs) - 1)))
    reach = _t(len(logs), confidence) * spread
    return _lognormal_mean(logs) - reach, _lognormal_mean(logs) + reach


def _hettmansperger_sheather(data: np.ndarray, confidence: float) -> tuple[float, float]:
    """From between the k-th and the next smallest value to between the k-th and the next largest.

    The interval from the k-th smallest to the k-th largest covers the median with probability
    ``1 − 2 P[B < k]``, B binomial (n, ½): k is the last for which that is enough. Of what the next
    one lacks, the share ``(n − k) I / (k + (n − 2k) I)`` of the way is gone, I being the share by
    which the k-th covers too often.
    """
    values, n = np.sort(data), len(data)
    k, below = 0, 0  # `below` is 2ⁿ P[B < k], a whole number
    while 1 - 2 * (below + math.comb(n, k)) / 2**n >= confidence:
        below += math.comb(n, k)
        k += 1
    wide, narrow = (1 - 2 * count / 2**n for count in (below, below + math.comb(n, k)))
    spare = (wide - confidence) / (wide - narrow)
    inwards = (n - k) * spare / (k + (n - 2 * k) * spare)
    low = (1 - inwards) * values[k - 1] + inwards * values[k]
    high = (1 - inwards) * values[n - k] + inwards * values[n - k - 1]
    return float(low), float(high)


def _t(runs: int, confidence: float) -> float:
    return float(stdtrit(runs - 1, 0.5 + confidence / 2))


_METHODS: dict[str, tuple[Callable[..., float], Callable[..., tuple[float, float]]]] = {
    "mean": (_mean, _student),
    "median": (_median, _hettmansperger_sheather),
    "lognormal mean": (_lognormal_mean, _cox),
    "geometric mean": (_mean, _student),
    "median ratio": (_median, _hettmansperger_sheather),
}
