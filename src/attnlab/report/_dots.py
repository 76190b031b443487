"""One row of dots per law or optimiser on a logarithmic axis, each row with its threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import BLUE, GREEN, INK, VERMILLION, faded
from attnlab.report._prepare import MAX_POINTS, axis, layout, short
from attnlab.report._text import number, plain


@dataclass(frozen=True)
class DotRow:
    """A row: its label, a value per seed (none negative), and on which side of the threshold values
    are good.
    """

    label: str
    values: Any
    threshold: float | None = None
    good: Literal["below", "above"] = "below"

    def numbers(self) -> tuple[np.ndarray, list[Any]]:
        """The values and their seeds."""
        seeds = (
            self.values["seed"].values.tolist()
            if "seed" in getattr(self.values, "dims", ())
            else None
        )
        array = np.asarray(self.values, dtype=float).ravel()
        if (array < 0).any():
            raise AttnlabError(
                f"row {self.label!r} has negative values; a logarithmic axis takes their absolute "
                "values"
            )
        return array, list(range(len(array))) if seeds is None else seeds

    def is_good(self, values: np.ndarray) -> np.ndarray:
        """Which values lie on the good side (all, without a threshold)."""
        if self.threshold is None:
            return np.ones(len(values), dtype=bool)
        return values <= self.threshold if self.good == "below" else values >= self.threshold


def dots_figure(
    rows: Sequence[DotRow | tuple[Any, ...]],
    *,
    id: str,
    title: str,
    caption: str = "",
    alt: str = "",
    x_label: str = "value",
    names: tuple[str, str] = ("within the threshold", "beyond the threshold"),
) -> Figure:
    """Per-seed values of each row on a log axis, with the threshold and the side on which values
    are good.

    ``rows``: `DotRow`, or tuples ``(label, values, threshold, good)``; ``names``: what dots on the
    good and on the other side are called. A value of exactly zero, which the axis cannot show,
    stands as a triangle at the left edge.

    >>> figure = dots_figure([("GD", [1e-16, 0.0], 1e-12), ("Adam", [0.9, 1.0], 1e-12)], id="sum", title="Sum")
    >>> figure.table["good"]
    ['yes', 'yes', 'no', 'no']
    """
    rows = [row if isinstance(row, DotRow) else DotRow(*row) for row in rows]
    if not rows:
        raise AttnlabError(
            f"figure {id!r} has no rows to draw; expected at least one (label, values)"
        )
    low, high = _edges(rows)
    points, table = _points(rows, low)
    style = layout(
        92 + 56 * len(rows),
        top=36,
        xaxis=axis(x_label, True, [np.array([low, high])], range=[np.log10(low), np.log10(high)]),
    )
    style["yaxis"] = {"range": [len(rows) - 0.4, -0.6], "visible": False, "fixedrange": True}
    style["margin"]["l"] = 18
    style["shapes"] = [
        shape for k, row in enumerate(rows) for shape in _threshold(k, row, low, high)
    ]
    style["annotations"] = [_label(k, row) for k, row in enumerate(rows)]
    traces = [
        _trace(points, "good", names[0], BLUE, "circle"),
        _trace(points, "bad", names[1], VERMILLION, "x"),
        _trace(points, "zero", "exactly zero", GREEN, "triangle-left"),
        _medians(rows, low),
    ]
    alt = (
        alt
        or f"{title}. One dot per seed of {', '.join(row.label for row in rows)} on a logarithmic "
        "axis."
    )
    caption = (
        caption
        or "One dot per seed, the bar is the median. The shaded side of the line is where the law "
        "counts as kept."
    )
    drawn = {"data": [trace for trace in traces if trace["x"]], "layout": style}
    return Figure(id, title, caption, alt, drawn, table)


def _edges(rows: list[DotRow]) -> tuple[float, float]:
    every = np.concatenate(
        [row.numbers()[0] for row in rows] + [[row.threshold] for row in rows if row.threshold]
    )
    every = every[np.isfinite(every) & (every > 0)]
    low, high = (every.min(), every.max()) if len(every) else (1e-16, 1.0)
    room = 0.04 * (np.log10(high) - np.log10(low)) + 0.35
    return float(low / 10**room), float(high * 10**room)


def _points(
    rows: list[DotRow], low: float
) -> tuple[dict[str, list[tuple[float, float, str]]], dict[str, list[Any]]]:
    """Every dot as (x, y, hover) by kind, and the table."""
    points: dict[str, list[tuple[float, float, str]]] = {"good": [], "bad": [], "zero": []}
    table: dict[str, list[Any]] = {"row": [], "seed": [], "value": [], "threshold": [], "good": []}
    for k, row in enumerate(rows):
        values, seeds = row.numbers()
        for place, (value, seed, good) in enumerate(
            zip(values, seeds, row.is_good(values), strict=True)
        ):
            table["row"].append(row.label)
            table["seed"].append(seed)
            table["value"] += short([value])
            table["threshold"].append(row.threshold)
            table["good"].append("yes" if good else "no")
            if not np.isfinite(value) or place >= MAX_POINTS:
                continue
            kind = "zero" if value == 0 else "good" if good else "bad"
            # A fixed spread in height, so that equal values stay apart and the page is the same
            # each time.
            height = k + 0.14 + 0.2 * ((place * 0.618034) % 1 - 0.5)
            text = f"{plain(row.label)}<br>seed {plain(seed)}: {number(value)}"
            points[kind].append((max(value, low * 1.6), height, text))
    return points, table


def _trace(
    points: dict[str, list[tuple[float, float, str]]], kind: str, name: str, color: str, symbol: str
) -> Any:
    x, y, text = zip(*points[kind], strict=True) if points[kind] else ((), (), ())
    marker = {
        "color": faded(color, 0.6),
        "size": 9,
        "symbol": symbol,
        "line": {"color": color, "width": 1},
    }
    data = {
        "x": short(x),
        "y": short(y),
        "text": list(text),
        "hovertemplate": "%{text}<extra></extra>",
    }
    return {"type": "scatter", "mode": "markers", "name": name, "marker": marker} | data


def _medians(rows: list[DotRow], low: float) -> dict[str, Any]:
    values = [(row.numbers()[0], k) for k, row in enumerate(rows)]
    middle = [(float(np.median(v[np.isfinite(v)])), k) for v, k in values if np.isfinite(v).any()]
    marker = {"color": INK, "size": 20, "symbol": "line-ns", "line": {"color": INK, "width": 2.4}}
    data = {
        "x": short([max(value, low * 1.6) for value, _ in middle]),
        "y": [k + 0.14 for _, k in middle],
        "text": [f"{plain(rows[k].label)}<br>median {number(value)}" for value, k in middle],
        "hovertemplate": "%{text}<extra></extra>",
    }
    return {"type": "scatter", "mode": "markers", "name": "median", "marker": marker} | data


def _threshold(k: int, row: DotRow, low: float, high: float) -> list[dict[str, Any]]:
    """The good side shaded, its edge drawn and named."""
    if row.threshold is None:
        return []
    sides = (low, row.threshold) if row.good == "below" else (row.threshold, high)
    place = {"y0": k - 0.1, "y1": k + 0.38, "layer": "below"}
    shade = {
        "type": "rect",
        "x0": sides[0],
        "x1": sides[1],
        "fillcolor": faded(GREEN, 0.13),
        "line": {"width": 0},
    }
    line = {"color": GREEN, "width": 1.6, "dash": "dot"}
    edge = {"type": "line", "x0": row.threshold, "x1": row.threshold, "line": line}
    return [shade | place, edge | place]


def _label(k: int, row: DotRow) -> dict[str, Any]:
    sign = {"below": "≤", "above": "≥"}[row.good]
    limit = "" if row.threshold is None else f"   {sign} {number(row.threshold)}"
    place = {
        "xref": "x domain",
        "x": 0,
        "xanchor": "left",
        "y": k - 0.26,
        "yanchor": "middle",
        "showarrow": False,
    }
    return place | {"text": f"<b>{plain(row.label)}</b>{limit}", "font": {"size": 13, "color": INK}}
