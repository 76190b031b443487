"""Logits and attention of new texts, by NumPy: nothing is compiled for a new number or length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from attnlab.data import Encoded, Vocabulary
from attnlab.models import (
    AbstractHead,
    AbstractNormaliser,
    LinearHead,
    Softmax,
    TwoLayerHead,
    WordAttention,
)

_AT_ONCE = 4096


def encoded_parts(
    texts: Sequence[str], vocabulary: Vocabulary, tokenizer: Callable[[str], list[str]]
) -> Iterator[tuple[slice, Encoded]]:
    """Encoded texts in batches of a few thousand, to bound memory."""
    for start in range(0, len(texts), _AT_ONCE):
        place = slice(start, min(start + _AT_ONCE, len(texts)))
        yield place, vocabulary.encode(texts[place], tokenizer=tokenizer)


class Pooled:
    """A trained model as plain arrays: the scores s_w, and U_w, embeddings after the first layer."""

    def __init__(self, model: WordAttention):
        self.head = model.head
        self.scores = np.asarray(model.keys, np.float64) @ np.asarray(model.query, np.float64)
        embeddings, projection = np.asarray(model.embeddings, np.float64), _projection(model.head)
        self.normaliser = model.normaliser
        self.table = (
            embeddings if projection is None else embeddings @ np.asarray(projection, np.float64)
        )

    def attention(self, encoded: Encoded) -> Float[ndarray, "tokens"]:
        """Attention of every known word: ``a_w = e^{s_w} / Σ_u e^{s_u}``, or another normaliser."""
        scores = self.scores[encoded.words]
        there, sizes = _there(encoded)
        if self.normaliser != Softmax():
            return _normalised(scores, encoded.offsets, self.normaliser)
        if not len(there):
            return scores
        starts = encoded.offsets[:-1][there]
        e = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes[there]))
        return e / np.repeat(np.add.reduceat(e, starts), sizes[there])

    def logits(
        self, encoded: Encoded
    ) -> tuple[Int[ndarray, "answered"], Float[ndarray, "answered classes"]]:
        """Which texts have a known word, and their logits, up to a shift common to a text."""
        there, _ = _there(encoded)
        if not len(there):
            return there, np.zeros((0, 0))
        attended = self.attention(encoded)[:, None] * self.table[encoded.words]
        return there, _finish(
            self.head, np.add.reduceat(attended, encoded.offsets[:-1][there], axis=0)
        )


def _projection(head: AbstractHead) -> Float[ndarray, "d columns"] | None:
    """``head.projection()``, without compiling it for a linear head."""
    if not isinstance(head, LinearHead):
        projection = head.projection()
        return None if projection is None else np.asarray(projection)
    weight = np.asarray(head.weight)
    return weight[:, :1] - weight[:, 1:] if weight.shape[1] == 2 else weight


def _normalised(
    scores: Float[ndarray, "tokens"],
    offsets: Int[ndarray, "bounds"],
    normaliser: AbstractNormaliser,
) -> Float[ndarray, "tokens"]:
    """Attention of padded texts, in groups of similar length: long texts do not slow down others."""
    weights, sizes = np.zeros_like(scores), np.diff(offsets)
    room = 1 << np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64)
    for length in np.unique(room[sizes > 0]).tolist():
        chosen = np.flatnonzero((room == length) & (sizes > 0))
        # Pad the number of rows to a power of two: every number would compile another program.
        rows = 1 << (len(chosen) - 1).bit_length()
        there = np.zeros((rows, length), bool)
        there[: len(chosen)] = np.arange(length) < sizes[chosen][:, None]
        there[len(chosen) :, 0] = True
        places = (offsets[:-1][chosen][:, None] + np.arange(length))[there[: len(chosen)]]
        padded = np.zeros((rows, length))
        padded[: len(chosen)][there[: len(chosen)]] = scores[places]
        found = np.asarray(normaliser(jnp.asarray(padded), jnp.asarray(there)))
        weights[places] = found[: len(chosen)][there[: len(chosen)]]
    return weights


def _there(encoded: Encoded) -> tuple[Int[ndarray, "answered"], Int[ndarray, "texts"]]:
    sizes = np.diff(encoded.offsets)
    return np.flatnonzero(sizes), sizes


def _finish(
    head: AbstractHead, pooled: Float[ndarray, "texts columns"]
) -> Float[ndarray, "texts classes"]:
    """The rest of the head after its first layer, for the heads that the estimator trains."""
    if isinstance(head, LinearHead):
        return (
            np.concatenate([pooled, np.zeros_like(pooled)], axis=1)
            if head.weight.shape[1] == 2
            else pooled
        )
    assert isinstance(head, TwoLayerHead)
    bias1, weight2, bias2 = (
        np.asarray(a, np.float64) for a in (head.bias1, head.weight2, head.bias2)
    )
    return np.maximum(pooled + bias1, 0.0) @ weight2 + bias2


def log_softmax(logits: Float[ndarray, "texts classes"]) -> Float[ndarray, "texts classes"]:
    """``logits − log Σ e^{logits}`` along the classes."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
