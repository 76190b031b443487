"""Excess purity on real text: the words attended to are purer than chance makes them."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, Source, every_run, pooled_max
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.text_figures import OVER_SEEDS, fixed_course
from attnlab.papers.lu2021.text_sweeps import (
    HEADS,
    Fixed,
    Permuted,
    is_judged,
    notes_on,
    text_sweep,
)
from attnlab.report import Figure, band_figure

_LEAST = 0.35


def figures(data: Data) -> list[Figure]:
    """Excess purity along training under each head and on permuted labels, and what it is made of."""
    steps = Fixed.of(data)["step"].values
    curves = {}
    for words, table in {**HEADS, "permuted labels": Permuted}.items():
        values = table.attended_excess(data)
        own = set(values["step"].values.tolist())
        if own.issuperset(steps.tolist()):  # the linear head is trained longer than it is drawn
            curves[words] = values.sel(step=steps)
    return [
        band_figure(
            steps,
            curves,
            id="text_excess_course",
            title="Excess purity over a label-permutation null",
            y_label="excess purity of the attended word",
            lines={f"{_LEAST:g}": _LEAST},
            singles=0,
            caption="What is left of purity when chance, which makes rare words pure, is taken "
            f"off. {OVER_SEEDS}",
        ),
        fixed_course(
            data,
            {
                "purity": Fixed.attended_purity,
                "what chance gives": Fixed.attended_null,
                "excess": Fixed.attended_excess,
            },
            id="text_null_course",
            title="Purity, its null and the excess",
            label="purity",
            caption="The late rise of purity is mostly rarity: the null rises with it.",
        ),
    ]


def claim_on(corpus: str) -> Claim:
    """The claim on one corpus."""
    judged = is_judged(corpus)
    return Claim(
        id="lu2021.text_excess",
        rank=16,
        title="The words attended to are purer than chance makes them",
        statement="At the best validation loss the top-attended word's purity exceeds a "
        "label-permutation null by far.",
        why="Purity alone proves little, because rare words are pure by chance and attention would "
        "find them with meaningless labels, too. Shuffled labels keep every word's frequency "
        "and destroy what it tells; what purity exceeds them by is what attention has learned "
        "of the labels.",
        finding={
            "holds": "The words attended to are purer than chance makes them",
            "fails": "The words attended to are hardly purer than chance makes them",
            "inconclusive": "Whether attended words are purer than by chance is undecided",
            "reported": "How far the attended words of this text are purer than by chance",
        },
        source=Source("ours", note=f"{PAPER} report purity, not its excess over chance"),
        provenance=PROTOTYPE,
        sweeps=(text_sweep(corpus),),
        criteria=tuple(
            Criterion(
                f"excess purity at the best validation loss, {words}",
                table.best_excess,
                every_run >= _LEAST,
            )
            for words, table in HEADS.items()
        ),
        controls=(
            Control(
                "labels permuted",
                "Trained on permuted labels the excess must stay small at every step.",
                (
                    Criterion(
                        "highest excess purity along training, labels permuted",
                        Permuted.highest_excess,
                        pooled_max >= _LEAST,
                    ),
                ),
            ),
        ),
        how_measured="Purity less its mean over 200 random permutations of the training labels, "
        "word by word; mean over the top-attended words of the training sentences. The worst seed "
        "counts. What purity gains after the best validation loss (late_purity_rise) and how much "
        "of it is excess (late_excess_rise) is kept with the data: the rest is rarity.",
        refuted_by="A seed whose attended words are hardly purer than chance, or permuted labels "
        "that give as much.",
        notes=notes_on(
            judged,
            "With permuted labels the excess is not 0: attention looks for the words that are "
            "pure by chance.",
        ),
        table=not judged,
        figures=figures,
    )
