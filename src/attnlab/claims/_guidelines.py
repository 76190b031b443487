<<<<<<< HEAD
"""The entropy bound (docs/theory.md#c5)."""

from __future__ import annotations

from attnlab.claims._claim import Claim, Control, Criterion
from attnlab.studies._compare_entropy import ENTROPY

ENTROPY_BOUND = Claim(
    id="beyond.entropy_bound",
    title="Attention cannot collapse faster than the norm of its logits allows",
    statement=(
        "The entropy of a softmax over T words with logits of norm σ is never below log(1 + "
        "(T−1)β) + "
        "σ√(T(T−1)) β/(1 + (T−1)β), β = e^{−σ√(T/(T−1))}, and reaches it at one row of logits."
    ),
    source="Zhai et al. (2023), arXiv 2303.06296",
    studies=(ENTROPY,),
    criteria=(
        Criterion(
            "least of entropy − bound over 60 000 random rows",
            "every run",
            lambda d: d["entropy bound"].least,
            -1e-12,
            ">=",
        ),
        Criterion(
            "relative difference at the extremal point",
            "every run",
            lambda d: d["entropy bound"].tight,
            1e-6,
            "<=",
        ),
    ),
    controls=(
        Control(
            "β too large",
            "A bound whose β is 1.5 times too large must be violated.",
            (
                Criterion(
                    "least of entropy − wrong bound",
                    "every run",
                    lambda d: d["entropy bound"].wrong,
                    -1e-12,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=(
        "Centred rows of 2 to 256 logits with norms from 0.01 to 30: normal ones, peaked ones, "
        "and ones near the "
        "extremal point, in float64. The extremal point at 60 norms from 0.1 to 8 for each number "
        "of words."
    ),
    refuted_by="One row below the bound by more than rounding, or a bound that the extremal row "
    "does not reach.",
)

ENTROPY_CLAIMS = (ENTROPY_BOUND,)
=======
"""Liu et al. (2021), the advice for designers of attention (docs/theory.md#b5)."""

from __future__ import annotations

from typing import Any

from attnlab.claims._claim import Claim, Control, Criterion, Measure
from attnlab.complexity import end_values
from attnlab.studies import Data
from attnlab.studies._guidelines import LADDERS, PRIOR, PRIOR_LEVEL, SAMPLES, SPARSITY_MAP, STEPS

_SOURCE = "Liu, Balaji, Xue, Min (2021), guidelines for designing attention"
_WORTHWHILE = 1.25
_HOW = (
    "Pooling students φ(w₁ᵀ Σ a_z x_z) with a = norm(xᵀq) on 16 words of dimension 8, 16 hidden "
    f"units, {SAMPLES} "
    "samples with noise 0.2; Adam 0.01 with cosine, batch 64, weight decay 0 or 0.1 by "
    "validation. The error is "
    "E(ŷ − g)²/Var g on fresh noiseless points; ratios are medians over paired seeds with an "
    "interval. A "
    "variant has settled after 4 S steps if they move the median error of S steps by less than 5 "
    "%; “at convergence” "
    "compares variants that both have settled, and nothing is judged where one has not."
)
_SEEDS = "The protocol was fixed while looking at seeds 0 to 7; the claim is judged on seeds from 100 on."


def _end(name: str, variable: str, **where: Any) -> Measure:
    def measure(data: Data):
        found = end_values(data[name], variable, **where)
        return found.assign_attrs(seeds=int(data[name].sizes["seed"]))

    return measure


def _at(teacher: str, variant: str, variable: str = "ratio") -> Measure:
    return _end(f"{teacher} teacher", variable, variant=variant, steps=STEPS)


def _converged(teacher: str, variant: str) -> Measure:
    return _end(f"{teacher} teacher", "converged", variant=variant)


HELPS = Claim(
    id="liu2021.sparse_helps_hard",
    title="Where one word matters, sparser attention is better: so it seems, and it is speed",
    statement=(
        "On a teacher that attends to one word, softmax at temperature 0.25 has at most 0.75 of "
        "the error of softmax "
        "when both have been trained to convergence."
    ),
    source=_SOURCE,
    studies=(LADDERS,),
    criteria=(
        Criterion(
            "error of T = 0.25 over softmax, at convergence",
            "interval",
            _converged("hard", "softmax:0.25"),
            0.75,
            "<=",
        ),
    ),
    controls=(
        Control(
            "1500 steps",
            "With the protocol's 1500 steps the same comparison must hold.",
            (
                Criterion(
                    "error of T = 0.25 over softmax, 1500 steps",
                    "interval",
                    _at("hard", "softmax:0.25"),
                    0.75,
                    "<=",
                ),
            ),
            should="accept",
        ),
        Control(
            "softmax, four times as long",
            "Against softmax with 6000 steps the gain of 1500 steps is gone.",
            (
                Criterion(
                    "error of T = 0.25 with 1500 over softmax with 6000 steps",
                    "interval",
                    _at("hard", "softmax:0.25", "longer"),
                    0.75,
                    "<=",
                ),
            ),
        ),
    ),
    how_measured=_HOW,
    refuted_by="A ratio that is surely above 0.75 where both have settled.",
    expected="fails",
    notes=(
        "A trained query absorbs the temperature: T is a change of the query's start and step, "
        "not of what can be "
        "learned.",
        "On this teacher the best query is infinite, and the error falls slowly for as long as "
        "one trains: a claim "
        "about convergence may stay undecided, and the errors at every number of steps are shown.",
        _SEEDS,
    ),
)

HURTS = Claim(
    id="liu2021.sparse_hurts_dense",
    title="Where all words matter, sparser attention is worse: not once it is trained",
    statement=(
        "On a teacher that averages all words, temperature 0.25 and sparsemax have at least "
        f"{_WORTHWHILE} times the "
        "error of softmax at convergence."
    ),
    source=_SOURCE,
    studies=(LADDERS, SPARSITY_MAP),
    criteria=tuple(
        Criterion(
            f"error of {name} over softmax, at convergence",
            "interval",
            _converged("dense", variant),
            _WORTHWHILE,
            ">=",
        )
        for name, variant in (("T = 0.25", "softmax:0.25"), ("sparsemax", "sparsemax"))
    ),
    controls=(
        Control(
            "one word only",
            "A student that must attend to a single word is worse.",
            (
                Criterion(
                    "error of top-1 over softmax, 1500 steps",
                    "interval",
                    _at("dense", "top1"),
                    _WORTHWHILE,
                    ">=",
                ),
            ),
            should="accept",
        ),
    ),
    how_measured=f"{_HOW} The map: errors with {SAMPLES // 2} samples and {STEPS} steps.",
    refuted_by=f"A ratio that is surely below {_WORTHWHILE}.",
    expected="fails",
    notes=(
        "The cost of sparse attention on a dense teacher depends on the query's start: from a "
        "small one all variants "
        "begin at even weights, where the teacher is.",
        _SEEDS,
    ),
)

HIGH = Claim(
    id="liu2021.high_temperature_hurts",
    title="A high temperature hurts where one word matters: at equal steps it does",
    statement=(
        "On a teacher that attends to one word, softmax at temperature 4 has at least "
        f"{_WORTHWHILE} times the error "
        "of softmax, with 1500 steps and at convergence."
    ),
    source=_SOURCE,
    studies=(LADDERS,),
    criteria=(
        Criterion(
            "error of T = 4 over softmax, 1500 steps",
            "interval",
            _at("hard", "softmax:4"),
            _WORTHWHILE,
            ">=",
        ),
        Criterion(
            "error of T = 4 over softmax, at convergence",
            "interval",
            _converged("hard", "softmax:4"),
            _WORTHWHILE,
            ">=",
        ),
    ),
    controls=(
        Control(
            "a low temperature",
            "The same must be rejected of temperature 0.25.",
            (
                Criterion(
                    "error of T = 0.25 over softmax, 1500 steps",
                    "interval",
                    _at("hard", "softmax:0.25"),
                    _WORTHWHILE,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=_HOW,
    refuted_by=f"A ratio that is surely below {_WORTHWHILE}.",
    notes=(_SEEDS,),
    table=True,
)

PRIOR_HELPS = Claim(
    id="liu2021.prior_helps",
    title="Known attention helps as a prior too, if it is right",
    statement=(
        "A penalty |a − given|² toward the teacher's weights makes softmax need at least "
        f"{_WORTHWHILE} times fewer "
        f"samples for an error of {PRIOR_LEVEL}; toward weights of other words it does not."
    ),
    source=_SOURCE,
    studies=(PRIOR,),
    criteria=(
        Criterion(
            "samples saved by the right prior (ratio)",
            "interval",
            _end("prior", "ratio", student="softmax+prior:1", task="hard"),
            _WORTHWHILE,
            ">=",
        ),
    ),
    controls=(
        Control(
            "wrong prior",
            "A penalty toward the weights of other words saves nothing.",
            (
                Criterion(
                    "samples saved by the wrong prior (ratio)",
                    "interval",
                    _end("prior", "ratio", student="softmax+wrong-prior:1", task="hard"),
                    _WORTHWHILE,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=(
        f"{_HOW} n is where the seed-median error first crosses {PRIOR_LEVEL}, interpolated in "
        "log n; the ratio is "
        "from paired seeds with a bootstrap interval. The penalty has the strength 1 and is not "
        "in the validation loss."
    ),
    refuted_by=f"A ratio that is surely below {_WORTHWHILE}.",
    notes=(_SEEDS,),
)

GUIDELINES = (HELPS, HURTS, HIGH, PRIOR_HELPS)
>>>>>>> points
