"""The page as a reader's browser shows it."""

from __future__ import annotations

import re

import pytest

from attnlab.report import write_folder


@pytest.fixture(scope="module")
def path(evil_page, tmp_path_factory):
    return write_folder(evil_page, tmp_path_factory.mktemp("page"))


def test_the_browser_sees_what_it_should(browser, tmp_path):
    """The control: on a page that does not escape, the checks below find the script, the image and
    the error.
    """
    page = tmp_path / "bad.html"
    page.write_text(
        "<body data-drawn='0/0'><img src=x onerror=\"document.title='ran'; console.error(1)\">"
    )
    browser.open(page)
    browser.wait_for("document.title === 'ran'")
    assert browser.problems()
    assert any(
        event["request"]["url"].endswith("/x")
        for event in browser.told("Network.requestWillBeSent")
    )


def test_every_figure_is_drawn_and_evil_words_are_words(browser, path, evil):
    browser.open(path)
    assert browser.evaluate("document.body.dataset.drawn") == "5/5"
    assert browser.evaluate("document.querySelectorAll('.plot .main-svg').length") >= 4
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    drawn = browser.evaluate(
        "[...document.querySelectorAll('.plot text')].map((text) => text.textContent)"
    )
    for place in ("legendtext", "xtitle", "ytitle", "annotation-text", "shape-label"):
        texts = browser.evaluate(
            f"[...document.querySelectorAll('.plot .{place}')].map((t) => t.textContent).join()"
        )
        assert evil in texts, place
    assert not any("&lt;" in text for text in drawn)
    assert browser.problems() == []
    requests = {event["request"]["url"] for event in browser.told("Network.requestWillBeSent")}
    assert {url for url in requests if not url.startswith(("about:", "data:"))} == {path.as_uri()}


def test_choice_slider_and_theme_work_together(browser, path):
    browser.open(path, mark="#all")
    browser.evaluate(
        "(([select, slider]) => { select.value = 1; select.dispatchEvent(new Event('change'));"
        "slider.value = 1; slider.dispatchEvent(new Event('input')); })"
        "(['[data-choice]', '[data-frame]'].map((name) => document.querySelector(name)))"
    )
    plots = (
        "const [theory, relation] = ['theory', 'relation']"
        ".map((n) => document.querySelector(`#figure-${n} .plot`));"
    )
    shown = "theory.data.filter((t) => t.visible !== false).map((t) => t.meta.choice)"
    state = f"(() => {{ {plots} return [Math.min(...{shown}), relation.data[0].x, theory.layout.paper_bgcolor]; }})()"
    choice, dots, paper = browser.evaluate(state)
    frame = "JSON.parse(document.querySelector('#figure-relation script').textContent).plotly.frames[1].data[0].x"
    assert (choice, paper) == (1, "#ffffff")
    assert dots == browser.evaluate(frame)
    browser.evaluate("document.querySelector('[data-theme-toggle]').click()")
    assert browser.evaluate(state) == [1, dots, "#171b22"]
    browser.evaluate("localStorage.clear()")
    assert browser.problems() == []


def test_a_narrow_dark_page_fits_and_prints_light(browser, path):
    browser.open(path, width=360, height=780, dark=True)
    assert browser.evaluate("document.documentElement.scrollWidth") == 360
    plot = "document.querySelector('#figure-theory .plot')"
    assert browser.evaluate(f"{plot}.layout.paper_bgcolor") == "#171b22"
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 19, 25)"
    browser.evaluate(  # what the reader has chosen is printed as it is shown
        "(([select]) => { select.value = 1; select.dispatchEvent(new Event('change')); })"
        "(document.querySelectorAll('#figure-theory [data-choice]'))"
    )
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert browser.evaluate(f"{plot}.layout.paper_bgcolor") == "#ffffff"
    assert browser.evaluate(f"{plot}.querySelector('.main-svg').clientWidth") == 660
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=dark)
    shown = "getComputedStyle(document.querySelector('#figure-{} .{}')).display"
    assert browser.evaluate(shown.format("theory", "plot")) != "none"
    assert browser.evaluate(shown.format("theory", "still")) == "none"
    assert browser.evaluate(shown.format("band", "plot")) == "none"
    assert browser.evaluate(shown.format("band", "still")) != "none"
    ink = "getComputedStyle(document.querySelector('#figure-band .still text')).fill"
    assert browser.evaluate(ink) == "rgb(90, 99, 115)"  # MUTED, as on white
    browser.call("Emulation.setEmulatedMedia", media="", features=dark)
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate(f"{plot}.querySelector('.main-svg').clientWidth") < 360
    assert browser.evaluate(f"{plot}.layout.paper_bgcolor") == "#171b22"
    assert browser.problems() == []


def test_without_its_script_every_figure_stands_still(browser, path, tmp_path, evil):
    page = tmp_path / "still.html"
    page.write_text(re.sub(r"<script>.*?</script>", "", path.read_text("utf-8"), flags=re.DOTALL))
    browser.call("Page.navigate", url=page.as_uri())
    browser.wait_for(
        "document.readyState === 'complete' && document.querySelector('.still') !== null"
    )
    drawn = browser.evaluate(
        "[...document.querySelectorAll('.canvas')].map((canvas) => {"
        "const [box, still] = [canvas, canvas.querySelector('svg')].map((e) => e.getBoundingClientRect());"
        "return [still.height === box.height, still.width === box.width,"
        "canvas.querySelectorAll('path, circle').length > 3]; })"
    )
    assert drawn == [[True] * 3] * 4
    assert evil in browser.evaluate("document.querySelector('.still').textContent")
    assert browser.problems() == []


def test_each_figure_can_be_saved(browser, path, tmp_path, evil):
    browser.open(path)
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.evaluate(
        "document.querySelectorAll('#figure-heat [data-save], #figure-band "
        "[data-save]').forEach((b) => b.click())"
    )
    names = {f"{figure}.{form}" for figure in ("heat", "band") for form in ("svg", "png", "csv")}
    browser.wait_for("new Promise((done) => setTimeout(() => done(true), 1500))")
    assert {saved.name for saved in tmp_path.iterdir()} == names
    assert (tmp_path / "band.png").read_bytes().startswith(b"\x89PNG")
    assert "<img" not in (tmp_path / "band.svg").read_text()
    lines = (tmp_path / "heat.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# 6 significant digits")
    assert lines[2] == f"'{evil},'{evil}"
    assert browser.problems() == []
