"""Every claim by name and by group."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable
from dataclasses import replace

from attnlab._errors import AttnlabError
from attnlab.claims._beyond import BEYOND
from attnlab.claims._claim import Claim
from attnlab.claims._guidelines import ENTROPY_CLAIMS, GUIDELINES
from attnlab.claims._liu2021 import LIU2021
from attnlab.claims._liu2021_landscape import LANDSCAPE
from attnlab.claims._lu2021 import LU2021
from attnlab.claims._text import text_claims
from attnlab.claims._text_pooling import text_pooling_claim
from attnlab.studies import ROTTEN_TOMATOES

GROUPS: dict[str, tuple[Claim, ...]] = {
    "lu2021": LU2021,
    "liu2021": (*LIU2021, *LANDSCAPE, *GUIDELINES),
    "beyond": (*BEYOND, *ENTROPY_CLAIMS),
}
CLAIMS: dict[str, Claim] = {claim.id: claim for group in GROUPS.values() for claim in group}


def on_text(source: str = ROTTEN_TOMATOES) -> tuple[Claim, ...]:
    """The claims about real text on one source: ``"rotten-tomatoes"``, a file, or a folder of three
    files.
    """
    options = " --text" if source == ROTTEN_TOMATOES else f" --text {shlex.quote(source)}"
    return tuple(
        replace(claim, options=options)
        for claim in (*text_claims(source), text_pooling_claim(source))
    )


def resolve(names: Iterable[str], *, text: str | None = None) -> tuple[Claim, ...]:
    """The claims that names of groups and claims stand for, each once, in the catalogue's order;
    all for no name.

    ``text``: a source of labelled texts, with which the claims about real text join their groups.

    >>> [claim.id for claim in resolve(["lu2021.sen_init", "lu2021.sen"])]
    ['lu2021.sen', 'lu2021.sen_init']
    >>> [claim.id for claim in resolve(["lu2021.text_sen"], text="rotten-tomatoes")]
    ['lu2021.text_sen']
    """
    known = CLAIMS | ({} if text is None else {claim.id: claim for claim in on_text(text)})
    wanted: set[str] = set()
    given = list(names)
    for name in given:
        if name in GROUPS:
            wanted |= {key for key in known if key.partition(".")[0] == name}
        elif name in known:
            wanted.add(name)
        elif name in {claim.id for claim in on_text()}:
            raise AttnlabError(
                f"{name!r} is about real text: add --text, or --text FOLDER for SST's files"
            )
        else:
            near = difflib.get_close_matches(name, [*GROUPS, *known], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttnlabError(f"no claim or group {name!r}{hint} (see `attnlab claims`)")
    return tuple(claim for key, claim in known.items() if key in wanted or not given)
