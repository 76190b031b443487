"""One dot per word and seed, in groups: two quantities against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import MUTED, SERIES, SYMBOLS, faded
from attnlab.report._prepare import axis, labels_of, layout, reference_lines, short, some_runs
from attnlab.report._text import plain

_MAX_DOTS = 600


def scatter_figure(
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
    identity: bool = False,
    lines: Mapping[str, float] | None = None,
    marks: Mapping[str, float] | None = None,
) -> Figure:
    """Dots of each group at (x, y); pairs that are not both finite are left out and counted in the
    note.

    ``groups``: name → (x, y), labelled arrays of the same dimensions or plain ones. ``identity``
    draws y = x; ``lines`` and ``marks``: label → y or x of a thin line.

    >>> figure = scatter_figure({"words": ([1, 2, np.nan], [1, 2, 3])}, id="f", title="t", identity=True)
    >>> figure.table["x"], figure.note
    ([1.0, 2.0], '1 of 3 dots lacks a value and is not shown.')
    """
    if not groups:
        raise AttnlabError(f"figure {id!r} has no dots to draw; expected name → (x, y)")
    traces: list[dict[str, Any]] = []
    table: dict[str, list[Any]] = {"group": [], "label": [], x_label: [], y_label: []}
    asked, absent, left = 0, 0, 0
    every = []
    for k, (name, (xs, ys)) in enumerate(groups.items()):
        x, y, names = _flat(name, xs, ys)
        there = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not log_x)) & ((y > 0) | (not log_y))
        asked, absent = asked + len(x), absent + int(np.sum(~there))
        found = np.flatnonzero(there)
        kept = found[some_runs(len(found), _MAX_DOTS)] if len(found) else found
        left += len(found) - len(kept)
        x, y, names = x[kept], y[kept], [names[i] for i in kept]
        every.append((x, y))
        traces.append(_dots(name, x, y, names, k, x_label, y_label))
        for column, values in zip(table, ([name] * len(x), names, short(x), short(y)), strict=True):
            table[column] += values
    values_x, values_y = ([pair[j] for pair in every] for j in (0, 1))
    if identity:
        traces.append(_identity(np.concatenate(values_x + values_y)))
    style = layout(440, xaxis=axis(x_label, log_x, values_x), yaxis=axis(y_label, log_y, values_y))
    style["shapes"] = reference_lines(lines or {}) + reference_lines(marks or {}, vertical=True)
    style["showlegend"] = True
    alt = alt or f"{title}. {y_label} against {x_label}: one dot for each of {', '.join(groups)}."
    caption = caption or "One dot per word and seed."
    return Figure(
        id,
        title,
        caption,
        alt,
        {"data": traces, "layout": style},
        table,
        _note(asked, absent, left),
    )


def _flat(name: str, xs: Any, ys: Any) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Both as plain rows in one order, with a label for each dot."""
    if hasattr(xs, "dims") and hasattr(ys, "dims"):
        ys = ys.transpose(*xs.dims)
        names = labels_of(xs, list(xs.dims))
        xs, ys = xs.values, ys.values
    else:
        names = [f"{name} {k}" for k in range(np.size(xs))]
    x, y = np.asarray(xs, dtype=float).ravel(), np.asarray(ys, dtype=float).ravel()
    if x.shape != y.shape:
        raise AttnlabError(
            f"group {name!r} has {x.size} values of x and {y.size} of y; expected as many of both"
        )
    return x, y, names


def _dots(
    name: str, x: Any, y: Any, names: list[str], k: int, x_label: str, y_label: str
) -> dict[str, Any]:
    color = SERIES[k % 7]
    marker = {
        "color": faded(color, 0.5),
        "size": 8,
        "symbol": SYMBOLS[k % 7],
        "line": {"color": color, "width": 1},
    }
    hover = f"%{{text}}<br>{plain(x_label)} %{{x:.4~g}}<br>{plain(y_label)} %{{y:.4~g}}<extra>{plain(name)}</extra>"
    data = {"x": short(x), "y": short(y), "text": [plain(n) for n in names], "hovertemplate": hover}
    return {"type": "scatter", "mode": "markers", "name": plain(name), "marker": marker} | data


def _identity(values: np.ndarray) -> dict[str, Any]:
    ends = [float(values.min()), float(values.max())] if len(values) else [0.0, 1.0]
    line = {"color": MUTED, "width": 1.6, "dash": "dot"}
    data = {"x": short(ends), "y": short(ends), "name": "equal", "line": line, "hoverinfo": "skip"}
    return {"type": "scatter", "mode": "lines"} | data


def _note(asked: int, absent: int, left: int) -> str:
    parts = []
    if absent:
        lacks, be = ("lacks", "is") if absent == 1 else ("lack", "are")
        parts.append(f"{absent} of {asked} dots {lacks} a value and {be} not shown.")
    if left:
        parts.append(f"{asked - absent - left} of {asked - absent} dots are drawn and saved.")
    return " ".join(parts)
