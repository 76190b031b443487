"""The trace of the curvature from random probes, with its standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from matfree import stochtrace
from scipy import stats as distributions

from attnlab._errors import AttnlabError
from attnlab.landscape._operator import Vector, at, curvature, places_of, size_of
from attnlab.landscape._problem import Problem
from attnlab.stats import CONFIDENCE, Interval, check_confidence


@dataclass(frozen=True, eq=False)
class Trace:
    """An estimate of ``tr A`` with its standard error.

    - ``values``: (probes,), one independent and unbiased estimate per probe; ``estimate``: their
      mean;
    - ``deflated``: dimensions whose share was computed exactly; ``size``: of A;
    - ``exact``: A is small enough that the diagonal was computed, and ``values`` is the trace.
    """

    values: np.ndarray
    deflated: int
    size: int
    seed: int
    rounding: float
    confidence: float = CONFIDENCE
    group: str | None = None

    @property
    def exact(self) -> bool:
        """Whether nothing was estimated."""
        return len(self.values) == 1

    @property
    def estimate(self) -> float:
        """The mean of the probes."""
        return float(self.values.mean())

    @property
    def standard_error(self) -> float:
        """``s/√probes`` with the standard deviation s of the probes; 0 if the trace is exact."""
        return 0.0 if self.exact else float(self.values.std(ddof=1) / math.sqrt(len(self.values)))

    @property
    def interval(self) -> Interval:
        """``estimate ± (t·standard_error + rounding)`` with Student's t."""
        half = self.rounding
        if not self.exact:
            t = float(distributions.t.ppf(0.5 + self.confidence / 2, len(self.values) - 1))
            half = t * self.standard_error + self.rounding
        return Interval(self.estimate - half, self.estimate + half, self.estimate, self.confidence)

    def __str__(self) -> str:
        where = "" if self.group is None else f" of {self.group}"
        if self.exact:
            return f"The trace{where} is {self.estimate:.6g}, computed from all {self.size} diagonal entries."
        found = self.interval
        return (
            f"The trace{where} is {self.estimate:.4g} ± {self.standard_error:.2g} (standard "
            f"error), {self.confidence:.0%} "
            f"interval [{found.low:.4g}, {found.high:.4g}]; {len(self.values)} probes, "
            f"{self.deflated} dimensions "
            f"computed exactly, seed {self.seed}."
        )


def trace(
    problem: Problem,
    theta: Vector | None = None,
    *,
    group: str | None = None,
    probes: int = 16,
    deflate: int = 16,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Trace:
    """``tr ∇²L(θ)`` by Hutch++: exact in a small space, Hutchinson's estimator outside it.

    With Q the orthonormal range of ``A Ω``, Ω (size, deflate) random, and P = I − QQᵀ::

        tr A = tr QᵀAQ + tr P A P,    the second ≈ mean over probes of (P z)ᵀ A (P z), z random signs.

    A few large eigenvalues make plain Hutchinson's error as large as the trace (16 probes of a
    matrix of rank one: 35 %). They lie in Q, so the rest to be estimated is small. The probes are
    independent, so the interval is Student's. Costs ``2·deflate + probes`` products; if that is not
    less than the number of parameters, the diagonal is computed instead.

    Meyer, Musco, Musco and Woodruff (2021), Hutch++: Optimal stochastic trace estimation.

    >>> from attnlab.landscape._spectrum import quadratic
    >>> found = trace(quadratic(jnp.diag(jnp.arange(1.0, 301.0) ** -1.0)))
    >>> true = sum(1 / i for i in range(1, 301))
    >>> found.interval.low <= true <= found.interval.high, abs(found.estimate / true - 1) < 0.15
    (True, True)
    """
    point, places = at(problem, theta), places_of(problem, group)
    size = size_of(problem, places)
    if probes < 2 or deflate < 0:
        raise AttnlabError(
            f"probes={probes}, deflate={deflate}: expected at least 2 probes and deflate ≥ 0"
        )
    check_confidence(confidence)
    if 2 * deflate + probes >= size:
        values = np.asarray(_diagonal_sum(problem, point, places), np.float64)[None]
    else:
        values = np.asarray(
            _probed(problem, point, places, jax.random.key(seed), probes, deflate), np.float64
        )
    return Trace(
        values,
        min(deflate, size),
        size,
        seed,
        _rounding(values, size, point.dtype),
        confidence,
        group,
    )


def operator_trace(
    product: Callable[[Array], Array],
    like: Float[Array, "size"],
    key: Array,
    probes: int,
    deflate: int,
) -> Float[Array, "probes"]:
    """Independent estimates of the trace of a symmetric operator; see ``trace``."""
    sketch_key, probe_key = jax.random.split(key)
    with jax.numpy_dtype_promotion("standard"):  # matfree's samplers
        signs = stochtrace.sampler_signs(like, num=probes)(probe_key)
        one = stochtrace.monte_carlo_trace()
    if deflate == 0:
        return jax.lax.map(lambda z: one(product, z), signs)
    sketch = jax.lax.map(
        product, jax.random.normal(sketch_key, (deflate, like.shape[0]), like.dtype)
    )
    q = jnp.linalg.qr(sketch.T)[0].T
    inside = jnp.sum(jax.lax.map(lambda row: jnp.vdot(row, product(row)), q))

    def outside(z: Array) -> Array:
        return _without(product(_without(z, q)), q)

    return inside + jax.lax.map(lambda z: one(outside, z), signs)


def _without(z: Float[Array, "size"], q: Float[Array, "deflate size"]) -> Float[Array, "size"]:
    return z - (q @ z) @ q


@eqx.filter_jit
def _probed(
    problem: Problem, theta: Vector, places: Any, key: Array, probes: int, deflate: int
) -> Array:
    product = curvature(problem, theta, places)
    return operator_trace(
        product, jnp.zeros(size_of(problem, places), theta.dtype), key, probes, deflate
    )


@eqx.filter_jit
def _diagonal_sum(problem: Problem, theta: Vector, places: Any) -> Array:
    product, size = curvature(problem, theta, places), size_of(problem, places)
    units = jnp.eye(size, dtype=theta.dtype)
    return jnp.sum(jax.lax.map(lambda e: jnp.vdot(e, product(e)), units))


def _rounding(values: np.ndarray, size: int, kind: jnp.dtype) -> float:
    return float(jnp.finfo(kind).eps) * math.sqrt(size) * float(np.abs(values).max())
