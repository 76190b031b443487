"""Two quantities against each other, a dot or a thin line for each entry; and how values of groups
are spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._style import (
    BLUE,
    MUTED,
    VERMILLION,
    axis,
    color_of,
    dash_of,
    faded,
    hidden_note,
    labels_of,
    layout,
    lines_of,
    one_note,
    reference_lines,
    short,
    some_runs,
    symbol_of,
    thinned,
)
from attnlab.report._words import plain

if TYPE_CHECKING:
    import xarray as xr

_DOTS = 600  # dots of a group that are drawn
_LINES, _LINE_POINTS = 40, 60  # lines of a group that are drawn, and points of each
_MOVING_DOTS, _FRAMES = 240, 32  # dots under a slider, and places of the slider


def scatter_figure(
    groups: Mapping[str, tuple[Any, Any]],
    *,
    id: str,
    title: str,
    caption: str = "",
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
    table = _group_table(x_label, y_label)
    asked, absent, left = 0, 0, 0
    every_x, every_y = [], []
    for k, (name, (xs, ys)) in enumerate(groups.items()):
        x, y, names = _flat(name, xs, ys)
        there = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not log_x)) & ((y > 0) | (not log_y))
        found = np.flatnonzero(there)
        kept = found[some_runs(len(found), _DOTS)] if len(found) else found
        asked, absent, left = (
            asked + len(x),
            absent + len(x) - len(found),
            left + len(found) - len(kept),
        )
        x, y, names = x[kept], y[kept], [names[i] for i in kept]
        every_x.append(x)
        every_y.append(y)
        traces.append(_dots(name, x, y, names, (x_label, y_label), color_of(k), symbol_of(k)))
        _add_group(table, [name] * len(x), names, x, y)
    if identity:
        traces.append(_identity(np.concatenate(every_x + every_y)))
    style = layout(440, xaxis=axis(x_label, log_x, every_x), yaxis=axis(y_label, log_y, every_y))
    style["shapes"] = reference_lines(lines or {}) + reference_lines(marks or {}, vertical=True)
    style["showlegend"] = True
    return Figure(
        id,
        title,
        caption or "One dot per word and seed.",
        f"{title}. {y_label} against {x_label}: one dot for each of {', '.join(groups)}.",
        {"data": traces, "layout": style},
        table,
        _dots_note(asked, absent, left),
    )


def _group_table(x_label: str, y_label: str) -> dict[str, list[Any]]:
    return {"group": [], "label": [], x_label: [], y_label: []}


def _add_group(
    table: dict[str, list[Any]],
    groups: Sequence[str],
    names: Sequence[str],
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    """Append the entries of a group to the four columns of `_group_table`."""
    for column, values in zip(table, (groups, names, short(x), short(y)), strict=True):
        table[column] += values


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


def _hover(name: str, labels: tuple[str, str]) -> str:
    """What is shown of the dot that is pointed at: its own text, x and y."""
    x_label, y_label = (plain(label) for label in labels)
    return (
        f"%{{text}}<br>{x_label} %{{x:.4~g}}<br>{y_label} %{{y:.4~g}}<extra>{plain(name)}</extra>"
    )


def _dots(
    name: str,
    x: np.ndarray,
    y: np.ndarray,
    names: Sequence[str],
    labels: tuple[str, str],
    color: str,
    symbol: str,
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(name),
        "marker": {
            "color": faded(color, 0.5),
            "size": 8,
            "symbol": symbol,
            "line": {"color": color, "width": 1},
        },
        "x": short(x),
        "y": short(y),
        "text": [plain(each) for each in names],
        "hovertemplate": _hover(name, labels),
    }


def _identity(values: np.ndarray) -> dict[str, Any]:
    ends = [float(values.min()), float(values.max())] if len(values) else [0.0, 1.0]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": short(ends),
        "y": short(ends),
        "name": "equal",
        "line": {"color": MUTED, "width": 1.6, "dash": "dot"},
        "hoverinfo": "skip",
    }


def _dots_note(asked: int, absent: int, left: int) -> str:
    parts = []
    if absent:
        lacks, be = ("lacks", "is") if absent == 1 else ("lack", "are")
        parts.append(f"{absent} of {asked} dots {lacks} a value and {be} not shown.")
    if left:
        parts.append(f"{asked - absent - left} of {asked - absent} dots are drawn and saved.")
    return " ".join(parts)


def relation_figure(
    x: xr.DataArray,
    y: xr.DataArray,
    predicted: tuple[Any, Any],
    *,
    id: str,
    title: str,
    caption: str = "",
    x_label: str = "x",
    y_label: str = "y",
) -> Figure:
    """One dot per word and seed at (x, y), the curve ``predicted = (xs, ys)`` and a slider over
    steps; ``x`` and ``y`` have the same dimensions, among them ``step``.

    >>> import xarray as xr
    >>> s = xr.DataArray([[0, 0], [1, 2.0]], {"step": [0, 10], "seed": [3, 4]}, ("step", "seed"))
    >>> figure = relation_figure(s, s**2, ([0, 2], [0, 4]), id="r", title="R")
    >>> [frame["name"] for frame in figure.plotly["frames"]], figure.table["label"][:2]
    (['0', '10'], ['seed 3', 'seed 4'])
    """
    if set(x.dims) != set(y.dims) or x.sizes != y.sizes:
        raise AttnlabError(
            f"x has the dimensions {dict(x.sizes)}, y has {dict(y.sizes)}; expected the same"
        )
    (xs, names), (ys, _) = lines_of(x), lines_of(y.transpose(*x.dims))
    dots, moments = some_runs(len(names), _MOVING_DOTS), some_runs(xs.shape[1], _FRAMES)
    names = [names[k] for k in dots]
    steps = x["step"].values[moments].tolist()
    shown_x, shown_y = (values[dots][:, moments].T for values in (xs, ys))
    frames = [
        {"name": str(step), "data": [{"x": short(a), "y": short(b)}], "traces": [0]}
        for step, a, b in zip(steps, shown_x, shown_y, strict=True)
    ]
    curve_x, curve_y = (np.asarray(values, dtype=float) for values in predicted)
    measured = _dots(
        "measured", shown_x[-1], shown_y[-1], names, (x_label, y_label), BLUE, "circle"
    )
    style = layout(
        460,
        xaxis=axis(x_label, range=_span(xs, curve_x)),
        yaxis=axis(y_label, range=_span(ys, curve_y)),
    )
    words = f"{y_label} against {x_label} of every word and seed, with the predicted curve, over"
    return Figure(
        id,
        title,
        caption
        or "Each dot is a word in one run; the dashed curve is the prediction. Move the slider "
        "through training.",
        f"{title}. {words} training.",
        {"data": [measured, _curve(curve_x, curve_y)], "layout": style, "frames": frames},
        {
            "step": [step for step in steps for _ in dots],
            "label": names * len(moments),
            x_label: short(shown_x.ravel()),
            y_label: short(shown_y.ravel()),
        },
        _frames_note(len(dots), len(moments), xs.shape),
    )


def _curve(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    kept = thinned(x, lines=1)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "theory",
        "line": {"color": VERMILLION, "width": 2.4, "dash": "dash"},
        "hoverinfo": "skip",
        "x": short(x[kept]),
        "y": short(y[kept]),
    }


def _span(*values: np.ndarray) -> list[float]:
    """One range for all steps, so that the axes stand still while the dots move."""
    every = np.concatenate([array[np.isfinite(array)].ravel() for array in values])
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    room = 0.05 * (high - low) or 1.0
    return [low - room, high + room]


def _frames_note(dots: int, moments: int, recorded: tuple[int, ...]) -> str:
    every_dot, every_step = recorded
    return one_note(
        f"{dots} of {every_dot} dots are drawn and saved." if dots < every_dot else "",
        f"{moments} of {every_step} recorded steps are on the slider and saved."
        if moments < every_step
        else "",
    )


def paths_figure(
    groups: Mapping[str, tuple[Any, Any]],
    *,
    id: str,
    title: str,
    caption: str = "",
    x_label: str = "x",
    y_label: str = "y",
    log_x: bool = False,
    reverse_x: bool = False,
    ends: bool = False,
    lines: Mapping[str, float] | None = None,
    most: int = _LINES,
) -> Figure:
    """One thin line per entry of each group; lines without any value are no lines.

    ``groups``: name → (x, y), labelled arrays with the dimension ``step``; x may be the steps alone,
    shared by all lines. ``ends`` marks where each line stops; at most ``most`` lines of a group are
    drawn.

    >>> import xarray as xr
    >>> y = xr.DataArray([[0.0, 1.0]], {"seed": [3], "step": [0, 10]}, ("seed", "step"))
    >>> paths_figure({"rising": (y.step, y)}, id="f", title="t").table["label"]
    ['seed 3', 'seed 3']
    """
    if not groups:
        raise AttnlabError(f"figure {id!r} has no lines to draw; expected name → (x, y)")
    traces: list[dict[str, Any]] = []
    table = _group_table(x_label, y_label)
    counts, points = [0, 0], [0, 0]  # drawn and all: lines, and points of the longest line
    every_x = []
    for k, (name, (xs, ys)) in enumerate(groups.items()):
        x, y, names, found = _lines(xs, ys, most)
        kept = _thin(x, log_x)
        points = max(points, [len(kept), x.shape[1]], key=lambda pair: pair[1])
        counts = [counts[0] + len(names), counts[1] + found]
        x, y = x[:, kept], y[:, kept]
        every_x.append(x)
        traces.append(_path_trace(name, x, y, names, (x_label, y_label), k))
        if ends and len(x):
            traces.append(_path_ends(name, x, y, color_of(k)))
        labels = np.repeat(names, len(kept)).tolist()
        _add_group(table, [name] * x.size, labels, x.ravel(), y.ravel())
    style = layout(440, xaxis=axis(x_label, log_x, every_x), yaxis=axis(y_label))
    style["showlegend"] = True
    style["shapes"] = reference_lines(lines or {})
    if reverse_x:
        style["xaxis"]["autorange"] = "reversed"
    return Figure(
        id,
        title,
        caption or "One thin line per word and seed.",
        f"{title}. {y_label} against {x_label}: thin lines of {', '.join(groups)}.",
        {"data": traces, "layout": style},
        table,
        one_note(_paths_note(counts, points), hidden_note(every_x, log_x)),
    )


def _lines(xs: Any, ys: Any, most: int) -> tuple[np.ndarray, np.ndarray, list[str], int]:
    """x and y (line × point) of the lines that are drawn, their labels, and how many there are."""
    y, names = lines_of(ys)
    if tuple(xs.dims) == ("step",):
        x = np.broadcast_to(xs.values.astype(float), y.shape)
    else:
        others = [dim for dim in ys.dims if dim != "step"]
        x, _ = lines_of(xs.broadcast_like(ys).transpose(*others, "step"))
    there = np.flatnonzero(np.isfinite(x * y).any(axis=1))
    kept = there[some_runs(len(there), most)] if len(there) else there
    return x[kept], y[kept], [names[i] for i in kept], len(there)


def _thin(x: np.ndarray, log: bool) -> np.ndarray:
    """Points along the lines: even over the axis where the lines share it, else even along the
    lines.
    """
    count = x.shape[1]
    if count <= _LINE_POINTS:
        return np.arange(count)
    if log and len(x) and (np.diff(x[0]) > 0).all():
        return thinned(x[0], lines=1, log=True, most=_LINE_POINTS)
    # Training happens early: along paths, more points where steps are first.
    later = np.geomspace(1, count - 1, _LINE_POINTS - 1).round().astype(int)
    return np.unique(np.concatenate([[0], later]))


def _path_trace(
    name: str,
    x: np.ndarray,
    y: np.ndarray,
    names: Sequence[str],
    labels: tuple[str, str],
    k: int,
) -> dict[str, Any]:
    """All lines of the k-th group in one trace, with gaps between them."""
    flat_x, flat_y, text = [], [], []
    for row_x, row_y, label in zip(x, y, names, strict=True):
        flat_x += [*short(row_x), None]
        flat_y += [*short(row_y), None]
        text += [plain(label)] * (len(row_x) + 1)
    return {
        "type": "scatter",
        "name": plain(name),
        "legendgroup": plain(name),
        "mode": "lines",
        "line": {"color": faded(color_of(k), 0.6), "width": 1.3, "dash": dash_of(k)},
        "x": flat_x,
        "y": flat_y,
        "text": text,
        "hovertemplate": _hover(name, labels),
    }


def _path_ends(name: str, x: np.ndarray, y: np.ndarray, color: str) -> dict[str, Any]:
    """A dot where each line ends."""
    stops = [np.flatnonzero(np.isfinite(row))[-1] for row in x * y]
    rows = np.arange(len(stops))
    return {
        "type": "scatter",
        "name": plain(name),
        "legendgroup": plain(name),
        "mode": "markers",
        "marker": {"color": color, "size": 6},
        "showlegend": False,
        "hoverinfo": "skip",
        "x": short(x[rows, stops]),
        "y": short(y[rows, stops]),
    }


def _paths_note(counts: list[int], points: list[int]) -> str:
    lines = f"{counts[0]} of {counts[1]} lines" if counts[0] < counts[1] else ""
    dots = f"{points[0]} of {points[1]} recorded points of each" if points[0] < points[1] else ""
    said = " and ".join(filter(None, (lines, dots)))
    return f"{said} are drawn and saved." if said else ""


def histogram_figure(
    groups: Mapping[str, Any],
    *,
    id: str,
    title: str,
    caption: str = "",
    x_label: str = "value",
    y_label: str = "share of the group",
    bins: int = 48,
    log_y: bool = False,
) -> Figure:
    """The share of each group in bins that all groups have in common; what is not finite is left
    out and counted.

    >>> figure = histogram_figure({"a": [0, 0, 1], "b": [1, np.nan]}, id="f", title="t", bins=2)
    >>> figure.table["a: share of the group"], figure.table["b: count"], figure.note
    ([0.666667, 0.333333], [0, 1], '1 value is not finite and not counted.')
    """
    rows = {name: np.asarray(values, dtype=float).ravel() for name, values in groups.items()}
    finite = {name: row[np.isfinite(row)] for name, row in rows.items()}
    every = np.concatenate(list(finite.values())) if finite else np.zeros(0)
    if not len(every):
        raise AttnlabError(f"figure {id!r} has no finite value to count; expected name → values")
    edges = np.histogram_bin_edges(every, bins)
    traces, table = [], {f"{x_label} from": short(edges[:-1]), f"{x_label} to": short(edges[1:])}
    shares = []
    for k, (name, row) in enumerate(finite.items()):
        counts = np.histogram(row, edges)[0]
        shares.append(counts / max(len(row), 1))
        heights = short(shares[-1])
        table |= {f"{name}: {y_label}": heights, f"{name}: count": counts.tolist()}
        if log_y:  # an empty bar is absent on a logarithmic axis
            heights = [value or None for value in heights]
        traces.append(_bars(name, edges, counts, heights, k, (x_label, y_label)))
    lost = sum(map(len, rows.values())) - len(every)
    be = "is" if lost == 1 else "are"
    style = layout(400, xaxis=axis(x_label), yaxis=axis(y_label, log_y, shares), barmode="overlay")
    style["showlegend"] = True
    return Figure(
        id,
        title,
        caption or f"{y_label.capitalize()} in {len(edges) - 1} bins of equal width.",
        f"{title}. Histograms of {', '.join(rows)} over the same bins of {x_label}.",
        {"data": traces, "layout": style},
        table,
        f"{lost} value{'s' * (lost > 1)} {be} not finite and not counted." if lost else "",
    )


def _bars(
    name: str,
    edges: np.ndarray,
    counts: np.ndarray,
    heights: list[Any],
    k: int,
    labels: tuple[str, str],
) -> dict[str, Any]:
    """Bars that touch, each from edge to edge."""
    color = color_of(k)
    x_label, y_label = (plain(label) for label in labels)
    text = [
        f"{x_label} {a:.4g} to {b:.4g}<br>{int(n)} of {int(counts.sum())}"
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    marker: dict[str, Any] = {"color": faded(color, 0.45), "line": {"color": color, "width": 1}}
    if dash_of(k) != "solid":
        marker["pattern"] = {"shape": "/", "size": 6, "solidity": 0.25, "fgcolor": color}
    return {
        "type": "bar",
        "name": plain(name),
        "marker": marker,
        "hovertemplate": f"%{{text}}<br>{y_label} %{{y:.3~g}}<extra>{plain(name)}</extra>",
        "textposition": "none",
        "x": short((edges[:-1] + edges[1:]) / 2),
        "y": heights,
        "width": short(np.diff(edges)),
        "text": text,
    }
