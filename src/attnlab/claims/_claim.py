"""Statements made executable: criteria, thresholds, controls, verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.stats import bootstrap_interval, wilson_interval
from attnlab.studies import Data, Study

if TYPE_CHECKING:
    import xarray as xr

Verdict = Literal["holds", "fails", "inconclusive", "reported", "not run"]
Kind = Literal["bound", "estimate", "share", "interval"]
Relation = Literal["<=", ">=", "in"]
LEAST_SEEDS = 8
Measure = Callable[[Data], "xr.DataArray"]

_STATISTICS: dict[str, Callable[..., Any]] = {
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "median": np.median,
    "p90": lambda values, axis=None: np.percentile(values, 90, axis=axis),
    "p95": lambda values, axis=None: np.percentile(values, 95, axis=axis),
}


@dataclass(frozen=True)
class Criterion:
    """One comparison of a measured quantity with a threshold.

    - ``measure(data)`` gives a labelled array with a ``seed`` dimension; nan entries do not count.
    - ``"bound"``: ``statistic`` over all entries against the threshold, without an interval;
    - ``"estimate"``: ``statistic`` over seeds (entries of one seed are averaged first), with a bootstrap interval that
      must lie wholly on one side; needs at least 8 seeds;
    - ``"share"``: the share of seeds for which the entries, as truth values, are all true, with a Wilson interval;
    - ``"interval"``: a quantity whose interval the study has found (needed samples, a ratio, an exponent): ``measure``
      gives estimate, low and high end along the dimension ``end``, ends that are open being infinite; ``attrs`` may
      say how many ``seeds`` it comes from and, as ``kind``, that the estimate is only a bound, or a mere ``"number"``
      without an interval.
    - ``relation`` ``"in"`` asks for a value between the two thresholds. Without a ``statistic`` the worst value counts.
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
            ("kind", self.kind, get_args(Kind)), ("relation", self.relation, get_args(Relation)),
        ):  # fmt: skip
            if value not in known:
                raise AttnlabError(f"criterion {self.name!r}: {field_name}={value!r} is none of {list(known)}")
        if not self.statistic:
            object.__setattr__(self, "statistic", "min" if self.relation == ">=" else "max")
        if self.statistic not in _STATISTICS:
            raise AttnlabError(f"criterion {self.name!r}: statistic {self.statistic!r} is none of {list(_STATISTICS)}")
        if (self.relation == "in") != isinstance(self.threshold, tuple):
            raise AttnlabError(f"criterion {self.name!r}: 'in' takes two thresholds, '<=' and '>=' take one")

    def judge(self, data: Data) -> CriterionResult:
        """Measure and compare."""
        values = self.measure(data)
        if self.kind == "interval":
            return self._given(values)
        by_seed = _by_seed(values)
        if not by_seed:
            return CriterionResult(self, None, None, "inconclusive", (), "nothing could be measured")
        judged = {"bound": self._bound, "estimate": self._estimate, "share": self._share}[self.kind](by_seed)
        return replace(judged, asked=values.sizes["seed"])

    def _given(self, values: xr.DataArray) -> CriterionResult:
        if values.dims != ("end",) or values.sizes["end"] != 3:
            raise AttnlabError(
                f"criterion {self.name!r}: its measurement has the dimensions {dict(values.sizes)}; expected 'end' of "
                "length 3: estimate, low, high"
            )
        estimate, low, high = (float(value) for value in values.values)
        kind, seeds = str(values.attrs.get("kind", "")), int(values.attrs.get("seeds", 0))
        if np.isnan([low, high]).any():
            return CriterionResult(self, None, None, "inconclusive", (), "nothing could be measured")
        value = estimate if np.isfinite(estimate) else None
        verdict = self._verdict(low, high)
        if kind == "number":
            return CriterionResult(self, value, None, verdict, (), "", seeds)
        reason = "" if kind in ("exact", "crossed", "") else f"the value is {kind}"
        reason = "" if verdict == "holds" else reason
        return CriterionResult(self, value, (low, high), verdict, (), reason, seeds, kind)

    def _bound(self, by_seed: list[np.ndarray]) -> CriterionResult:
        statistic = _STATISTICS[self.statistic]
        value = float(statistic(np.concatenate(by_seed)))
        each = tuple(float(statistic(values)) for values in by_seed)
        verdict: Verdict = "holds" if self._inside(value, value) else "fails"
        if not np.isfinite(value):
            return CriterionResult(self, None, None, verdict, (), f"the {self.statistic} is {value}")
        return CriterionResult(self, value, None, verdict, each)

    def _estimate(self, by_seed: list[np.ndarray]) -> CriterionResult:
        each = np.array([values.mean() for values in by_seed])
        statistic = _STATISTICS[self.statistic]
        if not np.isfinite(each).all():
            reason = f"{int((~np.isfinite(each)).sum())} of {len(each)} seeds gave an infinite value"
            return CriterionResult(self, None, None, "inconclusive", (), reason)
        if len(each) < LEAST_SEEDS:
            reason = f"{len(each)} seeds, an interval needs {LEAST_SEEDS}"
            return CriterionResult(self, float(statistic(each)), None, "inconclusive", tuple(each.tolist()), reason)
        found = bootstrap_interval(each, statistic, seed=0)
        verdict = self._verdict(found.low, found.high)
        return CriterionResult(self, found.estimate, (found.low, found.high), verdict, tuple(each.tolist()))

    def _share(self, by_seed: list[np.ndarray]) -> CriterionResult:
        each = np.array([bool(values.all()) for values in by_seed])
        found = wilson_interval(int(each.sum()), len(each))
        verdict = self._verdict(found.low, found.high)
        return CriterionResult(
            self, found.estimate, (found.low, found.high), verdict, tuple(each.astype(float).tolist())
        )

    def _inside(self, low: float, high: float) -> bool:
        if isinstance(self.threshold, tuple):
            return self.threshold[0] <= low and high <= self.threshold[1]
        return high <= self.threshold if self.relation == "<=" else low >= self.threshold

    def _outside(self, low: float, high: float) -> bool:
        if isinstance(self.threshold, tuple):
            return high < self.threshold[0] or low > self.threshold[1]
        return low > self.threshold if self.relation == "<=" else high < self.threshold

    def _verdict(self, low: float, high: float) -> Verdict:
        if self._inside(low, high):
            return "holds"
        return "fails" if self._outside(low, high) else "inconclusive"


