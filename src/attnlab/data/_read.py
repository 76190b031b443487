"""Reads users' labelled texts; rows that cannot be used are reported."""

from __future__ import annotations

import math
import re
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.data._columns import Wanted, shown
from attnlab.data._compressed import LONGEST, most_bytes, too_much
from attnlab.data._formats import guess_format, read_rows
from attnlab.data._sources import BROKEN, Source, too_long
from attnlab.data._texts import Dropped, DroppedRows, LabelValue, Texts, class_order

_WHOLE = re.compile(r"([+-]?\d+)\.0+")
_MISSING = ("", "nan", "NaN")
_ROW_BYTES = 64  # that a row takes besides its text
MANY_CLASSES = 50


class TooManyRows(AttnlabError):
    """There are more rows than asked for."""


def read_texts(
    files: str | Path | Iterable[str | Path],
    *,
    text: str | None = None,
    label: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    labelled: bool = True,
    header: bool = True,
    classes: Sequence[str] | None = None,
    max_classes: int = MANY_CLASSES,
    most_rows: int | None = None,
) -> Texts:
    """Read texts with their labels from one file or several.

    - ``files``: CSV, TSV, JSON Lines, Parquet (needs ``attnlab[parquet]``) or lines that start with
      their label, plain or compressed by gzip, bzip2, xz or zstd (needs ``attnlab[parquet]``), on
      this machine or at URLs (needs ``attnlab[remote]``). ``format`` is ``"csv"``, ``"tsv"``,
      ``"jsonl"``, ``"parquet"`` or ``"lines"``; ``None`` uses the file's extension, then its first
      lines.
    - ``text``, ``label``: names of the columns; guessed only if unambiguous. ``header=False``: the
      first row of CSV and TSV is data, and columns are called ``"1"``, ``"2"``, ….
    - ``encoding``: ``None`` uses the byte order mark, then UTF-8, and cp1252 for lines that are not
      UTF-8; ``encodings`` of the result holds the choice, ``recoded`` the lines of a file whose
      others are UTF-8. Rows with undecodable bytes are dropped and counted.
    - ``labelled=False`` reads only texts; lines are then whole texts.
    - ``classes``: the expected classes (those of the training file); another label is an error.
      Without it, fewer than 2 or more than ``max_classes`` classes are an error: it may be the wrong
      column. ``most_rows``: more are an error.

    A label becomes the name of a class: surrounding white space is removed; ``1``, ``1.0``, ``"1"``
    become ``"1"``; true and ``"True"`` become ``"true"``. The map is kept in ``label_values``. Rows
    with missing labels (empty, null, NaN) are dropped.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "reviews.csv"
    >>> _ = file.write_text("review,sentiment\\na fine film,pos\\ndull,neg\\n,pos\\n")
    >>> texts = read_texts(file)
    >>> texts, texts.rows.tolist(), [(entry.reason, entry.count) for entry in texts.dropped]
    (Texts(2 texts, 2 classes: neg 1, pos 1), [2, 3], [('empty', 1)])
    """
    wanted = Wanted(text, label if labelled else None, labelled, header)
    given = named_files(files)
    reader = RowReader(labelled)
    found: list[str] = []
    names: list[str] = []
    rows, numbers = array("q"), array("q")
    for number, one in enumerate(given):
        source = Source.of(one, encoding)
        for row, text_of_row, name in reader.rows(
            source, guess_format(source, wanted, format), wanted
        ):
            rows.append(row)
            found.append(text_of_row)
            names.append(name)
            numbers.append(number)
            if len(found) == most_rows:
                raise TooManyRows(f"{', '.join(given)}: there are more than {most_rows:,} rows")
    reader.check_some(len(found), given)
    texts = Texts(
        tuple(found),
        tuple(names) if labelled else (),
        np.array(rows, np.int64),
        np.array(numbers, np.int64),
        tuple(given),
        tuple(reader.formats),
        tuple(reader.encodings),
        reader.dropped.entries(),
        reader.label_values(),
        reader.recoded.entries(),
    )
    if labelled:
        check_classes(
            Counter(texts.labels),
            given,
            classes,
            max_classes,
            lambda i: (texts.place(i), texts.labels[i]),
        )
    return texts


