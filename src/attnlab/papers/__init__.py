"""Claims, one file each, by paper. A claim is found by its place: add a file, and it is listed.

Each folder is a paper (or a group of our own): ``sweeps.py`` has grids and declared variables that
its claims share, ``settings.py`` the settings of its work functions, ``runs.py`` (or several
``…_runs.py``) the work functions themselves, the only modules that load JAX, ``figures.py`` the
figures that several claims draw, ``story.py`` and ``derivations.py`` what the site tells about the
paper. Every other module defines ``claim``, or, for a claim about
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
from pathlib import Path

from attnlab._errors import AttnlabError
from attnlab.lab import Claim, Provenance

__all__ = [
    "claims",
    "resolve",
]

GROUPS = ("laws", "lu2021", "liu2021", "beyond")
ROTTEN_TOMATOES = "rotten-tomatoes"  # the corpus that comes with the data extra
_SHARED = ("settings", "sweeps", "runs", "figures", "story", "derivations")

# Most thresholds are the prototype's acceptance figures. A threshold that entered in the same commit
# as what it judges counts as set after a look: that it was not cannot be shown (docs/ledger.md).
PROTOTYPE = Provenance("after", "2026-11-16", "a prototype's runs (docs/theory.md)")


def restated(before: str) -> Provenance:
    """The threshold stayed when version 0.1's runs were known, its statistic became another."""
    return Provenance("after", "2026-11-18", "the runs of version 0.1, seeds from 0 on", before)


@cache
def _places() -> dict[str, str]:
    """The module of every claim by the claim's id, group by group; nothing is imported."""
    (root,) = map(Path, __path__)
    found = {}
    for group in GROUPS:
        for info in pkgutil.iter_modules([str(root / group)]):
            if not info.name.startswith("_") and not info.name.endswith(_SHARED):
                found[f"{group}.{info.name}"] = f"{__name__}.{group}.{info.name}"
    return found


def claims(corpus: str | None = None) -> dict[str, Claim]:
    """Every claim by id, in the order of the papers; those about texts only with a ``corpus``.

    A corpus is ``"rotten-tomatoes"``, a file of labelled texts, or a folder with training,
    validation and test file.
    """
    return _loaded(_places(), corpus)


def _loaded(names: Iterable[str], corpus: str | None) -> dict[str, Claim]:
    options = f" --corpus {shlex.quote(corpus or '')}"
    found = []
    for name in names:
        module = importlib.import_module(_places()[name])
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
    known, given = _places(), list(names)
    wanted: list[str] = []
    for name in given:
        if name in GROUPS:
            wanted += [key for key in known if _group(key) == name]
        elif name in known:
            wanted.append(name)
        else:
            raise AttnlabError(_unknown(name))
    found = _loaded(dict.fromkeys(wanted) if given else known, corpus)
    absent = [name for name in given if name not in GROUPS and name not in found]
    if absent:
        raise AttnlabError(
            f"{absent[0]!r} is about texts: add --corpus {ROTTEN_TOMATOES}, or --corpus with a "
            "file or a folder of labelled texts"
        )
    return tuple(found.values())


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, [*GROUPS, *_places()], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"no claim or group {name!r}{hint} (see `attnlab claims`)"
