"""The reduced model predicts training under the fixed head, score by score."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, Source, Variable, every_run, pooled_p95
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.figures import reduced_figures
from attnlab.papers.lu2021.sweeps import HOW_PREDICTED, Reference, reference
from attnlab.report import Figure

_P95, _MAX, _FINAL = 0.02, 0.04, 0.015  # relative errors of the score


def within(score: Variable, final: Variable, note: str = "") -> tuple[Criterion, ...]:
    """The claim's bounds on the error of the score, along training and at its end."""
    along = "error of the score along training"
    error, final_error = score.at(head="fixed"), final.at(head="fixed")
    return (
        Criterion(f"{along}, p95{note}", error, pooled_p95 <= _P95),
        Criterion(f"{along}, max{note}", error, every_run <= _MAX),
        Criterion(f"error of the final score, max{note}", final_error, every_run <= _FINAL),
    )


def figures(data: Data) -> list[Figure]:
    """Prediction over measurement, the onset of each word, and the error along training."""
    return reduced_figures(Reference.of(data).sel(head="fixed"), prefix="reduced_fc")


claim = Claim(
    id="lu2021.reduced_fc",
    rank=7,
    title="The reduced model predicts training, fixed head",
    statement="Under the fixed head, one sentence per topic word, the word and m null words, "
    "predicts from the start alone what training on the whole data set will do.",
    why="Among thousands of sentences the other words average out: their embeddings and scores "
    "stay near zero, because they occur with every label. Then all sentences with the same "
    "topic word are alike, and one sentence of that word and m null words has the gradient of "
    "them all.",
    finding={
        "holds": "One sentence per topic word predicts training, fixed head",
        "fails": "One sentence per topic word does not predict training, fixed head",
        "inconclusive": "Whether one sentence per topic word predicts training is undecided, fixed head",
    },
    source=Source("ours", note=f"the dynamics of {PAPER} reduced to the topic words"),
    provenance=PROTOTYPE,
    sweeps=(reference,),
    criteria=within(Reference.score_error, Reference.final_error),
    controls=(
        Control(
            "m halved",
            "With half of the other words the prediction must miss.",
            within(Reference.halved_score_error, Reference.halved_final_error, ", m halved"),
        ),
    ),
    how_measured=f"Adaptive flow, pointwise along training. {HOW_PREDICTED}",
    refuted_by="A prediction outside the bound, or one that fits as well with half of the words.",
    figures=figures,
)
