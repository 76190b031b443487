"""Shared by all measurements of sample complexity: curves over seeds, resamples, ranges off a grid.

Internally every curve falls: a rising score is negated when it is read (``turned``).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr
from scipy.special import ndtr, stdtrit

from attnlab._errors import AttnlabError
from attnlab.stats import Interval, check_confidence, crossings

Statistic = Literal["median", "mean"]
Failed = Literal["worst", "omit"]
Outcome = Literal["crossed", "not reached", "already met"]
Kind = Literal["exact", "at least", "at most", "unknown"]

RESAMPLES = 20_000  # enough that no verdict depends on the seed of the resampling
_BATCH = 2_000_000


@dataclass(frozen=True, eq=False)
class Curves:
    """The scores of one model as falling curves: ``values`` (seeds, sizes), increasing ``sizes``.

    ``turned``: the scores rise and ``values`` are their negatives. ``missing``: the number of fits
    without a score, which are +inf in ``values`` (``failed="worst"``) or nan (``"omit"``).
    """

    sizes: np.ndarray
    values: np.ndarray
    seeds: np.ndarray
    statistic: Statistic
    turned: bool
    missing: int

    @property
    def mean_of(self) -> int | None:
        """The number of seeds of a mean; ``None`` for a median."""
        return len(self.values) if self.statistic == "mean" else None

    def over_seeds(self, picks: np.ndarray | None = None) -> np.ndarray:
        """The statistic over seeds, shape (sizes,).

        With ``picks`` of shape (resamples, seeds): shape (resamples, sizes).
        """
        if picks is None:
            return self._reduce(self.values[None])[0]
        batch = max(1, _BATCH // self.values.size)
        parts = [
            self._reduce(self.values[picks[k : k + batch]]) for k in range(0, len(picks), batch)
        ]
        return np.concatenate(parts)

    def _reduce(self, values: np.ndarray) -> np.ndarray:
        if not np.isnan(values).any():
            reduce = np.median if self.statistic == "median" else np.mean
            return reduce(values, axis=1)
        with warnings.catch_warnings():
            # NumPy warns if no picked seed has a fit at some size; nan is the right answer there.
            warnings.simplefilter("ignore", RuntimeWarning)
            reduce = np.nanmedian if self.statistic == "median" else np.nanmean
            return reduce(values, axis=1)

    def needed(self, curves: np.ndarray, level: float) -> Needed:
        """Where each of ``curves``, shape (many, sizes), first meets the level.

        The level has the sign of the score.
        """
        blank = np.isnan(curves).all(axis=1, keepdims=True)
        rows = np.where(blank, np.inf, curves)
        found = crossings(self.sizes, rows, -level if self.turned else level, rising=False)
        low = np.select(
            [found.kind == "crossed", found.kind == "already met"],
            [found.value, 0.0],
            self.sizes[-1],
        )
        return Needed(found.kind, low, np.where(found.kind == "not reached", np.inf, found.value))


@dataclass(frozen=True, eq=False)
class Needed:
    """The range of needed samples that a grid allows; ``low == high`` where a curve crossed.

    Already met at the smallest size n₁: [0, n₁]; not reached at the largest n_L: [n_L, ∞).
    """

    kind: np.ndarray
    low: np.ndarray
    high: np.ndarray


def read_curves(
    errors: xr.DataArray, *, falling: bool, statistic: Statistic, failed: Failed
) -> Curves:
    """A checked array with dims (seed, size), sorted by size, without sizes that were not run."""
    check_choice("statistic", statistic, ("median", "mean"))
    check_choice("failed", failed, ("worst", "omit"))
    if not isinstance(errors, xr.DataArray) or set(errors.dims) != {"seed", "size"}:
        got = tuple(errors.dims) if isinstance(errors, xr.DataArray) else type(errors).__name__
        raise AttnlabError(
            f"scores with dims {got}: expected a labelled array with dims ('seed', 'size')"
        )
    if "size" not in errors.coords:
        raise AttnlabError(
            "scores without sizes: expected a coordinate 'size' with the numbers of training "
            "samples"
        )
    sizes, values = (
        np.asarray(errors["size"].values, np.float64),
        np.asarray(errors.values, np.float64),
    )
    values = values if errors.dims[0] == "seed" else values.T
    order = np.argsort(sizes)
    order = order[~np.isnan(values[:, order]).all(axis=0)]
    sizes, values = sizes[order], values[:, order]
    if values.size == 0:
        raise AttnlabError(
            "no fit has a score: expected at least one that is not nan; check why the fits failed"
        )
    if sizes[0] <= 0 or (np.diff(sizes) <= 0).any():
        raise AttnlabError(
            f"sizes {sizes.tolist()}: expected positive sizes without repeats; give each size once"
        )
    missing = int(np.isnan(values).sum())
    values = values if falling else -values
    if failed == "worst":
        values = np.where(np.isnan(values), np.inf, values)
    seeds = errors["seed"].values if "seed" in errors.coords else np.arange(len(values))
    return Curves(sizes, values, np.asarray(seeds), statistic, not falling, missing)


def check_choice(name: str, got: str, choices: tuple[str, ...]) -> None:
    """Raise an error for a value that is not among the choices."""
    if got not in choices:
        raise AttnlabError(f"{name}={got!r}: expected one of {', '.join(map(repr, choices))}")


def picks_of(seeds: int, resamples: int, seed: int) -> np.ndarray:
    """The seeds of each resample, drawn with replacement: shape (resamples, seeds)."""
    if resamples < 100:
        raise AttnlabError(f"resamples={resamples}: expected at least 100, commonly 20000")
    return np.random.default_rng(seed).integers(0, seeds, (resamples, seeds))


def percentiles(
    low: np.ndarray,
    high: np.ndarray,
    estimate: float,
    confidence: float,
    *,
    mean_of: int | None = None,
) -> Interval:
    """Percentile interval of a quantity that lies in [low, high] in every resample.

    Its ends may be infinite. ``mean_of``: the curves are means over this many seeds. A resampled
    mean varies too little, by √((n − 1)/n), and its normal tails ignore that the spread is
    estimated: the tails are then ``Φ(−√(n/(n − 1)) t)`` (Hesterberg 2015), with Student's t for
    n − 1.
    """
    check_confidence(confidence)
    tail = (1 - confidence) / 2
    if mean_of is not None and mean_of > 1:
        tail = float(ndtr(-((mean_of / (mean_of - 1)) ** 0.5) * stdtrit(mean_of - 1, 1 - tail)))
    # The outer neighbours, not an interpolation: it would be meaningless next to an infinite value.
    ends = np.quantile(low, tail, method="lower"), np.quantile(high, 1 - tail, method="higher")
    return Interval(
        low=float(ends[0]), high=float(ends[1]), estimate=estimate, confidence=confidence
    )


def kind_of(low: float, high: float, least: float = 0.0) -> Kind:
    """Which kind of statement [low, high] allows on a quantity that cannot be below ``least``."""
    if low == high:
        return "exact"
    if low > least:
        return "at least"
    return "at most" if high < np.inf else "unknown"


def bound_of(low: float, high: float, least: float = 0.0) -> float:
    """The number of the statement of ``kind_of``: the value, the bound, or nan; never infinite."""
    bounds = {"exact": low, "at least": low, "at most": high, "unknown": float("nan")}
    return bounds[kind_of(low, high, least)]


def number(value: float) -> str:
    """A number for a sentence: 23.4, 148, 4,096."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def span(interval: Interval, beyond: str = "any number") -> str:
    """An interval for a sentence: ``95 % interval 120 to 180``."""
    high = number(interval.high) if np.isfinite(interval.high) else beyond
    low = number(interval.low) if np.isfinite(interval.low) else "any number"
    return f"{interval.confidence:.0%} interval {low} to {high}".replace("%", " %", 1)
