"""The first pass over files of texts: rows are checked, split into words and written as numbers.

Only the distinct words of all texts and a few thousand rows are held in memory.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, islice
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt64
from numpy import ndarray

from attnlab._places import local_file
from attnlab.data._columns import Wanted
from attnlab.data._formats import guess_format
from attnlab.data._read import MANY_CLASSES, RowReader, check_classes, named_files
from attnlab.data._sources import Source
from attnlab.data._stream_spool import Spool
from attnlab.data._texts import Example, shortened, text_key
from attnlab.data._tokens import Tokenizer

BLOCK = 2**17  # rows from one entry of the journal to the next
_AT_ONCE = 4096  # rows that are held as strings, fewer where they have more characters than
_CHARACTERS = 2**22
_TOKENS = 2**23  # words that are sorted at one time
_COLUMNS = {
    "tokens": "int32",
    "sizes": "int32",
    "keys": "uint64",
    "labels": "int32",
    "rows": "int64",
    "texts": "uint8",
    "ends": "int64",
    "words": "uint8",
}


@dataclass(frozen=True)
class Reading:
    """The files of each part, how to read them, and the tokeniser."""

    files: Mapping[str, Sequence[str | Path]]
    wanted: Wanted
    format: str | None
    encoding: str | None
    words: Tokenizer

    def stamp(self) -> str:
        """A hash of all that the result depends on; of files, their names, sizes and times."""
        states = [(part, file, os.stat(local_file(file))) for part, file in self.listed()]
        asked = [
            self.wanted.text,
            self.wanted.label,
            self.wanted.header,
            self.format,
            self.encoding,
        ]
        files = [[part, file, state.st_size, state.st_mtime_ns] for part, file, state in states]
        return hashlib.sha256(json.dumps([files, asked, self.words.record()]).encode()).hexdigest()

    def listed(self) -> list[tuple[str, str]]:
        """Part and file, in the order of reading."""
        return [(part, file) for part, files in self.files.items() for file in named_files(files)]


@dataclass(frozen=True, eq=False)
class Rows:
    """All accepted rows, as numbers on disk, in the order of the files.

    Row ``i`` has the words ``words[tokens[starts[i]:starts[i] + sizes[i]]]``, is row ``rows[i]`` of
    its file, and has the class ``classes[labels[i]]``; rows have equal ``keys`` if their texts are
    equal up to white space. ``readers``: the reader of each part; ``begins``: the first row of each
    file of ``listed``.
    """

    spool: Spool
    listed: tuple[tuple[str, str], ...]
    begins: tuple[int, ...]
    readers: dict[str, RowReader]
    classes: tuple[str, ...]
    words: tuple[str, ...]

    @cached_property
    def keys(self) -> UInt64[ndarray, "rows 2"]:
        """128 bits for each text."""
        return self.spool.column("keys").reshape(-1, 2)

    @cached_property
    def labels(self) -> Int[ndarray, "rows"]:
        """The class of each row, by number."""
        return self.spool.column("labels")

    @cached_property
    def sizes(self) -> Int[ndarray, "rows"]:
        """The number of words of each row."""
        return self.spool.column("sizes")

    def blocks(self, size: int) -> Iterator[tuple[int, int, Int[ndarray, "tokens"]]]:
        """First row, row after the last, and words of consecutive blocks of at most ``size`` rows."""
        tokens, begin, first = self.spool.column("tokens"), 0, 0
        while first < len(self.labels):
            ends = np.cumsum(self.sizes[first : first + size], dtype=np.int64)
            rows = max(1, int(np.searchsorted(ends, _TOKENS, side="right")))
            count = int(ends[rows - 1])
            yield first, first + rows, tokens[begin : begin + count]
            first, begin = first + rows, begin + count

    def span(self, part: str) -> tuple[int, int]:
        """The rows of a part's files: the first, and the one after the last."""
        ends = (*self.begins[1:], len(self.labels))
        own = [
            (a, b)
            for (name, _), a, b in zip(self.listed, self.begins, ends, strict=True)
            if name == part
        ]
        return own[0][0], own[-1][1]

    def place(self, i: int) -> str:
        """The place of a row, for messages."""
        file = int(np.searchsorted(self.begins, i, side="right")) - 1
        return f"{self.listed[file][1]}, row {self.spool.column('rows')[i]}"

    def text_span(self, i: int) -> tuple[int, int]:
        """The span of a row's text among the bytes of all texts."""
        ends = self.spool.column("ends")
        return (int(ends[i - 1]) if i else 0), int(ends[i])

    def example(self, i: int) -> Example:
        """A row as an example for the report."""
        begin, end = self.text_span(i)
        raw = self.spool.column("texts")[begin:end].tobytes()
        return Example(self.place(i), shortened(raw.decode("utf-8", "surrogatepass")))


def read_rows_of(
    reading: Reading, spool_folder: Path, *, block: int = BLOCK, on_rows: Callable[[int], None]
) -> Rows:
    """Read all files to a spool; resumes from the last complete block of an interrupted call."""
    for _, name in reading.listed():
        if not os.path.isfile(local_file(name)):
            Source.of(
                name, reading.encoding
            )  # says what is wrong with it, before the others are read
    spool = Spool(spool_folder, _COLUMNS, stamp=reading.stamp())
    try:
        return _Pass(reading, spool, block, on_rows).run()
    except BaseException:
        spool.__exit__()
        raise


