"""Questions that a user can ask, a command each. A question is found by its place: add a file.

Every module whose name does not begin with an underscore defines ``question``, an experiment whose
settings are the command's options. What needs JAX stands in a work module beside it.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab import Experiment

if TYPE_CHECKING:
    from attnlab.lab import Record

__all__ = ["ask", "questions"]


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
