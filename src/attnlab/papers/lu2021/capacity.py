"""Heads of low capacity give attention a stronger signal, and what that depends on."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Grid,
    Measure,
    Provenance,
    Scale,
    Source,
    Sweep,
    Table,
    Variable,
    share,
    variable,
)
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.figures import BAND
from attnlab.papers.lu2021.settings import TopicSettings
from attnlab.papers.lu2021.sweeps import ENOUGH, SMALL, WORK, fewer
from attnlab.report import Figure, band_figure, heat_table, number, paths_figure

if TYPE_CHECKING:
    import xarray as xr

_SEEDS = 0.75  # share of seeds in which an order is kept
_LEVELS = (0.1, 0.5)  # losses at which heads are compared
_LOSS = 0.1  # the one at which their signals are judged
_PILOT = Provenance("after", "2026-11-19", "the runs of version 0.1, seeds 0 to 7")
# The heads as the authors set them; then two fixes of what they leave unequal, the size of W.
_ARMS: dict[str, dict[str, Any]] = {
    "two-layer": {"head": "two_layer"},
    "linear": {"head": "linear"},
    "fixed": {"head": "fixed"},
    "fixed, W × 0.18": {"head": "fixed", "head_scale": 0.18},
    "linear from fixed W": {"head": "fixed", "trained": ("embeddings", "keys", "head")},
}


class Capacity(Table, label="capacity"):
    """Mean score of the topic words under each head."""

    mean_score = variable("mean score along training")
    loss = variable("training loss")
    final_score = variable("mean score at the last step")
    score_at_loss = variable("mean score when the loss first falls to a level")
    signal = variable("mean |∂L/∂s| of the topic words, from the scores' increments")
    signal_at_loss = variable("the same when the loss first falls to a level")


def _grid(scale: Scale, seeds: int) -> Grid:
    base = SMALL[scale] | {"record": "curves", "rows": 250}
    arms = {name: base | arm for name, arm in _ARMS.items()}
    counts = dict.fromkeys(arms, max(seeds, ENOUGH))
    # Only shown beside the others, not judged.
    return Grid(arms, counts | {"linear from fixed W": fewer(scale, seeds)})


def _measure(arms: Data) -> Data:
    found = [_scores(arms[name]) for name in _ARMS]
    return {Capacity.label: al.lab.side_by_side(found, "setting", _ARMS)}


def _scores(run: xr.Dataset) -> xr.Dataset:
    mean = run.score.mean("word")
    # With a frozen query, Δs = −step·|q|² ∂L/∂s exactly: increments between rows hold its mean.
    pace = run.score.differentiate("step") / (TopicSettings().step_size * run.query_norm**2)
    signal = abs(pace).mean("word")

    def at_levels(values: xr.DataArray) -> xr.DataArray:
        found = [al.dynamics.at_loss(values, run.loss, level) for level in _LEVELS]
        return al.lab.along(found, "level", _LEVELS)

    return al.lab.dataset(
        {
            Capacity.mean_score: mean,
            Capacity.loss: run.loss,
            Capacity.final_score: mean.isel(step=-1, drop=True),
            Capacity.score_at_loss: at_levels(mean),
            Capacity.signal: signal,
            Capacity.signal_at_loss: at_levels(signal),
        }
    )


capacity = Sweep("capacity", WORK, _grid, _measure, (Capacity,))


def falls(*settings: str, of: Variable = Capacity.final_score, **where: float) -> Measure:
    """Whether a variable, the final mean score, falls from setting to setting, seed by seed."""

    def measure(data: Data) -> xr.DataArray:
        scores = [of(data, setting=name, **where).drop_vars("setting") for name in settings]
        asked = np.flatnonzero(al.lab.asked_of(*scores))
        scores = [score.isel(seed=asked) for score in scores]
        in_order, known = scores[0].notnull(), scores[0].notnull()
        for above, below in pairwise(scores):
            in_order = in_order & (above > below)
            known = known & below.notnull()
        return in_order.astype(float).where(known)

    return measure


def figures(data: Data) -> list[Figure]:
    """In how many seeds each order holds, and the scores at equal steps and at equal loss."""
    runs = Capacity.of(data)
    names = runs["setting"].values.tolist()
    score = {name: runs[Capacity.mean_score].sel(setting=name) for name in names}
    loss = {name: runs[Capacity.loss].sel(setting=name) for name in names}
    return [
        _shares(runs),
        band_figure(
            runs["step"].values,
            score,
            id="capacity_steps",
            title="Scores at equal steps",
            y_label="mean score of topic words",
            singles=4,
            caption=BAND,
        ),
        paths_figure(
            {name: (loss[name], score[name]) for name in names},
            id="capacity_loss",
            title="Scores at equal loss",
            x_label="training loss",
            y_label="mean score of topic words",
            log_x=True,
            reverse_x=True,
            most=6,
            caption="One thin line per seed; training goes from left to right as the loss falls.",
        ),
        paths_figure(
            {name: (loss[name], runs[Capacity.signal].sel(setting=name)) for name in names},
            id="capacity_signal",
            title="The training signal at equal loss",
            x_label="training loss",
            y_label="mean |∂L/∂s| of topic words",
            log_x=True,
            reverse_x=True,
            most=6,
            caption="The size of the gradient by a topic word's score, from what descent did to the "
            f"scores. One thin line per seed. Heads are compared at a loss of {_LOSS:g}.",
        ),
    ]


def _shares(runs: xr.Dataset) -> Figure:
    """In how many seeds one head's mean score is above another's, under each comparison."""
    final = runs[Capacity.final_score]
    at_low, at_high = (runs[Capacity.score_at_loss].sel(level=level) for level in _LEVELS)
    signal_low, signal_high = (runs[Capacity.signal_at_loss].sel(level=level) for level in _LEVELS)
    low, high = (f"score at loss {level:g}" for level in _LEVELS)
    strong_low, strong_high = (f"signal at loss {level:g}" for level in _LEVELS)
    comparisons = (
        ("authors' settings, equal steps", "fixed", "linear", final),
        ("fixed W × 0.18, equal steps", "fixed, W × 0.18", "linear", final),
        ("same W at the start, equal steps", "fixed", "linear from fixed W", final),
        (low, "fixed", "linear", at_low),
        (high, "fixed", "linear", at_high),
        (strong_low, "fixed", "linear", signal_low),
        (strong_high, "fixed", "linear", signal_high),
        ("authors' settings, equal steps", "linear", "two-layer", final),
        (low, "linear", "two-layer", at_low),
        (high, "linear", "two-layer", at_high),
        (strong_low, "linear", "two-layer", signal_low),
        (strong_high, "linear", "two-layer", signal_high),
    )
    rows, cells, tones = [], [], []
    for how, above, below, scores in comparisons:
        first, second = (scores.sel(setting=name).values for name in (above, below))
        known = np.isfinite(first) & np.isfinite(second)
        first, second = first[known], second[known]
        count, won = len(first), int(np.sum(first > second))
        medians = [number(float(np.median(one))) if count else "–" for one in (first, second)]
        rows.append(f"{above} > {below}: {how}")
        cells.append([f"{won} of {count}", *medians])
        tones.append([_tone(won / count) if count else "", "", ""])
    return heat_table(
        rows,
        ["seeds in which it is so", "median score of the first", "of the second"],
        cells,
        id="capacity_shares",
        tones=tones,
        title="The order depends on what is held equal",
        caption="Mean score of the topic words, or the training signal, the mean size of ∂L/∂s, "
        "compared seed by seed. Kept: in at least three "
        "quarters of the seeds; in part: in more than half. Seeds that never reach the loss are "
        "not counted.",
    )


def _tone(kept: float) -> str:
    return "good" if kept >= _SEEDS else "mixed" if kept > 0.5 else "bad"


claim = Claim(
    id="lu2021.capacity",
    rank=12,
    title="Heads of low capacity end with higher scores, not with a stronger signal at equal loss",
    statement="Under the authors' settings the topic words' mean score ends highest with the fixed "
    "head, then linear, then two-layer; and so does the training signal |∂L/∂s| at equal loss.",
    why="A head that cannot adapt leaves more of the work to attention, so that scores end higher "
    "under it. At equal loss the signal is another matter: by the reduced model it is "
    "proportional to 1 − a, and a head under which attention has risen further by then has the "
    "weaker signal, because less is left to win. The authors' heads also start with weights of "
    "different size, which alone decides part of the order.",
    finding={
        "holds": "Heads of low capacity end with higher scores and give a stronger signal",
        "fails": "Low-capacity heads end with higher scores, not with a stronger signal",
        "inconclusive": "Whether heads of low capacity give a stronger signal is undecided",
    },
    source=Source("seen", PAPER, "section 5, heads of low capacity"),
    provenance=PROTOTYPE,
    sweeps=(capacity,),
    criteria=(
        Criterion(
            "seeds with fixed > linear > two-layer",
            falls("fixed", "linear", "two-layer"),
            share >= _SEEDS,
        ),
        *(
            Criterion(
                f"seeds with {above} > {below} in |∂L/∂s| at loss {_LOSS:g}",
                falls(above, below, of=Capacity.signal_at_loss, level=_LOSS),
                share >= _SEEDS,
                provenance=_PILOT,
            )
            for above, below in (("fixed", "linear"), ("linear", "two-layer"))
        ),
    ),
    controls=(
        Control(
            "W × 0.18",
            "With the fixed W as small as the linear head's start, the order fixed > linear must "
            "fail.",
            (
                Criterion(
                    "seeds with fixed > linear, W × 0.18",
                    falls("fixed, W × 0.18", "linear"),
                    share >= _SEEDS,
                ),
            ),
        ),
    ),
    how_measured="Mean score of the topic words after 5000 steps, and the mean size of ∂L/∂s of the "
    f"topic words when the loss first falls to {_LOSS:g}, seed by seed; the heads share data and "
    "query. With a frozen query the gradient is the score's increment over −step·|q|².",
    refuted_by="An order failing in more than a quarter of the seeds.",
    notes=(
        "Two looks at fresh seeds. 1000 to 1019: the final order in 20 of 20, the signal of fixed over "
        "linear in 10 of 20, of linear over two-layer in 17 of 19; the control, in 8 seeds, was "
        "undecided. 2000 to 2019, with the control in 20: 20, 5 and 18 of 20.",
        "The claim is confounded: the fixed W is about five times as large as the linear head's "
        "start. With W at the linear head's scale the order is lost; started from the same W, or "
        "compared at equal loss, it is another matter again. The table shows all of them.",
    ),
    figures=figures,
)
