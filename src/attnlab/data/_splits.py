"""Splits a user's texts into parts without leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.data._texts import EXAMPLES, Example, Texts, equal_texts, text_key


def split_texts(
    texts: Texts, *, fractions: Sequence[float] = (0.8, 0.1, 0.1), seed: int
) -> tuple[Texts, ...]:
    """Random parts of the given fractions, stratified by class.

    Texts that differ only in white space are in the same part, and every class is in every part; a
    class with fewer different texts than parts is an error. Texts keep their order within a part.

    >>> texts = Texts.of([f"text {i}" for i in range(40)], ["pos", "neg"] * 20)
    >>> [part.class_counts for part in split_texts(texts, seed=0)]
    [{'neg': 16, 'pos': 16}, {'neg': 2, 'pos': 2}, {'neg': 2, 'pos': 2}]
    """
    shares = np.asarray(fractions, np.float64)
    if not len(shares) or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-9:
        raise AttnlabError(f"fractions={tuple(fractions)}: expected positive numbers that sum to 1")
    groups = np.asarray(equal_texts(texts.texts))
    labels = np.asarray(texts.labels if texts.labels else [""] * len(texts))
    _, firsts = np.unique(groups, return_index=True)
    part_of_group = np.zeros(len(firsts), np.int64)
    rng = np.random.default_rng(seed)
    # A group of equal texts with several labels counts as its first label.
    for label in sorted(set(labels[firsts].tolist())):
        members = rng.permutation(np.flatnonzero(labels[firsts] == label))
        if len(members) < len(shares):
            raise too_few(label, len(members), len(shares))
        part_of_group[members] = np.repeat(
            np.arange(len(shares)), share_counts(len(members), shares)
        )
    part = part_of_group[groups]
    return tuple(texts.take(np.flatnonzero(part == k)) for k in range(len(shares)))


def too_few(label: str, texts: int, parts: int) -> AttnlabError:
    """The error for a class that cannot be in every part."""
    return AttnlabError(
        f"the class {label!r} has {texts} different text(s), too few for {parts} parts (training, "
        "validation, test): give more rows of it, or leave the class out"
    )


def share_counts(total: int, shares: ndarray) -> Int[ndarray, "parts"]:
    """Whole numbers ≥ 1 nearest to these shares of a total (largest remainders)."""
    exact = shares * total
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    while (counts == 0).any():
        counts[np.argmax(counts)] -= 1
        counts[np.argmin(counts)] += 1
    return counts


@dataclass(frozen=True, eq=False)
class Leaks:
    """Texts of one part that are also training texts: how many, which, and the first few."""

    count: int
    share: float
    places: Int[ndarray, "leaks"]
    examples: tuple[Example, ...]


def leaks(train: Texts, other: Texts) -> Leaks:
    """The texts of ``other`` that also occur in ``train``, up to white space.

    >>> found = leaks(Texts.of(["a good film", "dull"]), Texts.of(["a good  film", "fine"]))
    >>> found.count, found.share, str(found.examples[0])
    (1, 0.5, "text 1: 'a good film'")
    """
    known = {text_key(text) for text in train.texts}
    places = np.flatnonzero([text_key(text) in known for text in other.texts])
    examples = tuple(other.example(int(i)) for i in places[:EXAMPLES])
    return Leaks(len(places), len(places) / max(len(other), 1), places, examples)
