"""A high temperature hurts where one word matters, at equal steps."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, Provenance, given_interval
from attnlab.papers.liu2021 import EARLY_SEEDS
from attnlab.papers.liu2021.variant_figures import steps_figures
from attnlab.papers.liu2021.variant_sweeps import (
    HOW,
    LONGER,
    SEEDS,
    SOURCE,
    STEPS,
    WORTHWHILE,
    HardTeacher,
    error_ratio,
    ladders,
)
from attnlab.report import Figure

_HOT, _COOL = "softmax:4", "softmax:0.25"
_WORSE = given_interval >= WORTHWHILE


def figures(data: Data) -> list[Figure]:
    """Errors of softmax and of its hot form with ever more steps."""
    table = HardTeacher.of(data).sel(variant=["softmax", _HOT])
    return steps_figures(table, "high", "where one word matters")


def worse(steps: int, provenance: Provenance | None = None) -> Criterion:
    """That the hot softmax is worse with so many steps for both."""
    return Criterion(
        f"error of T = 4 over softmax, {steps} steps",
        error_ratio(HardTeacher, HardTeacher.ratio, _HOT, steps),
        _WORSE,
        provenance=provenance,
    )


_LATER = Provenance(
    "after",
    "2026-11-19",
    "the runs of version 0.1 and its own, seeds 100 to 107",
    f"interval ≥ {WORTHWHILE} at convergence, which no run reached",
)
claim = Claim(
    id="liu2021.high_temperature_hurts",
    rank=18,
    title="A high temperature hurts where one word matters, at equal steps",
    statement="On a teacher that attends to one word, softmax at temperature 4 has at least "
    f"{WORTHWHILE} times the error of softmax, with {STEPS} steps and with {LONGER * STEPS}.",
    why="At temperature 4 a query has to grow four times as long to be as sharp. On this teacher "
    "the best attention is as sharp as can be, so that the lag shows in the error at every "
    "number of steps that was tried, because none of them is enough for either to settle.",
    finding={
        "holds": "Where one word matters, a high temperature slows training",
        "fails": "A high temperature costs little where one word matters",
        "inconclusive": "Whether a high temperature hurts where one word matters is undecided",
    },
    source=SOURCE,
    provenance=EARLY_SEEDS,
    sweeps=(ladders,),
    criteria=(worse(STEPS), worse(LONGER * STEPS, _LATER)),
    controls=(
        Control(
            "a low temperature",
            "The same must be rejected of temperature 0.25.",
            (
                Criterion(
                    f"error of T = 0.25 over softmax, {STEPS} steps",
                    error_ratio(HardTeacher, HardTeacher.ratio, _COOL),
                    _WORSE,
                ),
            ),
        ),
    ),
    how_measured=HOW,
    refuted_by=f"A ratio that is surely below {WORTHWHILE}, with either number of steps.",
    notes=(
        "It is a statement about speed: neither has settled, as the table says, and a trained query "
        "absorbs the temperature.",
        SEEDS,
    ),
    figures=figures,
)
