"""Word attention under any normaliser, on padded sentences. The pooled exponential of ``pool`` is
softmax's alone.
"""

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
    """Sentences as a rectangle: word numbers, which places hold a word, and labels. The first axis
    runs over sentences.

    A word that occurs twice has two places: only softmax could add the logarithm of a count to its
    score instead. A place without a word is no word of the model; it has the number 0 and no
    weight.
    """

    words: Int[Array, "*sentences length"]
    there: Bool[Array, "*sentences length"]
    labels: Int[Array, "*sentences"]

    @classmethod
    def of(cls, corpus: Corpus, length: int | None = None) -> Bags:
        """All sentences of a corpus, padded to ``length``, by default that of the longest.

        >>> bags = Bags.of(Corpus.from_tokens([["a", "b", "a"], ["c"]], labels=[0, 1]))
        >>> bags.words.tolist(), bags.there.sum(axis=1).tolist()
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
        places = rows, np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[rows]
        words, there = (
            np.zeros((len(corpus), length), np.int32),
            np.zeros((len(corpus), length), bool),
        )
        words[places], there[places] = np.repeat(corpus.words, corpus.counts), True
        return cls(jnp.asarray(words), jnp.asarray(there), jnp.asarray(corpus.labels, jnp.int32))

    def take(self, table: Float[Array, "words ..."]) -> Float[Array, "*sentences length ..."]:
        """The rows of a table of words, place by place."""
        return table.at[self.words].get(mode="promise_in_bounds")


def bag_weights(
    model: WordAttention,
    bags: Bags,
    *,
    normaliser: AbstractNormaliser | None = None,
) -> Float[Array, "*sentences length"]:
    """Attention of every place; that of a sentence sums to one, and a place without a word has
    none.

    ``normaliser``: another than the model's own.
    """
    normaliser = model.normaliser if normaliser is None else normaliser
    return normaliser(bags.take(model.scores()), bags.there)


def bag_logits(
    model: WordAttention,
    bags: Bags,
    *,
    normaliser: AbstractNormaliser | None = None,
) -> Float[Array, "*sentences classes"]:
    """``head(Σ_w a_w ν_w)`` of every sentence with ``a = norm(s)``, up to a shift common to a
    sentence's logits.

    The table is projected once, and then its rows are pooled (docs/theory.md#a2).

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
