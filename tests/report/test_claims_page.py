"""The page of a reproduction, with every claim's own figures, from made-up data of the right shape."""

from __future__ import annotations

import json

import pytest
import xarray as xr
from made_up import lu2021

from attnlab.report import claims_page, render, write_report
from attnlab.report._claims import RECIPES

SEEDS = 8


def made_up() -> dict[str, xr.Dataset]:
    return lu2021(SEEDS)


def entry(name: str, **more) -> dict:
    criterion = {
        "name": "error",
        "kind": "bound",
        "statistic": 0.1,
        "interval": None,
        "threshold": 0.2,
        "verdict": "holds",
        "relation": "<=",
        "by_seed": [0.1] * SEEDS,
    }
    return {
        "id": name,
        "title": f"About {name}",
        "statement": "It is so.",
        "source": "a paper",
        "verdict": "holds",
        "expected": "holds",
        "criteria": [criterion],
        "seeds": SEEDS,
        "controls": [],
        "reason": "",
        "runs": {"asked": 8, "finished": 8, "failed": 0},
        "command": f"attnlab reproduce {name}",
    } | more


ENTRIES = [
    *(entry(name) for name in RECIPES),
    entry("mine.own"),
    entry("mine.absent", verdict="not run", criteria=[]),
]
ABOUT = {"attnlab": "0.1.0", "scale": "quick", "seeds": SEEDS, "studies": ["a", "b"]}


def test_every_claim_has_figures_and_an_own_claim_gets_its_criteria():
    figures = {
        section.id: [f.id for f in section.figures]
        for section in claims_page(ENTRIES, made_up(), ABOUT).sections
    }
    assert all(figures[name] for name in RECIPES)
    assert figures["mine.own"] == ["mine.own.criteria"]
    assert figures["mine.absent"] == []


def test_a_record_without_the_figures_data_still_makes_a_page():
    page = claims_page([entry("lu2021.rate")], {}, ABOUT)
    assert [f.id for f in page.sections[0].figures] == ["lu2021.rate.criteria"]


def test_runs_in_which_nothing_happens_still_have_figures():
    data = lu2021(2, 20)
    for name in ("reference", "std 0.1"):
        data[name] = data[name].assign(sen_error=data[name].sen_error.where(False))
    for name in ("std 0.3", "std 1.0"):
        data[name] = data[name].assign(
            dip=data[name].dip & False, dip_step=data[name].dip_step.where(False)
        )
    reference = data["reference"]
    nothing = {n: reference[n].where(False) for n in ("onset", "predicted_onset", "score_error")}
    data["reference"] = reference.assign(nothing)
    for name in (n for n in RECIPES if n.startswith("lu2021") and ".text_" not in n):
        assert RECIPES[name](data), name


def test_a_page_at_full_size_stays_below_twelve_megabytes():
    data = lu2021(16, 200, 8)
    page = claims_page([entry(name) for name in RECIPES], data, ABOUT)
    assert len(render(page).encode()) < 11e6


def test_only_what_is_judged_is_counted():
    entries = [
        entry("a"),
        entry("b", verdict="fails"),
        entry("c", verdict="reported"),
        entry("d", verdict="not run"),
    ]
    assert claims_page(entries, {}, ABOUT).summary.startswith("1 of 2 claims hold in 8 seeds")


def test_figures_are_written_beside_the_page(tmp_path):
    write_report(tmp_path, ENTRIES, made_up(), ABOUT)
    header = (tmp_path / "figures" / "mine.own.criteria.csv").read_text("utf-8").splitlines()[0]
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
