"""A known gate that depends on the input is as good as a mask."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, Grid, Scale, Sweep, given_interval
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021.curve_sweeps import end, tuning_cautions
from attnlab.papers.liu2021.sample_figures import tuning
from attnlab.papers.liu2021.sample_sweeps import (
    ENDS,
    HOW,
    LEVEL,
    ROUGH,
    SOURCE,
    WORK,
    TeacherCurves,
    by_features,
    label_of,
    mask_arm,
    tabulated,
)
from attnlab.report import Figure, learning_curves, needed_figure

_MORE_SEEDS = 4  # times the seeds: showing that needed samples are flat takes more of them
_FLAT = given_interval.between(-0.25, 0.25)


class Gated(TeacherCurves, label="gate"):
    """Students of a gate on 4 of p features (student, features, seed, size)."""


class GatedRough(TeacherCurves, label="gate at 0.5"):
    """The same, read at an error that the baseline reaches."""


def _grid(scale: Scale, seeds: int) -> Grid:
    """The gate known, and the baseline."""
    arms, counts = {}, {}
    for student, growing in (("baseline", True), ("known-attention", False)):
        for p in ENDS[scale]:
            label = label_of(student, p)
            arms[label] = mask_arm(scale, "gate", student, p, growing=growing)
            counts[label] = seeds if growing else _MORE_SEEDS * seeds
    return Grid(arms, counts)


def _measure(arms: Data, confidence: float | None = None) -> Data:
    by = by_features(arms)
    return {
        Gated.label: tabulated(by, confidence=confidence),
        GatedRough.label: tabulated(by, ROUGH, confidence=confidence),
    }


def figures(data: Data) -> list[Figure]:
    """Needed samples at both levels, learning curves, and what was tuned."""
    table = Gated.of(data)
    return [
        needed_figure(
            table,
            id="gate_needed",
            title=f"Needed samples for {LEVEL:g}, gate known",
            students=["known-attention"],
        ),
        needed_figure(
            GatedRough.of(data),
            id="gate_rough",
            title=f"Needed samples for {ROUGH:g}, both students",
        ),
        learning_curves(
            table,
            id="gate_curves",
            title="Learning curves on a gate that depends on the input",
        ),
        *tuning(table, id="gate_tuning"),
    ]


claim = Claim(
    id="liu2021.gated_attention",
    rank=2,
    title="A known gate that depends on the input is as good as a mask",
    statement="Known input-dependent gates on 4 of p features need a number of samples that does "
    "not grow with p.",
    why="A gate that is zero on the irrelevant features removes them before any weight sees them; "
    "what is left to learn is the same for every p. The gate's dependence on the input costs "
    "nothing extra because it is known, too.",
    finding={
        "holds": "With a known gate, too, needed samples do not grow with the features",
        "fails": "Even with a known gate needed samples grow with the features",
        "inconclusive": "Whether needed samples grow with the features behind a known gate is undecided",
    },
    source=SOURCE,
    provenance=PROTOTYPE,
    sweeps=(
        Sweep(name="gate", work=WORK, grid=_grid, measure=_measure, tables=(Gated, GatedRough)),
    ),
    criteria=(
        Criterion(
            f"exponent of n({LEVEL:g}) in p, known gate",
            end(Gated, Gated.exponent, student="known-attention"),
            _FLAT,
        ),
    ),
    controls=(
        Control(
            "baseline",
            f"Without knowing the gate, needed samples grow (read at ε = {ROUGH:g}, which it "
            "reaches).",
            (
                Criterion(
                    f"exponent of n({ROUGH:g}) in p, baseline",
                    end(GatedRough, GatedRough.exponent, student="baseline"),
                    _FLAT,
                ),
            ),
        ),
    ),
    how_measured=f"{HOW} The gate is 2·sigmoid(3·(x shifted by one)) on the relevant features.",
    refuted_by="Needed samples of the known gate that grow with p.",
    notes=(
        "With 16 seeds of the known gate neither seeds from 0 on (−0.01 [−0.27, 0.23]) nor seeds from "
        "1000 on (0.12 [−0.01, 0.31]) decide; with 32 seeds from 0 on it is 0.02 [−0.10, 0.20].",
    ),
    cautions=tuning_cautions({"": Gated}),
    figures=figures,
)
