"""``attnlab compare`` and ``attnlab advise`` as a user meets them."""

from __future__ import annotations

import json

import pytest
import typer
from attnlab.cli._advise import advise
from attnlab.cli._compare import CompareCommand, compare
from attnlab.studies._compare_answers import seeds_needed
from typer.testing import CliRunner

from attnlab import AttnlabError
from attnlab.studies import Comparison

app = typer.Typer()
app.command(cls=CompareCommand)(compare)
app.command()(advise)
TINY = [
    "--samples",
    "16",
    "64",
    "--seeds",
    "2",
    "--steps",
    "20",
    "--weight-decays",
    "0",
    "--processes",
    "0",
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*words: str):
        return CliRunner().invoke(app, list(words))

    return call


def test_a_comparison_prints_a_ranking_and_advice_and_writes_a_page(run, tmp_path):
    words = ["compare", "--task", "relevant:2", "--variants", "softmax,uniform", *TINY]
    found = run(*words)
    assert found.exit_code == 0, found.output
    for word in (
        "softmax",
        "uniform",
        "median error",
        "takes 6 seeds",
        "page: compare/report.html",
    ):
        assert word in found.output, word
    assert (tmp_path / "compare" / "report.html").is_file()
    again = run(*words, "--json")
    assert again.exit_code == 0
    record = json.loads(again.output)
    assert {row["variant"] for row in record["ranking"]} == {"softmax", "uniform"}
    assert record["about"]["settings"]["relevant"] == 2
    assert set(record["ranking"][0]["p"]) == {"softmax", "uniform"}


@pytest.fixture
def asked(monkeypatch):
    """What a command asks for, without running it."""
    seen: list[tuple[Comparison, dict]] = []

    def look(comparison, *rest, **more):
        seen.append((comparison, more))

    monkeypatch.setattr("attnlab.cli._compare.run_comparison", look)
    return seen


def test_a_file_name_may_hold_a_comma_and_other_values_are_cut_at_it(run, asked):
    found = run(
        "compare",
        "--file",
        "my, reviews.csv",
        "b.csv",
        "--text",
        "t",
        "--variants",
        "softmax,top2",
        "uniform",
    )
    assert found.exit_code == 0, found.output
    ((comparison, _),) = asked
    assert comparison.source is not None
    assert comparison.source.files == ("my, reviews.csv", "b.csv")
    assert comparison.variants == ("softmax", "top2", "uniform")


def test_advice_is_a_short_comparison_of_a_few_variants(run, asked):
    found = run("advise", "a.csv", "--text", "review", "--label", "sentiment")
    assert found.exit_code == 0, found.output
    ((comparison, more),) = asked
    assert comparison.source is not None
    assert (comparison.source.files, comparison.source.label) == (("a.csv",), "sentiment")
    assert comparison.reference == "softmax"
    assert "uniform" in comparison.variants
    assert comparison.seeds >= seeds_needed(len(comparison.variants))
    assert more == {"short": True}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--task", "soft"], "expected one of hard, dense"),
        (["--variants", "hardmax"], "normaliser 'hardmax'"),
        (["--file", "a.csv", "--task", "hard"], "leave out --task"),
        (["--text", "review"], "name columns of --file"),
        (
            ["--task", "topic", "--variants", "softmax+l1:1", "--processes", "0"],
            "every word has its own score",
        ),
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
