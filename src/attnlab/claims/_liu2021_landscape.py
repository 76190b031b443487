"""Liu et al. (2021), second half: how good and how flat minima are (docs/theory.md#b3,
docs/theory.md#b4).
"""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from attnlab.claims._claim import Claim, Control, Criterion
from attnlab.studies import FLATNESS, MINIMA, SADDLES, Data

_SOURCE = "Liu, Balaji, Xue, Min (2021), loss landscape of attention"
_CAVEAT = (
    "These are measurements on small problems with l2 = 0.001; the theorems of the paper have "
    "assumptions of their own "
    "and are not tested."
)
_HOW = (
    "Each problem (a teacher, its noisy samples) is minimised from 9 starts at the scales 0.1, 1 "
    "and 3 until "
    "‖∇L‖ ≤ 1e-8 in float64; a point counts as a minimum if all eigenvalues of its Hessian but "
    "the zero modes of "
    "symmetry are positive beyond δ. Error is E(ŷ − g)²/Var g on 2000 noiseless points. Intervals "
    "of "
    "shares are exact, over problems."
)
_FALL = -0.5  # exponent: four times the samples halve the error
Measure = Callable[[Data], xr.DataArray]


def _good(model: str, n: int) -> Measure:
    """The share of certified minima of each problem with an error of at most 0.1."""
    return lambda data: data["minima"].good.sel(model=model, samples=n)


def _flat(model: str, measure: str) -> Measure:
    return lambda data: data["flatness"].ratio.sel(model=model, measure=measure)


def _fall(model: str) -> Measure:
    return lambda data: data["minima"].fall.sel(model=model)


def _flat_criteria(model: str, words: str) -> tuple[Criterion, ...]:
    return tuple(
        Criterion(f"{name}, {words}", "estimate", _flat(model, measure), 0.5, "<=", "median ratio")
        for measure, name in (
            ("trace", "trace of the Hessian"),
            ("petzka", "Petzka's relative flatness"),
        )
    )


