"""Pictures side by side: each image alone, then under heat of several kinds, with one part outlined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import INK, MUTED, SKY
from attnlab.report._prepare import layout, of_choice, short
from attnlab.report._text import plain

_ROWS = 4  # images that are shown at once
_GAP, _HEAD, _TOP = 0.1, 0.26, 0.4  # room between pictures, above each and above all, in pictures
_PIXELS = 104  # a picture's side on the page
_STRONG = 4.0  # heat that is drawn strongly, at least: what is nearly even stays pale
# Ink is light on dark and heat is laid over it, in both themes: what lies under the heat stays
# readable.
_GREYS = [[0, "#14181f"], [1, "#f4f6f8"]]
_HEAT = [[0, "rgba(230,159,0,0)"], [0.2, "rgba(230,159,0,0.4)"], [1, "rgba(255,96,0,0.82)"]]
_COLORBAR = {
    "orientation": "h",
    "y": 0,
    "yanchor": "top",
    "x": 0.5,
    "lenmode": "pixels",
    "len": 280,
    "thickness": 12,
    "outlinewidth": 0,
    "ypad": 6,
    "tickfont": {"size": 12, "color": MUTED},
}


@dataclass(frozen=True)
class PictureRow:
    """One image, shown alone and then once for each ``heat`` over it.

    - ``image`` (rows, columns): ink from 0 to 1; ``outlined``, of the same shape: not zero in the
      rectangle that is outlined.
    - ``heats``: of the same shape; up to 1 nothing is drawn, above it the stronger the more.
    - ``words``: what stands above each picture, that of the image alone first.
    """

    image: np.ndarray
    outlined: np.ndarray
    heats: tuple[np.ndarray, ...]
    words: tuple[str, ...]


def pictures_figure(
    rows: Sequence[PictureRow],
    heads: Sequence[str],
    *,
    id: str,
    title: str,
    caption: str,
    alt: str,
    table: Mapping[str, list[Any]],
    note: str = "",
    outline_label: str,
    heat_label: str,
    heat_unit: str,
    choice_label: str = "Images",
) -> Figure:
    """Rows of pictures under ``heads``, one for each heat; the reader chooses which rows.

    ``table`` has the numbers in short; ``heat_unit`` follows a pixel's heat where it is pointed at.
    """
    if not rows:
        raise AttnlabError(f"figure {id!r} has no picture to draw; expected at least one row")
    groups = [range(k, min(k + _ROWS, len(rows))) for k in range(0, len(rows), _ROWS)]
    most = max(_STRONG, max(float(heat.max()) for row in rows for heat in row.heats))
    colorbar = _COLORBAR | {
        "title": {"text": heat_label, "side": "top", "font": {"size": 12, "color": MUTED}}
    }
    traces = [
        [
            *_pictures([rows[k] for k in group], heads, most, heat_unit, colorbar),
            _outlines([rows[k] for k in group], outline_label),
            _words([rows[k] for k in group], heads),
        ]
        for group in groups
    ]
    choices = ()
    if len(groups) > 1:
        choices = tuple(f"{group[0] + 1} to {group[-1] + 1}" for group in groups)
        traces = [[of_choice(trace, k) for trace in own] for k, own in enumerate(traces)]
    return Figure(
        id,
        title,
        caption,
        alt,
        {
            "data": [trace for own in traces for trace in own],
            "layout": _layout(len(heads) + 1, len(groups[0])),
        },
        dict(table),
        note,
        choices=choices,
        choice_label=choice_label,
    )


def _left(column: int) -> float:
    return column * (1 + _GAP)


def _top(row: int) -> float:
    return row * (1 + _HEAD) + _HEAD


def _pictures(
    rows: Sequence[PictureRow],
    heads: Sequence[str],
    most: float,
    unit: str,
    colorbar: dict[str, Any],
) -> list[dict[str, Any]]:
    """All images, and over them all heats."""
    greys, heats = [], []
    for k, row in enumerate(rows):
        grey = np.rint(100 * row.image).astype(int)
        for column in range(len(heads) + 1):
            place = _left(column), _top(k)
            greys.append(_picture(grey, place, _GREYS, -10, 100) | {"hoverinfo": "skip"})
        for column, (head, heat) in enumerate(zip(heads, row.heats, strict=True), start=1):
            drawn = _picture(np.round(heat, 2), (_left(column), _top(k)), _HEAT, 1, most)
            hover = f"%{{z:.2f}} {plain(unit)}<extra>{plain(head)}</extra>"
            scale = {"showscale": not heats, "colorbar": colorbar}
            heats.append(drawn | {"hovertemplate": hover} | scale)
    return [*greys, *heats]


def _picture(
    values: np.ndarray,
    place: tuple[float, float],
    colors: list[list[Any]],
    low: float,
    high: float,
) -> dict[str, Any]:
    """One picture in a square of side 1."""
    (rows, columns), (left, top) = values.shape, place
    where = {"x0": left + 0.5 / columns, "dx": 1 / columns, "y0": top + 0.5 / rows, "dy": 1 / rows}
    where = {key: float(f"{value:.6g}") for key, value in where.items()}
    style = {"colorscale": colors, "zmin": low, "zmax": high, "showscale": False}
    return {"type": "heatmap", "z": values.tolist()} | where | style


def _outlines(rows: Sequence[PictureRow], name: str) -> dict[str, Any]:
    """The border of what is outlined in every picture, with a break after each."""
    x: list[float | None] = []
    y: list[float | None] = []
    for k, row in enumerate(rows):
        height, width = row.outlined.shape
        across = np.flatnonzero(row.outlined.any(axis=0))
        down = np.flatnonzero(row.outlined.any(axis=1))
        for column in range(len(row.heats) + 1):
            x0, x1 = (_left(column) + end / width for end in (across[0], across[-1] + 1))
            y0, y1 = (_top(k) + end / height for end in (down[0], down[-1] + 1))
            x += [*short([x0, x1, x1, x0, x0]), None]
            y += [*short([y0, y0, y1, y1, y0]), None]
    data = {"x": x, "y": y, "name": plain(name), "showlegend": True}
    line = {"color": SKY, "width": 2}
    return {"type": "scatter", "mode": "lines", "line": line, "hoverinfo": "skip"} | data


def _words(rows: Sequence[PictureRow], heads: Sequence[str]) -> dict[str, Any]:
    """The heads of the columns, and what stands above each picture."""
    words = [
        (column, -0.2, f"<b>{plain(head).replace('-', '-<br>', 1)}</b>")
        for column, head in enumerate(["image", *heads])
    ]
    for k, row in enumerate(rows):
        above = enumerate(row.words)
        words += [(column, _top(k) - 0.1, plain(text)) for column, text in above]
    return {
        "type": "scatter",
        "text": [text for _, _, text in words],
        "x": short([_left(column) + 0.5 for column, _, _ in words]),
        "y": short([y for _, y, _ in words]),
        "mode": "text",
        "textfont": {"size": 11, "color": INK},
        "showlegend": False,
        "hoverinfo": "skip",
        "cliponaxis": False,  # a name may be longer than its picture is wide
    }


def _layout(columns: int, rows: int) -> dict[str, Any]:
    width, tall = columns * (1 + _GAP) - _GAP, rows * (1 + _HEAD) + 0.06
    hidden = {"visible": False, "fixedrange": True, "constrain": "domain"}
    style = layout(round(_PIXELS * (tall + _TOP)) + 120, top=36)
    style["xaxis"] = hidden | {"range": [-_GAP, width + _GAP]}
    style["yaxis"] = hidden | {"range": [tall, -_TOP], "scaleanchor": "x", "constraintoward": "top"}
    style["margin"] |= {"l": 6, "r": 6, "b": 76}
    return style
