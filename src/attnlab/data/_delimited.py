"""Reads rows of cells from CSV and TSV; errors name the row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from attnlab._errors import AttnlabError
from attnlab.data._compressed import LONGEST
from attnlab.data._sources import Source, too_long

DELIMITERS = (",", ";", "\t", "|")


def header_of(lines: Sequence[str], delimiter: str) -> tuple[list[str], float]:
    """The cells of the first row, and the share of rows that have as many."""
    rows = [cells for cells in csv.reader(lines, delimiter=delimiter) if cells]
    if not rows:
        return [], 0.0
    return rows[0], sum(len(cells) == len(rows[0]) for cells in rows) / len(rows)


def guess_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that cuts the first lines into rows of most equal width; a comma by default.

    >>> guess_delimiter(["text;label", "good, really good;pos", "bad;neg"])
    ';'
    """
    best, most = ",", 0.0
    for delimiter in DELIMITERS:
        header, equal = header_of(lines, delimiter)
        if len(header) > 1 and equal > most:
            best, most = delimiter, equal
    return best


def delimited_rows(source: Source, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Row number, from 1, and cells. Blank lines are counted but skipped."""
    if delimiter == "\t" and _is_rectangle(source):
        yield from _literal_rows(source)
        return
    # The limit is global to the process: restore it for other readers.
    limit = csv.field_size_limit(LONGEST)
    try:
        yield from _quoted_rows(source, delimiter)
    finally:
        csv.field_size_limit(limit)


def _quoted_rows(source: Source, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    lines = _RowLines(source)
    reader = csv.reader(lines, delimiter=delimiter)
    number, started, spanned = 0, 1, [""]
    try:
        for cells in reader:
            number += 1
            started = reader.line_num - len(lines.current) + 1
            spanned = lines.taken()
            if cells:
                yield number, cells
    except csv.Error as error:
        started = reader.line_num - len(lines.current) + 1
        raise AttnlabError(
            f"{source.name}, row {number + 1} (it starts in line {started}): {error}; check for "
            "a quote that is opened there and never closed"
        ) from error
    if _is_open(spanned, delimiter):
        raise AttnlabError(
            f"{source.name}, row {number} (it starts in line {started}): a quote is opened "
            f"there and never closed, which makes {len(spanned)} lines up to the end of the "
            'file one cell; close it, or write a quote within a quoted cell twice ("")'
        )


class _RowLines:
    """Iterates over lines and keeps those of the current row, up to what a row may hold."""

    def __init__(self, source: Source):
        self._source, self._size, self.current = source, 0, []

    def __iter__(self) -> Iterator[str]:
        first = 1
        for number, line in enumerate(self._source.lines(newline=""), 1):
            if not self.current:
                first, self._size = number, 0
            self.current.append(line)
            self._size += len(line)
            if self._size > LONGEST:
                raise too_long(f"{self._source.name}, lines {first} to {number}", "row")
            yield line

    def taken(self) -> list[str]:
        """The lines of the row that was just read."""
        lines, self.current = self.current, []
        return lines


def _is_open(lines: list[str], delimiter: str) -> bool:
    """Whether a row ends within a quoted cell."""
    try:
        for _ in csv.reader(lines, delimiter=delimiter, strict=True):
            pass
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False


def _is_rectangle(source: Source) -> bool:
    """Whether all lines have the same number of tabs: quotes are then literal characters.

    Tab-separated files are often written without quoting, and text may begin with a quote.
    """
    counts = set()
    for line in source.lines():
        if line.strip():
            counts.add(line.count("\t"))
            if len(counts) > 1:
                return False
    return len(counts) == 1


def _literal_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(source.lines(), 1):
        if line.strip():
            yield number, [_unquoted(cell) for cell in line.rstrip("\r\n").split("\t")]


def _unquoted(cell: str) -> str:
    """A cell without the quotes around it, if any."""
    if len(cell) < 2 or cell[0] != '"' or cell[-1] != '"':
        return cell
    inner = cell[1:-1]
    return cell if '"' in inner.replace('""', "") else inner.replace('""', '"')
