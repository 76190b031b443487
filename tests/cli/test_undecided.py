"""What is undecided is visible: in the summary, by an exit code, and until it is decided."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_stale import CLAIM


@pytest.fixture
def check(run, tmp_path):
    """`attnlab check` of a small claim of the user's own; exit code and output."""
    (tmp_path / "claim.py").write_text(CLAIM)

    def call(*words: str) -> tuple[int, str, str]:
        return run("check", "claim.py", "--processes", "0", *words)

    return call


def test_the_summary_never_says_that_all_is_well_while_something_is_open(check):
    code, out, _ = check("--seeds", "4")
    assert code == 0
    assert "0 of 1 claims are decided: 1 inconclusive" in out
    assert "none contradicts" not in out
    code, out, _ = check("--seeds", "8")
    assert "1 of 1 claims are decided: 1 holds" in out
    assert "none contradicts what was expected" in out


def test_strict_ends_with_code_4_while_something_is_open(check):
    assert check("--seeds", "4", "--strict")[0] == 4
    assert check("--seeds", "8", "--strict")[0] == 0


def test_a_contradiction_comes_before_what_is_open(check, tmp_path):
    opposite = CLAIM.replace('refuted_by="more"', 'refuted_by="more", expected="fails"')
    (tmp_path / "claim.py").write_text(opposite)
    code, out, _ = check("--seeds", "8", "--strict")
    assert code == 3
    assert "none contradicts" not in out


def test_seeds_until_decided(check):
    code, out, _ = check("--until", "decided", "--json")
    entry = json.loads(out)["claims"][0]
    assert (code, entry["verdict"]) == (0, "holds")
    assert [look["seeds"] for look in entry["looks"]] == [8]
    assert entry["confidence"] == pytest.approx(0.9903)
    code, _, err = check("--until", "decided", "--seeds", "8")
    assert code == 2
    assert "give one of the two" in err
