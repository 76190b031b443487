"""Ratio of the samples that two models need, over paired seeds (docs/theory.md#b2)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity._curves import (
    RESAMPLES,
    Curves,
    Failed,
    Kind,
    Needed,
    Statistic,
    bound_of,
    kind_of,
    number,
    percentiles,
    picks_of,
    read_curves,
    span,
)
from attnlab.complexity._needed import NeededSamples, needed_of
from attnlab.stats import MIN_RUNS, Interval, more_runs

Verdict = Literal["saves", "no advantage", "costs", "inconclusive"]
WORTHWHILE = 1.25


@dataclass(frozen=True, eq=False)
class SampleRatio:
    """``needed(baseline) / needed(other)`` at one level: above 1 if the other model saves samples.

    - ``kind`` of ``value``: ``"exact"``; ``"at least"`` or ``"at most"`` if one model has not
      reached the level, or had already met it, on its grid; ``"unknown"`` (value nan) if the grids
      do not bound it. Never infinite;
    - ``interval``: over paired seeds; its ends may be 0 or infinite where grids end;
    - ``verdict``: ``"saves"``: the whole interval lies above 1. ``"costs"``: it lies below 1. ``"no
      advantage"``: it contains 1 and excludes a worthwhile saving (ratio ≥ ``worthwhile``).
      ``"inconclusive"``: it contains both 1 and a worthwhile saving, because it is wide or because
      a grid ends;
    - ``more_seeds``: for an inconclusive ratio, about how many further seeds would decide it with
      80 % power; ``None`` if seeds do not help, because the level lies outside a grid;
    - ``baseline``, ``other``: each model's needed samples; ``per_seed``: the ratio for each seed,
      dims (seed,), nan if one of the two is only bounded.
    """

    kind: Kind
    value: float
    interval: Interval
    verdict: Verdict
    more_seeds: int | None
    worthwhile: float
    baseline: NeededSamples
    other: NeededSamples
    per_seed: xr.DataArray

    @property
    def advantage(self) -> bool:
        """Whether the other model needs fewer samples: the whole interval lies above 1."""
        return self.verdict == "saves"

    def __str__(self) -> str:
        bound = f"{self.kind} " if self.kind in ("at least", "at most") else ""
        value = "unknown" if self.kind == "unknown" else f"{bound}{number(self.value)}"
        return (
            f"{_words(self)} (ratio {value}, {span(self.interval)}, level {self.baseline.level:g})"
        )


def sample_ratio(
    baseline: xr.DataArray,
    other: xr.DataArray,
    level: float,
    *,
    falling: bool = True,
    statistic: Statistic = "median",
    failed: Failed = "worst",
    worthwhile: float = WORTHWHILE,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> SampleRatio:
    """The ratio of two models' ``needed_samples``, with its interval.

    Both have dims (seed, size) and the *same seeds*. Seeds are resampled for both models together,
    so common effects of a seed's data cancel. In every resample each model's n is a number or, off
    its grid, a range ([0, n₁] if already met, [n_L, ∞) if not reached); the ratio then has the range
    ``[n_low / m_high, n_high / m_low]``. The interval's low end is the low percentile of the low
    ends, its high end the high percentile of the high ends. Identical curves have the ratio 1,
    reached or not. The two grids of sizes may differ.

    ``more_seeds`` would exclude either 1 or ``worthwhile`` with a probability of about 80 %
    (``more_runs``).

    >>> errors = xr.DataArray([[1.0, 0.4, 0.2]] * 8, dims=("seed", "size"), coords={"size": [10, 100, 1000]})
    >>> print(sample_ratio(errors, errors.assign_coords(size=[5, 50, 500]), 0.3))
    saves 50 % of the samples (ratio 2, 95 % interval 2 to 2, level 0.3)
    >>> sample_ratio(errors, errors, 0.3).verdict
    'no advantage'
    """
    if not worthwhile > 1:
        raise AttnlabError(f"worthwhile={worthwhile}: expected a ratio above 1, such as 1.25")
    baseline, other = _paired(baseline, other)
    first = read_curves(baseline, falling=falling, statistic=statistic, failed=failed)
    second = read_curves(other, falling=falling, statistic=statistic, failed=failed)
    seeds, same = len(first.values), _same(first, second)
    picks = picks_of(seeds, resamples, seed)
    needs = [each.needed(each.over_seeds(picks), level) for each in (first, second)]
    low, high = _range(
        first.needed(first.over_seeds()[None], level),
        second.needed(second.over_seeds()[None], level),
    )
    drawn = _range(*needs)
    if same:
        low, high, drawn = np.ones(1), np.ones(1), (np.ones(resamples), np.ones(resamples))
    value, kind = bound_of(low[0], high[0]), kind_of(low[0], high[0])
    interval = percentiles(*drawn, value, confidence, mean_of=first.mean_of)
    if seeds < MIN_RUNS and not same:
        interval = Interval(low=0.0, high=math.inf, estimate=value, confidence=confidence)
    verdict = _verdict(interval, worthwhile)
    more = _more_seeds(kind, interval, seeds, worthwhile) if verdict == "inconclusive" else None
    return SampleRatio(
        kind=kind,
        value=value,
        interval=interval,
        verdict=verdict,
        more_seeds=more,
        worthwhile=worthwhile,
        baseline=needed_of(first, level, needs[0], confidence),
        other=needed_of(second, level, needs[1], confidence),
        per_seed=_own(first, second, level),
    )


def _own(first: Curves, second: Curves, level: float) -> xr.DataArray:
    """The ratio for each seed; nan if one of the two is only bounded."""
    low, high = _range(first.needed(first.values, level), second.needed(second.values, level))
    values = np.where(low == high, low, np.nan)
    return xr.DataArray(values, dims="seed", coords={"seed": first.seeds}, name="ratio")


def _paired(baseline: xr.DataArray, other: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Both with the same seeds in the same order."""
    for each in (baseline, other):
        if not isinstance(each, xr.DataArray) or "seed" not in each.dims:
            raise AttnlabError(
                "scores without a seed dimension: expected labelled arrays with dims ('seed', "
                "'size')"
            )
    labelled = "seed" in baseline.coords and "seed" in other.coords
    if labelled and set(baseline["seed"].values.tolist()) == set(other["seed"].values.tolist()):
        return baseline.sortby("seed"), other.sortby("seed")
    if labelled or baseline.sizes["seed"] != other.sizes["seed"]:
        raise AttnlabError(
            f"the models have {baseline.sizes['seed']} and {other.sizes['seed']} seeds that do "
            "not pair: expected the same seeds in both; fit both with the same seeds, or select "
            "those that they share"
        )
    return baseline, other


