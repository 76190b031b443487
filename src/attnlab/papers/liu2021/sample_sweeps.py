"""Grids and declared variables that the claims about needed samples share (docs/theory.md#b2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attnlab as al
from attnlab.lab import Data, Grid, Scale, Source, Sweep, Table, variable
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.curve_sweeps import Curves

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.complexity import RankAgreement, SampleRatio

WORK = "attnlab.papers.liu2021.curve_runs:fit_samples"
SOURCE = Source("stated", PAPER, "attention needs fewer samples")
HOW = (
    "n_ε is the number of training samples at which the seed-median error E(ŷ − g)²/Var g on 2000 "
    "noiseless points first crosses ε, interpolated in log n; its interval, and that of ratios "
    "(paired seeds) and exponents, is a bootstrap over seeds. Every student gets the same tuning: "
    "weight decays chosen on 500 validation points that are not counted."
)
LEVEL = 0.1  # the error whose needed samples are compared
ROUGH = 0.5  # the error of a rough fit, where some student does not reach LEVEL

FEATURES: dict[Scale, tuple[int, ...]] = {"quick": (16, 128), "paper": (16, 32, 64, 128)}
SMALLEST, LARGEST = 16, 128  # of the features at either scale
# Needed samples of these students grow with p, or hardly change with it: sizes in units of p, and
# absolute ones.
_GROWING: dict[Scale, tuple[int, ...]] = {
    "quick": (4, 8, 11, 16, 32),
    "paper": (2, 4, 6, 8, 11, 16, 32),
}
_FLAT: dict[Scale, tuple[int, ...]] = {
    "quick": (8, 16, 24, 32, 64),
    "paper": (8, 12, 16, 24, 32, 48, 96),
}
_RELEVANT = (2, 4, 8)
# Times the seeds: showing that needed samples are flat takes more than showing growth.
_MASK_SEEDS: dict[Scale, int] = {"quick": 4, "paper": 2}
# A rank agreement's interval is over settings.
_FAMILY_SEEDS: dict[Scale, int] = {"quick": 4, "paper": 16}
WORD_SIZES: dict[Scale, tuple[int, ...]] = {
    "quick": (64, 128, 256, 512, 1024, 4096),
    "paper": (64, 91, 128, 181, 256, 362, 512, 1024, 2048, 4096),
}
MOST_WORDS = 4096  # samples drawn for teachers on words


class TeacherCurves(Curves):
    """Learning curves on a teacher, whose known attention has candidate predictors of the ratio."""

    predicted = variable("ratio of a quantity of raw over attended inputs", optional=True)


class StaticMask(TeacherCurves, label="static mask"):
    """Students of a static mask on 4 of p features (student, features, seed, size)."""


class MaskFamily(Table, label="mask family"):
    """Known mask against baseline over settings of s relevant of p features (predictor, setting)."""

    predicted = variable("ratio of a predictor, mean over seeds (predictor, setting)")
    ratio = variable("measured ratio of needed samples")
    ratio_low = variable("low end of its interval")
    ratio_high = variable("high end of its interval")
    ratio_kind = variable("exact, or on which side it is a bound")
    relevant = variable("s, relevant features")
    features = variable("p, features")
    agreement = variable("rank agreement of predicted and measured ratios (predictor)")
    agreement_low = variable("low end of its interval, which resamples settings")
    agreement_high = variable("high end of its interval")
    agreement_kind = variable("exact")
    shifted = variable("rank agreement if each setting gets the prediction of the one before")


class OnAttention(TeacherCurves, label="self-attention"):
    """Students of a self-attention teacher (student, teacher, seed, size)."""


class OnAttentionRough(TeacherCurves, label="self-attention at 0.5"):
    """The same, read at the error of a rough fit."""


class OnMlp(TeacherCurves, label="MLP teacher"):
    """Students of a teacher without attention."""


def label_of(*parts: Any) -> str:
    """The label of an arm."""
    return "/".join(str(part) for part in parts)


def parts_of(arms: Data) -> dict[tuple[str, ...], xr.Dataset]:
    """Arms by the parts of their labels."""
    return {tuple(label.split("/")): data for label, data in arms.items()}


def by_features(arms: Data) -> dict[tuple[str, Any], xr.Dataset]:
    """Arms labelled student/p, by student and p."""
    return {(student, int(p)): data for (student, p), data in parts_of(arms).items()}


def mask_arm(
    scale: Scale, teacher: str, student: str, p: int, relevant: int = 4, *, growing: bool
) -> dict[str, Any]:
    """A student of a teacher on p numbers; ``growing`` if its sizes are in units of p."""
    sizes = [n * relevant // 4 for n in _FLAT[scale]]
    if growing:
        sizes = [m * p for m in _GROWING[scale]]
    return {
        "teacher": teacher,
        "student": student,
        "features": p,
        "relevant": relevant,
        "sizes": tuple(sizes),
        "drawn": max(_GROWING[scale]) * p,
    }


def word_arm(teacher: str, student: str, sizes: Sequence[int], **more: Any) -> dict[str, Any]:
    """A student of a teacher on words, by their protocol."""
    return {
        "teacher": teacher,
        "student": student,
        "sizes": tuple(sizes),
        "drawn": MOST_WORDS,
        "batch_size": 32,
        "weight_decays": (0.1,),
        **more,
    }


def tabulated(
    arms: Mapping[tuple[str, Any], xr.Dataset],
    level: float = LEVEL,
    *,
    dim: str = "features",
    against: str = "baseline",
    confidence: float | None = None,
) -> xr.Dataset:
    """`attnlab.complexity.tabulate` at a level of the error."""
    question = al.complexity.Question(level, against=against)
    confidence = confidence or al.stats.CONFIDENCE
    return al.complexity.tabulate(arms, question, dim=dim, confidence=confidence)


def _static_grid(scale: Scale, seeds: int) -> Grid:
    """Baseline and known mask at every p; two masks that cannot help; and other numbers of relevant
    features.
    """
    arms: dict[str, dict[str, Any]] = {}
    counts: dict[str, int] = {}

    def add(student: str, relevant: int, p: int, *, growing: bool, number: int) -> None:
        label = label_of(student, relevant, p)
        arms[label] = mask_arm(scale, "static-mask", student, p, relevant, growing=growing)
        counts[label] = number

    # Runs that share a program (one p) lie apart, so that two processes do not compile the same one
    # at once.
    family = [
        (s, p) for s in _RELEVANT for p in FEATURES["paper"] if s != 4 or p not in FEATURES[scale]
    ]
    for student, growing in (("baseline", True), ("known-attention", False)):
        number = seeds if growing else _MASK_SEEDS[scale] * seeds
        for p in FEATURES[scale]:
            add(student, 4, p, growing=growing, number=number)
        for s, p in family:
            add(student, s, p, growing=growing, number=min(seeds, _FAMILY_SEEDS[scale]))
    for student in ("vacuous-mask", "wrong-mask"):
        add(student, 4, SMALLEST, growing=True, number=seeds)
    return Grid(arms, counts)


def _measure_static(arms: Data, confidence: float | None = None) -> Data:
    parts = parts_of(arms)
    asked = {
        p: data.sizes["seed"]
        for (student, s, p), data in parts.items()
        if (student, s) == ("baseline", "4")
    }
    full = [p for p, count in asked.items() if count == max(asked.values())]
    four = {
        (student, int(p)): data for (student, s, p), data in parts.items() if s == "4" and p in full
    }
    return {
        StaticMask.label: tabulated(four, confidence=confidence),
        MaskFamily.label: _family(parts, confidence or al.stats.CONFIDENCE),
    }


def _family(parts: Mapping[tuple[str, ...], xr.Dataset], confidence: float) -> xr.Dataset:
    """Measured ratio and the bound calculators' predictions over settings of p and s, and their
    rank agreement.
    """
    settings = [(int(s), int(p)) for student, s, p in parts if student == "known-attention"]
    labels = [f"{s} of {p}" for s, p in settings]
    ratios = [_family_ratio(parts, s, p, confidence) for s, p in settings]
    means = [parts["known-attention", str(s), str(p)].predicted.mean("seed") for s, p in settings]
    predicted = al.lab.along(means, "setting", labels).transpose("predictor", "setting")
    names = predicted.predictor.values

    def agreement(name: str, shift: int) -> RankAgreement:
        given = predicted.sel(predictor=name).roll(setting=shift).values
        return al.complexity.rank_agreement_with(given, ratios, confidence=confidence)

    found = [agreement(name, 0) for name in names]
    by_setting = {
        MaskFamily.ratio: [one.value for one in ratios],
        MaskFamily.ratio_low: [one.interval.low for one in ratios],
        MaskFamily.ratio_high: [one.interval.high for one in ratios],
        MaskFamily.ratio_kind: [one.kind for one in ratios],
        MaskFamily.relevant: [s for s, _ in settings],
        MaskFamily.features: [p for _, p in settings],
    }
    by_predictor = {
        MaskFamily.agreement: [one.interval.estimate for one in found],
        MaskFamily.agreement_low: [one.interval.low for one in found],
        MaskFamily.agreement_high: [one.interval.high for one in found],
        MaskFamily.agreement_kind: ["exact"] * len(names),
        MaskFamily.shifted: [agreement(name, 1).value for name in names],
    }
    return al.lab.dataset(
        {
            MaskFamily.predicted: predicted,
            **{k: al.lab.labelled(v, setting=labels) for k, v in by_setting.items()},
            **{k: al.lab.labelled(v, predictor=names) for k, v in by_predictor.items()},
        }
    )


def _family_ratio(
    parts: Mapping[tuple[str, ...], xr.Dataset], s: int, p: int, confidence: float
) -> SampleRatio:
    """Baseline over known mask in one setting, from the seeds that both have."""
    baseline, known = (
        parts[name, str(s), str(p)].error for name in ("baseline", "known-attention")
    )
    seeds = [seed for seed in baseline.seed.values if seed in known.seed.values]
    return al.complexity.sample_ratio(
        baseline.sel(seed=seeds), known.sel(seed=seeds), LEVEL, confidence=confidence
    )


def _attention_grid(scale: Scale, seeds: int) -> Grid:
    """All students of a self-attention teacher, and two of a teacher without attention."""
    students = ("baseline", "self-attention", "known-weights", "wrong-weights")
    pairs = [("self-attention", student) for student in students]
    pairs += [("mlp", student) for student in students[:2]]
    sizes = WORD_SIZES[scale]
    arms = {label_of(*pair): word_arm(*pair, sizes) for pair in pairs}
    return Grid(arms, seeds)


def _measure_attention(arms: Data, confidence: float | None = None) -> Data:
    own: dict[tuple[str, Any], xr.Dataset] = {}
    other: dict[tuple[str, Any], xr.Dataset] = {}
    for (teacher, student), data in parts_of(arms).items():
        (own if teacher == "self-attention" else other)[student, teacher] = data
    return {
        OnAttention.label: tabulated(own, dim="teacher", confidence=confidence),
        OnAttentionRough.label: tabulated(own, ROUGH, dim="teacher", confidence=confidence),
        OnMlp.label: tabulated(other, dim="teacher", confidence=confidence),
    }


static_mask = Sweep(
    name="static mask",
    work=WORK,
    grid=_static_grid,
    measure=_measure_static,
    tables=(StaticMask, MaskFamily),
)
self_attention = Sweep(
    name="self-attention",
    work=WORK,
    grid=_attention_grid,
    measure=_measure_attention,
    tables=(OnAttention, OnAttentionRough, OnMlp),
)
