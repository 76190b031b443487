"""A map of ratios over two settings, in two colours around 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._page import Figure
from attnlab.report._palette import BLUE, INK, PANEL, VERMILLION
from attnlab.report._prepare import axis, layout, short
from attnlab.report._text import interval, number

if TYPE_CHECKING:
    import xarray as xr

_SCALE = [[0.0, BLUE], [0.5, PANEL], [1.0, VERMILLION]]
_WIDE = 2.0  # log₂ of the ratio at which the colours end: 1/4 and 4


def ratio_map(
    ratio: xr.DataArray,
    low: xr.DataArray,
    high: xr.DataArray,
    *,
    id: str,
    title: str,
    x_label: str,
    y_label: str,
    x_names: Sequence[str] | None = None,
    hover: str = "%{x}, %{y}",
    caption: str = "",
) -> Figure:
    """A coloured cell for each ratio (y, x), its number bold where the interval excludes 1.

    ``x_names`` are shown instead of the labels along x; the columns of the data are named after
    the dimensions.
    """
    y_dim, x_dim = (str(dim) for dim in ratio.dims)
    x_values, y_values = ratio[x_dim].values.tolist(), ratio[y_dim].values.tolist()
    values, lows, highs = (each.values.astype(float) for each in (ratio, low, high))
    heat = {
        "type": "heatmap",
        "x": list(x_names) if x_names is not None else [number(x) for x in x_values],
        "y": [number(y) for y in y_values],
        "z": [short(row) for row in np.clip(np.log2(values), -_WIDE, _WIDE)],
        "zmin": -_WIDE,
        "zmax": _WIDE,
        "colorscale": _SCALE,
        "colorbar": {
            "title": {"text": "ratio"},
            "tickvals": [-2, -1, 0, 1, 2],
            "ticktext": ["≤ ¼", "½", "1", "2", "≥ 4"],
            "thickness": 14,
            "outlinewidth": 0,
        },
        "text": _cells(_shown, values, lows, highs),
        "texttemplate": "%{text}",
        "textfont": {"size": 15, "color": INK},
        "customdata": _cells(_with_interval, values, lows, highs),
        "xgap": 2,
        "ygap": 2,
        "showlegend": False,
        "hovertemplate": f"{hover}<br>%{{customdata}}<extra></extra>",
    }
    style = layout(
        150 + 70 * len(y_values),
        xaxis=axis(x_label) | {"type": "category"},
        yaxis=axis(y_label) | {"type": "category"},
    )
    table: dict[str, list[Any]] = {
        x_dim: x_values * len(y_values),
        y_dim: [y for y in y_values for _ in x_values],
        "ratio": short(values.ravel()),
        "low": short(lows.ravel()),
        "high": short(highs.ravel()),
    }
    return Figure(id, title, caption, title, {"data": [heat], "layout": style}, table)


def _cells(say: Any, values: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> list[list[str]]:
    rows = zip(values, lows, highs, strict=True)
    return [[say(*cell) for cell in zip(*row, strict=True)] for row in rows]


def _shown(value: float, low: float, high: float) -> str:
    return f"<b>{number(value, 2)}</b>" if low > 1 or high < 1 else number(value, 2)


def _with_interval(value: float, low: float, high: float) -> str:
    return f"{number(value)} {interval((low, high))}"
