"""Mutual suppression: words that point away from their label lose score and norm first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnlab.lab import Claim, Control, Criterion, Data, Source, mean, share
from attnlab.papers import PROTOTYPE, restated
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.sweeps import (
    LEAST_DIP,
    Dips,
    LargerStart,
    LargestStart,
    Reference,
    reference,
    starts,
)
from attnlab.report import Figure, menu_figure, paths_figure, scatter_figure

if TYPE_CHECKING:
    import xarray as xr

_SEEDS = 0.75  # share of seeds in which some word dips


def _any_dip(dip: xr.DataArray, score: xr.DataArray) -> xr.DataArray:
    """Whether some word of a seed dips; unknown for a run that failed, which has no score."""
    return (dip > 0).any("word").where(score.notnull().any(["step", "word"]))


def dips_from_large(data: Data) -> xr.DataArray:
    """Whether some word dips, from embeddings of standard deviation 0.3."""
    return _any_dip(LargerStart.dip(data), LargerStart.score(data))


def dips_from_small(data: Data) -> xr.DataArray:
    """The same from embeddings of standard deviation 1e-6."""
    return _any_dip(Reference.dip(data, head="fixed"), Reference.score(data, head="fixed"))


def figures(data: Data) -> list[Figure]:
    """The first steps of each word, and its fall against its initial alignment."""
    runs = {table.label: table.of(data) for table in (LargerStart, LargestStart)}
    return [_early(runs), _by_alignment(runs)]


def _groups(values: xr.DataArray, dip: xr.DataArray) -> dict[str, xr.DataArray]:
    return {"suppressed first": values.where(dip), "rises at once": values.where(~dip)}


def _early(runs: dict[str, xr.Dataset]) -> Figure:
    drawn = {}
    for name, run in runs.items():
        dip = run[Dips.dip].astype(bool)
        for quantity in (Dips.score, Dips.norm):
            change = _first_change(run[quantity], run[Dips.dip_step])
            lines = {k: (v["step"], v) for k, v in _groups(change, dip).items()}
            drawn[f"{quantity}, {name}"] = paths_figure(
                lines,
                id="e",
                title=name,
                x_label="step",
                y_label=f"change of the {quantity} since the start",
                lines={"": 0.0},
                most=20,
            )
    return menu_figure(
        drawn,
        id="suppression_early",
        title="Some words are suppressed before they rise",
        choice_label="Show",
        caption="The first steps of training, fixed head: each line is a topic word of one seed, "
        "relative to its start, and is cut where it has risen by half of the deepest fall. Words "
        "whose score dips lose norm at the same time.",
        alt="Change of score or norm of single words against step, early in training.",
    )


def _first_change(values: xr.DataArray, dip_step: xr.DataArray) -> xr.DataArray:
    """The change since the start, up to thrice the step at which most dips are deepest, and while
    it is small.
    """
    last = float(3 * dip_step.quantile(0.9)) if bool(dip_step.notnull().any()) else np.inf
    change = (values - values.isel(step=0, drop=True)).sel(step=slice(None, last))
    return change.where(change <= 0.5 * max(-float(change.min()), LEAST_DIP))


def _by_alignment(runs: dict[str, xr.Dataset]) -> Figure:
    drawn = {}
    for name, run in runs.items():
        groups = _groups(run[Dips.alignment], run[Dips.dip].astype(bool))
        figure = scatter_figure(
            {k: (alignment, run[Dips.depth]) for k, alignment in groups.items()},
            id="c",
            title=name,
            x_label="initial alignment ν₀·(W_y − mean W)",
            y_label="lowest score less the first",
            marks={"": 0.0},
            lines={"": -LEAST_DIP},
        )
        # Each word is in one of the groups: that it is absent from the other needs no note.
        drawn[name] = replace(figure, note="")
    return menu_figure(
        drawn,
        id="suppression_alignment",
        title="Misalignment predicts the dip",
        choice_label="Start",
        caption="One dot per topic word and seed. Left of the upright line the initial embedding "
        f"points away from the word's own label; below the level one, −{LEAST_DIP:g}, counts as a "
        "dip.",
        alt="Depth of the dip against the initial alignment of each word.",
    )


claim = Claim(
    id="lu2021.suppression",
    rank=4,
    title="Misaligned words are suppressed first",
    statement="A topic word whose initial embedding points away from its label first loses score "
    "and norm together, before both rise.",
    source=Source("seen", PAPER, "mutual suppression"),
    provenance=PROTOTYPE,
    sweeps=(starts, reference),
    criteria=(
        Criterion("seeds with a word that dips", dips_from_large, share >= _SEEDS),
        Criterion("share of words that dip", LargerStart.dip, mean.between(0.2, 0.6)),
        Criterion(
            "norm falls with the score, share of dips",
            LargerStart.fall_together,
            share >= 0.95,
            provenance=restated("mean, with an interval, ≥ 0.95"),
        ),
        Criterion("AUC of misalignment for the dip", LargerStart.alignment_auc, mean >= 0.95),
    ),
    controls=(
        Control(
            "small embeddings",
            "From embeddings of standard deviation 1e-6 no word dips.",
            (Criterion("seeds with a word that dips, std 1e-6", dips_from_small, share >= _SEEDS),),
        ),
    ),
    how_measured="Fixed head, initial embeddings N(0, 0.3²). A dip is a score below "
    f"−{LEAST_DIP:g}; misalignment is −ν₀·(W_y − mean_j W_j), its AUC is taken within each seed "
    "that has words of both kinds.",
    refuted_by="No dips, dips of scores without norms, or dips that alignment does not predict.",
    notes=("At the authors' standard deviation of 0.1 the dip is there but tiny, about −0.003.",),
    figures=figures,
)
