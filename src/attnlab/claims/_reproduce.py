"""From claims to verdicts: run the studies that they need, measure, judge, store."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import xarray as xr

from attnlab._errors import AttnlabError, MissingData
from attnlab._places import is_file, place
from attnlab.claims._claim import Claim, contradicts
from attnlab.stats import CONFIDENCE
from attnlab.studies import Scale, Study, checked_folder, split_arms
from attnlab.sweeps import (
    AbstractExecutor,
    Event,
    Results,
    executor_for,
    load_record,
    provenance,
    read_record,
    run_plan,
    save_record,
    slug,
    stale_message,
)

SCHEMA = 2


# Looks of `until="decided"`: seeds, and the share of wrong verdicts that may be spent up to there.
# The spending is Pocock's, α log(1 + (e − 1) t) at t = 1/8, 1/4, 1/2, 1 (Lan and DeMets 1983).
LOOKS = ((8, 0.0097), (16, 0.018), (32, 0.031), (64, 0.05))
UNDECIDED = ("inconclusive", "not run", "reported")
_LOOK = {
    "scale": str,
    "seeds": int,
    "confidence": float,
    "verdict": str,
    "statistics": [object],
    "date": str,
}
_FIELDS = {"about": {str: object}, "claims": [{str: object}], "looks": {str: [_LOOK]}}


@dataclass(frozen=True)
class Reproduction:
    """Verdicts and the data behind them, as they lie in a folder.

    - ``claims``: the entries of ``claims.json``; ``data``: the measured data sets by name;
      ``about``: how and where;
    - ``looks``: for each claim every look at it in this folder: seeds, confidence, verdict, date.
    """

    folder: Path
    claims: list[dict[str, Any]]
    data: dict[str, xr.Dataset]
    about: dict[str, Any] = field(default_factory=dict)
    looks: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    interrupted: bool = False
    ok: bool = True

    @property
    def contradictions(self) -> list[str]:
        """Claims whose verdict is the opposite of what was expected."""
        return [entry["id"] for entry in self.claims if contradicts(entry)]

    @property
    def undecided(self) -> list[str]:
        """Claims that neither hold nor fail: inconclusive, not run, or only reported."""
        return [entry["id"] for entry in self.claims if entry["verdict"] in UNDECIDED]


def reproduce(
    claims: Sequence[Claim],
    folder: str | Path,
    *,
    scale: Scale = "quick",
    seeds: int | None = None,
    until: Literal["decided"] | None = None,
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_study: Callable[[str, int, int], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
    failure_limit: float = 0.1,
    command: str | None = None,
    keep: bool = False,
) -> Reproduction:
    """Run the studies of some claims, judge them and write ``claims.json`` and the measured data.

    Interrupted at any moment and called again, it goes on where it was; finished, it recomputes
    nothing. ``seeds`` is 8 at quick and 16 at paper scale unless given. ``command`` is what the
    page says to type; by default ``attnlab reproduce`` with the claim's id. ``keep`` as in
    ``run_plan``; where other code made some of the stored runs, ``about["stale"]`` says so.

    ``until="decided"`` looks at a claim with 8 seeds and, as long as it is undecided, with 16, 32
    and 64. Its intervals are wider for that: the chances of a wrong verdict at all looks together
    add up to 5 %. More seeds by hand until a verdict turns have no such guarantee; every look is
    recorded.
    """
    out = checked_folder(folder, "claims")
    if seeds is not None and seeds < 1:
        raise AttnlabError(
            f"seeds={seeds}: expected at least 1 (and at least 8 for claims with an interval)"
        )
    if until not in (None, "decided"):
        raise AttnlabError(f"until={until!r}: expected 'decided' or None")
    if until is not None and seeds is not None:
        raise AttnlabError(
            f"seeds={seeds} with until='decided', which chooses the seeds: give one of the two"
        )
    begun = time.monotonic()
    studies = _studies(claims)
    tail = f" --scale {scale}" + ("" if seeds is None else f" --seeds {seeds}")
    tail += "" if until is None else " --until decided"
    plans = _looks(until, seeds if seeds is not None else (8 if scale == "quick" else 16))
    entries: dict[str, dict[str, Any]] = {}
    data: dict[str, xr.Dataset] = {}
    results: dict[str, Results] = {}
    ok, looks = True, _earlier_looks(out)
    with ExitStack() as stack:
        run = _Runner(
            out,
            scale,
            stack.enter_context(executor_for(processes, executor)),
            progress,
            on_study,
            on_event,
            failure_limit,
            keep,
        )
        for count, confidence in plans:
            asked = [
                claim
                for claim in claims
                if entries.get(claim.id, {}).get("verdict") not in ("holds", "fails")
            ]
            found = run.look(asked, count, confidence)
            if found is None:
                return Reproduction(out, [], {}, interrupted=True)
            for claim in asked:
                entry = _judged(claim, found, confidence)
                looks[claim.id] = _with_look(looks.get(claim.id, []), entry, scale, count)
                words = (command or f"attnlab reproduce {claim.id}{claim.options}") + tail
                entries[claim.id] = entry | {"command": words, "looks": looks[claim.id]}
            data |= found.data()
            ok = ok and found.ok
            results |= found.results
    about = {
        "scale": scale,
        "seeds": max(looks[claim.id][-1]["seeds"] for claim in claims) if claims else 0,
        "studies": list(studies),
        **provenance(time.monotonic() - begun),
    }
    stale = stale_message(results.values())
    about |= {"stale": stale} if stale else {}
    ordered = [entries[claim.id] for claim in claims]
    save_record(
        out, "claims.json", SCHEMA, {"about": about, "claims": ordered, "looks": looks}, data
    )
    return Reproduction(out, ordered, data, about, looks, ok=ok)


def _looks(until: str | None, seeds: int) -> list[tuple[int, float]]:
    """Seeds and confidence of each look; the errors of several looks add up to that of one.

    >>> [(seeds, round(confidence, 4)) for seeds, confidence in _looks("decided", 8)]
    [(8, 0.9903), (16, 0.9917), (32, 0.987), (64, 0.981)]
    """
    if until is None:
        return [(seeds, CONFIDENCE)]
    spent = [0.0, *(share for _, share in LOOKS)]
    return [
        (count, 1 - (share - before)) for (count, share), before in zip(LOOKS, spent, strict=False)
    ]


def _earlier_looks(out: Path) -> dict[str, list[dict[str, Any]]]:
    """The looks at claims that an earlier call recorded in this folder; none where its record
    cannot be read.
    """
    if not is_file(out / "claims.json"):
        return {}
    try:
        return read_record(out, "claims.json", SCHEMA, _FIELDS, "attnlab reproduce")["looks"]
    except AttnlabError:  # damaged, or of another version: it is about to be written again
        return {}


def _with_look(
    earlier: list[dict[str, Any]], entry: Mapping[str, Any], scale: str, seeds: int
) -> list[dict[str, Any]]:
    """The looks at a claim with this one, unless it is the last one again."""
    look = {
        "scale": scale,
        "seeds": seeds,
        "confidence": entry["confidence"],
        "verdict": entry["verdict"],
        "statistics": [criterion["statistic"] for criterion in entry["criteria"]],
    }
    if earlier and {key: earlier[-1].get(key) for key in look} == look:
        return earlier
    return [*earlier, look | {"date": time.strftime("%Y-%m-%d")}]


@dataclass(frozen=True)
class _Found:
    """What one look found: the runs of each study, what was measured of them, and why some were
    not.
    """

    results: dict[str, Results]
    measured: dict[str, dict[str, xr.Dataset]]
    absent: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether few enough runs failed in every study."""
        return all(results.ok for results in self.results.values())

    def data(self) -> dict[str, xr.Dataset]:
        """All measured data sets by name."""
        data: dict[str, xr.Dataset] = {}
        for name, parts in self.measured.items():
            twice = set(parts) & set(data)
            if twice:
                raise AttnlabError(
                    f"the study {name!r} measures {min(twice)!r}, as another study does: name it "
                    "otherwise"
                )
            data |= parts
        return data


