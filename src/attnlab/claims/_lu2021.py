"""The claim about the relation beyond Lu, Mao and Nayak (2021)."""

from __future__ import annotations

from typing import Any

from attnlab.claims._claim import Claim, Control, Criterion, Measure
from attnlab.studies import BEYOND, BEYOND_ARMS


def _of(label: str, variable: str, **chosen: Any) -> Measure:
    """A variable of a data set, at some labels of its dimensions."""
    return lambda data: data[label][variable].sel(chosen)


_SURVIVES = 0.01

BEYOND_SEN = Claim(
    id="lu2021.beyond_sen",
    title="How far the relation reaches beyond the paper",
    statement="The score–norm relation is asked of heads, data, inputs and optimisers that the "
    "paper does not treat.",
    source="attnlab; the paper claims the relation for any head and argues for contextual inputs "
    "in its appendix",
    studies=(BEYOND,),
    criteria=tuple(
        Criterion(
            f"{name}: median error",
            "bound",
            _of("beyond", "sen_error", setting=name),
            _SURVIVES,
            "<=",
            "median",
        )
        for name in BEYOND_ARMS
        if name != "Adam"
    ),
    controls=(
        Control(
            "Adam",
            "Adam does not follow the gradient, so the relation must not fit its runs.",
            (
                Criterion(
                    "Adam: median error",
                    "bound",
                    _of("beyond", "sen_error", setting="Adam"),
                    _SURVIVES,
                    "<=",
                    "median",
                ),
            ),
        ),
        Control(
            "wrong query",
            "|q| taken 1.2 times too large must not fit, even in the paper's own setting.",
            (
                Criterion(
                    "as in the paper, |q| × 1.2: median error",
                    "bound",
                    _of("beyond", "sen_error_wrong_query", setting="as in the paper"),
                    _SURVIVES,
                    "<=",
                    "median",
                ),
            ),
        ),
    ),
    how_measured=(
        "Relative error of the plain form for topic words with s > 0.05, median over steps, words "
        "and seeds; the "
        "relation is said to survive where it is at most 1 %."
    ),
    refuted_by="Nothing: every setting has its own verdict.",
    table=True,
)

LU2021 = (BEYOND_SEN,)
