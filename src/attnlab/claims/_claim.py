"""Statements made executable: criteria, thresholds, controls, verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.stats import (
    CONFIDENCE,
    LOCATIONS,
    Interval,
    Location,
    interval_of,
    may_violate,
    more_runs,
    share_interval,
    trials_needed,
)
from attnlab.studies import Data, Study

if TYPE_CHECKING:
    import xarray as xr

Verdict = Literal["holds", "fails", "inconclusive", "reported", "not run"]
Kind = Literal["every run", "bound", "estimate", "share", "interval"]
Relation = Literal["<=", ">=", "in"]
Measure = Callable[[Data], "xr.DataArray"]

_BOUNDS: dict[str, Callable[..., Any]] = {
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "median": np.median,
    "p90": lambda values: np.percentile(values, 90),
    "p95": lambda values: np.percentile(values, 95),
}
_STATISTICS: dict[str, tuple[str, ...]] = {
    "every run": (),
    "bound": tuple(_BOUNDS),
    "estimate": LOCATIONS,
    "share": (),
    "interval": (),
}
ON_AVERAGE = "holds on average"


@dataclass(frozen=True)
class Criterion:
    """One comparison of a measured quantity with a threshold.

    ``measure(data)`` gives a labelled array with a ``seed`` dimension; a nan entry was not
    measured. A coordinate ``asked`` may say which seeds were asked for (all, without it).

    - ``"every run"``: every entry of every run must be within the threshold;
    - ``"bound"``: ``statistic`` (max, min, mean, median, p90, p95) over all entries of all runs,
      without an interval;
    - ``"estimate"``: ``statistic`` over runs (entries of one run are averaged first), with an
      interval that must lie wholly on one side: mean, median, lognormal mean, geometric mean,
      median ratio (``attnlab.stats.interval_of``). It needs at least 8 runs, not all equal;
    - ``"share"``: the share of runs. Entries are truth values, or each run's own share between 0
      and 1 (a problem with several starts). Exact interval over runs; runs that were asked for and
      not measured count as unknown;
    - ``"interval"``: a quantity whose interval the study has found (needed samples, a ratio, an
      exponent): ``measure`` gives estimate, low and high end along the dimension ``end``, ends that
      are open being infinite; ``attrs`` may say from how many ``seeds`` it comes, how many were
      ``asked``, what each of them gave (``by_seed``) and, as ``kind``, that the estimate is only a
      bound, or a mere ``"number"`` without an interval.

    ``relation`` ``"in"`` asks for a value between the two thresholds.
    """

    name: str
    kind: Kind
    measure: Measure
    threshold: float | tuple[float, float]
    relation: Relation = "<="
    statistic: str = ""
    unit: str = ""

    def __post_init__(self):
        for field_name, value, known in (
            ("kind", self.kind, get_args(Kind)),
            ("relation", self.relation, get_args(Relation)),
        ):
            if value not in known:
                raise AttnlabError(
                    f"criterion {self.name!r}: {field_name}={value!r} is none of {list(known)}"
                )
        known = _STATISTICS[self.kind]
        if known and self.statistic not in known:
            got = f"statistic={self.statistic!r}" if self.statistic else "no statistic"
            raise AttnlabError(
                f"criterion {self.name!r}: {got}; {self.kind!r} expects one of {', '.join(known)}"
            )
        if not known and self.statistic:
            raise AttnlabError(
                f"criterion {self.name!r}: {self.kind!r} takes no statistic, got {self.statistic!r}"
            )
        if (self.relation == "in") != isinstance(self.threshold, tuple):
            raise AttnlabError(
                f"criterion {self.name!r}: 'in' takes two thresholds, '<=' and '>=' take one"
            )

    def judge(self, data: Data, confidence: float = CONFIDENCE) -> CriterionResult:
        """Measure and compare; ``confidence`` is that of the interval."""
        values = self.measure(data)
        if self.kind == "interval":
            return self._given(values)
        runs = _runs(values)
        if not runs.entries:
            return CriterionResult(
                self, None, None, "inconclusive", runs, "nothing could be measured"
            )
        if self.kind == "estimate":
            return self._estimate(runs, confidence)
        if self.kind == "share":
            return self._share(runs, confidence)
        return self._bound(runs)

    def _given(self, values: xr.DataArray) -> CriterionResult:
        if values.dims != ("end",) or values.sizes["end"] != 3:
            raise AttnlabError(
                f"criterion {self.name!r}: its measurement has the dimensions "
                f"{dict(values.sizes)}; expected 'end' of "
                "length 3: estimate, low, high"
            )
        estimate, low, high = (float(value) for value in values.values)
        attrs = values.attrs
        kind, usable = str(attrs.get("kind", "")), int(attrs.get("seeds", 0))
        own = {
            seed: value
            for seed, value in dict(attrs.get("by_seed", {})).items()
            if not np.isnan(value)
        }
        runs = Runs(int(attrs.get("asked", usable)), usable, (), own)
        if np.isnan([low, high]).any():
            return CriterionResult(
                self, None, None, "inconclusive", runs, "nothing could be measured"
            )
        value = estimate if np.isfinite(estimate) else None
        verdict = self._verdict(low, high)
        if kind == "number":
            return CriterionResult(self, value, None, verdict, runs)
        reason = (
            "" if kind in ("exact", "crossed", "") or verdict == "holds" else f"the value is {kind}"
        )
        return CriterionResult(self, value, (low, high), verdict, runs, reason, kind)

    def _bound(self, runs: Runs) -> CriterionResult:
        """``"bound"`` and ``"every run"``."""
        statistic = self._worst if self.kind == "every run" else _BOUNDS[self.statistic]
        value = float(statistic(np.concatenate(runs.entries)))
        runs = runs.each(statistic)
        verdict: Verdict = "holds" if self._inside(value, value) else "fails"
        if not np.isfinite(value):
            return CriterionResult(self, None, None, verdict, runs, f"the value is {value}")
        return CriterionResult(self, value, None, verdict, runs)

    def _estimate(self, runs: Runs, confidence: float) -> CriterionResult:
        runs = runs.each(np.mean)
        each = np.array(list(runs.own.values()))
        infinite = int((~np.isfinite(each)).sum())
        if infinite:
            reason = f"{infinite} of {len(each)} runs gave an infinite value"
            return CriterionResult(self, None, None, "inconclusive", runs, reason)
        found = interval_of(each, cast(Location, self.statistic), confidence=confidence)
        if not found.exists:
            reason = found.reason
            if "equal" in reason:
                reason += ": only 'every run' or a share may judge them"
            return CriterionResult(self, found.estimate, None, "inconclusive", runs, reason)
        verdict = self._verdict(found.low, found.high)
        reason = self._more(found, len(each)) if verdict == "inconclusive" else ""
        return CriterionResult(self, found.estimate, (found.low, found.high), verdict, runs, reason)

    def _share(self, runs: Runs, confidence: float) -> CriterionResult:
        runs = runs.each(np.mean)
        each = np.array(list(runs.own.values()))
        if each.min() < 0 or each.max() > 1:
            raise AttnlabError(
                f"criterion {self.name!r}: entries from {each.min():g} to {each.max():g}; a share "
                "expects truth values "
                "or numbers between 0 and 1"
            )
        found = share_interval(
            float(each.sum()), len(each), unknown=runs.asked - len(each), confidence=confidence
        )
        verdict = self._verdict(found.low, found.high)
        reason = self._needs(found, runs, confidence) if verdict == "inconclusive" else ""
        return CriterionResult(self, found.estimate, (found.low, found.high), verdict, runs, reason)

    def _more(self, found: Interval, count: int) -> str:
        """How many further runs would decide about the nearest threshold."""
        limits = self.threshold if isinstance(self.threshold, tuple) else (self.threshold,)
        crossed = [limit for limit in limits if found.low <= limit <= found.high]
        if not crossed:
            return ""
        limit = min(crossed, key=lambda end: abs(end - found.estimate))
        reach = max(found.high - found.estimate, found.estimate - found.low)
        more = more_runs(count, reach, abs(found.estimate - limit), confidence=found.confidence)
        if more is None or more > 100_000:
            return "the interval holds the threshold, and the estimate lies so near it that more runs hardly decide"
        return f"the interval holds the threshold; about {more} more runs would decide, with 80 % power"

    def _needs(self, found: Interval, runs: Runs, confidence: float) -> str:
        """How many runs a share's threshold needs."""
        if isinstance(self.threshold, tuple):
            return ""
        missed = found.estimate != (1.0 if self.relation == ">=" else 0.0)
        bound, sign = (found.low, "≥") if self.relation == ">=" else (found.high, "≤")
        proved = f"{len(runs.own)} runs prove only {sign} {bound:.2g}"
        asked = self.threshold if self.relation == ">=" else 1 - self.threshold
        if missed or not 0 < asked < 1:
            return proved
        needed = trials_needed(asked, confidence=confidence)
        return f"{proved}; {sign} {self.threshold:g} needs {needed} without an exception"

    def _worst(self, values: np.ndarray) -> float:
        """The entry farthest beyond the threshold, or nearest to it from within."""
        return float(values[np.argmax(self.beyond(values))])

    def beyond(self, values: Any) -> Any:
        """How far values lie beyond the threshold; negative within."""
        if isinstance(self.threshold, tuple):
            return np.maximum(self.threshold[0] - values, values - self.threshold[1])
        return values - self.threshold if self.relation == "<=" else self.threshold - values

    def _inside(self, low: float, high: float) -> bool:
        return bool(max(self.beyond(low), self.beyond(high)) <= 0)

    def _outside(self, low: float, high: float) -> bool:
        if isinstance(self.threshold, tuple):
            return high < self.threshold[0] or low > self.threshold[1]
        return bool(min(self.beyond(low), self.beyond(high)) > 0)

    def _verdict(self, low: float, high: float) -> Verdict:
        if self._inside(low, high):
            return "holds"
        return "fails" if self._outside(low, high) else "inconclusive"


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
            share = may_violate(count - self.within, count)
            parts.append(
                f"{count} runs: up to {share:.0%} of runs may violate".replace("%", "\u00a0%")
            )
        return "; ".join(parts)

    def record(self) -> dict[str, Any]:
        """As it stands in ``claims.json``."""
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
    rows = values.values.astype(np.float64).reshape(count, -1)
    known = [k for k in range(count) if not np.isnan(rows[k]).all()]
    entries = tuple(rows[k][~np.isnan(rows[k])] for k in known)
    return Runs(count, len(known), entries, {}, tuple(labels[k] for k in known))


