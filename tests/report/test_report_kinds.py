"""The kinds of figures that show words one by one: dots, paths, histograms, overlays, stages; and
choices of them.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.report import (
    band_figure,
    histogram_figure,
    menu_figure,
    overlay_figure,
    paths_figure,
    scatter_figure,
    stages_figure,
)

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


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: scatter_figure({}, id="f", title="t"), "no dots"),
        (lambda: scatter_figure({"a": ([1], [1, 2])}, id="f", title="t"), "as many of both"),
        (lambda: paths_figure({}, id="f", title="t"), "no lines"),
        (lambda: paths_figure({"a": ([1], [1])}, id="f", title="t"), "expected a labelled array"),
        (lambda: histogram_figure({"a": [np.nan]}, id="f", title="t"), "no finite value"),
        (lambda: menu_figure({}, id="f", title="t"), "nothing to choose"),
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
        (
            lambda: overlay_figure(*[labelled([0, 0, 0], ("step",))] * 2, id="f", title="t"),
            "expected seed, word",
        ),
    ],
)
def test_mistakes_are_named(draw, message):
    with pytest.raises(AttnlabError, match=message):
        draw()
