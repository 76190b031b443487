"""Word attention (docs/theory.md#a1): one global query, a key and an embedding per word, a head."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Key, PyTree

from attnlab._errors import AttnlabError
from attnlab.data import Corpus
from attnlab.models._dense import at_least_one, check_scale
from attnlab.models._heads import AbstractHead, HeadMaker, make_head
from attnlab.models._incidence import Incidence
from attnlab.models._normalisers import AbstractNormaliser, Softmax, make_normaliser
from attnlab.models._pooling import Tokens, pool

Part = Literal["embeddings", "keys", "query", "head"]
PARTS: tuple[Part, ...] = ("embeddings", "keys", "query", "head")


def word_normaliser(given: str | AbstractNormaliser) -> AbstractNormaliser:
    """A normaliser from its name, or the one given."""
    if isinstance(given, str):
        return make_normaliser(given)
    if isinstance(given, AbstractNormaliser):
        return given
    raise AttnlabError(
        f"normaliser={given!r}: expected a name, such as 'sparsemax', or a normaliser of "
        "attnlab.models"
    )


class WordAttention(eqx.Module):
    """Logits = head(Σ_w a_w ν_w) with attention ``a_w = e^{s_w} / Σ_u e^{s_u}`` over a sentence.

    The score of a word is ``s_w = q·κ_w``.

    - ``embeddings`` ν: (words, d), ``keys`` κ: (words, k), ``query`` q: (k,);
    - ``trained``: the parts that training changes;
    - ``normaliser`` maps scores to attention weights; softmax by default.
    """

    embeddings: Float[Array, "words d"]
    keys: Float[Array, "words k"]
    query: Float[Array, "k"]
    head: AbstractHead
    trained: tuple[Part, ...] = eqx.field(static=True, default=("embeddings", "keys"))
    normaliser: AbstractNormaliser = eqx.field(
        static=True, default=Softmax(), converter=word_normaliser
    )

    def scores(self) -> Float[Array, "words"]:
        """``s_w = q·κ_w`` of every word."""
        return self.keys @ self.query

    def table(self) -> Float[Array, "words columns"]:
        """The embeddings after the head's linear first layer."""
        projection = self.head.projection()
        return self.embeddings if projection is None else self.embeddings @ projection


@dataclass(frozen=True)
class WordAttentionConfig:
    """Initialises a ``WordAttention``. The defaults are the reference setting.

    - ``head``: ``"fixed"`` (FC), ``"linear"`` (TC), ``"two_layer"`` (TL) or a function ``(key, d,
      classes) → head``; ``head_scale`` multiplies its initial weights.
    - ``query_norm``: ``None`` draws the query with ``query_std`` per coordinate (|q|² then varies
      strongly between seeds); a number keeps the drawn direction and fixes |q|.
    - ``trained``: the parts to train; ``None`` for embeddings, keys, and the head unless it is
      fixed.
    - ``normaliser``: ``"softmax"``, ``"softmax:T"``, ``"sparsemax"``, ``"entmax15"``, ``"topK"``,
      ``"uniform"``, or a normaliser. Only softmax has fast pooling; all others are computed on
      padded sentences (``Bags``).

    >>> config = WordAttentionConfig(words=50, classes=2, head="linear", query_norm=1.0)
    >>> model = config.init(jax.random.key(0))
    >>> model.trained, model.embeddings.shape, round(float(jnp.linalg.norm(model.query)), 6)
    (('embeddings', 'keys', 'head'), (50, 10), 1.0)
    """

    words: int
    classes: int
    head: str | HeadMaker = "fixed"
    embedding_dim: int = 10
    key_dim: int = 10
    embedding_std: float = 1e-6
    key_std: float = 0.0
    query_std: float = 0.3
    query_norm: float | None = None
    head_scale: float = 1.0
    hidden: int = 10
    trained: tuple[str, ...] | None = None
    normaliser: str | AbstractNormaliser = "softmax"

    def __post_init__(self):
        word_normaliser(self.normaliser)
        at_least_one(self, "words", "classes", "embedding_dim", "key_dim", "hidden")
        for name in ("embedding_std", "key_std", "query_std", "head_scale"):
            check_scale(name, getattr(self, name))
        if self.query_norm is not None and not (self.query_norm > 0 and self.query_std > 0):
            raise AttnlabError(
                f"query_norm={self.query_norm} with query_std={self.query_std}: a fixed norm "
                "needs both to be positive"
            )
        if isinstance(self.head, str) and self.head not in ("fixed", "linear", "two_layer"):
            raise AttnlabError(
                f"head={self.head!r}: expected 'fixed', 'linear', 'two_layer' or a function (key, "
                "d, classes) → head"
            )
        unknown = [p for p in self.trained or () if p not in PARTS]
        if unknown:
            raise AttnlabError(
                f"trained={self.trained}: {unknown[0]!r} is not a part; the parts are {PARTS}"
            )

    @classmethod
    def for_corpus(cls, corpus: Corpus, **settings) -> WordAttentionConfig:
        """The configuration with the sizes of a corpus."""
        return cls(words=len(corpus.vocabulary), classes=len(corpus.classes), **settings)

    @property
    def trained_parts(self) -> tuple[Part, ...]:
        """The parts that training changes."""
        if self.trained is not None:
            return tuple(part for part in PARTS if part in self.trained)
        return ("embeddings", "keys") if self.head == "fixed" else ("embeddings", "keys", "head")

    def init(self, key: Key[Array, ""], dtype: DTypeLike = "float64") -> WordAttention:
        """Draw initial parameters, in float64 and then rounded: equal starts in both types."""
        embedding_key, key_key, query_key, head_key = jax.random.split(key, 4)

        query = self.query_std * jax.random.normal(query_key, (self.key_dim,), jnp.float64)
        if self.query_norm is not None:
            query = query * (self.query_norm / jnp.linalg.norm(query))
        model = WordAttention(
            embeddings=self.embedding_std
            * _normal_rows(embedding_key, self.words, self.embedding_dim),
            keys=self.key_std * _normal_rows(key_key, self.words, self.key_dim),
            query=query,
            head=make_head(
                self.head,
                head_key,
                self.embedding_dim,
                self.classes,
                hidden=self.hidden,
                scale=self.head_scale,
            ),
            trained=self.trained_parts,
            normaliser=word_normaliser(self.normaliser),
        )
        return cast(model, dtype)


