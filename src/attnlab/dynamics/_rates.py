"""Onsets and asymptotic rates of scores (docs/theory.md#a5, docs/theory.md#a6).

All functions take labelled arrays along ``time`` or ``step``, recorded or predicted, and keep all
other dimensions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.stats import crossing

Window = tuple[float | int, float | int]
_EARLY: Window = (1e3, 1e6)
_LATE: Window = (1e9, 1e12)


def onset_time(score: xr.DataArray, *, level: Any = None, time: Any = None) -> xr.DataArray:
    """The first time at which each score reaches ``level``, interpolated; nan if it never does.

    ``level`` is a number, a labelled array (such as one per word), or ``None`` for half of each
    score's own last value, which every word that is learned reaches under every head. A score that
    ends at or below zero has no onset. ``time`` replaces the ``time`` (or ``step``) of the array.

    >>> time = np.linspace(0, 4, 41)
    >>> score = xr.DataArray(np.stack([time**2, 0 * time]), coords={"time": time}, dims=("word", "time"))
    >>> onset_time(score, level=4.0).values.round(3).tolist(), onset_time(score).values.round(2).tolist()
    ([2.0, nan], [2.83, nan])
    """
    dim, clock = _clock(score, time)
    if level is None:
        last = score.isel({dim: -1}, drop=True)
        level = (0.5 * last).where(last > 0)

    def first(values: ndarray, goal: float, times: ndarray) -> float:
        if not np.isfinite(values).any():
            return np.nan
        return crossing(times, values, goal, log_x=False).value

    found = xr.apply_ufunc(
        first,
        score,
        level,
        clock,
        input_core_dims=[[dim], [], [dim]],
        vectorize=True,
        output_dtypes=[float],
    )
    return found.rename("onset_time")


def log_slope(x: Any, y: Any, window: Window) -> xr.DataArray:
    """Least-squares slope of log y against log x where ``window[0] ≤ x ≤ window[1]``.

    ``x`` has one dimension, shared with ``y``; plain lists work, too.

    >>> x = np.geomspace(1, 1e4, 41)
    >>> float(log_slope(x, 3 / x**2, (10, 1e4)).round(6))
    -2.0
    """
    x, y = (
        v if isinstance(v, xr.DataArray) else xr.DataArray(np.asarray(v, np.float64), dims="row")
        for v in (x, y)
    )
    inside_x, inside_y = _inside(x, y, window)
    if not (inside_x > 0).all() or (inside_y <= 0).any():  # nan stays nan
        raise AttnlabError(f"a value within {window} is not positive: expected positive x and y")
    return _slope(_log(inside_x), _log(inside_y)).rename("log_slope")


def loss_exponent(loss: xr.DataArray, *, window: Window = _LATE, time: Any = None) -> xr.DataArray:
    """``d log loss / d log τ`` over a window of time (docs/theory.md#a6).

    It is −1 for the reduced flow of a fixed linear head.

    >>> time = np.geomspace(1, 1e12, 121)
    >>> float(loss_exponent(xr.DataArray(5 / time, {"time": time}, "time")).round(6))
    -1.0
    """
    _, clock = _clock(loss, time)
    return log_slope(clock, loss, window).rename("loss_exponent")


def score_rate(score: xr.DataArray, *, window: Window = _LATE, time: Any = None) -> xr.DataArray:
    """``ds / d log log τ`` over a window of time (docs/theory.md#a6).

    It is about 2 for the reduced flow of a fixed linear head. The margin grows like log τ. Under a
    fixed head |ν| grows with it, and SEN, ``e^s/m ≈ ½|q|²|ν|²``, gives ``s ~ 2 log log τ``. A
    trained linear head takes half of the growth, |ν|² ~ log τ, and the rate is about 1.

    >>> time = np.geomspace(10, 1e12, 111)
    >>> float(score_rate(xr.DataArray(2 * np.log(np.log(time)), {"time": time}, "time")).round(6))
    2.0
    """
    if window[0] <= 1:
        raise AttnlabError(f"window={window}: log log τ needs times above 1")
    _, clock = _clock(score, time)
    inside, values = _inside(clock, score, window)
    return _slope(_log(_log(inside)), values).rename("score_rate")


def score_slowdown(
    score: xr.DataArray, *, early: Window = _EARLY, late: Window = _LATE, time: Any = None
) -> xr.DataArray:
    """``ds / d log τ`` of a late window over that of an early one: 1 if the score grew like log τ.

    For ``s = 2 log log τ`` it is 0.42 with the default windows.

    >>> time = np.geomspace(10, 1e12, 111)
    >>> curves = [np.log(time), 2 * np.log(np.log(time))]
    >>> score_slowdown(xr.DataArray(curves, {"time": time}, ("word", "time"))).values.round(2).tolist()
    [1.0, 0.42]
    """
    _, clock = _clock(score, time)
    slopes = []
    for window in (early, late):
        inside, values = _inside(clock, score, window)
        slopes.append(_slope(_log(inside), values))
    return (slopes[1] / slopes[0]).rename("score_slowdown")


def at_times(values: xr.DataArray, elapsed: xr.DataArray, times: Any) -> xr.DataArray:
    """Values recorded at steps, at common times τ > 0: each run has its own ``elapsed`` time per step.

    Interpolated linearly in log τ between recorded steps; nan outside of them. The dimension ``step``
    becomes ``time``.

    >>> elapsed = xr.DataArray([0.0, 1.0, 100.0], dims="step")
    >>> values = xr.DataArray([5.0, 0.0, 2.0], dims="step")
    >>> at_times(values, elapsed, [1.0, 10.0, 1e3]).round(12).values.tolist()
    [0.0, 1.0, nan]
    """
    at = np.asarray(times, np.float64)

    def read(column: ndarray, clock: ndarray) -> ndarray:
        known = (clock > 0) & np.isfinite(column)
        if known.sum() < 2:
            return np.full(len(at), np.nan)
        log = np.log(clock[known])
        return np.interp(np.log(at), log, column[known], left=np.nan, right=np.nan)

    found = xr.apply_ufunc(
        read,
        values,
        elapsed,
        input_core_dims=[["step"], ["step"]],
        output_core_dims=[["time"]],
        vectorize=True,
    )
    return found.assign_coords(time=at)


def _clock(values: xr.DataArray, time: Any) -> tuple[str, xr.DataArray]:
    """The dimension of time, and the time of its rows."""
    dim = next((d for d in ("time", "step") if d in values.dims), None)
    if dim is None:
        raise AttnlabError(
            f"the array has the dimensions {values.dims}: expected 'time' or 'step' among them"
        )
    if time is not None:
        given = np.asarray(time, np.float64)
        if given.shape != (values.sizes[dim],):
            raise AttnlabError(
                f"time has shape {given.shape}: expected one time for each of {values.sizes[dim]} "
                "rows"
            )
        return dim, xr.DataArray(given, dims=dim)
    named = "time" if "time" in values.coords and values["time"].dims == (dim,) else dim
    return dim, xr.DataArray(np.asarray(values[named], np.float64), dims=dim)


def _inside(x: xr.DataArray, y: xr.DataArray, window: Window) -> tuple[xr.DataArray, xr.DataArray]:
    """The rows whose x lies in the window, ends included up to rounding."""
    if x.ndim != 1 or x.dims[0] not in y.dims or x.size != y.sizes[x.dims[0]]:
        raise AttnlabError(
            f"x has the sizes {dict(x.sizes)} and y {dict(y.sizes)}: expected one shared dimension"
        )
    low, high = window[0] * (1 - 1e-9), window[1] * (1 + 1e-9)
    chosen = np.flatnonzero((x.values >= low) & (x.values <= high))
    if len(chosen) < 3:
        raise AttnlabError(
            f"{len(chosen)} rows lie in {window}: a slope needs at least 3; record more rows "
            "there or move the window"
        )
    dim = x.dims[0]
    return x.isel({dim: chosen}), y.isel({dim: chosen})


def _log(values: xr.DataArray) -> xr.DataArray:
    return values.copy(data=np.log(values.values))


def _slope(x: xr.DataArray, y: xr.DataArray) -> xr.DataArray:
    """Least-squares slope of y against x along the dimension of x."""
    dim = x.dims[0]
    centred: Float[ndarray, "rows"] = x.values - x.values.mean()
    plain = y.transpose(..., dim)
    slope = plain.values @ centred / (centred @ centred)
    return plain.isel({dim: 0}, drop=True).copy(data=slope)
