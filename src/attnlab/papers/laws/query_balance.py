"""A trained query stays in balance with the keys and keeps its direction."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, every_run, mean, pooled_min
from attnlab.papers import PROTOTYPE
from attnlab.papers.laws import SOURCE
from attnlab.papers.laws.figures import worst
from attnlab.papers.laws.sweeps import TrainedQuery, step_sizes
from attnlab.report import DotRow, Figure, band_figure, dots_figure

_TURN, _KEY_SUM = 1e-12, 1e-13  # rounding errors


def figures(data: Data) -> list[Figure]:
    """Drift against step size; direction of the query and sum of the keys, also under Adam."""
    drift = TrainedQuery.query_balance_error(data)
    rows = [
        DotRow("1 − cos(q, q₀)", worst(TrainedQuery.query_turn(data)), _TURN),
        DotRow("largest |Σκ|", worst(TrainedQuery.key_sum(data)), _KEY_SUM),
        DotRow("control: 1 − cos(q, q₀), Adam", TrainedQuery.query_turn_adam(data).values, _TURN),
        DotRow("control: largest |Σκ|, Adam", TrainedQuery.key_sum_adam(data).values, _KEY_SUM),
    ]
    return [
        band_figure(
            drift.step_size.values,
            {"trained query": drift.transpose("seed", "step_size").values},
            id="query_step",
            title="The drift of KᵀK − qqᵀ is proportional to the step",
            x_label="step size",
            y_label="drift / |q|²",
            log_x=True,
            log_y=True,
        ),
        dots_figure(
            rows,
            id="query_exact",
            title="Direction of the query, sum of the keys",
            x_label="largest value of a run",
            caption="Both are kept to rounding error by descent and lost by Adam.",
        ),
    ]


claim = Claim(
    id="laws.query_balance",
    rank=3,
    title="A trained query stays in balance with the keys and keeps its direction",
    statement="With a trained query, KᵀK − qqᵀ is conserved by the flow and Σκ exactly; from zero "
    "keys, q keeps its direction.",
    why="A score is the product of query and key, so the flow adds the same to KᵀK as to qqᵀ. From "
    "zero keys the query keeps its direction because keys first move along q and the query "
    "then only along the keys. The sum of the keys stays because the gradients by all scores "
    "of a softmax sum to zero.",
    finding={
        "holds": "A trained query keeps its direction and stays in balance with the keys",
        "fails": "A trained query turns, or loses its balance with the keys",
        "inconclusive": "Whether a trained query keeps its balance with the keys is undecided",
    },
    source=SOURCE,
    provenance=PROTOTYPE,
    sweeps=(step_sizes,),
    criteria=(
        Criterion("exponent of the drift in the step", TrainedQuery.slope, mean.between(0.9, 1.1)),
        Criterion("1 − cos(q, q₀)", TrainedQuery.query_turn, every_run <= _TURN),
        Criterion("largest coordinate of |Σκ|", TrainedQuery.key_sum, every_run <= _KEY_SUM),
    ),
    controls=(
        Control(
            "Adam: the balance",
            "Adam loses the balance in every seed.",
            (
                Criterion(
                    "the balance, Adam", TrainedQuery.query_balance_error_adam, pooled_min <= 0.05
                ),
            ),
        ),
        Control(
            "Adam: the direction of the query",
            "Adam loses the direction of the query in every seed.",
            (
                Criterion(
                    "the direction of the query, Adam",
                    TrainedQuery.query_turn_adam,
                    pooled_min <= _TURN,
                ),
            ),
        ),
        Control(
            "Adam: the sum of the keys",
            "Adam loses the sum of the keys in every seed.",
            (
                Criterion(
                    "the sum of the keys, Adam", TrainedQuery.key_sum_adam, pooled_min <= _KEY_SUM
                ),
            ),
        ),
    ),
    how_measured="Query, keys and embeddings are trained under a fixed head at the steps 0.1, 0.05 "
    "and 0.025 over equal time; the worst recorded row of all runs counts for the exact laws.",
    refuted_by="A query that turns, keys whose sum moves, or a drift that is not proportional to "
    "the step.",
    figures=figures,
)
