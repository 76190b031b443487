"""Assigns the rows of a stream to parts: duplicates, a split by hash, leaks.

A text is represented by a hash of 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Int8, UInt64
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.data._splits import share_counts, too_few
from attnlab.data._stream_rows import Rows
from attnlab.data._texts import EXAMPLES, Dropped

LEFT_OUT = -1
_SORTED = 2**23  # keys that are sorted at one time


def first_equal(keys: UInt64[ndarray, "rows 2"], at_once: int = _SORTED) -> Int[ndarray, "rows"]:
    """For each row, the first row with the same key (possibly itself).

    Keys are hashes: rows are grouped by the remainder of their key, and one group is sorted at a
    time.

    >>> keys = np.array([[1, 2], [3, 2], [1, 2], [1, 4]], np.uint64)
    >>> first_equal(keys).tolist(), first_equal(keys, at_once=1).tolist()
    ([0, 1, 0, 3], [0, 1, 0, 3])
    """
    shares = len(keys) // at_once + 1
    share = (keys[:, 0] % np.uint64(shares)).astype(np.uint16)
    first = np.arange(len(keys))
    for k in range(shares):
        own = np.flatnonzero(share == k)
        high, low = keys[own, 0], keys[own, 1]
        order = np.lexsort((low, high))  # stable: of equal keys the first row stays first
        high, low = high[order], low[order]
        begins = np.concatenate([[True], (high[1:] != high[:-1]) | (low[1:] != low[:-1])])[
            : len(own)
        ]
        heads = order[np.flatnonzero(begins)]
        first[own[order]] = own[heads[np.cumsum(begins) - 1]]
    return first


def use_of_rows(
    rows: Rows, parts: Sequence[str], fractions: Sequence[float], seed: int
) -> tuple[Int8[ndarray, "rows"], tuple[Dropped, ...]]:
    """The part of each row, by number, or ``LEFT_OUT``; and what was left out.

    The texts of the training files are each kept once, or not at all if their labels differ; they
    are split by ``fractions`` into the first of ``parts``. The files of further parts are taken as
    they are.
    """
    begin, end = rows.span("train")
    use = np.zeros(len(rows.labels), np.int8)
    for number, part in enumerate(parts[len(fractions) :], start=len(fractions)):
        use[slice(*rows.span(part))] = number
    keys, labels = rows.keys[begin:end], np.asarray(rows.labels[begin:end])
    first = first_equal(keys)
    several = np.zeros(end - begin, bool)
    several[first[labels != labels[first]]] = True
    contradictory = several[first]
    duplicate = (first != np.arange(len(first))) & ~contradictory
    dropped = _dropped(
        rows, {"duplicate": duplicate, "contradictory duplicate": contradictory}, begin
    )
    use[begin:end][duplicate | contradictory] = LEFT_OUT
    if (use[begin:end] == LEFT_OUT).all():
        raise AttnlabError(
            f"all {end - begin} texts occur with several labels ({dropped[0].examples[0]}): "
            "nothing is left to learn from; check the label column"
        )
    if len(fractions) > 1:
        kept = begin + np.flatnonzero(use[begin:end] != LEFT_OUT)
        use[kept] = _divided(
            rows.keys[kept, 0], np.asarray(rows.labels[kept]), fractions, seed, rows.classes
        )
    return use, dropped


def _divided(
    keys: UInt64[ndarray, "rows"],
    labels: ndarray,
    fractions: Sequence[float],
    seed: int,
    names: Sequence[str],
) -> Int8[ndarray, "rows"]:
    """Parts of the given fractions, with every class in each, by a hash of text and seed.

    The split does not depend on the order or the files of the texts.
    """
    drawn = _mixed(keys ^ _mixed(np.array([seed], np.uint64)))
    part = np.zeros(len(keys), np.int8)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if len(own) < len(fractions):
            raise too_few(names[int(label)], len(own), len(fractions))
        cuts = np.cumsum(share_counts(len(own), np.asarray(fractions)))[:-1]
        values = drawn[own]
        ends = np.partition(values, cuts - 1)[cuts - 1]
        part[own] = (values[:, None] > ends[None, :]).sum(axis=1)
    return part


def _mixed(values: UInt64[ndarray, "rows"]) -> UInt64[ndarray, "rows"]:
    """The finaliser of SplitMix64: a bijection of 64 bits; every output bit depends on all inputs."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def leaked(rows: Rows, use: Int8[ndarray, "rows"], part: int) -> Int[ndarray, "leaks"]:
    """The rows of a part whose text is also a training text."""
    train, other = np.flatnonzero(use == 0), np.flatnonzero(use == part)
    first = first_equal(np.concatenate([rows.keys[train], rows.keys[other]]))
    return other[first[len(train) :] < len(train)]


def _dropped(rows: Rows, masks: dict[str, ndarray], begin: int) -> tuple[Dropped, ...]:
    """One entry per reason, in the order in which they first occur."""
    found = {reason: np.flatnonzero(mask) for reason, mask in masks.items() if mask.any()}
    return tuple(
        Dropped(reason, len(places), tuple(rows.example(begin + int(i)) for i in places[:EXAMPLES]))
        for reason, places in sorted(found.items(), key=lambda item: item[1][0])
    )
