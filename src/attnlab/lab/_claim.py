"""A claim: a statement with its sweeps, criteria, controls and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab._criterion import ON_AVERAGE, Criterion, CriterionResult, Verdict
from attnlab.lab._source import Provenance, Source
from attnlab.lab._sweep import Sweep
from attnlab.lab._tables import Data
from attnlab.report import Figure


@dataclass(frozen=True)
class Control:
    """A setting in which the claim must be rejected (or accepted, if the claim should fail)."""

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


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement, the sweeps that it needs, what is compared, and what would refute it.

    It holds if all criteria hold, fails if one fails, and is inconclusive otherwise or when a
    control does not come out as it should; without data it is not run. A ``table`` asks one
    question of many settings: every criterion has its own verdict, the whole is only reported.

    A criterion that every control fulfils as well tells nothing apart: a claim does not hold by such
    criteria alone.

    - ``source``: who says it, we by default. ``provenance``: when thresholds and expectation
      were set, unless a criterion has a provenance of its own.
    - ``figures(data)`` draws it; without figures a page shows every criterion run by run.
    - ``rank`` orders the claims of a paper; ``options``: what the command that reproduces it needs
      besides its id.
    """

    id: str
    title: str
    statement: str
    source: Source = Source("ours")
    sweeps: tuple[Sweep, ...]
    criteria: tuple[Criterion, ...]
    controls: tuple[Control, ...]
    how_measured: str
    refuted_by: str
    figures: Callable[[Data], Sequence[Figure]] | None = None
    expected: Literal["holds", "fails"] = "holds"
    notes: tuple[str, ...] = field(default=())
    table: bool = False
    rank: int = 1000
    options: str = ""
    provenance: Provenance | None = None

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
        confidence: float | None = None,
    ) -> dict[str, Any]:
        """The claim's entry in a record; ``data`` is ``None`` where there is none, ``absent`` why."""
        confidence = confidence or al.stats.CONFIDENCE
        entry: dict[str, Any] = {
            "id": self.id,
            "title": self.title,
            "statement": self.statement,
            "source": self.source.words,
            "source_kind": self.source.kind,
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
        judged = [(one, _judged(one, data, confidence)) for one in self.controls]
        controls = [_control_record(control, found) for control, found in judged]
        blind = _not_discriminating(self.criteria, judged)
        verdict, reason = _verdict(results, controls, blind)
        if self.table and all(c["ok"] for c in controls):
            held = sum(r.verdict == "holds" for r in results)
            verdict, reason = "reported", f"{held} of {len(results)} figures within the bounds"
        average = verdict == "holds" and any(r.reading == ON_AVERAGE for r in results)
        return entry | {
            "verdict": verdict,
            "reading": ON_AVERAGE if average else verdict,
            "exceptions": _exceptions(results),
            "reason": reason,
            "criteria": [
                r.record()
                | {
                    "discriminates": r.criterion not in blind,
                    "provenance": _words(r.criterion.provenance or self.provenance),
                }
                for r in results
            ],
            "controls": controls,
            "seeds": max((r.runs.usable for r in results), default=0),
        }


def contradicts(entry: Mapping[str, Any]) -> bool:
    """Whether a verdict is the opposite of the expected one; an open verdict contradicts nothing."""
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


def _words(provenance: Provenance | None) -> str:
    return "" if provenance is None else provenance.words


def _judged(control: Control, data: Data, confidence: float) -> list[CriterionResult]:
    return [c.judge(data, confidence) for c in control.criteria]


def _not_discriminating(
    criteria: Sequence[Criterion], controls: Sequence[tuple[Control, list[CriterionResult]]]
) -> list[Criterion]:
    """The criteria that hold in every control that asks the same comparison and should be rejected;
    what no control asks is not known to be blind.
    """
    blind = []
    for criterion in criteria:
        asked = [
            result.verdict
            for control, results in controls
            if control.should == "reject"
            for result in results
            if result.criterion.requires == criterion.requires
        ]
        if asked and all(verdict == "holds" for verdict in asked):
            blind.append(criterion)
    return blind


def _control_record(control: Control, results: list[CriterionResult]) -> dict[str, Any]:
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


def _verdict(
    results: list[CriterionResult], controls: list[dict[str, Any]], blind: Sequence[Criterion]
) -> tuple[Verdict, str]:
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
    if verdict == "holds" and len(blind) == len(results):
        return "inconclusive", (
            "every criterion holds in every control too: none tells true from false here"
        )
    if verdict == "holds":
        return verdict, ""
    named = [r for r in results if r.verdict == verdict] or [
        r for r in results if r.verdict != "holds"
    ]
    more = f" ({named[0].reason})" if named[0].reason else ""
    word = "fails" if verdict == "fails" else "is not decided"
    return verdict, f"{named[0].criterion.name!r} {word}{more}"
