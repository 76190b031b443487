"""Known attention: its minima are flatter than the baseline's, which fails per live parameter."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Data, Provenance
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021.point_figures import flatness_measures, flatness_ratios
from attnlab.papers.liu2021.point_sweeps import (
    CAVEAT,
    FLAT_HOW,
    FLATTER,
    MATCH,
    Flatness,
    flatness,
    flatter,
    flatter_at_equal_error,
)
from attnlab.report import Figure


def figures(data: Data) -> list[Figure]:
    """Ratios per live parameter beside those at equal error, of all measures, and the control's."""
    table = Flatness.of(data)
    return [
        flatness_ratios(
            table,
            "known-attention",
            id="flat_known",
            title="Flatness of the known gate over the baseline's",
        ),
        flatness_ratios(
            table,
            "narrow-baseline",
            id="flat_control",
            title="The control: a baseline with as many live parameters over the baseline",
        ),
        flatness_measures(
            table,
            "known-attention",
            id="flat_measures",
            title="All measures of flatness at equal error, known gate over baseline",
        ),
    ]


claim = Claim(
    id="liu2021.flatness_known",
    rank=14,
    title="Minima of known attention are flatter than the baseline's",
    statement="Per live parameter and at equal penalties, trace and relative flatness with known "
    "attention are half the baseline's.",
    why="At equal training error the minima of known attention look several times flatter. That is "
    "mostly bookkeeping, because parameters behind a mask of zeros have no curvature at all, "
    "and because the models reach equal error under very different penalties, of which the "
    "larger flattens by itself. Per live parameter and at equal penalties little is left.",
    finding={
        "holds": "Known attention has flatter minima, per live parameter and at equal penalties",
        "fails": "Known attention's minima are not flatter once like is compared with like",
        "inconclusive": "Whether minima of known attention are flatter is undecided",
    },
    source=FLATTER,
    provenance=PROTOTYPE,
    sweeps=(flatness,),
    criteria=flatter("known-attention", "known gate / baseline"),
    controls=(
        Control(
            "a narrow baseline",
            "A baseline on the relevant numbers alone, with as many live parameters as the gate and "
            "no attention, is not twice as flat as the whole one.",
            flatter("narrow-baseline", "narrow / whole baseline"),
        ),
        Control(
            "equal error",
            "At equal training error, with dead parameters and unequal penalties, the same measures "
            "find a twofold difference.",
            flatter_at_equal_error("known-attention", "known gate / baseline"),
            should="accept",
        ),
    ),
    how_measured=FLAT_HOW,
    refuted_by="A ratio that is surely above one half.",
    expected="fails",
    expected_provenance=Provenance(
        "after", "2026-11-19", "an audit's figures (docs/theory.md)", moved_from="holds"
    ),
    notes=(MATCH, CAVEAT),
    figures=figures,
)
