"""Eigenvalues of the curvature: all from the dense matrix, or the extreme ones by Lanczos."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnlab._errors import AttnlabError
from attnlab.landscape._lanczos import lanczos, residual, ritz
from attnlab.landscape._operator import Places, Vector, at, curvature, places_of, size_of
from attnlab.landscape._problem import DENSE_LIMIT, Problem

_BASIS_BYTES = 2 * 2**30
_TOLERANCE = {"float32": 1e-5, "float64": 1e-10}

Side = Literal["at least", "at most"]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """All eigenvalues of ``∇²L(θ)``, or of a group's block of it.

    - ``values``: (size,), ascending, in float64; ``vectors``: (size, size), the unit eigenvectors
      in rows;
    - ``error``: the largest distance of a value from an eigenvalue of the computed matrix.
    """

    values: np.ndarray
    vectors: np.ndarray
    error: float
    group: str | None

    @property
    def largest(self) -> float:
        """λ_max."""
        return float(self.values[-1])

    @property
    def smallest(self) -> float:
        """λ_min."""
        return float(self.values[0])

    @property
    def trace(self) -> float:
        """The sum of all eigenvalues."""
        return float(self.values.sum())

    def __str__(self) -> str:
        where = "" if self.group is None else f" of {self.group}"
        return (
            f"All {len(self.values)} eigenvalues{where} lie between {self.smallest:.6g} and "
            f"{self.largest:.6g} "
            f"(± {self.error:.1g}); their sum is {self.trace:.6g}."
        )


@dataclass(frozen=True)
class Eigenvalue:
    """A Ritz value θ with residual r: an eigenvalue lies within r of it.

    The proved bound is one-sided: the k-th largest eigenvalue is *at least* ``θ − r``, the k-th
    smallest *at most* ``θ + r``. It is not proved that nothing lies beyond: a start vector may be
    orthogonal to an eigenvector, and of a repeated eigenvalue one copy is found. ``converged``: r is
    within the tolerance. Otherwise only the bound is valid, and ``settled`` raises an error.
    """

    name: str
    value: float
    residual: float
    side: Side
    converged: bool

    @property
    def bound(self) -> float:
        """``θ − r`` for one of the largest, ``θ + r`` for one of the smallest."""
        return self.value - self.residual if self.side == "at least" else self.value + self.residual

    @property
    def settled(self) -> float:
        """The value, for comparisons; an error if it has not converged."""
        if not self.converged:
            raise AttnlabError(f"{self}: it must not be compared; raise max_depth")
        return self.value

    def __str__(self) -> str:
        if self.converged:
            return f"{self.name} = {self.value:.8g} ± {self.residual:.1g} (proved: {self.side} {self.bound:.8g})"
        return f"{self.name} is {self.side} {self.bound:.4g}, NOT CONVERGED (residual {self.residual:.2g})"


@dataclass(frozen=True, eq=False)
class Extremes:
    """The extreme eigenvalues, ``k`` of each: ``largest`` descending, ``smallest`` ascending.

    - ``largest_vectors``, ``smallest_vectors``: (k, size), unit vectors in rows;
    - ``depth``: Lanczos steps, ``seed``: of the start vector, ``size``: parameters of the whole or
      of the ``group``.
    """

    largest: tuple[Eigenvalue, ...]
    smallest: tuple[Eigenvalue, ...]
    largest_vectors: np.ndarray
    smallest_vectors: np.ndarray
    depth: int
    seed: int
    size: int
    group: str | None

    @property
    def converged(self) -> bool:
        """Whether all of them have converged."""
        return all(e.converged for e in (*self.largest, *self.smallest))

    def __str__(self) -> str:
        where = "" if self.group is None else f" of {self.group}"
        listed = "; ".join(str(e) for e in (*self.largest, *self.smallest))
        return f"{listed}. {self.depth} Lanczos steps on {self.size} parameters{where}, seed {self.seed}."


def exact_spectrum(
    problem: Problem, theta: Vector | None = None, *, group: str | None = None
) -> Spectrum:
    """All eigenvalues of ``∇²L(θ)`` from the dense matrix; up to 2000 parameters.

    ``theta`` is the problem's start by default; ``group`` selects a block of the matrix, that of some
    parameters (``groups(problem)``).

    >>> problem = quadratic(jnp.diag(jnp.array([3.0, -1.0, 2.0])))
    >>> exact_spectrum(problem).values.tolist()
    [-1.0, 2.0, 3.0]
    """
    return spectrum_of(dense_matrix(problem, theta, group=group), group)


def dense_matrix(
    problem: Problem, theta: Vector | None = None, *, group: str | None = None
) -> np.ndarray:
    """``∇²L(θ)`` or a group's block of it, (size, size), symmetric, in float64."""
    point, places = at(problem, theta), places_of(problem, group)
    size = size_of(problem, places)
    if size > DENSE_LIMIT:
        raise AttnlabError(
            f"{size} parameters: the dense matrix is for up to {DENSE_LIMIT}; use extremes, trace "
            "and density"
        )
    h = np.asarray(_dense(problem, point, places), np.float64)
    return 0.5 * (h + h.T)


