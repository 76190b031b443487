"""What to try: a few variants of attention on a user's texts, with all labels, for the page of a
study.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from attnlab.questions._ranking import advise, apart, measure_comparison
from attnlab.studies._exploration import card
from attnlab.studies._text_students import STEP_SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import xarray as xr

TRIED = ("softmax", "softmax:0.25", "sparsemax", "uniform")
MOST = 8192  # labels


@dataclass(frozen=True, eq=False)
class Tried:
    """What was found: the ranking, advice sentence by sentence, a card, and a record for a program."""

    ranking: xr.Dataset
    advice: list[str]
    card: dict[str, Any]
    record: dict[str, Any]


def try_arms(
    variants: tuple[str, ...],
    place: Path,
    content: str,
    *,
    available: int,
    steps: int,
    step_size: float,
) -> dict[str, dict[str, Any]]:
    """The settings of every variant, all with as many labels (8192 at most) and the same tuning:
    near a step size.
    """
    common = {
        "folder": str(place),
        "data": content,
        "sizes": (min(available, MOST),),
        "weight_decays": (0.0,),
        "step_sizes": neighbours(step_size),
        "steps": steps,
    }
    return {variant: {"variant": variant, **common} for variant in variants}


def neighbours(step_size: float) -> tuple[float, ...]:
    """The step size of the grid that is nearest, and those beside it.

    >>> neighbours(0.005), neighbours(0.1)
    ((0.0028, 0.0046, 0.0077), (0.036, 0.06, 0.1))
    """
    place = min(range(len(STEP_SIZES)), key=lambda k: abs(math.log(STEP_SIZES[k] / step_size)))
    first = min(max(place - 1, 0), len(STEP_SIZES) - 3)
    return STEP_SIZES[first : first + 3]


def what_to_try(arms: Mapping[str, xr.Dataset], *, steps: int) -> Tried:
    """Rank variants by test accuracy; the first is what others are compared with."""
    ranking = measure_comparison(arms, score="accuracy", against=next(iter(arms)))["ranking"]
    ranking = ranking.assign_attrs(steps=steps)
    names = [str(name) for name in ranking.student.values]
    equals = [name for name in names if name == names[0] or not apart(ranking, names[0], name)]
    sentences = advise({"ranking": ranking}, what="On these texts")
    shown = card(
        "what to try",
        sentences[1],
        f"{float(ranking.centre[0]):.3f}",
        f"median accuracy of {names[0]}",
    )
    record = {
        "order": names,
        "best": equals,
        "advice": " ".join(sentences),
        "accuracy": dict(zip(names, ranking.centre.values.tolist(), strict=True)),
    }
    return Tried(ranking, sentences, shown | {"link": "try"}, record)
