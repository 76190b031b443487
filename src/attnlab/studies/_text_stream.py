"""A user's texts beyond memory: the same three corpora, made in a stream and left in the study's
folder.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.studies._text_prepare import (
    HELD_OUT,
    PARTS,
    RECORD,
    SCHEMA,
    SPLIT,
    Prepared,
    TextSource,
    content_of,
    is_prepared,
    open_prepared,
    read_record,
    reading_of,
)

if TYPE_CHECKING:
    from attnlab.data import Corpus, Streamed

_COUNTS = "vocabulary.npy"


def prepare_stream(
    source: TextSource, folder: Path, *, on_rows: Callable[[int], None] | None = None, **more: Any
) -> Prepared:
    """Read, split and index into ``folder/<hash>``; a folder that has these texts already is opened
    as it is.

    Interrupted and called again, it goes on at the last whole block of rows; a file that was
    changed since, by its size or time of change, begins everything anew. ``more`` goes to
    ``index_stream``.
    """
    stamp = _stamp(source)
    known = folder / f"read-{stamp}.json"
    if known.is_file():
        place = folder / str(json.loads(known.read_text("utf-8"))["hash"])
        if is_prepared(place):
            return _opened(place)
    scratch = folder / f"reading-{stamp}"
    # What an interrupted reading of other files left is of no use to anybody.
    for stale in (path for path in folder.glob("reading-*") if path != scratch):
        shutil.rmtree(stale)
    made = _streamed(source, scratch, on_rows, more)
    place = _finished(source, made, folder)
    known.write_text(json.dumps({"schema": SCHEMA, "hash": place.name}), "utf-8")
    # What was just written and checked is not read through again.
    train, valid, test = (made.parts[name].corpus for name in PARTS)
    return _prepared(place, train, valid, test)


def _stamp(source: TextSource) -> str:
    """Stands for the settings and, by names, sizes and times of change, for the files."""
    files = [Path(file) for file in (*source.files, *source.valid, *source.test)]
    states = [
        [path.stat().st_size, path.stat().st_mtime_ns] if path.is_file() else [] for path in files
    ]
    return hashlib.sha256(json.dumps([asdict(source), states]).encode()).hexdigest()[:16]


def _streamed(
    source: TextSource, scratch: Path, on_rows: Callable[[int], None] | None, more: dict[str, Any]
) -> Streamed:
    from attnlab.data import index_stream

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
        on_rows=on_rows,
        **more,
    )


def _finished(source: TextSource, made: Streamed, folder: Path) -> Path:
    """Write the record, last, and take all of it to where its hash says."""
    parts = {name: made.parts[name] for name in PARTS}
    how = "in every class by a hash of each text, equal texts on one side"
    content = content_of(*(part.corpus for part in parts.values()))
    np.save(made.folder / _COUNTS, made.vocabulary.counts, allow_pickle=False)
    record = {
        "schema": SCHEMA,
        "hash": content,
        "reading": reading_of(source, parts, made.vocabulary, how),
    }
    (made.folder / RECORD).write_text(json.dumps(record), "utf-8")
    place = folder / content
    if place.exists():
        shutil.rmtree(
            place
        )  # it has the same corpora, by their hash, and maybe not all of their texts
    return made.move(place)


def _opened(place: Path) -> Prepared:
    train, valid, test, _, _ = open_prepared(place)
    return _prepared(place, train, valid, test)


def _prepared(place: Path, train: Corpus, valid: Corpus, test: Corpus) -> Prepared:
    from attnlab.data import StoredTexts, Vocabulary

    record = read_record(place)
    counts = np.load(place / _COUNTS, allow_pickle=False)
    vocabulary = Vocabulary(
        train.vocabulary, counts, int(record["reading"]["vocabulary"]["left_out"])
    )
    texts = {name: StoredTexts(place, name) for name in PARTS}
    return Prepared(
        train, valid, test, texts, vocabulary, record["reading"], str(record["hash"]), place
    )