@dataclass(frozen=True)
class Control:
    """A setting in which the claim must be rejected (or, for a claim expected to fail, accepted)."""

    id: str
    statement: str
    criteria: tuple[Criterion, ...]
    should: Literal["reject", "accept"] = "reject"

    def __post_init__(self):
        if self.should not in ("reject", "accept"):
            raise AttnlabError(
                f"control {self.id!r}: should={self.should!r}, expected 'reject' or 'accept'"
            )
        if not self.criteria:
            raise AttnlabError(f"control {self.id!r} has no criterion: it could not come out wrong")


@dataclass(frozen=True)
class Claim:
    """A statement, the study that it needs, what is compared, and what would show that the
    comparison sees anything.

    It holds if all criteria hold, fails if one fails, and is inconclusive otherwise or when a
    control does not come out as it should; without data it is not run. A ``table`` asks one
    question of many settings: every criterion has its own verdict, the whole is only reported.
    ``options``: what the command that reproduces it needs beside its id.
    """

    id: str
    title: str
    statement: str
    source: str
    studies: tuple[Study, ...]
    criteria: tuple[Criterion, ...]
    controls: tuple[Control, ...]
    how_measured: str
    refuted_by: str
    expected: Literal["holds", "fails"] = "holds"
    notes: tuple[str, ...] = field(default=())
    table: bool = False
    options: str = ""

    def __post_init__(self):
        if not self.criteria:
            raise AttnlabError(f"claim {self.id!r} has no criterion: it could not fail")
        if not self.controls:
            raise AttnlabError(
                f"claim {self.id!r} has no control: give a setting in which it must be rejected"
            )

    def judge(
        self,
        data: Data | None,
        runs: Mapping[str, Any] | None = None,
        *,
        absent: str = "",
        confidence: float = CONFIDENCE,
    ) -> dict[str, Any]:
        """The claim's entry in ``claims.json``; ``data`` is ``None`` where its study has no data,
        ``absent`` why.
        """
        entry: dict[str, Any] = {
            "id": self.id,
            "title": self.title,
            "statement": self.statement,
            "source": self.source,
            "verdict": "not run",
            "reading": "not run",
            "exceptions": "",
            "expected": self.expected,
            "confidence": confidence,
            "criteria": [],
            "seeds": 0,
            "controls": [],
            "runs": dict(runs or {"asked": 0, "finished": 0, "failed": 0, "causes": []}),
            "reason": absent,
            "how_measured": self.how_measured,
            "refuted_by": self.refuted_by,
            "notes": list(self.notes),
        }
        if data is None:
            return entry
        results = [c.judge(data, confidence) for c in self.criteria]
        controls = [_control_record(control, data, confidence) for control in self.controls]
        verdict, reason = _verdict(results, controls)
        if self.table and all(c["ok"] for c in controls):
            held = sum(r.verdict == "holds" for r in results)
            verdict, reason = "reported", f"{held} of {len(results)} figures within the bounds"
        average = verdict == "holds" and any(r.reading == ON_AVERAGE for r in results)
        return entry | {
            "verdict": verdict,
            "reading": ON_AVERAGE if average else verdict,
            "exceptions": _exceptions(results),
            "reason": reason,
            "criteria": [r.record() for r in results],
            "controls": controls,
            "seeds": max((r.runs.usable for r in results), default=0),
        }


