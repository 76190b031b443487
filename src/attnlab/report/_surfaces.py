"""A loss around a point: contours in a plane with a path on them, and on a line between two points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._page import Figure
from attnlab.report._style import BLUE, INK, MUTED, VERMILLION, axis, layout, short
from attnlab.report._words import number, plain, plain_lines

if TYPE_CHECKING:
    import xarray as xr

# From the valley up; the same in both themes, since ink and centre mark are drawn to be seen on all
# of it.
_HEIGHTS = [[0, "#0b4f7d"], [0.35, "#3f93c4"], [0.7, "#b9dcee"], [1, "#f6f1e4"]]


def surface_figure(
    loss: xr.DataArray,
    *,
    id: str,
    title: str,
    caption: str,
    alt: str,
    x_label: str,
    y_label: str,
    centre: str,
    path: tuple[Any, Any, Sequence[str]] | None = None,
) -> Figure:
    """Contours of a loss (a, b), coloured by its logarithm, with the point at (0, 0) marked.

    ``centre`` says what that point is; ``alt`` goes on with the range of the loss. ``path``: a, b
    and a remark for each point of a path over the contours.
    """
    contour, table, (low, high) = _contours(loss)
    traces = [contour, _cross(centre)]
    if path is not None:
        traces.insert(1, _path(*path))
    style = layout(520, xaxis=axis(x_label), yaxis=axis(y_label))
    return Figure(
        id,
        title,
        caption,
        f"{alt} from {number(low)} to {number(high)}.",
        {"data": traces, "layout": style},
        table,
    )


def _path(a: Any, b: Any, remarks: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": short(a),
        "y": short(b),
        "name": "training",
        "line": {"color": "#14181f", "width": 2},
        "marker": {"color": VERMILLION, "size": 5},
        "text": [plain_lines(remark) for remark in remarks],
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }


def barrier_figure(
    path: xr.Dataset,
    *,
    id: str,
    title: str,
    caption: str,
    ends: str,
    x_label: str,
    y_label: str,
) -> Figure:
    """The loss (t) on a straight line between two points, with its barrier.

    ``path`` has the attributes ``barrier``, ``place`` (where it is highest) and perhaps
    ``distance`` of the points, and ``unaligned``, that before alignment. ``ends`` says what they
    are.
    """
    t, loss, barrier = path["t"].values, path["loss"].values, float(path.attrs["barrier"])
    place = float(path.attrs["place"])
    below = (1 - place) * loss[0] + place * loss[-1]
    hover = "t %{x:.3~g}<br>loss %{y:.4~g}<extra></extra>"
    traces: list[dict[str, Any]] = [
        {
            "mode": "lines",
            "x": short(t),
            "y": short(loss),
            "name": "loss on the line",
            "line": {"color": BLUE, "width": 2.4},
            "hovertemplate": hover,
        },
        {
            "mode": "lines+markers",
            "x": [0, 1],
            "y": short(loss[[0, -1]]),
            "name": plain(ends),
            "line": {"color": MUTED, "width": 1.4, "dash": "dot"},
            "marker": {"color": INK, "size": 8},
            "hovertemplate": hover,
        },
        {
            "mode": "lines",
            "x": [place, place],
            "y": short([below, below + barrier]),
            "name": f"barrier {number(barrier)}",
            "line": {"color": VERMILLION, "width": 2.4, "dash": "dash"},
            "hoverinfo": "skip",
        },
    ]
    style = layout(380, xaxis=axis(x_label), yaxis=axis(y_label), showlegend=True)
    apart = ""
    if "distance" in path.attrs:
        before = path.attrs.get("unaligned")
        apart = f" They are {number(path.attrs['distance'])} apart"
        apart += "." if before is None else f" ({number(before)} before alignment)."
    return Figure(
        id,
        title,
        f"{caption}{apart} The barrier is the largest rise above the line between the two losses, "
        "at the points computed; a curved path may be lower.",
        f"The loss rises by {number(barrier)} above the line between {number(loss[0])} and "
        f"{number(loss[-1])}.",
        {"data": [{"type": "scatter"} | trace for trace in traces], "layout": style},
        {"t": short(t), "loss": short(loss)},
    )


def _cross(name: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [0],
        "y": [0],
        "name": plain(name),
        "marker": {
            "symbol": "x",
            "size": 11,
            "color": "#ffffff",
            "line": {"color": "#14181f", "width": 1.5},
        },
        "showlegend": False,
        "hovertemplate": f"{plain(name)}<extra></extra>",
    }


def _contours(values: xr.DataArray) -> tuple[dict[str, Any], dict[str, Any], tuple[float, float]]:
    """Contours of the logarithm of a loss (a, b), the numbers as a table, and the lowest and
    highest of them.
    """
    loss = values.transpose("b", "a")
    a, b, rows = short(loss["a"].values), short(loss["b"].values), loss.values
    heights = np.log10(np.maximum(rows, np.finfo(float).tiny))
    low, high = float(heights.min()), float(heights.max())
    ticks = np.linspace(low, high, 6)
    bar = {
        "title": {"text": "loss", "font": {"size": 13, "color": MUTED}},
        "tickvals": short(ticks),
        "ticktext": [number(10**tick, 2) for tick in ticks],
        "tickfont": {"size": 12, "color": MUTED},
        "outlinewidth": 0,
        "thickness": 14,
    }
    contour = {
        "type": "contour",
        "x": a,
        "y": b,
        "z": [short(row) for row in heights],
        "colorscale": _HEIGHTS,
        "colorbar": bar,
        "contours": {"start": low, "end": high, "size": (high - low) / 20 or 1.0},
        "ncontours": 20,
        "autocontour": False,
        "line": {"width": 0.5, "color": "#ffffff"},
        "showlegend": False,
        "customdata": [short(row) for row in rows],
        "hovertemplate": "a %{x:.3~g}, b %{y:.3~g}<br>loss %{customdata:.4~g}<extra></extra>",
    }
    places = np.meshgrid(loss["a"].values, loss["b"].values)
    table = {
        "a": short(places[0].ravel()),
        "b": short(places[1].ravel()),
        "loss": short(rows.ravel()),
    }
    return contour, table, (10**low, 10**high)
