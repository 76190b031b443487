"""Learned self-attention: every local minimum is good, which is expected to fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lab import Claim, Control, Data
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021.point_figures import (
    mean_of,
    minima_errors,
    minima_shares,
    model_name,
    models_of,
)
from attnlab.papers.liu2021.point_sweeps import (
    CAVEAT,
    HOW,
    SOURCE,
    Minima,
    every_minimum_good,
    minima,
)
from attnlab.report import Figure, heat_table

if TYPE_CHECKING:
    import xarray as xr

_SAMPLES = 512
_COLUMNS = {
    Minima.certified: "starts certified",
    Minima.minima: "minima per problem",
    Minima.distinct: "different ones",
    Minima.zero_modes: "zero modes",
}


def figures(data: Data) -> list[Figure]:
    """In how many problems every minimum is good, the error of every minimum, how many were found."""
    table = Minima.of(data)
    return [
        minima_shares(
            table,
            ("self-attention", _SAMPLES),
            id="minima_shares_learned",
            title="Problems in which every minimum is good: learned self-attention",
        ),
        minima_errors(
            table,
            _SAMPLES,
            id="minima_errors_large",
            title=f"The error of every certified minimum, {_SAMPLES} samples",
        ),
        _counts(table.sel(samples=_SAMPLES)),
    ]


def _counts(table: xr.Dataset) -> Figure:
    models = models_of(table)
    cells = [[mean_of(table[name].sel(model=model)) for name in _COLUMNS] for model in models]
    return heat_table(
        [model_name(model) for model in models],
        list(_COLUMNS.values()),
        cells,
        id="minima_counts",
        title=f"What was found, {_SAMPLES} samples",
        tones=[[""] * len(_COLUMNS) for _ in models],
        caption="Means over problems. Minima that symmetry maps to each other count as one in the "
        "third column; zero modes are directions of symmetry, along which the loss does not "
        "change.",
    )


claim = Claim(
    id="liu2021.local_minima_learned",
    rank=11,
    title="With learned self-attention, every local minimum is good",
    statement="With learned self-attention and 512 samples, every certified minimum is good in at "
    "least 90 % of the problems.",
    why="When attention is learned, query, key, value and head multiply each other in the loss. A "
    "start whose attention settles on the wrong words has its head fitted to what these words "
    "offer, and can stay there: the gradient by the attention vanishes because every small "
    "change of it makes the fitted head worse.",
    finding={
        "holds": "Learned self-attention has good minima only",
        "fails": "Learned self-attention has bad minima",
        "inconclusive": "Whether learned self-attention has bad minima is undecided",
    },
    source=SOURCE,
    provenance=PROTOTYPE,
    sweeps=(minima,),
    criteria=(
        every_minimum_good(
            "self-attention",
            "learned self-attention",
            _SAMPLES,
            before="share ≥ 0.95 of the minima",
        ),
    ),
    controls=(
        Control(
            "known gate",
            "The same question about a known gate must be answered yes.",
            (every_minimum_good("known-attention", "known gate", _SAMPLES),),
            should="accept",
        ),
    ),
    how_measured=HOW,
    refuted_by="A share of problems that is surely below 90 %.",
    expected="fails",
    notes=(CAVEAT,),
    figures=figures,
)
