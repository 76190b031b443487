"""A page with a book is a site: its pages agree, their links resolve, their terms are explained."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from attnlab._errors import AttnlabError
from attnlab.report import Book, Chapter, Derivation, Line, Page, Story, Term, write_folder

ROOT = Path(__file__).parents[2]
AXE = ROOT / "build" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
TERMS = (
    Term("ν", r"\nu", r"Embedding: $\nu$ of a word.", "none"),
    Term("s", "s", "Score of a word."),
    Term("topic word", "", "A word that tells the label."),
)
WHY = r"A topic word's score $s$ grows with $\nu_0$, <because> it pays."


def written(folder: Path, page: Page) -> dict[str, str]:
    """Every page of a site by its path."""
    write_folder(page, folder)
    return {str(p.relative_to(folder)): p.read_text("utf-8") for p in folder.rglob("*.html")}


@pytest.fixture(scope="module")
def page(evil, judged, evil_page) -> Page:
    """Four judged statements with figures, and what is told around them."""
    drawn = [figure for section in evil_page.sections for figure in section.figures]
    kept = judged(
        "lu2021.sen",
        "holds",
        "holds",
        evil,
        figures=tuple(drawn[:3]),
        finding="Score $s$ tells the norm",
        why=WHY,
        tags={"paper": "lu2021", "section": "section 4", "source": "stated"},
        command="attnlab reproduce lu2021.sen",
        cautions=("tuning chose an end",),
    )
    refuted = judged(
        "liu2021.minima",
        "fails",
        "fails",
        figures=tuple(drawn[3:]),
        tags={"paper": "liu2021", "source": "rebuilt"},
    )
    undecided = judged("laws.sum", "inconclusive", "holds", tags={"paper": "laws"})
    absent = judged("lu2021.rate", "not run", "holds", criteria=(), controls=())
    lines = (Line(r"s = q \cdot \kappa", "because $s$ is so", "theory"), Line("s > 0", evil))
    story = Story(
        "lu2021",
        "Lu 2021 in figures",
        "Why?",
        (
            Chapter("task", f"The task $s$ {evil}", (WHY, evil), "lu2021.sen/relation"),
            Chapter(
                "why",
                "Why it is so",
                ("A topic word.",),
                "lu2021.sen/relation",
                Derivation("sen", "From $s$ to $\\nu$", lines),
                "lu2021.sen",
            ),
            Chapter("rate", "How slow", ("Slow.",), "lu2021.rate", claim="lu2021.rate"),
        ),
    )
    book = Book("Why?", (WHY,), "lu2021.sen/relation", (story,), TERMS, ("Read on.",))
    sections = (kept, refuted, undecided, absent)
    return Page("attnlab", "Which?", "2 of 3.", sections, provenance={"Seed": evil}, book=book)


@pytest.fixture(scope="module")
def folder(page, tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("site")
    write_folder(page, found)
    return found


@pytest.fixture(scope="module")
def pages(folder) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text("utf-8") for p in folder.rglob("*.html")}


class _Links(HTMLParser):
    """Ids and addresses of a page; whether a link stands in a link."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.open = 0
        self.nested = 0
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids += [v for k, v in attrs if k == "id" and v]
        self.addresses += [v for k in ("href", "src") if (v := values.get(k)) is not None]
        self.handlers += [name for name in values if name.startswith("on")]
        self.open += tag == "a"
        self.nested += tag == "a" and self.open > 1

    def handle_endtag(self, tag):
        self.open -= tag == "a"


def test_every_link_leads_somewhere_and_no_id_stands_twice(folder, pages):
    ids = {name: _Links(text).ids for name, text in pages.items()}
    assert len(pages) == 9
    for name, text in pages.items():
        found = _Links(text)
        assert len(found.ids) == len(set(found.ids)), name
        assert found.nested == 0, name
        for address in found.addresses:
            if address.startswith(("http", "data:image/png")):
                continue
            path, _, anchor = address.partition("#")
            target = (folder / name).parent / path if path else folder / name
            assert target.is_file(), (name, address)
            if anchor and target.suffix == ".html" and not address.startswith("#i-"):
                assert anchor in ids[str(target.resolve().relative_to(folder.resolve()))]


def test_pages_agree_with_the_record(page, pages):
    counts = [("1", "holds"), ("1", "fails"), ("1", "inconclusive"), ("1", "not run")]
    for name in ("index.html", "ledger.html"):
        assert re.findall(r"<b>(\d)</b> ([a-z ]+)</li>", pages[name])[:4] == counts
    assert pages["ledger.html"].count("data-row") == len(page.sections)
    assert re.findall(r'<option value="([^"]+)"', pages["ledger.html"]) == [
        *("lu2021", "liu2021", "laws"),
        *("section 4",),
        *("stated", "rebuilt"),
        *("holds", "fails", "inconclusive", "not run"),
    ]
    shown = re.findall(r'<section id="([^"]+)" class="refuted"', pages["open.html"])
    assert shown == ["liu2021.minima", "laws.sum"]
    assert "2 claims are refuted or undecided" in pages["index.html"]


def test_a_claim_says_what_was_found_and_folds_its_numbers(pages):
    text = pages["claims/lu2021.sen.html"]
    title = re.search("<h1[^>]*>(.*?)</h1>", text)
    assert title is not None
    assert "Score <math" in title[1]
    assert text.index("<h1") < text.index("The claim:") < text.index("<figure")
    assert text.index("<figure") < text.index("<details") < text.index("attnlab reproduce")
    assert "Caution: tuning chose an end" in text
    assert text.count("<details") == 4
    assert "<details open" not in text


