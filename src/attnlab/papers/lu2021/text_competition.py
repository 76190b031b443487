"""Word competition on real text: the word of the larger pull leads first, the purer one later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.lab import Claim, Control, Criterion, Data, Source, every_run
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.text_figures import fixed_course
from attnlab.papers.lu2021.text_sweeps import (
    HEADS,
    PILOT,
    Fixed,
    Permuted,
    Trained,
    is_judged,
    notes_on,
    text_sweep,
)
from attnlab.report import Figure, band_figure, menu_figure

if TYPE_CHECKING:
    import xarray as xr

_EARLY, _LATER, _CLEAR = 0.3, 0.55, 0.7


def _criteria(words: str, table: type[Trained], moment: str) -> tuple[Criterion, ...]:
    """Who leads early, and who at the ``moment`` that is named."""
    contested, clear = table.variables[f"{moment}_contested"], table.variables[f"{moment}_clear"]
    return (
        Criterion(
            f"contested pairs led by the purer word, least along training, {words}",
            table.least_contested,
            every_run <= _EARLY,
        ),
        Criterion(
            f"contested pairs led by the purer word, {moment} step, {words}",
            contested,
            every_run >= _LATER,
            discriminates=False,  # on permuted labels it is 0.9: rare words lead late anyway
        ),
        Criterion(
            f"other pairs led by the purer word, {moment} step, {words}",
            clear,
            every_run >= _CLEAR,
        ),
    )


def figures(data: Data) -> list[Figure]:
    """Who leads along training, the same on permuted labels, and some pairs one by one."""
    found = [
        fixed_course(
            data,
            {
                "contested pairs": Fixed.purer_leads,
                "pairs whose purer word has the larger pull, too": Fixed.clear_leads,
                "higher score and longer embedding": Fixed.longer_leads,
            },
            id="text_leads",
            title="Which of two competing words has the higher score",
            label="share of pairs led by the purer word",
            caption="Contested: the purer word has the smaller pull, purity times frequency. Third "
            "line: the share of all pairs in which the word of the higher score has the longer "
            "embedding.",
        ),
        fixed_course(
            data,
            {"labels as they are": Fixed.purer_leads},
            id="text_leads_permuted",
            title="Contested pairs, and the same words trained on permuted labels",
            label="share of pairs led by the purer word",
            caption="The purer word of a contested pair is also the rarer one. Late in training it "
            "leads on permuted labels, too: what comes late is rarity.",
            more={"permuted labels": Permuted.purer_leads},
        ),
    ]
    return [*found, *_pairs(Fixed.of(data))]


def _pairs(table: xr.Dataset) -> list[Figure]:
    """Attention, score and norm of the first seed's pairs."""
    if Fixed.pair_weight not in table:
        return []
    first = table.isel(seed=0)
    there = first[Fixed.pair_weight].notnull().all(("side", "step"))
    drawn = {}
    for k in np.flatnonzero(there.values):
        one = first.isel(pair=int(k))
        words = [str(word) for word in one[Fixed.pair_competitor].values]
        for name, label in (
            (Fixed.pair_weight, "attention"),
            (Fixed.pair_score, "score s"),
            (Fixed.pair_norm, "norm |ν|"),
        ):
            lines = {w: one[name].isel(side=j).expand_dims(seed=[0]) for j, w in enumerate(words)}
            drawn[f"{k + 1} · {' and '.join(words)}: {label}"] = band_figure(
                table["step"].values, lines, id="text_pairs", title="", y_label=label, singles=0
            )
    if not drawn:
        return []
    return [
        menu_figure(
            drawn,
            id="text_pairs",
            title="Two words that compete in one sentence",
            choice_label="Pair",
            caption="The pairs of one seed whose order changes most, one lean to each class.",
            alt="Attention, score or norm of two words over training.",
        )
    ]


def claim_on(corpus: str) -> Claim:
    """The claim on one corpus."""
    judged = is_judged(corpus)
    return Claim(
        id="lu2021.text_competition",
        rank=18,
        title="Of two words that compete in a sentence, the frequent one leads first, the purer one later",
        statement="Where two words of different classes stand in one sentence and the purer one has "
        "the smaller pull, purity times frequency, the other one leads at first; by the best "
        "validation loss the purer one does. Where pull and purity agree, the purer word leads.",
        why="At first the gradient by a score is a sum over all sentences with the word, so that "
        "the frequent word leads even if it is less pure. Its sentences are soon fitted and "
        "stop pulling, because the gradient of a sentence is the probability that is still "
        "wrong; the purer word goes on and takes the lead.",
        finding={
            "holds": "Of two competing words the frequent one leads first, the purer one later",
            "fails": "Frequency and purity do not decide which of two competing words leads",
            "inconclusive": "Which of two competing words leads, and when, is undecided",
            "reported": "Which of two competing words leads on this text, and when",
        },
        source=Source("seen", PAPER, "section 5, words that compete; the shares of pairs are ours"),
        provenance=PILOT,
        sweeps=(text_sweep(corpus),),
        criteria=tuple(c for head in HEADS.items() for c in _criteria(*head, "best")),
        controls=(
            Control(
                "labels permuted",
                "Trained on permuted labels, with purity and pull counted on the true ones, pull "
                "must not decide early, nor purity late.",
                _criteria("labels permuted", Permuted, "last"),
            ),
        ),
        how_measured="All pairs of words that lean to different classes and stand in one training "
        "sentence, each pair once: words of an excess purity of at least 0.2 in at least 10 "
        "sentences, the three purest of each class and sentence. The word of the higher score "
        "leads. The worst seed counts; on permuted labels the last step is judged, since the best "
        "validation loss comes before anything is learned.",
        refuted_by="A seed in which the purer word leads early, or does not lead later.",
        notes=notes_on(
            judged,
            "A gradient is a sum over sentences, so that at first the score of a word grows with "
            "its pull. Later the sentences with the frequent word are fitted, and the purer word's "
            "gradient lasts longer.",
            "That the purer word leads contested pairs late is not purity's doing alone: it is the "
            "rarer one of the two, and on permuted labels rare words lead late as well.",
        ),
        table=not judged,
        figures=figures,
    )
