"""The page of ``attnlab dynamics`` in a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

import attnlab as al


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small configuration, with more words and seeds than a figure offers."""
    folder = tmp_path_factory.mktemp("dynamics")
    small = {"sentences": 200, "dictionary": 150, "noise_words": 6, "steps": 400, "seeds": 4}
    al.questions.ask("dynamics", folder, processes=0, progress=False, **small)
    return folder


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_is_drawn_and_all_choices_work(browser, drawn, width, dark):
    story = (drawn / "figures" / "phase_story.csv").read_text("utf-8")
    assert story.startswith("seed,word,step,phase")
    browser.open(drawn / "report.html", mark="#all", width=width, dark=dark)
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
