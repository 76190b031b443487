"""What is said to be best on a user's texts, on made-up answers whose order is known."""

import numpy as np
import pytest
import xarray as xr

from attnlab.questions.texts._best import confusion, scoreboard, tried, verdict
from attnlab.questions.texts._tables import MAJORITY, STUDENTS, Confused, Scores, Tried
from attnlab.stats import SCORES

TEXTS, SEEDS = 600, 8


def answers(shares, *, majority=0.5, variants=(), seed=0):
    """Students that are right in these shares of the texts, most of them the same texts."""
    rng = np.random.default_rng(seed)
    truth = (np.arange(TEXTS) >= majority * TEXTS).astype(int)
    hardness = rng.permutation(TEXTS) / TEXTS
    said = []
    for share in shares:
        blur = 0.1 * rng.standard_normal((SEEDS, TEXTS))
        said.append(np.where(hardness + blur < share, truth, 1 - truth))
    return xr.Dataset(
        {
            "said": (("student", "seed", "text"), np.array(said)),
            "truth": ("text", truth),
            "name": ("class", ["bad", "good"]),
        },
        {"student": [*STUDENTS, *variants], "seed": range(SEEDS)},
    ).assign_attrs(size=2954, majority=0 if majority >= 0.5 else 1)


@pytest.mark.parametrize(
    ("shares", "best", "attention", "words"),
    [
        ((0.68, 0.69, 0.75), ["tf-idf"], "behind", "TF-IDF is best: 75 % [7"),
        ((0.80, 0.70, 0.75), ["attention-pooling"], "best", "attention pooling is best: 80 %"),
        (
            (0.75, 0.751, 0.749),
            ["mean-pooling", "attention-pooling", "tf-idf"],
            "equal",
            "makes no difference that can be told which you take",
        ),
        (
            (0.751, 0.60, 0.75),
            ["attention-pooling", "tf-idf"],
            "equal",
            "cannot be told apart; attention pooling has no advantage here",
        ),
        (
            (0.60, 0.751, 0.75),
            ["mean-pooling", "tf-idf"],
            "behind",
            "are best and cannot be told apart; attention pooling is not better here (60 %",
        ),
    ],
)
def test_the_answer_is_one_sentence(shares, best, attention, words):
    found = verdict(answers(shares))
    assert (set(found["best"]), found["attention"]) == (set(best), attention)
    assert found["beats_majority"]
    sentence = found["sentence"].replace("\u00a0", " ").replace("\u202f", " ")
    assert sentence.startswith("With your 2 954 labels ")
    assert words in sentence
    assert ("not better here" in sentence) == (attention == "behind")


def test_what_the_largest_class_reaches_is_no_success():
    found = verdict(answers((0.78, 0.79, 0.80), majority=0.8))
    assert not found["beats_majority"]
    assert found["majority"] == pytest.approx(0.8)
    assert "nothing tried here is better than always naming the largest class" in found["sentence"]


def test_scores_and_confusion_are_those_of_the_answers():
    data = answers((0.68, 0.69, 0.75), majority=0.7)
    board = scoreboard(data)
    assert board.student.values.tolist() == [
        "tf-idf",
        "mean-pooling",
        "attention-pooling",
        MAJORITY,
    ]
    assert tuple(board.score.values.tolist()) == SCORES
    right = (data.said == data.truth).mean(("seed", "text"))
    for student in STUDENTS:
        shown = board[Scores.value].sel(student=student, score="accuracy")
        assert float(shown) == pytest.approx(float(right.sel(student=student)))
    largest = board[Scores.value].sel(student=MAJORITY).values
    np.testing.assert_allclose(largest, [0.7, 0.5, 0.7 / 1.7], rtol=1e-12)
    table = confusion(data)
    assert table.attrs["student"] == "tf-idf"
    np.testing.assert_allclose(table[Confused.share].sum("said"), 1.0)
    assert table[Confused.texts].values.tolist() == [420, 180]
    own = data.said.sel(student="tf-idf").values[:, data.truth.values == 1]
    assert float(table[Confused.share].sel(true="good", said="bad")) == pytest.approx(
        (own == 0).mean()
    )
    assert (table[Confused.low] <= table[Confused.share]).all()


def test_a_class_without_test_texts_has_no_row_of_shares():
    data = answers((0.7, 0.7, 0.75))
    data = data.drop_vars("name").assign(name=("class", ["bad", "good", "absent"]))
    table = confusion(data)
    assert np.isnan(table[Confused.share].sel(true="absent")).all()
    assert float(table[Confused.share].sel(true="good", said="absent")) == 0.0


@pytest.mark.parametrize("seed", range(6))
def test_advice_never_contradicts_its_table(seed):
    """Whatever the answers: who is named better or to be avoided is so in the table, and else nobody."""
    rng = np.random.default_rng(seed)
    shares = np.round(rng.uniform(0.6, 0.8, 5), 2)
    data = answers(shares, variants=("softmax:0.25", "sparsemax"), seed=seed)
    students = {
        "softmax": "attention-pooling",
        "softmax:0.25": "softmax:0.25",
        "sparsemax": "sparsemax",
        "uniform": "mean-pooling",
    }
    table, record = tried(data, dict.fromkeys(students, 1.0), students, steps=600)
    advice = record["advice"]
    assert table[Tried.value].values.tolist() == sorted(table[Tried.value].values, reverse=True)
    better = [n for n in record["order"] if float(table[Tried.gain_low].sel(student=n)) > 0]
    worse = [n for n in record["order"] if float(table[Tried.gain_high].sel(student=n)) < 0]
    head, _, tail = advice.partition("Avoid ")
    assert [n for n in students if f" {n} (" in head] == [n for n in students if n in better]
    assert ("none is better than softmax" in head) == (not better)
    assert all(f"{name} (" in tail for name in worse)
    assert bool(tail) == bool(worse)
    if "TF-IDF is better than all of them" in advice:
        assert verdict(data)["best"] == ["tf-idf"]
