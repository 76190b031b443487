"""Mutual suppression: words that point away from their label lose score and norm first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnlab.lab import Claim, Control, Criterion, Data, Measure, Provenance, Source, mean, share
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.sweeps import (
    LEAST_DIP,
    PLENTY,
    AuthorsStart,
    Dips,
    LargerStart,
    LargestStart,
    Reference,
    reference,
    starts,
)
from attnlab.report import DotRow, Figure, dots_figure, menu_figure, paths_figure, scatter_figure

if TYPE_CHECKING:
    import xarray as xr

_SEEDS = 0.75  # share of seeds in which some word dips, or in which misalignment predicts the dips
_AUC = 0.95
_WORDS = (0.2, 0.6)  # share of the words that dip
_TOGETHER = 0.95  # share of the dips in which the norm falls, too
_STARTS = {AuthorsStart: 0.1, LargerStart: 0.3, LargestStart: 1.0}
_PILOT = Provenance("after", "2026-11-19", "seeds 0 to 19 and the depth that theory predicts")
# Seeds without dips counted as unknown until seeds from 1000 on had been seen.
_PILOT_2 = Provenance("after", "2026-11-19", "seeds 0 to 19 and 1000 to 1109")


def some_dip(table: type[Dips]) -> Measure:
    """Whether some word of a seed dips; unknown for a run that failed, which has no score."""
    return lambda data: _any_dip(table.dip(data), table.score(data))


def _any_dip(dip: xr.DataArray, score: xr.DataArray) -> xr.DataArray:
    return (dip > 0).any("word").where(score.notnull().any(["step", "word"]))


def predicted(table: type[Dips]) -> Measure:
    """Whether misalignment tells the words that dip; unknown where all words dip, or none does."""

    def measure(data: Data) -> xr.DataArray:
        auc = table.alignment_auc(data)
        return _where_asked((auc >= _AUC).where(auc.notnull()), table.score(data))

    return measure


def fall_together(table: type[Dips]) -> Measure:
    """The share of a seed's dips in which the norm falls with the score."""
    return lambda data: _where_asked(table.fall_together(data).mean("word"), table.score(data))


def _where_asked(values: xr.DataArray, score: xr.DataArray) -> xr.DataArray:
    """Without the seeds that finished and have nothing to ask: no dip, say. A run that failed stays,
    as unknown.
    """
    failed = score.isnull().all(["step", "word"])
    return values.isel(seed=np.flatnonzero((values.notnull() | failed).values))


def dips_from_small(data: Data) -> xr.DataArray:
    """Whether some word dips from embeddings of standard deviation 1e-6, by the threshold of 0.1."""
    dip = Reference.depth(data, head="fixed") < -LEAST_DIP[0.1]
    return _any_dip(dip, Reference.score(data, head="fixed"))


def asked(table: type[Dips], std: float) -> tuple[Criterion, ...]:
    """What is asked of one standard deviation of the initial embeddings."""
    own = _PILOT if std == 0.1 else None
    return (
        Criterion(
            f"seeds with a word that dips, std {std:g}",
            some_dip(table),
            share >= _SEEDS,
            provenance=own,
        ),
        Criterion(
            f"share of words that dip, std {std:g}",
            table.dip,
            mean.between(*_WORDS),
            provenance=own,
        ),
        Criterion(
            f"norm falls with the score, share of dips, std {std:g}",
            fall_together(table),
            share >= _TOGETHER,
            provenance=_PILOT_2
            if own
            else replace(_PILOT_2, moved_from="mean, with an interval, ≥ 0.95"),
        ),
        Criterion(
            f"seeds whose AUC of misalignment for the dip is at least {_AUC:g}, std {std:g}",
            predicted(table),
            share >= _SEEDS,
            provenance=own or replace(_PILOT, moved_from="mean, with an interval, ≥ 0.95"),
        ),
    )


def figures(data: Data) -> list[Figure]:
    """How many words dip, their first steps, their fall against the initial alignment, and what goes
    with a dip.
    """
    runs = {table: table.of(data) for table in _STARTS}
    return [_shares(data), _early(runs), _by_alignment(runs), _with_a_dip(data)]


def _shares(data: Data) -> Figure:
    rows = [
        DotRow(f"std {std:g}", table.dip(data).mean("word"), _WORDS[0], "above")
        for table, std in _STARTS.items()
    ]
    small = Reference.depth(data, head="fixed") < -LEAST_DIP[0.1]
    rows.append(DotRow("control: std 1e-6", small.mean("word"), _WORDS[0], "above"))
    return dots_figure(
        rows,
        id="suppression_shares",
        title="How many words are suppressed first",
        x_label="share of the topic words that dip",
        caption=f"One dot per seed, fixed head. Asked of the mean: {_WORDS[0]:g} to {_WORDS[1]:g}.",
    )


