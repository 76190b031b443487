"""Numbers of a record in a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attnlab._errors import AttnlabError
from attnlab.report import number

_PLACE = re.compile(r"\{([a-z0-9_]+\.[a-z0-9_]+):([^{}]+)\}")


def fill(text: str, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """A text with ``{claim.id:criterion}`` replaced by what was measured there, and
    ``{claim.id:verdict}`` by the verdict; ``entries`` are the record's, by claim.

    Of a claim that was not run, the text says so.

    >>> entry = {"verdict": "holds", "criteria": [{"name": "max", "statistic": 0.0034, "bounded": ""}]}
    >>> fill("At most {lu2021.sen:max}: it {lu2021.sen:verdict}.", {"lu2021.sen": entry})
    'At most 0.0034: it holds.'
    >>> fill("At most {lu2021.sen:max}.", {})
    'At most [not run].'
    """

    def value(found: re.Match[str]) -> str:
        entry, name = entries.get(found[1]), found[2]
        if entry is None or entry["verdict"] == "not run":
            return "[not run]"
        if name == "verdict":
            return entry["verdict"]
        for criterion in entry["criteria"]:
            if criterion["name"] == name:
                return number(criterion["statistic"])
        known = ", ".join(repr(c["name"]) for c in entry["criteria"])
        raise AttnlabError(
            f"the text asks for {name!r} of {found[1]}; expected 'verdict' or one of {known}"
        )

    return _PLACE.sub(value, text)
