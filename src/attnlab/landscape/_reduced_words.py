"""Word attention in the coordinates on which its loss depends, for certificates (docs/theory.md#a2,
docs/theory.md#b3).
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree

from attnlab.data import Corpus
from attnlab.landscape._problem import Problem
from attnlab.landscape._spaces import Space, word_spaces
from attnlab.landscape._words import trained_words
from attnlab.models import Incidence, WordAttention, pool


class ReducedWords(eqx.Module):
    """Word attention without the directions in which its loss is flat for all data.

    - ``along``: (words,), the keys along the unit query, ``σ_w = κ_w·q/|q|``, so that ``s_w = |q|
      σ_w``; ``None`` if the query is trained, too, or the keys are not;
    - ``table``: (words, r), the embeddings in an orthonormal basis Q of the span of the head's first
      layer, ``Y = E Q``; ``None`` if the head is trained, too, or the embeddings are not;
    - ``base``: everything else; only its trained parts without reduced coordinates are trained.

    Lengths are preserved: at a stationary point with a penalty ``‖K‖² = ‖σ‖²`` and ``‖E‖² = ‖Y‖²``,
    since the omitted directions are only penalised. Their curvature is exactly λ, without coupling
    to others, so a certificate in these coordinates is one of the whole model.
    """

    along: Float[Array, "words"] | None
    table: Float[Array, "words r"] | None
    basis: Float[Array, "d r"] | None
    base: WordAttention

    @classmethod
    def of(cls, model: WordAttention) -> ReducedWords:
        """The reduced coordinates of a model.

        Key components orthogonal to the query, and embeddings outside the head's span, are dropped.
        """
        moves = set(model.trained)
        along = table = basis = None
        if "keys" in moves and "query" not in moves:
            along = model.keys @ (model.query / jnp.linalg.norm(model.query))
        projection = model.head.projection()
        if "embeddings" in moves and "head" not in moves and projection is not None:
            basis = jnp.linalg.qr(projection)[0]
            table = model.embeddings @ basis
        return cls(along, table, basis, model)

    def expand(self) -> WordAttention:
        """The word attention of smallest norm with these coordinates."""
        model = self.base
        if self.along is not None:
            unit = model.query / jnp.linalg.norm(model.query)
            model = eqx.tree_at(lambda m: m.keys, model, self.along[:, None] * unit[None, :])
        if self.table is not None and self.basis is not None:
            model = eqx.tree_at(lambda m: m.embeddings, model, self.table @ self.basis.T)
        return model

    def logits(self, incidence: Incidence) -> Float[Array, "sentences classes"]:
        """Of every sentence, up to a shift common to its logits."""
        base = self.base
        scores = base.scores() if self.along is None else jnp.linalg.norm(base.query) * self.along
        table, projection = base.table(), base.head.projection()
        if self.table is not None and self.basis is not None and projection is not None:
            table = self.table @ (self.basis.T @ projection)
        return jax.vmap(base.head.finish)(pool(scores, table, incidence))

    def hidden_spaces(self) -> list[Space]:
        """The spaces that may still be rotated: query and keys, embeddings and head."""
        return word_spaces(
            self.base, lambda model: model.base, lambda model, base: _rebased(model, base)
        )


def reduced_problem(model: WordAttention, corpus: Corpus, *, l2: float) -> Problem:
    """The landscape of word attention with a penalty on every trained part, in reduced coordinates.

    ``problem.model(theta).expand()`` is the word attention of a point. Without a penalty (``l2=0``)
    curvature can be measured, but cross-entropy has no stationary point: weights escape to infinity.

    >>> from attnlab.landscape import certify, groups, minimise
    >>> from attnlab.models import WordAttentionConfig
    >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "film"], ["good", "plot"]], labels=[1, 0, 1])
    >>> config = WordAttentionConfig.for_corpus(corpus, embedding_dim=5, embedding_std=0.1)
    >>> problem = reduced_problem(config.init(jax.random.key(0)), corpus, l2=0.01)
    >>> groups(problem)
    {'along': 4, 'table': 4}
    >>> found = minimise(problem, problem.start[None])
    >>> certify(problem.model(jnp.asarray(found.theta.values[0])).expand(), corpus, l2=0.01).kind
    'minimum'
    """
    reduced = ReducedWords.of(model)
    data = Incidence.of(corpus, model.query.dtype)
    return Problem.of(reduced, _loss, data, l2=l2, trained=_moving)


def _loss(model: ReducedWords, incidence: Incidence) -> Float[Array, ""]:
    return jnp.mean(
        optax.softmax_cross_entropy_with_integer_labels(model.logits(incidence), incidence.labels)
    )


def _moving(model: ReducedWords) -> PyTree:
    """True for the reduced coordinates and for the trained parts without any."""
    parts = trained_words(model.base)
    if model.along is not None:
        parts = eqx.tree_at(lambda tree: tree.keys, parts, False)
    if model.table is not None:
        parts = eqx.tree_at(lambda tree: tree.embeddings, parts, False)
    return ReducedWords(
        None if model.along is None else True,  # pyright: ignore[reportArgumentType]
        None if model.table is None else True,  # pyright: ignore[reportArgumentType]
        None if model.basis is None else False,  # pyright: ignore[reportArgumentType]
        parts,
    )


def _rebased(model: ReducedWords, base: WordAttention) -> ReducedWords:
    return eqx.tree_at(lambda m: m.base, model, base)