def named_files(files: str | Path | Iterable[str | Path]) -> list[str]:
    """The given file or files as a list; an error if there is none."""
    if isinstance(files, str | Path) or hasattr(files, "fs"):  # which a URL's path object has
        return [str(files)]
    given = list(files)
    if not given:
        raise AttnlabError("no file was given: expected at least one with texts")
    return [str(one) for one in given]


class RowReader:
    """Reads files, and accepts rows or records why not. Its record can be stored and resumed.

    ``total``: rows of the current file so far, accepted or not.
    """

    def __init__(self, labelled: bool):
        self.labelled = labelled
        self.formats: list[str] = []
        self.encodings: list[str] = []
        self.dropped, self.recoded = DroppedRows(), DroppedRows()
        self.values: Counter[tuple[str, str, str]] = Counter()
        self.total, self._broken = 0, DroppedRows()
        self._keys: dict[tuple[type, Any], tuple[str, str, str]] = {}

    def rows(
        self, source: Source, format: str, wanted: Wanted, *, after: int = 0
    ) -> Iterator[tuple[int, str, str]]:
        """Row number, text and class of every accepted row; ``after``: rows to skip."""
        if not after:
            self.formats.append(format)
            self.encodings.append(source.encoding or "utf-8")
            self.total, self._broken = 0, DroppedRows()
            self.recoded.add_all(source.recoded)
        packed = source.compression is not None or format == "parquet"
        left = most_bytes(source.path) if packed else math.inf
        for row in islice(read_rows(source, format, wanted), after, None):
            self.total += 1
            text = row.text if isinstance(row.text, str) else _as_text(row.text)
            left -= len(text) + _ROW_BYTES
            if len(text) > LONGEST:
                raise too_long(f"{source.name}, row {row.number}", "text")
            if left < 0:
                raise too_much(source.path, source.name, "write it as plain CSV")
            problem = "malformed" if row.malformed else self._problem(text, row.label)
            if problem:
                self._note(problem, f"{source.name}, row {row.number}", text)
                continue
            yield row.number, text, self._class_of(row.label) if self.labelled else ""
        _check_rows(source, format, self.total, self._broken.entries())

    def _note(self, problem: str, place: str, text: str) -> None:
        self.dropped.add(problem, place, text)
        if problem in ("malformed", "undecodable"):
            self._broken.add(problem, place, text)

    def _problem(self, text: str, label: Any) -> str:
        """Why a row is not accepted; ``None`` if it is."""
        if not text or text.isspace():
            return "empty"
        if not text.isascii() and BROKEN.search(text):
            return "undecodable"
        if not self.labelled:
            return ""
        if label is None or label != label:  # NaN, of any type
            return "unlabelled"
        if isinstance(label, str):
            if label.strip() in _MISSING:
                return "unlabelled"
            if BROKEN.search(label):
                return "undecodable"
        return ""

    def _class_of(self, label: Any) -> str:
        # Cached: the same label occurs millions of times. This also shares one string per class.
        key = self._keys.get((type(label), label))
        if key is None:
            kind = "str" if isinstance(label, str) else type(label).__name__
            key = self._keys.setdefault(
                (type(label), label), (str(label), kind, sys.intern(class_name(label)))
            )
        self.values[key] += 1
        return key[2]

    def label_values(self) -> tuple[LabelValue, ...]:
        """Which value of a label became which class."""
        values = sorted(self.values.items(), key=lambda item: (class_order(item[0][2]), item[0]))
        return tuple(LabelValue(value, kind, name, count) for (value, kind, name), count in values)

    def check_some(self, taken: int, names: Sequence[str]) -> None:
        """Raise an error if no row was accepted."""
        if taken:
            return
        dropped = self.dropped.entries()
        what = "; ".join(map(str, dropped)) if dropped else "there is no row below the header"
        raise AttnlabError(
            f"{', '.join(names)}: no row with {'text and label' if self.labelled else 'text'}: "
            f"{what}"
        )

    def record(self) -> dict[str, Any]:
        """Everything that was recorded, for JSON."""
        return {
            "formats": self.formats,
            "encodings": self.encodings,
            "total": self.total,
            "dropped": self.dropped.record(),
            "recoded": self.recoded.record(),
            "broken": self._broken.record(),
            "values": [[*key, count] for key, count in self.values.items()],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> RowReader:
        """A reader of labelled rows that resumes where another stopped."""
        reader = cls(labelled=True)
        reader.formats, reader.encodings = list(record["formats"]), list(record["encodings"])
        reader.total = int(record["total"])
        reader.dropped, reader.recoded, reader._broken = (
            DroppedRows.of(record[name]) for name in ("dropped", "recoded", "broken")
        )
        reader.values = Counter(
            {(value, kind, name): count for value, kind, name, count in record["values"]}
        )
        return reader


def class_name(label: Any) -> str:
    """The class of a label of any type: ``1``, ``1.0``, ``" 1 "`` and ``"1.0"`` are one class.

    >>> [class_name(label) for label in (1, 1.0, "1.0", " pos ", True, "TRUE", 2.5)]
    ['1', '1', '1', 'pos', 'true', 'true', '2.5']
    """
    name = str(label).strip()
    if name.lower() in ("true", "false"):
        return name.lower()
    whole = _WHOLE.fullmatch(name)
    return whole[1] if whole else name


def _as_text(value: Any) -> str:
    """A cell of any type as in a CSV file; missing values are empty."""
    return "" if value is None or value != value else str(value)


def _check_rows(source: Source, format: str, total: int, broken: tuple[Dropped, ...]) -> None:
    """Raise an error if most rows cannot be read: the file has another format than assumed."""
    count = sum(entry.count for entry in broken)
    if count > total / 2:
        worst = max(broken, key=lambda entry: entry.count)
        remedy = (
            "name its encoding (--encoding)"
            if worst.reason == "undecodable"
            else "name its format (--format)"
        )
        raise AttnlabError(
            f"{source.name}: {count} of its {total} rows cannot be read as {format} in "
            f"{source.encoding or 'utf-8'}: {'; '.join(map(str, broken))}. Repair it, or {remedy}"
        )


def check_classes(
    counts: Mapping[str, int],
    files: Sequence[str],
    classes: Sequence[str] | None,
    max_classes: int,
    row: Callable[[int], tuple[str, str]],
) -> None:
    """Raise an error for a label outside ``classes``, or for a column that does not look like labels.

    ``counts``: rows of each class; ``row``: place and class of the i-th row.
    """
    total, found = sum(counts.values()), sorted(counts, key=class_order)
    if classes is not None:
        known = set(classes)
        if set(found) <= known:
            return
        place, name = next(each for each in map(row, range(total)) if each[1] not in known)
        raise AttnlabError(
            f"{place}: the label {shown([name])} is not one of the classes {shown(list(classes))}"
        )
    names = ", ".join(files)
    if len(found) < 2:
        raise AttnlabError(
            f"{names}: all {total} rows have the same label {shown(found, 1)}; classification needs at "
            "least 2 classes: is it the right column (--label)?"
        )
    if len(found) > max_classes or (len(found) == total > 2):
        raise AttnlabError(
            f"{names}: {total} rows have {len(found)} different labels ({shown(found, 4)}); "
            f"expected 2 to {max_classes} classes with several rows each: is it the right column "
            "(--label)?"
        )
