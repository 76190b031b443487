"""From claims to verdicts: run the studies that they need, measure, judge, store."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from attnlab._errors import AttnlabError
from attnlab._places import place
from attnlab.claims._claim import Claim, contradicts
from attnlab.runs import (
    AbstractExecutor,
    Event,
    Results,
    executor_for,
    load_record,
    provenance,
    run_plan,
    save_record,
    slug,
)
from attnlab.studies import Scale, Study, checked_folder, split_arms
from attnlab.tasks import MissingData

SCHEMA = 1


@dataclass(frozen=True)
class Reproduction:
    """Verdicts and the data behind them, as they lie in a folder.

    ``claims`` are the entries of ``claims.json``, ``data`` the measured data sets by name, ``about`` how and where.
    """

    folder: Path
    claims: list[dict[str, Any]]
    data: dict[str, xr.Dataset]
    about: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    ok: bool = True

    @property
    def contradictions(self) -> list[str]:
        """Claims whose verdict is the opposite of what was expected."""
        return [entry["id"] for entry in self.claims if contradicts(entry)]


def reproduce(
    claims: Sequence[Claim],
    folder: str | Path,
    *,
    scale: Scale = "quick",
    seeds: int | None = None,
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_study: Callable[[str, int, int], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
    failure_limit: float = 0.1,
    command: str | None = None,
) -> Reproduction:
    """Run the studies of some claims, judge them and write ``claims.json`` and the measured data.

    Interrupted at any moment and called again, it goes on where it was; finished, it recomputes nothing. ``seeds`` is
    8 at quick and 16 at paper scale unless given. ``command`` is what the page says to type; by default
    ``attnlab reproduce`` with the claim's id.
    """
    out = checked_folder(folder, "claims")
    count = seeds if seeds is not None else (8 if scale == "quick" else 16)
    if count < 1:
        raise AttnlabError(f"seeds={seeds}: expected at least 1 (and at least 8 for claims with an interval)")
    begun = time.monotonic()
    studies = _studies(claims)
    results: dict[str, Results] = {}
    measured: dict[str, dict[str, xr.Dataset]] = {}
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        executor = stack.enter_context(executor_for(processes, executor))
        for number, (name, study) in enumerate(studies.items()):
            if on_study is not None:
                on_study(name, number + 1, len(studies))
            try:
                plan = study.plan(scale, count)
            except MissingData as error:
                absent[name] = str(error)
                continue
            results[name] = run_plan(
                plan, out / "runs" / f"{slug(name)}-{scale}", executor=executor, progress=progress,
                on_event=on_event, failure_limit=failure_limit,
            )  # fmt: skip
            if results[name].interrupted:
                return Reproduction(out, [], {}, interrupted=True)
            try:
                measured[name] = dict(study.measure(split_arms(results[name].dataset())))
            except AttnlabError as error:
                absent[name] = f"the study {name!r} could not be measured: {error}"
            except Exception as error:
                raise AttnlabError(f"measuring the study {name!r} raises {_where(error)}") from error
    tail = f" --scale {scale}" + ("" if seeds is None else f" --seeds {seeds}")
    entries = []
    for claim in claims:
        try:
            entry = _judge(claim, results, measured, absent)
        except AttnlabError:
            raise
        except Exception as error:
            raise AttnlabError(f"judging the claim {claim.id!r} raises {_where(error)}") from error
        entries.append(entry | {"command": (command or f"attnlab reproduce {claim.id}{claim.options}") + tail})
    about = {"scale": scale, "seeds": count, "studies": list(studies), **provenance(time.monotonic() - begun)}
    data: dict[str, xr.Dataset] = {}
    for name, parts in measured.items():
        twice = set(parts) & set(data)
        if twice:
            raise AttnlabError(f"the study {name!r} measures {min(twice)!r}, as another study does: name it otherwise")
        data |= parts
    save_record(out, "claims.json", SCHEMA, {"about": about, "claims": entries}, data)
    return Reproduction(out, entries, data, about, ok=all(r.ok for r in results.values()))


def _judge(
    claim: Claim,
    results: Mapping[str, Results],
    measured: Mapping[str, Mapping[str, xr.Dataset]],
    absent: Mapping[str, str],
) -> dict[str, Any]:
    names = [study.name for study in claim.studies]
    runs = {k: sum(getattr(results[n], k) for n in names if n in results) for k in ("asked", "finished", "failed")}
    missing = [n for n in names if n not in measured]
    if missing:
        return claim.judge(None, runs, absent=absent[missing[0]])
    return claim.judge({label: one for n in names for label, one in measured[n].items()}, runs)


def _studies(claims: Sequence[Claim]) -> dict[str, Study]:
    """The studies of some claims, each once; two different ones of one name would overwrite each other's runs."""
    studies: dict[str, Study] = {}
    for study in (study for claim in claims for study in claim.studies):
        if studies.setdefault(study.name, study) is not study:
            raise AttnlabError(f"two different studies are named {study.name!r}: give each its own name")
    return studies


def _where(error: Exception) -> str:
    """An exception in words, with the place in the file that is not attnlab's or a library's, if there is one."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "site-packages" not in f.filename]
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def read_reproduction(folder: str | Path) -> Reproduction:
    """What ``reproduce`` wrote. Nothing is computed."""
    out = place(folder)
    record, data = load_record(out, "claims.json", SCHEMA, ("about", "claims"), "attnlab reproduce")
    return Reproduction(out, record["claims"], data, record["about"])