def _with_a_dip(data: Data) -> Figure:
    rows = []
    for table, std in _STARTS.items():
        rows.append(
            DotRow(
                f"share of dips with a falling norm, std {std:g}",
                table.fall_together(data).mean("word"),
                _TOGETHER,
                "above",
            )
        )
        rows.append(
            DotRow(
                f"AUC of misalignment for the dip, std {std:g}",
                table.alignment_auc(data),
                _AUC,
                "above",
            )
        )
    return dots_figure(
        rows,
        id="suppression_with",
        title="What goes with a dip",
        x_label="share, or area under the curve",
        caption="One dot per seed with words that dip; an area needs words that do not, too.",
    )


def _groups(values: xr.DataArray, dip: xr.DataArray) -> dict[str, xr.DataArray]:
    return {"suppressed first": values.where(dip), "rises at once": values.where(~dip)}


def _early(runs: dict[type[Dips], xr.Dataset]) -> Figure:
    drawn = {}
    for table, run in runs.items():
        name, least = f"std {_STARTS[table]:g}", LEAST_DIP[_STARTS[table]]
        dip = run[Dips.dip].astype(bool)
        for quantity in (Dips.score, Dips.norm):
            change = _first_change(run[quantity], run[Dips.dip_step], least)
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


def _first_change(values: xr.DataArray, dip_step: xr.DataArray, least: float) -> xr.DataArray:
    """The change since the start, up to thrice the step at which most dips are deepest, and while
    it is small.
    """
    last = float(3 * dip_step.quantile(0.9)) if bool(dip_step.notnull().any()) else np.inf
    change = (values - values.isel(step=0, drop=True)).sel(step=slice(None, last))
    return change.where(change <= 0.5 * max(-float(change.min()), least))


def _by_alignment(runs: dict[type[Dips], xr.Dataset]) -> Figure:
    drawn = {}
    for table, run in runs.items():
        name, least = f"std {_STARTS[table]:g}", LEAST_DIP[_STARTS[table]]
        groups = _groups(run[Dips.alignment], run[Dips.dip].astype(bool))
        figure = scatter_figure(
            {k: (alignment, run[Dips.depth]) for k, alignment in groups.items()},
            id="c",
            title=name,
            x_label="initial alignment ν₀·(W_y − mean W)",
            y_label="lowest score less the first",
            marks={"": 0.0},
            lines={"": -least},
        )
        # Each word is in one of the groups: that it is absent from the other needs no note.
        drawn[name] = replace(figure, note="")
    return menu_figure(
        drawn,
        id="suppression_alignment",
        title="Misalignment predicts the dip",
        choice_label="Start",
        caption="One dot per topic word and seed. Left of the upright line the initial embedding "
        "points away from the word's own label; below the level one counts as a dip.",
        alt="Depth of the dip against the initial alignment of each word.",
    )


claim = Claim(
    id="lu2021.suppression",
    rank=4,
    title="Misaligned words are suppressed first",
    statement="A topic word whose initial embedding points away from its label first loses score "
    "and norm together, before both rise.",
    why="While a word's embedding points away from its label, more attention to it raises the "
    "loss, so descent lowers its score. It also turns the embedding round, which first gets "
    "shorter because the wrong part has to be lost before the right one grows. Then the word "
    "rises like every other.",
    finding={
        "holds": "Words that point away from their label first lose score and norm",
        "fails": "Misaligned words are not suppressed first, or alignment does not predict which",
        "inconclusive": "Whether misaligned words are suppressed first is undecided",
    },
    source=Source("seen", PAPER, "mutual suppression"),
    provenance=PROTOTYPE,
    sweeps=(starts, reference),
    criteria=(*asked(AuthorsStart, 0.1), *asked(LargerStart, 0.3)),
    controls=(
        Control(
            "small embeddings",
            "From embeddings of standard deviation 1e-6 no word dips.",
            (Criterion("seeds with a word that dips, std 1e-6", dips_from_small, share >= _SEEDS),),
        ),
    ),
    how_measured="Fixed head, initial embeddings N(0, 0.1²), as in the authors' ablations, and "
    f"N(0, 0.3²), in at least {PLENTY} seeds: one miss does not decide. A dip is a score below "
    f"−{LEAST_DIP[0.3]:g} at std 0.3 and below a ninth of that at std 0.1: theory's dip is as deep "
    "as the square of the embedding. Misalignment is −ν₀·(W_y − mean_j W_j), its AUC is taken "
    "within each seed that has words of both kinds.",
    refuted_by="No dips, dips of scores without norms, or dips that alignment does not predict.",
    notes=(
        "At the authors' standard deviation of 0.1 the dips are tiny, about −0.003 in the median.",
        "First look at fresh seeds, 1000 to 1109: everything held but for the norm's fall at std 0.1, "
        "0.995 [0.943, 1], where one seed without any dip counted as unknown. Such a seed is no "
        "longer asked. Second look, 2000 to 2109: all held, the norm's fall with 0.998 [0.964, 1].",
    ),
    figures=figures,
)
