"""Every claim from its runs to its figures: small runs, the claim's own measurement, its drawings."""

from __future__ import annotations

import ast
import importlib
import inspect
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import xarray as xr

from attnlab.lab import Grid, Sweep, split_arms
from attnlab.papers import ROTTEN_TOMATOES, claims
from attnlab.report import Page, Section, render
from attnlab.sweeps import InProcess, run_plan

# Settings that make the runs of a work function small: they replace those of every arm.
SMALL: dict[str, dict[str, Any]] = {
    "attnlab.papers.lu2021.runs:train_topic": {
        "steps": 60,
        "rows": 20,
        "sentences": 60,
        "test_sentences": 20,
        "dictionary": 30,
    },
}
SEEDS = 2
CLAIMS = claims(ROTTEN_TOMATOES)


@cache
def measured(sweep: Sweep) -> dict[str, xr.Dataset]:
    """What a sweep measures from small runs; a sweep that several claims share is run once."""
    grid = sweep.grid("quick", SEEDS)
    known = inspect.signature(_work(sweep)).parameters
    assert len(known) == 2
    arms = {label: {**arm, **SMALL[sweep.work]} for label, arm in grid.arms.items()}
    plan = Grid(arms, SEEDS, grid.first).plan(sweep.work, sweep.name)
    with TemporaryDirectory() as folder:
        results = run_plan(plan, Path(folder), executor=InProcess(), progress=False)
        assert not results.failures
        return sweep.measured(split_arms(results.dataset(), keep_failed=True))


def _work(sweep: Sweep) -> Any:
    module, _, name = sweep.work.partition(":")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_measured_judged_and_drawn(name: str):
    claim = CLAIMS[name]
    data = {label: one for sweep in claim.sweeps for label, one in measured(sweep).items()}
    entry = claim.judge(data)
    for criterion in entry["criteria"]:
        assert criterion["verdict"] in ("holds", "fails", "inconclusive")
    assert claim.figures is not None
    figures = tuple(claim.figures(data))
    assert figures
    section = Section.from_claim(entry | {"command": ""}, title=claim.title, figures=figures)
    drawn = render(Page(title=name, question="", sections=(section,)))
    assert all(f'data-figure="{figure.id}"' in drawn for figure in figures)


@pytest.mark.parametrize("name", CLAIMS)
def test_the_work_of_a_claim_is_a_function_of_settings_and_context(name: str):
    for sweep in CLAIMS[name].sweeps:
        assert list(inspect.signature(_work(sweep)).parameters)[1] == "context"


def test_claims_are_named_by_their_place():
    import attnlab.papers

    (root,) = map(Path, attnlab.papers.__path__)
    for name in CLAIMS:
        group, _, file = name.partition(".")
        tree = ast.parse((root / group / f"{file}.py").read_text("utf-8"))
        defined = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        } | {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert defined & {"claim", "claim_on"}
