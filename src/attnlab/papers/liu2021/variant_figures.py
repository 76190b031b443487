"""Figures that several claims about guidelines draw: errors with ever more steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.papers.liu2021.variant_sweeps import LONGER, MOVED, SAMPLES, Ladder
from attnlab.report import Figure, band_figure, heat_table, interval, number

if TYPE_CHECKING:
    import xarray as xr

_NAMES = {
    "softmax": "softmax, T = 1",
    "softmax:0.25": "softmax, T = 0.25",
    "softmax:4": "softmax, T = 4",
    "top1": "top-1",
}


def steps_figures(table: xr.Dataset, prefix: str, where: str) -> list[Figure]:
    """Errors against the number of steps, and the ratios in a table; of a `Ladder`."""
    error = table[Ladder.error].transpose("variant", "seed", "steps")
    runs = {_name(variant): error.sel(variant=variant) for variant in _variants(table)}
    curves = band_figure(
        table["steps"].values,
        runs,
        id=f"{prefix}_steps",
        title=f"The error {where}, with ever more steps",
        log_x=True,
        log_y=True,
        x_label="steps of training",
        y_label="error, E(ŷ − g)² / Var g",
        caption=f"{SAMPLES} samples; every number of steps is a training of its own, whose step "
        "size falls to 1 %. Line: median over seeds; band: 10–90 % of seeds.",
    )
    return [curves, _steps_table(table, prefix)]


def _steps_table(table: xr.Dataset, prefix: str) -> Figure:
    rows, cells = [], []
    variants = _variants(table)
    largest = float(table[Ladder.weight_decay].max())
    for variant in variants:
        for steps in (int(each) for each in table["steps"].values):
            one = table.sel(variant=variant, steps=steps)
            if str(one[Ladder.ratio_kind].values) != "not run":
                rows.append(f"{_name(variant)}, {steps} steps")
                cells.append([*_cells(one), _percent(_share_at(one, largest))])
    said = [f"{_name(each)}: {_converged(table.sel(variant=each))}" for each in variants[1:]]
    return heat_table(
        rows,
        [
            "median error",
            f"over {variants[0]}, equal steps",
            f"over {variants[0]}, {LONGER} × the steps",
            f"moved by {LONGER} × the steps",
            f"weight decay {number(largest)} chosen",
        ],
        cells,
        id=f"{prefix}_table",
        title="Ratios of errors at every number of steps",
        tones=[["" for _ in row] for row in cells],
        caption="Ratios of median errors with 95 % intervals from paired seeds. A variant has "
        f"settled where {LONGER} × the steps move its median error by less than {100 * MOVED:g} %. "
        f"At convergence: {'; '.join(said)}. The last column warns: of the two weight decays "
        "offered, seeds that take the larger one might take a still larger one.",
    )


def _cells(one: xr.Dataset) -> list[str]:
    moved = _percent(float(one[Ladder.moved]))
    error = float(one[Ladder.error].median("seed"))
    return [number(error), _ended(one, Ladder.ratio), _ended(one, Ladder.longer), moved]


def _share_at(one: xr.Dataset, end: float) -> float:
    """The share of seeds whose weight decay is that at the end of the grid."""
    return float((one[Ladder.weight_decay].dropna("seed") == end).mean())


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{share:.0%}".replace("%", " %")


def _ended(one: xr.Dataset, name: str) -> str:
    """A ratio with its interval, where there is one."""
    value, low, high = (float(one[f"{name}{end}"]) for end in ("", "_low", "_high"))
    if not np.isfinite(value):
        return "–"
    if not np.isfinite([low, high]).all():
        return number(value)
    return f"{number(value)} {interval((low, high))}"


def _converged(one: xr.Dataset) -> str:
    kind = str(one[Ladder.converged_kind].values)
    return _ended(one, Ladder.converged) if kind == "exact" else kind


def _variants(table: xr.Dataset) -> list[str]:
    return [str(each) for each in table["variant"].values]


def _name(variant: str) -> str:
    return _NAMES.get(variant, variant)
