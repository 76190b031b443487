"""Tables read at a glance: cells with marks and tints, plain columns, ratios over two settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure, Grid
from attnlab.report._style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    PANEL,
    PAPER,
    VERMILLION,
    axis,
    faded,
    layout,
    short,
)
from attnlab.report._words import interval, number, plain

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.stats import Interval

_SHADES = 5
_MARKS = {"good": "✓ ", "bad": "✗ ", "mixed": "~ "}
_COLORS = {
    "good": faded(GREEN, 0.2),
    "bad": faded(VERMILLION, 0.2),
    "mixed": PANEL,
    "": PAPER,
} | {f"h{k}": faded(BLUE, 0.06 + 0.1 * k) for k in range(_SHADES)}
_RATIO_SCALE = [[0.0, BLUE], [0.5, PANEL], [1.0, VERMILLION]]
_RATIO_WIDE = 2.0  # log₂ of the ratio at which the colours end: 1/4 and 4


def heat_table(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Any]],
    *,
    id: str,
    title: str,
    tones: Sequence[Sequence[str]] | None = None,
    caption: str = "",
    table: Mapping[str, Sequence[Any]] | None = None,
    note: str = "",
) -> Figure:
    """Words or numbers by row and column, as a table whose cells are marked and tinted.

    ``tones`` gives each cell ``good``, ``bad``, ``mixed``, a shade ``h0`` … ``h4`` or an empty
    string; a tone is shown by a mark as well as by colour. Without tones, numbers are tinted by
    their size on a log scale. ``table``: the columns to save, if they are more than what is shown;
    ``note`` says so.

    >>> figure = heat_table(["GD", "Adam"], ["Σs"], [[1e-16], [1.0]], id="keeps", title="Which optimiser keeps what")
    >>> figure.grid.cells, figure.grid.tones
    ((('1 × 10⁻¹⁶',), ('1',)), (('h0',), ('h4',)))
    """
    _check_shape(cells, "cells", len(rows), len(columns))
    if tones is not None:
        _check_shape(tones, "tones", len(rows), len(columns))
    grid = Grid(
        rows=tuple(str(row) for row in rows),
        columns=tuple(str(column) for column in columns),
        cells=tuple(tuple(number(cell) for cell in row) for row in cells),
        tones=_shades(cells) if tones is None else _checked(tones),
    )
    if table is None:
        shown = {name: [row[k] for row in cells] for k, name in enumerate(grid.columns)}
        table = {"": list(grid.rows)} | shown
    saved = {name: [_saved(cell) for cell in column] for name, column in table.items()}
    alt = f"{title}. A table of {', '.join(grid.rows)} by {', '.join(grid.columns)}."
    return Figure(id, title, caption, alt, _drawn(grid), saved, note, grid=grid)


def plain_table(
    rows: Sequence[str],
    columns: Mapping[str, Sequence[Any]],
    *,
    id: str,
    title: str,
    caption: str = "",
    shown: Mapping[str, Sequence[str]] | None = None,
    tones: Mapping[str, Sequence[str]] | None = None,
) -> Figure:
    """Columns of numbers and words under their names; ``shown`` gives the words for a column whose
    numbers are saved.

    ``tones``: column → what `heat_table` takes, for each row.

    >>> table = plain_table(["a"], {"share": [0.5]}, id="t", title="t", shown={"share": ["50 %"]})
    >>> table.grid.cells, table.table["share"]
    ((('50 %',),), [0.5])
    """
    words = dict(columns) | {name: own for name, own in (shown or {}).items() if name in columns}
    marks = {name: (tones or {}).get(name, [""] * len(rows)) for name in columns}
    places = range(len(rows))
    return heat_table(
        rows,
        list(columns),
        [[words[name][k] for name in columns] for k in places],
        id=id,
        title=title,
        caption=caption,
        tones=[[marks[name][k] for name in columns] for k in places],
        table={"": list(rows), **columns},
    )


def tone_of(found: Interval | None, *, least: float = -math.inf, most: float = math.inf) -> str:
    """The tone of a cell: whether the interval lies within two limits, beyond them, or across one.

    >>> from attnlab.stats import Interval
    >>> [tone_of(Interval(0.9, 1.2, 1.0), most=limit) for limit in (0.5, 1.0, 2.0)]
    ['bad', 'mixed', 'good']
    """
    if found is None or not found.exists:
        return ""
    if least <= found.low and found.high <= most:
        return "good"
    return "bad" if found.high < least or found.low > most else "mixed"


def _saved(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, str) else short([cell])[0]


def _check_shape(given: Sequence[Sequence[Any]], what: str, rows: int, columns: int) -> None:
    if len(given) != rows or any(len(row) != columns for row in given):
        raise AttnlabError(
            f"{what} do not fit {rows} rows × {columns} columns; give one entry for each"
        )


def _checked(tones: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    wrong = [tone for row in tones for tone in row if tone not in _COLORS]
    if wrong:
        raise AttnlabError(
            f"got the tone {wrong[0]!r}; expected good, bad, mixed, h0 to h4 or an empty string"
        )
    return tuple(tuple(row) for row in tones)


def _shades(cells: Sequence[Sequence[Any]]) -> tuple[tuple[str, ...], ...]:
    """``h0`` … ``h4`` by size on a log scale; words and zeros stay plain."""
    sizes = [[_size(cell) for cell in row] for row in cells]
    known = [size for row in sizes for size in row if size is not None]
    low, width = (min(known), max(known) - min(known)) if known else (0.0, 0.0)

    def shade(size: float | None) -> str:
        if size is None:
            return ""
        return f"h{min(_SHADES - 1, int(_SHADES * (size - low) / (width or 1.0)))}"

    return tuple(tuple(shade(size) for size in row) for row in sizes)


def _size(cell: Any) -> float | None:
    if cell is None or isinstance(cell, str) or not np.isfinite(cell) or cell == 0:
        return None
    return float(np.log10(abs(cell)))


def _drawn(grid: Grid) -> dict[str, Any]:
    """The same table as a Plotly figure, for the buttons that save an image."""
    tones = list(zip(*grid.tones, strict=True))
    texts = [
        [_MARKS.get(tone, "") + plain(cell) for cell, tone in zip(*pair, strict=True)]
        for pair in zip(zip(*grid.cells, strict=True), tones, strict=True)
    ]
    colors = [[_COLORS[tone] for tone in column] for column in tones]
    table = {
        "type": "table",
        "header": {
            "values": ["", *map(plain, grid.columns)],
            "fill": {"color": PAPER},
            "font": {"color": MUTED, "size": 13},
            "align": "left",
        },
        "cells": {
            "values": [[plain(row) for row in grid.rows], *texts],
            "fill": {"color": [PAPER, *colors]},
            "font": {"color": INK, "size": 13},
            "height": 32,
            "align": "left",
        },
    }
    return {"data": [table], "layout": layout(120 + 34 * len(grid.rows), top=20)}


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
) -> Figure:
    """A coloured cell for each ratio (y, x), its number bold where the interval excludes 1.

    ``x_names`` are shown instead of the labels along x; the columns of the data are named after
    the dimensions.
    """
    y_dim, x_dim = (str(dim) for dim in ratio.dims)
    x_values, y_values = ratio[x_dim].values.tolist(), ratio[y_dim].values.tolist()
    values, lows, highs = (each.values.astype(float) for each in (ratio, low, high))
    excludes_one = (lows > 1) | (highs < 1)
    texts = [
        [f"<b>{number(value, 2)}</b>" if bold else number(value, 2) for value, bold in row]
        for row in map(zip, values, excludes_one)
    ]
    with_intervals = [
        [f"{number(value)} {interval((a, b))}" for value, a, b in row]
        for row in map(zip, values, lows, highs)
    ]
    heat = {
        "type": "heatmap",
        "x": list(x_names) if x_names is not None else [number(x) for x in x_values],
        "y": [number(y) for y in y_values],
        "z": [short(row) for row in np.clip(np.log2(values), -_RATIO_WIDE, _RATIO_WIDE)],
        "zmin": -_RATIO_WIDE,
        "zmax": _RATIO_WIDE,
        "colorscale": _RATIO_SCALE,
        "colorbar": {
            "title": {"text": "ratio"},
            "tickvals": [-2, -1, 0, 1, 2],
            "ticktext": ["≤ ¼", "½", "1", "2", "≥ 4"],
            "thickness": 14,
            "outlinewidth": 0,
        },
        "text": texts,
        "texttemplate": "%{text}",
        "textfont": {"size": 15, "color": INK},
        "customdata": with_intervals,
        "xgap": 2,
        "ygap": 2,
        "showlegend": False,
        "hovertemplate": f"{hover}<br>%{{customdata}}<extra></extra>",
    }
    style = layout(
        150 + 70 * len(y_values),
        xaxis=axis(x_label, type="category"),
        yaxis=axis(y_label, type="category"),
    )
    table: dict[str, list[Any]] = {
        x_dim: x_values * len(y_values),
        y_dim: [y for y in y_values for _ in x_values],
        "ratio": short(values.ravel()),
        "low": short(lows.ravel()),
        "high": short(highs.ravel()),
    }
    return Figure(id, title, "", title, {"data": [heat], "layout": style}, table)
