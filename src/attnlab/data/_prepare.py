"""From a user's files to three corpora: read, deduplicated, split without leaks, indexed.

Files that fit into memory are read at once, larger ones in a stream; both give the same corpora.
The claims about texts read theirs here too (``text_parts``).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab._places import local_file, place, share, working_copy
from attnlab.data._compressed import ENDINGS
from attnlab.data._movies import MOVIE_REVIEWS, load_movie_reviews
from attnlab.data._prepared import (
    COUNTS,
    PARTS,
    RECORD,
    SCHEMA,
    Prepared,
    content_of,
    is_prepared,
    reopened,
    streamed,
)
from attnlab.data._read import TooManyRows, read_texts
from attnlab.data._splits import Leaks, leaks, split_texts
from attnlab.data._stream import ReadPart, Streamed, index_stream
from attnlab.data._texts import Dropped, Texts, drop_duplicates
from attnlab.data._tokens import Tokenizer
from attnlab.data._vocabulary import Indexed, Vocabulary, index_texts

SPLIT = (0.8, 0.1, 0.1)
# Share of the training texts for validation, if a test file is given but no validation file.
HELD_OUT = 0.1
# From so much text on, about, or so many rows, files are read in a stream.
STREAM_BYTES = 2**26
STREAM_ROWS = 2**20
_RULE = "in every class by a hash of each text, equal texts on one side"
_COMPRESSED = (*ENDINGS, ".parquet", ".pq")


@dataclass(frozen=True)
class TextSource:
    """Which texts to read, and how to split them into words.

    - ``files``: training texts, or all texts, which are then split 8 : 1 : 1 (``split_texts``);
      ``valid`` and ``test``: files of their own. In place of files the name of a corpus of
      ``load_movie_reviews``. ``text``, ``label``, ``format``, ``encoding``, ``header``: as
      for ``read_texts``.
    - ``lower``, ``punctuation``, or ``tokenizer`` (``"module:function"``); ``min_count``,
      ``max_words`` of the vocabulary, which is built on training texts only.
    - ``distinct``: a text that occurs twice among ``files`` is kept once, and not at all where its
      labels differ; else all are kept as given. ``split_seed`` draws the split.
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
    distinct: bool = True

    def __post_init__(self):
        for name in ("files", "valid", "test"):
            object.__setattr__(self, name, tuple(map(str, getattr(self, name))))
        if not self.files:
            raise AttnlabError("no file was given: expected at least one with labelled texts")
        if self.valid and not self.test:
            raise AttnlabError(
                "validation files without test files: give both (--valid, --test), or neither"
            )

    @property
    def subject(self) -> dict[str, tuple[str, ...]]:
        """Which texts, and which of their columns."""
        files = {"files": self.files, "--valid": self.valid, "--test": self.test}
        columns = {"--text": self.text, "--label": self.label}
        found = {key: tuple(map(_plain_name, names)) for key, names in files.items() if names}
        return found | {key: (name,) for key, name in columns.items() if name is not None}

    def words(self) -> Tokenizer:
        """The tokeniser."""
        if self.tokenizer is not None:
            return Tokenizer.from_function(self.tokenizer)
        return Tokenizer(lower=self.lower, punctuation=self.punctuation)


def prepare_texts(
    source: TextSource,
    *,
    folder: str | Path | None = None,
    stream_bytes: int | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Prepared:
    """Read, split and index.

    With a ``folder`` on this machine, files of more than ``stream_bytes`` of text (64 MiB;
    compressed files count three times) or a million rows are read in a stream and indexed there,
    without being held in memory; ``on_rows`` is called with the number of rows read. All others are
    read at once. The result is the same.

    Texts of given validation and test files that occur among the training texts are counted and
    reported, and stay where they were put.
    """
    most = STREAM_BYTES if stream_bytes is None else stream_bytes
    if folder is None:
        return _prepare_at_once(source, None)
    if _text_bytes(source) <= most:
        with suppress(TooManyRows):
            return _prepare_at_once(source, STREAM_ROWS)
    return _prepare_stream(source, Path(folder), on_rows)


def _prepare_at_once(source: TextSource, most_rows: int | None) -> Prepared:
    parts, found = _parts(source, most_rows)
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
    read = {
        name: _read_part(name, part, indexed[name], found.get(name)) for name, part in parts.items()
    }
    reading = _reading_of(source, read, vocabulary)
    return Prepared(train, valid, test, texts, vocabulary, reading, content_of(train, valid, test))


def prepare_in(
    source: TextSource, out: str | Path, *, on_rows: Callable[[int], None] | None = None
) -> tuple[Prepared, str]:
    """Prepare texts for the runs of a command that writes to ``out``, a folder or a URL.

    Returns them, and the folder or URL where workers find them. Corpora are memory-mapped, so they
    are always prepared on this machine.
    """
    folder = place(out)
    local = working_copy(folder / "corpus")
    prepared = prepare_texts(source, folder=local, on_rows=on_rows)
    shared = share(prepared.save(local), folder / "corpus" / prepared.hash, RECORD)
    return prepared, str(shared)


def _plain_name(name: str) -> str:
    """A file's name without ``./`` and the like; URLs stay as they are."""
    return name if "://" in name else os.path.normpath(name)


def _text_bytes(source: TextSource) -> int:
    """Approximate size of the text in files; compressed files count three times their size."""
    total = 0
    for path in map(local_file, (*source.files, *source.valid, *source.test)):
        if os.path.isfile(path):
            total += path.stat().st_size * (3 if path.suffix.lower() in _COMPRESSED else 1)
    return total


def _parts(source: TextSource, most_rows: int | None) -> tuple[dict[str, Texts], dict[str, Leaks]]:
    """Training, validation and test texts, and what leaks between those that were given."""
    whole = _texts(source, source.files, most_rows)
    if source.distinct:
        whole = drop_duplicates(whole)
    if not source.test:
        return dict(
            zip(PARTS, split_texts(whole, fractions=SPLIT, seed=source.split_seed), strict=True)
        ), {}
    test = _texts(source, source.test, most_rows, whole.classes)
    if source.valid:
        train, valid = whole, _texts(source, source.valid, most_rows, whole.classes)
    else:
        train, valid = split_texts(
            whole, fractions=(1 - HELD_OUT, HELD_OUT), seed=source.split_seed
        )
    parts = {"train": train, "valid": valid, "test": test}
    return parts, {name: leaks(train, parts[name]) for name in ("valid", "test")}


def _texts(
    source: TextSource,
    files: tuple[str, ...],
    most_rows: int | None,
    classes: tuple[str, ...] | None = None,
) -> Texts:
    """The texts of some of the files, or of the corpus that is named in their place."""
    if len(files) == 1 and files[0] in MOVIE_REVIEWS:
        return load_movie_reviews(files[0])
    return read_texts(
        files,
        text=source.text,
        label=source.label,
        format=source.format,
        encoding=source.encoding,
        header=source.header,
        classes=classes,
        most_rows=most_rows,
    )


def _read_part(name: str, texts: Texts, indexed: Indexed, leaked: Leaks | None) -> ReadPart:
    """The report on a part that was read at once."""
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
        leaked,
        texts.recoded,
    )


