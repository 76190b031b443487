"""Embeddings and the head's trained first layer stay in balance."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, every_run, mean, pooled_min
from attnlab.papers import PROTOTYPE
from attnlab.papers.laws import SOURCE
from attnlab.papers.laws.sweeps import Laws, StepSizes, laws, step_sizes
from attnlab.papers.lu2021.sweeps import head_name
from attnlab.report import DotRow, Figure, band_figure, dots_figure

_LINEAR = Criterion(
    "drift / ‖WWᵀ‖, linear head, step 0.1",
    Laws.balance_error.at(head="linear"),
    every_run <= 3e-4,
)
_TWO_LAYER = Criterion(
    "drift / ‖WWᵀ‖, two-layer head, step 0.1",
    Laws.balance_error.at(head="two_layer"),
    every_run <= 1e-3,
)
_FIXED = Criterion(
    "drift / ‖WWᵀ‖, fixed head",
    Laws.balance_error.at(head="fixed"),
    pooled_min <= 0.5,
)
ROUGHLY_KEPT = _TWO_LAYER.limit  # a drift up to here is called kept


def figures(data: Data) -> list[Figure]:
    """Drift against step size, and the drift of the reference runs."""
    sizes = StepSizes.balance_error(data)
    series = {
        head_name(head): sizes.sel(head=head).transpose("seed", "step_size").values
        for head in sizes["head"].values.tolist()
    }
    rows = [
        DotRow(head_name("linear"), _LINEAR.measure(data).values, _LINEAR.limit),
        DotRow(head_name("two_layer"), _TWO_LAYER.measure(data).values, _TWO_LAYER.limit),
        DotRow(f"control: {head_name('fixed')}", _FIXED.measure(data).values, _FIXED.limit),
    ]
    return [
        band_figure(
            sizes.step_size.values,
            series,
            id="balance_step",
            title="Half the step, half the drift",
            x_label="step size",
            y_label="drift / ‖WWᵀ‖",
            log_x=True,
            log_y=True,
            caption="Drift of EᵀE − WWᵀ after equal training time; a line of slope one is "
            "proportional to the step.",
        ),
        dots_figure(
            rows,
            id="balance_drift",
            title="Drift at the last step of the reference runs",
            x_label="drift / ‖WWᵀ‖",
            caption="With a fixed head nothing is conserved: the control.",
        ),
    ]


claim = Claim(
    id="laws.balance",
    rank=2,
    title="Embeddings and the head's first layer stay in balance",
    statement="With a trained first layer W, EᵀE − WWᵀ is conserved by the flow; descent drifts in "
    "proportion to its step.",
    why="The logits depend on embeddings E and first layer W through their product alone, because "
    "the context is projected by W before anything else happens. The two gradients therefore "
    "share a factor, and the flow adds the same to EᵀE as to WWᵀ. A finite step leaves a term "
    "of second order, so that the drift over a given time is proportional to the step.",
    finding={
        "holds": "Embeddings and a trained first layer stay in balance, up to the step size",
        "fails": "Embeddings and a trained first layer drift out of balance",
        "inconclusive": "Whether embeddings and first layer stay in balance is undecided",
    },
    source=SOURCE,
    provenance=PROTOTYPE,
    sweeps=(laws, step_sizes),
    criteria=(
        _LINEAR,
        _TWO_LAYER,
        Criterion(
            "exponent of the drift in the step, linear head",
            StepSizes.slope.at(head="linear"),
            mean.between(0.9, 1.1),
        ),
        Criterion(
            "exponent of the drift in the step, two-layer head",
            StepSizes.slope.at(head="two_layer"),
            mean.between(0.9, 1.1),
        ),
    ),
    controls=(Control("fixed head", "Nothing balances a head that does not move.", (_FIXED,)),),
    how_measured="Frobenius norm of the change of EᵀE − WWᵀ at the last step over the final ‖WWᵀ‖, "
    "on the reference task; and the exponent fitted to that drift at the steps 0.1, 0.05 and 0.025 "
    "over equal training time.",
    refuted_by="A drift above the bound, or one that does not shrink in proportion to the step.",
    figures=figures,
)
