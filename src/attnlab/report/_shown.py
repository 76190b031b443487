"""Users' text made safe to show, counts and shares in words, plain tables, why a part is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attnlab.report._heat import heat_table
from attnlab.report._page import Figure, Grid
from attnlab.report._prepare import short
from attnlab.report._text import number

WORD = 32  # characters of a word that are shown
LINE = 120  # characters of a text that are shown
_TEXT = 4000  # characters of a sentence of ours
# Control characters, half of a surrogate pair (a file name that is no text), and marks that turn
# the direction of all that follows: none can be shown, and some would break the page or its file.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def shortened(text: Any, most: int = WORD) -> str:
    """A user's text on one line: cut to ``most`` characters, with what cannot be shown replaced.

    >>> shortened("a" * 1_000_000, 4), shortened("not\\x00 so\\n good"), shortened("\\u202eevil")
    ('aaa…', 'not� so good', '�evil')
    """
    text = str(text)
    cut = text[:most] if len(text) <= most else f"{text[: most - 1]}…"
    return _UNSEEN.sub("\ufffd", " ".join(cut.split()))


def harmless(value: Any) -> Any:
    """The same record with every text in it made safe to show, and a very long one cut.

    >>> harmless({"a": ["x\\x00", 1], "b": None})
    {'a': ['x�', 1], 'b': None}
    """
    if isinstance(value, str):
        cut = value if len(value) <= _TEXT else f"{value[: _TEXT - 1]}…"
        return _UNSEEN.sub("\ufffd", cut)
    if isinstance(value, Mapping):
        return {harmless(key): harmless(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [harmless(item) for item in value]
    return value


def distinct(names: Iterable[str]) -> list[str]:
    """Names of which none stands twice: texts that differ may be equal once they are cut.

    >>> distinct(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    found: dict[str, None] = {}
    for name in names:
        own, k = name, 1
        while own in found:
            k += 1
            own = f"{name} ({k})"
        found[own] = None
    return list(found)


def counted(value: Any) -> str:
    """A count as a person writes it.

    >>> counted(None), counted(25000)
    ('–', '25\u202f000')
    """
    return (
        "–" if value is None or not np.isfinite(value) else f"{int(value):,}".replace(",", "\u202f")
    )


def percent(value: Any) -> str:
    """A share in per cent.

    >>> percent(0.1234), percent(None), percent(1.0)
    ('12.3\xa0%', '–', '100\xa0%')
    """
    return (
        "–" if value is None or not np.isfinite(value) else f"{number(100 * float(value))}\u00a0%"
    )


def quoted(words: Iterable[Any]) -> str:
    """Words of the texts in a sentence of ours, each isolated so that right-to-left script turns
    nothing else.

    >>> quoted(["good", "bad"]).replace("\u2068", "").replace("\u2069", "")
    '“good”, “bad”'
    """
    return ", ".join(f"“\u2068{shortened(word)}\u2069”" for word in words)


def plain_table(
    rows: Sequence[str],
    columns: Mapping[str, Sequence[Any]],
    *,
    id: str,
    title: str,
    caption: str = "",
    shown: Mapping[str, Sequence[str]] | None = None,
    tones: Mapping[str, Sequence[str]] | None = None,
) -> Figure:
    """Columns of numbers and words under their names; ``shown`` gives the words for a column whose
    numbers are saved.

    ``tones``: column → ``h0`` … ``h4`` or nothing for each row.

    >>> table = plain_table(["a"], {"share": [0.5]}, id="t", title="t", shown={"share": ["50 %"]})
    >>> table.grid.cells, table.table["share"]
    ((('50 %',),), [0.5])
    """
    words = {name: (shown or {}).get(name, values) for name, values in columns.items()}
    cells = [[words[name][k] for name in columns] for k in range(len(rows))]
    figure = heat_table(
        rows,
        list(columns),
        cells,
        id=id,
        title=title,
        caption=caption,
        tones=[["" for _ in columns] for _ in rows],
    )
    saved = {"": list(rows)} | {name: _saved(values) for name, values in columns.items()}
    grid = figure.grid
    if tones and grid:
        marks = tuple(
            tuple(tones[name][k] if name in tones else "" for name in columns)
            for k in range(len(rows))
        )
        grid = Grid(grid.rows, grid.columns, grid.cells, marks)
    return replace(figure, table=saved, grid=grid)


def _saved(values: Sequence[Any]) -> list[Any]:
    return [
        value if value is None or isinstance(value, str) else short([value])[0] for value in values
    ]


def missing(
    wanted: Mapping[str, str], there: Iterable[str], absent: Mapping[str, str], *, section: str
) -> tuple[str, ...]:
    """Why parts of a section are not shown: each part's own reason, then the section's for all
    others.

    ``wanted``: name of the data → what it would show.

    >>> missing({"curves": "Learning curves", "needed": "Labels needed"}, [], {"pays": "too few rows."}, section="pays")
    ('Learning curves, labels needed: not shown, since too few rows.',)
    """
    lost = [name for name in wanted if name not in there]
    said = [
        f"{wanted[name]}: not shown, since {_reason(absent[name])}."
        for name in lost
        if name in absent
    ]
    rest = [wanted[name] for name in lost if name not in absent]
    if not rest:
        return tuple(said)
    listed = ", ".join([rest[0], *(f"{name[0].lower()}{name[1:]}" for name in rest[1:])])
    why = (
        f"not shown, since {_reason(absent[section])}"
        if section in absent
        else "not part of this study"
    )
    return (*said, f"{listed}: {why}.")


def _reason(text: str) -> str:
    return str(text).strip().rstrip(".")
