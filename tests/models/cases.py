"""A catalogue of small corpora and models with known answers, crossed with methods by the tests."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np

from attnlab.data import Corpus
from attnlab.models import TwoLayerHead, WordAttention, WordAttentionConfig

SENTENCES = {
    "plain": [["a", "b", "c"], ["d", "a"], ["c", "e", "b", "a"], ["e", "d"]],
    "repeats": [["a", "a", "b"], ["c", "c", "c", "a"], ["b", "d", "d"], ["e", "b", "b", "e"]],
    "one word": [["a"], ["b", "c"], ["d"], ["e"]],
}


def corpus(name: str, classes: int = 3) -> Corpus:
    return Corpus.from_tokens(SENTENCES[name], labels=[i % classes for i in range(4)])


def model(name: str, head: str, spread: float, classes: int = 3) -> WordAttention:
    """Scores from −spread to +spread, embeddings of order one."""
    config = WordAttentionConfig.for_corpus(
        corpus(name, classes),
        head=head,
        embedding_dim=4,
        key_dim=3,
        embedding_std=1.0,
        key_std=1.0,
        hidden=5,
    )
    drawn = config.init(jax.random.key(7))
    scores = np.linspace(-spread, spread, config.words)
    keys = drawn.keys + np.outer(scores - drawn.scores(), drawn.query / (drawn.query @ drawn.query))
    return eqx.tree_at(lambda m: m.keys, drawn, keys)


def numpy_loss_and_gradients(
    model: WordAttention, corpus: Corpus
) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss, ∂L/∂s and ∂L/∂ν from the sums of docs/theory.md#a3, word by word in NumPy: no autodiff,
    no JAX.
    """
    query, keys, nu = (
        np.asarray(x, np.float64) for x in (model.query, model.keys, model.embeddings)
    )
    s = keys @ query
    ds, dnu, loss = np.zeros(len(s)), np.zeros_like(nu), 0.0
    for n in range(len(corpus)):
        span = slice(corpus.offsets[n], corpus.offsets[n + 1])
        words, counts = corpus.words[span], corpus.counts[span]
        e = counts * np.exp(s[words] - s[words].max())
        a = e / e.sum()
        context = a @ nu[words]
        logits, pull = _head(model, context)
        p = np.exp(logits - logits.max())
        p /= p.sum()
        loss -= np.log(p[corpus.labels[n]]) / len(corpus)
        dlogits = p.copy()
        dlogits[corpus.labels[n]] -= 1
        g = -pull(dlogits) / len(corpus)
        for w, weight in zip(words, a, strict=True):
            dnu[w] -= weight * g
            ds[w] -= weight * (nu[w] - context) @ g
    return loss, ds, dnu


def _head(model: WordAttention, context: np.ndarray):
    head = model.head
    if isinstance(head, TwoLayerHead):
        w1, b1, w2, b2 = (
            np.asarray(x) for x in (head.weight1, head.bias1, head.weight2, head.bias2)
        )
        hidden = context @ w1 + b1
        return np.maximum(hidden, 0) @ w2 + b2, lambda d: w1 @ ((w2 @ d) * (hidden > 0))
    weight = np.asarray(head.weight)  # pyright: ignore[reportAttributeAccessIssue]
    return context @ weight, lambda d: weight @ d
