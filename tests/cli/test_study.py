"""``attnlab study`` and ``attnlab predict`` as a user meets them."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

EVIL = "<script>alert(1)</script>"


def write(name: str, count: int) -> None:
    draw = random.Random(0)
    with open(name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "sentiment", "stars"])
        for k in range(count):
            telling = ("good", "bad")[k % 2]
            noise = " ".join(f"w{draw.randrange(40)}" for _ in range(5))
            writer.writerow([f"{noise} {telling} {EVIL if k % 9 == 0 else ''}", telling, k % 5])


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch):
    """Everything a study does, in few steps."""
    numbers = {
        "seeds": 2,
        "sizes": (10, 20, 40),
        "fit_steps": 30,
        "training_seeds": 2,
        "training_steps": 96,
        "embedding_dim": 4,
    }
    monkeypatch.setitem(
        __import__("attnlab.cli._study", fromlist=["_NUMBERS"])._NUMBERS, "quick", numbers
    )


def test_from_fifty_rows_to_page_and_labels(run, short):
    write("reviews.csv", 50)
    line = ["study", "reviews.csv", "--text", "review", "--label", "sentiment", "--processes", "0"]
    code, out, err = run(*line, "--json")
    assert code == 0, err
    about = json.loads(out)["about"]
    assert about["reading"]["kept"] == 50
    assert about["verdicts"]["pays"]["verdict"] == "inconclusive"
    assert json.loads(Path("study/study.json").read_text("utf-8"))["schema"] == 1
    page = Path("study/report.html").read_text("utf-8")
    assert EVIL not in page
    assert "Does attention pay?" in page
    Path("study/report.html").unlink()
    assert run("report", "study", "--quiet")[0] == 0
    assert Path("study/report.html").read_text("utf-8") == page
    code, out, err = run("predict", "study", "reviews.csv", "--text", "review")
    assert code == 0, err
    table = list(csv.DictReader(out.splitlines()))
    assert len(table) == 50
    assert {"file", "row", "label", "p(good)", "p(bad)", "words", "weights"} <= set(table[0])
    assert float(table[0]["p(good)"]) + float(table[0]["p(bad)"]) == pytest.approx(1, abs=1e-4)
    assert table[0]["row"] == "2"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["study"], "give the texts as FILES or as --train"),
        (["study", "a.csv", "--train", "b.csv"], "not as both"),
        (["study", "nowhere.csv"], "nowhere.csv"),
        (["study", "reviews.csv", "--text", "reveiw", "--label", "sentiment"], "'review'"),
        (
            ["study", "reviews.csv", "--text", "review", "--label", "sentiment", "--scale", "huge"],
            "--scale huge",
        ),
        (
            ["study", "reviews.csv", "--text", "review", "--label", "sentiment", "--target", "80"],
            "between 0 and 1",
        ),
        (["study", "one.csv", "--text", "review", "--label", "sentiment"], "have the same label"),
        (["predict", "nowhere", "reviews.csv"], "nowhere"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(run, line, message):
    write("reviews.csv", 20)
    Path("one.csv").write_text("review,sentiment\na b,good\nc d,good\ne f,good\n")
    code, _, err = run(*line)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
