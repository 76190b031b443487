"""Rows on one axis, named above: a dot for each seed against a threshold, or an estimate with its
interval; and estimates over a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._style import (
    BLUE,
    GREEN,
    INK,
    MAX_POINTS,
    PAPER,
    VERMILLION,
    axis,
    color_of,
    faded,
    layout,
    log_ticks,
    reference_lines,
    short,
    symbol_of,
)
from attnlab.report._words import interval, number, percent, plain, plain_lines

_SIGNS = {"exact": "", "at least": "≥ ", "at most": "≤ "}
_UP = {"at least": "triangle-up-open", "at most": "triangle-down-open", "unknown": "circle-x-open"}
_ASIDE = {
    "at least": "triangle-right-open",
    "at most": "triangle-left-open",
    "unknown": "circle-x-open",
}
_ROOM = 1.35  # what a logarithmic axis has beyond the outermost mark


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
        array = np.asarray(self.values, dtype=float).ravel()
        if (array < 0).any():
            raise AttnlabError(
                f"row {self.label!r} has negative values; a logarithmic axis takes their absolute "
                "values"
            )
        if "seed" in getattr(self.values, "dims", ()):
            return array, self.values["seed"].values.tolist()
        return array, list(range(len(array)))

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
    low, high = _dot_edges(rows)
    points, table = _points(rows, low)
    style = layout(
        92 + 56 * len(rows),
        top=36,
        xaxis=axis(x_label, True, [np.array([low, high])], range=[np.log10(low), np.log10(high)]),
    )
    _name_rows(style, [(k - 0.26, _dots_label(row)) for k, row in enumerate(rows)], above=0.6)
    style["shapes"] = [
        shape for k, row in enumerate(rows) for shape in _threshold(k, row, low, high)
    ]
    traces = [
        _dots(points["good"], names[0], BLUE, "circle"),
        _dots(points["bad"], names[1], VERMILLION, "x"),
        _dots(points["zero"], "exactly zero", GREEN, "triangle-left"),
        _medians(rows, low),
    ]
    words = f"One dot per seed of {', '.join(row.label for row in rows)} on a logarithmic axis."
    return Figure(
        id,
        title,
        caption
        or "One dot per seed, the bar is the median. The shaded side of the line is where the law "
        "counts as kept.",
        f"{title}. {words}",
        {"data": [trace for trace in traces if trace["x"]], "layout": style},
        table,
    )


def _name_rows(
    style: dict[str, Any], labels: Sequence[tuple[float, str]], above: float, **more: Any
) -> None:
    """Rows instead of a y axis: labels (height, HTML), and room above the first row."""
    style["yaxis"] = {"range": [len(labels) - 0.4, -above], "visible": False, "fixedrange": True}
    style["margin"]["l"] = 18
    style["annotations"] = [
        {
            "xref": "x domain",
            "x": 0,
            "xanchor": "left",
            "y": height,
            "yanchor": "middle",
            "showarrow": False,
            "text": text,
            "font": {"size": 13, "color": INK},
        }
        | more
        for height, text in labels
    ]


def _dots_label(row: DotRow) -> str:
    sign = {"below": "≤", "above": "≥"}[row.good]
    limit = "" if row.threshold is None else f"   {sign} {number(row.threshold)}"
    return f"<b>{plain(row.label)}</b>{limit}"


def _dot_edges(rows: list[DotRow]) -> tuple[float, float]:
    """A logarithmic axis for all values and thresholds, with some room at both ends."""
    every = np.concatenate(
        [row.numbers()[0] for row in rows] + [[row.threshold] for row in rows if row.threshold]
    )
    every = every[np.isfinite(every) & (every > 0)]
    low, high = (every.min(), every.max()) if len(every) else (1e-16, 1.0)
    room = 0.04 * (np.log10(high) - np.log10(low)) + 0.35
    return float(low / 10**room), float(high * 10**room)


_Dot = tuple[float, float, str]


def _points(rows: list[DotRow], low: float) -> tuple[dict[str, list[_Dot]], dict[str, list[Any]]]:
    """Every dot as (x, y, hover) by kind, and the table."""
    points: dict[str, list[_Dot]] = {"good": [], "bad": [], "zero": []}
    table: dict[str, list[Any]] = {"row": [], "seed": [], "value": [], "threshold": [], "good": []}
    for k, row in enumerate(rows):
        values, seeds = row.numbers()
        is_good = row.is_good(values)
        table["row"] += [row.label] * len(values)
        table["seed"] += seeds
        table["value"] += short(values)
        table["threshold"] += [row.threshold] * len(values)
        table["good"] += ["yes" if good else "no" for good in is_good]
        # Of very many, those that are not good come first: an exception must not be left out.
        for place in np.sort(np.argsort(is_good, kind="stable")[:MAX_POINTS]):
            value = float(values[place])
            if not np.isfinite(value):
                continue
            kind = "zero" if value == 0 else "good" if is_good[place] else "bad"
            # A fixed spread in height, so that equal values stay apart and the page is the same
            # each time.
            height = k + 0.14 + 0.2 * ((place * 0.618034) % 1 - 0.5)
            text = f"{plain(row.label)}<br>seed {plain(seeds[place])}: {number(value)}"
            points[kind].append((max(value, low * 1.6), height, text))
    return points, table


def _dots(points: Sequence[_Dot], name: str, color: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "marker": {
            "color": faded(color, 0.6),
            "size": 9,
            "symbol": symbol,
            "line": {"color": color, "width": 1},
        },
        "x": short([x for x, _, _ in points]),
        "y": short([y for _, y, _ in points]),
        "text": [text for _, _, text in points],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _medians(rows: list[DotRow], low: float) -> dict[str, Any]:
    """A bar at the median of each row."""
    middle = []
    for k, row in enumerate(rows):
        values = row.numbers()[0]
        values = values[np.isfinite(values)]
        if len(values):
            middle.append((k, float(np.median(values))))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "median",
        "marker": {
            "color": INK,
            "size": 20,
            "symbol": "line-ns",
            "line": {"color": INK, "width": 2.4},
        },
        "x": short([max(value, low * 1.6) for _, value in middle]),
        "y": [k + 0.14 for k, _ in middle],
        "text": [f"{plain(rows[k].label)}<br>median {number(value)}" for k, value in middle],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _threshold(k: int, row: DotRow, low: float, high: float) -> list[dict[str, Any]]:
    """The good side shaded, and its edge drawn."""
    if row.threshold is None:
        return []
    start, end = (low, row.threshold) if row.good == "below" else (row.threshold, high)
    place = {"y0": k - 0.1, "y1": k + 0.38, "layer": "below"}
    shade = {"type": "rect", "x0": start, "x1": end, "fillcolor": faded(GREEN, 0.13)}
    line = {"color": GREEN, "width": 1.6, "dash": "dot"}
    edge = {"type": "line", "x0": row.threshold, "x1": row.threshold, "line": line}
    return [shade | {"line": {"width": 0}} | place, edge | place]


@dataclass(frozen=True)
class Mark:
    """An estimate with its interval; ``kind`` says whether ``value`` is it or only a bound.

    ``said``, of one or more lines, is shown below the label where the mark is pointed at.
    """

    label: str
    value: float
    low: float
    high: float
    kind: Literal["exact", "at least", "at most", "unknown"] = "exact"
    said: str = ""

    @property
    def barred(self) -> bool:
        """Whether there is an interval to draw; seven seeds or fewer give none."""
        open_ends = self.low <= 0 and np.isinf(self.high)
        return np.isfinite(self.value) and not (open_ends and self.kind in ("exact", "unknown"))

    @property
    def words(self) -> str:
        """The estimate in a few characters.

        >>> Mark("a", 52.0, 40.0, np.inf, "at least").words
        '≥ 52'
        """
        return "unknown" if self.kind == "unknown" else f"{_SIGNS[self.kind]}{number(self.value)}"

    @property
    def bounds(self) -> str:
        """Its interval in words, if there is one to draw."""
        return interval((self.low, self.high)) if self.barred else ""

    @property
    def hover(self) -> str:
        """Label and remark, safe for a hover template."""
        return plain_lines(f"{self.label}\n{self.said}")


def bounds_note(marks: Sequence[Mark]) -> str:
    """What the reader must know of marks that are only bounds; nothing if there are none."""
    kinds = {mark.kind for mark in marks}
    bounds = "A triangle is a bound: the level was not reached, or already met, at the end of a grid of sizes."
    unknown = "A crossed circle: unknown, as both students are off their grids."
    return " ".join(
        [bounds] * bool(kinds & {"at least", "at most"}) + [unknown] * ("unknown" in kinds)
    )


def edges_of(marks: Sequence[Mark], also: Sequence[float] = ()) -> tuple[float, float]:
    """A logarithmic axis that holds all that is finite, with room for open ends."""
    every = np.array([x for m in marks for x in (m.value, m.low, m.high)] + list(also), dtype=float)
    every = every[np.isfinite(every) & (every > 0)]
    return (float(every.min() / _ROOM), float(every.max() * _ROOM)) if len(every) else (0.5, 2.0)


def mark_trace(
    marks: Sequence[Mark],
    across: Sequence[float],
    edges: tuple[float, float],
    k: int,
    *,
    name: str,
    in_rows: bool = False,
) -> dict[str, Any]:
    """One trace of marks: upright over ``across``, or lying in rows of that height."""
    color, symbols = color_of(k), _ASIDE if in_rows else _UP
    along, other, bars = ("x", "y", "error_x") if in_rows else ("y", "x", "error_y")
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(name),
        "marker": {
            "color": color,
            "size": 11,
            "symbol": [symbols.get(mark.kind, symbol_of(k)) for mark in marks],
            "line": {"color": color, "width": 2},
        },
        along: short([mark.value for mark in marks]),
        other: short(across),
        bars: _bars(marks, edges, color),
        "text": [mark.hover for mark in marks],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _bars(marks: Sequence[Mark], edges: tuple[float, float], color: str) -> dict[str, Any]:
    """Error bars; an end that is not known reaches the edge of the drawing."""
    up = [min(m.high, edges[1]) - m.value if m.barred else 0.0 for m in marks]
    down = [m.value - max(m.low, edges[0]) if m.barred else 0.0 for m in marks]
    return {
        "type": "data",
        "symmetric": False,
        "color": color,
        "thickness": 1.8,
        "width": 5,
        "array": short(np.maximum(up, 0)),
        "arrayminus": short(np.maximum(down, 0)),
    }


def marks_table(
    marks: Sequence[Mark], columns: Mapping[str, Sequence[Any]]
) -> dict[str, list[Any]]:
    """Marks as columns, after the ``columns`` that say whose they are."""
    known = [mark.value if mark.kind != "unknown" else np.nan for mark in marks]
    table = {name: list(values) for name, values in columns.items()}
    table |= {"value": short(known), "is": [mark.kind for mark in marks]}
    low, high = ([getattr(mark, end) for mark in marks] for end in ("low", "high"))
    return table | {"low": short(low), "high": short(high)}


def rows_figure(
    marks: Sequence[Mark],
    *,
    id: str,
    title: str,
    caption: str,
    x_label: str,
    lines: Mapping[str, float] | None = None,
    beside: Sequence[tuple[str, int, float]] = (),
) -> Figure:
    """One row for each mark on a logarithmic axis, its label and number above it.

    ``beside``: (name, row, value), small open symbols to compare with.

    >>> figure = rows_figure([Mark("a", 2.0, 1.5, 3.0)], id="f", title="t", caption="", x_label="ratio")
    >>> figure.alt, figure.table["high"]
    ('t. a: 2.', [3.0])
    """
    if not marks:
        raise AttnlabError(f"figure {id!r} has no rows to draw; expected at least one estimate")
    edges = edges_of(marks, [*(lines or {}).values(), *(value for _, _, value in beside)])
    heights = [k + 0.16 for k in range(len(marks))]
    names = dict.fromkeys(name for name, _, _ in beside)
    traces = [
        mark_trace(marks, heights, edges, 0, name="measured", in_rows=True),
        *(_beside(name, beside, k) for k, name in enumerate(names, start=1)),
    ]
    ticks = log_ticks([np.array(edges)], 2.2) | {"range": [np.log10(edge) for edge in edges]}
    style = layout(130 + 52 * len(marks), xaxis=axis(x_label, True) | ticks)
    labels = [(k - 0.2, _mark_label(mark)) for k, mark in enumerate(marks)]
    _name_rows(style, labels, above=0.9, bgcolor=PAPER)
    style["shapes"] = reference_lines(lines or {}, vertical=True)
    style["showlegend"] = len(traces) > 1
    return Figure(
        id,
        title,
        caption,
        f"{title}. {'; '.join(f'{mark.label}: {mark.words}' for mark in marks)}.",
        {"data": traces, "layout": style},
        marks_table(marks, {"": [mark.label for mark in marks]}),
    )


def _mark_label(mark: Mark) -> str:
    is_known = mark.kind == "exact" or mark.value not in (mark.low, mark.high)
    bounds = f" {mark.bounds}" if mark.barred and is_known else ""
    return f"<b>{plain(mark.label)}</b>   {mark.words}{bounds}"


def _beside(name: str, beside: Sequence[tuple[str, int, float]], k: int) -> dict[str, Any]:
    own = [(row, value) for one, row, value in beside if one == name]
    return {
        "type": "scatter",
        "mode": "markers",
        "marker": {
            "symbol": f"{symbol_of(k)}-open",
            "size": 9,
            "color": color_of(k),
            "line": {"width": 1.6},
        },
        "hovertemplate": "%{x:.3~g}<extra></extra>",
        "x": short([value for _, value in own]),
        "y": [row + 0.16 for row, _ in own],
        "name": plain(name),
    }


def shares_figure(
    marks: Sequence[Mark],
    *,
    id: str,
    title: str,
    caption: str,
    alt: str,
    x_label: str,
    columns: tuple[str, str],
) -> Figure:
    """Shares with their intervals, a row each on an axis from zero; ``columns`` name labels and
    shares in the CSV file, and ``said`` of each mark is the label that is drawn.
    """
    words = [
        f"{percent(mark.value)} {interval((100 * mark.low, 100 * mark.high))}" for mark in marks
    ]
    ends = [end for mark in marks for end in (mark.value, mark.low, mark.high) if np.isfinite(end)]
    span = (0.0, 1.1 * max(ends, default=1.0) or 1.0)
    style = layout(130 + 52 * len(marks), xaxis=axis(x_label, tickformat=".0~%", range=list(span)))
    labels = [
        (k - 0.2, f"<b>{plain(mark.said or mark.label)}</b>   {words[k]}")
        for k, mark in enumerate(marks)
    ]
    _name_rows(style, labels, above=0.9, bgcolor=PAPER)
    style["showlegend"] = False
    said = "; ".join(f"{mark.label}: {word}" for mark, word in zip(marks, words, strict=True))
    table = marks_table(marks, {columns[0]: [mark.label for mark in marks]})
    del table["is"]
    return Figure(
        id,
        title,
        caption,
        f"{alt} {said}.",
        {
            "data": [
                mark_trace([mark], [k + 0.16], span, k, name=mark.label, in_rows=True)
                | {"text": [f"{plain(mark.label)}: {words[k]}"]}
                for k, mark in enumerate(marks)
            ],
            "layout": style,
        },
        {columns[1] if name == "value" else name: values for name, values in table.items()},
    )
