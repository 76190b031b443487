"""Questions that a user can ask, a command each. A question is found by its place: add a file.

Every module whose name does not begin with an underscore defines ``question``, an experiment whose
settings are the command's options. What needs JAX stands in a work module beside it.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab import Experiment

if TYPE_CHECKING:
    from attnlab.lab import Record
    from attnlab.report import Drawing

__all__ = ["ask", "figure", "questions"]


@cache
def questions() -> dict[str, Experiment]:
    """Every question by the name of its command."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            question = importlib.import_module(f"{__name__}.{info.name}").question
            found[question.name] = question
    return found


def ask(
    name: str,
    folder: str | Path,
    *,
    processes: int | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Record:
    """Ask the question of a command from Python; ``settings`` are its options by their names.

    Returns the record: data sets, answers, and where the page lies. ``attnlab.lab.run`` has more
    to choose from, such as the executor.
    """
    known = questions()
    if name not in known:
        raise AttnlabError(f"no question {name!r}; expected one of {', '.join(known)}")
    chosen = known[name].settings(**settings)
    return al.lab.run(known[name], chosen, folder, processes=processes, progress=progress)


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
        _check_known(wanted, [entry["id"] for entry in record.content["claims"]], f"{folder} has")
        record = replace(record, content={**record.content, "claims": entries})
    sections = {section.id: section for section in known[record.experiment].sections(record)}
    _check_known(wanted, [s.id for s in sections.values() if s.figures], f"{folder} has figures of")
    figures = {one.id: one for one in sections[wanted].figures}
    _check_known(own or next(iter(figures)), list(figures), f"{wanted} has the figures")
    return al.report.Drawing(figures[own or next(iter(figures))])


def _check_known(name: str, known: list[str], where: str) -> None:
    if name not in known:
        found = ", ".join(known) or "none (was it run?)"
        raise AttnlabError(f"no figure under {name!r}: {where} {found}")
