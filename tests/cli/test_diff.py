"""``attnlab diff`` as a user types it: tables, JSON and exit codes."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_stale import CLAIM


@pytest.fixture
def folders(run, tmp_path):
    """Three folders of `attnlab check`: a claim, the same again, and its runs after an edit."""
    for name, level in (("a", "0.0"), ("same", "0.0"), ("edited", "5.0")):
        (tmp_path / f"{name}.py").write_text(CLAIM.replace('"level": 0.0', f'"level": {level}'))
        words = ("check", f"{name}.py", "--processes", "0", "--out", name, "--quiet")
        assert run(*words)[0] == (0 if level == "0.0" else 3)
    return run


def test_nothing_moved(folders):
    code, out, _ = folders("diff", "a", "same")
    assert code == 0
    assert "0 verdicts moved; 0 of 2 figures moved" in out
    assert "mine.small" not in out
    code, out, _ = folders("diff", "a", "same", "--details")
    assert code == 0
    assert "control high: value" in out


def test_what_moved_is_listed_and_the_exit_code_is_1(folders):
    code, out, _ = folders("diff", "a", "edited")
    assert code == 1
    (whole,) = [line for line in out.splitlines() if "the whole" in line]
    assert "holds" in whole
    assert "fails" in whole
    assert "5 [5, 5], 8 seeds" in out
    assert "before: a (scale quick, seeds 8; " in out
    assert "2 verdicts moved; 1 of 2 figures moved, 1 of them compared by intervals" in out
    assert "control high: value" not in out


def test_json_has_every_figure(folders):
    code, out, _ = folders("diff", "a", "edited", "--json")
    found = json.loads(out)
    assert (code, found["moved"], found["confidence"]) == (1, True, 0.95)
    moved = {figure["what"]: figure["moved"] for figure in found["figures"]}
    assert moved == {"value": True, "control high: value": False}
    assert found["figures"][0]["difference"] == pytest.approx(5)
    assert found["verdicts"][0] == {
        "claim": "mine.small",
        "what": "",
        "before": "holds",
        "after": "fails",
    }


def test_a_folder_without_a_result_is_a_mistake_in_words(folders, tmp_path):
    (tmp_path / "empty").mkdir()
    code, _, err = folders("diff", "a", "empty")
    assert code == 2
    assert "empty has no record.json" in err
    assert "Traceback" not in err


def test_the_help_has_an_example_and_the_exit_codes(run):
    code, out, _ = run("diff", "--help")
    assert code == 0
    assert "attnlab diff results results-after-the-edit" in out
    assert "Exit codes: 0 nothing moved; 1 a verdict or a figure moved" in " ".join(out.split())
