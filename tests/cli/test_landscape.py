"""``attnlab landscape`` as a user meets it: a tiny run, mistakes, the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TINY = ["--model", "known-attention", "--samples", "32", "--starts", "3", "--processes", "0"]


def test_from_the_command_to_the_page_and_again(run):
    code, out, err = run("landscape", *TINY, "--quiet", "--json")
    assert code == 0, err
    shown = json.loads(out)
    first = shown["points"][0]
    assert first["kind"] == "minimum"
    assert 0 < first["smallest"] < first["largest"]
    assert sum(point["starts"] for point in shown["points"]) == 3
    assert "3 starts end: 3 at a minimum." in shown["about"]["summary"]
    assert any("a minimum: Newton distance " in sentence for sentence in shown["about"]["summary"])
    assert shown["about"]["settings"]["parameters"] == 36
    page = Path("landscape/report.html").read_text("utf-8")
    assert "--model known-attention" in page
    Path("landscape/report.html").unlink()
    assert run("report", "landscape")[0] == 0
    assert Path("landscape/report.html").read_text("utf-8") == page


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--model transformer", "model='transformer': expected one of baseline, known-attention"),
        ("--starts 0", "expected positive numbers"),
        ("--seeds 0", "seeds=0 must be ≥ 1"),
        ("--l2 -1", "l2=-1.0 must be ≥ 0"),
        ("--noise-std -1", "noise_std=-1.0 must be ≥ 0"),
        ("--classes 2 --noise-std 0.1", "--noise-std has no meaning with --classes"),
        ("--out file", "file is a file"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(run, line, message):
    Path("file").write_text("", "utf-8")
    code, out, err = run("landscape", *line.split())
    assert code == 2, out + err
    assert message in err
    assert "Traceback" not in out + err
