"""Commands after the code of their runs was edited: what they say, and what ``--keep`` does."""

from __future__ import annotations

import json

import pytest

CLAIM = """
from dataclasses import dataclass
from pathlib import Path
import numpy as np
import xarray as xr
from attnlab.lab import Claim, Control, Criterion, Grid, Sweep, median

@dataclass(frozen=True)
class Settings:
    arm: str = ""
    seed: int = 0
    level: float = 0.0

def work(settings: Settings, context) -> xr.Dataset:
    draw = np.random.default_rng(settings.seed).uniform(0.1, 0.2)
    return xr.Dataset({"value": settings.level + draw})

ARMS = {"low": {"level": 0.0}, "high": {"level": 10.0}}
sweep = Sweep(
    "own", f"{Path(__file__)}:work", lambda scale, seeds: Grid(ARMS, seeds), lambda arms: arms
)

def small(arm):
    return Criterion("value", lambda data: data[arm].value, median <= 1.0)

claim = Claim(
    id="mine.small", title="small", statement="small", sweeps=(sweep,), criteria=(small("low"),),
    controls=(Control("high", "must be rejected", (small("high"),)),), how_measured="by hand", refuted_by="more",
)
"""


@pytest.fixture
def check(run, tmp_path):
    """`attnlab check` of the claim with an edit, in one folder of results; another file of the same
    name each time.
    """

    def call(number: int, edit: tuple[str, str], *more: str) -> tuple[int, dict, str]:
        assert edit[0] in CLAIM
        folder = tmp_path / f"version{number}"
        folder.mkdir(exist_ok=True)
        (folder / "claim.py").write_text(CLAIM.replace(*edit))
        words = ("--out", "results", "--processes", "0", "--json", *more)
        code, out, err = run("check", str(folder / "claim.py"), *words)
        return code, json.loads(out), err

    return call


def test_a_verdict_is_of_the_code_as_it_is_now(check, run):
    code, first, err = check(0, ("draw", "draw"))
    assert (code, first["claims"][0]["verdict"], "stale" in first["about"]) == (0, "holds", False)
    assert "other code" not in err

    _, judged, err = check(1, ("median <= 1.0", "median <= 0.15"))
    assert judged["claims"][0]["criteria"][0]["threshold"] == 0.15
    assert "other code" not in err, "an edit of a criterion keeps the runs"

    edit = ("settings.level + draw", "5.0 + settings.level + draw")
    told = "16 runs were made by other code; kept, not used (`--keep` uses them)"
    code, edited, err = check(2, edit)
    assert edited["claims"][0]["verdict"] == "fails"
    assert told in err
    assert edited["about"]["stale"] == told

    code, out, _ = run("runs", "results", "--json")
    (row,) = json.loads(out)
    assert (row["asked"], row["finished"], row["stale"], row["reused"]) == (16, 16, 16, 0)
    code, out, _ = run("runs", "results")
    assert "stale" in out
    run("report", "results")
    with open("results/report.html", encoding="utf-8") as page:
        assert "16 runs were made by other code" in page.read()


def test_keep_judges_runs_of_other_code_and_says_so(check, run):
    check(0, ("draw", "draw"))
    code, kept, err = check(1, ("settings.level + draw", "5.0 + settings.level + draw"), "--keep")
    assert (code, kept["claims"][0]["verdict"]) == (0, "holds")
    assert "16 of the runs used were made by other code (`--keep`)" in err
    code, out, _ = run("runs", "results")
    assert "16 of the finished were made by other code (--keep)" in out


def test_an_error_put_into_the_work_function_is_seen(check):
    check(0, ("draw", "draw"))
    code, _, err = check(1, ("    draw =", "    raise RuntimeError('edited')\n    draw ="))
    assert code == 1, "all runs fail"
    assert "16 runs were made by other code" in err
