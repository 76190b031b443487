"""Growth of needed samples with the size of the problem."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity._curves import (
    RESAMPLES,
    Failed,
    Kind,
    Needed,
    Statistic,
    bound_of,
    kind_of,
    percentiles,
    picks_of,
    read_curves,
    span,
)
from attnlab.complexity._needed import NeededSamples, needed_of
from attnlab.stats import MIN_RUNS, Interval


@dataclass(frozen=True, eq=False)
class Exponent:
    """β of n_ε ∝ p^β, by least squares in logs.

    - ``kind`` of ``value``: ``"exact"``; ``"at least"`` or ``"at most"`` if n_ε lies off the grid of
      sizes for some p; ``"unknown"`` (nan) if the grids do not bound it;
    - ``interval``: over seeds, resampled for all p together; infinite where grids end;
    - ``per_seed``: the exponent of each seed's own n_ε, dims (seed,), nan if one lies off the grid;
    - ``needed``: n_ε of each p, in the order of ``features``; ``off_grid``: the outcomes off the
      grid, by p.
    """

    kind: Kind
    value: float
    interval: Interval
    features: tuple[float, ...]
    needed: tuple[NeededSamples, ...]
    per_seed: xr.DataArray

    @property
    def off_grid(self) -> dict[float, str]:
        """Which p were not reached, or already met at the smallest size."""
        pairs = zip(self.features, self.needed, strict=True)
        return {p: str(one.outcome) for p, one in pairs if one.outcome != "crossed"}

    def __str__(self) -> str:
        words = {
            "exact": "is ",
            "at least": "is at least ",
            "at most": "is at most ",
            "unknown": "is unknown",
        }[self.kind]
        value = "" if self.kind == "unknown" else f"{self.value:.2f}"
        off = "".join(f"; {outcome} at {p:g}" for p, outcome in self.off_grid.items())
        return f"the exponent of needed samples {words}{value} ({span(self.interval)}{off})"


def exponent(
    errors: xr.DataArray,
    level: float,
    *,
    dim: str = "features",
    falling: bool = True,
    statistic: Statistic = "median",
    failed: Failed = "worst",
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Exponent:
    """β of n_ε(p) ∝ p^β for ``errors`` with dims (seed, size, ``dim``): β = Σ_p w_p log n_ε(p).

    ``w_p = (log p − mean) / Σ (log p − mean)²`` are the weights of least squares. If the level is
    not reached for some p, log n is at least that of its largest size; if it was already met, at
    most that of the smallest. Instead of dropping such p, β gets a range, by interval arithmetic.
    Sizes that were not run for one p are nan for all seeds. The interval covers chance over seeds,
    not whether n_ε is a power of p.

    >>> n, p = np.array([8.0, 64.0, 512.0]), np.array([2.0, 4.0, 8.0])
    >>> curve = -np.log(n[:, None] / p**2)
    >>> errors = xr.DataArray([curve] * 8, dims=("seed", "size", "features"), coords={"size": n, "features": p})
    >>> print(exponent(errors, -np.log(3.0)))
    the exponent of needed samples is 2.00 (95 % interval 2 to 2)
    """
    if (
        not isinstance(errors, xr.DataArray)
        or set(errors.dims) != {"seed", "size", dim}
        or dim not in errors.coords
    ):
        got = tuple(errors.dims) if isinstance(errors, xr.DataArray) else type(errors).__name__
        raise AttnlabError(
            f"scores with dims {got}: expected ('seed', 'size', {dim!r}), {dim!r} with a coordinate"
        )
    data = errors.sortby(dim)
    p = np.asarray(data[dim].values, np.float64)
    if len(p) < 2 or p[0] <= 0 or (np.diff(p) <= 0).any():
        raise AttnlabError(f"{dim}={p.tolist()}: expected at least two different positive values")
    weights = np.log(p) - np.log(p).mean()
    weights = weights / (weights @ weights)
    every = [
        read_curves(
            data.isel({dim: k}, drop=True), falling=falling, statistic=statistic, failed=failed
        )
        for k in range(len(p))
    ]
    picks = picks_of(data.sizes["seed"], resamples, seed)
    needs = [one.needed(one.over_seeds(picks), level) for one in every]
    low, high = _slope(weights, [one.needed(one.over_seeds()[None], level) for one in every])
    value = bound_of(low[0], high[0], -math.inf)
    interval = percentiles(*_slope(weights, needs), value, confidence, mean_of=every[0].mean_of)
    if data.sizes["seed"] < MIN_RUNS:
        interval = Interval(low=-math.inf, high=math.inf, estimate=value, confidence=confidence)
    needed = tuple(
        needed_of(one, level, drawn, confidence) for one, drawn in zip(every, needs, strict=True)
    )
    least, most = _slope(weights, [one.needed(one.values, level) for one in every])
    own = xr.DataArray(
        np.where(least == most, least, np.nan), dims="seed", coords={"seed": every[0].seeds}
    )
    kind = kind_of(low[0], high[0], -math.inf)
    return Exponent(kind, value, interval, tuple(p.tolist()), needed, own)


def _slope(weights: np.ndarray, needed: list[Needed]) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and largest slope that the ranges of needed samples allow, for each resample."""
    low = high = np.zeros(len(needed[0].low))
    for weight, one in zip(weights, needed, strict=True):
        if abs(weight) < 1e-12 * np.abs(weights).max():
            continue  # 0 · ∞ would be nan
        with np.errstate(divide="ignore"):
            ends = weight * np.log(one.low), weight * np.log(one.high)
        smaller, larger = ends if weight > 0 else ends[::-1]
        low, high = low + smaller, high + larger
    return low, high
