"""Shares with their intervals, a row each, named above the bar so that a phone can hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.report._page import Figure
from attnlab.report._palette import PAPER, SERIES, SYMBOLS
from attnlab.report._prepare import axis, layout, short
from attnlab.report._shown import percent
from attnlab.report._text import interval


@dataclass(frozen=True)
class ShareRow:
    """A share with its interval; ``short`` is the label that is drawn, ``label`` the one in words."""

    label: str
    short: str
    value: float
    low: float
    high: float

    @property
    def said(self) -> str:
        """The share and its interval in per cent."""
        return f"{percent(self.value)} {interval((100 * self.low, 100 * self.high))}"


def shares_figure(
    rows: Sequence[ShareRow],
    *,
    id: str,
    title: str,
    caption: str,
    alt: str,
    x_label: str,
    columns: tuple[str, str],
    hover: str = "",
) -> Figure:
    """One share a row on an axis from zero; ``columns`` name labels and shares in the CSV file."""
    ends = [end for row in rows for end in (row.value, row.low, row.high) if np.isfinite(end)]
    style = layout(130 + 52 * len(rows), xaxis=axis(x_label, tickformat=".0~%"))
    style["xaxis"]["range"] = [0, 1.1 * max(ends, default=1.0) or 1.0]
    style["yaxis"] = {"range": [len(rows) - 0.4, -0.9], "visible": False, "fixedrange": True}
    style["margin"]["l"] = 18
    style["annotations"] = [_label(k, row) for k, row in enumerate(rows)]
    style["showlegend"] = False
    table: dict[str, list[Any]] = {
        columns[0]: [row.label for row in rows],
        columns[1]: short([row.value for row in rows]),
        "low": short([row.low for row in rows]),
        "high": short([row.high for row in rows]),
    }
    said = "; ".join(f"{row.label}: {row.said}" for row in rows)
    drawn = {"data": [_mark(k, row, hover) for k, row in enumerate(rows)], "layout": style}
    return Figure(id, title, caption, f"{alt} {said}.", drawn, table)


def _mark(k: int, row: ShareRow, hover: str) -> dict[str, Any]:
    color = SERIES[k % 7]
    bar = {
        "type": "data",
        "symmetric": False,
        "color": color,
        "thickness": 2,
        "width": 5,
        "array": short([row.high - row.value]),
        "arrayminus": short([row.value - row.low]),
    }
    return {
        "type": "scatter",
        "mode": "markers",
        "name": row.label,
        "x": short([row.value]),
        "y": [k + 0.16],
        "error_x": bar,
        "marker": {"color": color, "size": 11, "symbol": SYMBOLS[k % 7]},
        "hovertemplate": f"{hover}{row.label}: %{{x:.3~p}}<extra></extra>",
    }


def _label(k: int, row: ShareRow) -> dict[str, Any]:
    return {
        "xref": "x domain",
        "x": 0,
        "xanchor": "left",
        "y": k - 0.2,
        "yanchor": "middle",
        "showarrow": False,
        "text": f"<b>{row.short}</b>   {row.said}",
        "font": {"size": 13},
        "bgcolor": PAPER,
    }
