"""Liu et al. (2021), first half: how many samples attention saves (docs/theory.md#b2)."""

from __future__ import annotations

from typing import Any

import xarray as xr

from attnlab.claims._claim import Claim, Control, Criterion
from attnlab.complexity import end_values
from attnlab.studies import (
    DEPTH,
    GATE,
    MOVING_BLOCK,
    SELF_ATTENTION,
    STATIC_MASK,
    Data,
)

_SOURCE = "Liu, Balaji, Xue, Min (2021), sample complexity of attention"
_OURS = "attnlab, candidate predictors of the sample ratio (not the theorems of Liu et al. 2021)"
_HOW = (
    "n_ε is the number of training samples at which the seed-median error E(ŷ − g)²/Var g on 2000 "
    "noiseless points "
    "first crosses ε, interpolated in log n; its interval, and that of ratios (paired seeds) and "
    "exponents, is a "
    "bootstrap over seeds. Every student gets the same tuning: weight decays chosen on 500 "
    "validation points that are "
    "not counted."
)
_NO_SAVING = 1.25  # a ratio from which on a saving is worth anything


def _end(name: str, variable: str, **where: Any):
    return lambda data: end_values(data[name], variable, **where)


def _exponent(name: str, student: str):
    return _end(name, "exponent", student=student)


def _ratio(name: str, student: str, **where: Any):
    return _end(name, "ratio", student=student, **where)


def _needed(name: str, student: str, **where: Any):
    return _end(name, "needed", student=student, **where)


def _reaches(depth: int):
    """Whether each seed's learned stack is below 0.1 at the largest size."""

    def measure(data: Data) -> xr.DataArray:
        errors = data["learned depth"].error.sel(student="multi-layer", depth=depth)
        return (errors.isel(size=-1) <= 0.1).where(errors.isel(size=-1).notnull())

    return measure


