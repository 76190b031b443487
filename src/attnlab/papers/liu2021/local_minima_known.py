"""Known attention: nearly every local minimum is good."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attnlab.lab import Claim, Control, Criterion, Data, Provenance, pooled_mean
from attnlab.papers import PROTOTYPE, restated
from attnlab.papers.liu2021.point_figures import minima_errors, model_name, models_of, share_over
from attnlab.papers.liu2021.point_settings import GOOD
from attnlab.papers.liu2021.point_sweeps import (
    CAVEAT,
    HOW,
    SIZES,
    SOURCE,
    Minima,
    good_minima,
    minima,
)
from attnlab.report import Figure, estimate, heat_table, number, tone_of

if TYPE_CHECKING:
    import xarray as xr

_SAMPLES = 128
_LEAST = {"known-attention": 0.95, "known-weights-plain": 0.8}  # share of good minima, by model

# The known weights were trained with w_V at first; docs/theory.md has both.
_WITHOUT_VALUES = Provenance(
    "after", "2026-11-16", "its own runs", moved_from="the same of known weights with w_V"
)


def certified(data: Data) -> xr.DataArray:
    """The share of starts certified, of the two models of known attention."""
    return Minima.certified(data, model=list(_LEAST))


def figures(data: Data) -> list[Figure]:
    """The share of good minima of each model, and the error of every minimum."""
    table = Minima.of(data)
    return [
        _shares(table),
        minima_errors(
            table,
            _SAMPLES,
            id="minima_errors_small",
            title=f"The error of every certified minimum, {_SAMPLES} samples",
        ),
    ]


def _shares(table: xr.Dataset) -> Figure:
    """By model and samples, marked where the claim asks for a share."""
    models = models_of(table)
    cells, tones = [], []
    for model in models:
        shares = [share_over(table[Minima.good].sel(model=model, samples=n)) for n in SIZES]
        words, marks = [estimate(found) for found in shares], [""] * len(SIZES)
        if model in _LEAST:
            least, column = _LEAST[model], SIZES.index(_SAMPLES)
            words[column] += f", asked: ≥ {number(least)}"
            marks[column] = tone_of(shares[column], least=least)
        cells.append(words)
        tones.append(marks)
    return heat_table(
        [model_name(model) for model in models],
        [f"n = {n}" for n in SIZES],
        cells,
        id="minima_shares",
        title="Share of good minima by model and samples",
        tones=tones,
        caption=f"Of the certified minima, those with an error of at most {GOOD}; means over "
        "problems with 95 % intervals.",
    )


claim = Claim(
    id="liu2021.local_minima_known",
    rank=10,
    title="With known attention, nearly every local minimum is good",
    statement="Of the certified minima with 128 samples, 95 % are good with a known gate, 80 % "
    "with known weights (the head on x a, without w_V).",
    source=SOURCE,
    provenance=PROTOTYPE,
    sweeps=(minima,),
    criteria=(
        good_minima("known-attention", "known gate", _SAMPLES, _LEAST["known-attention"]),
        replace(
            good_minima(
                "known-weights-plain", "known weights", _SAMPLES, _LEAST["known-weights-plain"]
            ),
            provenance=restated("mean, with an interval, ≥ 0.8; until 2026-11-16 with w_V"),
        ),
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
            "Without attention most minima are not good.",
            (good_minima("baseline", "baseline", _SAMPLES, 0.8),),
        ),
    ),
    how_measured=HOW,
    refuted_by="A smaller share of good minima.",
    notes=(CAVEAT,),
    figures=figures,
)