def _same(first: Curves, second: Curves) -> bool:
    return np.array_equal(first.sizes, second.sizes) and np.array_equal(
        first.values, second.values, equal_nan=True
    )


def _range(first: Needed, second: Needed) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and largest ratio that two ranges of needed samples allow."""
    with np.errstate(divide="ignore"):
        return first.low / second.high, first.high / second.low


def _verdict(interval: Interval, worthwhile: float) -> Verdict:
    if interval.low > 1:
        return "saves"
    if interval.high < 1:
        return "costs"
    return "no advantage" if interval.high < worthwhile else "inconclusive"


def _more_seeds(kind: Kind, interval: Interval, seeds: int, worthwhile: float) -> int | None:
    """How many further seeds decide with 80 % power; ``None`` if the end of a grid prevents it.

    In log ratio: either 1 or a worthwhile saving has to be excluded, and the farther of the two is
    at least half of their distance away, whatever the true ratio is.
    """
    if kind != "exact":
        return None
    if seeds < MIN_RUNS:
        return MIN_RUNS - seeds
    place, goal = math.log(interval.estimate), math.log(worthwhile)
    # If one end is off the grid, the width of the interval is known from the other.
    ends = [
        abs(math.log(end) - place) for end in (interval.low, interval.high) if 0 < end < math.inf
    ]
    if not ends:
        return None
    return more_runs(
        seeds, max(ends), max(place, goal - place), least=goal / 2, confidence=interval.confidence
    )


def _words(ratio: SampleRatio) -> str:
    """The verdict in words."""
    low, high = ratio.interval.low, ratio.interval.high
    if ratio.verdict == "saves":
        return f"saves {_between(1 - 1 / low, 1 - 1 / high)} of the samples"
    if ratio.verdict == "costs":
        most = 1 / low - 1 if low > 0 else math.inf
        return f"no advantage: costs {_between(1 / high - 1, most)} more samples"
    if ratio.verdict == "no advantage":
        return f"no advantage: a saving of {ratio.worthwhile:g}× or more is excluded"
    if ratio.more_seeds is not None:
        if ratio.per_seed.size < MIN_RUNS:
            return f"inconclusive: run {ratio.more_seeds} more seeds, an interval needs {MIN_RUNS}"
        return (
            f"inconclusive: about {ratio.more_seeds} more seeds would decide, with 80\u00a0% power"
        )
    words = {"not reached": "does not reach the level"}
    off = [
        f"the {name} {words.get(needed.outcome, 'has already met the level')}"
        for name, needed in (("baseline", ratio.baseline), ("other model", ratio.other))
        if needed.outcome != "crossed"
    ]
    return f"inconclusive: {' and '.join(off) or 'the level lies at the end of a grid'}; widen the grid of sizes"


def _between(low: float, high: float) -> str:
    """Two shares for a sentence; ``high`` is 1 or infinite if it is not bounded."""
    first, last = f"{low:.0%}".replace("%", " %"), f"{high:.0%}".replace("%", " %")
    if math.isinf(high) or high == 1:
        return f"at least {first}"
    return first if first == last else f"between {first} and {last}"
