"""What moved between two folders of results: verdicts, and figures beyond their intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab._places import place
from attnlab.lab._folder import FIELDS, RECORD, SCHEMA
from attnlab.sweeps import read_record

Entry = Mapping[str, Any]
How = Literal["same", "paired seeds", "intervals", "no interval"]
_ROUNDING = 1e-12  # relative; smaller differences are those of another order of summation
# What a criterion asks: a number that answers another question has not moved.
_QUESTION = ("kind", "of", "relation", "threshold", "unit")


@dataclass(frozen=True)
class VerdictMove:
    """A verdict that is another one in the second folder.

    ``what`` is empty for the claim's own, or names the criterion, the control or the answer.
    """

    claim: str
    what: str
    before: str
    after: str


@dataclass(frozen=True)
class FigureMove:
    """A number in both folders.

    ``how`` it was compared: by the interval of the difference over ``seeds`` that both folders have,
    by non-overlap of the two intervals, or not at all (``moved`` is ``None``). ``difference`` is
    after − before, its mean over seeds where these are paired.
    """

    claim: str
    what: str
    before: float | str | None
    after: float | str | None
    how: How
    moved: bool | None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    seeds: int = 0


@dataclass(frozen=True)
class Comparison:
    """Two folders side by side: what moved, what could not be compared, what only one of them has.

    ``asked_otherwise``: criteria whose threshold or statistic is another one.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    verdicts: tuple[VerdictMove, ...]
    figures: tuple[FigureMove, ...]
    asked_otherwise: tuple[str, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def moved(self) -> bool:
        """Whether a verdict or a figure moved."""
        return bool(self.verdicts) or any(figure.moved for figure in self.figures)

    @property
    def judged(self) -> int:
        """How many figures were compared by an interval."""
        return sum(figure.how in ("paired seeds", "intervals") for figure in self.figures)

    def as_json(self) -> dict[str, Any]:
        """As ``attnlab diff --json`` prints it."""
        return {"moved": self.moved, "confidence": al.stats.CONFIDENCE, **asdict(self)}


def compare_records(before: str | Path, after: str | Path) -> Comparison:
    """What moved from one folder of results to another; both records are read, nothing is computed
    again.

    A figure moved if the 95 % interval of its paired difference (Student, over at least 8 seeds
    that both have) excludes 0. Where seeds are not shared, it moved if the two intervals do not
    overlap, which is the weaker test. A number without either is only shown.
    """
    old, new = (
        read_record(place(folder), RECORD, SCHEMA, FIELDS, "attnlab reproduce")
        for folder in (before, after)
    )
    kinds = [one["experiment"] for one in (old, new)]
    claims = all("claims" in one["content"] for one in (old, new))
    if not claims and kinds[0] != kinds[1]:
        raise AttnlabError(
            f"{before} holds what `attnlab {kinds[0]}` wrote and {after} what `attnlab {kinds[1]}` "
            "did; expected two folders of the same command"
        )
    parts_of = _claims_of if claims else _cards_of
    try:
        return _compared(_header(before, old), _header(after, new), parts_of(old), parts_of(new))
    except (KeyError, TypeError) as error:
        raise AttnlabError(
            f"the records of {before} and {after} cannot be compared ({type(error).__name__}: "
            f"{error}): another version of attnlab wrote one of them; run its command again"
        ) from error


def _compared(
    before: Entry, after: Entry, old: Mapping[str, Entry], new: Mapping[str, Entry]
) -> Comparison:
    pairs = [(name, old[name], new[name]) for name in old if name in new]
    return Comparison(
        before,
        after,
        tuple(move for pair in pairs for move in _verdicts(*pair)),
        tuple(move for pair in pairs for move in _figures(*pair)),
        tuple(words for pair in pairs for words in _asked_otherwise(*pair)),
        tuple(name for name in old if name not in new),
        tuple(name for name in new if name not in old),
    )


def _header(folder: str | Path, record: Entry) -> dict[str, Any]:
    about = record["about"]
    known = {name: about.get(name) for name in ("attnlab", "date", "command", "settings")}
    return {"folder": str(folder), "experiment": record["experiment"], **known}


def _claims_of(record: Entry) -> dict[str, Entry]:
    return {entry["id"]: entry for entry in record["content"]["claims"]}


def _cards_of(record: Entry) -> dict[str, Entry]:
    """The answers of a command that judges no claims, in the form of claims without criteria; of
    several with one label the later ones are numbered.
    """
    found: dict[str, Entry] = {}
    counts: Counter[str] = Counter()
    for card in record["content"].get("cards", record["about"]["cards"]):
        label = card["label"]
        counts[label] += 1
        name = label if counts[label] == 1 else f"{label} ({counts[label]})"
        answer = {"reading": card["verdict"] or "", "headline": card["headline"]}
        found[name] = answer | {"criteria": (), "controls": ()}
    return found


def _criteria(entry: Entry) -> dict[str, Entry]:
    """The criteria of a claim and of its controls by name."""
    own = {one["name"]: one for one in entry["criteria"]}
    return own | {
        f"control {control['id']}: {one['name']}": one
        for control in entry["controls"]
        for one in control["criteria"]
    }


def _shared(a: Entry, b: Entry) -> Iterator[tuple[str, Entry, Entry]]:
    """The criteria that both entries have."""
    old, new = _criteria(a), _criteria(b)
    yield from ((name, old[name], new[name]) for name in old if name in new)


def _verdicts(name: str, a: Entry, b: Entry) -> Iterator[VerdictMove]:
    if a["reading"] != b["reading"]:
        yield VerdictMove(name, "", a["reading"], b["reading"])
    for what, old, new in _shared(a, b):
        if old["reading"] != new["reading"]:
            yield VerdictMove(name, what, old["reading"], new["reading"])


def _asked_otherwise(name: str, a: Entry, b: Entry) -> Iterator[str]:
    for what, old, new in _shared(a, b):
        if any(old[field] != new[field] for field in _QUESTION):
            yield f"{name}, {what}: {_asked(old)} -> {_asked(new)}"


def _asked(criterion: Entry) -> str:
    words = (criterion["kind"], criterion["of"], criterion["relation"], criterion["threshold"])
    return " ".join(str(word) for word in words if word != "")


def _figures(name: str, a: Entry, b: Entry) -> Iterator[FigureMove]:
    if "headline" in a:
        same = a["headline"] == b["headline"]
        how: How = "same" if same else "no interval"
        moved = False if same else None
        yield FigureMove(name, "", a["headline"], b["headline"], how, moved)
    for what, old, new in _shared(a, b):
        if (old["kind"], old["of"]) == (new["kind"], new["of"]):
            yield _figure(name, what, old, new)


def _figure(name: str, what: str, a: Entry, b: Entry) -> FigureMove:
    """Compare one number in the sharpest way that both records allow."""
    before, after = a["statistic"], b["statistic"]
    runs = _by_seed(a), _by_seed(b)
    differences = [_difference(runs[0][seed], runs[1][seed]) for seed in runs[0] if seed in runs[1]]

    def move(how: How, moved: bool | None, **more: Any) -> FigureMove:
        return FigureMove(name, what, before, after, how, moved, **more)

    if _equal(before, after) and not any(differences):
        return move("same", False, difference=0.0, seeds=len(differences))
    if len(differences) >= al.stats.MIN_RUNS:
        found = al.stats.interval_of(differences, "mean")
        ends = (found.low, found.high) if found.exists else (found.estimate, found.estimate)
        moved = not ends[0] <= 0 <= ends[1]
        more = {"difference": found.estimate, "interval": ends, "seeds": len(differences)}
        return move("paired seeds", moved, **more)
    difference = None if None in (before, after) else float(after - before)
    if a["interval"] is not None and b["interval"] is not None:
        (low, high), (lower, higher) = _ends(a), _ends(b)
        return move("intervals", high < lower or higher < low, difference=difference)
    return move("no interval", None, difference=difference, seeds=len(differences))


def _by_seed(criterion: Entry) -> dict[Any, float]:
    """What each run gave, by its seed; a run without a number is left out."""
    pairs = zip(criterion["seeds"], criterion["by_seed"], strict=True)
    return {seed: value for seed, value in pairs if value is not None}


def _ends(criterion: Entry) -> tuple[float, float]:
    low, high = criterion["interval"]
    return (-math.inf if low is None else low, math.inf if high is None else high)


def _equal(a: float | None, b: float | None) -> bool:
    return a is b if a is None or b is None else _difference(a, b) == 0


def _difference(a: float, b: float) -> float:
    """b − a; rounding is no difference."""
    return 0.0 if np.isclose(a, b, rtol=_ROUNDING, atol=0.0) else float(b) - float(a)