@dataclass(frozen=True)
class _Runner:
    """Runs the studies of some claims and measures them."""

    out: Path
    scale: Scale
    executor: AbstractExecutor
    progress: bool | None
    on_study: Callable[[str, int, int], None] | None
    on_event: Callable[[Event], None] | None
    failure_limit: float
    keep: bool

    def look(self, claims: Sequence[Claim], seeds: int, confidence: float) -> _Found | None:
        """One look with so many seeds; ``None`` where it was interrupted."""
        studies, found = _studies(claims), _Found({}, {}, {})
        for number, (name, study) in enumerate(studies.items()):
            if self.on_study is not None:
                self.on_study(name, number + 1, len(studies))
            try:
                plan = study.plan(self.scale, seeds)
            except MissingData as error:
                found.absent[name] = str(error)
                continue
            results = found.results[name] = run_plan(
                plan,
                self.out / "runs" / f"{slug(name)}-{self.scale}",
                executor=self.executor,
                progress=self.progress,
                on_event=self.on_event,
                failure_limit=self.failure_limit,
                keep=self.keep,
            )
            if results.interrupted:
                return None
            try:
                arms = split_arms(results.dataset(), keep_failed=True)
                found.measured[name] = dict(study.measured(arms, confidence))
            except AttnlabError as error:
                found.absent[name] = f"the study {name!r} could not be measured: {error}"
            except Exception as error:
                raise AttnlabError(
                    f"measuring the study {name!r} raises {_where(error)}"
                ) from error
        return found


