"""Which figures of a study of texts do not show all texts: a record for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attnlab.papers.liu2021.variant_settings import LOOKED_AT as TRIED_ON
from attnlab.studies import _text_sample as chosen
from attnlab.studies._text import TextSettings
from attnlab.studies._text_students import LOOKED_AT
from attnlab.studies._text_try import MOST as TRIED

if TYPE_CHECKING:
    from attnlab.studies._text_prepare import Prepared


def sampled(prepared: Prepared, *, labels: int, variants: bool) -> list[dict[str, Any]]:
    """Figures that do not show all texts: ``figure``, how many were ``used``, ``of`` how many
    ``what``.

    ``labels``: of the largest size of the learning curves; ``variants``: whether variants of
    attention were tried.
    """
    train, valid, test = (len(part) for part in (prepared.train, prepared.valid, prepared.test))
    asked = TextSettings().permutations
    tried = (
        [("what to try", TRIED, train, "labels"), ("what to try", TRIED_ON, test, "test texts")]
        if variants
        else []
    )
    found = [
        ("words per text", chosen.LENGTHS, train, "training texts"),
        ("learning curves", labels, train, "labels"),
        ("learning curves", LOOKED_AT, valid, "validation texts"),
        ("learning curves", LOOKED_AT, test, "test texts"),
        *tried,
        ("loss and accuracy along training", chosen.MEASURED, train, "training texts"),
        ("loss and accuracy along training", chosen.MEASURED, valid, "validation texts"),
        ("loss and accuracy along training", chosen.MEASURED, test, "test texts"),
        ("attended words and words that compete", chosen.TRAINING, train, "training texts"),
        (
            "purity that chance gives",
            chosen.permutations_for(prepared.train, asked),
            asked,
            "permutations of the labels",
        ),
        ("deletion test", chosen.MEASURED, test, "test texts"),
        (
            "where training stopped: loss, gradient, curvature, barrier",
            chosen.CURVATURE,
            train,
            "training texts",
        ),
    ]
    long = int((prepared.train.lengths > chosen.LONGEST).sum())
    if long:
        found.append(
            (
                "learning curves",
                chosen.LONGEST,
                int(prepared.train.lengths.max()),
                f"words of {long:,} longer texts",
            )
        )
    return [
        {"figure": figure, "used": used, "of": of, "what": what}
        for figure, used, of, what in found
        if used < of
    ]