KNOWN = Claim(
    id="liu2021.local_minima_known",
    title="With known attention, nearly every local minimum is good",
    statement=(
        "Of the certified minima with 128 samples, 95 % are good with a known gate, 80 % with "
        "known weights (the head "
        "on x a, without w_V)."
    ),
    source=_SOURCE,
    studies=(MINIMA,),
    criteria=(
        Criterion(
            "share of good minima, known gate, n = 128",
            "share",
            _good("known-attention", 128),
            0.95,
            ">=",
        ),
        Criterion(
            "share of good minima, known weights, n = 128",
            "share",
            _good("known-weights-plain", 128),
            0.8,
            ">=",
        ),
        Criterion(
            "share of starts certified, known gate and known weights",
            "bound",
            lambda d: d["minima"].certified.sel(model=["known-attention", "known-weights-plain"]),
            0.99,
            ">=",
            "mean",
        ),
    ),
    controls=(
        Control(
            "baseline",
            "Without attention most minima are not good.",
            (
                Criterion(
                    "share of good minima, baseline, n = 128",
                    "share",
                    _good("baseline", 128),
                    0.8,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=_HOW,
    refuted_by="A smaller share of good minima.",
    notes=(_CAVEAT,),
)

LEARNED = Claim(
    id="liu2021.local_minima_learned",
    title="With learned self-attention, nearly every local minimum is good",
    statement="Of the certified minima of learned self-attention with 512 samples, 95 % are good.",
    source=_SOURCE,
    studies=(MINIMA,),
    criteria=(
        Criterion(
            "share of good minima, learned self-attention, n = 512",
            "share",
            _good("self-attention", 512),
            0.95,
            ">=",
        ),
    ),
    controls=(
        Control(
            "known attention",
            "The same question about known attention must be answered yes.",
            (
                Criterion(
                    "share of good minima, known gate, n = 512",
                    "share",
                    _good("known-attention", 512),
                    0.95,
                    ">=",
                ),
            ),
            "accept",
        ),
    ),
    how_measured=_HOW,
    refuted_by="A share that is surely below 95 %.",
    expected="fails",
    notes=(_CAVEAT,),
)

STATIONARY = Claim(
    id="liu2021.stationary_points",
    title="With known attention, every stationary point is good",
    statement="Of all certified stationary points of known attention, saddles among them, 95 % "
    "are good.",
    source=_SOURCE,
    studies=(SADDLES, MINIMA),
    criteria=(
        Criterion(
            "share of good stationary points, known gate",
            "share",
            lambda d: d["saddles"].good.sel(model="known-attention"),
            0.95,
            ">=",
        ),
    ),
    controls=(
        Control(
            "minima only",
            "Of its minima the same must be found true.",
            (
                Criterion(
                    "share of good minima, known gate, n = 128",
                    "share",
                    _good("known-attention", 128),
                    0.95,
                    ">=",
                ),
            ),
            "accept",
        ),
    ),
    how_measured=(
        "Stationary points of any kind are found by minimising ‖∇L‖² from the same starts, and "
        "certified as above; a "
        "search that ends at ‖∇L‖ > 1e-8 counts for nothing. Shares are per problem, their "
        "intervals "
        "exact over problems."
    ),
    refuted_by="Certified stationary points that are bad: saddles have an error near 1.",
    expected="fails",
    notes=(
        "The sentence “every stationary point is good” is false as a universal statement; “every "
        "local minimum” nearly "
        "holds for known attention.",
        _CAVEAT,
    ),
)

FALLS = Claim(
    id="liu2021.error_falls_with_n",
    title="The error of known attention's minima falls as samples grow",
    statement="From 128 to 512 samples the prediction error at minima falls at least like the "
    "square root of n.",
    source=_SOURCE,
    studies=(MINIMA,),
    criteria=tuple(
        Criterion(
            f"exponent of the median error in n, {words}",
            "estimate",
            _fall(model),
            _FALL,
            "<=",
            "median",
        )
        for model, words in (
            ("known-attention", "known gate"),
            ("known-weights-plain", "known weights"),
        )
    ),
    controls=(
        Control(
            "labels without meaning",
            "With shuffled labels more samples do not bring the error down like that.",
            (
                Criterion(
                    "exponent of the median error in n, shuffled labels",
                    "estimate",
                    _fall("shuffled labels"),
                    _FALL,
                    "<=",
                    "median",
                ),
            ),
        ),
    ),
    how_measured=f"{_HOW} Per problem the median error over its certified minima is compared "
    "between the two sizes.",
    refuted_by="An exponent above −0.5.",
    notes=(
        "The penalty is the same for both sizes, so that its bias is a floor under the error, "
        "which slows its fall.",
        _CAVEAT,
    ),
)

_FLAT_HOW = (
    "At the lowest of three certified minima, n = 150, over one grid of penalties for both "
    "models, which have about "
    "as many parameters; of each seed all pairs of penalties whose training errors agree within "
    "20 % are compared, and "
    "the mean of their log ratios counts; seeds without such a pair are not usable. Curvature is "
    "that of the "
    "loss without its penalty. Intervals are those of a median of log ratios over seeds."
)

_MATCH = (
    "Models of one size fit unequally well, so that equal training errors belong to unequal "
    "penalties: attention has "
    "the larger one, and a penalty alone makes minima flatter. Matched by width at equal "
    "penalties, an MLP on words "
    "needs some four times the parameters, and the ratio depends on that width."
)

FLAT_KNOWN = Claim(
    id="liu2021.flatness_known",
    title="Minima of known attention are flatter than the baseline's",
    statement="At equal training error, trace and relative flatness with known attention are half "
    "the baseline's.",
    source=_SOURCE,
    studies=(FLATNESS,),
    criteria=_flat_criteria("known-attention", "known gate / baseline"),
    controls=(
        Control(
            "baseline against baseline",
            "Baselines of different seeds are equally flat.",
            _flat_criteria("baseline", "baseline / baseline"),
        ),
    ),
    how_measured=_FLAT_HOW,
    refuted_by="A ratio above one half.",
    notes=(_MATCH, _CAVEAT),
)

FLAT_LEARNED = Claim(
    id="liu2021.flatness_learned",
    title="Minima of learned self-attention are flatter than an MLP's",
    statement="At equal training error, trace and relative flatness of self-attention are half an "
    "MLP's or less.",
    source=_SOURCE,
    studies=(FLATNESS,),
    criteria=_flat_criteria("self-attention", "self-attention / MLP"),
    controls=(
        Control(
            "known attention",
            "The same question about known attention must be answered yes.",
            _flat_criteria("known-attention", "known gate / baseline"),
            "accept",
        ),
    ),
    how_measured=_FLAT_HOW,
    refuted_by="A ratio that is surely above one half.",
    expected="fails",
    notes=(_MATCH, _CAVEAT),
)

LANDSCAPE = (KNOWN, LEARNED, STATIONARY, FALLS, FLAT_KNOWN, FLAT_LEARNED)
