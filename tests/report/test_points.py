"""Dots, paths, relations under a slider, histograms."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.report import histogram_figure, paths_figure, relation_figure, scatter_figure

GRID = {"seed": [3, 4], "word": ["good", "bad"], "step": [0, 1, 2]}


def labelled(values, dims=("seed", "word", "step")) -> xr.DataArray:
    return xr.DataArray(np.asarray(values, float), {d: GRID[d] for d in dims}, dims)


def test_dots_are_named_by_seed_and_word_in_any_order_of_dimensions():
    x = labelled([[1, 2], [3, np.inf]], ("seed", "word"))
    figure = scatter_figure(
        {"a": (x, (10 * x).transpose("word", "seed"))}, id="f", title="t", identity=True
    )
    assert figure.table["label"] == ["seed 3 · good", "seed 3 · bad", "seed 4 · good"]
    assert figure.table["y"] == [10, 20, 30]
    assert figure.note == "1 of 4 dots lacks a value and is not shown."
    assert figure.plotly["data"][-1]["x"] == [1, 30]


def test_many_dots_are_thinned_and_said():
    figure = scatter_figure({"a": (np.arange(5000), np.arange(5000))}, id="f", title="t")
    assert len(figure.table["x"]) == 600
    assert figure.note == "600 of 5000 dots are drawn and saved."


def test_relation_moves_over_steps():
    coords = {"seed": [0, 1], "step": [0, 5, 10], "word": ["a", "b"]}
    score = xr.DataArray(
        np.arange(12.0).reshape(2, 3, 2), dims=("seed", "step", "word"), coords=coords
    )
    figure = relation_figure(score, score, ([0, 11], [0, 11]), id="f", title="t")
    assert [frame["name"] for frame in figure.plotly["frames"]] == ["0", "5", "10"]
    assert figure.plotly["data"][0]["x"] == [4, 5, 10, 11]
    assert figure.plotly["data"][0]["text"] == [
        "seed 0 · a",
        "seed 0 · b",
        "seed 1 · a",
        "seed 1 · b",
    ]
    assert len(figure.table["label"]) == 12


def test_paths_have_gaps_between_lines_and_leave_out_empty_ones():
    y = labelled(np.arange(12.0).reshape(2, 2, 3))
    figure = paths_figure({"a": (y.step, y.where(y.word == "bad"))}, id="f", title="t", ends=True)
    line, ends = figure.plotly["data"]
    assert line["y"] == [3, 4, 5, None, 9, 10, 11, None]
    assert line["x"][:4] == [0, 1, 2, None]
    assert ends["y"] == [5, 11]
    assert set(figure.table["label"]) == {"seed 3 · bad", "seed 4 · bad"}


def test_paths_say_what_they_leave_out():
    y = xr.DataArray(np.ones((90, 300)), {"seed": range(90), "step": range(300)}, ("seed", "step"))
    figure = paths_figure({"a": (2 * y, y)}, id="f", title="t")
    assert len(figure.table["step" if "step" in figure.table else "x"]) <= 40 * 60
    assert figure.note.startswith("40 of 90 lines and ")


def test_histograms_share_their_bins():
    figure = histogram_figure(
        {"a": np.zeros(10), "b": [10.0, np.nan]}, id="f", title="t", bins=5, log_y=True
    )
    assert figure.table["a: share of the group"] == [1, 0, 0, 0, 0]
    assert figure.table["b: count"] == [0, 0, 0, 0, 1]
    assert figure.plotly["data"][0]["y"] == [1, None, None, None, None]
    assert "not finite" in figure.note


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: scatter_figure({}, id="f", title="t"), "no dots"),
        (lambda: scatter_figure({"a": ([1], [1, 2])}, id="f", title="t"), "as many of both"),
        (lambda: paths_figure({}, id="f", title="t"), "no lines"),
        (lambda: paths_figure({"a": ([1], [1])}, id="f", title="t"), "expected a labelled array"),
        (lambda: histogram_figure({"a": [np.nan]}, id="f", title="t"), "no finite value"),
        (
            lambda: relation_figure(
                labelled([0, 0, 0], ("step",)),
                labelled([0, 0], ("seed",)),
                ([0], [0]),
                id="f",
                title="t",
            ),
            "expected the same",
        ),
    ],
)
def test_mistakes_are_named(draw, message):
    with pytest.raises(AttnlabError, match=message):
        draw()
