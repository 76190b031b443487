"""From a user's files to three corpora on disk: read, freed of duplicates, split without leaks,
indexed, counted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab._places import local_copy

if TYPE_CHECKING:
    from attnlab.data import (
        Corpus,
        Dropped,
        Indexed,
        Leaks,
        ReadPart,
        Texts,
        Tokenizer,
        Vocabulary,
    )

PARTS = ("train", "valid", "test")
SPLIT = (0.8, 0.1, 0.1)
STREAM_BYTES = 2**26  # of text, about, from which on files are read in a stream
RECORD = "prepared.json"
SCHEMA = 1
_COMPRESSED = (".gz", ".parquet", ".pq")
_SHOWN = 2000  # characters of a text that are kept for looking at
HELD_OUT = (
    0.1  # of the training texts, for validation, where a test file is given and no validation file
)


@dataclass(frozen=True)
class TextSource:
    """Which texts, and what counts as a word of them.

    - ``files``: training texts, or all texts, which are then split 8 : 1 : 1; ``valid`` and
      ``test``: files of their own. ``text``, ``label``, ``format``, ``encoding``, ``header``: as
      for ``read_texts``.
    - ``lower``, ``punctuation``, or ``tokenizer`` (``"module:function"``); ``min_count``,
      ``max_words`` of the vocabulary, which is built on training texts only.
    - ``split_seed`` draws the split.
    """

    files: tuple[str, ...]
    valid: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    text: str | None = None
    label: str | None = None
    format: str | None = None
    encoding: str | None = None
    header: bool = True
    lower: bool = True
    punctuation: bool = False
    tokenizer: str | None = None
    min_count: int = 1
    max_words: int | None = 20_000
    split_seed: int = 0

    def __post_init__(self):
        for name in ("files", "valid", "test"):
            object.__setattr__(self, name, tuple(map(str, getattr(self, name))))
        if not self.files:
            raise AttnlabError("no file was named: expected at least one with labelled texts")
        if self.valid and not self.test:
            raise AttnlabError(
                "validation files without test files: give both (--valid, --test), or neither"
            )

    def words(self) -> Tokenizer:
        """The tokeniser."""
        from attnlab.data import Tokenizer

        if self.tokenizer is not None:
            return Tokenizer.from_function(self.tokenizer)
        return Tokenizer(lower=self.lower, punctuation=self.punctuation)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Three corpora over one vocabulary, the texts they were, and what was found in reading.

    ``hash`` stands for the content of all three; ``reading`` is for the record and the page;
    ``place`` is where they are stored already, if they are.
    """

    train: Corpus
    valid: Corpus
    test: Corpus
    texts: Mapping[str, Sequence[str]]
    vocabulary: Vocabulary
    reading: dict[str, Any]
    hash: str
    place: Path | None = None

    def save(self, folder: str | Path) -> Path:
        """Write the corpora and training texts into ``folder/<hash>``; there once, nothing is
        written.
        """
        if self.place is not None:
            return self.place
        place = Path(folder) / self.hash
        if not (place / RECORD).is_file():
            for name in PARTS:
                getattr(self, name).save(place / name)
            shown = [text[:_SHOWN] for text in self.texts["train"]]
            (place / "texts.json").write_text(json.dumps(shown, ensure_ascii=True), "utf-8")
            record = {"schema": SCHEMA, "hash": self.hash, "reading": self.reading}
            (place / RECORD).write_text(
                json.dumps(record), "utf-8"
            )  # last: with it the folder is whole
        return place


def is_prepared(folder: str | Path) -> bool:
    """Whether a folder was written by ``Prepared.save``."""
    return (local_copy(folder, RECORD) / RECORD).is_file()


def open_prepared(folder: str | Path) -> tuple[Corpus, Corpus, Corpus, Sequence[str], str]:
    """Training, validation and test corpus, mapped into memory, the training texts, and their hash."""
    from attnlab.data import Corpus, StoredTexts

    place = local_copy(folder, RECORD)
    record = read_record(place)
    train, valid, test = (Corpus.open(place / name) for name in PARTS)
    small = place / "texts.json"
    texts = (
        tuple(json.loads(small.read_text("utf-8")))
        if small.is_file()
        else StoredTexts(place, "train", most=_SHOWN)
    )
    return train, valid, test, texts, str(record["hash"])


def read_record(place: Path) -> dict[str, Any]:
    """What was stored with the corpora; a record of another version is refused."""
    record = json.loads((place / RECORD).read_text("utf-8"))
    if record.get("schema") != SCHEMA:
        raise AttnlabError(
            f"{place / RECORD} has schema {record.get('schema')!r}, expected {SCHEMA}: prepare anew"
        )
    return record


