"""Figures of learning curves, needed samples and ratios, from made-up curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity import Question, tabulate
from attnlab.report import (
    Card,
    Page,
    Section,
    answers_table,
    learning_curves,
    needed_figure,
    ratio_figure,
    ratio_rows,
    ratios_against,
    render,
)

EVIL = "<img src=x onerror=alert(1)>"
SIZES = np.array([8, 16, 32, 64, 128, 256])
# How many samples an error of 0.1 takes, by student and p; 1e6 is never reached, 1 met from the
# start.
NEEDS = {"baseline": (40.0, 80.0), "never": (1e6, 1e6), "at once": (1.0, 1.0), EVIL: (20.0, 20.0)}


def arm(needs: float, seeds: int = 8, sizes: np.ndarray = SIZES, seed: int = 0) -> xr.Dataset:
    """What one student's fits leave: curves that fall like 1/n through 0.1 at ``needs``."""
    rng = np.random.default_rng(seed)
    error = 0.1 * needs / sizes * np.exp(0.1 * rng.normal(size=(seeds, len(sizes))))
    data = {
        "error": error,
        "valid_loss": error,
        "train_loss": error / 2,
    }
    coords = {
        "seed": np.arange(seeds),
        "size": sizes,
        "predictor": ["mean_square", "participation"],
    }
    found = xr.Dataset({name: (("seed", "size"), values) for name, values in data.items()}, coords)
    return found.assign(predicted=(("seed", "predictor"), np.full((seeds, 2), 2.0)))


def table(
    names: Any = NEEDS, features: tuple[int, ...] = (16, 32), level: float = 0.1, **more: Any
) -> xr.Dataset:
    arms = {
        (name, p): arm(NEEDS[name][k], **more) for name in names for k, p in enumerate(features)
    }
    return tabulate(arms, Question(level))


def symbols(figure) -> dict[str, set[str]]:
    """The symbols of each named trace."""
    found: dict[str, set[str]] = {}
    for trace in figure.plotly["data"]:
        shown = trace.get("marker", {}).get("symbol", ())
        found.setdefault(trace.get("name") or trace.get("legendgroup", ""), set()).update(
            [shown] if isinstance(shown, str) else shown
        )
    return found


def test_names_are_escaped():
    found = table()
    figures = (
        learning_curves(found, id="curves", title="Curves"),
        needed_figure(found, id="needed", title="Needed"),
        answers_table(found, id="answers", title="Answers"),
        ratio_figure(found, id="ratio", title="Ratio"),
    )
    section = Section("a", "A", figures=figures)
    text = render(Page(title="Page", question="", sections=(section,)))
    assert EVIL not in text
    for words in ("not reached up to 256", "already met with 8"):
        assert words in text


def test_what_lies_off_the_grid_is_drawn_at_its_end():
    figure = needed_figure(table(), id="needed", title="Needed")
    shapes = symbols(figure)
    assert shapes["never: exponent unknown"] == {"triangle-up-open"}
    assert shapes["at once: exponent unknown"] == {"triangle-down-open"}
    rows = list(
        zip(figure.table["student"], figure.table["value"], figure.table["is"], strict=True)
    )
    assert ("never", 256.0, "at least") in rows
    assert ("at once", 8.0, "at most") in rows
    assert "A triangle is a bound" in figure.caption
    curves = learning_curves(table(), id="curves", title="Curves")
    assert symbols(curves)["never"] >= {"triangle-right-open"}
    assert symbols(curves)["at once"] >= {"triangle-left-open"}
    assert curves.choices == ("p = 16", "p = 32")
    rows = needed_figure(table(features=(16,)), id="needed", title="Needed")
    assert {"triangle-right-open", "triangle-left-open", "circle"} == symbols(rows)["measured"]


def test_power_laws_are_drawn_only_through_points():
    figure = needed_figure(table(("baseline", EVIL)), id="needed", title="Needed")
    lines = [trace for trace in figure.plotly["data"] if trace["mode"] == "lines"]
    assert len(lines) == 2
    assert "triangle" not in figure.caption
    (x0, x1), (y0, y1) = lines[0]["x"], lines[0]["y"]
    assert np.log(y1 / y0) / np.log(x1 / x0) == pytest.approx(1.0, abs=0.1)
    names = [trace["name"] for trace in figure.plotly["data"] if "name" in trace]
    assert names[0].startswith("baseline: exponent 0.99 [")
    assert not [
        t
        for t in needed_figure(table(("never",)), id="n", title="n").plotly["data"]
        if t["mode"] == "lines"
    ]