@dataclass(frozen=True)
class CriterionResult:
    """What came of a criterion; ``by_seed`` is its statistic seed by seed."""

    criterion: Criterion
    value: float | None
    interval: tuple[float, float] | None
    verdict: Verdict
    by_seed: tuple[float, ...]
    reason: str = ""
    asked: int = 0
    bounded: str = ""

    @property
    def seeds(self) -> int:
        """From how many seeds it was measured."""
        return len(self.by_seed) if self.criterion.kind != "interval" else self.asked

    def record(self) -> dict[str, Any]:
        """As it stands in ``claims.json``."""
        c = self.criterion
        return {
            "name": c.name, "kind": c.kind, "statistic": self.value,
            "interval": None if self.interval is None else [v if np.isfinite(v) else None for v in self.interval],
            "threshold": list(c.threshold) if isinstance(c.threshold, tuple) else c.threshold,
            "verdict": self.verdict, "relation": c.relation, "unit": c.unit, "of": c.statistic,
            "by_seed": list(self.by_seed), "reason": self.reason, "seeds": [self.seeds, self.asked],
            "bounded": self.bounded,
        }  # fmt: skip


@dataclass(frozen=True)
class Control:
    """A setting in which the claim must be rejected (or, for a claim expected to fail, accepted)."""

    id: str
    statement: str
    criteria: tuple[Criterion, ...]
    should: Literal["reject", "accept"] = "reject"

    def __post_init__(self):
        if self.should not in ("reject", "accept"):
            raise AttnlabError(f"control {self.id!r}: should={self.should!r}, expected 'reject' or 'accept'")
        if not self.criteria:
            raise AttnlabError(f"control {self.id!r} has no criterion: it could not come out wrong")


