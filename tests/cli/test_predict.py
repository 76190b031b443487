"""``attnlab predict``, and mistakes in calls of ``attnlab study``."""

from __future__ import annotations

import csv
import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attnlab import AttentionClassifier
from tests.data.reviews import rows, write

pytestmark = pytest.mark.slow


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


@pytest.fixture
def model() -> str:
    texts, labels = zip(*rows(50), strict=True)
    names = {"pos": "=HYPERLINK(1)", "neg": "-1"}
    AttentionClassifier(steps=20).fit(list(texts), [names[c] for c in labels]).save("model")
    return "model"


def test_what_is_written_is_no_formula_to_a_spreadsheet(run, model):
    write(Path("=a.csv"), rows(20))
    code, out, err = run("predict", "=a.csv", "--text", "review", "--model", model)
    assert code == 0, err
    head, *found = csv.reader(out.splitlines())
    assert head[:5] == ["file", "row", "label", "p(-1)", "p(=HYPERLINK(1))"]
    assert {row[0] for row in found} == {"'=a.csv"}
    assert {row[2] for row in found} == {"'=HYPERLINK(1)", "-1"}  # a class that is a number stays


def test_files_at_urls_compressed_and_of_two_encodings(run, model, monkeypatch, tmp_path):
    import fsspec

    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    content = "review\nschön gut\n".encode() + "très good\n".encode("latin-1")
    with fsspec.open("memory://predict/new.csv.gz", "wb") as file:
        file.write(gzip.compress(content))  # pyright: ignore[reportAttributeAccessIssue]
    code, out, err = run("predict", "memory://predict/new.csv.gz", "--model", model)
    assert code == 0, err
    assert [row["file"] for row in csv.DictReader(out.splitlines())] == [
        "memory://predict/new.csv.gz"
    ] * 2
    assert "lines: 1 not UTF-8, read as cp1252 (first: memory://predict/new.csv.gz, line 3" in err


def test_inputs_are_not_written_over_and_a_full_disk_is_one_message(run, model):
    write(Path("a.csv"), rows(20))
    before = Path("a.csv").read_bytes()
    given = ["predict", "a.csv", "--text", "review", "--model", model, "--out"]
    for out, message in (
        ("./a.csv", "is one of the files with the texts"),
        ("/dev/full", "cannot write /dev/full .*No space left"),
        ("nowhere/labels.csv", "cannot write nowhere/labels.csv .*No such file"),
    ):
        code, _, err = run(*given, out)
        assert code == 2
        assert re.search(message, err)
        assert "Traceback" not in err
    assert Path("a.csv").read_bytes() == before


def test_standard_output_on_a_full_disk(run, model):
    write(Path("a.csv"), rows(20))
    call = [
        sys.executable,
        "-m",
        "attnlab",
        "predict",
        "a.csv",
        "--text",
        "review",
        "--model",
        model,
    ]
    with open("/dev/full", "w") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("limit", "out", "message"),
    [
        (500, "study", r"cannot write to study .*File too large.*are kept; free some space"),
        (None, "/sys/attnlab", r"cannot write to /sys/attnlab .*make it writable"),
        (None, "mine", r"mine holds files that attnlab did not write \(thesis.tex\)"),
    ],
)
def test_a_study_that_cannot_be_written_is_one_message(run, limit, out, message):
    write(Path("a.csv"), rows(60))
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("mine")
    script = (
        "import resource, sys\n"
        "from attnlab.cli import main\n"
        "limit = sys.argv.pop()\n"
        "if limit != 'None':\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))\n"
        "main()"
    )
    call = [sys.executable, "-c", script, "study", "a.csv", "--processes", "0", "--out", out]
    done = subprocess.run([*call, str(limit)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert re.search(message, done.stderr)
    assert "Traceback" not in done.stderr
