"""An exact identity ties a word's score to its embedding at every step of gradient descent."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, every_run
from attnlab.papers import PROTOTYPE
from attnlab.papers.laws import SOURCE
from attnlab.papers.laws.figures import head_rows, worst
from attnlab.papers.laws.sweeps import IDENTITY_ROUNDING, Laws, Rules, laws, optimizers
from attnlab.report import DotRow, Figure, dots_figure

_DESCENT = Criterion(
    "relative error, all heads", Laws.identity_error, every_run <= IDENTITY_ROUNDING
)
_MOMENTUM = Criterion(
    "relative error, momentum",
    Rules.identity_error.at(rule=["momentum 0.9"]),
    every_run <= IDENTITY_ROUNDING,
)


def figures(data: Data) -> list[Figure]:
    """The worst word and step of every run, by head."""
    momentum = DotRow("control: momentum", worst(_MOMENTUM.measure(data)), _MOMENTUM.limit)
    return [
        dots_figure(
            [*head_rows(Laws.identity_error(data), _DESCENT.limit), momentum],
            id="identity",
            title="Both sides of the identity agree to rounding error",
            x_label="largest relative difference of a run",
        )
    ]


claim = Claim(
    id="laws.identity",
    rank=4,
    title="An exact identity ties a word's score to its embedding, step by step",
    statement="s(T) − s(0) = |q|²[½(|ν(T)|² − |ν(0)|²) − I₁ − I₂] holds exactly for gradient "
    "descent.",
    why="One step of gradient descent moves a word's embedding and score by the same gradients at "
    "its contexts, so the score's gain is that of ½|q|²|ν|² less two terms that can be added "
    "up along the way: I₁, because steps are finite, and I₂, because a word shares its context "
    "with others. With momentum or Adam a step is not the gradient at the point where it "
    "starts, and the identity breaks.",
    finding={
        "holds": "An exact identity ties a word's score to its embedding at every step",
        "fails": "The identity of score and embedding is not exact",
        "inconclusive": "Whether the identity of score and embedding is exact is undecided",
    },
    source=SOURCE,
    provenance=PROTOTYPE,
    sweeps=(laws, optimizers),
    criteria=(_DESCENT,),
    controls=(
        Control(
            "momentum",
            "With momentum a step is no longer the gradient of its own moment.",
            (_MOMENTUM,),
        ),
    ),
    how_measured="I₁ and I₂ are summed inside the loop at every step for the topic words; the "
    "identity's two sides are compared at every recorded step with |s| > 0.001.",
    refuted_by="A relative difference above rounding error.",
    figures=figures,
)
