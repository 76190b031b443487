"""The reduced model predicts training under the linear head: its onset and its end."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, Source, Variable, every_run
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.figures import reduced_figures
from attnlab.papers.lu2021.sweeps import HOW_PREDICTED, Reference, reference
from attnlab.report import Figure

_ONSET, _FINAL = 0.025, 0.03  # relative errors of the onset and of the final score


def within(onset: Variable, final: Variable, note: str = "") -> tuple[Criterion, ...]:
    """The claim's bounds on the errors of the onset and of the final score."""
    return (
        Criterion(
            f"error of the onset time, max{note}", onset.at(head="linear"), every_run <= _ONSET
        ),
        Criterion(
            f"error of the final score, max{note}", final.at(head="linear"), every_run <= _FINAL
        ),
    )


def figures(data: Data) -> list[Figure]:
    """Prediction over measurement, the onset of each word, and the error along training."""
    return reduced_figures(Reference.of(data).sel(head="linear"), prefix="reduced_tc")


claim = Claim(
    id="lu2021.reduced_tc",
    rank=8,
    title="The reduced model predicts training, linear head",
    statement="Under the linear head, one sentence per topic word, the word and m null words, "
    "predicts from the start alone what training on the whole data set will do.",
    why="Among thousands of sentences the other words average out: their embeddings and scores "
    "stay near zero, because they occur with every label. Then all sentences with the same "
    "topic word are alike, and one sentence of that word and m null words has the gradient of "
    "them all. A trained head starts steeply, and the small difference between the average and "
    "the data moves the onset a little.",
    finding={
        "holds": "One sentence per topic word predicts onset and end of training, linear head",
        "fails": "One sentence per topic word misses onset or end of training, linear head",
        "inconclusive": "Whether one sentence per topic word predicts training is undecided, linear head",
    },
    source=Source("ours", note=f"the dynamics of {PAPER} reduced to the topic words"),
    provenance=PROTOTYPE,
    sweeps=(reference,),
    criteria=within(Reference.onset_error, Reference.final_error),
    controls=(
        Control(
            "m halved",
            "With half of the other words the prediction must miss.",
            within(Reference.halved_onset_error, Reference.halved_final_error, ", m halved"),
        ),
    ),
    how_measured="Adaptive flow; judged by onset and end, since the steep onset is late by a "
    f"little. {HOW_PREDICTED}",
    refuted_by="A prediction outside the bound, or one that fits as well with half of the words.",
    figures=figures,
)
