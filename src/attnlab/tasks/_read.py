"""Reading users' labelled texts: what is there is read, what is not is reported by row."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.tasks._columns import Wanted, shown
from attnlab.tasks._formats import guess_format, read_rows
from attnlab.tasks._sources import BROKEN, Source
from attnlab.tasks._texts import Dropped, DroppedRows, LabelValue, Texts, class_order

_WHOLE = re.compile(r"([+-]?\d+)\.0+")
_MISSING = ("", "nan", "NaN")
_MANY_CLASSES = 50


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
    max_classes: int = _MANY_CLASSES,
) -> Texts:
    """Read texts with their labels from one file or several.

    - ``files``: CSV, TSV, JSON Lines, Parquet (needs ``attnlab[parquet]``) or lines that begin with their label, each
      plain or compressed by gzip. ``format`` is ``"csv"``, ``"tsv"``, ``"jsonl"``, ``"parquet"`` or ``"lines"``;
      ``None`` goes by the file's ending, then by its first lines.
    - ``text``, ``label``: names of the columns; guessed only where there is no doubt. ``header=False``: the first row
      of CSV and TSV is data, and columns are called ``"1"``, ``"2"``, ….
    - ``encoding``: ``None`` takes the file's mark, then UTF-8, and cp1252 for what is not UTF-8; ``encodings`` of the
      result says which. Rows with bytes that are no characters are dropped and counted.
    - ``labelled=False`` reads texts alone; lines are then texts as a whole.
    - ``classes``: the classes that are expected (those of the training file); a label beyond them is an error. Without
      it, fewer than 2 or more than ``max_classes`` classes are an error: the column may be the wrong one.

    A label becomes the name of a class: white space around it goes; ``1``, ``1.0``, ``"1"`` are ``"1"``; true and
    ``"True"`` are ``"true"``. The map is kept in ``label_values``. Missing labels (empty, null, NaN) are dropped.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "reviews.csv"
    >>> _ = file.write_text("review,sentiment\\na fine film,pos\\ndull,neg\\n,pos\\n")
    >>> texts = read_texts(file)
    >>> texts, texts.rows.tolist(), [(entry.reason, entry.count) for entry in texts.dropped]
    (Texts(2 texts, 2 classes: neg 1, pos 1), [2, 3], [('empty', 1)])
    """
    given = [files] if isinstance(files, str | Path) else list(files)
    if not given:
        raise AttnlabError("no file was named: expected at least one with texts")
    wanted = Wanted(text, label if labelled else None, labelled, header)
    gathered = _Gathered(labelled)
    for number, one in enumerate(given):
        source = Source.of(one, encoding)
        gathered.read(number, source, guess_format(source, wanted, format), wanted)
    texts = gathered.texts_of([str(one) for one in given])
    if labelled:
        _check_classes(texts, classes, max_classes)
    return texts


class _Gathered:
    """What has been read so far."""

    def __init__(self, labelled: bool):
        self.labelled = labelled
        self.texts: list[str] = []
        self.labels: list[str] = []
        self.rows: list[int] = []
        self.files: list[int] = []
        self.formats: list[str] = []
        self.encodings: list[str] = []
        self.dropped = DroppedRows()
        self.values: Counter[tuple[str, str, str]] = Counter()
        self.names: dict[str, str] = {}

    def read(self, number: int, source: Source, format: str, wanted: Wanted) -> None:
        """Take every row of a file, or note why not."""
        self.formats.append(format)
        self.encodings.append(source.encoding or "utf-8")
        total, broken = 0, DroppedRows()
        for row in read_rows(source, format, wanted):
            total += 1
            place = f"{source.name}, row {row.number}"
            text = row.text if isinstance(row.text, str) else _as_text(row.text)
            problem = "malformed" if row.malformed else self._problem(text, row.label)
            if problem:
                for notes in (self.dropped, broken) if problem in ("malformed", "undecodable") else (self.dropped,):
                    notes.add(problem, place, text)
                continue
            self.texts.append(text)
            self.rows.append(row.number)
            self.files.append(number)
            if self.labelled:
                self.labels.append(self._class_of(row.label))
        _check_rows(source, format, total, broken.entries())

    def _problem(self, text: str, label: Any) -> str:
        """Why a row is not taken; nothing if it is."""
        if not text or text.isspace():
            return "empty"
        if not text.isascii() and BROKEN.search(text):
            return "undecodable"
        if not self.labelled:
            return ""
        if label is None or (isinstance(label, float) and math.isnan(label)):
            return "unlabelled"
        if isinstance(label, str):
            if label.strip() in _MISSING:
                return "unlabelled"
            if BROKEN.search(label):
                return "undecodable"
        return ""

    def _class_of(self, label: Any) -> str:
        name = class_name(label)
        kind = "str" if isinstance(label, str) else type(label).__name__
        self.values[str(label), kind, name] += 1
        # One string per class instead of one per row.
        return self.names.setdefault(name, name)

    def texts_of(self, names: list[str]) -> Texts:
        """All of it, or what became of the rows where none is left."""
        dropped = self.dropped.entries()
        if not self.texts:
            what = "; ".join(map(str, dropped)) if dropped else "there is no row below the header"
            raise AttnlabError(
                f"{', '.join(names)}: no row with {'text and label' if self.labelled else 'text'}: {what}"
            )
        values = sorted(self.values.items(), key=lambda item: (class_order(item[0][2]), item[0]))
        return Texts(
            tuple(self.texts),
            tuple(self.labels),
            np.asarray(self.rows, np.int64),
            np.asarray(self.files, np.int64),
            tuple(names),
            tuple(self.formats),
            tuple(self.encodings),
            dropped,
            tuple(LabelValue(value, kind, name, count) for (value, kind, name), count in values),
        )


def class_name(label: Any) -> str:
    """The class that a label means, whatever its type: ``1``, ``1.0``, ``" 1 "`` and ``"1.0"`` are one class.

    >>> [class_name(label) for label in (1, 1.0, "1.0", " pos ", True, "TRUE", 2.5)]
    ['1', '1', '1', 'pos', 'true', 'true', '2.5']
    """
    name = str(label).strip()
    if name.lower() in ("true", "false"):
        return name.lower()
    whole = _WHOLE.fullmatch(name)
    return whole[1] if whole else name


def _as_text(value: Any) -> str:
    """A cell that is no string, as it would stand in a CSV; missing values are empty."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)


