from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.report import (
    band_figure,
    dots_figure,
    heat_table,
    number,
    relation_figure,
    theory_figure,
)


def test_a_band_is_the_quantiles_over_seeds():
    runs = np.arange(11.0)[:, None] * np.ones((11, 3))
    figure = band_figure([1, 2, 3], {"GD": runs}, id="f", title="t")
    band, single, median = figure.plotly["data"]
    assert median["y"] == [5, 5, 5]
    assert band["y"] == [9, 9, 9, 1, 1, 1]
    assert single["visible"] == "legendonly"
    assert figure.table["GD: seed 10"] == [10, 10, 10]


def test_seeds_come_from_labels_in_any_order_and_missing_rows_are_gaps():
    values = np.array([[1.0, 2.0], [3.0, np.nan], [np.nan, np.nan]])
    runs = xr.DataArray(values, dims=("step", "seed"), coords={"seed": [7, 9]})
    figure = band_figure([0, 1, 2], runs, id="f", title="t", y_label="loss")
    assert figure.table["loss: seed 7"] == [1, 3, None]
    assert figure.table["loss: median"] == [1.5, 3, None]
    assert set(figure.plotly["data"][1]["customdata"]) == {"7", "9"}


@pytest.mark.parametrize("log", [False, True])
def test_long_series_are_thinned_with_their_ends_and_a_note(log):
    x = np.arange(1, 20_001)
    figure = band_figure(x, np.ones((2, len(x))), id="f", title="t", log_x=log)
    assert len(figure.table["step"]) <= 402
    assert (figure.table["step"][0], figure.table["step"][-1]) == (1, 20_000)
    assert "of 20000 recorded points" in figure.note


def test_many_runs_keep_the_figure_small():
    figure = band_figure(np.arange(1000), np.ones((500, 1000)), id="f", title="t")
    single = figure.plotly["data"][1]
    assert single["name"] == "48 of 500 runs"
    assert len(single["x"]) <= 10_000


def test_what_a_logarithmic_axis_hides_is_said():
    figure = band_figure([0, 1], np.array([[0.0, 1.0], [1.0, 2.0]]), id="f", title="t", log_y=True)
    assert "1 values at or below zero" in figure.note


def test_theory_has_its_residual_and_a_choice():
    measured = {"good": np.full((4, 2), 1.1), "bad": np.full((4, 2), 2.0)}
    figure = theory_figure(
        [0, 1], measured, {"good": [1.0, 1.0], "bad": [0.0, 2.0]}, id="f", title="t"
    )
    assert figure.table["good: residual in %: median"] == [10, 10]
    assert figure.table["bad: residual in %: median"] == [None, 0]
    assert figure.choices == ("good", "bad")
    shown = [trace["meta"]["choice"] for trace in figure.plotly["data"] if trace["visible"] is True]
    assert set(shown) == {0}


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


def test_dots_know_their_side():
    rows = [
        ("kept", [1e-16, 0.0, np.nan], 1e-12),
        ("broken", [0.5], 1e-2, "above"),
        ("free", [3.0]),
    ]
    figure = dots_figure(rows, id="f", title="t")
    assert figure.table["good"] == ["yes", "yes", "no", "yes", "yes"]
    assert [trace["name"] for trace in figure.plotly["data"]] == [
        "within the threshold",
        "exactly zero",
        "median",
    ]


def test_a_table_is_tinted_by_tone_or_by_size():
    by_tone = heat_table(
        ["GD"], ["Σs", "SEN"], [["kept", 0.2]], id="f", title="t", tones=[["good", ""]]
    )
    assert by_tone.grid is not None
    assert by_tone.grid.cells == (("kept", "0.2"),)
    by_size = heat_table(["GD"], ["a", "b", "c"], [[1e-9, 0, "word"]], id="f", title="t")
    assert by_size.grid is not None
    assert by_size.grid.tones == (("h0", "", ""),)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: band_figure([0], {}, id="f", title="t"), "no series"),
        (lambda: band_figure([0], np.ones((2, 3)), id="f", title="t"), "one x for each column"),
        (lambda: band_figure([0], np.ones((2, 3, 4)), id="f", title="t"), r"expected \(seed × x\)"),
        (
            lambda: theory_figure([0], np.ones((2, 1)), np.ones((3, 1)), id="f", title="t"),
            "expected both",
        ),
        (lambda: theory_figure([0], {"a": [1]}, [1], id="f", title="t"), "the same keys"),
        (lambda: relation_figure([[1]], [[1, 2]], ([0], [0]), id="f", title="t"), "the same shape"),
        (lambda: dots_figure([], id="f", title="t"), "no rows"),
        (lambda: dots_figure([("a", [-1.0])], id="f", title="t"), "negative"),
        (lambda: heat_table(["a"], ["b"], [[1, 2]], id="f", title="t"), "do not fit"),
        (
            lambda: heat_table(["a"], ["b"], [[1]], id="f", title="t", tones=[["fine"]]),
            "got the tone",
        ),
        (lambda: band_figure([0], [[1.0]], id="no anchor", title="t"), "is no anchor"),
    ],
)
def test_mistakes_are_named(draw, message):
    with pytest.raises(AttnlabError, match=message):
        draw()


def test_labels_cannot_speak_plotlys_language():
    assert plain("<a href='x'>%{x}</a>&lt;$") == "&lt;a href='x'&gt;&#37;{x}&lt;/a&gt;&amp;lt;&#36;"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.5, "−0.5"),
        (99999, "99999"),
        (123456, "1.23 × 10⁵"),
        (1e-15, "1 × 10⁻¹⁵"),
        (0.00099999, "1 × 10⁻³"),
        (1234.56, "1235"),
        (np.float64("nan"), "–"),
        (True, "yes"),
        ("kept", "kept"),
    ],
)
def test_numbers_read_well(value, text):
    assert number(value) == text
