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

from attnlab._errors import MissingData
from attnlab.lab import Claims, Grid, Sweep, split_arms
from attnlab.papers import ROTTEN_TOMATOES, claims
from attnlab.papers.book import BOOK
from attnlab.papers.lu2021.derivations import DERIVATIONS
from attnlab.report import Page, Section, render
from attnlab.sweeps import InProcess, run_plan

pytestmark = pytest.mark.slow

# Settings that make the runs of a work function small: they replace those of every arm.
SMALL: dict[str, dict[str, Any]] = {
    "attnlab.papers.lu2021.runs:train_topic": {
        "steps": 60,
        "rows": 20,
        "sentences": 120,
        "test_sentences": 20,
        "dictionary": 30,
    },
    "attnlab.papers.lu2021.runs:flow_far": {"topics": 2, "topic_words": 1, "rows": 60},
    "attnlab.papers.liu2021.digit_runs:fit_digits": {
        "steps": 5,
        "batch_size": 16,
        "step_sizes": (0.01,),
        "weight_decays": (0.1,),
        "valid_points": 20,
        "test_points": 30,
        "hidden": 4,
        "embedding_dim": 4,
        "stride": 8,
        "pictures": 5,
    },
    "attnlab.papers.liu2021.word_runs:fit_words": {
        "steps": 10,
        "batch_size": 16,
        "step_sizes": (0.1,),
        "weight_decays": (0.0,),
        "dictionary": 60,
        "embedding_dim": 3,
        "valid_points": 30,
        "test_points": 60,
    },
    "attnlab.papers.liu2021.curve_runs:fit_samples": {
        "features": 16,
        "sizes": (16, 64),
        "drawn": 64,
        "steps": 200,
        "step_sizes": (0.02,),
        "weight_decays": (0.1,),
        "noise_std": 0.0,
        "test_points": 100,
        "valid_points": 50,
    },
    "attnlab.papers.liu2021.point_runs:find_points": {
        "samples": 16,
        "drawn": 16,
        "starts": 2,
        "test_points": 50,
    },
    "attnlab.papers.beyond.runs:train_edge": {
        "steps": 40,
        "rows": 4,
        "words": 12,
        "topic_words": 1,
        "length": 4,
        "sentences": 20,
        "embedding_dim": 2,
        "depth": 12,
    },
    "attnlab.papers.beyond.runs:measure_entropy": {"rows": 70},
    "attnlab.papers.liu2021.variant_runs:fit_variant": {
        "steps": 5,
        "sizes": (8, 16),
        "drawn": 16,
        "hidden": 3,
        "embedding_dim": 3,
        "weight_decays": (0.0,),
        "test_points": 20,
        "valid_points": 10,
    },
    "attnlab.papers.lu2021.text_runs:train_text": {
        "steps": 100,
        "every": 50,
        "embedding_dim": 4,
        "permutations": 5,
        "query_std": 1.0,
        "top": 20,
    },
    "attnlab.papers.liu2021.text_runs:fit_text_student": {
        "sizes": (50, 100),
        "steps": 10,
        "step_sizes": (0.003,),
    },
}
# Settings that runs of one sweep need besides.
OF_SWEEP: dict[str, dict[str, Any]] = {
    "ablation": {"steps": 6000, "rows": 2},  # it is read at 3000 and 6000 steps
}
SEEDS = 2
CLAIMS = claims(ROTTEN_TOMATOES)


@cache
def measured(sweep: Sweep) -> dict[str, xr.Dataset]:
    """What a sweep measures from small runs; a sweep that several claims share is run once."""
    try:
        grid = sweep.grid("quick", SEEDS)
    except MissingData:  # at paper scale only
        grid = sweep.grid("paper", SEEDS)
    known = inspect.signature(_work(sweep)).parameters
    assert len(known) == 2
    small = {**SMALL[sweep.work], **OF_SWEEP.get(sweep.name, {})}
    arms = {label: {**arm, **small} for label, arm in grid.arms.items()}
    plan = Grid(arms, SEEDS, grid.first).plan(sweep.work, sweep.name)
    with TemporaryDirectory() as folder:
        results = run_plan(plan, Path(folder), executor=InProcess(), progress=False)
        assert not results.failures
        return sweep.measured(split_arms(results.dataset(), keep_failed=True))


def _work(sweep: Sweep) -> Any:
    module, _, name = sweep.work.partition(":")
    return getattr(importlib.import_module(module), name)


@cache
def section(name: str) -> Section:
    """The section of a claim from small runs."""
    claim = CLAIMS[name]
    data = {label: one for sweep in claim.sweeps for label, one in measured(sweep).items()}
    entry = claim.judge(data) | {"command": "", "looks": []}
    return Claims(lambda: CLAIMS).section(entry, data)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_measured_judged_and_drawn(name: str):
    assert CLAIMS[name].figures is not None
    found = section(name)
    for criterion in found.criteria:
        assert criterion.verdict in ("holds", "fails", "inconclusive")
    assert found.figures, found.body
    drawn = render(Page(title=name, question="", sections=(found,)))
    assert all(f'data-figure="{figure.id}"' in drawn for figure in found.figures)
    assert _told(name) <= {figure.id for figure in found.figures}
    traces = {trace.get("name") for figure in found.figures for trace in figure.plotly["data"]}
    assert _lit(name) <= traces


def _told(name: str) -> set[str]:
    """The figures of a claim that the stories and the first page show."""
    shown = [chapter.figure for story in BOOK.stories for chapter in story.chapters]
    references = [
        figure.partition("/") for figure in (*shown, BOOK.figure) if isinstance(figure, str)
    ]
    return {figure for claim, _, figure in references if claim == name and figure}


def _lit(name: str) -> set[str]:
    """The curves of a claim that the lines of its derivation light."""
    lines = [line for one in DERIVATIONS if one.id == name for line in one.lines]
    return {line.lights for line in lines if line.lights}


def test_the_page_of_all_claims_stays_small():
    sections = tuple(section(name) for name in CLAIMS)
    assert not [body for one in sections for body in one.body if "cannot be drawn" in body]
    page = Page(title="all claims", question="", sections=sections)
    assert len(render(page).encode()) < 12e6


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
