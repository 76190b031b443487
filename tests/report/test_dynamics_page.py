"""The page of one configuration, from made-up data of the right shape."""

from __future__ import annotations

import pytest
from made_up import EVIL_WORD, dynamics, endings, lu2021

from attnlab.report import dynamics_page, render, write_dynamics

ABOUT = {
    "summary": ["All topic words rise.", "The relation holds."],
    "cards": [
        {
            "label": "relation",
            "text": "Score and norm",
            "headline": "0.2 %",
            "measure": "median error",
            "verdict": "holds",
            "link": "relation",
        },
        {
            "label": "accuracy",
            "text": "Right",
            "headline": "1",
            "measure": "test accuracy",
            "verdict": None,
        },
    ],
    "command": "attnlab dynamics --head fixed",
    "settings": {"head": "fixed", "steps": 5000, "trained": None, "parts": ["keys", "embeddings"]},
    "absent": {},
    "attnlab": "0.1.0",
    "seeds": 4,
}
_PREDICTED = [
    "predicted_score",
    "predicted_norm",
    "predicted_attention",
    "predicted_loss",
    "predicted_onset",
]


def figures_of(page) -> dict[str, list[str]]:
    return {section.id: [figure.id for figure in section.figures] for section in page.sections}


def test_everything_recorded_is_shown():
    page = dynamics_page({"dynamics": dynamics(), "endings": endings(4)}, ABOUT)
    figures = figures_of(page)
    assert figures["happened"] == [
        "loss",
        "learned",
        "words_score",
        "words_norm",
        "dynamics_endings",
    ]
    assert figures["relation"] == ["sen_relation", "sen_error"]
    assert figures["reduced"] == ["reduced_overlay", "reduced_onset", "reduced_error"]
    assert figures["phases"] == ["phase_story", "phase_table"]
    assert page.summary == "All topic words rise. The relation holds."
    assert page.provenance == {"Attnlab": "0.1.0", "Seeds": "4"}
    text = render(page)
    for part in ("At a glance", "attnlab dynamics --head fixed", "keys, embeddings", "0.2 %"):
        assert part in text
    assert EVIL_WORD not in text


def test_what_is_absent_is_explained_in_a_sentence():
    data = dynamics().drop_vars(
        [*_PREDICTED, "scaled_norm", "phase", "separation_score", "attention"]
    )
    about = ABOUT | {"absent": {"prediction": "the query is trained", "relation": "Adam was used."}}
    page = dynamics_page({"dynamics": data}, about)
    bodies = {section.id: section.body for section in page.sections}
    assert bodies["reduced"] == ("A prediction is not shown: the query is trained.",)
    assert bodies["relation"] == ("The relation is not shown: Adam was used.",)
    assert bodies["phases"] == (
        "The story of each word is not shown: it was not recorded in these runs.",
    )
    assert figures_of(page)["happened"] == ["loss", "learned", "words_score", "words_norm"]


def test_what_theory_does_not_speak_of_is_not_drawn_though_it_is_there():
    data, nowhere = dynamics(), dynamics()
    page = dynamics_page(
        {"dynamics": data}, ABOUT | {"absent": {"relation": "the keys are frozen"}}
    )
    assert page.sections[1].body == ("The relation is not shown: the keys are frozen.",)
    nowhere["sen_error"] = nowhere.sen_error.where(False)
    page = dynamics_page({"dynamics": nowhere}, ABOUT)
    assert page.sections[1].body == ("The relation is not shown: no score has risen above 0.05.",)
    assert figures_of(page)["relation"] == []


def test_a_prediction_goes_beyond_training_and_may_stand_alone():
    far = lu2021(4, 20)["asymptotics"].sel(head="fixed", drop=True)
    page = dynamics_page({"dynamics": dynamics(), "prediction": far}, ABOUT)
    assert [section.id for section in page.sections] == [
        "happened",
        "relation",
        "reduced",
        "foretold",
        "phases",
        "again",
    ]
    about = ABOUT | {"absent": {"dynamics": "nothing was trained"}}
    page = dynamics_page({"prediction": far}, about)
    assert page.sections[0].body == ("Training is not shown: nothing was trained.",)
    assert figures_of(page)["foretold"] == ["far_words", "far_loss", "far_score", "far_attention"]
    short = dynamics_page({"prediction": far.sel(time=slice(0, 1e4))}, about)
    assert figures_of(short)["foretold"] == ["far_words", "far_loss", "far_attention"]


def test_what_the_cards_say_is_not_said_twice():
    page = dynamics_page(
        {"dynamics": dynamics()}, ABOUT | {"summary": ["Score and norm", "All rise."]}
    )
    assert page.summary == "All rise."


def test_a_single_seed_is_enough():
    page = dynamics_page({"dynamics": dynamics(seeds=1), "endings": endings(1)}, ABOUT)
    assert all(figures for name, figures in figures_of(page).items() if name != "again")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_is_drawn_and_all_choices_work(browser, tmp_path, width, dark):
    path = write_dynamics(tmp_path, {"dynamics": dynamics(count=8), "endings": endings(4)}, ABOUT)
    assert (
        (tmp_path / "figures" / "phase_story.csv")
        .read_text("utf-8")
        .startswith("seed,word,step,phase")
    )
    browser.open(path, mark="#all", width=width, dark=dark)
    assert browser.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    browser.evaluate(
        "document.querySelectorAll('[data-choice]').forEach((select) => "
        "{ select.value = select.options.length - 1; select.dispatchEvent(new Event('change')); })"
    )
    shown = (
        "(() => { const traces = document.querySelector('#figure-phase_story .plot').data;"
        "return [...new Set(traces.filter((t) => t.visible !== false).map((t) => "
        "t.meta.choice))]; })()"
    )
    assert browser.evaluate(shown) == [23]
    browser.wait_for(
        "document.querySelector('#figure-dynamics_endings .xtitle').textContent === 'final norm "
        "|ν|'"
    )
    assert browser.problems() == []
