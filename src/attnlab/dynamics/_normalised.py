"""The theory of word attention for other normalisers than softmax (docs/theory.md#a3, docs/theory.md#a4,
docs/theory.md#b5).

Every normaliser depends on differences of scores only, so gradients by the scores sum to zero and
descent conserves Σ_w s_w, also with a penalty on attention. The relation of score and norm takes
another form: with a(s) the attention of a word of score s among m words of score 0, the flow
dν = a g and ds = |q|² a′(s) ν·g gives

    ``½|q|² (|ν|² − |ν₀|²) = Φ(s) = ∫₀ˢ a(u)/a′(u) du``,

for softmax ``s + (e^s − 1)/m``. A penalty on attention changes scores but not embeddings, and so
breaks the relation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnlab._errors import AttnlabError
from attnlab.models import (
    AbstractNormaliser,
    Entmax15,
    Softmax,
    Sparsemax,
    Tokens,
    TopK,
    attention_entropy,
    entropy_bound,
)
from attnlab.training import BagObjective, InstantProbe, ModelObjective, Moment


def saturation(normaliser: AbstractNormaliser) -> float:
    """The score at which a word among words of score 0 gets all attention and stops; ∞ for softmax.

    >>> saturation(Sparsemax()), saturation(Entmax15()), saturation(Softmax())
    (1.0, 2.0, inf)
    """
    return {Sparsemax: 1.0, Entmax15: 2.0}.get(type(normaliser), np.inf)


def sen_potential(score: Any, *, normaliser: AbstractNormaliser, others: Any) -> Any:
    """``Φ(s) = ∫₀ˢ a/a′`` for a word among ``others`` = m words of score 0; nan if s cannot move.

    - softmax: ``T s + T² (e^{s/T} − 1)/m``;
    - top-k: the same with m = k − 1, as soon as no two scores are equal;
    - sparsemax: ``s²/2 + s/m`` up to s = 1, where the word gets all attention;
    - entmax-1.5: ``2(G(θ₀) − G(θ))`` up to s = 2, with ``s/2 = cos θ − sin θ/√m``, θ₀ that of s =
      0, and ``G(θ) = (θ + sin θ cos θ)/√m + (log sin θ − ½ sin² θ)/m + ½ sin² θ``;
    - uniform and top-1: scores do not move, and there is no relation.

    >>> [round(float(sen_potential(0.5, normaliser=n, others=20)), 4) for n in (Softmax(), Sparsemax(), Entmax15())]
    [0.5324, 0.15, 0.1816]
    """
    if isinstance(normaliser, Softmax):
        t = normaliser.temperature
        return t * score + t**2 * np.expm1(score / t) / others
    if isinstance(normaliser, TopK) and normaliser.k > 1:
        return score + np.expm1(score) / (normaliser.k - 1)
    unknown = score * np.nan
    below = score < saturation(normaliser)
    if isinstance(normaliser, Sparsemax):
        return _where(below, score**2 / 2 + score / others, unknown)
    if isinstance(normaliser, Entmax15):
        return _where(below, _entmax_potential(_where(below, score, 0.0 * score), others), unknown)
    return unknown


def _entmax_potential(score: Any, m: Any) -> Any:
    tilt = np.arctan(1 / np.sqrt(m))

    def primitive(angle: Any) -> Any:
        sine, square = np.sin(angle), np.sin(angle) ** 2
        return (
            (angle + sine * np.cos(angle)) / np.sqrt(m)
            + (np.log(sine) - square / 2) / m
            + square / 2
        )

    angle = np.arccos(score / 2 / np.sqrt(1 + 1 / m)) - tilt
    return 2 * (primitive(np.pi / 2 - tilt) - primitive(angle))


def _where(condition: Any, yes: Any, no: Any) -> Any:
    """``np.where`` that keeps the labels of xarray."""
    return yes.where(condition, no) if hasattr(yes, "dims") else np.where(condition, yes, no)


def sen_norm_under(
    score: Any,
    *,
    normaliser: AbstractNormaliser,
    others: Any,
    query_norm: Any,
    initial_norm: Any = 0.0,
    i1: Any = 0.0,
) -> Any:
    """``|q||ν|`` predicted from the score: ``√max(0, 2(Φ(s) + |q|² I₁) + |q|²|ν₀|²)``.

    For softmax this is ``sen_norm``.

    >>> round(float(sen_norm_under(0.5, normaliser=Sparsemax(), others=20, query_norm=1.0)), 6)
    0.547723
    """
    half = sen_potential(score, normaliser=normaliser, others=others) + query_norm**2 * i1
    return np.sqrt(np.maximum(2 * half + query_norm**2 * initial_norm**2, 0.0))


@dataclass(frozen=True)
class AttentionEntropy(InstantProbe):
    """``entropy``, the mean over rows of attention, and ``entropy_least``, its smallest value.

    For softmax also ``entropy_bound``: the mean of the smallest entropies that the norms of the
    centred logits allow. Entropy cannot collapse while the bound is high, that is, while logits
    stay small.

    - ``logits``: ``logits(model, data) → (…, words)``, a row per query, −∞ where there is no word;
      ``data`` are the training data of ``train_model``. ``None`` for the word attention of
      ``train``: a row per sentence.
    - ``normaliser``: the model's normaliser of these logits.

    >>> def rows(model, data):
    ...     return jnp.swapaxes(jax.vmap(model.layer.logits)(data["x"]), 1, 2)
    >>> sorted(AttentionEntropy(rows).dims)
    ['entropy', 'entropy_bound', 'entropy_least']
    """

    logits: Callable[[Any, Any], Array] | None = None
    normaliser: AbstractNormaliser = Softmax()  # noqa: RUF009  (frozen)

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number each."""
        bound = {"entropy_bound": ()} if isinstance(self.normaliser, Softmax) else {}
        return {"entropy": (), "entropy_least": ()} | bound

    def look(self, moment: Moment) -> dict[str, Array]:
        """Summary of the entropies of all rows."""
        if self.logits is None:
            found = _of_sentences(moment, self.normaliser)
        else:
            if not isinstance(moment.data, ModelObjective):
                raise AttnlabError(
                    "AttentionEntropy(logits) is for train_model; leave logits out for train"
                )
            found = _of_rows(self.logits(moment.model(), moment.data.data), self.normaliser)
        entropy, norm, words = found
        row = {"entropy": jnp.mean(entropy), "entropy_least": jnp.min(entropy)}
        if isinstance(self.normaliser, Softmax):
            row["entropy_bound"] = jnp.mean(
                entropy_bound(norm / self.normaliser.temperature, words)
            )
        return row


