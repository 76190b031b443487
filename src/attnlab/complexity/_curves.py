"""What all measurements of this room share: curves over seeds, their resamples, and what a grid can
say of a crossing.

Inside this room every curve falls: a score that rises is turned upside down when it is read.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr
from scipy.special import ndtr, stdtrit

from attnlab._errors import AttnlabError
from attnlab.stats import Interval, crossings

Statistic = Literal["median", "mean"]
Failed = Literal["worst", "omit"]
Outcome = Literal["crossed", "not reached", "already met"]
Kind = Literal["exact", "at least", "at most", "unknown"]

RESAMPLES = 20_000  # so many that no verdict depends on the seed of the resampling
_BATCH = 2_000_000


@dataclass(frozen=True, eq=False)
class Curves:
    """The scores of one model, as curves that fall: ``values`` has shape (seeds, sizes), ``sizes``
    increases.

    ``turned`` says that the scores rise and ``values`` are their negatives; ``missing`` counts the
    fits without a score, which are +inf in ``values`` (``failed="worst"``) or nan (``"omit"``).
    """

    sizes: np.ndarray
    values: np.ndarray
    seeds: np.ndarray
    statistic: Statistic
    turned: bool
    missing: int

    @property
    def mean_of(self) -> int | None:
        """Over how many seeds a mean is taken; ``None`` for a median."""
        return len(self.values) if self.statistic == "mean" else None

    def over_seeds(self, picks: np.ndarray | None = None) -> np.ndarray:
        """The statistic over seeds: shape (sizes,), or (resamples, sizes) for ``picks`` of shape
        (resamples, seeds).
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
            return (
                np.median(values, axis=1) if self.statistic == "median" else np.mean(values, axis=1)
            )
        with warnings.catch_warnings():
            # Every picked seed may lack a fit at one size: the answer is nan, which is what the
            # warning says.
            warnings.simplefilter("ignore", RuntimeWarning)
            return (
                np.nanmedian(values, axis=1)
                if self.statistic == "median"
                else np.nanmean(values, axis=1)
            )

    def needed(self, curves: np.ndarray, level: float) -> Needed:
        """Where each of ``curves``, shape (many, sizes), first meets the level (in the score's own
        sign).
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
    """What a grid says of needed samples: between ``low`` and ``high``, which are equal where a
    curve crossed.

    Already met at the smallest size n₁: [0, n₁]; not reached at the largest n_L: [n_L, ∞).
    """

    kind: np.ndarray
    low: np.ndarray
    high: np.ndarray


def read_curves(
    errors: xr.DataArray, *, falling: bool, statistic: Statistic, failed: Failed
) -> Curves:
    """A labelled array with dims (seed, size), checked, sorted by size; sizes that nobody ran are
    left out.
    """
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
            "no fit has a score: expected at least one that is not nan; look at why the fits failed"
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
    """Refuse a word that is none of the choices."""
    if got not in choices:
        raise AttnlabError(f"{name}={got!r}: expected one of {', '.join(map(repr, choices))}")


def picks_of(seeds: int, resamples: int, seed: int) -> np.ndarray:
    """Which seeds each resample takes, with replacement: shape (resamples, seeds)."""
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
    """Percentile interval of a quantity known only to lie in [low, high] in every resample; its
    ends may be infinite.

    ``mean_of``: the curves are means over so many seeds. A resampled mean varies by √((n − 1)/n)
    too little, and by its normal tails it forgets that the spread is estimated too: the tails are
    then taken at ``Φ(−√(n/(n − 1)) t)`` (Hesterberg 2015), with Student's t for n − 1. The outer
    neighbours are taken, not a blend: a blend with infinity says nothing.
    """
    if not 0 < confidence < 1:
        raise AttnlabError(
            f"confidence={confidence}: expected a number between 0 and 1, such as 0.95"
        )
    tail = (1 - confidence) / 2
    if mean_of is not None and mean_of > 1:
        tail = float(ndtr(-((mean_of / (mean_of - 1)) ** 0.5) * stdtrit(mean_of - 1, 1 - tail)))
    ends = np.quantile(low, tail, method="lower"), np.quantile(high, 1 - tail, method="higher")
    return Interval(
        low=float(ends[0]), high=float(ends[1]), estimate=estimate, confidence=confidence
    )


def kind_of(low: float, high: float, least: float = 0.0) -> Kind:
    """What [low, high] says of a quantity that is at least ``least`` by nature."""
    if low == high:
        return "exact"
    if low > least:
        return "at least"
    return "at most" if high < np.inf else "unknown"


def bound_of(low: float, high: float, least: float = 0.0) -> float:
    """The number that belongs to ``kind_of``: the value, the bound, or nan. Never infinite."""
    return {"exact": low, "at least": low, "at most": high, "unknown": float("nan")}[
        kind_of(low, high, least)
    ]


def number(value: float) -> str:
    """A number for a sentence: 23.4, 148, 4,096."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def span(interval: Interval, beyond: str = "any number") -> str:
    """An interval for a sentence: ``95 % interval 120 to 180``."""
    high = number(interval.high) if np.isfinite(interval.high) else beyond
    low = number(interval.low) if np.isfinite(interval.low) else "any number"
    return f"{interval.confidence:.0%} interval {low} to {high}".replace("%", " %", 1)
