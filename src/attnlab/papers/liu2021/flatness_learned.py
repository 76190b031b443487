"""Learned self-attention: its minima are flatter than an MLP's, which is expected to fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lab import Claim, Control, Data
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021.point_figures import MEASURES, drawable, flatness_ratios, model_name
from attnlab.papers.liu2021.point_sweeps import (
    CAVEAT,
    FLAT_HOW,
    FLATTER,
    HALF,
    MATCH,
    Flatness,
    flatness,
    flatter,
    flatter_at_equal_error,
)
from attnlab.report import DotRow, Figure, dots_figure

if TYPE_CHECKING:
    import xarray as xr


def figures(data: Data) -> list[Figure]:
    """Ratios per live parameter beside those at equal error, and the former seed by seed."""
    table = Flatness.of(data)
    return [
        flatness_ratios(
            table,
            "self-attention",
            id="flat_learned",
            title="Flatness of self-attention over an MLP's",
        ),
        _seeds(table),
    ]


def _seeds(table: xr.Dataset) -> Figure:
    rows = []
    for model in ("self-attention", "known-attention"):
        for measure in ("trace", "petzka"):
            ratios = table[Flatness.each].sel(model=model, measure=measure).dropna("seed")
            rows.append(DotRow(f"{MEASURES[measure]}, {model_name(model)}", ratios, HALF))
    return dots_figure(
        drawable(rows),
        id="flat_seeds",
        title="The two measures that are asked about, seed by seed",
        x_label="ratio per live parameter at equal penalties, to the model without attention",
        caption="One dot per seed, the bar is the median. On the shaded side attention is at least "
        "twice as flat.",
    )


claim = Claim(
    id="liu2021.flatness_learned",
    rank=15,
    title="Minima of learned self-attention are flatter than an MLP's",
    statement="Per live parameter and at equal penalties, trace and relative flatness of "
    "self-attention are half an MLP's or less.",
    why="Flatness depends on the number of parameters and on the penalty, with or without "
    "attention, so both are held equal here. What is left stays below a factor of two because "
    "it depends on the penalty, too: self-attention is flatter under a small one, and its lead "
    "is lost as the penalty grows.",
    finding={
        "holds": "Minima of learned self-attention are flatter than an MLP's",
        "fails": "Minima of learned self-attention are not twice as flat as an MLP's",
        "inconclusive": "Whether minima of learned self-attention are flatter is undecided",
    },
    source=FLATTER,
    provenance=PROTOTYPE,
    sweeps=(flatness,),
    criteria=flatter("self-attention", "self-attention / MLP"),
    controls=(
        Control(
            "known gate at equal error",
            "At equal training error, with dead parameters and unequal penalties, the same measures "
            "find a twofold difference.",
            flatter_at_equal_error("known-attention", "known gate / baseline"),
            should="accept",
        ),
    ),
    how_measured=FLAT_HOW,
    refuted_by="A ratio that is surely above one half.",
    expected="fails",
    notes=(MATCH, CAVEAT),
    figures=figures,
)
