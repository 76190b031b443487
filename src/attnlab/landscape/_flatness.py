"""Flatness of a point: seven measures (docs/theory.md#b4), two of them invariant to layer scaling."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnlab._errors import AttnlabError
from attnlab.landscape._operator import Piece, Vector, at, curvature, input_axis, pieces
from attnlab.landscape._problem import Problem
from attnlab.landscape._spectrum import DENSE_LIMIT, dense_matrix, extremes, spectrum_of
from attnlab.landscape._trace import operator_trace, trace
from attnlab.landscape._worst import largest_rise


@dataclass(frozen=True)
class Flatness:
    """The measures of ``flatness`` at one point; see there for their definitions.

    - ``petzka``: by layer; ``relative_flatness`` is their sum;
    - ``trace_error``, ``petzka_error``: standard errors of the trace and of the sum, 0 if computed
      exactly;
    - ``keskar``, ``sam``, ``adaptive_sam``: the largest increase found, a lower bound of the true
      maximum.
    """

    loss: float
    largest: float
    trace: float
    trace_error: float
    parameters: int
    keskar: float
    sam: float
    adaptive_sam: float
    petzka: dict[str, float]
    petzka_error: float
    seed: int

    @property
    def trace_per_parameter(self) -> float:
        """``tr H / p``."""
        return self.trace / self.parameters

    @property
    def relative_flatness(self) -> float:
        """Petzka's measure, summed over the layers."""
        return math.fsum(self.petzka.values())

    @property
    def measures(self) -> dict[str, float]:
        """All seven by name, for tables and ratios."""
        return {
            "largest": self.largest,
            "trace": self.trace,
            "trace_per_parameter": self.trace_per_parameter,
            "keskar": self.keskar,
            "sam": self.sam,
            "adaptive_sam": self.adaptive_sam,
            "petzka": self.relative_flatness,
        }

    def __str__(self) -> str:
        error = f" ± {self.trace_error:.2g}" if self.trace_error else ""
        return (
            f"At loss {self.loss:.4g}: λ_max {self.largest:.4g}, trace {self.trace:.4g}{error} "
            f"({self.trace_per_parameter:.3g} per parameter), Keskar {self.keskar:.3g} %, SAM "
            f"{self.sam:.3g}, adaptive "
            f"SAM {self.adaptive_sam:.3g}, Petzka {self.relative_flatness:.4g}."
        )


def flatness(
    problem: Problem,
    theta: Vector | None = None,
    *,
    epsilon: float = 1e-3,
    rho: float = 0.05,
    adaptive_rho: float = 0.05,
    penalised: bool = False,
    starts: int = 4,
    steps: int = 50,
    seed: int = 0,
) -> Flatness:
    """Seven measures of ``L`` at θ, with H = ∇²L(θ) and p parameters; all 0 for a constant loss.

    - ``largest``: λ_max(H); ``trace``: tr H; ``trace_per_parameter``: tr H / p;
    - ``keskar``: ``100·(max_{z∈C} L(θ+z) − L(θ)) / (1 + L(θ))``, C: ``|z_i| ≤ epsilon·(|θ_i| + 1)``
      (Keskar et al., 2017, eq. 4, full space);
    - ``sam``: ``max_{‖z‖₂ ≤ rho} L(θ+z) − L(θ)`` (Foret et al., 2021, eq. 1; the maximum itself,
      since its first-order form is 0/0 at a stationary point);
    - ``adaptive_sam``: ``max_{‖z/|θ|‖₂ ≤ adaptive_rho} L(θ+z) − L(θ)``, each coordinate relative to
      its size (Kwon et al., 2021); invariant to scaling of layers;
    - ``petzka``: of a layer W with neurons w_s, ``Σ_{s,s'} ⟨w_s, w_s'⟩ tr H_{s,s'}``, H_{s,s'} the
      block of H of two neurons' weights (Petzka et al., 2021, definition 3); invariant to scaling
      of a whole layer.

    ``penalised=False`` leaves out ½λ‖θ‖², which does not depend on the data and is not
    scale-invariant. Up to 2000 parameters λ_max, trace and Petzka are exact; above they come from
    ``extremes`` (an error if it has not converged) and ``trace``.

    >>> from attnlab.landscape._spectrum import quadratic
    >>> found = flatness(quadratic(jnp.diag(jnp.array([4.0, 1.0]))), rho=0.1, epsilon=0.1)
    >>> found.largest, found.trace, round(found.sam, 9), round(found.keskar, 9)
    (4.0, 5.0, 0.02, 2.5)
    """
    if not (epsilon > 0 and rho > 0 and adaptive_rho > 0) or starts < 1 or steps < 1:
        raise AttnlabError(
            f"epsilon={epsilon}, rho={rho}, adaptive_rho={adaptive_rho}, starts={starts}, "
            f"steps={steps}: expected numbers > 0"
        )
    if not penalised:
        problem = dataclasses.replace(problem, l2=jnp.zeros_like(problem.l2))
    point = at(problem, theta)
    matrix = dense_matrix(problem, point) if problem.parameters <= DENSE_LIMIT else None
    largest, top, total, total_error = _curvatures(problem, point, matrix, seed)
    layers = {
        p.name: petzka(problem, point, p, matrix=matrix, seed=seed)
        for p in pieces(problem)
        if len(p.shape) == 2
    }
    loss = float(_value(problem, point))
    first = jnp.asarray(top, point.dtype)
    drawn = jax.random.normal(jax.random.key(seed), (starts, problem.parameters), point.dtype)

    def rise(scale: Array, shape: str) -> float:
        # Search from both ends of the top eigenvector, and from random directions.
        along = first / jnp.where(scale > 0, scale, jnp.ones_like(scale))
        along = along / (jnp.max(jnp.abs(along)) if shape == "box" else jnp.linalg.norm(along))
        begin = jnp.concatenate([along[None], -along[None], drawn])
        rises = largest_rise(problem, point, scale, begin, shape, steps)  # pyright: ignore[reportArgumentType]
        return float(jnp.max(rises))

    return Flatness(
        loss,
        largest,
        total,
        total_error,
        problem.parameters,
        keskar=100 * rise(epsilon * (jnp.abs(point) + 1), "box") / (1 + loss),
        sam=rise(jnp.full_like(point, rho), "ball"),
        adaptive_sam=rise(adaptive_rho * jnp.abs(point), "ball"),
        petzka={name: value for name, (value, _) in layers.items()},
        petzka_error=math.sqrt(sum(error**2 for _, error in layers.values())),
        seed=seed,
    )


