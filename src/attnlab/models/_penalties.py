"""Penalties on attention, and its entropy (docs/theory.md#b5).

There is no L1 penalty on attention weights: they sum to one, so it would be constant.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab._errors import AttnlabError


def attention_entropy(weights: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    """``−Σ_i a_i log a_i`` along an axis, in nats; a weight of 0 adds 0, with derivative 0.

    >>> [round(float(h), 6) for h in attention_entropy(jnp.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]))]
    [0.693147, 0.562335]
    """
    # Both branches of `where` must be finite: the derivative of the unused one must not be nan.
    logs = jnp.log(jnp.where(weights > 0, weights, jnp.ones_like(weights)))
    return -jnp.sum(weights * logs, axis=axis)


def entropy_bound(
    logit_norm: Float[Array, "..."] | float, words: Int[Array, "..."] | int
) -> Float[Array, "..."]:
    """The smallest entropy of a softmax over T ``words`` with logits of norm ≤ σ (Zhai et al. 2023).

    ``log(1 + (T−1)β) + σ√(T(T−1)) β/(1 + (T−1)β)`` with ``β = e^{−σ√(T/(T−1))}``. It is attained if
    one logit is ``σ√((T−1)/T)`` and all others are ``−σ/√(T(T−1))``. Softmax is invariant to shifts:
    the norm of the *centred* logits gives the best bound (divided by the temperature, if any). The
    bound does not hold for other normalisers.

    >>> float(entropy_bound(0.0, 8)) == float(jnp.log(8.0)), round(float(entropy_bound(10.0, 8)), 6)
    (True, 0.001862)
    """
    sigma = jnp.asarray(logit_norm, None if hasattr(logit_norm, "dtype") else jnp.float64)
    t = jnp.asarray(words).astype(sigma.dtype)
    sigma, t = jnp.broadcast_arrays(sigma, t)
    # The entropy of one word is 0, where the formula would divide by T − 1 = 0.
    several = jnp.maximum(t, 2)
    beta = jnp.exp(-sigma * jnp.sqrt(several / (several - 1)))
    spread = (several - 1) * beta
    bound = jnp.log1p(spread) + sigma * jnp.sqrt(several * (several - 1)) * beta / (1 + spread)
    return jnp.where(t > 1, bound, jnp.zeros_like(bound))


def entropy_penalty(weights: Float[Array, "... words"]) -> Float[Array, ""]:
    """Mean entropy of all rows of weights. Add it to concentrate attention, subtract it to spread it.

    >>> round(float(entropy_penalty(jnp.array([[0.5, 0.5], [1.0, 0.0]]))), 6)
    0.346574
    """
    return jnp.mean(attention_entropy(weights))


def query_l1(query: Float[Array, "..."]) -> Float[Array, ""]:
    """``Σ |q_i|`` of a query, or of query weights: favours few non-zero coordinates.

    >>> float(query_l1(jnp.array([3.0, -4.0])))
    7.0
    """
    return jnp.sum(jnp.abs(query))


def toward(
    weights: Float[Array, "... words"], given: Float[Array, "... words"]
) -> Float[Array, ""]:
    """``|a − given|²``, mean over all rows: known attention as a prior.

    A squared distance, not a divergence: sparse normalisers give zero weight where ``given`` may be
    positive.

    >>> float(toward(jnp.array([[0.5, 0.5], [1.0, 0.0]]), jnp.array([[1.0, 0.0], [1.0, 0.0]])))
    0.25
    """
    if weights.shape != given.shape:
        raise AttnlabError(
            f"given weights of shape {given.shape}: expected the shape of the attention, "
            f"{weights.shape}"
        )
    return jnp.mean(jnp.sum((weights - given) ** 2, axis=-1))
