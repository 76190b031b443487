"""``attnlab predict``, and mistakes in calls of ``attnlab study``."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from attnlab import AttentionClassifier
from tests.data.reviews import rows, write


def test_a_stored_model_labels_texts(run):
    table = rows(50)
    write(Path("reviews.csv"), table)
    texts, labels = zip(*table, strict=True)
    AttentionClassifier(steps=20).fit(list(texts), list(labels)).save("study/model")
    for given in ([], ["--model", "study/model"]):
        code, out, err = run("predict", "reviews.csv", "--text", "review", *given)
        assert code == 0, err
        found = list(csv.DictReader(out.splitlines()))
        assert len(found) == 50
        assert {"file", "row", "label", "p(pos)", "p(neg)", "words", "weights"} <= set(found[0])
        assert float(found[0]["p(pos)"]) + float(found[0]["p(neg)"]) == pytest.approx(1, abs=1e-4)
        assert found[0]["row"] == "2"
    code, out, err = run("predict", "reviews.csv", "--text", "review", "--out", "labels.csv")
    assert (code, out) == (0, "")
    assert "50 texts: labels.csv" in err
    assert len(Path("labels.csv").read_text("utf-8").splitlines()) == 51


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["study"], "no file was given"),
        (["study", "nowhere.csv"], "nowhere.csv"),
        (["study", "reviews.csv", "--text", "reveiw", "--label", "sentiment"], "'review'"),
        (["study", "reviews.csv", "--scale", "huge"], "--scale huge"),
        (["study", "reviews.csv", "--level", "80"], "between 0 and 1"),
        (["study", "one.csv", "--text", "review", "--label", "sentiment"], "have the same label"),
        (["predict", "reviews.csv", "--model", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(run, line, message):
    write(Path("reviews.csv"), rows(20))
    Path("one.csv").write_text("review,sentiment\na b,good\nc d,good\ne f,good\n")
    code, _, err = run(*line)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
