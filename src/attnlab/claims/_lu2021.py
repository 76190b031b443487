"""Claims of Lu, Mao and Nayak, "On the Dynamics of Training Attention Models" (2021)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from attnlab.claims._claim import Claim, Control, Criterion, Data, Measure
from attnlab.studies import (
    ABLATION,
    ASYMPTOTICS,
    CAPACITY,
    REFERENCE,
    STARTS,
    asked_of,
)

_PAPER = "Lu, Mao and Nayak (2021)"
_EARLY, _LATE = 3000, 6000  # steps at which the ablations are compared


def _of(label: str, variable: str, **chosen: Any) -> Measure:
    """A variable of a data set, at some labels of its dimensions."""
    return lambda data: data[label][variable].sel(chosen)


def _at_most(name: str, measure: Measure, bound: float, of: str) -> Criterion:
    """A bound on a quantile of all entries, or on all of them for ``"max"``."""
    if of == "max":
        return Criterion(name, "every run", measure, bound)
    return Criterion(name, "bound", measure, bound, "<=", of)


def _quantiles(
    measure: Measure, prefix: str, bounds: tuple[float | None, float | None, float | None]
) -> tuple[Criterion, ...]:
    names = ("median", "p95", "max")
    return tuple(
        _at_most(f"{prefix}, {name}", measure, bound, name)
        for name, bound in zip(names, bounds, strict=True)
        if bound is not None
    )


def _late_ratio(data: Data) -> xr.DataArray:
    last = data["reference"].isel(step=-1)
    return last.sen_error_refined.median("word") / last.sen_error.median("word")


_TEN = slice(10, None)

SEN = Claim(
    id="lu2021.sen",
    title="A word's score determines the norm of its embedding",
    statement="Along training, s + (e^s − 1)/m = ½|q|²(|ν|² − |ν₀|²) for every topic word, "
    "whatever the head.",
    source=f"{_PAPER}, section 4: score and embedding norm",
    studies=(REFERENCE,),
    criteria=(
        *_quantiles(
            _of("reference", "sen_error", head=["fixed", "linear"]),
            "relative error, fixed and linear head",
            (0.004, 0.008, 0.015),
        ),
        Criterion(
            "with I₁ from step 10, fixed and linear head, max",
            "every run",
            _of("reference", "sen_error_corrected", head=["fixed", "linear"], step=_TEN),
            0.005,
        ),
        Criterion(
            "with I₁ from step 10, two-layer head, p95",
            "bound",
            _of("reference", "sen_error_corrected", head="two_layer", step=_TEN),
            0.005,
            "<=",
            "p95",
        ),
        Criterion(
            "with I₁ from step 10, two-layer head, max",
            "every run",
            _of("reference", "sen_error_corrected", head="two_layer", step=_TEN),
            0.04,
        ),
        Criterion(
            "late error, refined over plain form, fixed head, median",
            "bound",
            lambda d: _late_ratio(d).sel(head="fixed"),
            0.6,
            "<=",
            "median",
        ),
    ),
    controls=(
        Control(
            "wrong query",
            "|q| taken 1.2 times too large must not fit.",
            _quantiles(
                _of("reference", "sen_error_wrong_query", head=["fixed", "linear"]),
                "|q| × 1.2",
                (0.004, 0.008, 0.015),
            ),
        ),
        Control(
            "Adam",
            "Adam does not follow the gradient, so the relation must not fit its runs.",
            _quantiles(_of("Adam", "sen_error"), "Adam", (0.004, 0.008, 0.015)),
        ),
    ),
    how_measured=(
        "Relative error of the predicted |q||ν| for the topic words with s > 0.05, at every "
        "recorded step of all runs. "
        "The plain form uses m = 20; the corrected one adds |q|² I₁, what descent misses of the "
        "flow; the refined one "
        "measures the other words' weight and context instead of assuming them."
    ),
    refuted_by="An error above the bound, a wrong |q| that fits as well, or Adam's runs fitting "
    "as well.",
)

SEN_INIT = Claim(
    id="lu2021.sen_init",
    title="The relation survives embeddings that start large",
    statement="With initial embeddings of standard deviation 0.1 the relation holds once |ν₀|² is "
    "kept in it.",
    source=f"{_PAPER}, section 5: the setting of the ablations",
    studies=(STARTS,),
    criteria=_quantiles(
        _of("std 0.1", "sen_error"), "relative error, fixed and linear head", (0.006, 0.02, None)
    ),
    controls=(
        Control(
            "without |ν₀|²",
            "The relation as if embeddings had started at zero must not fit.",
            _quantiles(
                _of("std 0.1", "sen_error_without_start"), "without |ν₀|²", (0.006, 0.02, None)
            ),
        ),
    ),
    how_measured="As lu2021.sen in its plain form, with initial embeddings N(0, 0.1²) under the "
    "fixed and linear head.",
    refuted_by="An error above the bound, or a fit that is as good without |ν₀|².",
)

PROMOTION = Claim(
    id="lu2021.promotion",
    title="Score and embedding promote each other",
    statement="From small embeddings, a topic word's score and norm only ever rise together.",
    source=f"{_PAPER}, section 4: mutual promotion",
    studies=(REFERENCE, STARTS),
    criteria=(
        Criterion(
            "Spearman(s, |ν|) along training, every topic word",
            "every run",
            _of("reference", "rank_agreement"),
            0.999,
            ">=",
        ),
    ),
    controls=(
        Control(
            "large embeddings",
            "From embeddings of standard deviation 0.3 norms first fall: the order breaks.",
            (
                Criterion(
                    "Spearman(s, |ν|), std 0.3",
                    "every run",
                    _of("std 0.3", "rank_agreement"),
                    0.999,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=(
        "Rank correlation of score and norm over steps evenly spaced in the logarithm, word by "
        "word, in all runs and "
        "heads."
    ),
    refuted_by="One topic word of one run whose score and norm do not rise together.",
)


def _any_dip(label: str, **chosen: Any) -> Measure:
    return lambda data: (
        (data[label].dip.sel(chosen) > 0)
        .any("word")
        .where(data[label].score.sel(chosen).notnull().any(["step", "word"]))
    )


SUPPRESSION = Claim(
    id="lu2021.suppression",
    title="Misaligned words are suppressed first",
    statement=(
        "A topic word whose initial embedding points away from its label first loses score and "
        "norm together, before "
        "both rise."
    ),
    source=f"{_PAPER}, section 4: mutual suppression",
    studies=(STARTS, REFERENCE),
    criteria=(
        Criterion("seeds with a word that dips", "share", _any_dip("std 0.3"), 0.75, ">="),
        Criterion(
            "share of words that dip",
            "estimate",
            lambda d: d["std 0.3"].dip.astype(float),
            (0.2, 0.6),
            "in",
            "mean",
        ),
        Criterion(
            "norm falls with the score, share of dips",
            "share",
            _of("std 0.3", "fall_together"),
            0.95,
            ">=",
        ),
        Criterion(
            "AUC of misalignment for the dip",
            "estimate",
            _of("std 0.3", "alignment_auc"),
            0.95,
            ">=",
            "mean",
        ),
    ),
    controls=(
        Control(
            "small embeddings",
            "From embeddings of standard deviation 1e-6 no word dips.",
            (
                Criterion(
                    "seeds with a word that dips, std 1e-6",
                    "share",
                    _any_dip("reference", head="fixed"),
                    0.75,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=(
        "Fixed head, initial embeddings N(0, 0.3²). A dip is a score below −0.001; misalignment is "
        "−ν₀·(W_y − mean_j W_j), its AUC is taken within each seed that has words of both kinds."
    ),
    refuted_by="No dips, dips of scores without norms, or dips that alignment does not foretell.",
    notes=("At the authors' standard deviation of 0.1 the dip is there but tiny, about −0.003.",),
)

_END = {"head": "fixed"}


def _final(label: str, variable: str, **chosen: Any) -> Measure:
    return lambda data: data[label][variable].sel(chosen).isel(step=-1)


def _convergence(label: str, note: str = "", **chosen: Any) -> tuple[Criterion, ...]:
    return (
        Criterion(
            f"test accuracy{note}",
            "every run",
            _final(label, "accuracy_test", **chosen),
            0.99,
            ">=",
        ),
        Criterion(
            f"AUC of scores, topic against other words{note}",
            "every run",
            _final(label, "separation_score", **chosen),
            0.999,
            ">=",
        ),
        Criterion(
            f"AUC of norms, topic against other words{note}",
            "every run",
            _final(label, "separation_norm", **chosen),
            0.999,
            ">=",
        ),
        Criterion(f"training loss{note}", "every run", _final(label, "loss", **chosen), 0.04),
    )


CONVERGENCE = Claim(
    id="lu2021.convergence",
    title="Attention finds the words that matter",
    statement="After 5000 steps scores and norms tell topic words from all others, and the loss "
    "has gone.",
    source=f"{_PAPER}, sections 4 and 5: convergence to the topic words",
    studies=(REFERENCE, STARTS),
    criteria=_convergence("reference", **_END),
    controls=(
        Control(
            "labels at random",
            "With labels drawn independently of the words there is nothing to find.",
            _convergence("labels at random", ", labels at random"),
        ),
    ),
    how_measured="Fixed head, every seed's last step; the worst seed counts.",
    refuted_by="One seed in which a topic word is not told apart, or the loss stays.",
    notes=(
        "The attention on the topic word is then about 0.6, not 1: it tends to 1 doubly "
        "logarithmically slowly "
        "(lu2021.rate).",
    ),
)

RATE = Claim(
    id="lu2021.rate",
    title="The loss goes like 1/τ, the score like 2 log log τ",
    statement="Training converges to the topic word with certainty, and doubly logarithmically "
    "slowly.",
    source=f"{_PAPER}, section 4, carried to its limit by the reduced model",
    studies=(ASYMPTOTICS,),
    criteria=(
        Criterion(
            "exponent of the loss, 1e9 to 1e12",
            "estimate",
            _of("asymptotics", "loss_exponent", head="fixed"),
            (-1.02, -0.98),
            "in",
            "mean",
        ),
        Criterion(
            "ds / d log log τ, 1e9 to 1e12",
            "estimate",
            _of("asymptotics", "score_rate", head="fixed"),
            (1.8, 2.2),
            "in",
            "mean",
        ),
    ),
    controls=(
        Control(
            "singly logarithmic",
            "“ds / d log τ is constant” would make the early rate equal to the late one.",
            (
                Criterion(
                    "ds / d log τ, late over early",
                    "estimate",
                    _of("asymptotics", "score_slowdown", head="fixed"),
                    (0.9, 1.1),
                    "in",
                    "mean",
                ),
            ),
        ),
    ),
    how_measured=(
        "The reduced model's flow from random starts, integrated adaptively to time 1e12; slopes "
        "are least-squares "
        "fits over 1e9 to 1e12, the control compares 1e3 to 1e6 with 1e9 to 1e12."
    ),
    refuted_by="Another exponent, or a score that grows at a constant rate in log τ.",
)


def _reduced(
    head: str,
    name: str,
    criteria: Callable[[str, str], tuple[Criterion, ...]],
    how: str,
    notes: tuple[str, ...] = (),
) -> Claim:
    return Claim(
        id=f"lu2021.reduced_{ {'fixed': 'fc', 'linear': 'tc', 'two_layer': 'tl'}[head] }",
        title=f"The reduced model predicts training, {name} head",
        statement=(
            f"Under the {name} head, one sentence per topic word, the word and m null words, "
            "predicts from the start "
            "alone what training on the whole data set will do."
        ),
        source=f"{_PAPER}, section 4: the reduced dynamics",
        studies=(REFERENCE,),
        criteria=criteria("", ""),
        controls=(
            Control(
                "m halved",
                "With half of the other words the prediction must miss.",
                criteria("halved_", ", m halved"),
            ),
        ),
        how_measured=(
            f"{how} The prediction uses the run's initial embeddings, head and |q| and its words' "
            "frequencies; it is "
            "compared where s > 0.05. The onset is the step at which a score reaches half of its "
            "own last value; a run "
            "whose loss is still above 0.1 at the last step is in the midst of it and has no "
            "final score to compare."
        ),
        refuted_by="A prediction outside the bound, or one that fits as well with half of the "
        "words.",
        notes=notes,
    )


def _pointwise(prefix: str, note: str) -> tuple[Criterion, ...]:
    error = _of("reference", f"{prefix}score_error", head="fixed")
    return (
        Criterion(
            f"error of the score along training, p95{note}", "bound", error, 0.02, "<=", "p95"
        ),
        Criterion(f"error of the score along training, max{note}", "every run", error, 0.04),
        Criterion(
            f"error of the final score, max{note}",
            "every run",
            _of("reference", f"{prefix}final_error", head="fixed"),
            0.015,
        ),
    )


def _onset_and_end(
    head: str, onset: float, end: float, of: str = "max"
) -> Callable[[str, str], tuple[Criterion, ...]]:
    def criteria(prefix: str, note: str) -> tuple[Criterion, ...]:
        return (
            _at_most(
                f"error of the onset time, {of}{note}",
                _of("reference", f"{prefix}onset_error", head=head),
                onset,
                of,
            ),
            _at_most(
                f"error of the final score, {of}{note}",
                _of("reference", f"{prefix}final_error", head=head),
                end,
                of,
            ),
        )

    return criteria


REDUCED_FC = _reduced("fixed", "fixed", _pointwise, "Adaptive flow, pointwise along training.")
REDUCED_TC = _reduced(
    "linear",
    "linear",
    _onset_and_end("linear", 0.025, 0.03),
    "Adaptive flow; judged by onset and end, since the steep onset is late by a little.",
)
REDUCED_TL = _reduced(
    "two_layer",
    "two-layer",
    _onset_and_end("two_layer", 0.04, 0.15, "p90"),
    "Descent map, since ReLU kinks defeat an adaptive solver; judged by onset and end, over nine "
    "tenths of the words.",
    (
        "In about one run of sixteen a near-tie among hidden units is decided otherwise in "
        "training than in the "
        "reduced model, and the run settles in another configuration. A bound on the worst word "
        "fails there; the "
        "figures show every word.",
    ),
)


def _ratio(head: str, above: str, below: str, step: int) -> Measure:
    """Loss of one setting over that of another, seed by seed."""

    def measure(data: Data) -> xr.DataArray:
        loss = data["ablation"].loss.sel(head=head, step=step)
        return loss.sel(setting=above, drop=True) / loss.sel(setting=below, drop=True)

    return measure


def _against_other_seeds(head: str, step: int) -> Measure:
    """Loss of the full model over that of the full model of the next seed."""

    def measure(data: Data) -> xr.DataArray:
        loss = data["ablation"].loss.sel(head=head, step=step, setting="full")
        return loss.roll(seed=-1, roll_coords=False) / loss

    return measure


def _ablation(head: str, name: str, least: float) -> Claim:
    order = [("keys frozen", "full"), ("embeddings frozen", "keys frozen")]
    return Claim(
        id=f"lu2021.ablation_{ {'fixed': 'fc', 'linear': 'tc'}[head] }",
        title=f"Training keys and embeddings together is what makes it fast, {name} head",
        statement=(
            "The loss falls fastest when both are trained, slower with frozen keys, slowest with "
            "frozen embeddings."
        ),
        source=f"{_PAPER}, section 5: ablations KF and EF",
        studies=(ABLATION,),
        criteria=(
            *(
                Criterion(
                    f"loss, {above} over {below}, step {step}, smallest",
                    "every run",
                    _ratio(head, above, below, step),
                    1.0,
                    ">=",
                )
                for step in (_EARLY, _LATE)
                for above, below in order
            ),
            Criterion(
                f"loss, keys frozen over full, step {_LATE}",
                "estimate",
                _ratio(head, "keys frozen", "full", _LATE),
                least,
                ">=",
                "median ratio",
            ),
        ),
        controls=(
            Control(
                "full against full",
                "Two full models of different seeds must not be told apart in this way.",
                (
                    Criterion(
                        "loss, full of another seed over full",
                        "estimate",
                        _against_other_seeds(head, _LATE),
                        least,
                        ">=",
                        "median ratio",
                    ),
                ),
            ),
        ),
        how_measured=(
            "Initial embeddings N(0, 0.1²), 6000 steps; the three settings of a seed share data "
            "and start. Every seed "
            "must keep the order at steps 3000 and 6000."
        ),
        refuted_by="One seed that breaks the order, or a gain of training the keys below the "
        "bound.",
        notes=(
            "With frozen keys the test accuracy still reaches 1: this is a statement about loss "
            "and speed.",
        ),
    )


ABLATION_FC = _ablation("fixed", "fixed", 50.0)
ABLATION_TC = _ablation("linear", "linear", 15.0)


def _order(*settings: str, variable: str = "final_score") -> Measure:
    """Whether the mean topic score falls from setting to setting, seed by seed."""

    def measure(data: Data) -> xr.DataArray:
        values = [data["capacity"][variable].sel(setting=name, drop=True) for name in settings]
        values = [value.isel(seed=np.flatnonzero(asked_of(*values))) for value in values]
        found = xr.ones_like(values[0], dtype=bool)
        for above, below in pairwise(values):
            found = found & (above > below)
        known = sum(
            (v.notnull() for v in values), start=xr.zeros_like(values[0], dtype=int)
        ) == len(values)
        return found.astype(float).where(known)

    return measure


CAPACITY_CLAIM = Claim(
    id="lu2021.capacity",
    title="Heads of low capacity give attention a stronger signal",
    statement=(
        "Under the authors' settings the topic words' mean score ends highest with the fixed "
        "head, then linear, then "
        "two-layer."
    ),
    source=f"{_PAPER}, section 5: low-capacity classifiers",
    studies=(CAPACITY,),
    criteria=(
        Criterion(
            "seeds with fixed > linear > two-layer",
            "share",
            _order("fixed", "linear", "two-layer"),
            0.75,
            ">=",
        ),
    ),
    controls=(
        Control(
            "W × 0.18",
            "With the fixed W as small as the linear head's start, the order fixed > linear must "
            "fail.",
            (
                Criterion(
                    "seeds with fixed > linear, W × 0.18",
                    "share",
                    _order("fixed, W × 0.18", "linear"),
                    0.75,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured="Mean score of the topic words after 5000 steps, seed by seed; the heads share "
    "data and query.",
    refuted_by="The order failing in more than a quarter of the seeds.",
    notes=(
        "The claim is confounded: the fixed W is about five times as large as the linear head's "
        "start. With W at the "
        "linear head's scale the order is lost; started from the same W, or compared at equal "
        "loss, it is another "
        "matter again. The table shows all of them.",
    ),
)


LU2021 = (
    SEN,
    SEN_INIT,
    PROMOTION,
    SUPPRESSION,
    CONVERGENCE,
    RATE,
    REDUCED_FC,
    REDUCED_TC,
    REDUCED_TL,
    ABLATION_FC,
    ABLATION_TC,
    CAPACITY_CLAIM,
)
