"""Known attention: its minima are flatter than the baseline's."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Data
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021.point_figures import flatness_ratios
from attnlab.papers.liu2021.point_sweeps import (
    CAVEAT,
    FLAT_HOW,
    FLATTER,
    MATCH,
    Flatness,
    flatness,
    flatter,
)
from attnlab.report import Figure


def figures(data: Data) -> list[Figure]:
    """Ratios of all measures, and the same of the control."""
    table = Flatness.of(data)
    return [
        flatness_ratios(
            table,
            "known-attention",
            id="flat_known",
            title="Flatness of the known gate over the baseline's",
        ),
        flatness_ratios(
            table, "baseline", id="flat_control", title="The control: one baseline over another"
        ),
    ]


claim = Claim(
    id="liu2021.flatness_known",
    rank=14,
    title="Minima of known attention are flatter than the baseline's",
    statement="At equal training error, trace and relative flatness with known attention are half "
    "the baseline's.",
    source=FLATTER,
    provenance=PROTOTYPE,
    sweeps=(flatness,),
    criteria=flatter("known-attention", "known gate / baseline"),
    controls=(
        Control(
            "baseline against baseline",
            "Baselines of different seeds are equally flat.",
            flatter("baseline", "baseline / baseline"),
        ),
    ),
    how_measured=FLAT_HOW,
    refuted_by="A ratio above one half.",
    notes=(MATCH, CAVEAT),
    figures=figures,
)