def spectrum_of(matrix: np.ndarray, group: str | None = None) -> Spectrum:
    """All eigenvalues of a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    error = np.linalg.norm(matrix @ vectors - vectors * values[None, :], axis=0).max()
    return Spectrum(values, vectors.T, float(error), group)


def quadratic(matrix: Float[Array, "n n"], l2: float = 0.0) -> Problem:
    """The problem ``L(θ) = ½ θᵀAθ`` at θ = 0, with known curvature: for tests.

    >>> float(quadratic(jnp.eye(2)).value(jnp.array([1.0, 2.0])))
    2.5
    """
    return Problem.of(jnp.zeros(matrix.shape[0], matrix.dtype), _form, matrix, l2=l2)


def _form(theta: Array, matrix: Array) -> Array:
    return 0.5 * jnp.vdot(theta, matrix @ theta)


def extremes(
    problem: Problem,
    theta: Vector | None = None,
    *,
    k: int = 1,
    group: str | None = None,
    depth: int = 32,
    max_depth: int = 256,
    tolerance: float | None = None,
    ends: Literal["both", "largest", "smallest"] = "both",
    seed: int = 0,
) -> Extremes:
    """The ``k`` largest and ``k`` smallest eigenvalues of ``∇²L(θ)``, by Lanczos.

    - ``depth``: initial number of steps, doubled up to ``max_depth`` until every residual is at most
      ``tolerance`` times the largest |θ| (by default 1e-10 in float64, 1e-5 in float32);
    - ``ends``: which end must converge; both are reported, each value with ``converged``.

    Residuals are computed by one more product with the final vectors, so they include rounding.

    >>> a = jnp.diag(jnp.arange(1.0, 101.0))
    >>> found = extremes(quadratic(a), k=2)
    >>> [round(e.value, 9) for e in (*found.largest, *found.smallest)], found.converged
    ([100.0, 99.0, 1.0, 2.0], True)
    >>> print(extremes(quadratic(a), depth=4, max_depth=4).largest[0])
    λ_max is at least 81.12, NOT CONVERGED (residual 9.8)
    """
    point, places = at(problem, theta), places_of(problem, group)
    size, kind = size_of(problem, places), point.dtype
    if not 1 <= k <= size or depth < 1 or max_depth < depth:
        raise AttnlabError(
            f"k={k}, depth={depth}, max_depth={max_depth}: expected 1 ≤ k ≤ {size}, 1 ≤ depth ≤ "
            "max_depth"
        )
    accepted = _TOLERANCE[str(kind)] if tolerance is None else tolerance
    steps = min(max(depth, 2 * k), size)
    _check_memory(steps, size, kind.itemsize)
    start = jax.random.normal(jax.random.key(seed), (size,), kind)
    while True:
        _check_memory(steps, size, kind.itemsize)
        values, residuals, vectors = map(
            np.asarray, _outer(problem, point, places, start, steps, min(k, steps))
        )
        scale = np.abs(values).max()
        good = residuals <= accepted * scale
        wanted = {"both": good, "largest": good[1], "smallest": good[0]}[ends]
        if wanted.all() or steps == min(max_depth, size) or steps > max_depth:
            break
        steps = min(2 * steps, max_depth, size)
    low, high = (
        tuple(
            Eigenvalue(
                _name(i, end),
                float(values[end, i]),
                float(residuals[end, i]),
                side,
                bool(good[end, i]),
            )
            for i in range(values.shape[1])
        )
        for end, side in enumerate(("at most", "at least"))
    )
    return Extremes(high, low, vectors[1], vectors[0], steps, seed, size, group)


def _name(i: int, end: int) -> str:
    first = ("λ_min", "λ_max")[end]
    return first if i == 0 else f"{first}, number {i + 1} from there"


def _check_memory(depth: int, size: int, itemsize: int) -> None:
    need = depth * size * itemsize
    if need > _BASIS_BYTES:
        raise AttnlabError(
            f"{depth} Lanczos vectors of {size} parameters need {need / 2**30:.1f} GiB, more than "
            f"{_BASIS_BYTES / 2**30:.0f}; lower max_depth, or take one group of parameters"
        )


@eqx.filter_jit
def _dense(problem: Problem, theta: Vector, places: Places) -> Float[Array, "size size"]:
    product, size = curvature(problem, theta, places), size_of(problem, places)
    return jax.lax.map(product, jnp.eye(size, dtype=theta.dtype), batch_size=64)


@eqx.filter_jit
def _outer(
    problem: Problem, theta: Vector, places: Places, start: Vector, depth: int, k: int
) -> tuple[Float[Array, "2 k"], Float[Array, "2 k"], Float[Array, "2 k size"]]:
    """Ritz pairs with residuals: the k smallest (row 0, ascending), the k largest (row 1, descending)."""
    product = curvature(problem, theta, places)
    found = ritz(lanczos(product, start, depth))
    order = jnp.stack([jnp.arange(k), depth - 1 - jnp.arange(k)])
    values, vectors = found.values[order], found.vectors[order]
    flat = vectors.reshape(2 * k, -1)
    actual = jax.lax.map(lambda pair: residual(product, *pair), (values.reshape(-1), flat))
    return values, jnp.maximum(actual.reshape(2, k), found.residuals[order]), vectors
