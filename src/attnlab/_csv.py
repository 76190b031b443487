"""CSV that a spreadsheet shows and does not calculate."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def write_csv(target: TextIO, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows; text that a spreadsheet would take for a formula gets an apostrophe in front.

    Numbers stay as they are, also those that are given as text, such as the class ``-1``.

    >>> import io
    >>> target = io.StringIO()
    >>> write_csv(target, [["=1+2", "-1", -0.5, "fine"]])
    >>> target.getvalue()
    "'=1+2,-1,-0.5,fine\\r\\n"
    """
    csv.writer(target).writerows([escaped(cell) for cell in row] for row in rows)


def escaped(cell: Any) -> Any:
    """A cell that is no formula."""
    if not isinstance(cell, str) or not cell.startswith(_FORMULA) or _NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"
