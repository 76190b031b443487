"""The page of compared variants and the figures of the guidelines' claims, from made-up data."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from attnlab.claims._guidelines import GUIDELINES
from attnlab.complexity import Question, tabulate
from attnlab.report import compare_page, render, write_compare
from attnlab.report._guidelines import GUIDELINE_FIGURES, map_figure
from attnlab.studies import measure_comparison
from attnlab.studies._compare_answers import compare_longer
from attnlab.studies._guidelines import compare_steps

EVIL = "<img src=x onerror=alert(1)>"
SIZES = np.array([64, 128, 256, 512])
ABOUT: dict[str, Any] = {
    "cards": [{"label": EVIL, "text": EVIL, "verdict": "saves", "headline": "2", "link": "needed"}],
    "summary": [f"Try {EVIL}."],
    "advice": f"Try {EVIL}.",
    "command": "attnlab compare --task hard",
    "attnlab": "0.1.0",
    "settings": {"task": "hard", "step_sizes": [0.01], "weight_decays": [0.0, 0.1]},
}


def arm(factor: float, seeds: int = 16, score: str = "error", **more: Any) -> xr.Dataset:
    rng = np.random.default_rng(int(100 * factor))
    error = np.minimum(
        factor * 50 / SIZES * np.exp(0.1 * rng.normal(size=(seeds, len(SIZES)))), 0.99
    )
    columns = {
        score: error if score == "error" else 1 - error,
        "valid_loss": error,
        "train_loss": error,
    }
    columns |= {
        "settling": 0 * error,
        "entropy": error,
        "step_size": 0 * error + 0.01,
        "weight_decay": 0 * error,
    }
    data = xr.Dataset(
        {n: (("seed", "size"), v) for n, v in columns.items()},
        {"seed": range(seeds), "size": SIZES},
    )
    return data.assign({name: ("seed", np.full(seeds, value)) for name, value in more.items()})


def made_up(score: str = "error", **more: Any) -> dict[str, xr.Dataset]:
    arms = {
        "softmax": arm(1.0, score=score, **more),
        EVIL: arm(0.5, score=score, **more),
        "top1": arm(4.0, score=score),
    }
    data = measure_comparison(arms, score=score, against="softmax")
    steps = [0, 1, 10, 100]
    course = {score: (("student", "seed", "step"), np.full((3, 16, 4), 0.5))}
    coords = {"student": list(arms), "seed": range(16), "step": steps}
    longer = compare_longer(
        arms, {"softmax": arms["softmax"]}, score=score, steps=10, against="softmax"
    )
    return data | {"course": xr.Dataset(course, coords), "longer": longer}


def test_every_part_is_on_the_page_and_names_are_escaped(tmp_path):
    data = made_up(onset=20.0, sharpness=3.0, attention=0.7)
    page = compare_page(data, ABOUT)
    figures = {section.id: [figure.id for figure in section.figures] for section in page.sections}
    assert figures == {
        "ranking": ["ranking", "apart"],
        "curves": ["learning_curves", "entropy"],
        "needed": ["needed", "ratio", "answers"],
        "training": ["longer", "course", "onset"],
        "fits": ["tuning"],
        "again": [],
    }
    text = render(page)
    assert EVIL not in text
    for word in (
        "attnlab compare --task hard",
        "cannot be told apart",
        "sets off",
        "over that of softmax",
    ):
        assert word in text, word
    assert write_compare(tmp_path, data, ABOUT).read_text("utf-8") == text


def test_the_ranking_table_shows_groups_and_ratios():
    figure = compare_page(made_up(), ABOUT).sections[0].figures[0]
    assert figure.grid is not None
    assert figure.grid.rows == (EVIL, "softmax", "top1")
    assert [row[0] for row in figure.grid.cells] == ["A", "B", "C"]
    assert figure.grid.cells[1][2] == "1"
    assert figure.grid.cells[0][2].startswith("0.")
    assert [row[0] for row in figure.grid.tones] == ["good", "", ""]


def test_accuracies_courses_that_are_missing_and_dropped_variants():
    data = made_up("accuracy")
    del data["course"], data["longer"]
    data["dropping"] = xr.Dataset(
        {"dropped": ("student", [0.0, 1.0])}, {"student": ["softmax", "top1"]}, {"best": "softmax"}
    )
    page = compare_page(data, {})
    assert [section.id for section in page.sections] == [
        "ranking",
        "curves",
        "needed",
        "fits",
        "again",
    ]
    assert "top1 was not gone on with" in page.sections[0].body[0]
    assert "share of right answers" in page.sections[1].statement
    one = measure_comparison({"softmax": arm(1.0)}, score="error", against="softmax")
    assert [f.id for f in compare_page(one, {}).sections[0].figures] == ["ranking"]


def test_more_variants_than_colours_are_ranked_but_not_all_drawn():
    arms = {f"v{k}": arm(1.0 + k) for k in range(9)}
    for against in ("v0", "v8"):
        page = compare_page(measure_comparison(arms, score="error", against=against), {})
        ranked, curves = page.sections[0].figures[0], page.sections[1].figures[0]
        assert ranked.grid is not None
        assert len(ranked.grid.rows) == 9
        drawn = {
            trace["name"]
            for trace in curves.plotly["data"]
            if "lines+markers" in trace.get("mode", "")
        }
        assert len(drawn) == 7
        assert against in drawn
        assert "for want of colours" in curves.caption
        for name in set(arms) - drawn:
            assert name in curves.caption


def claims_data() -> dict[str, xr.Dataset]:
    def runs(error: float) -> xr.Dataset:
        luck = np.exp(0.1 * np.random.default_rng(0).normal(size=8))
        return xr.Dataset(
            dict.fromkeys(("error", "entropy", "attention"), ("seed", error * luck)),
            {"seed": range(8)},
        )

    def teacher(*variants: str) -> xr.Dataset:
        return compare_steps(
            {(v, s): runs(0.1 + 0.1 * k) for k, v in enumerate(variants) for s in (1500, 6000)},
            variants,
        )

    cells = {
        f"ratio{end}": (("variant", "relevant", "noise"), np.full((2, 3, 2), v))
        for end, v in (("", 0.5), ("_low", 0.4), ("_high", 0.6))
    }
    coords = {"variant": ["sparsemax", EVIL], "relevant": [1, 4, 16], "noise": [0.0, 0.2]}
    names = ("softmax", "softmax+prior:1", "softmax+wrong-prior:1")
    prior = {(name, "hard"): arm(k + 1.0)[["error"]] for k, name in enumerate(names)}
    return {
        "hard teacher": teacher("softmax", "softmax:0.25", "softmax:4"),
        "dense teacher": teacher("softmax", "softmax:0.25", "sparsemax", "top1"),
        "map": xr.Dataset(cells, coords, {"samples": 512, "steps": 1500, "seeds": 8}),
        "prior": tabulate(prior, Question(0.2, against="softmax"), dim="task"),
    }


def test_each_claim_has_its_figures_and_all_can_be_drawn():
    assert {claim.id for claim in GUIDELINES} == set(GUIDELINE_FIGURES)
    data = claims_data()
    ids = [figure.id for recipe in GUIDELINE_FIGURES.values() for figure in recipe(data)]
    assert len(ids) == len(set(ids))


def test_the_map_is_one_drawing_for_each_variant_and_escapes_names():
    figure = map_figure(claims_data()["map"], id="map")
    assert figure.choices == ("sparsemax", EVIL)
    heat = figure.plotly["data"][0]
    assert heat["x"] == ["1 of 16", "4 of 16", "16 of 16"]
    assert heat["z"][0][0] == -1  # log₂ of a half
    assert heat["text"][0][0] == "<b>0.5</b>"
    assert EVIL not in str([trace.get("name") for trace in figure.plotly["data"]])
