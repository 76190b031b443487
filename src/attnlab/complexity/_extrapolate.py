"""Scores at sizes that were not run, by a power law that must first pass a back-test."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity._back_test import BackTest, Falling, as_falling, back_test_of, trouble
from attnlab.complexity._curves import Failed, Statistic, number, percentiles, read_curves, span
from attnlab.complexity._needed import labelled
from attnlab.complexity._power_law import PowerLaws, fit_power_laws
from attnlab.stats import Interval

_NAN = float("nan")


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """The prediction of a power law for a size, or for a level, that was not measured.

    - ``outcome``: ``"extrapolated"``, or ``"cannot be extrapolated"`` for the given ``reason``;
      value and interval are then nan;
    - ``value``: the score at ``size``, or the number of samples for ``level`` (whichever was given);
    - ``limit``, ``scale``, ``rate``: score(n) = limit ± scale · n^(−rate), fitted to the seed
      statistic ``curve``;
    - ``back_test``: how well the first half of the sizes predicted the second; ``None`` if there
      were too few sizes.
    """

    outcome: Literal["extrapolated", "cannot be extrapolated"]
    reason: str
    value: float
    interval: Interval
    size: float | None
    level: float | None
    limit: float
    scale: float
    rate: float
    back_test: BackTest | None
    curve: xr.DataArray
    values: xr.DataArray = field(repr=False)

    def __str__(self) -> str:
        if self.outcome != "extrapolated" or self.back_test is None:
            return f"cannot be extrapolated: {self.reason}"
        largest, tested = float(self.curve["size"].values[-1]), self.back_test
        if self.size is not None:
            size, score = self.size, f"{self.value:.3g}"
        else:
            size, score = self.value, f"{self.level:g}"
        caution = ""
        if size / largest > tested.reach * 1.001:
            caution = f"; {size / largest:.3g}× the largest size"
            caution += f", tested only over {tested.reach:.3g}×"
        off = f"{tested.error:.0%}".replace("%", " %")
        sentence = f"{score} is expected with {number(size)} samples"
        return f"{sentence} ({span(self.interval)}; back-test off by {off}{caution})"


def extrapolate(
    errors: xr.DataArray,
    *,
    size: float | None = None,
    level: float | None = None,
    falling: bool = True,
    statistic: Statistic = "median",
    limit: float | None = None,
    best: float = 1.0,
    tolerance: float = 0.5,
    failed: Failed = "worst",
    confidence: float = 0.95,
    resamples: int = 500,
    seed: int = 0,
) -> Extrapolation:
    """Fit ``e(n) = c + a n^(−b)`` to the seed statistic; evaluate it at ``size``, or solve for ``level``.

    ``errors`` has dims (seed, size). A rising score (``falling=False``) is read as ``e = best −
    score``. ``limit`` is the score at n → ∞ if it is known (0 for an error without noise); otherwise
    c ≥ 0 is fitted. The fit minimises relative deviations. The interval is the percentile interval
    over resampled seeds: it covers chance, not misfit.

    Not extrapolated, with the reason: fewer than 7 sizes (5 if the limit is known); a curve that
    hardly falls, or that rises again beyond chance; a rate at the edge of [0.02, 5]; a level beyond
    the fitted limit; and a curve whose first half does not predict its second half to within
    ``tolerance`` (``back_test``; 0.5 is a factor of 1.5, usually over a range of 8 to 16 times).
    With a fitted limit this takes many seeds or little noise: pass the limit if it is known.

    >>> n = 2.0 ** np.arange(4, 12)
    >>> errors = xr.DataArray([8 / n] * 8, dims=("seed", "size"), coords={"size": n})
    >>> print(extrapolate(errors, level=0.001))
    0.001 is expected with 8,000 samples (95 % interval 8,000 to 8,000; back-test off by 0 %)
    """
    if (size is None) == (level is None):
        raise AttnlabError(
            f"size={size}, level={level}: expected exactly one of the two; the other is computed"
        )
    if size is not None and not size > 0:
        raise AttnlabError(f"size={size}: expected a number of samples > 0")
    curves = read_curves(errors, falling=falling, statistic=statistic, failed=failed)
    data = as_falling(curves, limit=limit, best=best, resamples=resamples, seed=seed)
    curve = labelled(curves, curves.over_seeds())

    def result(
        reason: str,
        value: float,
        interval: Interval | None,
        fit: PowerLaws | None,
        tested: BackTest | None,
    ):
        shown = _shown(fit, data) if fit is not None else (_NAN, _NAN, _NAN)
        return Extrapolation(
            "cannot be extrapolated" if reason else "extrapolated",
            reason,
            value,
            interval or Interval(low=_NAN, high=_NAN, estimate=_NAN, confidence=confidence),
            size,
            level,
            *shown,
            tested,
            curve,
            errors,
        )

    reason = trouble(data)
    if reason:
        return result(reason, _NAN, None, None, None)
    tested = back_test_of(data, tolerance=tolerance, confidence=confidence)
    centre = fit_power_laws(data.sizes, data.centre[None], data.floor)
    if not tested.passed:
        return result(tested.reason, _NAN, None, centre, tested)
    drawn = fit_power_laws(data.sizes, data.drawn, data.floor)
    value, interval = _read(data, centre, drawn, size, level, confidence)
    if centre.at_edge[0]:
        return result(
            f"its rate {centre.rate[0]:.2g} is that of no power law", _NAN, None, centre, tested
        )
    if math.isinf(value):
        at = f"{_shown(centre, data)[0]:.3g}"
        return result(
            f"the fitted curve levels off at {at}, short of {level:g}", _NAN, None, centre, tested
        )
    return result("", value, interval, centre, tested)


def _read(
    data: Falling,
    centre: PowerLaws,
    drawn: PowerLaws,
    size: float | None,
    level: float | None,
    confidence: float,
) -> tuple[float, Interval]:
    """The score at a size or the size for a level, of the fit and of its resamples."""
    if size is not None:
        at = np.array([float(size)])
        value, many = float(data.score(centre.at(at))[0, 0]), data.score(drawn.at(at))[:, 0]
        return value, percentiles(many, many, value, confidence)
    goal = float(data.score(level))
    value, many = float(centre.size_for(goal)[0]), drawn.size_for(goal)
    return value, percentiles(many, many, value, confidence)


def _shown(fit: PowerLaws, data: Falling) -> tuple[float, float, float]:
    """Limit, scale and rate in the score's own units, for n itself."""
    rate = float(fit.rate[0])
    return float(data.score(fit.floor)[0]), float(fit.scale[0] * fit.unit**rate), rate


def back_test(
    errors: xr.DataArray,
    *,
    falling: bool = True,
    statistic: Statistic = "median",
    limit: float | None = None,
    best: float = 1.0,
    tolerance: float = 0.5,
    failed: Failed = "worst",
    confidence: float = 0.95,
    resamples: int = 500,
    seed: int = 0,
) -> BackTest:
    """Fit the first half of the sizes (rounded up), and compare its prediction with the second half.

    Arguments as in ``extrapolate``.

    >>> n = 2.0 ** np.arange(4, 12)
    >>> errors = xr.DataArray([8 / n] * 8, dims=("seed", "size"), coords={"size": n})
    >>> print(back_test(errors))
    the first 4 sizes predict the next 4 to within 0 % (4 of 4 within their intervals)
    """
    curves = read_curves(errors, falling=falling, statistic=statistic, failed=failed)
    data = as_falling(curves, limit=limit, best=best, resamples=resamples, seed=seed)
    reason = trouble(data, shape=False)
    if reason:
        raise AttnlabError(f"this curve cannot be back-tested: {reason}")
    return back_test_of(data, tolerance=tolerance, confidence=confidence)
