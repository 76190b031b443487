"""Texts larger than memory: files are read in a stream and become memory-mapped corpora on disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, Int8
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.data._columns import Wanted
from attnlab.data._corpus import Corpus
from attnlab.data._corpus_files import ARRAYS, seal_corpus
from attnlab.data._splits import Leaks
from attnlab.data._stream_parts import leaked, use_of_rows
from attnlab.data._stream_rows import BLOCK, Reading, Rows, read_rows_of, strange_label
from attnlab.data._stream_spool import JOURNAL, Spool
from attnlab.data._texts import EXAMPLES, Dropped, LabelValue, class_order
from attnlab.data._tokens import Tokenizer
from attnlab.data._vocabulary import Vocabulary

_INDEXED = 2**16  # rows whose words are sorted at one time
_SPOOL, _TEXTS, _SPANS = "spool", "texts.bin", "texts"


@dataclass(frozen=True, eq=False)
class ReadPart:
    """One part of labelled texts, such as the training part: its corpus, and a report on reading.

    - ``file_counts``: texts of each of the files ``names``; ``dropped``: what was left out, shared
      by parts of one split; ``wordless``: texts without a known word, left out of the corpus;
      ``known``, ``unknown``: numbers of words.
    - ``leaks``: texts of a given file that are also training texts; ``recoded``: lines that are not
      in the encoding of their file.
    """

    corpus: Corpus
    names: tuple[str, ...]
    formats: tuple[str, ...]
    encodings: tuple[str, ...]
    file_counts: tuple[int, ...]
    dropped: tuple[Dropped, ...]
    label_values: tuple[LabelValue, ...]
    wordless: Dropped
    known: int
    unknown: int
    leaks: Leaks | None
    recoded: tuple[Dropped, ...] = ()

    @property
    def unknown_share(self) -> float:
        """The share of words that were dropped."""
        return self.unknown / max(self.known + self.unknown, 1)


@dataclass(frozen=True, eq=False)
class Streamed:
    """The result of ``index_stream``: a folder with a corpus per part, their vocabulary, the parts."""

    folder: Path
    vocabulary: Vocabulary
    parts: dict[str, ReadPart]

    def move(self, folder: str | Path) -> Path:
        """Move the finished corpora and texts to another place, and remove intermediate files."""
        place = Path(folder)
        os.replace(self.folder / _SPOOL / "texts", self.folder / _TEXTS)
        shutil.rmtree(self.folder / _SPOOL)
        (self.folder / JOURNAL).unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        os.replace(self.folder, place)
        return place


class StoredTexts(Sequence[str]):
    """The texts of a part's sentences, ``most`` characters of each, read on access."""

    def __init__(self, folder: str | Path, part: str, *, most: int | None = None):
        path = Path(folder) / part / f"{_SPANS}.npy"
        if not path.is_file() or not (Path(folder) / _TEXTS).is_file():
            raise AttnlabError(
                f"{folder} has no stored texts of the part {part!r}: prepare the texts again"
            )
        self._most = most
        self._spans = np.load(path, mmap_mode="r", allow_pickle=False)
        self._bytes = np.memmap(Path(folder) / _TEXTS, np.uint8, "r")

    def __len__(self) -> int:
        return len(self._spans) // 2

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return tuple(self[i] for i in range(*number.indices(len(self))))
        place = range(len(self))[int(number)]
        begin, end = (int(at) for at in self._spans[2 * place : 2 * place + 2])
        return self._bytes[begin:end].tobytes().decode("utf-8", "surrogatepass")[: self._most]


