"""Sparse attention helps where one word matters: after few steps, which is speed."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, given_interval
from attnlab.papers.liu2021 import EARLY_SEEDS
from attnlab.papers.liu2021.variant_figures import steps_figures
from attnlab.papers.liu2021.variant_sweeps import (
    HOW,
    LONGER,
    SEEDS,
    SOURCE,
    STEPS,
    HardTeacher,
    converged_ratio,
    error_ratio,
    ladders,
)
from attnlab.report import Figure

_COOL = "softmax:0.25"
_BETTER = given_interval <= 0.75


def figures(data: Data) -> list[Figure]:
    """Errors with ever more steps."""
    return steps_figures(HardTeacher.of(data), "hard", "where one word matters")


claim = Claim(
    id="liu2021.sparse_helps_hard",
    rank=16,
    title="Where one word matters, sparser attention is better: so it seems, and it is speed",
    statement="On a teacher that attends to one word, softmax at temperature 0.25 has at most "
    f"{_BETTER.threshold} of the error of softmax when both have been trained to convergence.",
    source=SOURCE,
    provenance=EARLY_SEEDS,
    sweeps=(ladders,),
    criteria=(
        Criterion(
            "error of T = 0.25 over softmax, at convergence",
            converged_ratio(HardTeacher, _COOL),
            _BETTER,
        ),
    ),
    controls=(
        Control(
            f"{STEPS} steps",
            f"With the protocol's {STEPS} steps the same comparison must hold.",
            (
                Criterion(
                    f"error of T = 0.25 over softmax, {STEPS} steps",
                    error_ratio(HardTeacher, HardTeacher.ratio, _COOL),
                    _BETTER,
                ),
            ),
            should="accept",
        ),
        Control(
            "softmax, four times as long",
            f"Against softmax with {LONGER * STEPS} steps the gain of {STEPS} steps is gone.",
            (
                Criterion(
                    f"error of T = 0.25 with {STEPS} over softmax with {LONGER * STEPS} steps",
                    error_ratio(HardTeacher, HardTeacher.longer, _COOL),
                    _BETTER,
                ),
            ),
        ),
    ),
    how_measured=HOW,
    refuted_by=f"A ratio that is surely above {_BETTER.threshold} where both have settled.",
    expected="fails",
    notes=(
        "A trained query absorbs the temperature: T is a change of the query's start and step, "
        "not of what can be learned.",
        "On this teacher the best query is infinite, and the error falls slowly for as long as "
        "one trains: a claim about convergence may stay undecided, and the errors at every number "
        "of steps are shown.",
        SEEDS,
    ),
    figures=figures,
)