def test_terms_are_explained_where_they_stand(pages):
    text = pages["lu2021.html"]
    for name, symbol in (("term-nu", r"\nu"), ("term-topic-word", "topic word")):
        assert f'data-term="{name}"' in text, symbol
        assert f'id="about-{name}"' in text, symbol
    assert '<a class="term" href="glossary.html#term-topic-word"' in text
    assert 'href="../glossary.html#term-topic-word"' in pages["claims/lu2021.sen.html"]
    assert "$" not in re.sub("<script.*?</script>", "", text, flags=re.DOTALL)
    assert "about-" not in pages["claims/laws.sum.html"].split("<main")[0]


def test_a_chapter_without_runs_names_the_command(pages):
    chapter = pages["lu2021.html"].split('id="rate"')[1]
    assert "attnlab reproduce lu2021.rate" in chapter
    assert "<figure" not in chapter


def test_nothing_is_unescaped_or_loaded_from_elsewhere(pages, evil):
    for name, text in pages.items():
        assert evil not in text, name
        assert "<because>" not in text
        assert not re.search(r"https?://(?!example\.org/|www\.w3\.org/)", text), name
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        assert "default-src 'none'" in policy[1]
        assert "unsafe-eval" not in policy[1]
        assert "script-src 'self' file:;" in policy[1]
        assert "<script>" not in text, name
        assert _Links(text).handlers == [], name


def test_figures_lie_on_disk_as_drawing_and_table(folder, page):
    names = {figure.id for section in page.sections for figure in section.figures}
    assert {p.stem for p in (folder / "figures").glob("*.svg")} == names
    assert {p.stem for p in (folder / "figures").glob("*.csv")} == names


def test_pages_are_small(folder):
    sizes = {p.name: p.stat().st_size for p in folder.rglob("*") if p.is_file()}
    assert sizes["index.html"] <= 300_000
    assert 1_000_000 <= sizes["plotly-cartesian.min.js"] <= 1_600_000


def test_single_is_one_file_and_a_draft_only_the_first_page(page, tmp_path):
    path = write_folder(page, tmp_path / "one", single=True)
    assert path.name == "report.html"
    assert {p.name for p in path.parent.iterdir()} == {"figures", "report.html"}
    draft = written(tmp_path / "draft", replace(page, pending="3 of 4 are still to come."))
    assert set(draft) == {"index.html"}
    assert 'http-equiv="refresh"' in draft["index.html"]
    assert "3 of 4 are still to come." in draft["index.html"]
    assert "laws.sum" in draft["index.html"]
    assert _Links(draft["index.html"]).addresses.count("lu2021.html") == 0


def test_a_figure_that_no_claim_draws_is_named(page, tmp_path):
    book = replace(page.book, figure="lu2021.sen/nothing")
    with pytest.raises(AttnlabError, match=r"'lu2021\.sen/nothing'; expected one of band"):
        write_folder(replace(page, book=book), tmp_path)


def test_a_reader_finds_filters_and_reads_terms(browser, folder):
    browser.open(folder / "lu2021.html", mark="#all")
    browser.evaluate("document.querySelector('#task .term').focus()")
    assert "tells the label" in browser.evaluate("document.getElementById('tip').textContent")
    assert browser.evaluate("document.activeElement.getAttribute('aria-describedby')") == "tip"
    browser.evaluate("document.querySelector('[data-lights]').focus()")
    lit = "document.querySelector('#figure-relation-why .plot').data.map((trace) => trace.opacity)"
    assert browser.evaluate(lit) == [0.15, 1]
    assert browser.problems() == []
    browser.open(folder / "ledger.html", width=390, height=800)
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    shown = "[...document.querySelectorAll('[data-row]')].filter((row) => !row.hidden).length"
    for setting, option, count in (("source", 2, 1), ("verdict", 1, 0)):
        browser.evaluate(
            f"(select => {{ select.value = select.options[{option}].value;"
            f"select.dispatchEvent(new Event('change')); }})(document.querySelector('[data-filter={setting}]'))"
        )
        assert browser.evaluate(shown) == count, setting
    assert browser.evaluate("document.querySelector('[data-shown]').textContent") == "0 of 4"
    requests = {event["request"]["url"] for event in browser.told("Network.requestWillBeSent")}
    assert {url for url in requests if not url.startswith(("about:", "file:", "data:"))} == set()


def test_an_anchor_lands_on_its_heading_while_figures_are_drawn(browser, folder):
    for width, height in ((1280, 900), (390, 800)):
        browser.open(folder / "lu2021.html", width=width, height=height, mark="#rate")
        browser.evaluate("new Promise((done) => setTimeout(() => done(true), 700))")
        top = browser.evaluate("document.getElementById('rate').getBoundingClientRect().top")
        bottom = browser.evaluate(
            "document.documentElement.scrollHeight - innerHeight - scrollY"
        )  # a short last chapter cannot reach the top of the window
        assert -2 <= top <= 90 or bottom <= 1, (width, top, bottom)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.skipif(not AXE.is_file(), reason="no axe-core: `make browser-packages` installs it")
@pytest.mark.parametrize("dark", [False, True])
def test_no_page_has_a_serious_barrier(browser, folder, pages, dark):
    code = AXE.read_text("utf-8")
    for name in pages:
        browser.open(folder / name, dark=dark)
        browser.evaluate(f"{code};0")
        found = browser.evaluate(
            "axe.run(document, {resultTypes: ['violations'], preload: false}).then(({violations}) =>"
            "violations.filter(({impact}) => ['serious', 'critical'].includes(impact))"
            ".map(({id, nodes}) => [id, nodes[0].html]))"
        )
        assert found == [], name
