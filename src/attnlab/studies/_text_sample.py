"""Of very many texts, figures look at some: which, how many, and a record of it for the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from attnlab.studies._text_prepare import Prepared
    from attnlab.tasks import Corpus

TRAINING = 50_000  # training texts that are looked at after training: attended words, words that compete
MEASURED = 20_000  # texts of each part on which loss and accuracy are measured along training, or words are removed
CURVATURE = 20_000  # training texts behind gradient, curvature and the way between two seeds
LENGTHS = 5000  # training texts whose length is drawn
LONGEST = 400  # words of a text that learning curves read: all texts are padded to the longest
_PERMUTED = 400_000_000  # words of all texts times permutations of their labels
_FEWEST = 20


def some_of(corpus: Corpus, most: int) -> tuple[Corpus, np.ndarray]:
    """At most so many sentences, drawn at random, the same in every run; and their numbers, rising.

    >>> from attnlab.tasks import Corpus
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
    """The corpus with ``most`` words, drawn at random, of every sentence that has more.

    >>> from attnlab.tasks import Corpus
    >>> corpus = Corpus.from_tokens([["a", "b", "b", "c"], ["a"]], labels=[0, 1])
    >>> shortened(corpus, 2, np.random.default_rng(0)).lengths.tolist()
    [2, 1]
    """
    if int(corpus.lengths.max()) <= most:
        return corpus
    rows, words = (np.repeat(each, corpus.counts) for each in (corpus.rows, corpus.words))
    order = np.lexsort((rng.random(len(rows)), rows))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(corpus.lengths) - corpus.lengths, corpus.lengths)
    kept = order[place < most]
    pairs = rows[kept], words[kept]
    return type(corpus).from_pairs(*pairs, labels=corpus.labels, vocabulary=corpus.vocabulary, classes=corpus.classes)


def permutations_for(corpus: Corpus, asked: int) -> int:
    """How many permutations of labels are affordable for so many words: as asked, or fewer, and at least 20."""
    return min(asked, max(_FEWEST, _PERMUTED // max(len(corpus.words), 1)))


def sampled(prepared: Prepared, *, labels: int, variants: bool) -> list[dict[str, Any]]:
    """Figures that do not show all texts: ``figure``, how many were ``used``, ``of`` how many ``what``.

    ``labels``: of the largest size of the learning curves; ``variants``: whether variants of attention were tried.
    """
    from attnlab.studies._compare_words import LOOKED_AT as TRIED_ON
    from attnlab.studies._text import TextSettings
    from attnlab.studies._text_students import LOOKED_AT
    from attnlab.studies._text_try import MOST as TRIED

    train, valid, test = (len(part) for part in (prepared.train, prepared.valid, prepared.test))
    asked = TextSettings().permutations
    tried = [("what to try", TRIED, train, "labels"), ("what to try", TRIED_ON, test, "test texts")] if variants else []
    found = [
        ("words per text", LENGTHS, train, "training texts"),
        ("learning curves", labels, train, "labels"),
        ("learning curves", LOOKED_AT, valid, "validation texts"),
        ("learning curves", LOOKED_AT, test, "test texts"),
        *tried,
        ("loss and accuracy along training", MEASURED, train, "training texts"),
        ("loss and accuracy along training", MEASURED, valid, "validation texts"),
        ("loss and accuracy along training", MEASURED, test, "test texts"),
        ("attended words and words that compete", TRAINING, train, "training texts"),
        ("purity that chance gives", permutations_for(prepared.train, asked), asked, "permutations of the labels"),
        ("deletion test", MEASURED, test, "test texts"),
        ("where training stopped: loss, gradient, curvature, barrier", CURVATURE, train, "training texts"),
    ]
    long = int((prepared.train.lengths > LONGEST).sum())
    if long:
        found.append(("learning curves", LONGEST, int(prepared.train.lengths.max()), f"words of {long:,} longer texts"))
    return [{"figure": figure, "used": used, "of": of, "what": what} for figure, used, of, what in found if used < of]
