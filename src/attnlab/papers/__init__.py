"""Claims, one file each, by paper. A claim is found by its place: add a file, and it is listed.

Each folder is a paper (or a group of our own): ``sweeps.py`` has grids and declared variables that
its claims share, ``settings.py`` the settings of its work functions, ``runs.py`` (or several
``…_runs.py``) the work functions themselves, the only modules that load JAX, ``figures.py`` the
figures that several claims draw. Every other module defines ``claim``, or, for a claim about
labelled texts, a function ``claim_on(corpus)``.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import shlex
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from types import ModuleType

from attnlab._errors import AttnlabError
from attnlab.lab import Claim

__all__ = ["GROUPS", "ROTTEN_TOMATOES", "claims", "resolve"]

GROUPS = ("laws", "lu2021", "liu2021", "beyond")
ROTTEN_TOMATOES = "rotten-tomatoes"  # the corpus that comes with the data extra
_SHARED = ("settings", "sweeps", "runs", "figures")


@cache
def _modules() -> tuple[ModuleType, ...]:
    """The modules that define a claim, group by group."""
    found = []
    for group in GROUPS:
        package = importlib.import_module(f"attnlab.papers.{group}")
        for info in pkgutil.iter_modules(package.__path__):
            if not info.name.startswith("_") and not info.name.endswith(_SHARED):
                found.append(importlib.import_module(f"{package.__name__}.{info.name}"))
    return tuple(found)


def claims(corpus: str | None = None) -> dict[str, Claim]:
    """Every claim by id, in the order of the papers; those about texts only with a ``corpus``.

    A corpus is ``"rotten-tomatoes"``, a file of labelled texts, or a folder with training,
    validation and test file.
    """
    options = " --corpus" if corpus == ROTTEN_TOMATOES else f" --corpus {shlex.quote(corpus or '')}"
    found = []
    for module in _modules():
        if hasattr(module, "claim"):
            found.append(module.claim)
        elif corpus is not None:
            found.append(replace(module.claim_on(corpus), options=options))
    found.sort(key=lambda claim: (GROUPS.index(_group(claim.id)), claim.rank, claim.id))
    return {claim.id: claim for claim in found}


def _group(name: str) -> str:
    return name.partition(".")[0]


def resolve(names: Iterable[str], *, corpus: str | None = None) -> tuple[Claim, ...]:
    """The claims that names of groups and claims stand for, each once, in order; all for no name.

    >>> [claim.id for claim in resolve(["lu2021.sen", "laws.identity"])]
    ['laws.identity', 'lu2021.sen']
    >>> [claim.id for claim in resolve(["lu2021.text_sen"], corpus="rotten-tomatoes")]
    ['lu2021.text_sen']
    """
    known, given = claims(corpus), list(names)
    wanted: set[str] = set()
    for name in given:
        if name in GROUPS:
            wanted |= {key for key in known if _group(key) == name}
        elif name in known:
            wanted.add(name)
        else:
            raise AttnlabError(_unknown(name, list(known)))
    return tuple(claim for key, claim in known.items() if key in wanted or not given)


def _unknown(name: str, known: list[str]) -> str:
    if name in claims(ROTTEN_TOMATOES):
        return f"{name!r} is about texts: add --corpus, or --corpus FOLDER for SST's files"
    near = difflib.get_close_matches(name, [*GROUPS, *known], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"no claim or group {name!r}{hint} (see `attnlab claims`)"
