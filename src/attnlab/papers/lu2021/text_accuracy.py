"""Accuracy on real text: one attention over words classifies sentences."""

from __future__ import annotations

from dataclasses import replace

from attnlab.lab import Claim, Control, Criterion, Data, every_run, pooled_max
from attnlab.papers import PROTOTYPE, ROTTEN_TOMATOES
from attnlab.papers.lu2021.text_figures import fixed_course
from attnlab.papers.lu2021.text_sweeps import (
    PILOT,
    TEXT_SOURCE,
    Fixed,
    Linear,
    Padded,
    Permuted,
    is_judged,
    leak_notes,
    notes_on,
    text_sweep,
)
from attnlab.report import Figure

# The least test accuracy under the fixed and under the linear head.
_LEAST = {"Rotten Tomatoes": (0.70, 0.70), "SST-2": (0.79, 0.78)}

_ON_TOMATOES = replace(PILOT, moved_from="those of SST-2, 0.79 and 0.78, and only reported")


def figures(data: Data) -> list[Figure]:
    """Accuracy on training, validation and test sentences along training."""
    return [
        fixed_course(
            data,
            {
                "training": Fixed.accuracy,
                "validation": Fixed.accuracy_valid,
                "test": Fixed.accuracy_test,
            },
            id="text_accuracy_course",
            title="Accuracy along training, fixed head",
            label="accuracy",
            caption="Judged is the test accuracy at the step of the lowest validation loss.",
            more={"test, padding word": Padded.accuracy_test} if Padded.label in data else None,
        )
    ]


def claim_on(corpus: str) -> Claim:
    """The claim on one corpus."""
    judged = is_judged(corpus)
    of_tomatoes = corpus == ROTTEN_TOMATOES
    fixed, linear = _LEAST["Rotten Tomatoes" if of_tomatoes else "SST-2"]
    return Claim(
        id="lu2021.text_accuracy",
        rank=17,
        title="One attention over words classifies real sentences",
        statement=f"Test accuracy at the best validation loss is at least {fixed:.0%}".replace(
            "%", "\u00a0%"
        )
        + ", with the fixed head as with the linear one.",
        why="Sentiment hangs on a few telling words, and attention finds them because they occur "
        "with one label more often than with the other. The order of words is lost in a "
        "weighted mean, so that negation and irony stay out of reach.",
        finding={
            "holds": "One attention over words classifies real sentences",
            "fails": "One attention over words classifies real sentences less well than asked",
            "inconclusive": "Whether one attention over words classifies real sentences is undecided",
            "reported": "How well one attention over words classifies this text",
        },
        source=TEXT_SOURCE,
        provenance=_ON_TOMATOES if of_tomatoes else PROTOTYPE,
        sweeps=(text_sweep(corpus),),
        criteria=(
            Criterion("test accuracy, fixed head", Fixed.best_accuracy, every_run >= fixed),
            Criterion("test accuracy, linear head", Linear.best_accuracy, every_run >= linear),
        ),
        controls=(
            Control(
                "labels permuted",
                "Trained on permuted labels it must not classify.",
                (
                    Criterion(
                        "test accuracy, labels permuted",
                        Permuted.best_accuracy,
                        pooled_max >= fixed,
                    ),
                ),
            ),
        ),
        how_measured="Full-batch descent with step 0.1; the step of the lowest validation loss "
        "among every 250th. Unknown words of a test sentence are left out of its softmax; the worst "
        "seed counts.",
        refuted_by="A seed below the bound.",
        notes=notes_on(judged, *leak_notes(corpus)),
        table=not judged,
        figures=figures,
    )
