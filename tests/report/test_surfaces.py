"""Contours of a loss with a path, and a loss between two points."""

from __future__ import annotations

import numpy as np
import xarray as xr

from attnlab.report import barrier_figure, surface_figure


def test_contours_have_their_centre_and_a_path():
    places = np.linspace(-1, 1, 3)
    loss = xr.DataArray(
        1 + places[:, None] ** 2 + places[None] ** 2, {"a": places, "b": places}, ("a", "b")
    )
    figure = surface_figure(
        loss,
        id="f",
        title="t",
        caption="",
        alt="Contours",
        x_label="a",
        y_label="b",
        centre="<here>",
        path=([1.0, 0.0], [0.5, 0.0], ["step 0\nloss 2", "step <1>"]),
    )
    contour, path, cross = figure.plotly["data"]
    assert contour["customdata"][1] == [2.0, 1.0, 2.0]
    assert path["text"] == ["step 0<br>loss 2", "step &lt;1&gt;"]
    assert cross["hovertemplate"] == "&lt;here&gt;<extra></extra>"
    assert figure.alt == "Contours from 1 to 3."
    assert figure.table["loss"] == [3.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 3.0]


def test_a_barrier_stands_on_the_line_between_the_ends():
    path = xr.Dataset(
        {"loss": ("t", [1.0, 4.0, 3.0])},
        {"t": [0.0, 0.5, 1.0]},
        attrs={"barrier": 2.0, "place": 0.5, "distance": 7.0},
    )
    figure = barrier_figure(
        path, id="f", title="t", caption="A line.", ends="ends", x_label="t", y_label="loss"
    )
    barrier = figure.plotly["data"][-1]
    assert (barrier["x"], barrier["y"]) == ([0.5, 0.5], [2.0, 4.0])
    assert figure.caption.startswith("A line. They are 7 apart.")