def _judged(claim: Claim, found: _Found, confidence: float) -> dict[str, Any]:
    try:
        return _judge(claim, found, confidence)
    except AttnlabError:
        raise
    except Exception as error:
        raise AttnlabError(f"judging the claim {claim.id!r} raises {_where(error)}") from error


def _judge(claim: Claim, found: _Found, confidence: float) -> dict[str, Any]:
    names = [study.name for study in claim.studies]
    results = [found.results[name] for name in names if name in found.results]
    runs: dict[str, Any] = {
        k: sum(getattr(one, k) for one in results) for k in ("asked", "finished", "failed")
    }
    for name in ("stale", "reused"):  # runs that other code made
        count = sum(getattr(one, name) for one in results)
        runs |= {name: count} if count else {}
    runs["causes"] = [
        {"cause": group.cause, "count": group.count} for one in results for group in one.failures
    ]
    missing = [name for name in names if name not in found.measured]
    if missing:
        return claim.judge(None, runs, absent=found.absent[missing[0]], confidence=confidence)
    data = {label: one for name in names for label, one in found.measured[name].items()}
    return claim.judge(data, runs, confidence=confidence)


def _studies(claims: Sequence[Claim]) -> dict[str, Study]:
    """The studies of some claims, each once; two different ones of one name would overwrite each
    other's runs.
    """
    studies: dict[str, Study] = {}
    for study in (study for claim in claims for study in claim.studies):
        if studies.setdefault(study.name, study) is not study:
            raise AttnlabError(
                f"two different studies are named {study.name!r}: give each its own name"
            )
    return studies


def _where(error: Exception) -> str:
    """An exception in words, with the place in the file that is not attnlab's or a library's, if
    there is one.
    """
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename
    ]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def read_reproduction(folder: str | Path) -> Reproduction:
    """What ``reproduce`` wrote. Nothing is computed."""
    out = place(folder)
    record, data = load_record(out, "claims.json", SCHEMA, _FIELDS, "attnlab reproduce")
    return Reproduction(out, record["claims"], data, record["about"], record["looks"])
