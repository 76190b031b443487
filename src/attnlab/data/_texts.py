"""Labelled texts, their places in files, and what was dropped."""

from __future__ import annotations

import dataclasses
import hashlib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from attnlab._errors import AttnlabError

EXAMPLES = 3
_SHOWN = 60


@dataclass(frozen=True)
class Example:
    """A text as an example: its place (``"reviews.csv, row 12"``) and its beginning."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text!r}"


@dataclass(frozen=True)
class Dropped:
    """The number of texts left out for one reason, and the first few of them.

    Reasons: ``empty``, ``unlabelled``, ``undecodable``, ``malformed``, ``duplicate``,
    ``contradictory duplicate``.
    """

    reason: str
    count: int
    examples: tuple[Example, ...]

    def __str__(self) -> str:
        return (
            f"{self.count} {self.reason} (first: {self.examples[0]})"
            if self.examples
            else f"0 {self.reason}"
        )


@dataclass(frozen=True)
class LabelValue:
    """A label as in the files, its type (``str``, ``int``, ``float``, ``bool``), and its class."""

    value: str
    kind: str
    name: str
    count: int


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts with their labels, in the order of the files.

    - ``texts``: n strings, as in the files; ``labels``: n class names, or ``()`` if read without
      labels.
    - ``rows``: (n,) the row of each in its file, counted from 1 as in a spreadsheet: a header is row
      1 and the first text row 2; a cell that spans several lines is one row. Without a header (JSON
      Lines, lines of text) it is the line, in Parquet the record.
    - ``files``: (n,) the index into ``names``, the files as given, with their ``formats`` and
      ``encodings``.
    - ``dropped``: what was left out; ``label_values``: the class of each label value; ``recoded``:
      lines that are not in the encoding of their file.

    >>> texts = Texts.of(["a fine film", "dull"], ["pos", "neg"])
    >>> texts
    Texts(2 texts, 2 classes: neg 1, pos 1)
    >>> texts.place(1)
    'text 2'
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    rows: Int[ndarray, "texts"]
    files: Int[ndarray, "texts"]
    names: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    encodings: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    label_values: tuple[LabelValue, ...] = ()
    recoded: tuple[Dropped, ...] = ()

    def __post_init__(self):
        if self.labels and len(self.labels) != len(self.texts):
            raise AttnlabError(
                f"got {len(self.texts)} texts but {len(self.labels)} labels; give one label per "
                "text"
            )

    @classmethod
    def of(cls, texts: Iterable[str], labels: Iterable[str] = ()) -> Texts:
        """Texts without files; row ``i`` is the i-th of them, from 1."""
        given = tuple(texts)
        return cls(
            given, tuple(labels), np.arange(1, len(given) + 1), np.zeros(len(given), np.int64)
        )

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        if not self.labels:
            return f"Texts({len(self)} texts without labels)"
        counts = self.class_counts
        shown = ", ".join(f"{name} {count}" for name, count in list(counts.items())[:8])
        return f"Texts({len(self)} texts, {len(counts)} classes: {shown}{', …' if len(counts) > 8 else ''})"

    @property
    def class_counts(self) -> dict[str, int]:
        """The number of texts of each class, in the order of ``classes``."""
        counts = Counter(self.labels)
        return {name: counts[name] for name in sorted(counts, key=class_order)}

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that occur."""
        return tuple(self.class_counts)

    @property
    def file_counts(self) -> tuple[int, ...]:
        """How many texts each of the files has."""
        return (
            tuple(np.bincount(self.files, minlength=len(self.names)).tolist()) if self.names else ()
        )

    def place(self, i: int) -> str:
        """The place of text ``i``, for messages."""
        return (
            f"{self.names[self.files[i]]}, row {self.rows[i]}"
            if self.names
            else f"text {self.rows[i]}"
        )

    def example(self, i: int) -> Example:
        """Text ``i``, shortened."""
        return Example(self.place(i), shortened(self.texts[i]))

    def take(self, chosen: Sequence[int] | Int[ndarray, "chosen"]) -> Texts:
        """The given texts, by number, in that order; ``dropped`` is kept."""
        places = np.asarray(chosen, np.int64)
        if places.size and not 0 <= places.min() <= places.max() < len(self):
            raise AttnlabError(
                f"text numbers must lie in 0..{len(self) - 1}, got {places.min()}..{places.max()}"
            )
        return dataclasses.replace(
            self,
            texts=tuple(self.texts[i] for i in places),
            labels=tuple(self.labels[i] for i in places) if self.labels else (),
            rows=self.rows[places],
            files=self.files[places],
        )

    def with_dropped(self, *more: Dropped) -> Texts:
        """The same with further entries in ``dropped``, except those of count zero."""
        return dataclasses.replace(
            self, dropped=self.dropped + tuple(entry for entry in more if entry.count)
        )


