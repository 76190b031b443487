"""Needed samples, ratios and exponents of many learning curves, in one labelled data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity._curves import Statistic
from attnlab.complexity._exponent import Exponent, exponent
from attnlab.complexity._extrapolate import extrapolate
from attnlab.complexity._needed import NeededSamples, needed_samples
from attnlab.complexity._ratio import SampleRatio, sample_ratio
from attnlab.stats import CONFIDENCE

# A fit has settled if its loss fell late by less than 5 %, or by less than 0.001.
RELATIVE_FALL, ABSOLUTE_FALL = 0.05, 0.001
_ABSENT = (np.nan, np.nan, np.nan, "not run", 0, 0)


@dataclass(frozen=True)
class Question:
    """The question to learning curves: where ``score`` meets ``level``, and against which student.

    Regression curves use the seed median of a falling error, accuracy curves the seed mean of a
    rising score.
    """

    level: float = 0.1
    score: str = "error"
    falling: bool = True
    statistic: Statistic = "median"
    against: str = "baseline"

    @property
    def how(self) -> dict[str, Any]:
        """The options that all measurements of sample complexity share."""
        return {"falling": self.falling, "statistic": self.statistic}


def tabulate(
    arms: Mapping[tuple[str, Any], xr.Dataset],
    question: Question,
    *,
    dim: str = "features",
    further: bool = False,
    confidence: float = CONFIDENCE,
) -> xr.Dataset:
    """All answers on students in several settings.

    ``arms`` are data sets (seed, size) by student and setting; ``confidence`` is that of the
    intervals. Returns, with dimensions (student, ``dim``) and more:

    - the variables of the arms: the score, ``settling``, the chosen tuning, …, (…, seed, size);
    - ``needed`` with ``needed_low``, ``needed_high`` and ``needed_kind`` (crossed, not reached,
      already met), ``needed_seeds`` and ``needed_asked`` (seeds used, and seeds requested),
      ``needed_own`` of each seed, and ``reached``, the share of seeds that reach the level by
      themselves;
    - ``ratio`` of the student ``question.against`` to each, likewise, with its ``verdict`` and the
      sentence ``said``;
    - ``exponent`` of the needed samples in ``dim`` (student), if ``dim`` is numeric and has at least
      two values;
    - ``unsettled``: the share of chosen fits whose loss was still falling;
    - if ``further``, ``extrapolated`` with ``_low`` and ``_high``: the samples that a power law
      predicts for the level, and the sentence ``extrapolated_said`` on its back-test, or on why
      there is none.
    """
    students = list(dict.fromkeys(student for student, _ in arms))
    settings = list(dict.fromkeys(setting for _, setting in arms))
    table = _stacked(arms, students, settings, dim)
    cells = {
        pair: _cell(arms, pair, question, confidence)
        for pair in ((s, v) for s in students for v in settings)
    }
    shape = (len(students), len(settings))

    def column(read: Any) -> tuple[tuple[str, str], np.ndarray]:
        return ("student", dim), np.array([read(cell) for cell in cells.values()]).reshape(shape)

    for place, name in enumerate(("", "_low", "_high", "_kind", "_seeds", "_asked")):
        table[f"needed{name}"] = column(lambda cell, k=place: _numbers(cell[0], cell[2])[k])
        table[f"ratio{name}"] = column(lambda cell, k=place: _numbers(cell[1], cell[2])[k])
    seeds = table["seed"].values
    for name, found in (
        ("needed_own", [needed for needed, _, _ in cells.values()]),
        ("ratio_own", [ratio for _, ratio, _ in cells.values()]),
    ):
        own = np.array([_own(one, seeds) for one in found]).reshape(*shape, -1)
        table[name] = (("student", dim, "seed"), own)
    table["reached"] = column(lambda cell: np.nan if cell[0] is None else cell[0].share.estimate)
    table["verdict"] = column(lambda cell: "" if cell[1] is None else cell[1].verdict)
    table["said"] = column(lambda cell: "" if cell[1] is None else str(cell[1]))
    table["needed_said"] = column(lambda cell: "" if cell[0] is None else str(cell[0]))
    if len(settings) > 1 and all(isinstance(value, int | float) for value in settings):
        table = table.assign(_exponents(arms, table[question.score], question, dim, confidence))
    if further:
        found = {pair: _further(arms.get(pair), question) for pair in cells}
        for place, name in enumerate(
            ("extrapolated", "extrapolated_low", "extrapolated_high", "extrapolated_said")
        ):
            values = np.array([one[place] for one in found.values()]).reshape(shape)
            table[name] = ("student", dim), values
    if "settling" in table:
        table["unsettled"] = _unsettled(table)
    table.attrs |= {
        "level": question.level,
        "score": question.score,
        "against": question.against,
        "dim": dim,
        "falling": int(question.falling),
        "statistic": question.statistic,
    }
    return table


def _stacked(
    arms: Mapping[tuple[str, Any], xr.Dataset],
    students: Sequence[str],
    settings: Sequence[Any],
    dim: str,
) -> xr.Dataset:
    """All arms along (student, dim); sizes and seeds that an arm lacks are nan."""
    rows = []
    for student in students:
        row = [arms.get((student, value), xr.Dataset()) for value in settings]
        rows.append(
            xr.concat(
                row, dim=_axis(dim, settings), join="outer", data_vars="all", coords="minimal"
            )
        )
    table = xr.concat(
        rows, dim=_axis("student", students), join="outer", data_vars="all", coords="minimal"
    )
    return cast(xr.Dataset, table)


def _axis(name: str, labels: Sequence[Any]) -> xr.DataArray:
    return xr.DataArray(np.asarray(list(labels)), dims=name, name=name)


def _cell(
    arms: Mapping[tuple[str, Any], xr.Dataset],
    pair: tuple[str, Any],
    question: Question,
    confidence: float,
) -> tuple[NeededSamples | None, SampleRatio | None, int]:
    """Needed samples and ratio of one arm, and the number of seeds requested."""
    if pair not in arms:
        return None, None, 0
    scores, asked = _scores(arms[pair], question.score), arms[pair].sizes["seed"]
    needed = needed_samples(scores, question.level, confidence=confidence, **question.how)
    other = (question.against, pair[1])
    if pair[0] == question.against or other not in arms:
        return needed, None, asked
    first, second = xr.align(
        _scores(arms[other], question.score), scores, join="inner", exclude=["size"]
    )
    if first.sizes["seed"] == 0:
        raise AttnlabError(
            f"{pair[0]!r} and {question.against!r} share no seed at {pair[1]}: expected common "
            "seeds to compare them"
        )
    both = min(asked, arms[other].sizes["seed"])
    return (
        needed,
        sample_ratio(first, second, question.level, confidence=confidence, **question.how),
        both,
    )


def _further(arm: xr.Dataset | None, question: Question) -> tuple[float, float, float, str]:

    if arm is None:
        return np.nan, np.nan, np.nan, ""
    found = extrapolate(_scores(arm, question.score), level=question.level, **question.how)
    return found.value, found.interval.low, found.interval.high, str(found)


def _scores(arm: xr.Dataset, name: str) -> xr.DataArray:
    """The scores of one arm, without seeds that did not run."""
    return arm[name].dropna("seed", how="all")


def _numbers(
    found: NeededSamples | SampleRatio | None, asked: int
) -> tuple[float, float, float, str, int, int]:
    """Value, ends of the interval, kind, seeds used, and seeds requested."""
    if found is None:
        return _ABSENT
    kind = getattr(found, "outcome", None) or getattr(found, "kind", "")
    return (
        found.value,
        found.interval.low,
        found.interval.high,
        str(kind),
        found.per_seed.size,
        asked,
    )


def _own(found: NeededSamples | SampleRatio | Exponent | None, seeds: np.ndarray) -> np.ndarray:
    """The value for each seed; nan where there is none."""
    if found is None:
        return np.full(len(seeds), np.nan)
    return found.per_seed.reindex(seed=seeds).values


def _exponents(
    arms: Mapping[tuple[str, Any], xr.Dataset],
    scores: xr.DataArray,
    question: Question,
    dim: str,
    confidence: float,
) -> dict[str, Any]:

    found, own = [], []
    for k, student in enumerate(scores["student"].values.tolist()):
        one = scores.isel(student=k, drop=True).dropna("seed", how="all").dropna(dim, how="all")
        if one.sizes[dim] < 2:
            found.append(_ABSENT)
            own.append(_own(None, scores["seed"].values))
            continue
        fit = exponent(one, question.level, dim=dim, confidence=confidence, **question.how)
        asked = max(data.sizes["seed"] for (name, _), data in arms.items() if name == student)
        found.append(
            (fit.value, fit.interval.low, fit.interval.high, fit.kind, one.sizes["seed"], asked)
        )
        own.append(_own(fit, scores["seed"].values))
    names = tuple(f"exponent{end}" for end in ("", "_low", "_high", "_kind", "_seeds", "_asked"))
    table = {
        name: ("student", np.array(values))
        for name, values in zip(names, zip(*found, strict=True), strict=True)
    }
    return {**table, "exponent_own": (("student", "seed"), np.array(own))}


def still_falling(table: xr.Dataset) -> xr.DataArray:
    """Which fits had not settled: their loss fell late by more than 5 % and by more than 0.001, or
    is not finite.
    """
    rest = 1 - table.settling
    fall = table.train_loss * table.settling / rest.where(rest > 0)
    falling = (table.settling > RELATIVE_FALL) & (fall > ABSOLUTE_FALL)
    return falling | ~np.isfinite(table.train_loss)


def _unsettled(table: xr.Dataset) -> xr.DataArray:
    """Of the fits that ran, the share that had not settled."""
    ran = table.valid_loss.notnull() | table.train_loss.notnull()
    return (still_falling(table) & ran).sum(["seed", "size"]) / ran.sum(["seed", "size"])


def end_values(table: xr.Dataset, name: str, **where: Any) -> xr.DataArray:
    """Estimate and interval of ``name`` at one place, dim ``end``: for a criterion ``"interval"``."""
    at = table.sel(**where)
    values = [float(at[f"{name}{end}"]) for end in ("", "_low", "_high")]
    found = xr.DataArray(values, dims="end", coords={"end": ["estimate", "low", "high"]})
    attrs: dict[str, Any] = {"kind": str(at[f"{name}_kind"].values)}
    for field in ("seeds", "asked"):
        stored = f"{name}_{field}"
        attrs[field] = int(at[stored]) if stored in at else int(table.sizes.get("seed", 0))
    if f"{name}_own" in at:
        attrs["by_seed"] = dict(
            zip(at["seed"].values.tolist(), at[f"{name}_own"].values.tolist(), strict=True)
        )
    return found.assign_attrs(attrs)


def choices(table: xr.Dataset, name: str) -> dict[float, int]:
    """How often each value of ``step_size`` or ``weight_decay`` was chosen."""
    values = table[name].values
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))
