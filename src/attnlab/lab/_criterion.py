"""What a claim compares: a measured quantity with a threshold, in a way that the threshold names.

>>> (every_run <= 0.004).words
'every run ≤ 0.004'
>>> mean.between(0.9, 1.1).words
'mean, with an interval, in 0.9 … 1.1'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab._source import Provenance, Source
from attnlab.lab._tables import Data

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.stats import Interval, Location

Kind = Literal["every run", "bound", "estimate", "share", "interval"]
Relation = Literal["<=", ">=", "in"]
Verdict = Literal["holds", "fails", "inconclusive", "reported", "not run"]
Measure = Callable[[Data], "xr.DataArray"]

_BOUNDS: dict[str, Callable[..., Any]] = {
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "median": np.median,
    "p90": lambda values: np.percentile(values, 90),
    "p95": lambda values: np.percentile(values, 95),
}
ON_AVERAGE = "holds on average"


@dataclass(frozen=True)
class Requirement:
    """A statistic on one side of a threshold, or between two."""

    kind: Kind
    statistic: str
    relation: Relation
    threshold: float | tuple[float, float]

    @property
    def words(self) -> str:
        """As a reader would say it."""
        of = {"bound": "pooled ", "estimate": ""}.get(self.kind, "") + (self.statistic or self.kind)
        of += ", with an interval," if self.kind == "estimate" else ""
        if isinstance(self.threshold, tuple):
            return f"{of} in {self.threshold[0]:g} … {self.threshold[1]:g}"
        return f"{of} {'≤' if self.relation == '<=' else '≥'} {self.threshold:g}"


@dataclass(frozen=True)
class Statistic:
    """A way to make one number of what some runs measured; compared with ``<=``, ``>=``, between."""

    kind: Kind
    name: str = ""

    def __le__(self, threshold: float) -> Requirement:
        return Requirement(self.kind, self.name, "<=", float(threshold))

    def __ge__(self, threshold: float) -> Requirement:
        return Requirement(self.kind, self.name, ">=", float(threshold))

    def between(self, low: float, high: float) -> Requirement:
        """Within two thresholds."""
        if not low <= high:
            raise AttnlabError(f"between({low}, {high}): expected the lower threshold first")
        return Requirement(self.kind, self.name, "in", (float(low), float(high)))


every_run = Statistic("every run")
"""Every entry of every run must be within the threshold."""
share = Statistic("share")
"""The share of runs, with an exact interval. Entries are truth values, or each run's own share
between 0 and 1 (a problem with several starts); runs that were asked for and not measured count as
unknown."""
given_interval = Statistic("interval")
"""A quantity whose interval the measurement has found (needed samples, a ratio, an exponent): it
gives estimate, low and high end along the dimension ``end``, open ends being infinite; ``attrs``
may say from how many ``seeds`` it comes, how many were ``asked``, what each gave (``by_seed``) and,
as ``kind``, that the estimate is only a bound, or a mere ``"number"`` without an interval."""
mean, median, lognormal_mean, geometric_mean, median_ratio = (
    Statistic("estimate", name)
    for name in ("mean", "median", "lognormal mean", "geometric mean", "median ratio")
)
"""Statistics over runs (entries of one run are averaged first) with an interval that must lie
wholly on one side (``attnlab.stats.interval_of``). They need at least 8 runs, not all equal."""
pooled_median, pooled_p90, pooled_p95, pooled_max, pooled_min, pooled_mean = (
    Statistic("bound", name) for name in ("median", "p90", "p95", "max", "min", "mean")
)
"""Statistics over all entries of all runs together, without an interval."""


@dataclass(frozen=True)
class Criterion:
    """One comparison of a measured quantity with a threshold.

    ``measure(data)`` gives a labelled array with a ``seed`` dimension; a nan entry was not
    measured. A coordinate ``asked`` may say which seeds were asked for (all, without it).

    - ``provenance``, ``source``: when the threshold was set and who states it; by default the
      claim's.
    - ``discriminates``: false where it is known to hold in every control, too; `attnlab claims` says
      so. A verdict goes by what the controls give, not by this.

    >>> criterion = Criterion("drift", lambda data: data["laws"].drift, every_run <= 3e-4)
    >>> criterion.threshold, criterion.relation
    (0.0003, '<=')
    """

    name: str
    measure: Measure
    requires: Requirement
    unit: str = ""
    provenance: Provenance | None = None
    source: Source | None = None
    discriminates: bool = True

    def __post_init__(self):
        if not isinstance(self.requires, Requirement):
            raise AttnlabError(
                f"criterion {self.name!r}: requires={self.requires!r}; expected a comparison such "
                "as `every_run <= 0.01`"
            )

    @property
    def words(self) -> str:
        """What it asks, as a reader would say it."""
        return f"{self.requires.words} {self.unit}".rstrip()

    @property
    def terms(self) -> list[Any]:
        """What it asks, to the last digit."""
        return [self.name, *astuple(self.requires), self.unit]

    @property
    def kind(self) -> Kind:
        """How runs are judged: every run, bound, estimate, share or interval."""
        return self.requires.kind

    @property
    def statistic(self) -> str:
        """The statistic over runs, for a bound or an estimate."""
        return self.requires.statistic

    @property
    def relation(self) -> Relation:
        """On which side of the threshold it holds."""
        return self.requires.relation

    @property
    def threshold(self) -> float | tuple[float, float]:
        """The threshold, or the two of an ``in``."""
        return self.requires.threshold

    @property
    def limit(self) -> float:
        """The threshold as a figure draws it; of two the upper one."""
        return self.threshold[1] if isinstance(self.threshold, tuple) else self.threshold

    def beyond(self, values: Any) -> Any:
        """How far values lie beyond the threshold; negative within."""
        if isinstance(self.threshold, tuple):
            return np.maximum(self.threshold[0] - values, values - self.threshold[1])
        return values - self.threshold if self.relation == "<=" else self.threshold - values

    def judge(self, data: Data, confidence: float | None = None) -> CriterionResult:
        """Measure and compare; ``confidence`` is that of the interval."""
        return _judge(self, self.measure(data), confidence or al.stats.CONFIDENCE)


@dataclass(frozen=True)
class Runs:
    """The runs behind a criterion: how many were ``asked`` for and ``usable``, and what each gave.

    ``entries`` of the usable runs in the order of ``labels``; ``own``: one number for each of them,
    by label.
    """

    asked: int
    usable: int
    entries: tuple[np.ndarray, ...] = ()
    own: Mapping[Any, float] = field(default_factory=dict)
    labels: tuple[Any, ...] = ()

    def each(self, statistic: Callable[[np.ndarray], Any]) -> Runs:
        """With one number for each run."""
        own = {
            label: float(statistic(values))
            for label, values in zip(self.labels, self.entries, strict=True)
        }
        return Runs(self.asked, self.usable, self.entries, own, self.labels)


@dataclass(frozen=True)
class CriterionResult:
    """What came of a criterion; ``runs`` holds its statistic run by run."""

    criterion: Criterion
    value: float | None
    interval: tuple[float, float] | None
    verdict: Verdict
    runs: Runs
    reason: str = ""
    bounded: str = ""

    @property
    def by_seed(self) -> tuple[float, ...]:
        """The statistic of each run."""
        return tuple(self.runs.own.values())

    @property
    def within(self) -> int | None:
        """How many runs lie within the threshold by themselves; ``None`` where that is not known or
        no question.
        """
        if not self.runs.own or self.criterion.kind == "share":
            return None
        return int((self.criterion.beyond(np.array(self.by_seed)) <= 0).sum())

    @property
    def worst(self) -> tuple[Any, float] | None:
        """Label and value of the run that lies farthest beyond the threshold, or nearest to it."""
        if not self.runs.own:
            return None
        beyond = self.criterion.beyond(np.array(self.by_seed))
        return list(self.runs.own.items())[int(np.argmax(beyond))]

    @property
    def reading(self) -> str:
        """The verdict in words: an estimate may hold while a run lies farther beyond than the
        estimate lies within.
        """
        if (
            self.verdict != "holds"
            or self.criterion.kind not in ("estimate", "interval")
            or self.value is None
        ):
            return self.verdict
        worst = self.worst
        far = worst is not None and self.criterion.beyond(worst[1]) > -self.criterion.beyond(
            self.value
        )
        return ON_AVERAGE if far else self.verdict

    @property
    def exceptions(self) -> str:
        """How many runs lie within the threshold, which is the worst, how many are missing, what so
        few can say.
        """
        kind, worst, parts = self.criterion.kind, self.worst, []
        count = len(self.runs.own)
        if worst is not None:
            if kind == "share":
                said = f"{sum(self.by_seed):.3g} of {count}"
                full = (
                    min(self.by_seed) == 1.0
                    if self.criterion.relation == ">="
                    else max(self.by_seed) == 0.0
                )
                parts.append(said if full else f"{said}, worst seed {worst[0]}: {worst[1]:.3g}")
            else:
                parts.append(f"{self.within} of {count}, worst seed {worst[0]}: {worst[1]:.3g}")
        if self.runs.usable < self.runs.asked:
            parts.append(f"{self.runs.usable} of {self.runs.asked} runs usable")
        if kind in ("every run", "bound") and self.within is not None:
            share = al.stats.may_violate(count - self.within, count)
            parts.append(
                f"{count} runs: up to {share:.0%} of runs may violate".replace("%", "\u00a0%")
            )
        return "; ".join(parts)

    def record(self) -> dict[str, Any]:
        """As it stands in ``record.json``."""
        c, worst = self.criterion, self.worst
        return {
            "name": c.name,
            "kind": c.kind,
            "statistic": self.value,
            "interval": None if self.interval is None else [_number(end) for end in self.interval],
            "threshold": list(c.threshold) if isinstance(c.threshold, tuple) else c.threshold,
            "verdict": self.verdict,
            "reading": self.reading,
            "relation": c.relation,
            "unit": c.unit,
            "of": c.statistic,
            "by_seed": [_number(value) for value in self.by_seed],
            "seeds": [_plain(label) for label in self.runs.own],
            "asked": self.runs.asked,
            "usable": self.runs.usable,
            "within": self.within,
            "worst": None
            if worst is None
            else {"seed": _plain(worst[0]), "value": _number(worst[1])},
            "exceptions": self.exceptions,
            "reason": self.reason,
            "bounded": self.bounded,
        }


def _number(value: float) -> float | None:
    """A number that JSON can hold."""
    return float(value) if np.isfinite(value) else None


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _runs(values: xr.DataArray) -> Runs:
    """Entries of each seed that has any; only nan counts as absent, an infinite value must not pass
    unseen.
    """
    if "seed" not in values.dims:
        raise AttnlabError(
            f"a criterion's measurement has the dimensions {values.dims}; expected 'seed' among "
            "them"
        )
    values = values.transpose("seed", ...)
    if "asked" in values.coords:
        asked = values.coords["asked"]
        values = values.isel(
            seed=np.flatnonzero(asked.any([dim for dim in asked.dims if dim != "seed"]).values)
        )
    count = values.sizes["seed"]
    labels = values["seed"].values.tolist() if "seed" in values.coords else list(range(count))
    rows = values.values.astype(np.float64).reshape(count, -1 if count else 0)
    known = [k for k in range(count) if not np.isnan(rows[k]).all()]
    entries = tuple(rows[k][~np.isnan(rows[k])] for k in known)
    return Runs(count, len(known), entries, {}, tuple(labels[k] for k in known))


def _judge(criterion: Criterion, values: xr.DataArray, confidence: float) -> CriterionResult:
    if criterion.kind == "interval":
        return _given(criterion, values)
    runs = _runs(values)
    if not runs.entries:
        return CriterionResult(
            criterion, None, None, "inconclusive", runs, "nothing could be measured"
        )
    if criterion.kind == "estimate":
        return _estimate(criterion, runs, confidence)
    if criterion.kind == "share":
        return _share(criterion, runs, confidence)
    return _bound(criterion, runs)


def _given(criterion: Criterion, values: xr.DataArray) -> CriterionResult:
    if values.dims != ("end",) or values.sizes["end"] != 3:
        raise AttnlabError(
            f"criterion {criterion.name!r}: its measurement has the dimensions "
            f"{dict(values.sizes)}; expected 'end' of "
            "length 3: estimate, low, high"
        )
    estimate, low, high = (float(value) for value in values.values)
    attrs = values.attrs
    kind, usable = str(attrs.get("kind", "")), int(attrs.get("seeds", 0))
    own = {
        seed: value for seed, value in dict(attrs.get("by_seed", {})).items() if not np.isnan(value)
    }
    runs = Runs(int(attrs.get("asked", usable)), usable, (), own)
    if np.isnan([low, high]).any():
        return CriterionResult(
            criterion, None, None, "inconclusive", runs, "nothing could be measured"
        )
    value = estimate if np.isfinite(estimate) else None
    verdict = _side(criterion, low, high)
    if kind == "number":
        return CriterionResult(criterion, value, None, verdict, runs)
    reason = (
        "" if kind in ("exact", "crossed", "") or verdict == "holds" else f"the value is {kind}"
    )
    return CriterionResult(criterion, value, (low, high), verdict, runs, reason, kind)


def _bound(criterion: Criterion, runs: Runs) -> CriterionResult:
    """``"bound"`` and ``"every run"``."""
    statistic = (
        partial(_worst, criterion)
        if criterion.kind == "every run"
        else _BOUNDS[criterion.statistic]
    )
    value = float(statistic(np.concatenate(runs.entries)))
    runs = runs.each(statistic)
    verdict: Verdict = "holds" if _inside(criterion, value, value) else "fails"
    if not np.isfinite(value):
        return CriterionResult(criterion, None, None, verdict, runs, f"the value is {value}")
    return CriterionResult(criterion, value, None, verdict, runs)


def _estimate(criterion: Criterion, runs: Runs, confidence: float) -> CriterionResult:
    runs = runs.each(np.mean)
    each = np.array(list(runs.own.values()))
    infinite = int((~np.isfinite(each)).sum())
    if infinite:
        reason = f"{infinite} of {len(each)} runs gave an infinite value"
        return CriterionResult(criterion, None, None, "inconclusive", runs, reason)
    found = al.stats.interval_of(each, cast("Location", criterion.statistic), confidence=confidence)
    if not found.exists:
        reason = found.reason
        if "equal" in reason:
            reason += ": only 'every run' or a share may judge them"
        return CriterionResult(criterion, found.estimate, None, "inconclusive", runs, reason)
    verdict = _side(criterion, found.low, found.high)
    reason = _more(criterion, found, len(each)) if verdict == "inconclusive" else ""
    return CriterionResult(
        criterion, found.estimate, (found.low, found.high), verdict, runs, reason
    )


def _share(criterion: Criterion, runs: Runs, confidence: float) -> CriterionResult:
    runs = runs.each(np.mean)
    each = np.array(list(runs.own.values()))
    if each.min() < 0 or each.max() > 1:
        raise AttnlabError(
            f"criterion {criterion.name!r}: entries from {each.min():g} to {each.max():g}; a share "
            "expects truth values "
            "or numbers between 0 and 1"
        )
    found = al.stats.share_interval(
        float(each.sum()), len(each), unknown=runs.asked - len(each), confidence=confidence
    )
    verdict = _side(criterion, found.low, found.high)
    reason = _needs(criterion, found, runs, confidence) if verdict == "inconclusive" else ""
    return CriterionResult(
        criterion, found.estimate, (found.low, found.high), verdict, runs, reason
    )


def _more(criterion: Criterion, found: Interval, count: int) -> str:
    """How many further runs would decide about the nearest threshold."""
    limits = (
        criterion.threshold if isinstance(criterion.threshold, tuple) else (criterion.threshold,)
    )
    crossed = [limit for limit in limits if found.low <= limit <= found.high]
    if not crossed:
        return ""
    limit = min(crossed, key=lambda end: abs(end - found.estimate))
    reach = max(found.high - found.estimate, found.estimate - found.low)
    more = al.stats.more_runs(
        count, reach, abs(found.estimate - limit), confidence=found.confidence
    )
    if more is None or more > 100_000:
        return "the interval holds the threshold, and the estimate lies so near it that more runs hardly decide"
    return f"the interval holds the threshold; about {more} more runs would decide, with 80 % power"


def _needs(criterion: Criterion, found: Interval, runs: Runs, confidence: float) -> str:
    """How many runs a share's threshold needs."""
    if isinstance(criterion.threshold, tuple):
        return ""
    missed = found.estimate != (1.0 if criterion.relation == ">=" else 0.0)
    bound, sign = (found.low, "≥") if criterion.relation == ">=" else (found.high, "≤")
    proved = f"{len(runs.own)} runs prove only {sign} {bound:.2g}"
    asked = criterion.threshold if criterion.relation == ">=" else 1 - criterion.threshold
    if missed or not 0 < asked < 1:
        return proved
    needed = al.stats.trials_needed(asked, confidence=confidence)
    return f"{proved}; {sign} {criterion.threshold:g} needs {needed} without an exception"


def _worst(criterion: Criterion, values: np.ndarray) -> float:
    """The entry farthest beyond the threshold, or nearest to it from within."""
    return float(values[np.argmax(criterion.beyond(values))])


def _inside(criterion: Criterion, low: float, high: float) -> bool:
    return bool(max(criterion.beyond(low), criterion.beyond(high)) <= 0)


def _outside(criterion: Criterion, low: float, high: float) -> bool:
    if isinstance(criterion.threshold, tuple):
        return high < criterion.threshold[0] or low > criterion.threshold[1]
    return bool(min(criterion.beyond(low), criterion.beyond(high)) > 0)


def _side(criterion: Criterion, low: float, high: float) -> Verdict:
    if _inside(criterion, low, high):
        return "holds"
    return "fails" if _outside(criterion, low, high) else "inconclusive"
