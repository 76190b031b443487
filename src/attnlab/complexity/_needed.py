"""How many samples a model needs for a level (docs/theory.md#b2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import xarray as xr

from attnlab._html import card, sparkline
from attnlab.complexity._curves import (
    RESAMPLES,
    Curves,
    Failed,
    Needed,
    Outcome,
    Statistic,
    number,
    percentiles,
    picks_of,
    read_curves,
    span,
)
from attnlab.stats import MIN_RUNS, Interval, share_interval


@dataclass(frozen=True, eq=False)
class NeededSamples:
    """The number of training samples at which a curve first meets a level.

    - ``outcome``: ``"crossed"``; ``"not reached"`` on this grid; ``"already met"`` at the smallest
      size, so that ``value`` is only an upper bound;
    - ``value``: the number n (the smallest size if already met, nan if not reached);
    - ``interval``: of n, over seeds; ``low`` is 0 if it lies below the smallest size, ``high`` is
      infinite if it lies beyond the largest; (0, inf) for fewer than 8 seeds;
    - ``lasting``: whether the level, once met, is met at every larger size, too;
    - ``per_seed``: each seed's own n, dims (seed,): inf if it does not reach the level, the smallest
      size if it has already met it; ``share``: of seeds that reach it by themselves, with its exact
      interval;
    - ``curve``: the seed statistic, dims (size,); ``missing``: the number of fits without a score.
    """

    outcome: Outcome
    value: float
    interval: Interval
    level: float
    lasting: bool
    share: Interval
    per_seed: xr.DataArray
    curve: xr.DataArray
    missing: int

    @property
    def smallest(self) -> float:
        """The smallest size of the grid."""
        return float(self.curve["size"].values[0])

    @property
    def largest(self) -> float:
        """The largest size of the grid."""
        return float(self.curve["size"].values[-1])

    def __str__(self) -> str:
        seeds = self.per_seed.size
        reach = f"{int(np.isfinite(self.per_seed.values).sum())} of {seeds} seeds reach it by themselves"
        beyond = f"beyond {number(self.largest)}"
        known = (
            span(self.interval, beyond) if seeds >= MIN_RUNS else f"no interval from {seeds} seeds"
        )
        if self.outcome == "crossed":
            sentence = (
                f"{self.level:g} is reached with {number(self.value)} samples ({known}; {reach})"
            )
        elif self.outcome == "already met":
            sentence = f"{self.level:g} is already met with the fewest, {number(self.value)} samples ({reach})"
        else:
            from_ = self.interval.low if seeds >= MIN_RUNS else 0.0
            start = f"; {self.interval.confidence:.0%} interval from {number(from_)}".replace(
                "%", " %"
            )
            start = start if 0 < from_ < self.largest else ""
            sentence = f"{self.level:g} is not reached with up to {number(self.largest)} samples ({reach}{start})"
        if not self.lasting:
            sentence += ", and left again at a larger size"
        return sentence + (f"; {self.missing} fits have no score" if self.missing else "")

    def _repr_html_(self) -> str:
        sizes = self.curve["size"].values.astype(float).tolist()
        name = str(self.curve.name)
        picture = sparkline(
            [(sizes, self.curve.values.tolist())],
            label=f"{name} over {self.per_seed.size} seeds against samples, and the level",
            level=self.level,
            log_x=True,
        )
        rows = {
            "curve": f"{name} over {self.per_seed.size} seeds, {number(sizes[0])} to "
            f"{number(sizes[-1])} samples; dashed: the level",
            "seeds that reach it": self.share,
        }
        return card("Needed samples", rows, picture, f"{self}.")


def needed_samples(
    errors: xr.DataArray,
    level: float,
    *,
    falling: bool = True,
    statistic: Statistic = "median",
    failed: Failed = "worst",
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> NeededSamples:
    """n_ε: where the seed statistic of ``errors`` first meets ``level``, interpolated in log n.

    ``errors`` has dims (seed, size). ``falling=False`` for a rising score, such as accuracy.
    ``statistic`` over seeds: the median for regression errors, the mean for accuracies. The
    interval is the percentile interval over resampled seeds, with Student's tails for a mean. A
    resample that does not reach the level counts as infinite, one that has already met it as zero,
    so neither end is too narrow. The interval covers chance in data and training, not the
    interpolation between sizes: on a grid of factor 2 the n of an error that falls as 1/n is up to
    about 6 % too large.

    A nan is a failed fit: ``failed="worst"`` counts it as not having met the level (nor does the
    mean at its size), ``"omit"`` leaves it out; both count it in ``missing``. A size without any
    score is not part of the grid.

    >>> errors = xr.DataArray([[1.0, 0.4, 0.2]] * 8, dims=("seed", "size"), coords={"size": [10, 100, 1000]})
    >>> print(needed_samples(errors, 0.3))
    0.3 is reached with 316 samples (95 % interval 316 to 316; 8 of 8 seeds reach it by themselves)
    >>> needed_samples(errors, 0.1).outcome, needed_samples(errors, 1.0).outcome
    ('not reached', 'already met')
    """
    curves = read_curves(errors, falling=falling, statistic=statistic, failed=failed)
    picks = picks_of(len(curves.values), resamples, seed)
    return needed_of(curves, level, curves.needed(curves.over_seeds(picks), level), confidence)


def needed_of(curves: Curves, level: float, drawn: Needed, confidence: float) -> NeededSamples:
    """The record of one model, from the needed samples of its resamples."""
    centre = curves.over_seeds()
    found, own = curves.needed(centre[None], level), curves.needed(curves.values, level)
    value = float(found.high[0]) if np.isfinite(found.high[0]) else float("nan")
    interval = percentiles(drawn.low, drawn.high, value, confidence, mean_of=curves.mean_of)
    if len(curves.values) < MIN_RUNS:
        interval = Interval(low=0.0, high=float("inf"), estimate=value, confidence=confidence)
    return NeededSamples(
        outcome=cast(Outcome, str(found.kind[0])),
        value=value,
        interval=interval,
        level=level,
        lasting=_lasting(curves, centre, level),
        share=share_interval(int(np.isfinite(own.high).sum()), len(own.high)),
        per_seed=xr.DataArray(own.high, dims="seed", coords={"seed": curves.seeds}, name="needed"),
        curve=labelled(curves, centre),
        missing=curves.missing,
    )


def labelled(curves: Curves, centre: np.ndarray) -> xr.DataArray:
    """The seed statistic in the score's own sign, with its sizes."""
    values = -centre if curves.turned else centre
    return xr.DataArray(values, dims="size", coords={"size": curves.sizes}, name=curves.statistic)


def _lasting(curves: Curves, centre: np.ndarray, level: float) -> bool:
    met = centre[~np.isnan(centre)] <= (-level if curves.turned else level)
    return bool(met[np.argmax(met) :].all()) if met.any() else True