class _Pass:
    """One pass over all files, and its state."""

    def __init__(self, reading: Reading, spool: Spool, block: int, on_rows: Callable[[int], None]):
        self.reading, self.spool, self.block, self.on_rows = reading, spool, block, on_rows
        self.listed = reading.listed()
        state = spool.state or {
            "file": 0,
            "inside": False,
            "rows": 0,
            "begins": [],
            "readers": {},
            "classes": [],
        }
        self.file, self.inside, self.rows = (
            int(state["file"]),
            bool(state["inside"]),
            int(state["rows"]),
        )
        self.begins: list[int] = list(state["begins"])
        self.readers = {
            part: RowReader.from_record(record) for part, record in state["readers"].items()
        }
        self.classes: dict[str, int] = {name: i for i, name in enumerate(state["classes"])}
        lines = spool.column("words").tobytes().decode("ascii").splitlines()
        self.words: defaultdict[str, int] = defaultdict(
            None, {json.loads(line): i for i, line in enumerate(lines)}
        )
        self.words.default_factory = self.words.__len__  # an unknown word gets the next number
        self.since = 0  # rows since the last entry of the journal
        self.stored_words, self.text_bytes = len(self.words), int(spool.column("texts").size)

    def run(self) -> Rows:
        """Read the rest of the files."""
        while self.file < len(self.listed):
            part, name = self.listed[self.file]
            reader = self.readers.setdefault(part, RowReader(labelled=True))
            source = Source.of(name, self.reading.encoding)
            after = reader.total if self.inside else 0
            if not self.inside:
                self.begins.append(self.rows)
            format = guess_format(source, self.reading.wanted, self.reading.format)
            self._read(part, reader, reader.rows(source, format, self.reading.wanted, after=after))
            self.file, self.inside = self.file + 1, False
            if self.file == len(self.listed):
                self._commit()
        self._check()
        return Rows(
            self.spool,
            tuple(self.listed),
            tuple(self.begins),
            self.readers,
            tuple(self.classes),
            tuple(self.words),
        )

    def _read(self, part: str, reader: RowReader, rows: Iterator[tuple[int, str, str]]) -> None:
        while chunk := _next_rows(rows, min(_AT_ONCE, self.block - self.since)):
            self._write(chunk)
            self.since += len(chunk)
            if self.since >= self.block:
                # All rows up to the last one of the chunk are checked here, and none beyond.
                self._commit(inside=True)
                if len(reader.values) > 20 * MANY_CLASSES:
                    self._check_part(part)  # a wrong column is found before all of it is read

    def _write(self, chunk: list[tuple[int, str, str]]) -> None:
        numbers, texts, names = zip(*chunk, strict=True)
        cut = [self.reading.words(text) for text in texts]
        sizes = np.array([len(words) for words in cut], np.int32)
        tokens = np.fromiter(
            map(self.words.__getitem__, chain.from_iterable(cut)), np.int32, int(sizes.sum())
        )
        raw = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.array(list(accumulate(map(len, raw))), np.int64) + self.text_bytes
        classes = self.classes
        labels = np.array([classes.setdefault(name, len(classes)) for name in names], np.int32)
        for name, values in (
            ("tokens", tokens),
            ("sizes", sizes),
            ("labels", labels),
            ("rows", np.array(numbers, np.int64)),
            ("ends", ends),
            ("texts", b"".join(raw)),
            ("keys", b"".join(map(text_key, texts))),
        ):
            self.spool.append(name, values)
        self.rows, self.text_bytes = self.rows + len(chunk), int(ends[-1])

    def _commit(self, *, inside: bool = False) -> None:
        fresh = islice(self.words, self.stored_words, None)
        self.spool.append(
            "words", "".join(f"{json.dumps(word)}\n" for word in fresh).encode("ascii")
        )
        self.stored_words, self.since = len(self.words), 0
        self.spool.commit(
            {
                "file": self.file,
                "inside": inside,
                "rows": self.rows,
                "begins": self.begins,
                "readers": {part: reader.record() for part, reader in self.readers.items()},
                "classes": list(self.classes),
            }
        )
        self.on_rows(self.rows)

    def _check(self) -> None:
        """Raise an error for parts without rows or classes."""
        for part, files in self.reading.files.items():
            reader = self.readers[part]
            reader.check_some(sum(reader.values.values()), named_files(files))
        self._check_part("train")

    def _check_part(self, part: str) -> None:
        counts = Counter[str]()
        for entry in self.readers[part].label_values():
            counts[entry.name] += entry.count
        if part == "train":
            check_classes(
                counts,
                named_files(self.reading.files[part]),
                None,
                MANY_CLASSES,
                lambda i: ("", ""),
            )


def _next_rows(rows: Iterator[tuple[int, str, str]], most: int) -> list[tuple[int, str, str]]:
    chunk, size = [], 0
    for row in islice(rows, most):
        chunk.append(row)
        size += len(row[1])
        if size > _CHARACTERS:
            break
    return chunk


def strange_label(rows: Rows, part: str, classes: Sequence[str]) -> None:
    """Raise an error for a label of a further part that is not a class of the training files."""
    first, last = rows.span(part)
    labels = np.asarray(rows.labels[first:last])
    names = {rows.classes[k]: n for k, n in enumerate(np.bincount(labels).tolist()) if n}
    files = [file for name, file in rows.listed if name == part]
    check_classes(
        names, files, classes, 0, lambda i: (rows.place(first + i), rows.classes[labels[i]])
    )
