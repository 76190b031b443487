"""A figure of a stored result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.questions import questions

if TYPE_CHECKING:
    from attnlab.report import Drawing


def figure(name: str, folder: str | Path) -> Drawing:
    """A figure of what ``attnlab reproduce`` or another command left in a folder.

    ``name``: a claim, or a section of a page, whose first figure is taken; or ``"claim/figure"``.
    Nothing is computed.

        al.figure("lu2021.sen", "results").save("sen.pdf")
        al.figure("lu2021.sen/sen_theory", "results").table
    """
    record = al.lab.read_record(folder)
    known = questions()
    if record.experiment not in known:
        raise AttnlabError(
            f"{folder} holds a record of the experiment {record.experiment!r}, which is not a "
            f"command; expected one of {', '.join(known)}"
        )
    wanted, _, own = name.partition("/")
    if "claims" in record.content:  # draw that claim alone
        entries = [entry for entry in record.content["claims"] if entry["id"] == wanted]
        _check(wanted, [entry["id"] for entry in record.content["claims"]], f"{folder} has")
        record = replace(record, content={**record.content, "claims": entries})
    sections = {section.id: section for section in known[record.experiment].sections(record)}
    _check(wanted, [s.id for s in sections.values() if s.figures], f"{folder} has figures of")
    figures = {one.id: one for one in sections[wanted].figures}
    _check(own or next(iter(figures)), list(figures), f"{wanted} has the figures")
    return al.report.Drawing(figures[own or next(iter(figures))])


def _check(name: str, known: list[str], where: str) -> None:
    if name not in known:
        found = ", ".join(known) or "none (was it run?)"
        raise AttnlabError(f"no figure under {name!r}: {where} {found}")
