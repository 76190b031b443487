"""Every claim by name and by group."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from attnlab._errors import AttnlabError
from attnlab.claims._beyond import BEYOND
from attnlab.claims._claim import Claim
from attnlab.claims._guidelines import ENTROPY_CLAIMS, GUIDELINES
from attnlab.claims._laws import LAWS
from attnlab.claims._liu2021 import LIU2021
from attnlab.claims._liu2021_landscape import LANDSCAPE
from attnlab.claims._lu2021 import LU2021

GROUPS: dict[str, tuple[Claim, ...]] = {
    "laws": LAWS,
    "lu2021": LU2021,
    "liu2021": (*LIU2021, *LANDSCAPE, *GUIDELINES),
    "beyond": (*BEYOND, *ENTROPY_CLAIMS),
}
CLAIMS: dict[str, Claim] = {claim.id: claim for group in GROUPS.values() for claim in group}


def resolve(names: Iterable[str]) -> tuple[Claim, ...]:
    """The claims that names of groups and claims stand for, each once, in the catalogue's order;
    all for no name.

    >>> [claim.id for claim in resolve(["lu2021.sen", "laws.identity"])]
    ['laws.identity', 'lu2021.sen']
    """
    known = CLAIMS
    wanted: set[str] = set()
    given = list(names)
    for name in given:
        if name in GROUPS:
            wanted |= {key for key in known if key.partition(".")[0] == name}
        elif name in known:
            wanted.add(name)
        else:
            near = difflib.get_close_matches(name, [*GROUPS, *known], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttnlabError(f"no claim or group {name!r}{hint} (see `attnlab claims`)")
    return tuple(claim for key, claim in known.items() if key in wanted or not given)
