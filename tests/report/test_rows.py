"""Rows of dots against thresholds, and of estimates with intervals."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.report import Mark, bounds_note, dots_figure, rows_figure, shares_figure
from attnlab.report._style import MAX_POINTS


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


def test_estimates_stand_in_rows_with_their_bounds():
    marks = [
        Mark("a", 2.0, 1.5, 3.0),
        Mark("b", 8.0, 8.0, np.inf, "at least"),
        Mark("c", 1.0, 0.0, np.inf, "unknown"),
    ]
    figure = rows_figure(
        marks, id="f", title="t", caption="", x_label="ratio", lines={"equal": 1.0}
    )
    assert figure.alt == "t. a: 2; b: ≥ 8; c: unknown."
    assert figure.table["value"] == [2.0, 8.0, None]
    (trace,) = figure.plotly["data"]
    assert trace["marker"]["symbol"] == ["circle", "triangle-right-open", "circle-x-open"]
    assert trace["error_x"]["array"] == [1.0, pytest.approx(2.8), 0.0]
    labels = [note["text"] for note in figure.plotly["layout"]["annotations"]]
    assert labels[0] == "<b>a</b>   2 [1.5, 3]"
    assert "A crossed circle" in bounds_note(marks)
    assert bounds_note(marks[:1]) == ""


def test_shares_are_rows_in_percent_from_zero():
    marks = [Mark("the top word", 0.25, 0.1, 0.5, said="top")]
    figure = shares_figure(
        marks,
        id="f",
        title="t",
        caption="",
        alt="Flips.",
        x_label="share",
        columns=("removed", "flips"),
    )
    assert figure.table == {
        "removed": ["the top word"],
        "flips": [0.25],
        "low": [0.1],
        "high": [0.5],
    }
    assert figure.plotly["layout"]["xaxis"]["range"] == [0.0, pytest.approx(0.55)]
    assert figure.alt == "Flips. the top word: 25\u00a0% [10, 50]."


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: dots_figure([], id="f", title="t"), "no rows"),
        (lambda: dots_figure([("a", [-1.0])], id="f", title="t"), "negative"),
        (
            lambda: rows_figure([], id="f", title="t", caption="", x_label="x"),
            "at least one estimate",
        ),
    ],
)
def test_mistakes_are_named(draw, message):
    with pytest.raises(AttnlabError, match=message):
        draw()


def test_of_very_many_dots_the_exceptions_are_drawn():
    values = [0.01] * (2 * MAX_POINTS) + [0.5]
    figure = dots_figure([("minima", values, 0.1)], id="f", title="t")
    traces = {trace["name"]: trace for trace in figure.plotly["data"]}
    assert traces["beyond the threshold"]["x"] == [0.5]
    assert len(traces["within the threshold"]["x"]) == MAX_POINTS - 1
    assert len(figure.table["value"]) == len(values)
