"""From a user's files to three corpora on disk: read, freed of duplicates, split without leaks, indexed, counted."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError

if TYPE_CHECKING:
    from attnlab.tasks import Corpus, Dropped, Indexed, Leaks, Texts, Tokenizer, Vocabulary

PARTS = ("train", "valid", "test")
SPLIT = (0.8, 0.1, 0.1)
_RECORD = "prepared.json"
_SCHEMA = 1
_SHOWN = 2000  # characters of a text that are kept for looking at
_HELD_OUT = 0.1  # of the training texts, for validation, where a test file is given and no validation file


@dataclass(frozen=True)
class TextSource:
    """Which texts, and what counts as a word of them.

    - ``files``: training texts, or all texts, which are then split 8 : 1 : 1; ``valid`` and ``test``: files of their
      own. ``text``, ``label``, ``format``, ``encoding``, ``header``: as for ``read_texts``.
    - ``lower``, ``punctuation``, or ``tokenizer`` (``"module:function"``); ``min_count``, ``max_words`` of the
      vocabulary, which is built on training texts only.
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
    max_words: int | None = 50_000
    split_seed: int = 0

    def __post_init__(self):
        for name in ("files", "valid", "test"):
            object.__setattr__(self, name, tuple(map(str, getattr(self, name))))
        if not self.files:
            raise AttnlabError("no file was named: expected at least one with labelled texts")
        if self.valid and not self.test:
            raise AttnlabError("validation files without test files: give both (--valid, --test), or neither")

    def words(self) -> Tokenizer:
        """The tokeniser."""
        from attnlab.tasks import Tokenizer

        if self.tokenizer is not None:
            return Tokenizer.from_function(self.tokenizer)
        return Tokenizer(lower=self.lower, punctuation=self.punctuation)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Three corpora over one vocabulary, the texts they were, and what was found in reading.

    ``hash`` stands for the content of all three; ``reading`` is for the record and the page.
    """

    train: Corpus
    valid: Corpus
    test: Corpus
    texts: dict[str, tuple[str, ...]]
    vocabulary: Vocabulary
    reading: dict[str, Any]
    hash: str

    def save(self, folder: str | Path) -> Path:
        """Write the corpora and training texts into ``folder/<hash>``; there once, nothing is written."""
        place = Path(folder) / self.hash
        if not (place / _RECORD).is_file():
            for name in PARTS:
                getattr(self, name).save(place / name)
            shown = [text[:_SHOWN] for text in self.texts["train"]]
            (place / "texts.json").write_text(json.dumps(shown, ensure_ascii=True), "utf-8")
            record = {"schema": _SCHEMA, "hash": self.hash, "reading": self.reading}
            (place / _RECORD).write_text(json.dumps(record), "utf-8")  # last: with it the folder is whole
        return place


def is_prepared(folder: str | Path) -> bool:
    """Whether a folder was written by ``Prepared.save``."""
    return (Path(folder) / _RECORD).is_file()


def open_prepared(folder: str | Path) -> tuple[Corpus, Corpus, Corpus, tuple[str, ...], str]:
    """Training, validation and test corpus, mapped into memory, the training texts, and their hash."""
    from attnlab.tasks import Corpus

    place = Path(folder)
    record = json.loads((place / _RECORD).read_text("utf-8"))
    if record.get("schema") != _SCHEMA:
        raise AttnlabError(f"{place / _RECORD} has schema {record.get('schema')!r}, expected {_SCHEMA}: prepare anew")
    train, valid, test = (Corpus.open(place / name) for name in PARTS)
    texts = tuple(json.loads((place / "texts.json").read_text("utf-8")))
    return train, valid, test, texts, str(record["hash"])


def prepare_texts(source: TextSource) -> Prepared:
    """Read, split and index.

    Texts that occur twice are kept once, and not at all where their labels differ; texts of given validation and test
    files that occur among the training texts are counted and reported, and stay where they were put.
    """
    from attnlab.tasks import Vocabulary, index_texts

    parts, found = _parts(source)
    tokenizer = source.words()
    vocabulary = Vocabulary.of(
        parts["train"].texts, tokenizer=tokenizer, min_count=source.min_count, max_size=source.max_words
    )
    classes = parts["train"].classes
    indexed = {
        name: index_texts(part.texts, part.labels, vocabulary, classes=classes, tokenizer=tokenizer)
        for name, part in parts.items()
    }
    texts = {name: tuple(parts[name].texts[i] for i in one.kept) for name, one in indexed.items()}
    train, valid, test = (indexed[name].corpus for name in PARTS)
    digest = hashlib.sha256("".join(corpus.content_hash for corpus in (train, valid, test)).encode()).hexdigest()[:16]
    reading = _reading(source, parts, found, indexed, vocabulary)
    return Prepared(train, valid, test, texts, vocabulary, reading, digest)


def _parts(source: TextSource) -> tuple[dict[str, Texts], dict[str, Leaks]]:
    """Training, validation and test texts, and what leaks between those that were given."""
    from attnlab.tasks import drop_duplicates, leaks, read_texts, split_texts

    asked = {name: getattr(source, name) for name in ("text", "label", "format", "encoding", "header")}
    whole = drop_duplicates(read_texts(source.files, **asked))
    if not source.test:
        return dict(zip(PARTS, split_texts(whole, fractions=SPLIT, seed=source.split_seed), strict=True)), {}
    test = read_texts(source.test, classes=whole.classes, **asked)
    if source.valid:
        train, valid = whole, read_texts(source.valid, classes=whole.classes, **asked)
    else:
        train, valid = split_texts(whole, fractions=(1 - _HELD_OUT, _HELD_OUT), seed=source.split_seed)
    parts = {"train": train, "valid": valid, "test": test}
    return parts, {name: leaks(train, parts[name]) for name in ("valid", "test")}


def _reading(
    source: TextSource, parts: dict[str, Texts], found: dict[str, Leaks], indexed: dict[str, Indexed],
    vocabulary: Vocabulary,
) -> dict[str, Any]:  # fmt: skip
    """What was read, for the record."""
    distinct = {id(part.dropped): part.dropped for part in parts.values()}  # parts of one split share theirs
    dropped = [_entry(entry) for entries in distinct.values() for entry in entries]
    for name, one in indexed.items():
        if len(one.wordless):
            examples = [asdict(parts[name].example(int(i))) for i in one.wordless[:3]]
            reason = f"no known word ({name})"
            dropped.append({"reason": reason, "count": len(one.wordless), "examples": examples})
    files: dict[str, dict[str, Any]] = {}
    for part in parts.values():
        counts = np.bincount(part.files, minlength=len(part.names))
        for name, kind, encoding, count in zip(part.names, part.formats, part.encodings, counts, strict=True):
            entry = files.setdefault(name, {"name": name, "format": kind, "encoding": encoding, "rows": 0})
            entry["rows"] += int(count)
    lengths = indexed["train"].corpus.lengths
    classes = parts["train"].classes
    kept = sum(len(one.corpus) for one in indexed.values())
    return {
        "files": list(files.values()),
        "rows": kept + sum(entry["count"] for entry in dropped),
        "kept": kept,
        "classes": {
            name: {part: int((one.corpus.labels == number).sum()) for part, one in indexed.items()}
            for number, name in enumerate(classes)
        },
        "labels": {entry.value: entry.name for part in parts.values() for entry in part.label_values},
        "dropped": dropped,
        "leaks": [
            {"reason": f"{name} texts that are training texts too", "count": leak.count,
             "examples": [asdict(example) for example in leak.examples]}
            for name, leak in found.items() if leak.count
        ],
        "vocabulary": {
            "size": len(vocabulary), "left_out": vocabulary.left_out,
            "unknown": {name: one.unknown_share for name, one in indexed.items()},
        },
        "lengths": {"median": float(np.median(lengths)), "p90": float(np.quantile(lengths, 0.9)),
                    "longest": int(lengths.max())},
        "words": source.words().record() if source.tokenizer is None else {"tokenizer": source.tokenizer},
        "split": "given files" if source.test else "made here, 8 : 1 : 1, equal texts on one side",
    }  # fmt: skip


def _entry(dropped: Dropped) -> dict[str, Any]:
    return {"reason": dropped.reason, "count": dropped.count, "examples": [asdict(e) for e in dropped.examples]}
