"""Attention over contextual inputs: the outputs of a one-layer convolution over neighbouring words."""

from __future__ import annotations

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from attnlab._errors import AttnlabError
from attnlab.models._heads import AbstractHead
from attnlab.models._word_attention import WordAttentionConfig


class ContextualAttention(eqx.Module):
    """Attention softmax(q·κ_{w(i)}) over positions i; logits = head(Σ_i a_i h_i).

    The inputs are ``h_i = Σ_δ ν_{w(i+δ)} C_δ``.

    - ``embeddings`` ν: (words, d), ``keys`` κ: (words, k), ``query`` q: (k,);
    - ``kernel`` C: (2·reach + 1, d, d), for δ from −reach to reach; a sentence is padded with
      zeros.

    With ``contextual_keys`` the keys pass through the same kernel: the score of position i is
    ``q·Σ_δ κ_{w(i+δ)} C_δ``. With ``C_0`` the identity and no neighbours this is ``WordAttention``.
    """

    embeddings: Float[Array, "words d"]
    keys: Float[Array, "words k"]
    query: Float[Array, "k"]
    kernel: Float[Array, "width d d"]
    head: AbstractHead
    contextual_keys: bool = eqx.field(static=True, default=False)

    def scores(self) -> Float[Array, "words"]:
        """``s_w = q·κ_w`` of every word; of contextual keys the word's own part, ``q·(κ_w C_0)``."""
        return self.keys @ self.own_query()

    def own_query(self) -> Float[Array, "k"]:
        """The query that a word's own key meets: q, or ``C_0 q`` with contextual keys."""
        if not self.contextual_keys:
            return self.query
        return self.kernel[self.kernel.shape[0] // 2] @ self.query

    def position_scores(
        self, words: Int[Array, "sentences length"]
    ) -> Float[Array, "sentences length"]:
        """The score of every position."""
        if not self.contextual_keys:
            return self.scores()[words]
        reach, length = self.kernel.shape[0] // 2, words.shape[1]
        parts = (self.keys @ (self.kernel @ self.query).T)[words]
        padded = jnp.pad(parts, ((0, 0), (reach, reach), (0, 0)))
        return sum(
            (padded[:, k : k + length, k] for k in range(2 * reach + 1)),
            start=jnp.zeros_like(parts[:, :, 0]),
        )

    def outputs(self, words: Int[Array, "length"]) -> Float[Array, "length d"]:
        """``h_i`` of one sentence, from the equation."""
        return self._convolved(self.embeddings[words])

    def _convolved(self, rows: Float[Array, "length d"]) -> Float[Array, "length d"]:
        reach, length = self.kernel.shape[0] // 2, rows.shape[0]
        padded = jnp.pad(rows, ((reach, reach), (0, 0)))
        return sum(
            (padded[k : k + length] @ c for k, c in enumerate(self.kernel)),
            start=jnp.zeros_like(rows),
        )

    def __call__(self, words: Int[Array, "length"]) -> Float[Array, "classes"]:
        """Logits of one sentence, straight from the equation: a slow oracle."""
        keys = self.keys[words]
        if self.contextual_keys:
            keys = self._convolved(keys)
        attention = jax.nn.softmax(keys @ self.query)
        return self.head(attention @ self.outputs(words))


def contextual_logits(
    model: ContextualAttention, words: Int[Array, "sentences length"]
) -> Float[Array, "sentences classes"]:
    """Logits of many sentences of one length, up to a shift common to a sentence's logits.

    The table is convolved and projected once, word by word (``E C_δ P``, docs/theory.md#a2); then
    each position ``j`` gets the attention of the positions ``j − δ`` that see it: ``Σ_j Σ_δ a_{j−δ}
    (ν_{w(j)} C_δ P)``.
    """
    attention = jax.nn.softmax(model.position_scores(words), axis=1)
    reach, length = model.kernel.shape[0] // 2, words.shape[1]
    padded = jnp.pad(attention, ((0, 0), (reach, reach)))
    # seen[n, j, k] = a_{j−δ} with δ = k − reach: the attention of the position that sees j at k.
    seen = jnp.stack(
        [padded[:, 2 * reach - k : 2 * reach - k + length] for k in range(2 * reach + 1)], axis=-1
    )
    projection = model.head.projection()
    kernel = model.kernel if projection is None else model.kernel @ projection
    tables = jnp.einsum("wd,kdc->wkc", model.embeddings, kernel)
    return jax.vmap(model.head.finish)(jnp.einsum("njk,njkc->nc", seen, tables[words]))


@dataclass(frozen=True)
class ContextualConfig:
    """Initialises a ``ContextualAttention``: as ``base``, with a kernel uniform in ±1/√(width·d).

    >>> config = ContextualConfig(WordAttentionConfig(words=50, classes=2, query_norm=1.0), reach=1)
    >>> config.init(jax.random.key(0)).kernel.shape
    (3, 10, 10)
    """

    base: WordAttentionConfig
    reach: int = 1
    contextual_keys: bool = False

    def __post_init__(self):
        if self.contextual_keys and self.base.key_dim != self.base.embedding_dim:
            raise AttnlabError(
                f"contextual keys of {self.base.key_dim} numbers, embeddings of "
                f"{self.base.embedding_dim}: one kernel for both expects key_dim = embedding_dim"
            )
        if self.reach < 0:
            raise AttnlabError(f"reach={self.reach}: expected 0 or more neighbours to each side")

    def init(self, key: Key[Array, ""]) -> ContextualAttention:
        """Draw initial parameters; those of ``base`` equal what word attention draws from this key."""
        plain = self.base.init(key)
        d, width = self.base.embedding_dim, 2 * self.reach + 1
        bound = 1 / np.sqrt(width * d)
        kernel = jax.random.uniform(
            jax.random.fold_in(key, 4), (width, d, d), jnp.float64, -bound, bound
        )
        return ContextualAttention(
            plain.embeddings, plain.keys, plain.query, kernel, plain.head, self.contextual_keys
        )
