"""The reduced model predicts training under the two-layer head: its onset and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Measure,
    Provenance,
    Source,
    Variable,
    share,
)
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.figures import reduced_figures
from attnlab.papers.lu2021.sweeps import HOW_PREDICTED, MANY, TwoLayerRuns, two_layer
from attnlab.report import Figure, scatter_figure

if TYPE_CHECKING:
    import xarray as xr

_ONSET, _FINAL = 0.04, 0.15  # relative errors of the onset and of the final score
_RUNS = 0.8  # share of runs that must be predicted
_SET = Provenance(
    "after",
    "2026-11-19",
    "seeds 0 to 63 of the quick task, 60 of which are predicted",
    moved_from="onset, pooled p90 ≤ 0.04, and final score, pooled p90 ≤ 0.15",
)


def run_predicted(onset: Variable, final: Variable) -> Measure:
    """Whether onset and final score of every word of a run are predicted.

    A run that has not settled has no final scores, and is judged by its onsets.
    """

    def measure(data: Data) -> xr.DataArray:
        late, off = onset(data).max("word"), final(data).max("word")
        known = TwoLayerRuns.loss(data).notnull().any("step")
        return ((late <= _ONSET) & ~(off > _FINAL)).where(known)

    return measure


def within(onset: Variable, final: Variable, note: str = "") -> tuple[Criterion, ...]:
    """What is asked of the runs."""
    return (
        Criterion(
            f"runs of which every word is predicted{note}",
            run_predicted(onset, final),
            share >= _RUNS,
            provenance=_SET,
        ),
    )


def figures(data: Data) -> list[Figure]:
    """Each run's worst errors; prediction over measurement, the onset of each word, and the error
    along training.
    """
    runs = TwoLayerRuns.of(data)
    return [_worst(runs), *reduced_figures(runs, prefix="reduced_tl")]


def _worst(runs: xr.Dataset) -> Figure:
    groups = {
        "m = all other words": (TwoLayerRuns.onset_error, TwoLayerRuns.final_error),
        "m halved (control)": (TwoLayerRuns.halved_onset_error, TwoLayerRuns.halved_final_error),
    }
    return scatter_figure(
        {
            name: (runs[late].max("word"), runs[off].max("word"))
            for name, (late, off) in groups.items()
        },
        id="reduced_tl_runs",
        title="Which runs are predicted",
        x_label="error of the onset, worst word",
        y_label="error of the final score, worst word",
        log_x=True,
        log_y=True,
        marks={f"{100 * _ONSET:g} %": _ONSET},
        lines={f"{100 * _FINAL:g} %": _FINAL},
        caption="One dot per run: the worst of its words. A run is predicted if its dot lies left of "
        "the upright line and below the level one.",
    )


claim = Claim(
    id="lu2021.reduced_tl",
    rank=9,
    title="The reduced model predicts training, two-layer head",
    statement="Under the two-layer head, one sentence per topic word, the word and m null words, "
    "predicts from the start alone what training on the whole data set will do.",
    why="Among thousands of sentences the other words average out: their embeddings and scores "
    "stay near zero, because they occur with every label. Then all sentences with the same "
    "topic word are alike, and one sentence of that word and m null words has the gradient of "
    "them all. Hidden ReLU units have kinks: where two of them are nearly tied, the small "
    "difference between average and data decides which one wins, and the run ends elsewhere.",
    finding={
        "holds": "One sentence per topic word predicts most runs of a two-layer head",
        "fails": "One sentence per topic word misses too many runs of a two-layer head",
        "inconclusive": "Whether one sentence per topic word predicts two-layer heads is undecided",
    },
    source=Source("ours", note=f"the dynamics of {PAPER} reduced to the topic words"),
    provenance=PROTOTYPE,
    sweeps=(two_layer,),
    criteria=within(TwoLayerRuns.onset_error, TwoLayerRuns.final_error),
    controls=(
        Control(
            "m halved",
            "With half of the other words the prediction must miss.",
            within(TwoLayerRuns.halved_onset_error, TwoLayerRuns.halved_final_error, ", m halved"),
        ),
    ),
    how_measured=f"Descent map, since ReLU kinks defeat an adaptive solver, in at least {MANY} runs. "
    f"A run is predicted if the onset of each of its words is within {100 * _ONSET:g} % and each "
    f"final score within {100 * _FINAL:g} %. At quick scale the task has 5 other words in a sentence "
    f"in place of 20, and 1000 sentences. {HOW_PREDICTED}",
    refuted_by="A quarter of the runs not predicted, or as many predicted with half of the words.",
    notes=(
        "In about one run of sixteen a near-tie among hidden units is decided otherwise in "
        "training than in the reduced model, and the run settles in another configuration. The "
        "figures show every run.",
    ),
    figures=figures,
)
