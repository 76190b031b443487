"""Labelled bags of words, stored without padding."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.data._corpus_files import hash_names, open_corpus, save_corpus

_PIECE = 2**20


@dataclass(frozen=True)
class WordIndex:
    """The transposed index: word ``w`` occurs in ``sentences[offsets[w]:offsets[w + 1]]``, ascending."""

    offsets: Int[ndarray, "bounds"]
    sentences: Int[ndarray, "entries"]
    counts: Int[ndarray, "entries"]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Immutable labelled bags of words.

    Sentence ``n`` holds the distinct words ``words[offsets[n]:offsets[n + 1]]``, ascending, and
    their numbers of occurrences in ``counts`` at the same places. There is no padding.

    - ``offsets``: (sentences + 1,), ``words`` and ``counts``: (entries,), ``labels``: (sentences,)
      class numbers.
    - ``vocabulary`` and ``classes`` are the names behind the numbers.

    >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "bad", "film"]], labels=["pos", "neg"])
    >>> corpus
    Corpus(2 sentences, 5 words in all, vocabulary 3, 2 classes)
    >>> corpus.sentence(1)
    {'bad': 2, 'film': 1}
    >>> corpus.lengths
    array([2, 3])
    """

    offsets: Int[ndarray, "bounds"]
    words: Int[ndarray, "entries"]
    counts: Int[ndarray, "entries"]
    labels: Int[ndarray, "sentences"]
    vocabulary: tuple[str, ...]
    classes: tuple[str, ...]

    def __post_init__(self):
        for name, dtype in (
            ("offsets", np.int64),
            ("words", np.int32),
            ("counts", np.int32),
            ("labels", np.int32),
        ):
            given = getattr(self, name)
            if isinstance(given, np.memmap) and given.dtype == dtype and not given.flags.writeable:
                array = np.asarray(given)  # stays on disk
            else:
                array = np.array(given, dtype=dtype)
                array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "vocabulary", tuple(self.vocabulary))
        object.__setattr__(self, "classes", tuple(self.classes))
        _check(self)

    @classmethod
    def from_tokens(
        cls,
        sentences: Iterable[Sequence[str]],
        labels: Iterable[Hashable],
        *,
        vocabulary: Sequence[str] | None = None,
        classes: Sequence[Hashable] | None = None,
    ) -> Corpus:
        """Count the words of tokenised sentences.

        By default ``vocabulary`` and ``classes`` are taken from the data, sorted by name. A word
        outside a given vocabulary is an error: drop unknown words first.
        """
        sentences, labels = list(sentences), list(labels)
        if len(sentences) != len(labels):
            raise AttnlabError(
                f"got {len(sentences)} sentences but {len(labels)} labels; give one label per "
                "sentence"
            )
        names = (
            list(vocabulary)
            if vocabulary is not None
            else sorted({w for s in sentences for w in s})
        )
        kinds = (
            list(classes)
            if classes is not None
            else sorted(set(labels), key=lambda c: (str(type(c)), c))
        )
        word_ids = {w: i for i, w in enumerate(names)}
        class_ids = {c: i for i, c in enumerate(kinds)}
        flat_words, flat_sentences = [], []
        for n, sentence in enumerate(sentences):
            for word in sentence:
                if word not in word_ids:
                    raise AttnlabError(
                        f"sentence {n}: the word {word!r} is not in the vocabulary of "
                        f"{len(names)} words"
                    )
                flat_words.append(word_ids[word])
                flat_sentences.append(n)
        numbers = np.zeros(len(labels), np.int32)
        for n, label in enumerate(labels):
            if label not in class_ids:
                raise AttnlabError(
                    f"sentence {n}: unknown label {label!r}; the classes are {_shown(kinds)}"
                )
            numbers[n] = class_ids[label]
        return cls.from_pairs(
            np.asarray(flat_sentences, np.int64),
            np.asarray(flat_words, np.int64),
            numbers,
            vocabulary=tuple(map(str, names)),
            classes=tuple(map(str, kinds)),
        )

    @classmethod
    def from_pairs(
        cls,
        sentences: Int[ndarray, "tokens"],
        words: Int[ndarray, "tokens"],
        labels: Int[ndarray, "sentences"],
        *,
        vocabulary: Sequence[str],
        classes: Sequence[str],
    ) -> Corpus:
        """A corpus from one (sentence number, word number) pair per token, in any order."""
        width = max(len(vocabulary), 1)
        if len(words) and not 0 <= words.min() <= words.max() < width:
            raise AttnlabError(
                f"word numbers lie in {words.min()}..{words.max()}, expected 0..{width - 1}"
            )
        pairs, counts = np.unique(sentences * np.int64(width) + words, return_counts=True)
        rows = pairs // width
        offsets = np.searchsorted(rows, np.arange(len(labels) + 1))
        return cls(offsets, pairs % width, counts, labels, tuple(vocabulary), tuple(classes))

    def save(self, folder: str | Path) -> Path:
        """Write plain arrays and a JSON file to a folder, which must not hold another corpus."""
        return save_corpus(self, folder)

    @classmethod
    def open(cls, folder: str | Path) -> Corpus:
        """A stored corpus; its arrays stay on disk and are memory-mapped.

        Sizes and checksums are verified: a truncated or changed file is an error.

        >>> import tempfile
        >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "film"]], labels=["pos", "neg"])
        >>> Corpus.open(corpus.save(tempfile.mkdtemp())) == corpus
        True
        """
        stored, content, trusted = open_corpus(folder)
        if trusted:
            return cls._unread(stored, content)
        corpus = cls(**stored)
        if corpus.content_hash != content:
            raise AttnlabError(
                f"{folder}: the names in corpus.json were changed after they were written; save "
                "it again"
            )
        return corpus

    @classmethod
    def _unread(cls, stored: dict[str, Any], content_hash: str) -> Corpus:
        """A corpus that was checked when it was written: its arrays are not read before use."""
        corpus = cls.__new__(cls)
        for name, value in stored.items():
            object.__setattr__(
                corpus, name, np.asarray(value) if isinstance(value, np.ndarray) else value
            )
        object.__setattr__(corpus, "content_hash", content_hash)  # as a cached property keeps it
        return corpus

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return (
            f"Corpus({len(self)} sentences, {int(self.counts.sum())} words in all, "
            f"vocabulary {len(self.vocabulary)}, {len(self.classes)} classes)"
        )

    def sentence(self, n: int) -> dict[str, int]:
        """The words of sentence ``n`` and how often each occurs."""
        span = slice(self.offsets[n], self.offsets[n + 1])
        return {
            self.vocabulary[w]: int(c)
            for w, c in zip(self.words[span], self.counts[span], strict=True)
        }

    @cached_property
    def lengths(self) -> Int[ndarray, "sentences"]:
        """Number of words of each sentence, repeats counted."""
        return np.add.reduceat(self.counts, self.offsets[:-1]).astype(np.int64)

    @cached_property
    def rows(self) -> Int[ndarray, "entries"]:
        """The sentence of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def by_word(self) -> WordIndex:
        """The transposed index, word → sentences."""
        order = np.argsort(self.words, kind="stable")
        sizes = np.bincount(self.words, minlength=len(self.vocabulary))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return WordIndex(offsets, self.rows[order].astype(np.int32), self.counts[order])

    @cached_property
    def sentence_frequency(self) -> Int[ndarray, "words"]:
        """In how many sentences each word occurs."""
        return np.diff(self.by_word.offsets)

    @cached_property
    def mean_others(self) -> Float[ndarray, "words"]:
        """``m`` of docs/theory.md#a7 per word: mean length of its sentences minus one (nan if none)."""
        totals = np.bincount(
            self.words, weights=self.lengths[self.rows], minlength=len(self.vocabulary)
        )
        with np.errstate(invalid="ignore"):
            return totals / self.sentence_frequency - 1.0

    def word_ids(self, words: Iterable[str | int | np.integer] | None) -> Int[ndarray, "chosen"]:
        """Numbers of the given words (names or numbers); of all words for ``None``."""
        if words is None:
            return np.arange(len(self.vocabulary))
        numbers = []
        names: dict[str, int] | None = None
        for word in words:
            if isinstance(word, str):
                names = names or {name: i for i, name in enumerate(self.vocabulary)}
                if word not in names:
                    raise AttnlabError(
                        f"the word {word!r} is not in the vocabulary of {len(self.vocabulary)} "
                        "words"
                    )
                numbers.append(names[word])
            elif 0 <= int(word) < len(self.vocabulary):
                numbers.append(int(word))
            else:
                raise AttnlabError(f"word number {word} is outside 0..{len(self.vocabulary) - 1}")
        return np.asarray(numbers, np.int64)

    def subset(self, sentences: Sequence[int] | ndarray) -> Corpus:
        """The given sentences (numbers, in this order, or a mask), with vocabulary and classes kept."""
        given = np.asarray(sentences)
        if given.dtype == bool and given.shape != self.labels.shape:
            raise AttnlabError(
                f"a mask of {given.size} booleans for {len(self)} sentences: expected one each"
            )
        chosen = np.flatnonzero(given) if given.dtype == bool else given.astype(np.int64)
        if chosen.size and not -1 < chosen.min() <= chosen.max() < len(self):
            raise AttnlabError(
                f"sentence numbers must lie in 0..{len(self) - 1}, got "
                f"{chosen.min()}..{chosen.max()}"
            )
        sizes = np.diff(self.offsets)[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - self.offsets[chosen], sizes)
        return Corpus(
            offsets,
            self.words[places],
            self.counts[places],
            self.labels[chosen],
            self.vocabulary,
            self.classes,
        )

    def padded(self, length: int, word: str = "<pad>") -> Corpus:
        """The corpus with a further word, which fills shorter sentences up to ``length`` words.

        With it a model is that of Lu et al.'s code, where padding is a word like any other: it has
        a score and an embedding, both trained, and takes its part of the attention. Longer
        sentences stay as they are.

        >>> corpus = Corpus.from_tokens([["good", "film"], ["bad"]], labels=["pos", "neg"])
        >>> corpus.padded(3).sentence(1)
        {'bad': 1, '<pad>': 2}
        """
        if word in self.vocabulary:
            raise AttnlabError(
                f"the word {word!r} is in the vocabulary: choose another name for the padding word"
            )
        if length < 1:
            raise AttnlabError(f"length={length}: expected at least 1")
        missing = np.maximum(length - self.lengths, 0)
        short = np.flatnonzero(missing)
        ends = self.offsets[short + 1]  # behind all others: the new word has the highest number
        return Corpus(
            self.offsets + np.concatenate([[0], np.cumsum(missing > 0)]),
            np.insert(self.words, ends, len(self.vocabulary)),
            np.insert(self.counts, ends, missing[short]),
            self.labels,
            (*self.vocabulary, word),
            self.classes,
        )

    def split(self, *fractions: float, seed: int) -> tuple[Corpus, ...]:
        """Random parts of the given fractions, each class spread evenly over them.

        >>> corpus = Corpus.from_tokens([["a"], ["b"]] * 50, labels=[0, 1] * 50)
        >>> train, test = corpus.split(0.8, 0.2, seed=0)
        >>> len(train), len(test), int(test.labels.sum())
        (80, 20, 10)
        """
        if not fractions or min(fractions) <= 0 or sum(fractions) > 1 + 1e-9:
            raise AttnlabError(f"fractions must be positive and sum to at most 1, got {fractions}")
        order = np.random.default_rng(seed).permutation(len(self))
        # Sentences of one class, in random order, get evenly spaced positions: cutting the sorted
        # positions then cuts every class at the same fraction.
        position = np.empty(len(self))
        for label in range(len(self.classes)):
            members = order[self.labels[order] == label]
            position[members] = (np.arange(len(members)) + 0.5) / max(len(members), 1)
        ranked = order[np.argsort(position[order], kind="stable")]
        cuts = np.round(np.concatenate([[0.0], np.cumsum(fractions)]) * len(self)).astype(int)
        if (np.diff(cuts) < 1).any():
            raise AttnlabError(f"{len(self)} sentences are too few for parts of {fractions}")
        return tuple(self.subset(np.sort(ranked[a:b])) for a, b in pairwise(cuts))

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 over words, counts, labels and names; equal on every machine."""
        digest = hashlib.sha256(b"attnlab.Corpus.1")
        for array in (self.offsets, self.words, self.counts, self.labels):
            # In pieces: a memory-mapped array may be larger than memory.
            for first in range(0, len(array), _PIECE):
                piece = array[first : first + _PIECE]
                digest.update(
                    np.ascontiguousarray(
                        piece.astype(array.dtype.newbyteorder("<"), copy=False)
                    ).data
                )
        hash_names(digest, self.vocabulary, self.classes)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Corpus) and self.content_hash == other.content_hash

    def __hash__(self) -> int:
        return hash(self.content_hash)


def _shown(names: Sequence[object], most: int = 8) -> str:
    head = ", ".join(repr(n) for n in names[:most])
    return head if len(names) <= most else f"{head}, … ({len(names)} in all)"


def _check(corpus: Corpus) -> None:
    """Raise an error for a corpus that cannot be trained on."""
    offsets, words, counts, labels = corpus.offsets, corpus.words, corpus.counts, corpus.labels
    if len(labels) == 0:
        raise AttnlabError("the corpus has no sentence")
    if len(corpus.vocabulary) < 2:
        raise AttnlabError(
            f"the vocabulary has {len(corpus.vocabulary)} word(s): attention needs at least 2 to "
            "choose between"
        )
    if len(corpus.classes) < 2:
        raise AttnlabError(
            f"all sentences have the one label {_shown(corpus.classes)}: classification needs at "
            "least 2 classes"
        )
    if (
        len(offsets) != len(labels) + 1
        or offsets[0] != 0
        or offsets[-1] != len(words)
        or len(counts) != len(words)
    ):
        raise AttnlabError(
            f"offsets (length {len(offsets)}, ending at {offsets[-1]}) do not fit {len(labels)} "
            "labels "
            f"and {len(words)} entries with {len(counts)} counts"
        )
    empty = np.flatnonzero(np.diff(offsets) <= 0)
    if len(empty):
        raise AttnlabError(
            f"{len(empty)} sentence(s) have no word, the first is number {empty[0]}; drop empty "
            "sentences first"
        )
    if words.min() < 0 or words.max() >= len(corpus.vocabulary):
        raise AttnlabError(
            f"word numbers lie in {words.min()}..{words.max()}, expected "
            f"0..{len(corpus.vocabulary) - 1}"
        )
    if counts.min() < 1:
        raise AttnlabError(f"counts must be at least 1, got {counts.min()}")
    bad = np.flatnonzero((labels < 0) | (labels >= len(corpus.classes)))
    if len(bad):
        raise AttnlabError(
            f"sentence {bad[0]}: unknown label number {labels[bad[0]]}; the classes are "
            f"{_shown(corpus.classes)}"
        )
