"""Figures of the claims about guidelines: errors with ever more steps, the map of sparsity, priors,
the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._bands import band_figure
from attnlab.report._chosen import chosen
from attnlab.report._curves import learning_curves
from attnlab.report._heat import heat_table
from attnlab.report._needed import needed_figure, ratio_figure
from attnlab.report._page import Figure
from attnlab.report._palette import BLUE, INK, PANEL, VERMILLION
from attnlab.report._prepare import axis, layout, short
from attnlab.report._text import interval, number

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_NAMES = {
    "softmax": "softmax, T = 1",
    "softmax:0.25": "softmax, T = 0.25",
    "softmax:4": "softmax, T = 4",
    "top1": "top-1",
}
_SCALE = [[0.0, BLUE], [0.5, PANEL], [1.0, VERMILLION]]
_WIDE = 2.0  # the map's colours end at ratios of 1/4 and 4


def _steps_figures(table: xr.Dataset, prefix: str, where: str) -> list[Figure]:
    """Errors against the number of steps, and the ratios in a table."""
    steps = table["steps"].values
    runs = {
        _NAMES.get(str(v), str(v)): table["error"].sel(variant=v).transpose("seed", "steps")
        for v in table["variant"].values
    }
    return [
        band_figure(
            steps,
            runs,
            id=f"{prefix}_steps",
            title=f"The error {where}, with ever more steps",
            log_x=True,
            log_y=True,
            x_label="steps of training",
            y_label="error, E(ŷ − g)² / Var g",
            caption="1024 samples; every number of steps is a training of its own, whose step "
            "size falls to 1 %. Line: "
            "median over seeds; band: 10–90 % of seeds.",
        ),
        _steps_table(table, prefix),
    ]


def _steps_table(table: xr.Dataset, prefix: str) -> Figure:
    rows, cells = [], []
    first = str(table["variant"].values[0])
    for v in (str(each) for each in table["variant"].values):
        for s in (int(each) for each in table["steps"].values):
            one = table.sel(variant=v, steps=s)
            if str(one["ratio_kind"].values) == "not run":
                continue
            rows.append(f"{_NAMES.get(v, v)}, {s} steps")
            moved = float(one["moved"])
            share = "–" if np.isnan(moved) else f"{moved:.0%}".replace("%", " %")
            error = float(one["error"].median("seed"))
            cells.append([number(error), _ended(one, "ratio"), _ended(one, "longer"), share])
    columns = [
        "median error",
        f"over {first}, equal steps",
        f"over {first}, 4 × the steps",
        "moved by 4 × the steps",
    ]
    said = [
        f"{_NAMES.get(str(v), str(v))}: {_converged(table.sel(variant=v))}"
        for v in table["variant"].values[1:]
    ]
    return heat_table(
        rows,
        columns,
        cells,
        id=f"{prefix}_table",
        title="Ratios of errors at every number of steps",
        tones=[["" for _ in row] for row in cells],
        caption="Ratios of median errors with 95 % intervals from paired seeds. A variant has "
        "settled where 4 × the "
        f"steps move its median error by less than 5 %. At convergence: {'; '.join(said)}.",
    )


def _ended(one: xr.Dataset, name: str) -> str:
    value, low, high = (float(one[f"{name}{end}"]) for end in ("", "_low", "_high"))
    if not np.isfinite(value):
        return "–"
    return (
        f"{number(value)} {interval((low, high))}"
        if np.isfinite([low, high]).all()
        else number(value)
    )


def _converged(one: xr.Dataset) -> str:
    kind = str(one["converged_kind"].values)
    return _ended(one, "converged") if kind == "exact" else kind


def map_figure(table: xr.Dataset, *, id: str) -> Figure:
    """Error over softmax's, by the number of words that matter and the noise; one drawing for each
    variant.
    """
    drawn = {}
    for v in (str(each) for each in table["variant"].values):
        one = table.sel(variant=v).transpose("noise", "relevant")
        drawn[v] = _map(one, id, v)
    first = next(iter(drawn))
    told = table.attrs
    return chosen(
        drawn,
        id=id,
        title="Where sparse attention helps, and where it costs",
        choice_label="Variant",
        caption=f"Error of the variant over softmax's, medians over {told['seeds']} paired seeds, "
        "with "
        f"{told['samples']} samples and {told['steps']} steps. Blue, below 1: it helps; orange, "
        "above 1: it "
        "costs. Bold: the 95 % interval excludes 1.",
        alt="Ratio of errors over the number of relevant words and the noise, for "
        f"{', '.join(drawn)}; first {first}.",
    )


def _map(one: xr.Dataset, id: str, variant: str) -> Figure:
    relevant, noise = one["relevant"].values.tolist(), one["noise"].values.tolist()
    ratio, low, high = (one[f"ratio{end}"].values.astype(float) for end in ("", "_low", "_high"))
    x, y = [f"{r} of {max(relevant)}" for r in relevant], [number(n) for n in noise]
    sure = (low > 1) | (high < 1)
    text = [
        [f"<b>{number(v, 2)}</b>" if s else number(v, 2) for v, s in zip(*row, strict=True)]
        for row in zip(ratio, sure, strict=True)
    ]
    hover = [
        [f"{number(v)} {interval((a, b))}" for v, a, b in zip(*row, strict=True)]
        for row in zip(ratio, low, high, strict=True)
    ]
    bar = {
        "title": {"text": "ratio"},
        "tickvals": [-2, -1, 0, 1, 2],
        "ticktext": ["≤ ¼", "½", "1", "2", "≥ 4"],
        "thickness": 14,
        "outlinewidth": 0,
    }
    heat = {
        "type": "heatmap",
        "x": x,
        "y": y,
        "z": [short(row) for row in np.clip(np.log2(ratio), -_WIDE, _WIDE)],
        "zmin": -_WIDE,
        "zmax": _WIDE,
        "colorscale": _SCALE,
        "colorbar": bar,
        "text": text,
        "texttemplate": "%{text}",
        "textfont": {"size": 15, "color": INK},
        "customdata": hover,
        "xgap": 2,
        "ygap": 2,
        "showlegend": False,
        "hovertemplate": "%{x} words matter, noise %{y}<br>%{customdata}<extra></extra>",
    }
    style = layout(
        150 + 70 * len(noise),
        xaxis=axis("words that matter") | {"type": "category"},
        yaxis=axis("noise σ of the outputs") | {"type": "category"},
    )
    table: dict[str, list[Any]] = {"relevant": [], "noise": [], "ratio": [], "low": [], "high": []}
    for i, n in enumerate(noise):
        for j, r in enumerate(relevant):
            cell = (r, n, *short([ratio[i, j], low[i, j], high[i, j]]))
            for column, value in zip(table, cell, strict=True):
                table[column].append(value)
    return Figure(id, variant, "", variant, {"data": [heat], "layout": style}, table)


def _helps(data: Data) -> list[Figure]:
    return _steps_figures(data["hard teacher"], "hard", "where one word matters")


def _hurts(data: Data) -> list[Figure]:
    return [
        map_figure(data["map"], id="sparsity_map"),
        *_steps_figures(data["dense teacher"], "dense", "where all words matter"),
    ]


def _high(data: Data) -> list[Figure]:
    return _steps_figures(
        data["hard teacher"].sel(variant=["softmax", "softmax:4"]), "high", "where one word matters"
    )


def _prior(data: Data) -> list[Figure]:
    table = data["prior"]
    return [
        learning_curves(
            table, id="prior_curves", title="Learning curves with known attention as a prior"
        ),
        needed_figure(table, id="prior_needed", title="Samples needed with and without a prior"),
        ratio_figure(
            table, id="prior_ratio", title="How many times fewer samples than without a prior"
        ),
    ]


GUIDELINE_FIGURES: dict[str, Callable[[Data], list[Figure]]] = {
    "liu2021.sparse_helps_hard": _helps,
    "liu2021.sparse_hurts_dense": _hurts,
    "liu2021.high_temperature_hurts": _high,
    "liu2021.prior_helps": _prior,
}
