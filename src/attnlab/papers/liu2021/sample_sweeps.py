"""Grids and declared variables that the claims about needed samples share (docs/theory.md#b2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import Data, Grid, Scale, Source, Sweep, Table, variable
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.curve_sweeps import Curves, best_of

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

FEATURES: dict[Scale, tuple[int, ...]] = {"quick": (16, 32, 128), "paper": (16, 32, 64, 128)}
ENDS: dict[Scale, tuple[int, ...]] = {"quick": (16, 128), "paper": (16, 32, 64, 128)}
SMALLEST, LARGEST = 16, 128  # of the features at either scale
KEPT = (0.75, 0.5)  # shares of the relevant features that an incomplete mask lets through
# Needed samples of these students grow with p, or hardly change with it: sizes in units of p, and
# absolute ones.
_GROWING: dict[Scale, tuple[int, ...]] = {
    "quick": (2, 4, 8, 16, 32),
    "paper": (2, 3, 4, 6, 8, 11, 16, 32),
}
_FLAT: dict[Scale, tuple[int, ...]] = {
    "quick": (5, 10, 16, 26, 64),
    "paper": (5, 7, 10, 14, 20, 28, 40, 64),
}
_INCOMPLETE = (16, 64, 256, 1024, 4096)
_WRONG = (256, 4096)  # enough to see that the level is not reached
_MOST = (
    4096  # samples drawn for students behind a mask: of all p alike, so that they share a program
)
_WIDEN = 3  # times that a grid of weight decays may go on: 0, 0.1, then 0.3, 0.9, 2.7
_RELEVANT = (2, 4, 8)
_DISTRIBUTIONS = ("correlated", "decaying", "heavy-tailed")
# Times the seeds: showing that needed samples are flat takes more than showing growth.
_MASK_SEEDS: dict[str, dict[Scale, int]] = {
    "baseline": {"quick": 3, "paper": 1},
    "known-attention": {"quick": 4, "paper": 2},
}
# A rank agreement's interval is over settings.
_FAMILY_SEEDS: dict[Scale, int] = {"quick": 4, "paper": 8}
WORD_SIZES: dict[Scale, tuple[int, ...]] = {
    "quick": (64, 128, 256, 512, 1024, 4096),
    "paper": (64, 91, 128, 181, 256, 362, 512, 1024, 2048, 4096),
}
MOST_WORDS = 4096  # samples drawn for teachers on words
WIDTHS = (24, 96, 384)  # hidden units of the MLPs of which the best is compared with attention


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
    inputs = variable("distribution of the inputs")
    relevant = variable("s, relevant features")
    features = variable("p, features")
    agreement = variable("rank agreement of predicted and measured ratios (predictor)")
    agreement_low = variable("low end of its interval, which resamples settings")
    agreement_high = variable("high end of its interval")
    agreement_kind = variable("exact")
    normal = variable("rank agreement over masks of independent normal inputs alone (predictor)")
    normal_low = variable("low end of its interval")
    normal_high = variable("high end of its interval")
    normal_kind = variable("exact")
    shifted = variable("rank agreement if each setting gets the prediction of the one before")
    shifted_low = variable("low end of its interval")
    shifted_high = variable("high end of its interval")
    shifted_kind = variable("exact")


class OnAttention(TeacherCurves, label="self-attention"):
    """Students of a self-attention teacher (student, teacher, seed, size); the baseline is the MLP
    of the width that validation chose.
    """

    hidden = variable("width of the MLP that validation chose", optional=True)


class OnAttentionRough(TeacherCurves, label="self-attention at 0.5"):
    """The same, read at the error of a rough fit."""

    hidden = variable("width of the MLP that validation chose", optional=True)


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
    scale: Scale,
    teacher: str,
    student: str,
    p: int,
    relevant: int = 4,
    *,
    growing: bool,
    **more: Any,
) -> dict[str, Any]:
    """A student of a teacher on p numbers; ``growing`` if its sizes are in units of p."""
    sizes, drawn = [n * relevant // 4 for n in _FLAT[scale]], _MOST
    if growing:
        sizes, drawn = [m * p for m in _GROWING[scale]], max(_GROWING[scale]) * p
    return {
        "teacher": teacher,
        "student": student,
        "features": p,
        "relevant": relevant,
        "sizes": tuple(sizes),
        "drawn": drawn,
        "widen": _WIDEN,
        **more,
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
        "widen": 1,  # nothing to widen, but fits of any sizes share one program
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
    """Baseline and known mask at every p; masks that lose relevant features, or have none; other
    numbers of relevant features, and other distributions of the inputs.
    """
    arms: dict[str, dict[str, Any]] = {}
    counts: dict[str, int] = {}

    def add(
        student: str, setting: tuple[str, int, int], number: int, label: str = "", **more: Any
    ) -> None:
        inputs, relevant, p = setting
        name = label_of(label or student, *setting)
        growing = student == "baseline"
        arm = mask_arm(scale, "static-mask", student, p, relevant, growing=growing, inputs=inputs)
        arms[name] = arm | more
        counts[name] = number

    main = [("normal", 4, p) for p in FEATURES[scale]]
    # Runs that share a program (one p) lie apart, so that two processes do not compile the same one
    # at once.
    family = [("normal", s, p) for s in _RELEVANT if s != 4 for p in FEATURES[scale]]
    family += [
        (inputs, s, p)
        for inputs in _DISTRIBUTIONS
        for s in _RELEVANT
        for p in FEATURES[scale]
        if scale == "paper" or (s == 4 and p > SMALLEST)
    ]
    for student, times in _MASK_SEEDS.items():
        for setting in main:
            add(student, setting, times[scale] * seeds)
        for setting in family:
            add(student, setting, min(seeds, _FAMILY_SEEDS[scale]))
    widest = ("normal", 4, LARGEST)
    for kept in KEPT:
        name = incomplete(kept)
        add("known-attention", widest, seeds, name, kept=kept, sizes=_INCOMPLETE)
    for setting in main:
        add("wrong-mask", setting, seeds, sizes=_WRONG)
    return Grid(arms, counts)


def incomplete(kept: float) -> str:
    """What a mask is called that lets a share of the relevant features through."""
    return f"mask of {kept:.0%}".replace("%", " %")


def _measure_static(arms: Data, confidence: float | None = None) -> Data:
    parts = {
        (student, (inputs, int(s), int(p))): data
        for (student, inputs, s, p), data in parts_of(arms).items()
    }
    main = {
        (student, p): data
        for (student, (inputs, s, p)), data in parts.items()
        if (inputs, s) == ("normal", 4)
    }
    return {
        StaticMask.label: tabulated(main, confidence=confidence),
        MaskFamily.label: _family(parts, confidence or al.stats.CONFIDENCE),
    }


Setting = tuple[str, int, int]  # distribution of the inputs, relevant features, features


def _family(parts: Mapping[tuple[str, Setting], xr.Dataset], confidence: float) -> xr.Dataset:
    """Measured ratio and the bound calculators' predictions over settings, and their rank
    agreement: over all of them, and over those of independent normal inputs.
    """
    settings = [setting for student, setting in parts if student == "known-attention"]
    labels = [setting_name(setting) for setting in settings]
    ratios = [_family_ratio(parts, setting, confidence) for setting in settings]
    means = [parts["known-attention", setting].predicted.mean("seed") for setting in settings]
    predicted = al.lab.along(means, "setting", labels).transpose("predictor", "setting")
    names = predicted.predictor.values
    normal = [k for k, (inputs, _, _) in enumerate(settings) if inputs == "normal"]

    def agreement(name: str, chosen: Sequence[int], shift: int = 0) -> RankAgreement:
        given = predicted.sel(predictor=name).values[list(chosen)]
        given = np.roll(given, shift)
        return al.complexity.rank_agreement_with(
            given, [ratios[k] for k in chosen], confidence=confidence
        )

    every = range(len(settings))
    by_setting = {
        MaskFamily.ratio: [one.value for one in ratios],
        MaskFamily.ratio_low: [one.interval.low for one in ratios],
        MaskFamily.ratio_high: [one.interval.high for one in ratios],
        MaskFamily.ratio_kind: [one.kind for one in ratios],
        MaskFamily.inputs: [inputs for inputs, _, _ in settings],
        MaskFamily.relevant: [s for _, s, _ in settings],
        MaskFamily.features: [p for _, _, p in settings],
    }
    by_predictor = {
        name + end: values
        for name, found in (
            (MaskFamily.agreement, [agreement(name, every) for name in names]),
            (MaskFamily.normal, [agreement(name, normal) for name in names]),
            (MaskFamily.shifted, [agreement(name, every, 1) for name in names]),
        )
        for end, values in (
            ("", [one.interval.estimate for one in found]),
            ("_low", [one.interval.low for one in found]),
            ("_high", [one.interval.high for one in found]),
            ("_kind", ["exact"] * len(names)),
        )
    }
    return al.lab.dataset(
        {
            MaskFamily.predicted: predicted,
            **{k: al.lab.labelled(v, setting=labels) for k, v in by_setting.items()},
            **{k: al.lab.labelled(v, predictor=names) for k, v in by_predictor.items()},
        }
    )


def setting_name(setting: Setting) -> str:
    """A setting in words."""
    inputs, relevant, features = setting
    return f"{relevant} of {features}" + ("" if inputs == "normal" else f", {inputs}")


def _family_ratio(
    parts: Mapping[tuple[str, Setting], xr.Dataset], setting: Setting, confidence: float
) -> SampleRatio:
    """Baseline over known mask in one setting, from the seeds that both have."""
    baseline, known = (parts[name, setting].error for name in ("baseline", "known-attention"))
    seeds = [seed for seed in baseline.seed.values if seed in known.seed.values]
    return al.complexity.sample_ratio(
        baseline.sel(seed=seeds), known.sel(seed=seeds), LEVEL, confidence=confidence
    )


def _attention_grid(scale: Scale, seeds: int) -> Grid:
    """All students of a self-attention teacher, the MLP in several widths; and an MLP and
    self-attention on a teacher without attention.
    """
    sizes = WORD_SIZES[scale]
    arms = {
        label_of("self-attention", mlp(hidden)): word_arm(
            "self-attention", "baseline", sizes, hidden=hidden
        )
        for hidden in WIDTHS
    }
    for student in ("self-attention", "known-weights", "wrong-weights"):
        arms[label_of("self-attention", student)] = word_arm("self-attention", student, sizes)
    for student in ("baseline", "self-attention"):
        arms[label_of("mlp", student)] = word_arm("mlp", student, sizes)
    return Grid(arms, seeds)


def mlp(hidden: int) -> str:
    """What an MLP of so many hidden units is called."""
    return f"MLP of {hidden}"


def _measure_attention(arms: Data, confidence: float | None = None) -> Data:
    own: dict[tuple[str, Any], xr.Dataset] = {}
    other: dict[tuple[str, Any], xr.Dataset] = {}
    parts = parts_of(arms)
    own["baseline", "self-attention"] = best_of(
        [parts["self-attention", mlp(hidden)] for hidden in WIDTHS], "hidden", WIDTHS
    )
    for (teacher, student), data in parts.items():
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