def index_stream(
    files: Mapping[str, Sequence[str | Path]],
    folder: str | Path,
    *,
    text: str | None = None,
    label: str | None = None,
    format: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    tokenizer: Tokenizer = Tokenizer(),  # noqa: B008  (frozen)
    min_count: int = 1,
    max_size: int | None = None,
    fractions: Mapping[str, float] | None = None,
    seed: int = 0,
    distinct: bool = True,
    block: int = BLOCK,
    on_rows: Callable[[int], None] | None = None,
) -> Streamed:
    """Read and index any number of labelled texts, without holding them in memory.

    - ``files``: ``{"train": [...]}``, and further parts by name; ``text`` … ``header`` as for
      ``read_texts``. ``fractions``: into which parts the texts of the training files are divided,
      such as ``{"train": 0.8, "valid": 0.1, "test": 0.1}``; a part cannot have both files and a
      fraction.
    - What comes out is what ``read_texts``, ``drop_duplicates`` (unless ``distinct`` is false),
      ``split_texts`` by ``seed``, ``Vocabulary.of`` and ``index_texts`` give, bit for bit.
    - Texts are read once. Pass one checks them, cuts them into words and writes numbers down; pass
      two turns those into the vocabulary's. Both keep a journal: interrupted and called again, the
      call goes on at its last whole ``block`` of rows, or begins anew where a file has another size
      or time of change.
    - Memory: the different words of all texts, 33 bytes a row while duplicates are looked for, a
      few thousand rows.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> _ = (place / "a.csv").write_text("text,label\\n" + "".join(f"word{i} film,{i % 2}\\n" for i in range(50)))
    >>> made = index_stream({"train": [place / "a.csv"]}, place / "made", fractions={"train": 0.8, "test": 0.2})
    >>> made.parts["train"].corpus, len(made.parts["test"].corpus)
    (Corpus(40 sentences, 80 words in all, vocabulary 41, 2 classes), 10)
    """
    shares = dict(fractions or {"train": 1.0})
    _check_parts(files, shares)
    reading = Reading(
        files, Wanted(text, label, labelled=True, header=header), format, encoding, tokenizer
    )
    on_rows = on_rows or (lambda _: None)
    rows = read_rows_of(reading, Path(folder) / _SPOOL, block=block, on_rows=on_rows)
    with rows.spool:
        parts = (*shares, *(part for part in files if part != "train"))
        use, twice = use_of_rows(rows, parts, tuple(shares.values()), seed, distinct=distinct)
        whole = np.unique(
            rows.labels[slice(*rows.span("train"))][use[slice(*rows.span("train"))] >= 0]
        )
        for part in (part for part in files if part != "train"):
            strange_label(rows, part, sorted((rows.classes[k] for k in whole), key=class_order))
        vocabulary, numbers = _vocabulary(rows, use, min_count, max_size)
        present = {rows.classes[k] for k in np.unique(rows.labels[np.flatnonzero(use == 0)])}
        classes = tuple(sorted(present, key=class_order))
        index = _Index(rows, use, numbers, classes, vocabulary, parts, Path(folder))
        corpora = index.run(f"{reading.stamp()} {min_count} {max_size} {shares} {seed} {distinct}")
        made = {
            name: _part(rows, use, k, name, corpora[name], index, twice)
            for k, name in enumerate(parts)
        }
    return Streamed(Path(folder), vocabulary, made)


def _check_parts(files: Mapping[str, Sequence[str | Path]], shares: dict[str, float]) -> None:
    if (
        "train" not in files
        or next(iter(shares)) != "train"
        or (both := set(shares) & (set(files) - {"train"}))
    ):
        raise AttnlabError(
            f"files of {list(files)} and fractions of {list(shares)}: expected training files, a "
            "fraction of them for 'train' first, and no part that has both"
        )
    del both
    if min(shares.values()) <= 0 or abs(sum(shares.values()) - 1) > 1e-9:
        raise AttnlabError(f"fractions={shares}: expected positive numbers that sum to 1")


def _vocabulary(
    rows: Rows, use: Int8[ndarray, "rows"], min_count: int, max_size: int | None
) -> tuple[Vocabulary, Int[ndarray, "words"]]:
    """The vocabulary of the training rows, and the number in it of each word seen (−1: outside)."""
    counts = np.zeros(len(rows.words), np.int64)
    for first, last, tokens in rows.blocks(_INDEXED):
        training = np.repeat(use[first:last] == 0, rows.sizes[first:last])
        counts += np.bincount(tokens[training], minlength=len(counts))
    counted = {rows.words[i]: int(counts[i]) for i in np.flatnonzero(counts)}
    vocabulary = Vocabulary.from_counts(counted, min_count=min_count, max_size=max_size)
    return vocabulary, np.array([vocabulary.numbers.get(word, -1) for word in rows.words], np.int32)


