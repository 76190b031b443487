"""Word attention with any normaliser, on padded sentences. The fast ``pool`` is for softmax only."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attnlab._errors import AttnlabError
from attnlab.data import Corpus
from attnlab.models._normalisers import AbstractNormaliser
from attnlab.models._word_attention import WordAttention


class Bags(eqx.Module):
    """Padded sentences: word numbers, a mask of the places that hold a word, and labels.

    The first axis runs over sentences. A word that occurs twice takes two places; only softmax
    could add the logarithm of its count to the score instead. A padded place has the word number 0
    and the weight 0.
    """

    words: Int[Array, "*sentences length"]
    present: Bool[Array, "*sentences length"]
    labels: Int[Array, "*sentences"]

    @classmethod
    def of(cls, corpus: Corpus, length: int | None = None) -> Bags:
        """All sentences of a corpus, padded to ``length``, by default that of the longest.

        >>> bags = Bags.of(Corpus.from_tokens([["a", "b", "a"], ["c"]], labels=[0, 1]))
        >>> bags.words.tolist(), bags.present.sum(axis=1).tolist()
        ([[0, 0, 1], [2, 0, 0]], [3, 1])
        """
        rows = np.repeat(corpus.rows, corpus.counts)
        sizes = np.bincount(rows, minlength=len(corpus))
        longest = int(sizes.max())
        length = longest if length is None else length
        if longest > length:
            raise AttnlabError(
                f"length={length}: the longest sentence has {longest} words; give at least that "
                "many"
            )
        # Column of a token: its place in the flat list minus the place where its sentence starts.
        starts = np.cumsum(sizes) - sizes
        places = rows, np.arange(len(rows)) - starts[rows]
        words = np.zeros((len(corpus), length), np.int32)
        present = np.zeros((len(corpus), length), bool)
        words[places] = np.repeat(corpus.words, corpus.counts)
        present[places] = True
        return cls(jnp.asarray(words), jnp.asarray(present), jnp.asarray(corpus.labels, jnp.int32))

    def take(self, table: Float[Array, "words ..."]) -> Float[Array, "..."]:
        """The row of a table for the word at each place: ``(*sentences, length, ...)``."""
        return table.at[self.words].get(mode="promise_in_bounds")


def bag_weights(
    model: WordAttention,
    bags: Bags,
    *,
    normaliser: AbstractNormaliser | None = None,
) -> Float[Array, "*sentences length"]:
    """Attention weight of every place. A sentence's weights sum to one; padding has weight 0.

    ``normaliser`` replaces the model's own.
    """
    normaliser = model.normaliser if normaliser is None else normaliser
    return normaliser(bags.take(model.scores()), bags.present)


def bag_logits(
    model: WordAttention,
    bags: Bags,
    *,
    normaliser: AbstractNormaliser | None = None,
) -> Float[Array, "*sentences classes"]:
    """``head(Σ_w a_w ν_w)`` of every sentence with ``a = norm(s)``.

    Correct up to a shift common to a sentence's logits. The table is projected once, then its rows
    are pooled (docs/theory.md#a2).

    >>> import jax
    >>> from attnlab.models import WordAttentionConfig
    >>> corpus = Corpus.from_tokens([["a", "b", "a"], ["c"]], labels=[0, 1])
    >>> model = WordAttentionConfig.for_corpus(corpus, head="linear", normaliser="sparsemax").init(jax.random.key(0))
    >>> bag_logits(model, Bags.of(corpus)).shape
    (2, 2)
    """
    weights = bag_weights(model, bags, normaliser=normaliser)
    pooled = jnp.einsum("...l,...lc->...c", weights, bags.take(model.table()))
    return jnp.vectorize(model.head.finish, signature="(k)->(c)")(pooled)