KNOWN_ATTENTION = Claim(
    id="liu2021.known_attention_samples",
    title="Known attention needs no more samples when irrelevant features are added",
    statement=(
        "With 4 relevant of p features, the baseline's needed samples grow in proportion to p; "
        "those of a model that "
        "knows the mask do not grow."
    ),
    source=_SOURCE,
    studies=(STATIC_MASK,),
    criteria=(
        Criterion(
            "exponent of n(0.1) in p, baseline",
            "interval",
            _exponent("static mask", "baseline"),
            (0.85, 1.25),
            "in",
        ),
        Criterion(
            "exponent of n(0.1) in p, known mask",
            "interval",
            _exponent("static mask", "known-attention"),
            (-0.15, 0.15),
            "in",
        ),
        Criterion(
            "samples saved at p = 16 (ratio)",
            "interval",
            _ratio("static mask", "known-attention", features=16),
            3.5,
            ">=",
        ),
        Criterion(
            "samples saved at p = 128 (ratio)",
            "interval",
            _ratio("static mask", "known-attention", features=128),
            35.0,
            ">=",
        ),
    ),
    controls=(
        Control(
            "vacuous mask",
            "A mask that lets everything through saves nothing.",
            (
                Criterion(
                    "ratio at p = 16, vacuous mask",
                    "interval",
                    _ratio("static mask", "vacuous-mask", features=16),
                    3.5,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=f"{_HOW} Teachers have 4 hidden units, students 8.",
    refuted_by="A baseline that does not grow with p, a known mask that does, or a smaller ratio.",
)

GATED = Claim(
    id="liu2021.gated_attention",
    title="A known gate that depends on the input is as good as a mask",
    statement="Known input-dependent gates on 4 of p features need a number of samples that does "
    "not grow with p.",
    source=_SOURCE,
    studies=(GATE,),
    criteria=(
        Criterion(
            "exponent of n(0.1) in p, known gate",
            "interval",
            _exponent("gate", "known-attention"),
            (-0.25, 0.25),
            "in",
        ),
    ),
    controls=(
        Control(
            "baseline",
            "Without knowing the gate, needed samples grow (read at ε = 0.5, which it reaches).",
            (
                Criterion(
                    "exponent of n(0.5) in p, baseline",
                    "interval",
                    _exponent("gate at 0.5", "baseline"),
                    (-0.25, 0.25),
                    "in",
                ),
            ),
        ),
    ),
    how_measured=f"{_HOW} The gate is 2·sigmoid(3·(x shifted by one)) on the relevant features.",
    refuted_by="Needed samples of the known gate that grow with p.",
)

MOVING = Claim(
    id="liu2021.moving_block",
    title="Knowing a block that moves does not make needed samples flat",
    statement=(
        "If the relevant block moves with the input, even a model that knows where it is needs "
        "samples in proportion "
        "to p: the head must learn every place."
    ),
    source=_SOURCE,
    studies=(MOVING_BLOCK, STATIC_MASK),
    criteria=(
        Criterion(
            "exponent of n(0.1) in p, known moving block",
            "interval",
            _exponent("moving block", "known-attention"),
            0.7,
            ">=",
        ),
    ),
    controls=(
        Control(
            "static mask",
            "For a block that stays, known attention is flat.",
            (
                Criterion(
                    "exponent of n(0.1) in p, known static mask",
                    "interval",
                    _exponent("static mask", "known-attention"),
                    0.7,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=f"{_HOW} The block is the 4 features that follow the largest one.",
    refuted_by="An exponent below 0.7.",
)

SELF_ATTENTION_SAMPLES = Claim(
    id="liu2021.self_attention_samples",
    title="On a self-attention teacher, attention needs far fewer samples than an MLP",
    statement=(
        "With the teacher's weights known a few hundred samples suffice, an MLP does not get "
        "there with 4096; learned "
        "self-attention needs fewer than the MLP for a rough fit."
    ),
    source=_SOURCE,
    studies=(SELF_ATTENTION,),
    criteria=(
        Criterion(
            "n(0.1), known weights",
            "interval",
            _needed("self-attention", "known-weights", teacher="self-attention"),
            300.0,
            "<=",
        ),
        Criterion(
            "n(0.1), MLP",
            "interval",
            _needed("self-attention", "baseline", teacher="self-attention"),
            4096.0,
            ">=",
        ),
        Criterion(
            "MLP over learned self-attention at ε = 0.5 (ratio)",
            "interval",
            _ratio("self-attention at 0.5", "self-attention", teacher="self-attention"),
            4.0,
            ">=",
        ),
    ),
    controls=(
        Control(
            "wrong weights",
            "Weights that look one word too far are no help.",
            (
                Criterion(
                    "n(0.1), wrong weights",
                    "interval",
                    _needed("self-attention", "wrong-weights", teacher="self-attention"),
                    300.0,
                    "<=",
                ),
            ),
        ),
        Control(
            "MLP teacher",
            "Where the teacher is an MLP, learned self-attention has no such ratio.",
            (
                Criterion(
                    "MLP over learned self-attention, MLP teacher",
                    "interval",
                    _ratio("MLP teacher", "self-attention", teacher="mlp"),
                    4.0,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=(
        f"{_HOW} Words of dimension 4, 5 of them, d_q = 2, d_v = 3, 6 hidden units, an MLP of 24, "
        "weight decay 0.1."
    ),
    refuted_by="Known weights that need more than 300 samples, or an MLP that gets there.",
    notes=(
        "Learned self-attention reaches ε = 0.1 from some starts only: its n(0.1) and the share "
        "of seeds that reach it "
        "are shown and not judged.",
    ),
)

DEPTH_CLAIM = Claim(
    id="liu2021.depth",
    title="Depth costs little when the weights are known, and much when they are learned",
    statement=(
        "With known weights, three layers need at most four times the samples of one; learned, "
        "three layers are hardly "
        "ever found with 4096."
    ),
    source=_SOURCE,
    studies=(DEPTH,),
    criteria=(
        Criterion(
            "n(0.1) at depth 3 over depth 1, known weights",
            "interval",
            _ratio("depth growth", "depth 1", weights="known-weights"),
            4.0,
            "<=",
        ),
        Criterion(
            "share of seeds at ε ≤ 0.1 with 4096 samples, learned, depth 3",
            "share",
            _reaches(3),
            0.25,
            "<=",
        ),
    ),
    controls=(
        Control(
            "wrong weights",
            "With wrong weights at depth 3 the growth is beyond four.",
            (
                Criterion(
                    "n(0.1) at depth 3, wrong, over depth 1, known",
                    "interval",
                    _ratio("depth growth", "depth 1", weights="wrong weights"),
                    4.0,
                    "<=",
                ),
            ),
        ),
        Control(
            "one layer",
            "A single learned layer is found more often.",
            (
                Criterion(
                    "share of seeds at ε ≤ 0.1, learned, depth 1", "share", _reaches(1), 0.25, "<="
                ),
            ),
        ),
    ),
    how_measured=f"{_HOW} Inner layers add to their input; a run of its own seed each, 12 seeds "
    "or more for shares.",
    refuted_by="A growth above four, or a quarter of the seeds reaching the level at depth 3.",
    notes=("The learned stack of two layers is shown and not judged.",),
)

NO_ADVANTAGE = Claim(
    id="liu2021.no_advantage",
    title="Where attention cannot help, the measurement says so",
    statement="A vacuous mask, a wrong mask, and self-attention on an MLP's data save no samples.",
    source="attnlab, negative cases of Liu et al. (2021)",
    studies=(STATIC_MASK, SELF_ATTENTION),
    criteria=(
        Criterion(
            "ratio, vacuous mask (exactly 1)",
            "interval",
            _ratio("static mask", "vacuous-mask", features=16),
            (1.0, 1.0),
            "in",
        ),
        Criterion(
            "ratio, wrong mask",
            "interval",
            _ratio("static mask", "wrong-mask", features=16),
            _NO_SAVING,
            "<=",
        ),
        Criterion(
            "ratio, self-attention on an MLP teacher",
            "interval",
            _ratio("MLP teacher", "self-attention", teacher="mlp"),
            _NO_SAVING,
            "<=",
        ),
    ),
    controls=(
        Control(
            "true mask",
            "The true mask must not be called useless.",
            (
                Criterion(
                    "ratio, known mask at p = 16",
                    "interval",
                    _ratio("static mask", "known-attention", features=16),
                    _NO_SAVING,
                    "<=",
                ),
            ),
        ),
    ),
    how_measured=f"{_HOW} “No advantage” means that the ratio's interval excludes a saving of "
    f"{_NO_SAVING}× or more.",
    refuted_by="An interval that allows a saving where there can be none.",
)

_PREDICTORS = {
    "mean_square": "E‖x‖²",
    "largest_square": "max‖x‖²",
    "fourth_moment": "√E‖x‖⁴",
    "participation": "(tr Σ)²/‖Σ‖²",
    "intrinsic_dimension": "tr Σ/λ_max",
}


def _only(variable: str, predictor: str):
    """A number without an interval."""

    def measure(data: Data) -> xr.DataArray:
        value = float(data["mask family"][variable].sel(predictor=predictor))
        return xr.DataArray([value] * 3, dims="end", attrs={"kind": "number"})

    return measure


BOUNDS = Claim(
    id="liu2021.bounds",
    title="Five quantities of the inputs predict the order of the savings",
    statement=(
        "Over masks of s of p features, the ratio of five quantities, each of x against x ⊙ f(x), "
        "puts the settings in "
        "the order of the measured sample ratios."
    ),
    source=_OURS,
    studies=(STATIC_MASK,),
    criteria=tuple(
        criterion
        for name, words in _PREDICTORS.items()
        for criterion in (
            Criterion(
                f"rank agreement of {words}", "interval", _only("agreement", name), 0.8, ">="
            ),
            Criterion(
                f"its interval over settings, {words}",
                "interval",
                _end("mask family", "agreement", predictor=name),
                0.0,
                ">=",
            ),
        )
    ),
    controls=(
        Control(
            "predictions of other settings",
            "Each setting gets the prediction of the one before it.",
            (
                Criterion(
                    "rank agreement of E‖x‖², shifted",
                    "interval",
                    _only("shifted", "mean_square"),
                    0.8,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=(
        f"{_HOW} Spearman's rank correlation over at least 12 settings; settings whose ratio is "
        "only bounded are put "
        "where they hurt most. The interval resamples settings."
    ),
    refuted_by="A rank agreement below 0.8.",
    notes=(
        "These are candidate predictors of an order, not of a level, and not the paper's theorems.",
    ),
)

LIU2021 = (
    KNOWN_ATTENTION,
    GATED,
    MOVING,
    SELF_ATTENTION_SAMPLES,
    DEPTH_CLAIM,
    NO_ADVANTAGE,
    BOUNDS,
)