@dataclass(frozen=True)
class Claim:
    """A statement, the study that it needs, what is compared, and what would show that the comparison sees anything.

    It holds if all criteria hold, fails if one fails, and is inconclusive otherwise or when a control does not come
    out as it should; without data it is not run. A ``table`` asks one question of many settings: every criterion has
    its own verdict, the whole is only reported. ``options``: what the command that reproduces it needs beside its id.
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
            raise AttnlabError(f"claim {self.id!r} has no control: give a setting in which it must be rejected")

    def judge(self, data: Data | None, runs: Mapping[str, int] | None = None, *, absent: str = "") -> dict[str, Any]:
        """The claim's entry in ``claims.json``; ``data`` is ``None`` where its study has no data, ``absent`` why."""
        entry: dict[str, Any] = {
            "id": self.id, "title": self.title, "statement": self.statement, "source": self.source,
            "verdict": "not run", "expected": self.expected, "criteria": [], "seeds": 0, "controls": [],
            "runs": dict(runs or {"asked": 0, "finished": 0, "failed": 0}), "reason": absent,
            "how_measured": self.how_measured, "refuted_by": self.refuted_by, "notes": list(self.notes),
        }  # fmt: skip
        if data is None:
            return entry
        results = [c.judge(data) for c in self.criteria]
        controls = [_control_record(control, data) for control in self.controls]
        verdict, reason = _verdict(results, controls)
        if self.table and all(c["ok"] for c in controls):
            held = sum(r.verdict == "holds" for r in results)
            verdict, reason = "reported", f"{held} of {len(results)} figures within the bounds"
        entry |= {
            "verdict": verdict, "reason": reason, "criteria": [r.record() for r in results], "controls": controls,
            "seeds": max((r.seeds for r in results), default=0),
        }  # fmt: skip
        return entry


def contradicts(entry: Mapping[str, Any]) -> bool:
    """Whether a verdict says the opposite of what was expected; inconclusive and not run contradict nothing."""
    return entry["verdict"] in ("holds", "fails") and entry["verdict"] != entry["expected"]


def _by_seed(values: xr.DataArray) -> list[np.ndarray]:
    """Entries of each seed that has any; only nan counts as absent, an infinite value must not pass unseen."""
    if "seed" not in values.dims:
        raise AttnlabError(f"a criterion's measurement has the dimensions {values.dims}; expected 'seed' among them")
    rows = values.transpose("seed", ...).values.astype(np.float64).reshape(values.sizes["seed"], -1)
    return [row[~np.isnan(row)] for row in rows if not np.isnan(row).all()]


def _combined(verdicts: list[Verdict]) -> Verdict:
    if "fails" in verdicts:
        return "fails"
    return "holds" if all(v == "holds" for v in verdicts) else "inconclusive"


def _control_record(control: Control, data: Data) -> dict[str, Any]:
    results = [c.judge(data) for c in control.criteria]
    verdict = _combined([r.verdict for r in results])
    ok = verdict == ("fails" if control.should == "reject" else "holds")
    return {
        "id": control.id, "should": control.should, "verdict": verdict, "ok": ok, "statement": control.statement,
        "criteria": [r.record() for r in results],
    }  # fmt: skip


def _verdict(results: list[CriterionResult], controls: list[dict[str, Any]]) -> tuple[Verdict, str]:
    wrong = [c for c in controls if not c["ok"]]
    if wrong:
        said = {"reject": "rejected", "accept": "accepted"}[wrong[0]["should"]]
        return "inconclusive", (
            f"the control {wrong[0]['id']!r} should have been {said} but came out {wrong[0]['verdict']!r}: "
            "the measurement does not tell true from false here"
        )
    verdict = _combined([r.verdict for r in results])
    if verdict == "holds":
        return verdict, ""
    named = [r for r in results if r.verdict == verdict] or [r for r in results if r.verdict != "holds"]
    more = f" ({named[0].reason})" if named[0].reason else ""
    word = "fails" if verdict == "fails" else "is not decided"
    return verdict, f"{named[0].criterion.name!r} {word}{more}"
