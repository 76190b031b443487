"""``attnlab compare`` and ``attnlab advise`` as a user meets them."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from attnlab import AttnlabError
from attnlab.cli._advise import advise
from attnlab.cli._compare import CompareCommand, compare
from tests.studies.texts import sentences

app = typer.Typer()
app.command(cls=CompareCommand)(compare)
app.command()(advise)
TINY = ["--samples", "16", "64", "--seeds", "2", "--steps", "20", "--weight-decays", "0", "--processes", "0"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str):
        return CliRunner().invoke(app, list(words))

    return call


def _reviews(folder):
    rows = [line.split(" ", 1) for line in sentences(200, 0)]
    file = folder / "my, reviews.csv"
    file.write_text("label,review\n" + "\n".join(f"{label},{text}" for label, text in rows) + "\n", "utf-8")
    return file


def test_a_comparison_prints_a_ranking_and_advice_and_writes_a_page(run, tmp_path):
    words = ["compare", "--task", "relevant:2", "--variants", "softmax", "top1,uniform", *TINY]
    found = run(*words)
    assert found.exit_code == 0, found.output
    for word in ("softmax", "top1", "uniform", "median error", "takes 7 seeds", "page: compare/report.html"):
        assert word in found.output, word
    assert (tmp_path / "compare" / "report.html").is_file()
    again = run(*words, "--json")
    assert again.exit_code == 0
    record = json.loads(again.output)
    assert {row["variant"] for row in record["ranking"]} == {"softmax", "top1", "uniform"}
    assert record["about"]["settings"]["relevant"] == 2
    assert set(record["ranking"][0]["p"]) == {"softmax", "top1", "uniform"}


def test_advice_on_texts_is_one_paragraph(run, tmp_path):
    file = _reviews(tmp_path)
    found = run("advise", str(file), "--text", "review", "--label", "label", "--seeds", "1", "--processes", "0")
    assert found.exit_code == 0, found.output
    assert "On these texts with" in found.output
    assert (tmp_path / "advice" / "report.html").is_file()


def test_a_file_name_may_hold_a_comma(run, tmp_path):
    file = _reviews(tmp_path)
    words = ["--text", "review", "--label", "label", "--variants", "softmax", "uniform", "--samples", "40", "80"]
    more = ["--seeds", "1", "--steps", "10", "--processes", "0", "--quiet"]
    found = run("compare", "--file", str(file), *words, *more)
    assert found.exit_code == 0, found.output
    assert found.output == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "soft"], "expected one of hard, dense"),
        (["--variants", "hardmax"], "normaliser 'hardmax'"),
        (["--file", "a.csv", "--task", "hard"], "leave out --task"),
        (["--text", "review"], "name columns of --file"),
        (["--task", "topic", "--variants", "softmax+l1:1", "--processes", "0"], "every word has its own score"),
        (["--file", "absent.csv"], "absent.csv"),
    ],
)
def test_mistakes_are_one_message(run, words, said):
    found = run("compare", *words)
    assert isinstance(found.exception, AttnlabError)
    assert said in str(found.exception)


def test_an_option_without_values_is_told(run):
    found = run("compare", "--variants", "--seeds", "2")
    assert found.exit_code == 2
    assert "expected one or several" in found.output
