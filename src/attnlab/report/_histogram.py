"""Where the values of several groups lie: histograms over each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import DASHES, SERIES, faded
from attnlab.report._prepare import axis, layout, short
from attnlab.report._text import plain


def histogram_figure(
    groups: Mapping[str, Any],
    *,
    id: str,
    title: str,
    caption: str = "",
    alt: str = "",
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
        traces.append(_outline(name, edges, counts, shares[-1], k, x_label, y_label, log_y))
        table |= {f"{name}: {y_label}": short(shares[-1]), f"{name}: count": counts.tolist()}
    lost = sum(len(rows[name]) - len(finite[name]) for name in rows)
    note = (
        f"{lost} value{' is' if lost == 1 else 's are'} not finite and not counted." if lost else ""
    )
    style = layout(400, xaxis=axis(x_label), yaxis=axis(y_label, log_y, shares), barmode="overlay")
    style["showlegend"] = True
    alt = alt or f"{title}. Histograms of {', '.join(rows)} over the same bins of {x_label}."
    caption = caption or f"{y_label.capitalize()} in {len(edges) - 1} bins of equal width."
    return Figure(id, title, caption, alt, {"data": traces, "layout": style}, table, note)


def _outline(
    name: str,
    edges: np.ndarray,
    counts: np.ndarray,
    share: np.ndarray,
    k: int,
    x_label: str,
    y_label: str,
    log: bool,
) -> dict[str, Any]:
    """Bars that touch, each from edge to edge; an empty one is absent on a logarithmic axis."""
    color = SERIES[k % 7]
    text = [
        f"{plain(x_label)} {a:.4g} to {b:.4g}<br>{int(n)} of {int(counts.sum())}"
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    heights = [None if log and value == 0 else value for value in short(share)]
    marker = {"color": faded(color, 0.45), "line": {"color": color, "width": 1}}
    if DASHES[k % 7] != "solid":
        marker["pattern"] = {"shape": "/", "size": 6, "solidity": 0.25, "fgcolor": color}
    data = {
        "x": short((edges[:-1] + edges[1:]) / 2),
        "y": heights,
        "width": short(np.diff(edges)),
        "text": text,
    }
    hover = f"%{{text}}<br>{plain(y_label)} %{{y:.3~g}}<extra>{plain(name)}</extra>"
    return {
        "type": "bar",
        "name": plain(name),
        "marker": marker,
        "hovertemplate": hover,
        "textposition": "none",
    } | data
