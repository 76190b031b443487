"""The page of a reproduction, with every claim's own figures, from made-up data of the right shape."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from attnlab.report import claims_page, write_report
from attnlab.report._claims import RECIPES

SEEDS, STEPS = 8, 30


def made_up() -> dict[str, xr.Dataset]:
    """Small positive numbers under the names and dimensions that the studies measure."""
    rng = np.random.default_rng(0)
    labels = {
        "head": ["fixed", "linear", "two_layer"], "rule": ["gradient descent", "momentum 0.9", "Adam"],
        "seed": list(range(SEEDS)), "step": list(range(0, 10 * STEPS, 10)), "step_size": [0.1, 0.05, 0.025],
        "word": ["topic0.word0", "<b>word</b>"],
    }  # fmt: skip

    def data(**variables: str) -> xr.Dataset:
        arrays = {
            name: (axes.split(), 10 ** rng.uniform(-3, 0, [len(labels[a]) for a in axes.split()]))
            for name, axes in variables.items()
        }
        used = {axis for axes in variables.values() for axis in axes.split()}
        return xr.Dataset(arrays, coords={axis: labels[axis] for axis in sorted(used)})

    words = {"score", "scaled_norm", "predicted_norm", "sen_error", "identity_error"}
    return {
        "reference": data(
            score_sum_error="head seed step", balance_error="head seed", **dict.fromkeys(words, "head seed step word")
        ),
        "float32": data(score_sum_error="seed step"),
        "Adam": data(score_sum_error="seed step"),
        "optimizers": data(
            score_sum_error="rule seed step", loss="rule seed step", balance_error="rule seed",
            **dict.fromkeys(words, "rule seed step word"),
        ),
        "step sizes": data(balance_error="head step_size seed"),
        "trained query": data(
            query_balance_error="step_size seed", query_turn="step_size seed", key_sum="step_size seed",
            query_turn_adam="seed", key_sum_adam="seed",
        ),
    }  # fmt: skip


def entry(name: str, **more) -> dict:
    criterion = {
        "name": "error", "kind": "bound", "statistic": 0.1, "interval": None, "threshold": 0.2, "verdict": "holds",
        "relation": "<=", "by_seed": [0.1] * SEEDS,
    }  # fmt: skip
    return {
        "id": name, "title": f"About {name}", "statement": "It is so.", "source": "a paper", "verdict": "holds",
        "expected": "holds", "criteria": [criterion], "seeds": SEEDS, "controls": [], "reason": "",
        "runs": {"asked": 8, "finished": 8, "failed": 0}, "command": f"attnlab reproduce {name}",
    } | more  # fmt: skip


ENTRIES = [*(entry(name) for name in RECIPES), entry("mine.own"), entry("mine.absent", verdict="not run", criteria=[])]
ABOUT = {"attnlab": "0.1.0", "scale": "quick", "seeds": SEEDS, "studies": ["a", "b"]}


def test_every_claim_has_figures_and_an_own_claim_gets_its_criteria():
    figures = {
        section.id: [f.id for f in section.figures] for section in claims_page(ENTRIES, made_up(), ABOUT).sections
    }
    assert all(figures[name] for name in RECIPES)
    assert figures["mine.own"] == ["mine.own.criteria"]
    assert figures["mine.absent"] == []


def test_a_record_without_the_figures_data_still_makes_a_page():
    page = claims_page([entry("laws.identity")], {}, ABOUT)
    assert [f.id for f in page.sections[0].figures] == ["laws.identity.criteria"]


def test_figures_are_written_beside_the_page(tmp_path):
    write_report(tmp_path, ENTRIES, made_up(), ABOUT)
    header = (tmp_path / "figures" / "identity.csv").read_text("utf-8").splitlines()[0]
    assert header.startswith("row,seed,value")
    assert json.loads((tmp_path / "figures" / "sen_theory.json").read_text("utf-8"))["data"]
    assert (tmp_path / "report.html").stat().st_size < 12e6


@pytest.mark.parametrize("width", [1280, 390])
def test_the_whole_page_is_drawn_in_a_browser(browser, tmp_path, width):
    path = write_report(tmp_path, ENTRIES, made_up(), ABOUT)
    browser.open(path, mark="#all", width=width)
    assert browser.evaluate("window.innerWidth") == width
    drawn, asked = browser.evaluate("document.body.dataset.drawn").split("/")
    assert drawn == asked
    assert int(asked) >= 10
    assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.problems() == []
