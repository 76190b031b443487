"""Splits a user's texts into parts without leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Int8, UInt64
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.data._columns import shown
from attnlab.data._texts import EXAMPLES, Example, Texts, equal_texts, text_key


def split_texts(
    texts: Texts, *, fractions: Sequence[float] = (0.8, 0.1, 0.1), seed: int
) -> tuple[Texts, ...]:
    """Parts of the given fractions, every class spread evenly over them.

    The rule is one for texts in memory and in a stream: in every class the different texts are
    ordered by a hash of text and ``seed``, and this order is cut at the fractions. Files and rows
    play no part in it, and a further text moves at most one other text over each cut of its class.

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
    # A group of equal texts with several labels counts for the label it has first.
    _, firsts = np.unique(groups, return_index=True)
    names, numbers = np.unique(labels[firsts], return_inverse=True)
    keys = key_numbers([texts.texts[i] for i in firsts])
    part = parts_by_hash(keys[:, 0], numbers, shares, seed, names)[groups]
    return tuple(texts.take(np.flatnonzero(part == k)) for k in range(len(shares)))


def key_numbers(texts: Sequence[str]) -> UInt64[ndarray, "texts 2"]:
    """The keys of texts as numbers: 128 bits, equal exactly for texts that are equal."""
    return np.frombuffer(b"".join(map(text_key, texts)), "<u8").reshape(-1, 2)


def parts_by_hash(
    keys: UInt64[ndarray, "texts"],
    labels: Int[ndarray, "texts"],
    fractions: Sequence[float] | ndarray,
    seed: int,
    names: Sequence[str] | ndarray,
) -> Int8[ndarray, "texts"]:
    """The part of each of some different texts, by number: ``split_texts`` states the rule.

    ``keys``: the first 64 bits of each text's key; ``names``: of the classes behind ``labels``.

    >>> keys = key_numbers([f"text {i}" for i in range(10)])[:, 0]
    >>> parts_by_hash(keys, np.zeros(10, int), (0.8, 0.1, 0.1), 0, ["all"]).tolist()
    [0, 0, 2, 0, 0, 0, 0, 0, 1, 0]
    """
    drawn = _mixed(keys ^ _mixed(np.array([seed % 2**64], np.uint64)))
    part = np.zeros(len(keys), np.int8)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if len(own) < len(fractions):
            raise too_few(str(names[int(label)]), len(own), len(fractions))
        cuts = np.cumsum(share_counts(len(own), np.asarray(fractions)))[:-1]
        values = drawn[own]
        ends = np.partition(values, cuts - 1)[cuts - 1]  # the last value before each cut
        part[own] = (values[:, None] > ends[None, :]).sum(axis=1)
    return part


def _mixed(values: UInt64[ndarray, "texts"]) -> UInt64[ndarray, "texts"]:
    """The finaliser of SplitMix64: a bijection of 64 bits, every one of which depends on all."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def too_few(label: str, texts: int, parts: int) -> AttnlabError:
    """The error for a class that cannot be in every part."""
    return AttnlabError(
        f"the class {shown([label])} has {texts} different text(s), too few for {parts} parts (training, "
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