Rows = tuple[Float[Array, "..."], Float[Array, "..."], Array]


def _of_rows(logits: Float[Array, "... words"], normaliser: AbstractNormaliser) -> Rows:
    """Entropy, norm of the centred logits and number of words, of every row."""
    present = logits > -jnp.inf
    words = jnp.sum(present, axis=-1)
    inside = jnp.where(present, logits, 0)
    mean = jnp.sum(inside, axis=-1) / jnp.maximum(words, 1).astype(logits.dtype)
    centred = jnp.where(present, inside - mean[..., None], 0)
    return (
        attention_entropy(normaliser(logits, present)),
        jnp.sqrt(jnp.sum(centred**2, axis=-1)),
        words,
    )


def _of_sentences(moment: Moment, normaliser: AbstractNormaliser) -> Rows:
    """The same per sentence; a word that occurs c times has c places that share its weight."""
    scores = moment.frame.scores(moment.trained)
    own = moment.frame.normaliser
    if normaliser != own:
        raise AttnlabError(
            f"AttentionEntropy(normaliser={normaliser.name}): expected the model's normaliser, "
            f"{own.name}"
        )
    if isinstance(moment.data, BagObjective):
        bags = moment.data.bags
        return _of_rows(jnp.where(bags.present, bags.take(scores), -jnp.inf), normaliser)
    tokens = Tokens.of(moment.objective.incidence)
    n, counts, weights = tokens.labels.shape[0], tokens.weights, tokens.weigh(scores)

    def total(values: Array) -> Array:
        return jax.ops.segment_sum(values, tokens.rows, n)

    words, s = total(counts), scores[tokens.ids]
    centred = s - (total(counts * s) / words)[tokens.rows]
    logs = jnp.log(jnp.where(weights > 0, weights / jnp.where(counts > 0, counts, 1), 1))
    return (
        -total(weights * logs),
        jnp.sqrt(total(counts * centred**2)),
        jnp.round(words).astype(jnp.int32),
    )