def test_ratios_are_bounds_or_unknown_where_grids_end():
    figure = ratio_figure(
        table(("baseline", "never", "at once")),
        id="ratio",
        title="Ratio",
        predictors={"mean_square": "E‖x‖²", "participation": "(tr Σ)²/‖Σ‖²"},
        note="What is predicted.",
    )
    assert figure.caption.endswith("What is predicted.")
    assert figure.choices == ("never", "at once")
    shapes = symbols(figure)
    assert shapes["never, measured"] == {"triangle-down-open"}
    assert shapes["at once, measured"] == {"triangle-up-open"}
    assert {"E‖x‖²", "(tr Σ)²/‖Σ‖²"} <= set(shapes)
    never = tabulate({("baseline", 16): arm(1e6), ("other", 16): arm(2e6)}, Question())
    unknown = ratio_figure(never, id="ratio", title="Ratio")
    assert symbols(unknown)["measured"] == {"circle-x-open"}
    assert unknown.table["value"] == [None]
    with pytest.raises(AttnlabError, match="expected a student beside 'baseline'"):
        ratio_figure(table(("baseline",)), id="ratio", title="Ratio")


def test_few_seeds_have_no_bars():
    few = table(("baseline",), seeds=3)
    trace = needed_figure(few, id="needed", title="Needed").plotly["data"][-1]
    assert trace["error_y"]["array"] == [0.0, 0.0]


def test_scores_that_rise_and_labels_have_their_words():
    sizes = SIZES.astype(float)
    rise = {
        (name, "digits"): xr.Dataset(
            {"accuracy": (("seed", "size"), np.tile(1 - c / sizes, (8, 1)))},
            {"seed": np.arange(8), "size": SIZES},
        )
        for name, c in (("mean", 6.0), ("attention", 2.0))
    }
    found = tabulate(
        rise, Question(0.9, "accuracy", falling=False, statistic="mean", against="mean"), dim="task"
    )
    curves = learning_curves(found, id="curves", title="Accuracy")
    assert curves.plotly["layout"]["yaxis"]["type"] == "linear"
    assert curves.plotly["layout"]["yaxis"]["title"]["text"] == "accuracy"
    assert "mean over seeds" in curves.caption
    assert "attention" in needed_figure(found, id="n", title="n").alt
    assert ratio_figure(found, id="r", title="r").table["value"][0] == pytest.approx(3.0, rel=0.1)


def test_a_table_of_one_setting_needs_no_dimension():
    one = table(("baseline", "at once")).isel(features=0, drop=True)
    assert learning_curves(one, id="curves", title="Curves").choices == ()


def test_ratios_of_several_tables_stand_in_rows():
    found = table(("baseline", "never", "at once"))
    places = {name: found.sel(student=name, features=16) for name in ("never", "at once")}
    places["compared with"] = found.sel(student="baseline", features=16)
    figure = ratio_rows(places, id="rows", title="Rows", x_label="ratio", caption="A caption.")
    assert figure.table[""] == ["never", "at once"]
    assert figure.table["is"] == ["at most", "at least"]
    assert figure.caption.startswith("A caption. A triangle is a bound")


def test_ratios_stand_over_what_was_predicted_of_them():
    found = xr.Dataset(
        {
            "ratio": ("setting", [3.0, 8.0]),
            "ratio_low": ("setting", [2.0, 7.0]),
            "ratio_high": ("setting", [4.0, np.inf]),
            "ratio_kind": ("setting", ["exact", "at least"]),
        },
        {"setting": ["4 of 16", "2 of 32"]},
    )
    figure = ratios_against(
        found, [2.0, 4.0], [4, 2], id="order", title="Order", x_label="x", group_label="relevant"
    )
    assert figure.table["predicted"] == [2.0, 4.0]
    assert figure.table["is"] == ["exact", "at least"]
    traces = figure.plotly["data"]
    assert [(trace["name"], trace["x"]) for trace in traces] == [
        ("2 relevant", [4.0]),
        ("4 relevant", [2.0]),
    ]


def test_verdicts_of_ratios_belong_to_cards_only():
    assert Card("a", "b", "saves").verdict == "saves"
    with pytest.raises(AttnlabError, match="'saves'; expected one of holds"):
        Section("a", "b", verdict="saves")
    with pytest.raises(AttnlabError, match="no advantage, costs"):
        Card("a", "b", "wins")