def _check_rows(source: Source, format: str, total: int, broken: tuple[Dropped, ...]) -> None:
    """Refuse a file of which most cannot be understood: it is not what it was taken for."""
    count = sum(entry.count for entry in broken)
    if count > total / 2:
        worst = max(broken, key=lambda entry: entry.count)
        remedy = "name its encoding (--encoding)" if worst.reason == "undecodable" else "name its format (--format)"
        raise AttnlabError(
            f"{source.name}: {count} of its {total} rows cannot be read as {format} in {source.encoding or 'utf-8'}: "
            f"{'; '.join(map(str, broken))}. Repair it, or {remedy}"
        )


def _check_classes(texts: Texts, classes: Sequence[str] | None, max_classes: int) -> None:
    found = list(texts.classes)
    if classes is not None:
        known = set(classes)
        strange = next((i for i, name in enumerate(texts.labels) if name not in known), None)
        if strange is not None:
            raise AttnlabError(
                f"{texts.place(strange)}: the label {texts.labels[strange]!r} is not one of the classes "
                f"{shown(list(classes))}"
            )
        return
    if len(found) < 2:
        raise AttnlabError(
            f"{', '.join(texts.names)}: all {len(texts)} rows have the one label {found[0]!r}; classification needs at "
            "least 2 classes: is it the right column (--label)?"
        )
    if len(found) > max_classes or (len(found) == len(texts) > 2):
        raise AttnlabError(
            f"{', '.join(texts.names)}: {len(texts)} rows have {len(found)} different labels ({shown(found, 4)}); "
            f"expected 2 to {max_classes} classes with several rows each: is it the right column (--label)?"
        )
