"""With a frozen query, gradient descent conserves the sum of all words' scores."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, every_run
from attnlab.papers import PROTOTYPE
from attnlab.papers.laws import SOURCE
from attnlab.papers.laws.figures import head_rows, worst
from attnlab.papers.laws.sweeps import SUM_ROUNDING, Laws, SinglePrecision, UnderAdam, laws
from attnlab.report import DotRow, Figure, dots_figure

_DOUBLE = Criterion(
    "|Σs| / Σ|s|, float64, all heads", Laws.score_sum_error, every_run <= SUM_ROUNDING
)
_SINGLE = Criterion(
    "|Σs| / Σ|s|, float32, fixed head", SinglePrecision.score_sum_error, every_run <= 1e-5
)
_ADAM = Criterion("|Σs| / Σ|s|, Adam", UnderAdam.score_sum_error, every_run <= SUM_ROUNDING)


def figures(data: Data) -> list[Figure]:
    """The worst step of every run, by head."""
    single = worst(SinglePrecision.score_sum_error(data))
    rows = [
        *head_rows(Laws.score_sum_error(data), _DOUBLE.limit),
        DotRow("fixed head, float32", single, _SINGLE.limit),
        DotRow("control: Adam", worst(UnderAdam.score_sum_error(data)), _ADAM.limit),
    ]
    return [
        dots_figure(
            rows,
            id="score_sum",
            title="The sum of scores stays where it was, to rounding error",
            x_label="largest |Σs| / Σ|s| of a run",
            caption="One dot per seed: the worst recorded step. Adam, the control, moves the sum "
            "as far as the scores.",
        )
    ]


claim = Claim(
    id="laws.score_sum",
    rank=1,
    title="Descent conserves the sum of all scores",
    statement="With a frozen query, gradient descent never changes the sum of the scores of all "
    "words.",
    why="The gradients by all scores sum to zero because a softmax does not change when the same "
    "number is added to every score. With a frozen query a step of descent moves each score by "
    "the same multiple of its gradient, so that their sum cannot move. Adam divides each "
    "coordinate by a size of its own, and scaled differently the steps no longer cancel.",
    finding={
        "holds": "Gradient descent conserves the sum of all scores",
        "fails": "Gradient descent does not conserve the sum of all scores",
        "inconclusive": "Whether gradient descent conserves the sum of all scores is undecided",
    },
    source=SOURCE,
    provenance=PROTOTYPE,
    sweeps=(laws,),
    criteria=(_DOUBLE, _SINGLE),
    controls=(
        Control(
            "Adam", "Adam rescales every coordinate by itself, which breaks the law.", (_ADAM,)
        ),
    ),
    how_measured="The sum over the whole vocabulary is recorded along training with the fixed, "
    "linear and two-layer head; its change is compared with the sum of absolute scores. The worst "
    "row of all runs counts.",
    refuted_by="A change of the sum above rounding error in any run.",
    figures=figures,
)
