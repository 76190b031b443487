"""Thin lines, one per word and seed, coloured by group: how two quantities move together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import DASHES, SERIES, faded
from attnlab.report._prepare import (
    axis,
    hidden_note,
    layout,
    lines_of,
    reference_lines,
    short,
    some_runs,
    thinned,
)
from attnlab.report._text import plain

MAX_LINES = 40
_POINTS = 60


def paths_figure(
    groups: Mapping[str, tuple[Any, Any]],
    *,
    id: str,
    title: str,
    caption: str = "",
    alt: str = "",
    x_label: str = "x",
    y_label: str = "y",
    log_x: bool = False,
    log_y: bool = False,
    reverse_x: bool = False,
    ends: bool = False,
    lines: Mapping[str, float] | None = None,
    along: str = "step",
    most: int = MAX_LINES,
) -> Figure:
    """One thin line per entry of each group; lines without any value are no lines.

    ``groups``: name → (x, y), labelled arrays with the dimension ``along``; x may be that dimension
    alone, shared by all lines. ``ends`` marks where each line stops; at most ``most`` lines of a
    group are drawn.

    >>> import xarray as xr
    >>> y = xr.DataArray([[0.0, 1.0]], {"seed": [3], "step": [0, 10]}, ("seed", "step"))
    >>> paths_figure({"rising": (y.step, y)}, id="f", title="t").table["label"]
    ['seed 3', 'seed 3']
    """
    if not groups:
        raise AttnlabError(f"figure {id!r} has no lines to draw; expected name → (x, y)")
    traces: list[dict[str, Any]] = []
    table: dict[str, list[Any]] = {"group": [], "label": [], x_label: [], y_label: []}
    counts, drawn, points = [0, 0], ([], []), [0, 0]
    for k, (name, (xs, ys)) in enumerate(groups.items()):
        x, y, names, found = _lines(xs, ys, along, most)
        kept = _thin(x, log_x)
        points = max(points, [len(kept), x.shape[1]], key=lambda pair: pair[1])
        x, y = x[:, kept], y[:, kept]
        counts = [counts[0] + len(names), counts[1] + found]
        drawn[0].append(x)
        drawn[1].append(y)
        traces += _traces(name, x, y, names, SERIES[k % 7], DASHES[k % 7], (x_label, y_label), ends)
        columns = (
            [name] * x.size,
            np.repeat(names, len(kept)).tolist(),
            short(x.ravel()),
            short(y.ravel()),
        )
        for column, values in zip(table, columns, strict=True):
            table[column] += values
    style = layout(440, xaxis=axis(x_label, log_x, drawn[0]), yaxis=axis(y_label, log_y, drawn[1]))
    style["showlegend"] = True
    style["shapes"] = reference_lines(lines or {})
    if reverse_x:
        style["xaxis"]["autorange"] = "reversed"
    note = [_note(counts, points), hidden_note(drawn[0], log_x), hidden_note(drawn[1], log_y)]
    alt = alt or f"{title}. {y_label} against {x_label}: thin lines of {', '.join(groups)}."
    caption = caption or "One thin line per word and seed."
    return Figure(
        id,
        title,
        caption,
        alt,
        {"data": traces, "layout": style},
        table,
        " ".join(filter(None, note)),
    )


def _lines(
    xs: Any, ys: Any, along: str, most: int
) -> tuple[np.ndarray, np.ndarray, list[str], int]:
    """x and y (line × point) of the lines that are drawn, their labels, and how many there are."""
    y, names = lines_of(ys, along)
    if tuple(xs.dims) == (along,):
        x = np.broadcast_to(xs.values.astype(float), y.shape)
    else:
        others = [d for d in ys.dims if d != along]
        x, _ = lines_of(xs.broadcast_like(ys).transpose(*others, along), along)
    there = np.flatnonzero(np.isfinite(x * y).any(axis=1))
    kept = there[some_runs(len(there), most)] if len(there) else there
    return x[kept], y[kept], [names[i] for i in kept], len(there)


def _thin(x: np.ndarray, log: bool) -> np.ndarray:
    """Points along the lines: even over the axis where the lines share it, else even along the
    lines.
    """
    count = x.shape[1]
    if count <= _POINTS:
        return np.arange(count)
    if log and len(x) and (np.diff(x[0]) > 0).all():
        return thinned(x[0], lines=1, log=True, most=_POINTS)
    # Training happens early: along paths, more points where steps are first.
    return np.unique(
        np.concatenate([[0], np.geomspace(1, count - 1, _POINTS - 1).round().astype(int)])
    )


def _traces(
    name: str,
    x: np.ndarray,
    y: np.ndarray,
    names: list[str],
    color: str,
    dash: str,
    labels: tuple[str, str],
    ends: bool,
) -> list[dict[str, Any]]:
    """All lines of a group in one trace with gaps between them; dots where they end."""
    flat: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for row_x, row_y, label in zip(x, y, names, strict=True):
        flat[0].extend([*short(row_x), None])
        flat[1].extend([*short(row_y), None])
        flat[2].extend([plain(label)] * (len(row_x) + 1))
    hover = f"%{{text}}<br>{plain(labels[0])} %{{x:.4~g}}<br>{plain(labels[1])} %{{y:.4~g}}<extra>{plain(name)}</extra>"
    common = {"type": "scatter", "name": plain(name), "legendgroup": plain(name)}
    line = {"color": faded(color, 0.6), "width": 1.3, "dash": dash}
    data = {"x": flat[0], "y": flat[1], "text": flat[2], "hovertemplate": hover}
    traces = [common | {"mode": "lines", "line": line} | data]
    if ends and len(x):
        marker = {"color": color, "size": 6}
        stops = [np.flatnonzero(np.isfinite(a * b))[-1] for a, b in zip(x, y, strict=True)]
        places = {
            "x": short([a[i] for a, i in zip(x, stops, strict=True)]),
            "y": short([b[i] for b, i in zip(y, stops, strict=True)]),
        }
        traces.append(
            common
            | {"mode": "markers", "marker": marker, "showlegend": False, "hoverinfo": "skip"}
            | places
        )
    return traces


def _note(counts: list[int], points: list[int]) -> str:
    lines = f"{counts[0]} of {counts[1]} lines" if counts[0] < counts[1] else ""
    dots = f"{points[0]} of {points[1]} recorded points of each" if points[0] < points[1] else ""
    said = " and ".join(filter(None, (lines, dots)))
    return f"{said} are drawn and saved." if said else ""
