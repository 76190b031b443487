"""Intervals by resampling whole runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy.stats import bootstrap

from attnlab._errors import AttnlabError
from attnlab.stats._interval import Interval, check_level

Statistic = Callable[..., Any]
Method = Literal["BCa", "percentile"]
MIN_RUNS = 8


def bootstrap_interval(
    values: Any, statistic: Statistic = np.median, *, seed: int, level: float = 0.95, resamples: int = 2000,
    method: Method = "BCa",
) -> Interval:  # fmt: skip
    """The interval of ``statistic`` over runs, by resampling runs with replacement (Efron 1987).

    ``values`` has shape (runs, …): one interval for every further index. ``statistic`` reduces the first axis;
    NumPy's take ``axis`` and are computed all at once, a plain function of one list works too. ``"BCa"`` corrects
    bias and skewness; where it is undefined (all values equal) the percentile interval takes its place. At least
    8 runs without nan; with so few a 95 % interval covers in truth about 87 to 92 %, with 32 about 93 to 95 %.

    >>> bootstrap_interval([2.0] * 8, np.mean, seed=0)
    Interval(low=2.0, high=2.0, estimate=2.0, level=0.95)
    """
    data = _runs(values, "values")
    return _interval((data,), statistic, seed=seed, level=level, resamples=resamples, method=method)


def paired_ratio(
    a: Any, b: Any, *, seed: int, statistic: Statistic = np.median, level: float = 0.95, resamples: int = 2000,
    method: Method = "BCa",
) -> Interval:  # fmt: skip
    """The interval of ``statistic(a) / statistic(b)`` where a[k] and b[k] belong to the same seed.

    Pairs are resampled together, so that what a seed does to both cancels. Both have shape (runs, …).

    >>> b = np.arange(1.0, 11.0)
    >>> paired_ratio(3 * b, b, seed=0)
    Interval(low=3.0, high=3.0, estimate=3.0, level=0.95)
    """
    first, second = _runs(a, "a"), _runs(b, "b")
    if first.shape != second.shape:
        raise AttnlabError(f"a has shape {first.shape} and b {second.shape}: expected the same runs in both, in order")
    reduce = _with_axis(statistic)
    sign = np.sign(reduce(second, axis=0))

    def ratio(a: np.ndarray, b: np.ndarray, axis: int = 0) -> np.ndarray:
        below = np.asarray(reduce(b, axis=axis))
        # The ratio's distribution is meaningless if the denominator can vanish; so is any interval taken from it.
        expected = sign if below.ndim == sign.ndim else sign[..., None]
        if (np.sign(below) != expected).any() or (sign == 0).any():
            raise AttnlabError(
                "the denominator is zero or changes its sign between resamples, so that the ratio has no interval: "
                "compare differences instead, or add runs"
            )
        return np.asarray(reduce(a, axis=axis)) / below

    return _interval((first, second), ratio, seed=seed, level=level, resamples=resamples, method=method)


def _runs(values: Any, name: str) -> np.ndarray:
    """Values with runs on the first axis, checked."""
    data = np.asarray(values, np.float64)
    if data.ndim == 0 or len(data) < MIN_RUNS:
        got = 1 if data.ndim == 0 else len(data)
        raise AttnlabError(f"{name} holds {got} runs: expected at least {MIN_RUNS} for an interval; add seeds")
    if not np.isfinite(data).all():
        raise AttnlabError(
            f"{name} holds {int((~np.isfinite(data)).sum())} values that are nan or infinite: "
            "expected finite numbers; leave failed runs out first, and count them"
        )
    return data


def _with_axis(statistic: Statistic) -> Statistic:
    """A statistic that takes ``axis``; one that does not is applied list by list."""
    try:
        statistic(np.zeros((2, 2)), axis=-1)
    except TypeError:
        return lambda data, axis=0: np.apply_along_axis(statistic, axis, data)
    return statistic


def _interval(
    data: tuple[np.ndarray, ...], statistic: Statistic, *, seed: int, level: float, resamples: int, method: Method
) -> Interval:
    check_level(level)
    if resamples < 100:
        raise AttnlabError(f"resamples={resamples}: expected at least 100, commonly 2000")
    reduce = _with_axis(statistic) if len(data) == 1 else statistic
    estimate = np.asarray(reduce(*data, axis=0), np.float64)

    def bounds(how: Method) -> tuple[np.ndarray, np.ndarray]:
        with warnings.catch_warnings():
            # All values equal: BCa is undefined and says so; the percentile interval below takes its place.
            warnings.simplefilter("ignore")
            ends = bootstrap(
                data, reduce, n_resamples=resamples, confidence_level=level, method=how, axis=0, vectorized=True,
                paired=len(data) > 1, rng=np.random.default_rng(seed), batch=max(1, 10_000_000 // data[0].size),
            ).confidence_interval  # fmt: skip
        return np.asarray(ends.low, np.float64), np.asarray(ends.high, np.float64)

    low, high = bounds(method)
    undefined = ~(np.isfinite(low) & np.isfinite(high))
    if undefined.any():
        plain_low, plain_high = bounds("percentile")
        low, high = np.where(undefined, plain_low, low), np.where(undefined, plain_high, high)
    if estimate.ndim == 0:
        return Interval(low=float(low), high=float(high), estimate=float(estimate), level=level)
    return Interval(low=low, high=high, estimate=estimate, level=level)