def contradicts(entry: Mapping[str, Any]) -> bool:
    """Whether a verdict says the opposite of what was expected; inconclusive and not run contradict
    nothing.
    """
    return entry["verdict"] in ("holds", "fails") and entry["verdict"] != entry["expected"]


def _combined(verdicts: list[Verdict]) -> Verdict:
    if "fails" in verdicts:
        return "fails"
    return "holds" if all(v == "holds" for v in verdicts) else "inconclusive"


def _exceptions(results: list[CriterionResult]) -> str:
    """Of the criterion with the largest share of runs beyond its threshold, if runs can be counted
    at all.
    """
    counted = [(r.within / len(r.runs.own), r) for r in results if r.within is not None]
    if not counted:
        return next((r.exceptions for r in results if r.exceptions), "")
    return min(counted, key=lambda pair: pair[0])[1].exceptions


def _control_record(control: Control, data: Data, confidence: float) -> dict[str, Any]:
    results = [c.judge(data, confidence) for c in control.criteria]
    verdict = _combined([r.verdict for r in results])
    ok = verdict == ("fails" if control.should == "reject" else "holds")
    return {
        "id": control.id,
        "should": control.should,
        "verdict": verdict,
        "ok": ok,
        "statement": control.statement,
        "reason": next((r.reason for r in results if r.verdict == verdict and r.reason), ""),
        "criteria": [r.record() for r in results],
    }


def _verdict(results: list[CriterionResult], controls: list[dict[str, Any]]) -> tuple[Verdict, str]:
    wrong = [c for c in controls if not c["ok"]]
    if wrong:
        said = {"reject": "rejected", "accept": "accepted"}[wrong[0]["should"]]
        why = f" ({wrong[0]['reason']})" if wrong[0]["reason"] else ""
        return "inconclusive", (
            f"the control {wrong[0]['id']!r} should have been {said} but came out "
            f"{wrong[0]['verdict']!r}{why}: "
            "the measurement does not tell true from false here"
        )
    verdict = _combined([r.verdict for r in results])
    if verdict == "holds":
        return verdict, ""
    named = [r for r in results if r.verdict == verdict] or [
        r for r in results if r.verdict != "holds"
    ]
    more = f" ({named[0].reason})" if named[0].reason else ""
    word = "fails" if verdict == "fails" else "is not decided"
    return verdict, f"{named[0].criterion.name!r} {word}{more}"