class DroppedRows:
    """Collects dropped texts by reason: all are counted, the first few are kept."""

    def __init__(self):
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[Example]] = {}

    def add(self, reason: str, place: str, text: object) -> None:
        """Add one text."""
        self._counts[reason] += 1
        examples = self._examples.setdefault(reason, [])
        if len(examples) < EXAMPLES:
            examples.append(Example(place, shortened(text)))

    def add_all(self, other: DroppedRows) -> None:
        """Add what was collected elsewhere."""
        for entry in other.entries():
            self._counts[entry.reason] += entry.count
            examples = self._examples.setdefault(entry.reason, [])
            examples += entry.examples[: EXAMPLES - len(examples)]

    def entries(self) -> tuple[Dropped, ...]:
        """One entry per reason, in the order in which they first occurred."""
        return tuple(
            Dropped(reason, count, tuple(self._examples[reason]))
            for reason, count in self._counts.items()
        )

    def record(self) -> list[dict[str, Any]]:
        """All of it, for JSON."""
        return [dataclasses.asdict(entry) for entry in self.entries()]

    @classmethod
    def of(cls, record: Iterable[Mapping[str, Any]]) -> DroppedRows:
        """The inverse of ``record``."""
        rows = cls()
        for entry in record:
            rows._counts[entry["reason"]] = int(entry["count"])
            rows._examples[entry["reason"]] = [Example(**example) for example in entry["examples"]]
        return rows


def drop_duplicates(texts: Texts) -> Texts:
    """Keep each text once; texts that differ only in white space are equal.

    Equal texts of one class: the first is kept, the others are counted as ``duplicate``. Equal
    texts of several classes: none is kept, all are counted as ``contradictory duplicate``.

    >>> texts = Texts.of(["good", " good ", "so so", "so  so", "bad"], ["pos", "pos", "pos", "neg", "neg"])
    >>> kept = drop_duplicates(texts)
    >>> kept.texts, [(entry.reason, entry.count) for entry in kept.dropped]
    (('good', 'bad'), [('duplicate', 1), ('contradictory duplicate', 2)])
    """
    groups = equal_texts(texts.texts)
    first: dict[int, int] = {}
    contradictory: set[int] = set()
    for i, group in enumerate(groups):
        before = first.setdefault(group, i)
        if texts.labels and texts.labels[i] != texts.labels[before]:
            contradictory.add(group)
    dropped, kept = DroppedRows(), []
    for i, group in enumerate(groups):
        if group in contradictory:
            dropped.add("contradictory duplicate", texts.place(i), texts.texts[i])
        elif first[group] != i:
            dropped.add("duplicate", texts.place(i), texts.texts[i])
        else:
            kept.append(i)
    if not kept:
        raise AttnlabError(
            f"all {len(texts)} texts occur with several labels "
            f"({dropped.entries()[0].examples[0]}): nothing is left to learn from; check the label "
            "column"
        )
    return texts.take(kept).with_dropped(*dropped.entries())


def text_key(text: str) -> bytes:
    """A key that is equal for texts that are equal up to white space and Unicode normalisation."""
    normal = " ".join(text.split())
    if not normal.isascii():
        normal = unicodedata.normalize("NFC", normal)
    # A digest instead of the text, which would hold a large corpus in memory twice.
    return hashlib.blake2b(normal.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def equal_texts(texts: Iterable[str]) -> list[int]:
    """A number per text, equal for equal texts, in the order of first occurrence."""
    numbers: dict[bytes, int] = {}
    return [numbers.setdefault(text_key(text), len(numbers)) for text in texts]


def shortened(text: object, most: int = _SHOWN) -> str:
    """The beginning of a text on one line, without control characters of a terminal."""
    head = " ".join(str(text)[: 8 * most].split())
    clean = "".join(
        "\ufffd" if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") else c for c in head
    )
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def class_order(name: str) -> tuple[int, float, str]:
    """The order of class names: numbers by value, then words by letters."""
    try:
        value = float(name)
    except ValueError:
        return 1, 0.0, name
    return (0, value, name) if np.isfinite(value) else (1, 0.0, name)
