"""Purity on real text: along training attention goes to purer and rarer words."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, every_run
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021.text_figures import fixed_course
from attnlab.papers.lu2021.text_sweeps import (
    HEADS,
    PILOT,
    TEXT_SOURCE,
    Fixed,
    Permuted,
    Trained,
    is_judged,
    notes_on,
    text_sweep,
)
from attnlab.report import Figure

_TREND = 0.9  # least rank correlation with the step that counts as a rise
_LEAST = 0.45  # purity at the best validation loss


def _trends(prefix: str = "", note: str = "") -> tuple[Criterion, ...]:
    """Purity rises and frequency falls, under each head."""
    found = []
    for words, table in HEADS.items():
        purity = table.variables[f"{prefix}purity_trend"]
        frequency = table.variables[f"{prefix}frequency_trend"]
        name = f"Spearman of step and {{}}, {words}{note}"
        found += [
            Criterion(name.format("purity"), purity, every_run >= _TREND),
            Criterion(name.format("frequency"), frequency, every_run <= -_TREND),
        ]
    return tuple(found)


def _purity_at_best(words: str, table: type[Trained]) -> Criterion:
    return Criterion(
        f"purity at the best validation loss, {words}",
        table.best_purity,
        every_run >= _LEAST,
        provenance=PILOT,
    )


def figures(data: Data) -> list[Figure]:
    """Purity and frequency of the most and the least attended word along training."""
    return [
        fixed_course(
            data,
            {
                "most attended word": Fixed.attended_purity,
                "least attended word": Fixed.least_attended_purity,
            },
            id="text_purity_course",
            title="Purity of the word that a sentence attends to",
            label="topic purity",
            caption="Mean over training sentences, fixed head. The least attended word is the "
            "control.",
        ),
        fixed_course(
            data,
            {
                "most attended word": Fixed.attended_frequency,
                "least attended word": Fixed.least_attended_frequency,
            },
            id="text_frequency_course",
            title="How frequent that word is",
            label="sentences with the word",
            caption="Mean over training sentences, fixed head.",
        ),
    ]


def claim_on(corpus: str) -> Claim:
    """The claim on one corpus."""
    judged = is_judged(corpus)
    return Claim(
        id="lu2021.text_purity",
        rank=15,
        title="Along training attention goes to purer and rarer words",
        statement="The purity of the top-attended word of a sentence rises along training, and "
        "its frequency falls; at the best validation loss it is a word that tells the class.",
        why="The gradients of a word that occurs with one label add up, those of a word with many "
        "labels cancel, so that attention moves toward purer words. These are rarer words as "
        "well, because a word in a few sentences is often pure by chance alone.",
        finding={
            "holds": "Along training attention goes to purer and rarer words",
            "fails": "Attention does not go to purer and rarer words along training",
            "inconclusive": "Whether attention goes to purer and rarer words is undecided",
            "reported": "How pure and how frequent the attended words of this text are",
        },
        source=TEXT_SOURCE,
        provenance=PROTOTYPE,
        sweeps=(text_sweep(corpus),),
        criteria=(*_trends(), *(_purity_at_best(*head) for head in HEADS.items())),
        controls=(
            Control(
                "least attended",
                "The least attended word of each sentence must not grow purer and rarer.",
                _trends("least_", ", least attended word"),
            ),
            Control(
                "labels permuted",
                "Trained on permuted labels, the attended word must not be pure at the best "
                "validation loss.",
                (_purity_at_best("labels permuted", Permuted),),
            ),
        ),
        how_measured="Purity |pos − neg|/(pos + neg) over the training sentences that contain a "
        "word, and their number, of the word of the highest score in each training sentence; means "
        "over sentences, from the first recorded step to the last, and purity at the best validation "
        "loss. The worst seed counts.",
        refuted_by="A seed in which the attended word does not grow purer, or not rarer.",
        notes=notes_on(
            judged,
            "The trend alone says little: trained on permuted labels, where there is nothing to learn, "
            "attention goes to purer and rarer words as well, since rare words are pure by chance. "
            "Purity at the best validation loss and the excess over chance (lu2021.text_excess) tell "
            "the two apart.",
        ),
        table=not judged,
        figures=figures,
    )
