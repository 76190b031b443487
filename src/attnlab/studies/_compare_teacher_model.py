"""The teacher that attends to some words: equal weights on those that a hidden direction ranks
first (docs/theory.md#b5).
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.models import Baseline


class AttendingTeacher(eqx.Module):
    """``g(x) = head(Σ_z a_z x_z)`` with ``a_z = 1/r`` on the r words of the largest ``u·x_z``:
    columns of x are words.

    >>> head = Baseline(jnp.ones((2, 1)), jnp.ones((1, 1)))
    >>> teacher = AttendingTeacher(jnp.array([1.0, 0.0]), head, 1)
    >>> teacher.attention(jnp.array([[0.0, 3.0, 1.0], [5.0, 5.0, 5.0]])).tolist()
    [0.0, 1.0, 0.0]
    """

    direction: Float[Array, "t"]
    head: Baseline
    relevant: int = eqx.field(static=True)

    def attention(self, x: Float[Array, "t p"]) -> Float[Array, "p"]:
        """The weight of every word."""
        chosen = jax.lax.top_k(self.direction @ x, self.relevant)[1]
        return jnp.zeros(x.shape[1], x.dtype).at[chosen].set(1 / self.relevant)

    def __call__(self, x: Float[Array, "t p"]) -> Float[Array, ""]:
        """Output for one input."""
        return jnp.asarray(self.head(x @ self.attention(x)))
