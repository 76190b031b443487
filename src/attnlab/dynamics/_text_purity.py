"""Purity of words: how strongly a word indicates a class, and how much of it exceeds chance
(docs/theory.md#a7).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr
from jaxtyping import Float, Int, Shaped
from numpy import ndarray
from scipy.sparse import csr_array

from attnlab._errors import AttnlabError
from attnlab.data import Corpus

_BATCH = 2**22  # counts of permuted labels held in memory at once


def class_counts(corpus: Corpus) -> Int[ndarray, "words classes"]:
    """The number of sentences of each class that contain a word.

    >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "bad", "film"]], labels=["pos", "neg"])
    >>> class_counts(corpus).tolist()  # bad, film, good in neg, pos
    [[1, 0], [1, 1], [0, 1]]
    """
    classes = len(corpus.classes)
    pairs = corpus.words.astype(np.int64) * classes + corpus.labels[corpus.rows]
    return np.bincount(pairs, minlength=len(corpus.vocabulary) * classes).reshape(-1, classes)


def purity(corpus: Corpus) -> xr.DataArray:
    """δ(w): 1 if a word occurs in sentences of one class only, 0 if all classes have equal shares.

    ``δ = (K·max_k share_k − 1)/(K − 1)`` with the shares of the K classes among the sentences that
    contain w; for two classes this is ``|pos − neg|/(pos + neg)``. It is nan for a word that does
    not occur.

    >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "film"], ["bad", "good"], ["bad"]], labels="pnnn")
    >>> purity(corpus).sel(word=["bad", "film", "good"]).values.tolist()
    [1.0, 0.0, 0.0]
    """
    return xr.DataArray(
        _purity(class_counts(corpus)), {"word": word_names(corpus)}, "word", name="purity"
    )


def excess_purity(corpus: Corpus, *, seed: int, permutations: int = 200) -> xr.Dataset:
    """Purity in excess of that under permuted labels: rare words are pure by chance.

    Along ``word``: ``purity`` δ; ``null`` and ``spread``, mean and standard deviation of δ over
    random permutations of the sentences' labels; ``excess = purity − null``; ``frequency``, the
    number of sentences with the word; ``leaning``, the class that most of them have (empty in case
    of a tie). A word of one sentence has δ = 1 under every permutation, so its excess is 0.

    >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "film"]] * 20, labels=["pos", "neg"] * 20)
    >>> found = excess_purity(corpus, seed=0)
    >>> found.leaning.values.tolist(), found.excess.values.round(1).tolist()
    (['neg', '', 'pos'], [0.9, 0.0, 0.9])
    """
    if permutations < 2:
        raise AttnlabError(f"permutations={permutations}: expected at least 2, commonly 200")
    counts = class_counts(corpus)
    total, square = np.zeros(len(counts)), np.zeros(len(counts))
    for drawn in _permuted_purities(corpus, seed, permutations):
        total += drawn.sum(axis=1)
        square += (drawn**2).sum(axis=1)
    null, seen = total / permutations, _purity(counts)
    variance = np.maximum(square - permutations * null**2, 0) / (permutations - 1)
    variables = {
        "purity": seen,
        "null": null,
        "spread": np.sqrt(variance),
        "excess": seen - null,
        "frequency": corpus.sentence_frequency,
        "leaning": _leaning(counts, corpus.classes),
    }
    attrs = {"permutations": permutations, "seed": seed}
    return xr.Dataset(
        {k: ("word", v) for k, v in variables.items()}, {"word": word_names(corpus)}, attrs
    )


def word_names(corpus: Corpus) -> Shaped[ndarray, "words"]:
    """The vocabulary as labels of a ``word`` dimension."""
    return np.asarray(corpus.vocabulary, dtype=np.str_)


def _purity(counts: ndarray) -> Float[ndarray, "words"]:
    present, classes = counts.sum(axis=1), counts.shape[1]
    share = counts.max(axis=1) / np.where(present > 0, present, np.nan)
    return (classes * share - 1) / (classes - 1)


def _leaning(counts: ndarray, classes: tuple[str, ...]) -> Shaped[ndarray, "words"]:
    most = counts.max(axis=1, keepdims=True)
    sole = (counts == most).sum(axis=1) == 1
    return np.where(sole, np.asarray(classes, dtype=np.str_)[counts.argmax(axis=1)], "")


def _permuted_purities(
    corpus: Corpus, seed: int, permutations: int
) -> Iterator[Float[ndarray, "words some"]]:
    """δ of every word under permuted labels, in batches of permutations."""
    index, words, classes = corpus.by_word, len(corpus.vocabulary), len(corpus.classes)
    # Counts stay far below 2²⁴, so float32 represents them exactly.
    ones = np.ones(len(index.sentences), np.float32)
    occurs = csr_array((ones, index.sentences, index.offsets), shape=(words, len(corpus)))
    present = np.where(corpus.sentence_frequency > 0, corpus.sentence_frequency, np.nan)[:, None]
    rng = np.random.default_rng(seed)
    step = max(1, _BATCH // max(words, len(corpus)))
    for first in range(0, permutations, step):
        count = min(step, permutations - first)
        labels = rng.permuted(np.repeat(corpus.labels[None, :], count, axis=0), axis=1).T
        most = np.zeros((words, count), np.float32)
        for label in range(classes):
            most = np.maximum(most, occurs @ (labels == label).astype(np.float32))
        yield (classes * most.astype(np.float64) / present - 1) / (classes - 1)
