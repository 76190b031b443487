"""What attention can be asked for besides a small loss, and how spread out it is
(docs/theory.md#b5).

An L1 penalty on attention weights is missing on purpose: they sum to one, so it is constant.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab._errors import AttnlabError


def attention_entropy(weights: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    """``−Σ_i a_i log a_i`` along an axis, in nats; a weight of 0 adds nothing and has the
    derivative 0.

    >>> [round(float(h), 6) for h in attention_entropy(jnp.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]))]
    [0.693147, 0.562335]
    """
    # Both branches are finite, so that the one not taken has no nan for a derivative.
    logs = jnp.log(jnp.where(weights > 0, weights, jnp.ones_like(weights)))
    return -jnp.sum(weights * logs, axis=axis)


def entropy_bound(
    logit_norm: Float[Array, "..."] | float, words: Int[Array, "..."] | int
) -> Float[Array, "..."]:
    """The least entropy of a softmax over T ``words`` whose logits have a norm ≤ σ (Zhai et al.
    2023).

    ``log(1 + (T−1)β) + σ√(T(T−1)) β/(1 + (T−1)β)`` with ``β = e^{−σ√(T/(T−1))}``. It is met where
    one logit is ``σ√((T−1)/T)`` and all others are ``−σ/√(T(T−1))``. Softmax does not see a shift:
    give the norm of the *centred* logits for the best bound, divided by the temperature if there is
    one. It does not bound other normalisers.

    >>> float(entropy_bound(0.0, 8)) == float(jnp.log(8.0)), round(float(entropy_bound(10.0, 8)), 6)
    (True, 0.001862)
    """
    sigma = jnp.asarray(logit_norm, None if hasattr(logit_norm, "dtype") else jnp.float64)
    t = jnp.asarray(words).astype(sigma.dtype)
    sigma, t = jnp.broadcast_arrays(sigma, t)
    several = jnp.maximum(
        t, 2
    )  # one word has no choice: its entropy is 0, and the formula divides by T − 1
    beta = jnp.exp(-sigma * jnp.sqrt(several / (several - 1)))
    spread = (several - 1) * beta
    bound = jnp.log1p(spread) + sigma * jnp.sqrt(several * (several - 1)) * beta / (1 + spread)
    return jnp.where(t > 1, bound, jnp.zeros_like(bound))


def entropy_penalty(weights: Float[Array, "... words"]) -> Float[Array, ""]:
    """Mean entropy of all rows of weights: its minimum is attention on one word. Subtract it to
    spread attention.

    >>> round(float(entropy_penalty(jnp.array([[0.5, 0.5], [1.0, 0.0]]))), 6)
    0.346574
    """
    return jnp.mean(attention_entropy(weights))


def query_l1(query: Float[Array, "..."]) -> Float[Array, ""]:
    """``Σ |q_i|`` of a query, or of query weights: few of its coordinates stay.

    >>> float(query_l1(jnp.array([3.0, -4.0])))
    7.0
    """
    return jnp.sum(jnp.abs(query))


def toward(
    weights: Float[Array, "... words"], given: Float[Array, "... words"]
) -> Float[Array, ""]:
    """``|a − given|²``, mean over all rows: known attention as a prior.

    A squared distance and not a divergence, since weights of sparse normalisers are zero where
    ``given`` may not be.

    >>> float(toward(jnp.array([[0.5, 0.5], [1.0, 0.0]]), jnp.array([[1.0, 0.0], [1.0, 0.0]])))
    0.25
    """
    if weights.shape != given.shape:
        raise AttnlabError(
            f"given weights of shape {given.shape} for attention of shape {weights.shape}: make "
            "them equal"
        )
    return jnp.mean(jnp.sum((weights - given) ** 2, axis=-1))
