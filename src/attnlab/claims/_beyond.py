"""Later theory as claims (docs/theory.md#c5)."""

from __future__ import annotations

from attnlab.claims._claim import Claim, Control, Criterion
from attnlab.studies import Data
from attnlab.studies._edge import CONTROL, EDGE

_BAND = (0.95, 1.15)


def _last(size: float) -> Criterion:
    """λ_max·step/2 at the end of training."""

    def measure(data: Data):
        return data["edge"]["last"].sel(step_size=size)

    return Criterion(f"λ_max · step / 2, step {size:g}", "estimate", measure, _BAND, "in", "mean")


EDGE_CLAIM = Claim(
    id="beyond.edge_of_stability",
    title="Plain descent on word attention trains at the edge of stability",
    statement="Full-batch descent with the steps 0.5, 1 and 2 ends with λ_max·step/2 between 0.95 "
    "and 1.15.",
    source="Cohen, Kaur, Li, Kolter, Talwalkar (2021), arXiv 2103.00065; on word attention, "
    "attnlab",
    studies=(EDGE,),
    criteria=tuple(_last(size) for size in (0.5, 1.0, 2.0)),
    controls=(
        Control(
            "a small step",
            "With a step of 0.02 training of equal length stays far below the edge.",
            (_last(CONTROL),),
        ),
    ),
    how_measured=(
        "Word attention (60 words, 8 a sentence, d = 8, 200 sentences, 10 % of labels flipped) "
        "with all parts trained "
        "on the squared error to one-hot labels; λ_max of the full training loss by Lanczos along "
        "training, averaged "
        "over the last fifth. An eigenvalue whose residual exceeds 1 % of it has not converged "
        "and does not count."
    ),
    refuted_by="A mean over seeds that surely lies outside the band at any of the steps.",
    notes=("The band was set after one seed of a prototype: read the measured values first.",),
)

BEYOND = (EDGE_CLAIM,)
