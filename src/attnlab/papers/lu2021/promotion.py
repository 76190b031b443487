"""Mutual promotion: score and norm of a topic word rise together from the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lab import Claim, Control, Criterion, Data, Source, every_run
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.sweeps import (
    LargerStart,
    LargestStart,
    Reference,
    head_name,
    reference,
    starts,
)
from attnlab.report import DotRow, Figure, dots_figure, menu_figure, paths_figure

if TYPE_CHECKING:
    import xarray as xr

_ORDERED = 0.999  # a rank correlation from which score and norm rise together


def figures(data: Data) -> list[Figure]:
    """Each word's path in the plane of norm and score, and how far from one order each run is."""
    return [_paths(data), _order(data)]


def _paths(data: Data) -> Figure:
    runs, larger, largest = Reference.of(data), LargerStart.of(data), LargestStart.of(data)
    norm = runs[Reference.scaled_norm] / runs[Reference.query_norm]
    pairs = {}
    for head in runs["head"].values.tolist():
        score = runs[Reference.score].sel(head=head)
        pairs[f"std 1e-6, {head_name(head)}"] = (norm.sel(head=head), score)
    pairs["std 0.3, fixed head (control)"] = (larger[LargerStart.norm], larger[LargerStart.score])
    pairs["std 1.0, fixed head"] = (largest[LargestStart.norm], largest[LargestStart.score])
    drawn = {
        name: paths_figure(
            {"a word along training": pair},
            id="p",
            title=name,
            x_label="norm |ν|",
            y_label="score s",
            ends=True,
            most=16,
        )
        for name, pair in pairs.items()
    }
    return menu_figure(
        drawn,
        id="promotion_paths",
        title="Score and norm rise together",
        choice_label="Start",
        caption="Each thin line is a topic word of one seed from start to end of training (the "
        "dot). From small embeddings every path goes up and to the right; from large ones it may "
        "first go back.",
        alt="Paths of topic words in the plane of norm and score.",
    )


def _order(data: Data) -> Figure:
    runs = Reference.of(data)
    agreement = {
        head_name(head): runs[Reference.rank_agreement].sel(head=head)
        for head in runs["head"].values.tolist()
    }
    agreement["control: std 0.3"] = LargerStart.rank_agreement(data)
    rows = [DotRow(name, _shortfall(one), 1 - _ORDERED) for name, one in agreement.items()]
    return dots_figure(
        rows,
        id="promotion_order",
        title="How far from one order",
        x_label="1 − Spearman(s, |ν|), worst word",
        caption="One dot per seed: the word whose score and norm agree least. Zero is perfect "
        "order.",
    )


def _shortfall(agreement: xr.DataArray) -> xr.DataArray:
    """1 − the least agreement of each seed; rounding error counts as none."""
    short = 1 - agreement.min("word")
    return short.where(short > 1e-12, 0.0)


claim = Claim(
    id="lu2021.promotion",
    rank=3,
    title="Score and embedding promote each other",
    statement="From small embeddings, a topic word's score and norm only ever rise together.",
    source=Source("stated", PAPER, "section 4, mutual promotion"),
    provenance=PROTOTYPE,
    sweeps=(reference, starts),
    criteria=(
        Criterion(
            "Spearman(s, |ν|) along training, every topic word",
            Reference.rank_agreement,
            every_run >= _ORDERED,
        ),
    ),
    controls=(
        Control(
            "large embeddings",
            "From embeddings of standard deviation 0.3 norms first fall: the order breaks.",
            (
                Criterion(
                    "Spearman(s, |ν|), std 0.3", LargerStart.rank_agreement, every_run >= _ORDERED
                ),
            ),
        ),
    ),
    how_measured="Rank correlation of score and norm over steps evenly spaced in the logarithm, "
    "word by word, in all runs and heads.",
    refuted_by="One topic word of one run whose score and norm do not rise together.",
    figures=figures,
)