def moving_parts(model: WordAttention) -> PyTree:
    """The filter of the parts that ``model.trained`` names, for ``train_model(trained=…)``."""
    still = jax.tree.map(lambda _: False, model)
    return eqx.tree_at(
        lambda tree: [getattr(tree, part) for part in model.trained],
        still,
        [jax.tree.map(lambda _: True, getattr(model, part)) for part in model.trained],
    )


@functools.partial(jax.jit, static_argnames=("words", "columns"))
def _normal_rows(key: Key[Array, ""], words: int, columns: int) -> Float[Array, "words columns"]:
    """Standard normal numbers, row by row: word ``i`` is the same in a vocabulary of any size.

    A loop over rows compiles four times as fast as drawing the whole table.
    """

    def row(i: Int[Array, ""]) -> Float[Array, "columns"]:
        return jax.random.normal(jax.random.fold_in(key, i), (columns,), jnp.float64)

    return jax.lax.map(row, jnp.arange(words))


def cast(model: WordAttention, dtype: DTypeLike) -> WordAttention:
    """The same model with all its parameters in one floating type."""
    kind = jnp.dtype(dtype)
    return jax.tree.map(
        lambda leaf: leaf.astype(kind) if eqx.is_inexact_array(leaf) else leaf, model
    )


def literal_logits(
    model: WordAttention,
    corpus: Corpus,
    *,
    normaliser: AbstractNormaliser | None = None,
) -> Float[Array, "sentences classes"]:
    """Logits straight from the equation, sentence by sentence: a slow oracle.

    ``normaliser`` replaces the model's own.
    """
    normaliser = model.normaliser if normaliser is None else normaliser
    keys, embeddings = jnp.asarray(model.keys), jnp.asarray(model.embeddings)
    logits = []
    for n in range(len(corpus)):
        span = slice(corpus.offsets[n], corpus.offsets[n + 1])
        tokens = np.repeat(corpus.words[span], corpus.counts[span])
        attention = normaliser(keys[tokens] @ model.query)
        logits.append(model.head(attention @ embeddings[tokens]))
    return jnp.stack(logits)


@eqx.filter_jit
def pooled_logits(model: WordAttention, incidence: Incidence) -> Float[Array, "sentences classes"]:
    """Logits by projecting once and pooling with a sparse product.

    Correct up to a shift common to a sentence's logits. For softmax only; ``bag_logits`` takes any
    normaliser.
    """
    if model.normaliser != Softmax():
        raise AttnlabError(
            f"pooled_logits is for softmax, this model has {model.normaliser.name}: use bag_logits"
        )
    return jax.vmap(model.head.finish)(pool(model.scores(), model.table(), incidence))


def attention_weights(model: WordAttention, corpus: Corpus) -> Float[np.ndarray, "entries"]:
    """Attention of each entry of the corpus, counts included: the weights of a sentence sum to one.

    Entry ``i`` is the word ``corpus.words[i]`` of the sentence ``corpus.rows[i]``.
    """
    if model.normaliser != Softmax():
        return _entry_weights(model, corpus)
    tokens = Tokens.of(Incidence.of(corpus, model.query.dtype))
    return np.asarray(tokens.weigh(model.scores()))[: len(corpus.words)]


def _entry_weights(model: WordAttention, corpus: Corpus) -> Float[np.ndarray, "entries"]:
    """Sentence by sentence; a word that occurs c times has c places."""
    scores = np.asarray(model.scores())
    weights = np.zeros(len(corpus.words), np.asarray(model.query).dtype)
    for n in range(len(corpus)):
        span = slice(corpus.offsets[n], corpus.offsets[n + 1])
        places = np.repeat(np.arange(span.stop - span.start), corpus.counts[span])
        each = np.asarray(model.normaliser(jnp.asarray(scores[corpus.words[span]][places])))
        np.add.at(weights[span], places, each)
    return weights


def attention_of(model: WordAttention, corpus: Corpus, sentence: int) -> list[tuple[str, float]]:
    """The words of one sentence with their attention, most attended first."""
    alone = corpus.subset([sentence])
    weights = attention_weights(model, alone)
    order = np.argsort(-weights, kind="stable")
    return [(corpus.vocabulary[alone.words[i]], float(weights[i])) for i in order]
