"""Attention pooling of bags of words: project, then pool (docs/theory.md#a2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from attnlab.models._incidence import Incidence

# exp(s − max s) must stay well above underflow, also after division by a sum of such terms.
_SPREAD_LIMIT = {jnp.dtype("float32"): 40.0, jnp.dtype("float64"): 300.0}


def too_wide(scores: Float[Array, "words"]) -> Bool[Array, ""]:
    """Whether one shift for all sentences may underflow, so that each sentence needs its own."""
    return jnp.max(scores) - jnp.min(scores) > _SPREAD_LIMIT[scores.dtype]


@jax.custom_batching.custom_vmap
def any_in_batch(flag: Bool[Array, ""]) -> Bool[Array, ""]:
    """The flag itself; under ``vmap``, whether it is set in any run of the batch.

    The result does not vary over the batch, so a ``cond`` on it stays a branch under ``vmap``. On a
    batched flag, both sides would be evaluated.
    """
    return flag


@any_in_batch.def_vmap
def _any_in_batch(axis_size, in_batched, flag):
    del axis_size
    return any_in_batch(jnp.any(flag, axis=0) if in_batched[0] else flag), False


def guarded(wide: Bool[Array, ""], fast: Callable[[], Any], safe: Callable[[], Any]) -> Any:
    """``fast()``, or ``safe()`` for those runs of a batch whose scores are too wide.

    The fast result is computed first and kept wherever it is valid, so that a run's numbers do not
    depend on the other runs of the batch. Do not differentiate this: the fast side may be nan where
    it is discarded.
    """
    quick = fast()

    def chosen(_: Any) -> Any:
        return jax.tree.map(lambda a, b: jnp.where(wide, a, b), safe(), quick)

    return jax.lax.cond(any_in_batch(wide), chosen, lambda same: same, quick)


class Tokens(eqx.Module):
    """Sentences as a flat list of tokens: token ``i`` is word ``ids[i]`` of sentence ``rows[i]``.

    A token of weight zero is padding.
    """

    ids: Int[Array, "tokens"]
    rows: Int[Array, "tokens"]
    weights: Float[Array, "tokens"]
    labels: Int[Array, "sentences"]

    @classmethod
    def of(cls, incidence: Incidence) -> Tokens:
        """All sentences."""
        index = incidence.by_sentence
        return cls(index.ids, index.rows, index.weights, incidence.labels)

    @classmethod
    def gather(cls, incidence: Incidence, sentences: Int[Array, "batch"], capacity: int) -> Tokens:
        """A minibatch inside a compiled function; ``capacity`` bounds the number of its entries."""
        index = incidence.by_sentence
        ends = index.offsets[sentences], index.offsets[sentences + 1]
        return cls.between(*ends, index.ids, index.weights, incidence.labels[sentences], capacity)

    @classmethod
    def between(
        cls,
        starts: Int[Array, "batch"],
        ends: Int[Array, "batch"],
        ids: Int[Array, "entries"],
        weights: Float[Array, "entries"] | Int[Array, "entries"],
        labels: Int[Array, "batch"],
        capacity: int,
        dtype: DTypeLike | None = None,
    ) -> Tokens:
        """Sentences whose entries lie from ``starts`` to ``ends`` in flat arrays.

        ``dtype`` of the weights: by default unchanged.
        """
        # Shapes must be static, so there are `capacity` places. A place belongs to the first
        # sentence whose cumulative length exceeds it; places after the last sentence are padding.
        upto = jnp.cumsum(ends - starts)
        place = jnp.arange(capacity, dtype=upto.dtype)
        row = jnp.searchsorted(upto, place, side="right").astype(jnp.int32)
        inside = place < upto[-1]
        row = jnp.where(inside, row, 0)
        place_in_row = place - (upto[row] - (ends - starts)[row])
        entry = jnp.where(inside, starts[row] + place_in_row, 0)
        return cls(
            ids[entry],
            row,
            jnp.where(inside, weights[entry], 0).astype(dtype or weights.dtype),
            labels,
        )

    def weigh(self, scores: Float[Array, "words"]) -> Float[Array, "tokens"]:
        """Attention of every token: softmax with a shift per sentence."""
        n = self.labels.shape[0]
        s = jnp.where(self.weights > 0, scores[self.ids], -jnp.inf)
        top = jax.lax.stop_gradient(jax.ops.segment_max(s, self.rows, n))
        e = self.weights * jnp.exp(s - top[self.rows])
        return e / jax.ops.segment_sum(e, self.rows, n)[self.rows]


def pool_tokens(
    scores: Float[Array, "words"], table: Float[Array, "words columns"], tokens: Tokens
) -> Float[Array, "sentences columns"]:
    """``Σ_w a_w table_w`` per sentence, with a shift per sentence: safe for any scores, but slower."""
    attended = tokens.weigh(scores)[:, None] * table[tokens.ids]
    return jax.ops.segment_sum(attended, tokens.rows, tokens.labels.shape[0])


def pool_fast(
    scores: Float[Array, "words"], table: Float[Array, "words columns"], incidence: Incidence
) -> Float[Array, "sentences columns"]:
    """The same by one sparse product: ``Z = X @ [e, e·table]``, pooled = ``Z[:, 1:] / Z[:, :1]``.

    One shift serves all sentences, so the scores must not be ``too_wide``.
    """
    e = jnp.exp(scores - jax.lax.stop_gradient(jnp.max(scores)))[:, None]
    z = incidence.sentence_sums(jnp.concatenate([e, e * table], axis=1))
    return z[:, 1:] / z[:, :1]


def pool(
    scores: Float[Array, "words"], table: Float[Array, "words columns"], incidence: Incidence
) -> Float[Array, "sentences columns"]:
    """Pooled rows: fast if one shift is enough, safe otherwise. Differentiable to any order.

    >>> from attnlab.data import Corpus
    >>> corpus = Corpus.from_tokens([["a", "b"], ["c"]], labels=[0, 1])
    >>> pool(jnp.array([500.0, 0.0, -500.0]), jnp.eye(3), Incidence.of(corpus, jnp.float64)).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return jax.lax.cond(
        any_in_batch(jax.lax.stop_gradient(too_wide(scores))),
        lambda s, t: pool_tokens(s, t, Tokens.of(incidence)),
        lambda s, t: pool_fast(s, t, incidence),
        scores,
        table,
    )
