"""Where a curve first crosses a level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attnlab._errors import AttnlabError


@dataclass(frozen=True)
class Crossing:
    """Whether and where a curve meets a level.

    - ``"crossed"``: at ``value``;
    - ``"already met"``: the first point meets the level, so ``value`` (the first x) is only an upper
      bound;
    - ``"not reached"``: no point meets the level; ``value`` is nan.
    """

    kind: Literal["crossed", "not reached", "already met"]
    value: float


def crossing(x: Any, y: Any, level: float, *, log_x: bool = True, rising: bool = True) -> Crossing:
    """Where the curve y(x) first meets ``level``, by linear interpolation of y in log x (or in x).

    The level is met where y ≥ level if ``rising``, otherwise where y ≤ level. x must increase;
    points whose y is nan are ignored.

    >>> crossing([1, 10, 100], [0.0, 0.5, 1.0], 0.75).value.__round__(6)
    31.622777
    >>> crossing([1, 10, 100], [0.0, 0.5, 0.6], 0.75)
    Crossing(kind='not reached', value=nan)
    """
    x, y = _curve(x, y, log_x)
    met = y >= level if rising else y <= level
    if not met.any():
        return Crossing("not reached", float("nan"))
    first = int(np.argmax(met))
    if first == 0:
        return Crossing("already met", float(x[0]))
    at = np.log(x) if log_x else x
    before, after = y[first - 1], y[first]
    # Next to an infinite value there is no slope: take the point that meets the level.
    finite = np.isfinite(before) and np.isfinite(after)
    share = (level - before) / (after - before) if finite else 1.0
    if share == 1.0:
        return Crossing("crossed", float(x[first]))
    place = at[first - 1] + share * (at[first] - at[first - 1])
    return Crossing("crossed", float(np.exp(place) if log_x else place))


@dataclass(frozen=True, eq=False)
class Crossings:
    """Where each of many curves meets a level: the fields of ``Crossing`` as arrays (curves,)."""

    kind: np.ndarray
    value: np.ndarray


def crossings(
    x: Any, curves: Any, level: float, *, log_x: bool = True, rising: bool = True
) -> Crossings:
    """``crossing`` of every row of ``curves``, shape (curves, points), vectorised for resamples.

    >>> found = crossings([1, 10, 100], [[0.0, 0.5, 1.0], [0.0, 0.5, 0.6]], 0.75)
    >>> found.kind.tolist(), found.value.round(2).tolist()
    (['crossed', 'not reached'], [31.62, nan])
    """
    rows = np.asarray(curves, np.float64)
    if rows.ndim != 2 or len(rows) == 0:
        raise AttnlabError(
            f"curves has shape {rows.shape}: expected (curves, points) with at least one curve"
        )
    if np.isnan(rows).any():
        found = [crossing(x, row, level, log_x=log_x, rising=rising) for row in rows]
        return Crossings(
            np.array([one.kind for one in found], "<U11"), np.array([one.value for one in found])
        )
    x, _ = _curve(x, rows[0], log_x)
    met = rows >= level if rising else rows <= level
    first = np.argmax(met, axis=1)
    kind = np.where(met.any(axis=1), np.where(first == 0, "already met", "crossed"), "not reached")
    at, each, left = np.log(x) if log_x else x, np.arange(len(rows)), np.maximum(first - 1, 0)
    before, after = rows[each, left], rows[each, first]
    sloped = np.isfinite(before) & np.isfinite(after) & (before != after)
    gap = np.where(sloped, after, 1.0) - np.where(sloped, before, 0.0)
    share = np.where(sloped, (level - np.where(sloped, before, 0.0)) / gap, 1.0)
    place = at[left] + share * (at[first] - at[left])
    value = np.where(share == 1.0, x[first], np.exp(place) if log_x else place)
    value = np.where(kind == "already met", x[0], value)
    return Crossings(kind, np.where(kind == "not reached", np.nan, value))


def _curve(x: Any, y: Any, log_x: bool) -> tuple[np.ndarray, np.ndarray]:
    """The points of the curve, checked."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise AttnlabError(
            f"x has shape {x.shape} and y {y.shape}: expected two lists of one length"
        )
    x, y = x[~np.isnan(y)], y[~np.isnan(y)]
    if x.size == 0:
        raise AttnlabError("the curve has no point: expected at least one y that is not nan")
    if not np.isfinite(x).all() or (np.diff(x) <= 0).any():
        raise AttnlabError(
            "x does not increase: expected finite, strictly increasing values; sort the points "
            "first"
        )
    if log_x and x[0] <= 0:
        raise AttnlabError(f"x starts at {x[0]:g}: expected positive values, or pass log_x=False")
    return x, y
