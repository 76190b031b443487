"""A table read at a glance: which optimiser keeps what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure, Grid
from attnlab.report._palette import BLUE, GREEN, INK, MUTED, PANEL, PAPER, VERMILLION, faded
from attnlab.report._prepare import layout, short
from attnlab.report._text import number, plain

_TONES = ("good", "bad", "mixed", "")
_SHADES = 5
_MARKS = {"good": "✓ ", "bad": "✗ ", "mixed": "~ "}


def heat_table(
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Sequence[Sequence[Any]],
    *,
    id: str,
    title: str,
    tones: Sequence[Sequence[str]] | None = None,
    caption: str = "",
    alt: str = "",
    table: Mapping[str, Sequence[Any]] | None = None,
    note: str = "",
) -> Figure:
    """Words or numbers by row and column, as a table whose cells are marked and tinted.

    ``tones`` gives each cell ``good``, ``bad``, ``mixed`` or an empty string; a tone is shown by a
    mark as well as by colour. Without tones, numbers are tinted by their size on a log scale.
    ``table``: the columns to save, if they are more than what is shown; ``note`` says so.

    >>> figure = heat_table(["GD", "Adam"], ["Σs"], [[1e-16], [1.0]], id="keeps", title="Which optimiser keeps what")
    >>> figure.grid.cells, figure.grid.tones
    ((('1 × 10⁻¹⁶',), ('1',)), (('h0',), ('h4',)))
    """
    shape = (len(rows), len(columns))
    for given, what in ((cells, "cells"), (tones or cells, "tones")):
        if len(given) != shape[0] or any(len(row) != shape[1] for row in given):
            raise AttnlabError(
                f"{what} do not fit {shape[0]} rows × {shape[1]} columns; give one entry for each"
            )
    marks = _shades(cells) if tones is None else _checked(tones)
    grid = Grid(
        rows=tuple(str(row) for row in rows),
        columns=tuple(str(column) for column in columns),
        cells=tuple(tuple(number(cell) for cell in row) for row in cells),
        tones=marks,
    )
    shown = {str(column): [row[k] for row in cells] for k, column in enumerate(columns)}
    saved = {"": list(grid.rows)} | shown if table is None else table
    values = {name: [_value(cell) for cell in column] for name, column in saved.items()}
    alt = alt or f"{title}. A table of {', '.join(grid.rows)} by {', '.join(grid.columns)}."
    return Figure(id, title, caption, alt, _drawn(grid), values, note, grid=grid)


def _value(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, str) else short([cell])[0]


def _checked(tones: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    wrong = [tone for row in tones for tone in row if tone not in _TONES]
    if wrong:
        raise AttnlabError(
            f"got the tone {wrong[0]!r}; expected good, bad, mixed or an empty string"
        )
    return tuple(tuple(row) for row in tones)


def _shades(cells: Sequence[Sequence[Any]]) -> tuple[tuple[str, ...], ...]:
    """``h0`` … ``h4`` by size on a log scale; words and zeros stay plain."""
    sizes = [[_size(cell) for cell in row] for row in cells]
    known = [size for row in sizes for size in row if size is not None]
    low, width = (min(known), max(known) - min(known)) if known else (0.0, 0.0)

    def shade(size: float | None) -> str:
        return (
            ""
            if size is None
            else f"h{min(_SHADES - 1, int(_SHADES * (size - low) / (width or 1.0)))}"
        )

    return tuple(tuple(shade(size) for size in row) for row in sizes)


def _size(cell: Any) -> float | None:
    if cell is None or isinstance(cell, str) or not np.isfinite(cell) or cell == 0:
        return None
    return float(np.log10(abs(cell)))


def _drawn(grid: Grid) -> dict[str, Any]:
    """The same table as a Plotly figure, for the buttons that save an image."""
    colors = {"good": faded(GREEN, 0.2), "bad": faded(VERMILLION, 0.2), "mixed": PANEL, "": PAPER}
    colors |= {f"h{k}": faded(BLUE, 0.06 + 0.1 * k) for k in range(_SHADES)}
    by_column = list(zip(*grid.cells, strict=True))
    tones = list(zip(*grid.tones, strict=True))
    texts = [
        [_MARKS.get(t, "") + plain(c) for c, t in zip(*pair, strict=True)]
        for pair in zip(by_column, tones, strict=True)
    ]
    font = {"color": INK, "size": 13}
    head = {
        "values": ["", *map(plain, grid.columns)],
        "fill": {"color": PAPER},
        "font": {"color": MUTED, "size": 13},
    }
    fill = {"color": [PAPER, *[[colors[tone] for tone in column] for column in tones]]}
    body = {
        "values": [[plain(row) for row in grid.rows], *texts],
        "fill": fill,
        "font": font,
        "height": 32,
    }
    table = {"type": "table", "header": head | {"align": "left"}, "cells": body | {"align": "left"}}
    return {"data": [table], "layout": layout(120 + 34 * len(grid.rows), top=20)}
