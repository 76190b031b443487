"""Back-tests: does a power law fitted to the first half of a curve predict the second half?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity._curves import Curves, picks_of
from attnlab.complexity._power_law import fit_power_laws
from attnlab.stats import MIN_RUNS, Interval

_LEAST_FALL = 1.1
_SURE = 0.995


@dataclass(frozen=True, eq=False)
class BackTest:
    """How well the first half of the sizes predicted the second.

    - ``predicted``, ``measured``: scores, dims (size,), of the held-out sizes;
    - ``ratio``: predicted over measured *error*, with its interval over seeds (resampled together);
    - ``error``: the largest ``max(ratio, 1 / ratio) − 1``; ``coverage``: the share of sizes whose
      interval of the ratio contains 1; ``reach``: the largest held-out size over the largest fitted
      one;
    - ``passed``: whether ``error`` is at most the tolerance; ``reason``: why not.
    """

    passed: bool
    reason: str
    error: float
    coverage: float
    reach: float
    fitted: tuple[float, ...]
    predicted: xr.DataArray
    measured: xr.DataArray
    ratio: Interval

    def __str__(self) -> str:
        held, off = self.measured.size, f"{self.error:.0%}".replace("%", " %")
        inside = f"{round(self.coverage * held)} of {held} within their intervals"
        return (
            f"the first {len(self.fitted)} sizes predict the next {held} to within {off} ({inside})"
        )


@dataclass(frozen=True, eq=False)
class Falling:
    """A curve as an error that falls to ``floor`` (``None``: to be fitted), with its resamples.

    ``centre`` has shape (sizes,), ``drawn`` (resamples, sizes). For a rising score, error = ``best``
    − score.
    """

    sizes: np.ndarray
    centre: np.ndarray
    drawn: np.ndarray
    floor: float | None
    turned: bool
    best: float
    seeds: int

    def score(self, error: Any) -> Any:
        """The score of an error, or the error of a score: the map is its own inverse."""
        return self.best - error if self.turned else error


def as_falling(
    curves: Curves, *, limit: float | None, best: float, resamples: int, seed: int
) -> Falling:
    """The error curve of scores, with resamples; sizes without a finite statistic are left out."""
    centre = curves.over_seeds()
    drawn = curves.over_seeds(picks_of(len(curves.values), resamples, seed))
    lift = best if curves.turned else 0.0
    floor = limit if limit is None or not curves.turned else best - limit
    if floor is not None and floor < 0:
        raise AttnlabError(
            f"limit={limit}: expected at least 0 for errors, at most best={best:g} for rising "
            "scores"
        )
    keep = np.isfinite(centre)
    drawn = drawn[np.isfinite(drawn[:, keep]).all(axis=1)][:, keep]
    return Falling(
        curves.sizes[keep],
        lift + centre[keep],
        lift + drawn,
        floor,
        curves.turned,
        best,
        len(curves.values),
    )


def trouble(data: Falling, *, shape: bool = True) -> str:
    """Why a curve cannot be extrapolated, before anything is fitted; empty if it can."""
    least = 7 if data.floor is None else 5
    if len(data.sizes) < least:
        known = "" if data.floor is None else " with a known limit"
        return f"it has {len(data.sizes)} sizes, at least {least} are needed{known}; add sizes"
    if data.seeds < MIN_RUNS:
        return f"it has {data.seeds} seeds, at least {MIN_RUNS} are needed; add seeds"
    lowest = min(data.centre.min(), data.drawn.min()) if len(data.drawn) else -1.0
    if lowest <= (data.floor or 0.0):
        return "its error is at or below the limit of a power law at some size; use smaller sizes, or another limit"
    return _shape_trouble(data) if shape else ""


def _shape_trouble(data: Falling) -> str:
    """Why the shape forbids extrapolation: flat, or not monotone beyond chance."""
    log = np.log(data.centre)
    rises = log[None, :] - log[:, None]
    rises[np.tril_indices(len(log))] = -np.inf  # only from smaller to larger sizes
    low, high = np.unravel_index(int(np.argmax(rises)), rises.shape)
    sure = np.mean(data.drawn[:, high] > data.drawn[:, low])
    if rises[low, high] > math.log(_LEAST_FALL) and sure >= _SURE:
        return (
            f"the curve is not monotone: the error grows by {math.expm1(rises[low, high]):.0%} ".replace(
                "%", " %"
            )
            + f"from {data.sizes[low]:g} to {data.sizes[high]:g} samples"
        )
    first, last = data.drawn[:, 0], data.drawn[:, -1]
    if data.centre[0] < _LEAST_FALL * data.centre[-1] or np.quantile(first / last, 0.025) <= 1:
        return "the curve is flat: it does not fall by a tenth, or not beyond chance, over the measured sizes"
    return ""


def back_test_of(data: Falling, *, tolerance: float, confidence: float) -> BackTest:
    """Fit the first half, rounded up, of a curve without ``trouble``; compare with the rest."""
    half = (len(data.sizes) + 1) // 2
    held = data.sizes[half:]
    centre = fit_power_laws(data.sizes[:half], data.centre[None, :half], data.floor).at(held)[0]
    drawn = fit_power_laws(data.sizes[:half], data.drawn[:, :half], data.floor).at(held)
    ratio, tail = centre / data.centre[half:], (1 - confidence) / 2
    low, high = np.quantile(drawn / data.drawn[:, half:], [tail, 1 - tail], axis=0)
    # For curves that a power law fits exactly, the only spread is rounding.
    covered = (low <= 1 + 1e-6) & (high >= 1 - 1e-6)
    error = float(np.exp(np.abs(np.log(ratio)).max()) - 1)
    passed = error <= tolerance
    chance = (
        "within chance: add seeds, or give the limit"
        if covered.all()
        else "beyond chance: it is no power law"
    )
    reason = (
        f"the first {half} sizes predict the others only to within {error:.0%}, {chance}".replace(
            "%", " %", 1
        )
    )

    def label(values: np.ndarray) -> xr.DataArray:
        return xr.DataArray(data.score(values), dims="size", coords={"size": held})

    return BackTest(
        passed=passed,
        reason="" if passed else reason,
        error=error,
        coverage=float(covered.mean()),
        reach=float(held[-1] / data.sizes[half - 1]),
        fitted=tuple(data.sizes[:half].tolist()),
        predicted=label(centre),
        measured=label(data.centre[half:]),
        ratio=Interval(low=low, high=high, estimate=ratio, confidence=confidence),
    )
