"""How many samples does attention save? The sweeps behind Liu et al. (2021), first half
(docs/theory.md#b2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from attnlab.complexity import Question, tabulate
from attnlab.stats import CONFIDENCE
from attnlab.studies._samples import WORK
from attnlab.studies._study import Data, Scale, Study, arm_plan

Arms = dict[str, dict[str, Any]]

FEATURES: dict[Scale, tuple[int, ...]] = {"quick": (16, 128), "paper": (16, 32, 64, 128)}
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
# Times the seeds, for known masks and gates: showing that needed samples are flat takes more than
# showing growth.
_MASK_SEEDS, _GATE_SEEDS = {"quick": 4, "paper": 2}, {"quick": 2, "paper": 2}
_FAMILY_SEEDS: dict[Scale, int] = {
    "quick": 4,
    "paper": 16,
}  # a rank agreement's interval is over settings
_WORDS = {"batch_size": 32, "weight_decays": (0.1,)}  # the protocol for teachers on words
_WORD_SIZES: dict[Scale, tuple[int, ...]] = {
    "quick": (64, 128, 256, 512, 1024, 4096),
    "paper": (64, 91, 128, 181, 256, 362, 512, 1024, 2048, 4096),
}
_FAR = 4096
_DEPTHS = (1, 2, 3)
_DEPTH_SEEDS = (
    12  # of learned stacks: with fewer, no share of seeds is known to lie below a quarter
)


def _mask_arm(
    scale: Scale, teacher: str, student: str, p: int, relevant: int = 4, *, growing: bool
) -> dict[str, Any]:
    sizes = (
        [m * p for m in _GROWING[scale]] if growing else [n * relevant // 4 for n in _FLAT[scale]]
    )
    drawn = max(_GROWING[scale]) * p
    return {
        "teacher": teacher,
        "student": student,
        "features": p,
        "relevant": relevant,
        "sizes": tuple(sizes),
        "drawn": drawn,
    }


def _label(*parts: Any) -> str:
    return "/".join(str(part) for part in parts)


def _parts(arms: Data) -> dict[tuple[str, ...], xr.Dataset]:
    return {tuple(label.split("/")): data for label, data in arms.items()}


def _static(scale: Scale, seeds: int):
    """Baseline and known mask at every p; two masks that cannot help; and other numbers of relevant
    features.
    """
    arms: Arms = {}
    counts: dict[str, int] = {}

    def add(student: str, relevant: int, p: int, *, growing: bool, number: int) -> None:
        label = _label(student, relevant, p)
        arms[label] = _mask_arm(scale, "static-mask", student, p, relevant, growing=growing)
        counts[label] = number

    # Runs that share a program (one p) lie apart, so that two processes do not compile the same one
    # at once.
    family = [
        (s, p) for s in _RELEVANT for p in FEATURES["paper"] if s != 4 or p not in FEATURES[scale]
    ]
    for student, growing in (("baseline", True), ("known-attention", False)):
        for p in FEATURES[scale]:
            add(
                student,
                4,
                p,
                growing=growing,
                number=seeds if growing else _MASK_SEEDS[scale] * seeds,
            )
        for s, p in family:
            add(student, s, p, growing=growing, number=min(seeds, _FAMILY_SEEDS[scale]))
    for student in ("vacuous-mask", "wrong-mask"):
        add(student, 4, min(FEATURES[scale]), growing=True, number=seeds)
    return arm_plan(WORK, "static mask", arms, counts)


def _measure_static(arms: Data, confidence: float = CONFIDENCE) -> Data:
    parts = _parts(arms)
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
        "static mask": tabulate(four, Question(), confidence=confidence),
        "mask family": _family(parts, confidence),
    }


def _family(parts: Mapping[tuple[str, ...], xr.Dataset], confidence: float) -> xr.Dataset:
    """Measured ratio and the bound calculators' predictions over settings of p and s, and their
    rank agreement.
    """
    from attnlab.complexity import RankAgreement, SampleRatio, rank_agreement_with, sample_ratio

    settings = [(int(s), int(p)) for student, s, p in parts if student == "known-attention"]
    ratios: list[SampleRatio] = []
    for s, p in settings:
        first, second = (
            parts[name, str(s), str(p)].error for name in ("baseline", "known-attention")
        )
        pair = xr.align(first, second, join="inner", exclude=["size"])
        ratios.append(sample_ratio(*pair, 0.1, confidence=confidence))
    predicted = xr.concat(
        [parts["known-attention", str(s), str(p)].predicted.mean("seed") for s, p in settings],
        dim="setting",
    )
    names = [str(name) for name in predicted.predictor.values]

    def agreement(name: str, shift: int) -> RankAgreement:
        given = predicted.sel(predictor=name).roll(setting=shift).values
        return rank_agreement_with(given, ratios, confidence=confidence)

    found = {name: agreement(name, 0) for name in names}
    moved = {name: agreement(name, 1) for name in names}
    data = xr.Dataset(
        {
            "predicted": (
                ("predictor", "setting"),
                predicted.transpose("predictor", "setting").values,
            ),
            "ratio": ("setting", [one.value for one in ratios]),
            "ratio_low": ("setting", [one.interval.low for one in ratios]),
            "ratio_high": ("setting", [one.interval.high for one in ratios]),
            "ratio_kind": ("setting", [one.kind for one in ratios]),
            "relevant": ("setting", [s for s, _ in settings]),
            "features": ("setting", [p for _, p in settings]),
            "shifted": ("predictor", [moved[name].value for name in names]),
        },
        {"predictor": names, "setting": [f"{s} of {p}" for s, p in settings]},
    )
    ends = {"": "estimate", "_low": "low", "_high": "high"}
    for tail, end in ends.items():
        data[f"agreement{tail}"] = (
            "predictor",
            [getattr(found[name].interval, end) for name in names],
        )
    data["agreement_kind"] = ("predictor", ["exact"] * len(names))
    return data


def _gate(scale: Scale, seeds: int):
    """The gate known, and the baseline, which is far from ε = .1 and is read at .5."""
    arms: Arms = {}
    counts: dict[str, int] = {}
    for student, growing in (("baseline", True), ("known-attention", False)):
        for p in FEATURES[scale]:
            arms[_label(student, p)] = _mask_arm(scale, "gate", student, p, growing=growing)
            counts[_label(student, p)] = seeds if growing else _GATE_SEEDS[scale] * seeds
    return arm_plan(WORK, "gate", arms, counts)


def _measure_gate(arms: Data, confidence: float = CONFIDENCE) -> Data:
    by = {(student, int(p)): data for (student, p), data in _parts(arms).items()}
    return {
        "gate": tabulate(by, Question(), confidence=confidence),
        "gate at 0.5": tabulate(by, Question(0.5), confidence=confidence),
    }


def _moving(scale: Scale, seeds: int):
    """The moving block known; at paper scale the baseline too, which does not get there."""
    arms: Arms = {}
    for student in ("known-attention", "baseline")[: 2 if scale == "paper" else 1]:
        for p in FEATURES[scale]:
            arms[_label(student, p)] = _mask_arm(scale, "moving-block", student, p, growing=True)
    return arm_plan(WORK, "moving block", arms, seeds)


def _measure_moving(arms: Data, confidence: float = CONFIDENCE) -> Data:
    by = {(student, int(p)): data for (student, p), data in _parts(arms).items()}
    return {"moving block": tabulate(by, Question(), confidence=confidence)}


def _word_arm(teacher: str, student: str, sizes: Sequence[int], **more: Any) -> dict[str, Any]:
    return {
        "teacher": teacher,
        "student": student,
        "sizes": tuple(sizes),
        "drawn": _FAR,
        **_WORDS,
        **more,
    }


def _self_attention(scale: Scale, seeds: int):
    """All students of a self-attention teacher, and two of a teacher without attention."""
    sizes = _WORD_SIZES[scale]
    students = ("baseline", "self-attention", "known-weights", "wrong-weights")
    arms = {
        _label("self-attention", student): _word_arm("self-attention", student, sizes)
        for student in students
    }
    arms |= {_label("mlp", student): _word_arm("mlp", student, sizes) for student in students[:2]}
    return arm_plan(WORK, "self-attention", arms, seeds)


def _measure_self_attention(arms: Data, confidence: float = CONFIDENCE) -> Data:
    parts = _parts(arms)
    own, other = (
        {(student, kind): data for (kind, student), data in parts.items() if kind == which}
        for which in ("self-attention", "mlp")
    )
    return {
        "self-attention": tabulate(own, Question(), dim="teacher", confidence=confidence),
        "self-attention at 0.5": tabulate(own, Question(0.5), dim="teacher", confidence=confidence),
        "MLP teacher": tabulate(other, Question(), dim="teacher", confidence=confidence),
    }


def _depth(scale: Scale, seeds: int):
    """Known weights of one, two and three layers; learned ones at the largest size only, where a
    share is asked.
    """
    sizes = _WORD_SIZES[scale][:-1]
    arms, counts = {}, {}
    for depth in _DEPTHS:
        label = _label("known-weights", depth)
        arms[label] = _word_arm("multi-layer", "known-weights", sizes, depth=depth)
        counts[label] = seeds
        label = _label("multi-layer", depth)
        arms[label] = _word_arm("multi-layer", "multi-layer", (_FAR,), depth=depth)
        counts[label] = max(seeds, _DEPTH_SEEDS)
    deepest = _label("wrong-weights", _DEPTHS[-1])
    arms[deepest] = _word_arm("multi-layer", "wrong-weights", sizes, depth=_DEPTHS[-1])
    counts[deepest] = seeds
    return arm_plan(WORK, "depth", arms, counts)


def _measure_depth(arms: Data, confidence: float = CONFIDENCE) -> Data:
    parts = _parts(arms)
    known = {
        ("known-weights", int(d)): data
        for (student, d), data in parts.items()
        if student == "known-weights"
    }
    deepest = f"depth {_DEPTHS[-1]}"
    growth = {(f"depth {d}", "known-weights"): data for (_, d), data in known.items()}
    wrong = parts["wrong-weights", str(_DEPTHS[-1])]
    against_wrong = {
        (deepest, "wrong weights"): wrong,
        ("depth 1", "wrong weights"): known["known-weights", 1],
    }
    learned = {
        ("multi-layer", int(d)): data
        for (student, d), data in parts.items()
        if student == "multi-layer"
    }
    return {
        "depth": tabulate(known, Question(), dim="depth", confidence=confidence),
        "depth growth": tabulate(
            growth | against_wrong, Question(against=deepest), dim="weights", confidence=confidence
        ),
        "learned depth": tabulate(learned, Question(), dim="depth", confidence=confidence),
    }


STATIC_MASK = Study("static mask", _static, _measure_static)
GATE = Study("gate", _gate, _measure_gate)
MOVING_BLOCK = Study("moving block", _moving, _measure_moving)
SELF_ATTENTION = Study("self-attention", _self_attention, _measure_self_attention)
DEPTH = Study("depth", _depth, _measure_depth)
