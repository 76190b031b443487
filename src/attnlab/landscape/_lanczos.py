"""Lanczos' method with full reorthogonalisation, and Ritz values with residuals."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab._errors import AttnlabError

Matvec = Callable[[Array], Array]


class Tridiagonal(NamedTuple):
    """``A Qᵀ = Qᵀ T + β_k q_{k+1} e_kᵀ`` with the rows of Q orthonormal and T tridiagonal.

    - ``alphas``: (depth,), the diagonal of T; ``betas``: (depth,), its subdiagonal, followed by β_k,
      which is not part of T;
    - ``basis``: Q, (depth, parameters).
    """

    alphas: Float[Array, "depth"]
    betas: Float[Array, "depth"]
    basis: Float[Array, "depth parameters"]


class Ritz(NamedTuple):
    """Approximate eigenpairs, ascending: an eigenvalue lies within ``residuals[i]`` of ``values[i]``.

    - ``values``: (depth,); ``residuals``: (depth,), ``‖A y − θ y‖ = β_k |s_k|``, up to rounding;
    - ``vectors``: (depth, parameters), a unit vector y per row;
    - ``first``: (depth,), the share ``s₁²`` of the start vector in each: the weights of a
      quadrature.
    """

    values: Float[Array, "depth"]
    residuals: Float[Array, "depth"]
    vectors: Float[Array, "depth parameters"]
    first: Float[Array, "depth"]


def lanczos(matvec: Matvec, start_vector: Float[Array, "parameters"], depth: int) -> Tridiagonal:
    """``depth`` steps for a symmetric matrix given by its products ``A v``, in the vector's type.

    Every new vector is orthogonalised against all earlier ones, twice. When the vectors span an
    invariant space (β = 0, up to rounding), the method continues with a random vector from a fixed
    key: T then decomposes into blocks, and every row of the basis is a unit vector. Works under
    ``jit`` and ``vmap``.

    >>> a = jnp.diag(jnp.array([1.0, 2.0, 5.0]))
    >>> t = lanczos(lambda v: a @ v, jnp.ones(3), 3)
    >>> [round(float(value), 12) for value in ritz(t).values]
    [1.0, 2.0, 5.0]
    """
    size = start_vector.shape[0]
    if not 1 <= depth <= size:
        raise AttnlabError(f"depth={depth}: expected 1 to {size}, the number of parameters")
    dtype = start_vector.dtype
    tiny = 10 * size**0.5 * float(jnp.finfo(dtype).eps)
    key = jax.random.key(0)

    def step(
        i: Array, state: tuple[Array, Array, Array, Array]
    ) -> tuple[Array, Array, Array, Array]:
        alphas, betas, basis, largest = state
        w = matvec(basis[i])
        alpha = jnp.vdot(basis[i], w)
        w = _orthogonal(_orthogonal(w, basis), basis)
        beta = jnp.linalg.norm(w)
        largest = jnp.maximum(largest, jnp.abs(alpha) + beta)
        ended = beta <= tiny * largest
        w = jax.lax.cond(
            ended, lambda: jax.random.normal(jax.random.fold_in(key, i), (size,), dtype), lambda: w
        )
        # A random replacement needs its own orthogonalisation; for w itself this only removes
        # rounding.
        following = _unit(_orthogonal(_unit(_orthogonal(_unit(w), basis)), basis))
        betas = betas.at[i].set(jnp.where(ended, jnp.zeros_like(beta), beta))
        return alphas.at[i].set(alpha), betas, basis.at[i + 1].set(following, mode="drop"), largest

    basis = jnp.zeros((depth, size), dtype).at[0].set(_unit(start_vector))
    state = (jnp.zeros(depth, dtype), jnp.zeros(depth, dtype), basis, jnp.zeros((), dtype))
    alphas, betas, basis, _ = jax.lax.fori_loop(0, depth, step, state)
    return Tridiagonal(alphas, betas, basis)


def ritz(t: Tridiagonal) -> Ritz:
    """Eigenpairs of T, mapped to the space of parameters.

    >>> a = jnp.diag(jnp.arange(1.0, 101.0))
    >>> early = ritz(lanczos(lambda v: a @ v, jnp.ones(100), 5))
    >>> bool(early.residuals[-1] > 0.1), bool(early.values[-1] + early.residuals[-1] >= 100)
    (True, True)
    """
    off = t.betas[:-1]
    values, s = jnp.linalg.eigh(jnp.diag(t.alphas) + jnp.diag(off, 1) + jnp.diag(off, -1))
    return Ritz(values, t.betas[-1] * jnp.abs(s[-1]), s.T @ t.basis, s[0] ** 2)


def residual(
    matvec: Matvec, value: Float[Array, ""], vector: Float[Array, "parameters"]
) -> Float[Array, ""]:
    """``‖A y − θ y‖ / ‖y‖`` by one more product; unlike ``Ritz.residuals`` it includes rounding."""
    return jnp.linalg.norm(matvec(vector) - value * vector) / jnp.linalg.norm(vector)


def _orthogonal(
    w: Float[Array, "parameters"], basis: Float[Array, "depth parameters"]
) -> Float[Array, "parameters"]:
    """``w`` without its part in the span of the basis; rows not yet filled are zero."""
    return w - (basis @ w) @ basis


def _unit(w: Float[Array, "parameters"]) -> Float[Array, "parameters"]:
    return w / jnp.maximum(jnp.linalg.norm(w), jnp.finfo(w.dtype).tiny)
