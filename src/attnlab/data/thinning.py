"""Limits for very many or very long texts, and the random subsets that are used instead."""

from __future__ import annotations

import numpy as np

from attnlab.data._corpus import Corpus

# training in the theory's setting
TRAINING = 50_000  # training texts for attended words and competing words
MEASURED = 20_000  # texts of each part for loss and accuracy during training, and the deletion test
CURVATURE = 20_000  # training texts for gradient, curvature and the path between two seeds
FULL_BATCH = 500_000  # largest corpus, in entries, for which every step uses all sentences
BATCH = 1024  # sentences per step beyond that
POLISHED = 1_000_000  # largest corpus, in words, for which the final minimisation is fast enough
# learning curves and variants
LABELS = 16_384  # training texts at the largest size, with which variants are compared too
LOOKED_AT = 4000  # validation and test texts
LONGEST = 400  # words per text: all texts are padded to the longest
# figures
LENGTHS = 5000  # training texts in the figure of lengths
_PERMUTED = 400_000_000  # words of all texts times permutations of labels
_FEWEST = 20


def some_of(corpus: Corpus, most: int) -> tuple[Corpus, np.ndarray]:
    """A fixed random subset of at most ``most`` sentences, and their numbers, ascending.

    >>> from attnlab.data import Corpus
    >>> corpus = Corpus.from_tokens([["a"], ["b"]] * 50, labels=[0, 1] * 50)
    >>> few, numbers = some_of(corpus, 3)
    >>> len(few), few == corpus.subset(numbers), some_of(corpus, 200)[0] is corpus
    (3, True, True)
    """
    numbers = np.arange(len(corpus))
    if len(corpus) <= most:
        return corpus, numbers
    numbers = np.sort(np.random.default_rng(0).permutation(len(corpus))[:most])
    return corpus.subset(numbers), numbers


def shortened(corpus: Corpus, most: int, rng: np.random.Generator) -> Corpus:
    """The corpus with sentences of at most ``most`` words; longer ones keep a random subset.

    >>> from attnlab.data import Corpus
    >>> corpus = Corpus.from_tokens([["a", "b", "b", "c"], ["a"]], labels=[0, 1])
    >>> shortened(corpus, 2, np.random.default_rng(0)).lengths.tolist()
    [2, 1]
    """
    if int(corpus.lengths.max()) <= most:
        return corpus
    rows, words = (np.repeat(each, corpus.counts) for each in (corpus.rows, corpus.words))
    order = np.lexsort((rng.random(len(rows)), rows))
    place = np.arange(len(rows)) - np.repeat(
        np.cumsum(corpus.lengths) - corpus.lengths, corpus.lengths
    )
    kept = order[place < most]
    pairs = rows[kept], words[kept]
    return type(corpus).from_pairs(
        *pairs, labels=corpus.labels, vocabulary=corpus.vocabulary, classes=corpus.classes
    )


def permutations_for(words: int, asked: int) -> int:
    """How many permutations of labels are affordable for so many words of all texts: as asked, or
    fewer, and at least 20.

    >>> [permutations_for(words, 200) for words in (6, 10_000_000, 1_000_000_000)]
    [200, 40, 20]
    """
    return min(asked, max(_FEWEST, _PERMUTED // max(words, 1)))
