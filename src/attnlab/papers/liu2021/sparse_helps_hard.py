"""Sparse attention helps where one word matters: after few steps, which is speed."""

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
    HardTeacher,
    error_ratio,
    ladders,
)
from attnlab.report import Figure

_COOL = "softmax:0.25"
_BETTER = given_interval <= 0.75


def figures(data: Data) -> list[Figure]:
    """Errors with ever more steps."""
    return steps_figures(HardTeacher.of(data), "hard", "where one word matters")


def gain(steps: int) -> Criterion:
    """That the cool softmax is better than softmax that trains `LONGER` times as long."""
    return Criterion(
        f"error of T = 0.25 with {steps} over softmax with {LONGER * steps} steps",
        error_ratio(HardTeacher, HardTeacher.longer, _COOL, steps),
        _BETTER,
        provenance=Provenance(
            "after",
            "2026-11-19",
            "its own runs, seeds 100 to 107",
            f"interval ≤ {_BETTER.threshold} at convergence, which no run reached",
        ),
    )


claim = Claim(
    id="liu2021.sparse_helps_hard",
    rank=16,
    title="Where one word matters, sparser attention is better: so it seems, and it is speed",
    statement="On a teacher that attends to one word, softmax at temperature 0.25 has at most "
    f"{_BETTER.threshold} of the error of softmax that trains {LONGER} times as long.",
    why="A low temperature is a longer query: it changes where training starts and how large its "
    "steps are, not what can be learned, because a trained query absorbs it. On this teacher "
    "the best query is infinitely long, so that a head start shows for as long as training is "
    "short. Softmax that trains longer gets to the same place.",
    finding={
        "holds": "Where one word matters, low temperature is better than more training",
        "fails": "Low temperature wins by speed: softmax that trains longer does as well",
        "inconclusive": "Whether low temperature beats longer training is undecided",
    },
    source=SOURCE,
    provenance=EARLY_SEEDS,
    sweeps=(ladders,),
    criteria=(gain(STEPS),),
    controls=(
        Control(
            f"{STEPS} steps",
            f"With {STEPS} steps for both the same comparison must hold.",
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
            "a high temperature",
            "Temperature 4 has no such advantage, with equal steps.",
            (
                Criterion(
                    f"error of T = 4 over softmax, {STEPS} steps",
                    error_ratio(HardTeacher, HardTeacher.ratio, "softmax:4"),
                    _BETTER,
                ),
            ),
        ),
    ),
    how_measured=HOW,
    refuted_by=f"A ratio that is surely above {_BETTER.threshold}: more steps do the same.",
    expected="fails",
    notes=(
        "A trained query absorbs the temperature: T is a change of the query's start and step, "
        "not of what can be learned.",
        "On this teacher the best query is infinite, and the error falls for as long as one trains. "
        "No comparison at convergence is therefore judged; the table says how much every number of "
        "steps still moves.",
        SEEDS,
    ),
    figures=figures,
)