class _Index:
    """The second pass: translates word numbers to the vocabulary, and rows to sentences."""

    def __init__(
        self,
        rows: Rows,
        use: ndarray,
        numbers: ndarray,
        classes: tuple[str, ...],
        vocabulary: Vocabulary,
        parts: tuple[str, ...],
        folder: Path,
    ):
        self.rows, self.use, self.numbers = rows, use, numbers
        self.parts, self.folder = parts, folder
        self.classes, self.vocabulary = classes, vocabulary
        self.label_numbers = np.array(
            [classes.index(n) if n in classes else -1 for n in rows.classes], np.int32
        )
        self.entries, self.known, self.unknown, self.wordless = ([0] * len(parts) for _ in range(4))
        self.examples: list[list[int]] = [[] for _ in parts]

    def run(self, stamp: str) -> dict[str, Corpus]:
        """Write the arrays of all parts, from the last complete block on, then their records."""
        columns = {
            f"{part}/{name}": kind
            for part in self.parts
            for name, kind in {**ARRAYS, _SPANS: "int64"}.items()
        }
        with Spool(self.folder, columns, stamp=stamp, npy=True) as out:
            done = int(out.state["rows"]) if out.state else 0
            if out.state:
                self.entries, self.known, self.unknown, self.wordless, self.examples = out.state[
                    "counts"
                ]
            else:
                for part in self.parts:
                    out.append(f"{part}/offsets", np.zeros(1, np.int64))
            for first, last, tokens in self.rows.blocks(_INDEXED):
                if first >= done:
                    self._block(out, first, last, tokens)
                    counts = [self.entries, self.known, self.unknown, self.wordless, self.examples]
                    out.commit({"rows": last, "counts": counts})
            out.finish()
        return {part: self._corpus(k, part) for k, part in enumerate(self.parts)}

    def _block(self, out: Spool, first: int, last: int, tokens: Int[ndarray, "tokens"]) -> None:
        sizes, use = np.asarray(self.rows.sizes[first:last]), self.use[first:last]
        row = np.repeat(np.arange(last - first), sizes)
        words = self.numbers[tokens].astype(np.int64)
        inside = (words >= 0) & (use[row] >= 0)
        # One integer per (row, word): sorting these once yields the distinct words of each row in
        # ascending order, and their counts.
        width = len(self.vocabulary)
        pairs, counts = np.unique(row[inside] * width + words[inside], return_counts=True)
        entry_row = pairs // width
        distinct = np.bincount(entry_row, minlength=last - first)
        found = np.bincount(row[inside], minlength=last - first)
        # A row's text starts where the one before it ends.
        ends = np.asarray(self.rows.spool.column("ends")[max(first - 1, 0) : last])
        begins = np.concatenate([[0], ends[:-1]]) if first == 0 else ends[:-1]
        spans = np.stack([begins, ends[-(last - first) :]], axis=1)
        for k, part in enumerate(self.parts):
            own = use == k
            kept = np.flatnonzero(own & (distinct > 0))
            empty = first + np.flatnonzero(own & (distinct == 0))
            entries = own[entry_row]
            offsets = self.entries[k] + np.cumsum(distinct[kept])
            for name, values in (
                ("offsets", offsets),
                ("words", (pairs % width)[entries]),
                ("counts", counts[entries]),
                ("labels", self.label_numbers[self.rows.labels[first:last][kept]]),
                (_SPANS, spans[kept].ravel()),
            ):
                out.append(f"{part}/{name}", values)
            self.entries[k] += int(entries.sum())
            self.known[k] += int(found[own].sum())
            self.unknown[k] += int(sizes[own].sum() - found[own].sum())
            self.wordless[k] += len(empty)
            self.examples[k] += empty[: EXAMPLES - len(self.examples[k])].tolist()

    def _corpus(self, number: int, part: str) -> Corpus:
        place = self.folder / part
        arrays = {
            name: np.load(place / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in ARRAYS
        }
        if not len(arrays["labels"]):
            rows, size = int((self.use == number).sum()), len(self.vocabulary)
            raise AttnlabError(
                f"none of the {rows} texts ({part}) has a word of the vocabulary of {size} words"
            )
        corpus = Corpus(**arrays, vocabulary=self.vocabulary.words, classes=self.classes)
        seal_corpus(corpus, place)
        return corpus


def _part(
    rows: Rows,
    use: ndarray,
    number: int,
    name: str,
    corpus: Corpus,
    index: _Index,
    twice: tuple[Dropped, ...],
) -> ReadPart:
    """The report on one part."""
    own_files = name in rows.readers and name != "train"
    source = name if own_files else "train"
    reader, (begin, end) = rows.readers[source], rows.span(source)
    starts = [
        start for (part, _), start in zip(rows.listed, rows.begins, strict=True) if part == source
    ]
    bounds = [*starts, end]
    mine = use[begin:end] == number
    counts = [int(mine[a - begin : b - begin].sum()) for a, b in pairwise(bounds)]
    leaks = None
    if own_files:
        places = leaked(rows, use, number)
        examples = tuple(rows.example(int(i)) for i in places[:EXAMPLES])
        leaks = Leaks(len(places), len(places) / max(sum(counts), 1), places - begin, examples)
    empty = tuple(rows.example(i) for i in index.examples[number])
    return ReadPart(
        corpus,
        tuple(file for part, file in rows.listed if part == source),
        tuple(reader.formats),
        tuple(reader.encodings),
        tuple(counts),
        reader.dropped.entries() + (() if own_files else twice),
        reader.label_values(),
        Dropped(f"no known word ({name})", index.wordless[number], empty),
        index.known[number],
        index.unknown[number],
        leaks,
        reader.recoded.entries(),
    )
