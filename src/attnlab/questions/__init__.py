"""Questions that a user can ask, a command each. A question is found by its place: add a file.

Every module whose name does not begin with an underscore defines ``question``, an experiment whose
settings are the command's options. What needs JAX stands in a work module beside it.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from attnlab.lab import Experiment

__all__ = ["questions"]


@cache
def questions() -> dict[str, Experiment]:
    """Every question by the name of its command."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if not info.name.startswith("_"):
            question = importlib.import_module(f"{__name__}.{info.name}").question
            found[question.name] = question
    return found