def prepare_texts(
    source: TextSource,
    *,
    folder: str | Path | None = None,
    stream_bytes: int | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Prepared:
    """Read, split and index.

    With a ``folder`` on this machine, files of more than ``stream_bytes`` of text (64 MiB;
    compressed files count three times) are read in a stream and indexed there, without being held
    in memory; ``on_rows`` is told how many rows were read. All others are read at once. The result
    is the same but for the split, which is then drawn by a hash of each text.

    Texts that occur twice are kept once, and not at all where their labels differ; texts of given
    validation and test files that occur among the training texts are counted and reported, and stay
    where they were put.
    """
    from attnlab.data import Vocabulary, index_texts

    if isinstance(folder, str | Path) and text_bytes(source) > (
        STREAM_BYTES if stream_bytes is None else stream_bytes
    ):
        from attnlab.studies._text_stream import prepare_stream

        return prepare_stream(source, Path(folder), on_rows=on_rows)
    parts, found = _parts(source)
    tokenizer = source.words()
    vocabulary = Vocabulary.of(
        parts["train"].texts,
        tokenizer=tokenizer,
        min_count=source.min_count,
        max_size=source.max_words,
    )
    classes = parts["train"].classes
    indexed = {
        name: index_texts(part.texts, part.labels, vocabulary, classes=classes, tokenizer=tokenizer)
        for name, part in parts.items()
    }
    texts = {name: tuple(parts[name].texts[i] for i in one.kept) for name, one in indexed.items()}
    train, valid, test = (indexed[name].corpus for name in PARTS)
    told = {name: _told(name, part, indexed[name], found.get(name)) for name, part in parts.items()}
    reading = reading_of(source, told, vocabulary, "equal texts on one side")
    return Prepared(train, valid, test, texts, vocabulary, reading, content_of(train, valid, test))


def content_of(*corpora: Corpus) -> str:
    """Stands for the content of some corpora."""
    return hashlib.sha256("".join(corpus.content_hash for corpus in corpora).encode()).hexdigest()[
        :16
    ]


def text_bytes(source: TextSource) -> int:
    """How much text some files hold, about: those that are compressed have three times their size."""
    total = 0
    for path in map(Path, (*source.files, *source.valid, *source.test)):
        if path.is_file():
            total += path.stat().st_size * (3 if path.suffix.lower() in _COMPRESSED else 1)
    return total


def _parts(source: TextSource) -> tuple[dict[str, Texts], dict[str, Leaks]]:
    """Training, validation and test texts, and what leaks between those that were given."""
    from attnlab.data import drop_duplicates, leaks, read_texts, split_texts

    asked = {
        name: getattr(source, name) for name in ("text", "label", "format", "encoding", "header")
    }
    whole = drop_duplicates(read_texts(source.files, **asked))
    if not source.test:
        return dict(
            zip(PARTS, split_texts(whole, fractions=SPLIT, seed=source.split_seed), strict=True)
        ), {}
    test = read_texts(source.test, classes=whole.classes, **asked)
    if source.valid:
        train, valid = whole, read_texts(source.valid, classes=whole.classes, **asked)
    else:
        train, valid = split_texts(
            whole, fractions=(1 - HELD_OUT, HELD_OUT), seed=source.split_seed
        )
    parts = {"train": train, "valid": valid, "test": test}
    return parts, {name: leaks(train, parts[name]) for name in ("valid", "test")}


def _told(name: str, texts: Texts, indexed: Indexed, leaks: Leaks | None) -> ReadPart:
    """What is told of a part that was read at once."""
    from attnlab.data import Dropped, ReadPart

    examples = tuple(texts.example(int(i)) for i in indexed.wordless[:3])
    return ReadPart(
        indexed.corpus,
        texts.names,
        texts.formats,
        texts.encodings,
        texts.file_counts,
        texts.dropped,
        texts.label_values,
        Dropped(f"no known word ({name})", len(indexed.wordless), examples),
        indexed.known,
        indexed.unknown,
        leaks,
    )


def reading_of(
    source: TextSource, parts: Mapping[str, ReadPart], vocabulary: Vocabulary, how: str
) -> dict[str, Any]:
    """What was read, for the record; ``how`` a split was made."""
    distinct = {
        id(part.dropped): part.dropped for part in parts.values()
    }  # parts of one split share theirs
    dropped = [_entry(entry) for entries in distinct.values() for entry in entries]
    dropped += [_entry(part.wordless) for part in parts.values() if part.wordless.count]
    files: dict[str, dict[str, Any]] = {}
    for part in parts.values():
        for name, kind, encoding, count in zip(
            part.names, part.formats, part.encodings, part.file_counts, strict=True
        ):
            entry = files.setdefault(
                name, {"name": name, "format": kind, "encoding": encoding, "rows": 0}
            )
            entry["rows"] += count
    lengths, classes = parts["train"].corpus.lengths, parts["train"].corpus.classes
    kept = sum(len(part.corpus) for part in parts.values())
    return {
        "files": list(files.values()),
        "rows": kept + sum(entry["count"] for entry in dropped),
        "kept": kept,
        "classes": {
            name: {part: int((one.corpus.labels == number).sum()) for part, one in parts.items()}
            for number, name in enumerate(classes)
        },
        "labels": {
            entry.value: entry.name for part in parts.values() for entry in part.label_values
        },
        "dropped": dropped,
        "leaks": [
            {
                "reason": f"{name} texts that are training texts too",
                "count": part.leaks.count,
                "examples": [asdict(example) for example in part.leaks.examples],
            }
            for name, part in parts.items()
            if part.leaks is not None and part.leaks.count
        ],
        "vocabulary": {
            "size": len(vocabulary),
            "left_out": vocabulary.left_out,
            "unknown": {name: part.unknown_share for name, part in parts.items()},
        },
        "lengths": {
            "median": float(np.median(lengths)),
            "p90": float(np.quantile(lengths, 0.9)),
            "longest": int(lengths.max()),
        },
        "words": source.words().record()
        if source.tokenizer is None
        else {"tokenizer": source.tokenizer},
        "split": "given files" if source.test else f"made here, 8 : 1 : 1, {how}",
    }


def _entry(dropped: Dropped) -> dict[str, Any]:
    return {
        "reason": dropped.reason,
        "count": dropped.count,
        "examples": [asdict(e) for e in dropped.examples],
    }
