"""Prepared texts: three corpora over one vocabulary, in memory and in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab._places import local_copy
from attnlab.data._corpus import Corpus
from attnlab.data._stream import StoredTexts
from attnlab.data._vocabulary import Vocabulary

PARTS = ("train", "valid", "test")
RECORD = "prepared.json"
SCHEMA = 1
COUNTS = "vocabulary.npy"
_SHOWN = 2000  # characters of a text that are kept for looking at


@dataclass(frozen=True, eq=False)
class Prepared:
    """Three corpora over one vocabulary, their texts, and a report on reading them.

    ``hash`` identifies the content of all three; ``reading`` is for the record and the page;
    ``place`` is where they are stored, if they are.
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
        """Write the corpora and training texts into ``folder/<hash>``, unless it exists."""
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
    """Memory-mapped training, validation and test corpora, the training texts, and their hash."""
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
    """The record stored with the corpora; an error for a record of another version."""
    record = json.loads((place / RECORD).read_text("utf-8"))
    if record.get("schema") != SCHEMA:
        raise AttnlabError(
            f"{place / RECORD} has schema {record.get('schema')!r}, expected {SCHEMA}: prepare it again"
        )
    return record


def content_of(*corpora: Corpus) -> str:
    """A hash of the content of some corpora."""
    return hashlib.sha256("".join(corpus.content_hash for corpus in corpora).encode()).hexdigest()[
        :16
    ]


def reopened(place: Path) -> Prepared:
    """What a stream prepared in a folder earlier."""
    train, valid, test, _, _ = open_prepared(place)
    return streamed(place, train, valid, test)


def streamed(place: Path, train: Corpus, valid: Corpus, test: Corpus) -> Prepared:
    """These corpora with what a stream stored next to them in a folder."""
    record = read_record(place)
    counts = np.load(place / COUNTS, allow_pickle=False)
    vocabulary = Vocabulary(
        train.vocabulary, counts, int(record["reading"]["vocabulary"]["left_out"])
    )
    texts = {name: StoredTexts(place, name) for name in PARTS}
    return Prepared(
        train, valid, test, texts, vocabulary, record["reading"], str(record["hash"]), place
    )
