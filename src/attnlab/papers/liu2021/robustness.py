"""Known attention under other inputs and other activations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attnlab as al
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
    given_interval,
    share,
    variable,
)
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.curve_sweeps import end, tuning_cautions
from attnlab.papers.liu2021.point_settings import GOOD
from attnlab.papers.liu2021.point_sweeps import WORK as FIND_POINTS
from attnlab.papers.liu2021.point_sweeps import share_good
from attnlab.papers.liu2021.sample_sweeps import (
    HOW,
    LEVEL,
    WORK,
    TeacherCurves,
    label_of,
    mask_arm,
    parts_of,
    tabulated,
)
from attnlab.report import DotRow, Figure, dots_figure, learning_curves, ratio_rows

if TYPE_CHECKING:
    import xarray as xr

_USUAL = "normal, τ = 4"
_CASES: dict[str, dict[str, Any]] = {
    _USUAL: {},
    "Rademacher": {"inputs": "rademacher"},
    "uniform": {"inputs": "uniform"},
    "heavy-tailed": {"inputs": "heavy-tailed"},
    "τ = 1": {"sharpness": 1.0},
    "τ = 16": {"sharpness": 16.0},
    "ReLU": {"sharpness": 0.0},
}
_OTHERS = [case for case in _CASES if case != _USUAL]
_SMOOTH = [case for case in _CASES if case != "ReLU"]  # at kinks nothing can be certified
_FEATURES = 32
_STUDENTS = ("baseline", "known-attention")
_CONTROL = "Rademacher"
_WRONG_SIZES = (64, 256, 1024)
_LEAST = 5.0  # times fewer samples than the baseline
_SAVED = given_interval >= _LEAST
_GOOD = share >= 0.75
_PROBLEMS: dict[Scale, int] = {"quick": 2, "paper": 4}  # times the seeds
_STARTS: dict[Scale, int] = {"quick": 3, "paper": 9}  # one, or three, at each of three scales
_SAMPLES = 128


class RobustMasks(TeacherCurves, label="robust masks"):
    """Baseline and known static mask, p = 32, in every case (student, case, seed, size)."""


class RobustMinima(Table, label="robust minima"):
    """Minima of known gate and baseline in every case (model, case, seed)."""

    certified = variable("share of starts that end at a certified minimum or saddle")
    good = variable("share of good ones among a problem's certified minima")
    lowest = variable("smallest error of a problem's certified minima")


def _masks_grid(scale: Scale, seeds: int) -> Grid:
    arms = {
        label_of(student, case): mask_arm(
            scale, "static-mask", student, _FEATURES, growing=student == "baseline", **settings
        )
        for student in _STUDENTS
        for case, settings in _CASES.items()
    }
    wrong = mask_arm(
        scale, "static-mask", "wrong-mask", _FEATURES, growing=False, **_CASES[_CONTROL]
    )
    arms[label_of("wrong-mask", _CONTROL)] = wrong | {"sizes": _WRONG_SIZES}
    return Grid(arms, seeds)


def _measure_masks(arms: Data, confidence: float | None = None) -> Data:
    by = {(student, case): data for (student, case), data in parts_of(arms).items()}
    return {RobustMasks.label: tabulated(by, dim="case", confidence=confidence)}


def _minima_grid(scale: Scale, seeds: int) -> Grid:
    arms = {
        label_of(model, case): {
            "model": model,
            "samples": _SAMPLES,
            "starts": _STARTS[scale],
            **settings,
        }
        for model in ("known-attention", "baseline")
        for case, settings in _CASES.items()
        if case in (_SMOOTH if model == "known-attention" else (_USUAL,))
    }
    return Grid(arms, _PROBLEMS[scale] * seeds)


def _measure_minima(arms: Data) -> Data:
    rows: dict[str, dict[str, xr.Dataset]] = {}
    for (model, case), points in parts_of(arms).items():
        minimum = points.kind == "minimum"
        found: dict[str, Any] = {
            RobustMinima.certified: points.kind.isin(["minimum", "saddle"]).mean("start"),
            RobustMinima.good: share_good(points, minimum),
            RobustMinima.lowest: points.error.where(minimum).min("start"),
        }
        rows.setdefault(model, {})[case] = al.lab.dataset(found)
    parts = [al.lab.side_by_side(list(row.values()), "case", row) for row in rows.values()]
    return {RobustMinima.label: al.lab.side_by_side(parts, "model", rows)}


masks = Sweep("robust masks", WORK, _masks_grid, _measure_masks, (RobustMasks,))
minima = Sweep("robust minima", FIND_POINTS, _minima_grid, _measure_minima, (RobustMinima,))


def figures(data: Data) -> list[Figure]:
    """Samples saved and good minima in every case, and the learning curves."""
    return [_saved(data), _minima(data), _curves(data)]


def _saved(data: Data) -> Figure:
    table = RobustMasks.of(data)
    known = table.sel(student="known-attention")
    rows = {case: known.sel(case=case) for case in _CASES}
    rows["control: wrong mask, Rademacher"] = table.sel(student="wrong-mask", case=_CONTROL)
    return ratio_rows(
        rows,
        id="robust_ratio",
        title=f"Samples saved by knowing the mask, p = {_FEATURES}",
        x_label="ratio of needed samples",
        lines={"": 1.0, f"{_LEAST:g}": _LEAST},
        caption=f"Baseline over known mask at ε = {LEVEL:g}. Bars: 95 % intervals over paired "
        "seeds. Where no activation is named it is the softplus with τ = 4, where no inputs are "
        "named they are normal.",
    )


def _minima(data: Data) -> Figure:
    table = RobustMinima.of(data)
    rows = [
        DotRow(case, table[RobustMinima.lowest].sel(model="known-attention", case=case), GOOD)
        for case in _SMOOTH
    ]
    control = table[RobustMinima.lowest].sel(model="baseline", case=_USUAL)
    rows.append(DotRow(f"control: baseline, {_USUAL}", control, GOOD))
    return dots_figure(
        rows,
        id="robust_minima",
        title="The best certified minimum of each problem, known gate",
        x_label="error, E(ŷ − g)² / Var g",
        caption=f"One dot per problem that has a certified minimum; on the shaded side it is at "
        f"most {GOOD:g}.",
    )


def _curves(data: Data) -> Figure:
    table = RobustMasks.of(data)
    return learning_curves(
        table.sel(student=list(_STUDENTS)),
        id="robust_curves",
        title="Learning curves under other inputs and activations",
    )


_SET = Provenance("after", "2026-11-19", "seeds 0 to 7")

claim = Claim(
    id="liu2021.robustness",
    rank=11,
    title="Known attention under other inputs and other activations",
    statement="With inputs that are ±1, uniform or heavy-tailed, and with the softplus from τ = 1 to "
    f"ReLU, a known mask on 4 of {_FEATURES} features needs at least five times fewer samples than "
    "the baseline; with all of them but ReLU most certified minima of a known gate are good.",
    why="A mask removes irrelevant features whatever their distribution, because it multiplies "
    "them by zero; nothing in that needs normal inputs, or one activation. What changes is how "
    "hard the rest of the task is, for known attention and for the baseline.",
    finding={
        "holds": "Known attention saves samples under other inputs and activations, too",
        "fails": "Known attention does not save as much under all inputs and activations",
        "inconclusive": "Whether known attention saves under other inputs and activations is undecided",
        "reported": "How far the savings of known attention reach: other inputs, other activations",
    },
    source=Source("stated", PAPER, "sub-Gaussian inputs, softplus that tends to ReLU"),
    provenance=_SET,
    table=True,
    sweeps=(masks, minima),
    criteria=(
        *(
            Criterion(
                f"samples saved, {case} (ratio)",
                end(RobustMasks, RobustMasks.ratio, student="known-attention", case=case),
                _SAVED,
            )
            for case in _OTHERS
        ),
        *(
            Criterion(
                f"share of good minima, {case}",
                RobustMinima.good.at(model="known-attention", case=case),
                _GOOD,
            )
            for case in _OTHERS
            if case in _SMOOTH
        ),
    ),
    controls=(
        Control(
            "wrong mask",
            "A mask of as many other features saves nothing.",
            (
                Criterion(
                    f"samples saved, wrong mask, {_CONTROL} (ratio)",
                    end(RobustMasks, RobustMasks.ratio, student="wrong-mask", case=_CONTROL),
                    _SAVED,
                ),
            ),
        ),
        Control(
            "baseline",
            "Without attention most minima are not good.",
            (
                Criterion(
                    f"share of good minima, baseline, {_USUAL}",
                    RobustMinima.good.at(model="baseline", case=_USUAL),
                    _GOOD,
                ),
            ),
        ),
    ),
    how_measured=f"{HOW} p = {_FEATURES}. Minima: a known gate on 2 of 8 features, "
    f"{_SAMPLES} samples, l2 = 0.001, certified from starts at three scales; good is an error of at "
    f"most {GOOD:g}.",
    refuted_by="A case in which the ratio, or the share, is surely below its bound.",
    notes=(
        "Seeds from 1000 on, times fewer samples: 17 [11, 21] with ±1, 11 [8.9, 16] uniform, 12 [5.9, 16] "
        "heavy-tailed, 17 [11, 27] with τ = 1, 17 [13, 24] with τ = 16, 19 [11, 27] with ReLU; every "
        "certified minimum of the gate is good in 16 of 16 problems of each case.",
        "The baseline's minima under Rademacher inputs were the control at first, and no control: 0.85 "
        "[0.59, 0.98] of them are good, since 8 numbers ±1 are only 256 inputs. The control became "
        "the baseline under normal inputs after that was seen.",
        "Student's t with 5 degrees of freedom is not sub-Gaussian: this case lies beyond the "
        "paper's assumption.",
        "ReLU is the limit of the paper's softplus. Its loss has kinks, at which a minimum has no "
        "gradient and no Hessian: nothing is certified there, and its minima are not judged.",
    ),
    cautions=tuning_cautions({"": RobustMasks}),
    figures=figures,
)
