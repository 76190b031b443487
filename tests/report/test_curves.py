"""Curves: bands over seeds, theory over measurement, stages, and menus of drawings."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.report import band_figure, menu_figure, overlay_figure, stages_figure, theory_figure

GRID = {"seed": [3, 4], "word": ["good", "bad"], "step": [0, 1, 2]}


def labelled(values, dims=("seed", "word", "step")) -> xr.DataArray:
    return xr.DataArray(np.asarray(values, float), {d: GRID[d] for d in dims}, dims)


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


def test_an_overlay_compares_where_it_is_asked_to():
    measured = labelled(np.ones((2, 2, 3)))
    figure = overlay_figure(measured, measured / 2, id="f", title="t", compared=measured.step == 2)
    assert figure.choices == ("seed 3", "seed 4")
    assert figure.table["step"] == [1, 2] * 4, "a logarithmic axis has no step 0"
    assert figure.table["difference in %"] == [None, -50.0] * 4
    assert {trace["meta"]["choice"] for trace in figure.plotly["data"]} == {0, 1}


def test_overlays_of_many_runs_stay_small():
    grid = {"seed": range(16), "word": [f"w{k}" for k in range(30)], "step": range(500)}
    values = xr.DataArray(np.ones((16, 30, 500)), grid, ("seed", "word", "step"))
    figure = overlay_figure(values, values, id="f", title="t")
    assert len(figure.choices) == 6
    assert len(figure.table["step"]) <= 6 * 12 * 40
    assert figure.note.startswith("6 of 16 seeds, 12 of 30 words, ")


def test_stages_are_stretches_of_the_step_axis():
    grid = {"seed": [0], "word": ["w"], "step": [0, 1, 10, 100]}

    def one(values) -> xr.DataArray:
        return xr.DataArray([[values]], grid, ("seed", "word", "step"))

    figure = stages_figure(
        one([0.0, 0.0, 2.0, 3.0]),
        {"score": (one([0.0, -0.1, 0.5, 3.0]), "s"), "norm": (one([1.0, 0.9, 2.0, 3.0]), "|ν|")},
        id="f",
        title="t",
        names=("suppressed", "waiting", "rising", "saturated"),
    )
    shades = [t for t in figure.plotly["data"] if t.get("fill") and t["yaxis"] == "y"]
    assert [(t["name"], t["x"][0], t["x"][2]) for t in shades] == [
        ("suppressed", 1, 10),
        ("rising", 10, 100),
    ]
    assert figure.table["phase"] == ["suppressed", "rising", "saturated"]
    assert figure.table["norm"] == [0.9, 2.0, 3.0]


def test_one_of_several_drawings_is_shown_and_ticks_serve_all():
    each = {
        "near": band_figure([0, 1], [[1.0, 20.0]], id="f", title="t", log_y=True),
        "far": band_figure([0, 1], [[1.0, 1e30]], id="f", title="t", log_y=True),
    }
    figure = menu_figure(each, id="g", title="t")
    assert figure.choices == ("near", "far")
    assert [trace["visible"] for trace in figure.plotly["data"]] == [True, False]
    assert "tickvals" in each["near"].plotly["layout"]["yaxis"]
    assert "tickvals" not in figure.plotly["layout"]["yaxis"]
    assert menu_figure({"only": each["near"]}, id="g", title="t").choices == ()


def test_each_drawing_keeps_the_names_of_its_axes():
    each = {
        name: band_figure([0, 1], [[1.0, 2.0]], id="f", title="t", y_label=name)
        for name in ("score", "norm")
    }
    titles = menu_figure(each, id="g", title="t").plotly["layout"]["meta"]["titles"]
    assert [title["yaxis.title.text"] for title in titles] == ["score", "norm"]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: band_figure([0], {}, id="f", title="t"), "no series"),
        (lambda: band_figure([0], np.ones((2, 3)), id="f", title="t"), "one x for each column"),
        (lambda: band_figure([0], np.ones((2, 3, 4)), id="f", title="t"), r"expected \(seed × x\)"),
        (lambda: band_figure([0], [[1.0]], id="no anchor", title="t"), "is not an anchor"),
        (
            lambda: theory_figure([0], np.ones((2, 1)), np.ones((3, 1)), id="f", title="t"),
            "expected both",
        ),
        (lambda: theory_figure([0], {"a": [1]}, [1], id="f", title="t"), "the same keys"),
        (lambda: menu_figure({}, id="f", title="t"), "nothing to choose"),
        (
            lambda: overlay_figure(*[labelled([0, 0, 0], ("step",))] * 2, id="f", title="t"),
            "expected seed, word",
        ),
        (
            lambda: stages_figure(
                labelled([0, 0, 0], ("step",)),
                dict.fromkeys("ab", (labelled([0, 0, 0], ("step",)), "")),
                id="f",
                title="t",
                names=("a",),
            ),
            "expected seed, step and word",
        ),
    ],
)
def test_mistakes_are_named(draw, message):
    with pytest.raises(AttnlabError, match=message):
        draw()
