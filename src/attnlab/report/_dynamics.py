"""Parts that the pages of several commands share, until each of them is an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.report._page import Card, Section
from attnlab.report._text import told


def again_section(about: Mapping[str, Any]) -> Section:
    """The command and the settings that give the same page."""
    return Section(
        id="again",
        title="Again",
        statement="The same configuration gives the same numbers.",
        command=str(about.get("command", "")),
        facts={str(key): told(value) for key, value in (about.get("settings") or {}).items()},
    )


def card_of_entry(entry: Mapping[str, Any]) -> Card:
    """The card of an entry of ``about["cards"]``."""
    return Card(
        label=str(entry["label"]),
        text=str(entry["text"]),
        verdict=entry.get("verdict"),
        headline=str(entry.get("headline", "")),
        measure=str(entry.get("measure", "")),
        note=str(entry.get("note", "")),
        link=str(entry.get("link", "")),
    )
