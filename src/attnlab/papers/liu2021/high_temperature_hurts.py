"""A high temperature hurts where one word matters, at equal steps."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, given_interval
from attnlab.papers.liu2021 import EARLY_SEEDS
from attnlab.papers.liu2021.variant_figures import steps_figures
from attnlab.papers.liu2021.variant_sweeps import (
    HOW,
    SEEDS,
    SOURCE,
    STEPS,
    WORTHWHILE,
    HardTeacher,
    converged_ratio,
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


claim = Claim(
    id="liu2021.high_temperature_hurts",
    rank=18,
    title="A high temperature hurts where one word matters: at equal steps it does",
    statement="On a teacher that attends to one word, softmax at temperature 4 has at least "
    f"{WORTHWHILE} times the error of softmax, with {STEPS} steps and at convergence.",
    source=SOURCE,
    provenance=EARLY_SEEDS,
    sweeps=(ladders,),
    criteria=(
        Criterion(
            f"error of T = 4 over softmax, {STEPS} steps",
            error_ratio(HardTeacher, HardTeacher.ratio, _HOT),
            _WORSE,
        ),
        Criterion(
            "error of T = 4 over softmax, at convergence",
            converged_ratio(HardTeacher, _HOT),
            _WORSE,
        ),
    ),
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
    refuted_by=f"A ratio that is surely below {WORTHWHILE}.",
    notes=(SEEDS,),
    table=True,
    figures=figures,
)
