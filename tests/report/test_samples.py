"""The page of needed samples and the figures of its claims, from made-up learning curves."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity import Question, tabulate
from attnlab.report import (
    Card,
    Section,
    claims_page,
    learning_curves,
    needed_figure,
    ratio_figure,
    render,
    samples_page,
    write_samples,
)
from attnlab.report._liu2021 import SAMPLES

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
        "settling": 0 * error,
        "step_size": 0 * error + 0.02,
        "weight_decay": np.where(error > 0.1, 0.1, 0.0),
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
    return tabulate(arms, Question(level), further=True)


ABOUT = {
    "cards": [
        {
            "label": f"{EVIL} against baseline",
            "text": EVIL,
            "verdict": "saves",
            "headline": "2",
            "link": "ratio",
        },
        {"label": "b", "text": "b", "verdict": "no advantage"},
        {"label": "c", "text": "c", "verdict": "costs"},
        {"label": "d", "text": "d", "verdict": "inconclusive"},
    ],
    "summary": ["A sentence."],
    "command": "attnlab samples --features 16 32",
    "attnlab": "0.1.0",
    "settings": {
        "teacher": "static-mask",
        "classes": 0,
        "step_sizes": [0.02],
        "weight_decays": [0.0, 0.1, 0.5],
    },
}


def symbols(figure) -> dict[str, set[str]]:
    """The symbols of each named trace."""
    found: dict[str, set[str]] = {}
    for trace in figure.plotly["data"]:
        shown = trace.get("marker", {}).get("symbol", ())
        found.setdefault(trace.get("name") or trace.get("legendgroup", ""), set()).update(
            [shown] if isinstance(shown, str) else shown
        )
    return found


def test_every_part_is_on_the_page_and_names_are_escaped(tmp_path):
    data = {"samples": table()}
    page = samples_page(data, ABOUT)
    figures = {section.id: [figure.id for figure in section.figures] for section in page.sections}
    assert figures == {
        "curves": ["learning_curves"],
        "needed": ["needed", "answers", "further"],
        "ratio": ["ratio"],
        "fits": ["tuning"],
        "again": [],
    }
    text = render(page)
    assert EVIL not in text
    for word in (
        "attnlab samples --features 16 32",
        "no advantage",
        "not reached up to 256",
        "already met with 8",
        "not of a level",
        "i-saves",
        "pill costs",
    ):
        assert word in text, word
    assert (write_samples(tmp_path, data, ABOUT)).read_text("utf-8") == text
    drawn = json.loads((tmp_path / "figures" / "needed.json").read_text("utf-8"))
    assert "<img" not in json.dumps(drawn)


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
    figure = ratio_figure(table(("baseline", "never", "at once")), id="ratio", title="Ratio")
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


def test_few_seeds_have_no_bars_and_a_single_student_no_ratio():
    few = table(("baseline",), seeds=3)
    page = samples_page({"samples": few}, {})
    assert [section.id for section in page.sections] == ["curves", "needed", "fits", "again"]
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
    page = samples_page({"samples": table(("baseline",))}, {"settings": {"classes": 2}})
    assert "share of wrong labels" in page.sections[0].statement
    axis = page.sections[0].figures[0].plotly["layout"]["yaxis"]
    assert axis["title"]["text"] == "share of wrong labels"


def test_a_table_of_one_setting_needs_no_dimension():
    one = table(("baseline", "at once")).isel(features=0, drop=True)
    assert samples_page({"samples": one}, {}).sections[0].figures[0].choices == ()


def test_verdicts_of_ratios_belong_to_cards_only():
    assert Card("a", "b", "saves").verdict == "saves"
    with pytest.raises(AttnlabError, match="'saves'; expected one of holds"):
        Section("a", "b", verdict="saves")
    with pytest.raises(AttnlabError, match="no advantage, costs"):
        Card("a", "b", "wins")


def made_up_claims() -> dict[str, xr.Dataset]:
    """Every data set that the claims draw, small."""
    masks = {
        ("baseline", 16): arm(80),
        ("baseline", 32): arm(160),
        ("known-attention", 16): arm(20),
        ("known-attention", 32): arm(20),
        ("vacuous-mask", 16): arm(80),
        ("wrong-mask", 16): arm(1e6),
    }
    pair = {key: value for key, value in masks.items() if key[0] in ("baseline", "known-attention")}
    words = {
        (name, "self-attention"): arm(n)
        for name, n in (
            ("baseline", 1e6),
            ("self-attention", 60.0),
            ("known-weights", 20.0),
            ("wrong-weights", 1e6),
        )
    }
    layers = {("known-weights", depth): arm(20.0 * depth) for depth in (1, 2, 3)}
    learned = {("multi-layer", depth): arm(20.0 * depth**3, 12, SIZES[-1:]) for depth in (1, 2, 3)}
    block = {
        (name, p): arm(n * p)
        for name, n in (("known-attention", 4), ("known static mask", 1))
        for p in (16, 32)
    }
    family = xr.Dataset(
        {
            "predicted": (("predictor", "setting"), [[2.0, 4.0]]),
            "ratio": ("setting", [3.0, 8.0]),
            "ratio_low": ("setting", [2.0, 7.0]),
            "ratio_high": ("setting", [4.0, np.inf]),
            "ratio_kind": ("setting", ["exact", "at least"]),
            "relevant": ("setting", [2, 4]),
            "features": ("setting", [16, 32]),
            "shifted": ("predictor", [-0.3]),
            "agreement": ("predictor", [0.9]),
            "agreement_low": ("predictor", [0.5]),
            "agreement_high": ("predictor", [1.0]),
        },
        {"predictor": ["mean_square"], "setting": ["2 of 16", "4 of 32"]},
    )
    return {
        "static mask": tabulate(masks, Question()),
        "mask family": family,
        "gate": tabulate(pair, Question()),
        "gate at 0.5": tabulate(pair, Question(0.5)),
        "moving block": tabulate(block, Question()),
        "self-attention": tabulate(words, Question(), dim="teacher"),
        "self-attention at 0.5": tabulate(words, Question(0.5), dim="teacher"),
        "MLP teacher": tabulate(
            {("baseline", "mlp"): arm(40), ("self-attention", "mlp"): arm(1e6)},
            Question(),
            dim="teacher",
        ),
        "depth": tabulate(layers, Question(), dim="depth"),
        "learned depth": tabulate(learned, Question(), dim="depth"),
    }


def test_each_claim_of_liu2021_has_its_figures():
    data = made_up_claims()
    common = {"statement": "s", "verdict": "holds", "criteria": [], "controls": []}
    page = claims_page([{"id": name, **common} for name in SAMPLES], data, {})
    figures = {section.id: section.figures for section in page.sections}
    assert all(len(each) >= 2 for each in figures.values())
    order = figures["liu2021.bounds"][0]
    assert "candidate predictors of an order" in order.caption
    assert order.table["is"] == ["exact", "at least"]
    assert "not the theorems" in figures["liu2021.known_attention_samples"][1].caption
    assert render(page)