def _reading_of(
    source: TextSource, parts: Mapping[str, ReadPart], vocabulary: Vocabulary
) -> dict[str, Any]:
    """What was read, for the record."""
    # Parts of one split share their files, and what was noted of them.
    noted = {(part.names, part.dropped, part.recoded): part for part in parts.values()}.values()
    dropped = [_entry(entry) for part in noted for entry in part.dropped]
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
        "recoded": [_entry(entry) for part in noted for entry in part.recoded],
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
        "split": _split_of(source),
    }


def _split_of(source: TextSource) -> str:
    """How the texts came into their parts, in words."""
    if source.valid:
        return "given files"
    if source.test:
        return f"the given test files; a tenth of the other texts for validation, {_RULE}"
    return f"made here, 8 : 1 : 1, {_RULE}"


def _entry(dropped: Dropped) -> dict[str, Any]:
    return {
        "reason": dropped.reason,
        "count": dropped.count,
        "examples": [asdict(e) for e in dropped.examples],
    }


def _prepare_stream(
    source: TextSource, folder: Path, on_rows: Callable[[int], None] | None
) -> Prepared:
    """Read, split and index into ``folder/<hash>``; if it already holds these texts, it is opened.

    After an interruption, the next call resumes from the last complete block of rows. If a file has
    changed in size or modification time, it starts from the beginning.
    """
    stamp = _stamp(source)
    known = folder / f"read-{stamp}.json"
    if known.is_file():
        place = folder / str(json.loads(known.read_text("utf-8"))["hash"])
        if is_prepared(place):
            return reopened(place)
    scratch = folder / f"reading-{stamp}"
    # Remove what an interrupted reading of other files left.
    for stale in (path for path in folder.glob("reading-*") if path != scratch):
        shutil.rmtree(stale)
    made = _streamed(source, scratch, on_rows)
    place = _finished(source, made, folder)
    known.write_text(json.dumps({"schema": SCHEMA, "hash": place.name}), "utf-8")
    # The files were just written and checked: do not read them again.
    train, valid, test = (made.parts[name].corpus for name in PARTS)
    return streamed(place, train, valid, test)


def _stamp(source: TextSource) -> str:
    """A hash of the settings and of the files' names, sizes and modification times."""
    files = [local_file(file) for file in (*source.files, *source.valid, *source.test)]
    states = [
        [path.stat().st_size, path.stat().st_mtime_ns] if os.path.isfile(path) else []
        for path in files
    ]
    return hashlib.sha256(json.dumps([asdict(source), states]).encode()).hexdigest()[:16]


def _streamed(source: TextSource, scratch: Path, on_rows: Callable[[int], None] | None) -> Streamed:
    fractions: dict[str, float] = dict(zip(PARTS, SPLIT, strict=True))
    if source.valid:
        fractions = {"train": 1.0}
    elif source.test:
        fractions = {"train": 1 - HELD_OUT, "valid": HELD_OUT}
    given = {"train": source.files, "valid": source.valid, "test": source.test}
    return index_stream(
        {name: files for name, files in given.items() if files},
        scratch,
        text=source.text,
        label=source.label,
        format=source.format,
        encoding=source.encoding,
        header=source.header,
        tokenizer=source.words(),
        min_count=source.min_count,
        max_size=source.max_words,
        fractions=fractions,
        seed=source.split_seed,
        distinct=source.distinct,
        on_rows=on_rows,
    )


def _finished(source: TextSource, made: Streamed, folder: Path) -> Path:
    """Write the record, last, and move everything to the folder of its hash."""
    parts = {name: made.parts[name] for name in PARTS}
    content = content_of(*(part.corpus for part in parts.values()))
    np.save(made.folder / COUNTS, made.vocabulary.counts, allow_pickle=False)
    record = {
        "schema": SCHEMA,
        "hash": content,
        "reading": _reading_of(source, parts, made.vocabulary),
    }
    (made.folder / RECORD).write_text(json.dumps(record), "utf-8")
    place = folder / content
    if place.exists():
        # By their hash, it holds the same corpora, but possibly not all texts.
        shutil.rmtree(place)
    return made.move(place)