def _curvatures(
    problem: Problem, theta: Vector, matrix: np.ndarray | None, seed: int
) -> tuple[float, np.ndarray, float, float]:
    """λ_max with its vector, the trace and its standard error."""
    if matrix is not None:
        spectrum = spectrum_of(matrix)
        return spectrum.largest, spectrum.vectors[-1], spectrum.trace, 0.0
    found = extremes(problem, theta, ends="largest", seed=seed)
    total = trace(problem, theta, seed=seed)
    return found.largest[0].settled, found.largest_vectors[0], total.estimate, total.standard_error


def petzka(
    problem: Problem,
    theta: Vector,
    piece: Piece,
    *,
    matrix: np.ndarray | None = None,
    seed: int = 0,
    probes: int = 16,
    deflate: int = 16,
) -> tuple[float, float]:
    """``Σ_{s,s'} ⟨w_s, w_s'⟩ tr H_{s,s'}`` of one layer, and its standard error.

    From the dense ``matrix`` H if it is given. Otherwise, with G the matrix of the ``⟨w_s, w_s'⟩``
    and C = G^½, it is the trace of ``(I⊗C) H (I⊗C)``: computed up to 2000 weights and estimated
    above.
    """
    if matrix is not None:
        return _from_matrix(
            matrix, np.asarray(theta, np.float64), piece, input_axis(problem, piece.name)
        ), 0.0
    size = math.prod(piece.shape)
    key = jax.random.key(seed)
    whole = size <= DENSE_LIMIT
    axis = input_axis(problem, piece.name)
    values = np.asarray(
        _layer(problem, theta, piece, axis, key, 0 if whole else probes, deflate), np.float64
    )
    if whole:
        return float(values.sum()), 0.0
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(probes))


def _from_matrix(matrix: np.ndarray, theta: np.ndarray, piece: Piece, axis: int) -> float:
    """Petzka's measure by its definition."""
    places = np.arange(piece.span.start, piece.span.stop).reshape(piece.shape)
    neurons = places.T if axis == 0 else places
    blocks = matrix[neurons[:, None, :], neurons[None, :, :]]
    return float(np.sum((theta[neurons] @ theta[neurons].T) * blocks.sum(-1)))


@eqx.filter_jit
def _layer(
    problem: Problem, theta: Vector, piece: Piece, axis: int, key: Array, probes: int, deflate: int
) -> Float[Array, "numbers"]:
    """The diagonal of the layer's operator, or with probes estimates of its trace."""
    product = curvature(problem, theta)
    w = theta[piece.span].reshape(piece.shape)
    w = w if axis == 0 else w.T
    root = _root(w.T @ w)

    def scaled(v: Array) -> Array:
        inside = v.reshape(w.shape) @ root
        moved = inside if axis == 0 else inside.T
        whole = jnp.zeros_like(theta).at[piece.span].set(moved.reshape(-1))
        back = product(whole)[piece.span].reshape(piece.shape)
        return ((back if axis == 0 else back.T) @ root).reshape(-1)

    like = jnp.zeros(w.size, theta.dtype)
    if probes:
        return operator_trace(scaled, like, key, probes, deflate)
    return jax.lax.map(lambda e: jnp.vdot(e, scaled(e)), jnp.eye(w.size, dtype=theta.dtype))


def _root(g: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The symmetric square root of a positive semi-definite matrix."""
    values, vectors = jnp.linalg.eigh(g)
    return (vectors * jnp.sqrt(jnp.maximum(values, 0))[None, :]) @ vectors.T


@eqx.filter_jit
def _value(problem: Problem, theta: Vector) -> Array:
    return problem.value(theta)
