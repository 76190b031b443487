"""Figures that several claims about needed samples share."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnlab.papers.liu2021.curve_sweeps import Curves
from attnlab.papers.liu2021.sample_figures import tuning_table

GRID = {"student": ["mean", "attention"], "seed": [0, 1]}


def table() -> xr.Dataset:
    """Two students of two seeds each: one chose 0.1 once and 0 once, the other 0 twice."""
    values = {Curves.weight_decay: [[0.1, 0.0], [0.0, 0.0]], Curves.unsettled: [[1, 0], [0, 0]]}
    return xr.Dataset(
        {name: (tuple(GRID), np.array(of, dtype=np.float32)) for name, of in values.items()}, GRID
    )


def test_the_tuning_counts_what_was_chosen_and_what_was_offered():
    figure = tuning_table(table(), id="t", title="t", offered={"weight_decay": (0.0, 0.1, 1.0)})
    assert figure is not None
    assert figure.table == {
        "": ["mean", "attention"],
        "weight decay 0": ["1 of 2", "2 of 2"],
        "weight decay 0.1": ["1 of 2", "0 of 2"],
        "weight decay 1": ["0 of 2", "0 of 2"],
        "still falling": ["50.0 %", "0.0 %"],
    }
    chosen = tuning_table(table(), id="t", title="t")
    assert chosen is not None
    assert list(chosen.table) == ["", "weight decay 0", "weight decay 0.1", "still falling"]
    assert tuning_table(table()[[Curves.unsettled]], id="t", title="t") is None
