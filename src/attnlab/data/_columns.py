"""Finds the columns of text and label."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from attnlab._errors import AttnlabError

TEXT_NAMES = (
    "text",
    "review",
    "sentence",
    "content",
    "comment",
    "message",
    "tweet",
    "document",
    "body",
    "phrase",
)
MOST_COLUMNS = 2**20
_COMPARED = 1000  # columns among which a mistyped one is looked for
LABEL_NAMES = ("label", "sentiment", "class", "target", "category", "polarity", "topic")


@dataclass(frozen=True)
class Wanted:
    """What to read from a file: columns (``None``: to be guessed), whether labels, whether a header."""

    text: str | None
    label: str | None
    labelled: bool
    header: bool


def choose_columns(name: str, columns: Sequence[str], wanted: Wanted) -> tuple[int, int | None]:
    """The positions of text and label among a file's columns; guessed only if unambiguous."""
    if len(columns) > MOST_COLUMNS:
        raise AttnlabError(
            f"{name} has {len(columns):,} columns; expected at most {MOST_COLUMNS:,}, of which one "
            "holds the text: does it have line ends?"
        )
    clean = [column.strip() for column in columns]
    repeated = {column for column, count in Counter(clean).items() if column and count > 1}
    for asked in (wanted.text, wanted.label if wanted.labelled else None):
        if asked is not None and asked in repeated:
            raise AttnlabError(
                f"{name} has several columns called {asked!r}: rename all but one of them"
            )
    text = None if wanted.text is None else _named(name, clean, wanted.text, "text", wanted)
    label = None
    if wanted.labelled and wanted.label is not None:
        label = _named(name, clean, wanted.label, "label", wanted)
    if text is not None and text == label:
        raise AttnlabError(
            f"{name}: text and label are both the column {wanted.text!r}; name two columns"
        )
    text = _guess(clean, TEXT_NAMES, label) if text is None else text
    if wanted.labelled and label is None:
        label = _guess(clean, LABEL_NAMES, text)
    # Of two columns, one known is both known.
    if wanted.labelled and len(clean) == 2 and (text is None) != (label is None):
        text, label = (1 - label if text is None and label is not None else text), label
        label = 1 - text if label is None and text is not None else label
    if text is None and not wanted.labelled and len(clean) == 1:
        text = 0
    if text is None or (wanted.labelled and label is None):
        raise _unclear(name, clean, wanted, text is None)
    return text, label


def _named(name: str, columns: list[str], asked: str, what: str, wanted: Wanted) -> int:
    if asked in columns:
        return columns.index(asked)
    some = columns[:_COMPARED]
    near = difflib.get_close_matches(asked.lower(), [column.lower() for column in some], n=1)
    nearest = next((column for column in some if near and column.lower() == near[0]), None)
    hint = f"; did you mean {nearest!r}?" if nearest is not None else ""
    if len(columns) == 1 and not hint:
        hint = "; is another character between the columns, or another format?"
    if not wanted.header:
        hint += "; without a header columns are called by their numbers"
    raise AttnlabError(
        f"{name} has no column {asked!r} for the {what}: the columns are {shown(columns)}{hint}"
    )


def _guess(columns: list[str], names: Sequence[str], taken: int | None) -> int | None:
    """The only column with one of these names, or their plural."""
    known = {*names, *(f"{word}s" for word in names)}
    found = [i for i, column in enumerate(columns) if i != taken and column.lower() in known]
    return found[0] if len(found) == 1 else None


def _unclear(name: str, columns: list[str], wanted: Wanted, no_text: bool) -> AttnlabError:
    what, option = ("text", "--text") if no_text else ("label", "--label")
    header = (
        ""
        if not wanted.header
        else "; if its first row is not a header, give header=False (--no-header)"
    )
    return AttnlabError(
        f"{name}: it is not clear which column holds the {what}: the columns are {shown(columns)}. "
        f"Say {what}='…' ({option} …){header}"
    )


def shown(names: Sequence[str], most: int = 20) -> str:
    """A list of names for a message."""
    head = ", ".join(repr(n if len(n) <= 40 else n[:39] + "…") for n in names[:most])
    return head if len(names) <= most else f"{head}, … ({len(names)} in all)"
