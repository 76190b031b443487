"""``attnlab reproduce``: put the claims of the papers to the test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from attnlab.lab import Claim, Claims, ClaimSettings, Option
from attnlab.papers import GROUPS, ROTTEN_TOMATOES, claims, resolve
from attnlab.report import Book

_HELP = """Run the sweeps of some claims (all by default), judge them, and write a page.

Writes OUT/index.html and the pages behind it, OUT/record.json, the figures and the data. Interrupted at any moment and
started again, it resumes; started again when finished, it computes nothing again.

Examples:

    attnlab reproduce

    attnlab reproduce lu2021 --scale paper --out paper

    attnlab reproduce laws.identity --seeds 32

    attnlab reproduce liu2021.flatness_known --until decided

    attnlab reproduce lu2021 --corpus rotten-tomatoes

    attnlab reproduce lu2021 --corpus folder-with-sst --out sst
"""


@dataclass(frozen=True)
class ReproduceSettings(ClaimSettings):
    """Which claims, and how they are put to the test."""

    names: Annotated[
        tuple[str, ...], Option(f"Groups ({', '.join(GROUPS)}) or claims' ids.", argument=True)
    ] = ()
    corpus: Annotated[
        str | None,
        Option(
            f"Add the claims about labelled texts, on {ROTTEN_TOMATOES} (of the data extra), on a "
            "file, or on a folder with training, validation and test file (SST).",
            metavar="NAME|PATH",
        ),
    ] = None

    def claims(self, known: Callable[[], Mapping[str, Claim]]) -> Sequence[Claim]:
        """The claims that are named."""
        return resolve(self.names, corpus=self.corpus)


def _book() -> Book:
    from attnlab.papers.book import BOOK  # a list of commands needs none of its texts

    return BOOK


question = Claims(
    lambda: claims(ROTTEN_TOMATOES),
    name="reproduce",
    settings=ReproduceSettings,
    help=_HELP,
    told=_book,
)
