"""Known attention: nearly every local minimum is good."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attnlab.lab import Claim, Control, Criterion, Data, Provenance, pooled_mean
from attnlab.papers import PROTOTYPE, restated
from attnlab.papers.liu2021.point_figures import minima_errors, minima_shares
from attnlab.papers.liu2021.point_sweeps import (
    CAVEAT,
    HOW,
    SOURCE,
    Minima,
    every_minimum_good,
    good_minima,
    minima,
)
from attnlab.report import Figure

if TYPE_CHECKING:
    import xarray as xr

_SAMPLES = 128

# The known weights were trained with w_V at first; docs/theory.md has both.
_WITHOUT_VALUES = Provenance(
    "after", "2026-11-16", "its own runs", moved_from="the same of known weights with w_V"
)


def certified(data: Data) -> xr.DataArray:
    """The share of starts certified, of the two models of known attention."""
    return Minima.certified(data, model=["known-attention", "known-weights-plain"])


def figures(data: Data) -> list[Figure]:
    """In how many problems every minimum is good, and the error of every minimum."""
    table = Minima.of(data)
    return [
        minima_shares(
            table,
            ("known-attention", _SAMPLES),
            id="minima_shares",
            title="Problems in which every minimum is good",
        ),
        minima_errors(
            table,
            _SAMPLES,
            id="minima_errors_small",
            title=f"The error of every certified minimum, {_SAMPLES} samples",
        ),
    ]


claim = Claim(
    id="liu2021.local_minima_known",
    rank=10,
    title="With known attention, nearly every local minimum is good",
    statement="Of the certified minima with 128 samples, 95 % are good with a known gate, 80 % "
    "with known weights (the head on x a, without w_V); with the gate every certified minimum is "
    "good in 90 % of the problems.",
    why="A minimum predicts badly for one of two reasons: its hidden units are stuck, or its "
    "weights fit noise with features that do not matter. Known attention removes the second "
    "because those features never reach a weight, and leaves the first, which is rare: so "
    "nearly every minimum is good, and not every one.",
    finding={
        "holds": "With known attention, nearly every local minimum is good",
        "fails": "With known attention, too many local minima are bad",
        "inconclusive": "Whether nearly every minimum of known attention is good is undecided",
    },
    source=SOURCE,
    provenance=PROTOTYPE,
    sweeps=(minima,),
    criteria=(
        good_minima("known-attention", "known gate", _SAMPLES, 0.95),
        replace(
            good_minima("known-weights-plain", "known weights", _SAMPLES, 0.8),
            provenance=restated("mean, with an interval, ≥ 0.8; until 2026-11-16 with w_V"),
        ),
        every_minimum_good("known-attention", "known gate", _SAMPLES),
        Criterion(
            "share of starts certified, known gate and known weights",
            certified,
            pooled_mean >= 0.99,
            provenance=_WITHOUT_VALUES,
        ),
    ),
    controls=(
        Control(
            "baseline",
            "Without attention most minima are not good, and most problems have one that is not.",
            (
                good_minima("baseline", "baseline", _SAMPLES, 0.8),
                every_minimum_good("baseline", "baseline", _SAMPLES),
            ),
        ),
    ),
    how_measured=HOW,
    refuted_by="A share of minima, or of problems, that is surely smaller.",
    notes=(
        "The word “every” is too much even for the gate: about one problem in thirty has a "
        "certified minimum that is not good. With known weights it is one in four "
        "(liu2021.local_minima_weights).",
        CAVEAT,
    ),
    figures=figures,
)
