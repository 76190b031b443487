"""A claim: a statement with its sweeps, criteria, controls and figures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab._criterion import ON_AVERAGE, Criterion, CriterionResult, Verdict
from attnlab.lab._source import Provenance, Source
from attnlab.lab._sweep import Sweep
from attnlab.lab._tables import Data
from attnlab.report import Figure

NOT_DISCRIMINATING = "not discriminating"
_OURS = Source("ours")
_FOUND = ("holds", "fails", "inconclusive", "reported")


@dataclass(frozen=True)
class Control:
    """A setting in which the claim must be rejected (or accepted, if the claim should fail).

    One criterion that fails rejects; to be accepted, all have to hold.
    """

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

    A criterion that holds in every control as well is not discriminating: a claim does not hold by
    such criteria alone.

    - ``source``: who says it, we by default. ``provenance``: when its thresholds were set.
      A criterion may have its own of both.
    - ``expected``: the verdict that is expected; ``expected_provenance``: when that was set, by
      default with the thresholds.
    - ``why``: in two or three sentences, why it is so; ``finding``: a title for what was found, by
      verdict (``holds``, ``fails``, ``inconclusive``; ``reported`` of a table). Both may have
      mathematics, ``$…$``.
    - ``figures(data)`` draws it; without figures a page shows every criterion run by run.
    - ``cautions(data)``: what of these runs limits the verdict, such as a tuning that chose the end
      of its grid; sentences that stand right under it. They do not change it.
    - ``rank`` orders the claims of a paper; ``options``: what the command that reproduces it needs
      besides its id.
    """

    id: str
    title: str
    statement: str
    source: Source = _OURS
    sweeps: tuple[Sweep, ...]
    criteria: tuple[Criterion, ...]
    controls: tuple[Control, ...]
    how_measured: str
    refuted_by: str
    figures: Callable[[Data], Sequence[Figure]] | None = None
    cautions: Callable[[Data], Sequence[str]] | None = None
    expected: Literal["holds", "fails"] = "holds"
    notes: tuple[str, ...] = field(default=())
    table: bool = False
    rank: int = 1000
    options: str = ""
    provenance: Provenance | None = None
    expected_provenance: Provenance | None = None
    why: str = ""
    finding: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self):
        if not isinstance(self.source, Source):
            raise AttnlabError(
                f"claim {self.id!r}: source={self.source!r}; expected a Source, such as "
                'Source("ours", note="my notebook")'
            )
        if not self.criteria:
            raise AttnlabError(f"claim {self.id!r} has no criterion: it could not fail")
        unknown = [verdict for verdict in self.finding if verdict not in _FOUND]
        if unknown:
            raise AttnlabError(
                f"claim {self.id!r}: finding has a title for {unknown[0]!r}; expected one of "
                f"{', '.join(_FOUND)}"
            )
        if not self.controls:
            raise AttnlabError(
                f"claim {self.id!r} has no control: give a setting in which it must be rejected"
            )

    def ledger(self) -> dict[str, Any]:
        """What the claim has committed itself to, in words: source, expectation, criteria with their
        thresholds, controls, and when each was set.

        ``hash`` changes with every criterion, threshold and expectation, and with nothing else.
        ``of_criteria``: of those whose source or provenance is not the claim's, and of those that are
        known not to discriminate.
        """
        return {
            "source": self.source.words,
            "source_kind": self.source.kind,
            "provenance": _words(self.provenance),
            "expected": self.expected,
            "expected_provenance": self._expected_since,
            "criteria": {c.name: c.words for c in self.criteria},
            "of_criteria": dict(self._own_facts()),
            "controls": {
                control.id: {
                    "should": control.should,
                    "criteria": {c.name: c.words for c in control.criteria},
                }
                for control in self.controls
            },
            "hash": self._hash(),
        }

    @property
    def _expected_since(self) -> str:
        return _words(self.expected_provenance or self.provenance)

    def _own_facts(self) -> Iterator[tuple[str, dict[str, str]]]:
        for c in self.criteria:
            own = {
                "source": c.source.words if c.source else "",
                "provenance": _words(c.provenance),
                "note": "" if c.discriminates else NOT_DISCRIMINATING,
            }
            if any(own.values()):
                yield c.name, {name: words for name, words in own.items() if words}

    def _hash(self) -> str:
        terms = [
            self.expected,
            [c.terms for c in self.criteria],
            [[one.id, one.should, [c.terms for c in one.criteria]] for one in self.controls],
        ]
        return hashlib.sha256(json.dumps(terms).encode()).hexdigest()[:16]

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
            "why": self.why,
            "finding": dict(self.finding),
            "source": self.source.words,
            "source_kind": self.source.kind,
            "section": self.source.section,
            "verdict": "not run",
            "reading": "not run",
            "exceptions": "",
            "cautions": [],
            "expected": self.expected,
            "expected_provenance": self._expected_since,
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
            "cautions": [] if self.cautions is None else list(self.cautions(data)),
            "reason": reason,
            "criteria": [
                r.record()
                | {
                    "discriminates": k not in blind,
                    "source": (r.criterion.source or self.source).words,
                    "provenance": _words(r.criterion.provenance or self.provenance),
                }
                for k, r in enumerate(results)
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
) -> set[int]:
    """The places of the criteria that hold in every control that should be rejected and makes the
    same comparison. One that no control makes is not known to be blind.
    """
    found = set()
    for place in range(len(criteria)):
        same = [
            result.verdict
            for control, results in controls
            if control.should == "reject"
            for result in _same_comparison(place, criteria, results)
        ]
        if same and all(verdict == "holds" for verdict in same):
            found.add(place)
    return found


def _same_comparison(
    place: int, criteria: Sequence[Criterion], results: Sequence[CriterionResult]
) -> list[CriterionResult]:
    """A control's results for the comparison that a criterion makes: the same statistic and
    threshold. Where both make it equally often, once for each head, say, they belong together in
    their order.
    """
    mine = [k for k, c in enumerate(criteria) if c.requires == criteria[place].requires]
    same = [r for r in results if r.criterion.requires == criteria[place].requires]
    return [same[mine.index(place)]] if len(mine) == len(same) else same


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
    results: list[CriterionResult], controls: list[dict[str, Any]], blind: set[int]
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
            "every criterion holds in every control, too: none of them is discriminating"
        )
    if verdict == "holds":
        return verdict, ""
    named = [r for r in results if r.verdict == verdict] or [
        r for r in results if r.verdict != "holds"
    ]
    more = f" ({named[0].reason})" if named[0].reason else ""
    word = "fails" if verdict == "fails" else "is not decided"
    return verdict, f"{named[0].criterion.name!r} {word}{more}"
