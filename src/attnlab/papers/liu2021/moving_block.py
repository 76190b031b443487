"""Knowing a block that moves does not make needed samples flat."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, Grid, Scale, Source, Sweep, given_interval
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.curve_sweeps import end, tuning_cautions
from attnlab.papers.liu2021.sample_figures import tuning
from attnlab.papers.liu2021.sample_sweeps import (
    ENDS,
    HOW,
    LEVEL,
    WORK,
    StaticMask,
    TeacherCurves,
    by_features,
    label_of,
    mask_arm,
    static_mask,
    tabulated,
)
from attnlab.report import Figure, learning_curves, needed_figure

_LEAST = 0.7  # exponent from which on needed samples are said to grow in proportion to p
_GROWS = given_interval >= _LEAST


class MovingBlock(TeacherCurves, label="moving block"):
    """Students of a block of 4 features that follows the largest (student, features, seed, size)."""


def _grid(scale: Scale, seeds: int) -> Grid:
    """The moving block known; at paper scale the baseline too, which does not get there."""
    students = ("known-attention", "baseline") if scale == "paper" else ("known-attention",)
    arms = {
        label_of(student, p): mask_arm(scale, "moving-block", student, p, growing=True)
        for student in students
        for p in ENDS[scale]
    }
    return Grid(arms, seeds)


def _measure(arms: Data, confidence: float | None = None) -> Data:
    return {MovingBlock.label: tabulated(by_features(arms), confidence=confidence)}


moving_block = Sweep(
    name="moving block", work=WORK, grid=_grid, measure=_measure, tables=(MovingBlock,)
)


def figures(data: Data) -> list[Figure]:
    """Needed samples where the block moves and where it stays, learning curves, the tuning."""
    table = MovingBlock.of(data)
    return [
        needed_figure(table, id="block_needed", title="Needed samples where the block moves"),
        needed_figure(
            StaticMask.of(data),
            id="block_static",
            title="The control: needed samples where the block stays",
            students=["known-attention"],
        ),
        learning_curves(table, id="block_curves", title="Learning curves on a moving block"),
        *tuning(table, id="block_tuning"),
    ]


claim = Claim(
    id="liu2021.moving_block",
    rank=3,
    title="Knowing a block that moves does not make needed samples flat",
    statement="If the relevant block moves with the input, even a model that knows where it is "
    "needs samples in proportion to p: the head must learn every place.",
    why="To know where the block is tells a model which features count, and not what to do with "
    "them there. The head has weights of its own for every place, and each place is seen in a "
    "p-th of the samples only because the block moves, so that needed samples grow with p all "
    "the same.",
    finding={
        "holds": "Knowing where a moving block is does not make needed samples flat",
        "fails": "With a moving block known, needed samples hardly grow with the features",
        "inconclusive": "Whether needed samples grow with a known moving block is undecided",
    },
    source=Source("ours", note=f"a case in which the argument of {PAPER} gives no advantage"),
    provenance=PROTOTYPE,
    sweeps=(moving_block, static_mask),
    criteria=(
        Criterion(
            f"exponent of n({LEVEL:g}) in p, known moving block",
            end(MovingBlock, MovingBlock.exponent, student="known-attention"),
            _GROWS,
        ),
    ),
    controls=(
        Control(
            "static mask",
            "For a block that stays, known attention is flat.",
            (
                Criterion(
                    f"exponent of n({LEVEL:g}) in p, known static mask",
                    end(StaticMask, StaticMask.exponent, student="known-attention"),
                    _GROWS,
                ),
            ),
        ),
    ),
    how_measured=f"{HOW} The block is the 4 features that follow the largest one.",
    refuted_by=f"An exponent below {_LEAST:g}.",
    cautions=tuning_cautions({"": MovingBlock}),
    figures=figures,
)
