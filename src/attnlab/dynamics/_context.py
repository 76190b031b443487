"""How much of the context a word makes up (docs/theory.md#a6)."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array

from attnlab.training import InstantProbe, Moment


@dataclass(frozen=True)
class InContext(InstantProbe):
    """``context_share`` and ``context_ratio``: a word's part ``a_n ν`` of the context ``c_n``.

    Means over the sentences that contain the word: the share ``a_n ν·c_n / |c_n|²``, which sums to 1
    over the words of a sentence, and the ratio of norms ``|a_n ν| / |c_n|``. Both are 1 where the
    context is the word's embedding, and 0 in a context of zero.
    """

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number per word each."""
        return {"context_share": ("word",), "context_ratio": ("word",)}

    def look(self, moment: Moment) -> dict[str, Array]:
        """Sums over the sentences of each word, without a context per pair of word and sentence."""
        incidence = moment.objective.incidence
        s, nu = moment.frame.scores(moment.trained), moment.frame.embeddings(moment.trained)
        # Z_n cancels: a_n ν / c_n = e^s ν / C_n with C_n = Σ_u e^{s_u} ν_u.
        own = jnp.exp(s - jnp.max(s))[:, None] * nu
        context = incidence.sentence_sums(own)
        square = jnp.sum(context**2, axis=1, keepdims=True)
        inverse = jnp.where(square > 0, 1 / jnp.where(square > 0, square, 1), 0)
        sums = incidence.word_sums(jnp.concatenate([inverse * context, jnp.sqrt(inverse)], axis=1))
        present = jnp.diff(incidence.by_word.offsets).astype(s.dtype)
        share = jnp.sum(own * sums[:, :-1], axis=1) / present
        ratio = jnp.sqrt(jnp.sum(own**2, axis=1)) * sums[:, -1] / present
        return {"context_share": share[moment.words], "context_ratio": ratio[moment.words]}
