"""Attention's entropy is never below what the norm of its logits allows (docs/theory.md#c5)."""

from __future__ import annotations

import numpy as np

from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Grid,
    Provenance,
    Scale,
    Source,
    Sweep,
    Table,
    every_run,
    variable,
)
from attnlab.papers.beyond.settings import TOO_LARGE
from attnlab.report import Figure, number, scatter_figure

WORK = "attnlab.papers.beyond.runs:measure_entropy"
ROWS = 60_000
_ROUNDING = 1e-12  # an entropy may lie below its bound by so much, in float64


class Rows(Table, label="entropy bound"):
    """Random rows of logits, and the extremal ones."""

    least = variable("least of entropy − bound over all random rows of a seed")
    tight = variable("largest relative difference of the two at extremal rows")
    wrong = variable("least of entropy − a bound that does not hold, β being too large")
    norm = variable("norm σ of the centred logits of some rows")
    entropy = variable("entropy of the same rows, nats")
    words = variable("number of words T of the same rows")


def _grid(scale: Scale, seeds: int) -> Grid:
    """All rows at either scale, however many seeds share them."""
    del scale
    return Grid({"rows": {"rows": -(-ROWS // seeds)}}, seeds)


def _measure(arms: Data) -> Data:
    return {Rows.label: arms["rows"]}


def figures(data: Data) -> list[Figure]:
    """Entropy against the norm of the logits, some rows for each number of words."""
    rows = Rows.of(data)
    words, norm, entropy = (rows[name].values for name in (Rows.words, Rows.norm, Rows.entropy))
    counts = sorted(set(words[np.isfinite(words)].tolist()))
    least, wrong = (number(float(rows[name].min())) for name in (Rows.least, Rows.wrong))
    return [
        scatter_figure(
            {f"{int(t)} words": (norm[words == t], entropy[words == t]) for t in counts},
            id="entropy_rows",
            title="Entropy of random rows against the norm of their logits",
            log_x=True,
            x_label="norm of the centred logits σ",
            y_label="entropy, nats",
            caption="Some of the rows. The least distance from the bound over all rows is "
            f"{least}, by rounding; with β {TOO_LARGE:g} times too large it would be {wrong}.",
        )
    ]


claim = Claim(
    id="beyond.entropy_bound",
    rank=2,
    title="Attention cannot collapse faster than the norm of its logits allows",
    statement="The entropy of a softmax over T words with logits of norm σ is never below log(1 + "
    "(T−1)β) + σ√(T(T−1)) β/(1 + (T−1)β), β = e^{−σ√(T/(T−1))}, and reaches it at one row of "
    "logits.",
    why="A softmax is concentrated only if one logit stands far above the others, and logits of "
    "norm σ can lie only so far apart. The bound is also reached, because the largest gap for "
    "a given norm is that of one high logit and all others equal.",
    finding={
        "holds": "Attention cannot collapse faster than the norm of its logits allows",
        "fails": "The bound on the entropy of attention is violated, or never reached",
        "inconclusive": "Whether the entropy of attention obeys the bound is undecided",
    },
    source=Source("stated", "Zhai et al. (2023), arXiv 2303.06296"),
    provenance=Provenance("after", "2026-11-16", "runs that are not recorded"),
    sweeps=(Sweep("entropy bound", WORK, _grid, _measure, (Rows,)),),
    criteria=(
        Criterion(
            "least of entropy − bound over 60 000 random rows",
            Rows.least,
            every_run >= -_ROUNDING,
        ),
        Criterion("relative difference at the extremal point", Rows.tight, every_run <= 1e-6),
    ),
    controls=(
        Control(
            "β too large",
            "A bound whose β is 1.5 times too large must be violated.",
            (Criterion("least of entropy − wrong bound", Rows.wrong, every_run >= -_ROUNDING),),
        ),
    ),
    how_measured="Centred rows of 2 to 256 logits with norms from 0.01 to 30: normal ones, peaked "
    "ones, and ones near the extremal point, in float64. The extremal point at 60 norms from 0.1 "
    "to 8 for each number of words.",
    refuted_by="One row below the bound by more than rounding, or a bound that the extremal row "
    "does not reach.",
    figures=figures,
)
