"""Numbers of a record in a text: what is written before a run, with figures from after it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from attnlab._errors import AttnlabError
from attnlab.report import interval, number

_PLACE = re.compile(r"\{([a-z0-9_]+\.[a-z0-9_]+)(?::([^{}!]+))?(?:!([a-z]+|%))?\}")
_OF_CRITERION = ("", "%", "interval", "threshold", "seeds")
_OF_CLAIM = ("", "verdict")
_BOUNDS = {"at least": "≥ ", "at most": "≤ ", "already met": "≤ "}


@dataclass(frozen=True)
class Place:
    """A place for a number: ``criterion`` of ``claim``, in a ``form``; without criterion it is about
    the claim.
    """

    claim: str
    criterion: str
    form: str

    def __post_init__(self):
        forms = _OF_CRITERION if self.criterion else _OF_CLAIM
        if self.form not in forms:
            known = ", ".join(repr(form) for form in forms if form)
            raise AttnlabError(
                f"{{{self.claim}…!{self.form}}}: unknown form {self.form!r}; expected one of {known}"
            )


def places(text: str) -> Iterator[Place]:
    """The places of a text in their order.

    >>> [place.criterion for place in places("a loss of {lu2021.convergence:training loss}")]
    ['training loss']
    """
    for found in _PLACE.finditer(text):
        yield _place(found)


def fill(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """The text with what the claims' ``entries`` in a record measured, by id.

    - ``{lu2021.sen:criterion}``: its statistic, of a control's criterion, too; ``…!%}``: in per cent;
      ``…!interval}``: with its interval; ``…!threshold}``; ``…!seeds}``: how many runs were usable;
    - ``{lu2021.sen}``: the title of what was found; ``{lu2021.sen!verdict}``: the verdict.

    What was not run says so.

    >>> entry = {"verdict": "holds", "title": "T", "criteria": [], "controls": []}
    >>> fill("{lu2021.sen!verdict}, {lu2021.rate!verdict}", {"lu2021.sen": entry})
    'holds, [not run: lu2021.rate]'
    """
    return _PLACE.sub(lambda found: _filled(_place(found), entries), text)


def _place(found: re.Match[str]) -> Place:
    claim, criterion, form = found.groups(default="")
    return Place(claim, criterion.strip(), form)


def _filled(place: Place, entries: Mapping[str, Mapping[str, Any]]) -> str:
    entry = entries.get(place.claim)
    if entry is None or entry["verdict"] == "not run":
        return f"[not run: {place.claim}]"
    if not place.criterion:
        found = entry.get("finding", {})
        title = found.get(entry["verdict"], entry["title"])
        return entry["verdict"] if place.form == "verdict" else title
    controls = [criterion for control in entry["controls"] for criterion in control["criteria"]]
    for criterion in (*entry["criteria"], *controls):
        if criterion["name"] == place.criterion:
            return _words(criterion, place.form)
    return f"[not measured: {place.criterion}]"  # a record of an older version


def _words(criterion: Mapping[str, Any], form: str) -> str:
    value, bounded, threshold = (criterion[name] for name in ("statistic", "bounded", "threshold"))
    if form == "seeds":
        return str(criterion["usable"])
    if form == "threshold":
        ends = threshold if isinstance(threshold, list) else [threshold]
        return " to ".join(number(end) for end in ends)
    if bounded == "not reached":
        return "not reached"
    if value is None:
        return "[not measured]"
    said = f"{number(100 * value)}\u00a0%" if form == "%" else number(value)
    said = f"{_BOUNDS.get(bounded, '')}{said}"
    if form != "interval" or criterion["interval"] is None:
        return said
    low, high = (
        missing if end is None else end
        for end, missing in zip(criterion["interval"], (-float("inf"), float("inf")), strict=True)
    )
    return f"{said} {interval((low, high))}"
