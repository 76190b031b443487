"""SEN: along training, a topic word's score determines the norm of its embedding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Measure,
    Provenance,
    Source,
    every_run,
    pooled_median,
    pooled_p95,
)
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.figures import sen_error_figure, sen_relation
from attnlab.papers.lu2021.sweeps import Reference, UnderAdam, head_name, reference
from attnlab.report import Figure, heat_table, number, theory_figure

if TYPE_CHECKING:
    import xarray as xr

_SIMPLE = ["fixed", "linear"]  # heads whose relation is judged in its plain form
_MEDIAN, _P95, _MAX = 0.004, 0.008, 0.015  # bounds on the relation's relative error
_PILOT = Provenance("after", "2026-11-19", "seeds 0 to 2 of the two-layer head")
_LINES = 4  # words whose norm is drawn along training
_ROWS = 12  # words that the table of the worst shows
_MOSTLY = 0.05  # an error up to here is called kept in part


def within(
    prefix: str, measure: Measure, provenance: Provenance | None = None
) -> tuple[Criterion, ...]:
    """The claim's bounds on the relation's error."""
    bounds = {"median": pooled_median <= _MEDIAN, "p95": pooled_p95 <= _P95}
    bounds["max"] = every_run <= _MAX
    return tuple(
        Criterion(f"{prefix}, {name}", measure, bound, provenance=provenance)
        for name, bound in bounds.items()
    )


def corrected(head: str | list[str]) -> Measure:
    """Error of the form corrected for finite steps; before step 10 there is little to correct."""
    return Reference.sen_error_corrected.at(head=head, step=slice(10, None))


def late_ratio(data: Data) -> xr.DataArray:
    """Error of the refined over that of the plain form at the last step, median word."""
    last = Reference.of(data).isel(step=-1).sel(head="fixed")
    refined, plain = last[Reference.sen_error_refined], last[Reference.sen_error]
    return refined.median("word") / plain.median("word")


def figures(data: Data) -> list[Figure]:
    """The relation's curve, the norm predicted along training, its error, and the worst words."""
    runs = Reference.of(data)
    fixed = runs.sel(head="fixed")
    bounds = {
        f"median ≤ {100 * _MEDIAN:g} %": 100 * _MEDIAN,
        f"largest ≤ {100 * _MAX:g} %": 100 * _MAX,
    }
    return [
        sen_relation(fixed, caption="Topic words of all seeds under the fixed head."),
        _predicted_norms(fixed),
        sen_error_figure(
            runs, lines=bounds, note="The dotted lines are the claim's bounds on the plain form. "
        ),
        _worst_words(runs),
    ]


def _predicted_norms(runs: xr.Dataset) -> Figure:
    """The norm along training beside its prediction, of the first words."""
    count = runs.sizes["word"]
    words = runs["word"].values.tolist()[:_LINES]
    first = f" The first {_LINES} of {count} words." if count > _LINES else ""
    return theory_figure(
        runs["step"].values,
        {word: runs[Reference.scaled_norm].sel(word=word) for word in words},
        {word: runs[Reference.predicted_scaled_norm].sel(word=word) for word in words},
        id="sen_theory",
        title="The norm predicted from the score alone",
        y_label="|q||ν|",
        singles=6,
        caption="Fixed head. Lines are medians over seeds, the band holds 80 % of the measured "
        f"runs, below is the difference in % of the prediction.{first}",
    )


def _worst_words(runs: xr.Dataset) -> Figure:
    """Where each word is worst: how far, when, in which run."""
    heads, words = runs["head"].values.tolist(), runs["word"].values.tolist()[:_ROWS]
    errors = runs[Reference.sen_error].transpose("head", "word", "seed", "step")
    cells, tones = [], []
    for word in words:
        found = [_worst(errors.sel(head=head, word=word)) for head in heads]
        cells.append([text for text, _ in found])
        tones.append([tone for _, tone in found])
    return heat_table(
        [str(word) for word in words],
        [head_name(head) for head in heads],
        cells,
        id="sen_worst",
        tones=tones,
        title="Where each word is worst",
        caption="Largest error of the plain form over all steps and seeds, and where it is. Kept: "
        f"at most {100 * _MAX:g} %, in part: at most {100 * _MOSTLY:g} %, else broken.",
    )


def _worst(error: xr.DataArray) -> tuple[str, str]:
    """The largest error (seed, step) and its step in words, and the tone of its cell."""
    values = np.nan_to_num(error.values, nan=-1.0)  # errors are not negative: nan is never largest
    worst = float(values.max())
    if worst < 0:
        return "–", ""
    _, column = np.unravel_index(int(values.argmax()), values.shape)
    step = error["step"].values[column]
    tone = "good" if worst <= _MAX else "mixed" if worst <= _MOSTLY else "bad"
    return f"{number(100 * worst)} %, step {step}", tone


claim = Claim(
    id="lu2021.sen",
    rank=1,
    title="A word's score determines the norm of its embedding",
    statement="Along training, s + (e^s − 1)/m = ½|q|²(|ν|² − |ν₀|²) for every topic word, "
    "whatever the head.",
    why="A word's embedding and its score are moved by the same forces, the gradients at the "
    "contexts of its sentences: the embedding by the force itself, the score by the part of it "
    "along the embedding. What lengthens the embedding therefore raises the score, by an "
    "amount that only |q|² and the attention decide, because the other words of many sentences "
    "average out. The head acts through the forces alone, and drops out.",
    finding={
        "holds": "A word's score determines the norm of its embedding",
        "fails": "A word's score does not determine the norm of its embedding, within the bounds",
        "inconclusive": "Whether a word's score determines the norm of its embedding is undecided",
    },
    source=Source("stated", PAPER, "section 4, score and embedding norm"),
    provenance=PROTOTYPE,
    sweeps=(reference,),
    criteria=(
        *within(
            "relative error, fixed and linear head",
            Reference.sen_error.at(head=_SIMPLE),
        ),
        *within("relative error, two-layer head", Reference.sen_error.at(head="two_layer"), _PILOT),
        Criterion(
            "with I₁ from step 10, fixed and linear head, max",
            corrected(_SIMPLE),
            every_run <= 0.005,
        ),
        Criterion(
            "with I₁ from step 10, two-layer head, p95",
            corrected("two_layer"),
            pooled_p95 <= 0.005,
        ),
        Criterion(
            "with I₁ from step 10, two-layer head, max",
            corrected("two_layer"),
            every_run <= 0.04,
        ),
        Criterion(
            "late error, refined over plain form, fixed head, median",
            late_ratio,
            pooled_median <= 0.6,
            provenance=replace(PROTOTYPE, moved_from="median, with an interval, ≤ 1"),
        ),
    ),
    controls=(
        Control(
            "wrong query",
            "|q| taken 1.2 times too large must not fit.",
            within("|q| × 1.2", Reference.sen_error_wrong_query.at(head=_SIMPLE)),
        ),
        Control(
            "Adam",
            "Adam does not follow the gradient, so the relation must not fit its runs.",
            within("Adam", UnderAdam.sen_error),
        ),
    ),
    how_measured="Relative error of the predicted |q||ν| for the topic words with s > 0.05, at "
    "every recorded step of all runs. The plain form uses m = 20; the corrected one adds |q|² I₁, "
    "what descent misses of the flow; the refined one measures the other words' weight and context "
    "instead of assuming them.",
    refuted_by="An error above the bound, a wrong |q| that fits as well, or Adam's runs fitting as "
    "well.",
    figures=figures,
)
