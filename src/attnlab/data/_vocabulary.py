"""The vocabulary of the training texts, and texts as bags of its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.data._corpus import Corpus
from attnlab.data._texts import class_order
from attnlab.data._tokens import Tokenizer

Words = Callable[[str], list[str]]
_AT_ONCE = 512  # texts whose words are held as strings at one time


@dataclass(frozen=True, eq=False)
class Encoded:
    """Texts as numbers of known words, in the order of the text, repeats included.

    Text ``i`` has the words ``words[offsets[i]:offsets[i + 1]]``, possibly none; ``unknown``:
    (texts,) the number of its words outside the vocabulary.
    """

    offsets: Int[ndarray, "bounds"]
    words: Int[ndarray, "tokens"]
    unknown: Int[ndarray, "texts"]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words that a model knows, sorted by name. Other words are dropped and counted.

    - ``counts``: (words,) occurrences of each in the texts it was built on;
    - ``left_out``: the number of distinct words left out, because too rare or too many.

    >>> vocabulary = Vocabulary.of(["a good film", "a bad film", "a dull one"], min_count=2)
    >>> vocabulary.words, vocabulary.counts.tolist(), vocabulary.left_out
    (('a', 'film'), [3, 2], 4)
    """

    words: tuple[str, ...]
    counts: Int[ndarray, "words"]
    left_out: int = 0

    @classmethod
    def of(
        cls,
        texts: Iterable[str],
        *,
        tokenizer: Words = Tokenizer(),  # noqa: B008  (frozen)
        min_count: int = 1,
        max_size: int | None = None,
    ) -> Vocabulary:
        """A vocabulary from the words of the training texts only.

        Words that occur fewer than ``min_count`` times are left out; of the others the ``max_size``
        most frequent are kept (equally frequent ones by name).
        """
        counted: Counter[str] = Counter()
        for text in texts:
            counted.update(tokenizer(text))
        return cls.from_counts(counted, min_count=min_count, max_size=max_size)

    @classmethod
    def from_counts(
        cls, counted: Mapping[str, int], *, min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """The same from the number of occurrences of each word."""
        if min_count < 1 or (max_size is not None and max_size < 2):
            raise AttnlabError(
                f"min_count={min_count}, max_size={max_size}: expected min_count ≥ 1 and max_size "
                "≥ 2"
            )
        kept = [word for word, count in counted.items() if count >= min_count]
        if max_size is not None and len(kept) > max_size:
            kept = sorted(kept, key=lambda word: (-counted[word], word))[:max_size]
        if len(kept) < 2:
            raise AttnlabError(
                f"the texts have {len(counted)} different words, {len(kept)} of them {min_count} "
                "times or more; attention needs at least 2 to choose between: give more texts, or "
                "lower min_count (--min-count)"
            )
        kept.sort()
        return cls(
            tuple(kept),
            np.array([counted[word] for word in kept], np.int64),
            len(counted) - len(kept),
        )

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} words, {self.left_out} left out)"

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: i for i, word in enumerate(self.words)}

    def encode(self, texts: Sequence[str], *, tokenizer: Words = Tokenizer()) -> Encoded:  # noqa: B008  (frozen)
        """Texts as word numbers, in batches of texts to bound memory.

        >>> vocabulary = Vocabulary.of(["a good film", "a bad film"])
        >>> encoded = vocabulary.encode(["a film a film", "strange", "good grief"])
        >>> encoded.offsets.tolist(), encoded.words.tolist(), encoded.unknown.tolist()
        ([0, 4, 4, 5], [0, 2, 0, 2, 3], [0, 1, 1])
        """
        numbers, parts, known, total = self.numbers, [], [], []
        for start in range(0, len(texts), _AT_ONCE):
            cut = [tokenizer(text) for text in texts[start : start + _AT_ONCE]]
            sizes = np.array([len(words) for words in cut], np.int64)
            found = np.fromiter(
                (numbers.get(w, -1) for words in cut for w in words), np.int32, int(sizes.sum())
            )
            inside = found >= 0
            upto = np.concatenate([[0], np.cumsum(inside)])[np.concatenate([[0], np.cumsum(sizes)])]
            parts.append(found[inside])
            known.append(np.diff(upto))
            total.append(sizes)
        lengths, everything = (
            np.concatenate([np.zeros(0, np.int64), *each]) for each in (known, total)
        )
        return Encoded(
            np.concatenate([[0], np.cumsum(lengths)]),
            np.concatenate([np.zeros(0, np.int32), *parts]),
            everything - lengths,
        )


@dataclass(frozen=True, eq=False)
class Indexed:
    """A corpus from texts, and what was left out.

    - ``kept``: (sentences,) the number of the text of each sentence of ``corpus``;
    - ``wordless``: numbers of the texts without any known word, which are not in the corpus;
    - ``known``, ``unknown``: numbers of words in the vocabulary, and of dropped words.
    """

    corpus: Corpus
    kept: Int[ndarray, "sentences"]
    wordless: Int[ndarray, "left_out"]
    known: int
    unknown: int

    @property
    def unknown_share(self) -> float:
        """The share of words that were dropped."""
        return self.unknown / max(self.known + self.unknown, 1)


def index_texts(
    texts: Sequence[str],
    labels: Sequence[str],
    vocabulary: Vocabulary,
    *,
    classes: Sequence[str] | None = None,
    tokenizer: Words = Tokenizer(),  # noqa: B008  (frozen)
) -> Indexed:
    """Texts as a corpus over a vocabulary and over ``classes`` (by default those of the labels).

    Unknown words are dropped and counted, and so are texts that have no known word.

    >>> vocabulary = Vocabulary.of(["good film", "bad film"])
    >>> indexed = index_texts(["good good film", "what?", "bad one"], ["pos", "neg", "neg"], vocabulary)
    >>> indexed.corpus, indexed.kept.tolist(), indexed.wordless.tolist(), indexed.unknown
    (Corpus(2 sentences, 4 words in all, vocabulary 3, 2 classes), [0, 2], [1], 2)
    """
    if len(texts) != len(labels):
        raise AttnlabError(
            f"got {len(texts)} texts but {len(labels)} labels; give one label per text"
        )
    names = tuple(sorted(set(labels), key=class_order)) if classes is None else tuple(classes)
    numbers = {name: i for i, name in enumerate(names)}
    strange = next((i for i, label in enumerate(labels) if label not in numbers), None)
    if strange is not None:
        raise AttnlabError(
            f"text {strange + 1}: the label {labels[strange]!r} is not one of the classes "
            f"{list(names)}"
        )
    encoded = vocabulary.encode(texts, tokenizer=tokenizer)
    sizes = np.diff(encoded.offsets)
    kept = np.flatnonzero(sizes)
    if not len(kept):
        raise AttnlabError(
            f"none of the {len(texts)} texts has a word of the vocabulary of {len(vocabulary)} "
            "words"
        )
    corpus = Corpus.from_pairs(
        np.repeat(np.arange(len(kept)), sizes[kept]),
        encoded.words.astype(np.int64),
        np.array([numbers[labels[i]] for i in kept.tolist()], np.int32),
        vocabulary=vocabulary.words,
        classes=names,
    )
    return Indexed(
        corpus, kept, np.flatnonzero(sizes == 0), len(encoded.words), int(encoded.unknown.sum())
    )
