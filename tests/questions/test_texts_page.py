"""The page of a study whose texts, labels and file names try to break it."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnlab import study_texts
from attnlab.lab import Record, page, write_page
from attnlab.questions.texts import question
from attnlab.questions.texts._answers import _data_card
from attnlab.report import Figure, Section, render
from tests.data.reviews import EVIL

pytestmark = pytest.mark.slow

NASTY = (EVIL.split()[0], "</script>", "שלום", "👩‍🚀", "x" * 100_000, "%{x}", "\u202etxet", "don't")
FIGURES = {
    "answer": ["scores", "accuracy_curves", "confusion"],
    "pays": ["labels_needed"],
    "try": ["ranking"],
    "data": ["classes", "files", "dropped", "lengths"],
    "words": ["sentences", "words_by_score", "rarity", "deletion"],
    "training": [
        "attended_purity",
        "attended_frequency",
        "course_loss",
        "course_accuracy",
        "pairs",
        "sen",
    ],
    "good": ["ends_accuracy", "ends_curvature", "ends", "agreement", "between_seeds", "polish"],
}


def split_words(text: str) -> list[str]:
    """The tokeniser of this study: anything between white space is a word."""
    return text.split()


def nasty_rows(count: int) -> list[dict[str, str]]:
    """Unfriendly words are the ones that tell the class, which has an unfriendly name itself."""
    draw = random.Random(0)
    found = []
    for k in range(count):
        side = k % 2
        own = NASTY[side::2]
        words = [draw.choice(own), *(f"w{draw.randrange(30)}" for _ in range(5))]
        if draw.random() < (0.7, 0.25)[side]:
            words.append("plot")  # frequent, so attended early, and then overtaken by purer words
        draw.shuffle(words)
        found.append({"text": " ".join(words), "label": (EVIL, "negative")[side]})
    return [*found, found[0], {"text": "", "label": EVIL}]


@pytest.fixture(scope="module")
def record(tmp_path_factory) -> Record:
    folder = tmp_path_factory.mktemp("study")
    file = folder / "reviews <img src=x>.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in nasty_rows(160)), "utf-8")
    return study_texts(
        file,
        folder / "out",
        processes=0,
        progress=False,
        tokenizer="tests.questions.test_texts_page:split_words",
        seeds=2,
        sizes=(32, 128),
        fit_steps=30,
        training_seeds=2,
        training_steps=480,
        embedding_dim=8,
    )


def drawn(record: Record, **changed) -> dict[str, Section]:
    """The sections of the page, some data sets replaced or, as None, left out."""
    data = {k: v for k, v in {**record.data, **changed}.items() if v is not None}
    return {section.id: section for section in question.sections(replace(record, data=data))}


def figure(sections: dict[str, Section], id: str) -> Figure:
    return next(f for section in sections.values() for f in section.figures if f.id == id)


def test_the_sections_stand_in_order_with_their_cards_and_figures(record):
    sections = drawn(record)
    assert {name: [f.id for f in one.figures] for name, one in sections.items()} == FIGURES
    assert [section.title for section in sections.values()] == [
        "What is best on these texts?",
        "How many labels does each need?",
        "Would another kind of attention do better?",
        "Your data",
        "What does it attend to, and since when?",
        "Theory: how did attention get there?",
        "Theory: where did training stop?",
    ]
    assert [name for name, one in sections.items() if one.folded] == ["training", "good"]
    counts = {name: len(section.cards) for name, section in sections.items() if section.cards}
    assert counts == {"pays": 1, "words": 2, "training": 1, "good": 3}
    drawn_page = page(question, record)
    assert drawn_page.summary == record.content["verdicts"]["answer"]["sentence"]
    assert not drawn_page.cards
    facts = page(question, record).sections[-1].facts
    assert "GiB" in facts["peak memory"]
    assert facts["seeds"] == "2"


def test_the_file_is_text_without_anything_that_runs(record):
    text = (record.folder / "report.html").read_text("utf-8")
    assert text == render(page(question, record))
    assert len(text) < 8e6, "a very long word is cut wherever it stands"
    assert "x" * 100 not in text
    outside = re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL)
    assert "<img" not in outside
    assert "&lt;img" in outside
    assert not re.search("[\u202e\x00\udc00-\udfff]", text)
    for drawing in (record.folder / "figures").glob("*.json"):
        assert "<img" not in json.dumps(json.loads(drawing.read_text("utf-8"))), drawing.name


def test_a_name_that_is_no_text_does_not_break_the_page(record, tmp_path):
    about = record.about | {"command": "attnlab study caf\udce9.csv"}
    reading = record.content["reading"]
    files = [reading["files"][0] | {"name": "caf\udce9.csv"}]
    content = record.content | {"reading": reading | {"files": files}}
    forged = replace(record, about=about, content=content, folder=tmp_path)
    assert "caf\ufffd.csv" in write_page(question, forged).read_text("utf-8")


@pytest.mark.parametrize(
    "lost",
    [
        "lengths",
        "curves",
        "needed",
        "sentences",
        "words",
        "training",
        "pairs",
        "deletion",
        "sen",
        "ends",
        "agreement",
        "path",
        "polish",
        "variants",
        "scores",
        "confusion",
    ],
)
def test_any_data_set_may_be_missing_or_empty(record, lost):
    about = record.about | {"absent": {lost: "it was not asked for."}}
    data = {name: one for name, one in record.data.items() if name != lost}
    empty = record.data | {
        lost: record.data[lost].isel({d: slice(0) for d in record.data[lost].dims})
    }
    for given in (data, empty) if record.data[lost].dims else (data,):
        sections = question.sections(replace(record, data=given, about=about))
        said = [line for section in sections for line in section.body]
        assert any("not shown, since it was not asked for." in line for line in said)


def test_what_was_read_is_told_in_numbers(record):
    sections = drawn(record)
    said = " ".join(sections["data"].body)
    assert "162 rows were read, 160 are used, 2 are left out" in said
    assert figure(sections, "classes").table["training"] == [64, 64]
    assert figure(sections, "dropped").table["count"] == [1, 1]
    lengths = figure(sections, "lengths").table
    assert set(np.subtract(lengths["words to"], lengths["words from"]).tolist()) == {1.0}
    assert sum(lengths["training texts: count"]) == 128


def test_lines_in_another_encoding_are_counted_and_shown(record):
    assert record.content["reading"]["recoded"] == []
    example = {"place": "a.csv, line 8", "text": "café noir,a"}
    entry = {"reason": "not UTF-8, read as cp1252", "count": 3, "examples": [example]}
    reading = record.content["reading"] | {"recoded": [entry]}
    assert "Lines not UTF-8, read as cp1252: 3." in _data_card(reading).text
    changed = replace(record, content=record.content | {"reading": reading})
    (found,) = [f for f in drawn(changed)["data"].figures if f.id == "recoded"]
    assert found.table["count"] == [3]
    assert "a.csv, line 8" in found.table["first examples"][0]


def test_students_stand_with_the_level_and_what_they_need(record):
    level = record.content["verdicts"]["pays"]["level"]
    sections = drawn(record)
    traces = figure(sections, "accuracy_curves").plotly["data"]
    line = next(trace for trace in traces if str(trace.get("name", "")).startswith("target "))
    assert line["y"] == [level, level]
    majority = record.content["verdicts"]["answer"]["majority"]
    line = next(trace for trace in traces if str(trace.get("name", "")).startswith("largest class"))
    assert line["y"] == [majority, majority]
    for id in ("course_accuracy", "ends_accuracy"):
        assert "largest class" in json.dumps(figure(sections, id).plotly["layout"]), id
    needed = record.data["needed"]
    kind = np.array(["exact", "at least", "exact"])
    value = np.array([900.0, 3200.0, np.nan])
    changed = needed.assign(kind=("student", kind), value=("student", value))
    table = figure(drawn(record, needed=changed), "labels_needed").table
    assert table["is"] == ["exact", "at least", "unknown"]
    assert table["value"] == [900.0, 3200.0, None]


def test_words_are_tinted_by_excess_and_wait_without_onset(record):
    words = record.data["words"].assign(onset=record.data["words"].onset * np.nan)
    table = figure(drawn(record, words=words), "words_by_score")
    assert table.grid is not None
    place = table.grid.columns.index("excess purity")
    for tones, excess in zip(table.grid.tones, words.excess.values, strict=False):
        assert tones[place] == (f"h{min(4, int(5 * excess))}" if excess > 0 else "")
    onset = table.grid.columns.index("since step")
    assert {cells[onset] for cells in table.grid.cells} == {"–"}


def test_many_classes_are_grouped(record):
    words = record.data["words"].isel(rank=slice(20))
    leaning = np.array([f"class {k}" for k in range(words.sizes["rank"])])
    rarity = figure(drawn(record, words=words.assign(leaning=("rank", leaning))), "rarity")
    assert len(rarity.plotly["data"]) == 7
    assert rarity.table["group"].count("leans to another class") == words.sizes["rank"] - 6


def test_pairs_can_be_chosen_by_quantity(record):
    pairs = record.data["pairs"]
    many = pairs.isel(pair=np.arange(8) % pairs.sizes["pair"])
    shown = figure(drawn(record, pairs=many), "pairs")
    assert len(shown.choices) == 6 * 3
    assert "The first 6 of 8 pairs." in shown.caption


def test_the_deletion_test_says_what_came_out(record):
    deletion = record.data["deletion"]
    table = figure(drawn(record), "deletion").table
    assert table["flips"] == pytest.approx([float(deletion.top), float(deletion.other)], rel=1e-5)
    assert table["removed"] == ["the top-attended word", "a random other word"]


def test_what_was_trained_is_where_training_stopped_and_no_minimum(record):
    good = drawn(record, polish=None)["good"]
    words = " ".join(json.dumps(f.plotly) + f.caption + f.title for f in good.figures)
    assert "where training stopped" in words
    assert "minim" not in words


def test_negative_curvature_is_left_to_the_table(record):
    ends = record.data["ends"]
    sections = drawn(record, ends=ends.assign(trace=-abs(ends.trace)))
    rows = set(figure(sections, "ends_curvature").table["row"])
    assert rows <= {"gradient norm", "largest curvature λ_max"}
    assert all(v < 0 for v in figure(sections, "ends").table["trace of the curvature"])


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_the_page_without_scrolling_aside(browser, record, dark):
    browser.open(Path(record.folder) / "report.html", width=390, height=800, dark=dark, mark="#all")
    total = sum(map(len, FIGURES.values()))
    assert browser.evaluate("document.body.dataset.drawn") == f"{total}/{total}"
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.problems() == []


STATE = (
    "(() => { const item = document.querySelectorAll('.shaded > li')[1]; return ["
    "[...item.querySelectorAll('.said > span')].map((s) => s.style.getPropertyValue('--shade')),"
    "item.querySelector('[data-remark]').textContent, document.querySelector('#figure-sentences "
    "output').textContent]; })()"
)


def test_a_browser_shades_words_by_step(browser, record):
    browser.open(Path(record.folder) / "report.html")
    shown = figure(drawn(record), "sentences").shaded
    assert shown is not None
    entry = shown.sentences[1]
    known = [k for k, there in enumerate(entry.known) if there]
    last = len(shown.steps) - 1
    best = record.data["training"].attrs["best_step"]
    assert shown.steps[shown.start] == str(best)  # the stored model's

    def check(step: int) -> None:
        shades, told, name = browser.evaluate(STATE)
        assert [shades[k] for k in known] == [f"{entry.shades[step][k]}%" for k in known]
        assert (told, name) == (entry.remarks[step], shown.steps[step])

    check(shown.start)
    browser.evaluate(
        "(slider => { slider.value = 10; slider.dispatchEvent(new Event('input')); })"
        "(document.querySelector('#figure-sentences [data-frame]'))"
    )
    check(10)
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    check(last)
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    check(10)
    assert browser.problems() == []
