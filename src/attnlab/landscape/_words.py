"""The loss of word attention as a function of its own trained parameters, for curvature on text."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from attnlab.data import Corpus
from attnlab.landscape._problem import Problem
from attnlab.models import Incidence, WordAttention, pooled_logits


def word_loss(model: WordAttention, incidence: Incidence) -> Float[Array, ""]:
    """Mean cross-entropy of word attention on a corpus; differentiable to any order."""
    logits = pooled_logits(model, incidence)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, incidence.labels))


def word_problem(model: WordAttention, corpus: Corpus, *, l2: float = 0.0) -> Problem:
    """The landscape of word attention on a corpus, in its trained parts.

    >>> from attnlab.landscape import groups
    >>> from attnlab.models import WordAttentionConfig
    >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "film"]], labels=[1, 0])
    >>> config = WordAttentionConfig.for_corpus(corpus, embedding_dim=2, key_dim=2, head="linear")
    >>> groups(word_problem(config.init(jax.random.key(0)), corpus))
    {'embeddings': 6, 'keys': 6, 'head.weight': 4}
    """
    return Problem.of(
        model, word_loss, Incidence.of(corpus, model.query.dtype), l2=l2, trained=trained_words
    )


def trained_words(model: WordAttention) -> PyTree:
    """True for every floating array of the model's trained parts."""

    def chosen(path: tuple, leaf: object) -> bool:
        return eqx.is_inexact_array(leaf) and path[0].name in model.trained

    return jax.tree_util.tree_map_with_path(chosen, model)
