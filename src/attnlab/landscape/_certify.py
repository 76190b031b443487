"""Certificates: what is proved of a point of a loss, and what is not (THEORY B3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from attnlab._errors import AttnlabError
from attnlab.landscape._lanczos import lanczos, residual, ritz
from attnlab.landscape._operator import at
from attnlab.landscape._problem import Loss, Problem, usual_loss
from attnlab.landscape._reduced_words import reduced_problem
from attnlab.landscape._spectrum import DENSE_LIMIT
from attnlab.landscape._stationary import TOLERANCE
from attnlab.landscape._symmetry import zero_modes
from attnlab.landscape._words import word_problem
from attnlab.models import WordAttention
from attnlab.tasks import Corpus

Kind = Literal["minimum", "saddle", "degenerate", "no negative curvature found", "not stationary"]
CHANCE = 1e-3  # of failure, in the statement about what Lanczos may have missed
_ROUNDING = 1e3
_SETTLED = {"float32": 1e-5, "float64": 1e-8}


@dataclass(frozen=True)
class Bounded:
    """A number known to lie between ``low`` and ``high``, one of which is infinite where nothing is proved.

    ``converged`` is false for a Ritz value whose residual is large: then only the bound says something, and
    ``settled`` refuses to hand the value out.
    """

    name: str
    value: float
    low: float
    high: float
    converged: bool = True

    @property
    def direction(self) -> Literal["between", "at least", "at most"]:
        """What is proved: both ends, or one."""
        if math.isinf(self.low):
            return "at most"
        return "at least" if math.isinf(self.high) else "between"

    @property
    def settled(self) -> float:
        """The value, for comparisons; refused where it has not converged."""
        if not self.converged:
            raise AttnlabError(f"{self}: it must not be compared; raise depth")
        return self.value

    def __str__(self) -> str:
        if self.direction == "between":
            return f"{self.name} = {self.value:.3g} ± {max(self.high - self.value, self.value - self.low):.1g}"
        bound = self.high if self.direction == "at most" else self.low
        sign = "≤" if self.direction == "at most" else "≥"
        return f"{self.name} {sign} {bound:.3g}" + ("" if self.converged else " (not converged)")


@dataclass(frozen=True)
class Certificate:
    """What is proved of a point θ.

    - ``kind``: ``"minimum"`` and ``"degenerate"`` (curvature within ±δ) come from all eigenvalues only; ``"saddle"``
      from a proved negative one; ``"no negative curvature found"`` is all that Lanczos can say; ``"not stationary"``
      if ``gradient`` ``‖∇L‖_∞`` exceeds ``tolerance``;
    - ``smallest``, ``largest``: λ_min and λ_max of ``∇²L`` with their bounds, zero modes of symmetry left out;
    - ``inertia``: eigenvalues below −δ, within ±δ and above δ, zero modes left out; ``None`` from Lanczos;
    - ``zero_modes``: directions along which symmetry keeps the loss, counted; ``delta``: δ;
    - ``depth``: Lanczos steps, 0 for all eigenvalues; ``floor``: with probability 1 − ``chance`` no eigenvalue lies
      below it (Kuczyński & Woźniakowski 1992), ``None`` for all eigenvalues;
    - ``error``, ``gap``: prediction error and how far it is above the best known, if they were given.
    """

    kind: Kind
    value: float
    gradient: float
    tolerance: float
    norm: float
    smallest: Bounded
    largest: Bounded
    inertia: tuple[int, int, int] | None
    zero_modes: int
    delta: float
    parameters: int
    depth: int = 0
    floor: float | None = None
    chance: float | None = None
    error: float | None = None
    gap: float | None = None

    @property
    def stationary(self) -> bool:
        """Whether the gradient is within the tolerance."""
        return self.kind != "not stationary"

    def __str__(self) -> str:
        said = _kind_words(self)
        said += f": ‖∇L‖ = {self.gradient:.1g}, {self.smallest}, {self.largest}"
        if self.inertia is not None:
            low, none, high = self.inertia
            said += f", inertia {high} up, {none} flat, {low} down (δ = {self.delta:.1g})"
        if self.zero_modes:
            said += f", {self.zero_modes} zero mode{'s' if self.zero_modes > 1 else ''} of symmetry left out"
        if self.floor is not None and self.chance is not None:
            said += f"; {self.depth} Lanczos steps: nothing below {self.floor:.3g} with probability {1 - self.chance:g}"
        if self.error is not None:
            said += f"; prediction error {self.error:.3g}"
        if self.gap is not None:
            said += f", {self.gap:.3g} above the best known"
        return f"{said}."


def certify(
    what: Problem | Any, then: Float[Array, "parameters"] | Loss | PyTree = None, data: PyTree = None, *,
    l2: float = 0.0, tolerance: float = TOLERANCE, error: float | None = None, best: float | None = None,
    tangents: Float[Array | np.ndarray, "tangents parameters"] | None = None, dense: int = DENSE_LIMIT,
    depth: int = 128, seed: int = 0,
) -> Certificate:  # fmt: skip
    """Certify a point: ``certify(problem, theta)``, or of a model where it is ``certify(model, data, l2=…)`` or, with a
    loss of one's own, ``certify(model, loss, data, l2=…)``.

    - without a loss, ``data = {"x": …, "y": …}`` is judged by squared error or, for class numbers, by cross-entropy;
    - word attention takes a ``Corpus``. Its eigenvalues are those of its reduced coordinates (``reduced_problem``;
      every other direction has the curvature l2), and without a penalty it is never stationary: weights escape;
    - up to ``dense`` parameters all eigenvalues are computed; above, ``depth`` Lanczos steps from a random vector of
      ``seed`` bound λ_min from above and λ_max from below, and the word minimum is not used;
    - δ = 1000 √parameters · rounding · λ_max, plus what the zero modes are off by;
    - ``tangents``: directions of symmetry (tangents, parameters) of a model that attnlab does not know;
    - ``error``: prediction error at the point, ``best``: the smallest known.

    >>> from attnlab.landscape import quadratic
    >>> print(certify(quadratic(jnp.diag(jnp.array([2.0, 1.0])))))
    A minimum: ‖∇L‖ = 0, λ_min = 1 ± 6e-13, λ_max = 2 ± 6e-13, inertia 2 up, 0 flat, 0 down (δ = 6e-13).
    >>> certify(quadratic(jnp.diag(jnp.array([2.0, -1.0])))).kind
    'saddle'
    """
    problem, theta = _asked(what, then, data, l2)
    value, gradient = (np.asarray(each) for each in _look(problem, theta))
    steepest = float(np.max(np.abs(gradient)))
    still = bool(np.isfinite(value)) and steepest <= tolerance
    if isinstance(what, WordAttention):
        still = still and l2 > 0
        if still:
            problem = reduced_problem(what, then, l2=l2)  # pyright: ignore[reportArgumentType]
            theta = problem.start
    modes = zero_modes(problem, theta, given=tangents) if still else np.zeros((0, problem.parameters))
    seen = _all(problem, theta, modes) if problem.parameters <= dense else _outer(problem, theta, modes, depth, seed)
    gap = None if error is None or best is None else error - best
    return Certificate(
        kind=seen.kind if still else "not stationary", value=float(value), gradient=steepest, tolerance=tolerance,
        norm=float(jnp.linalg.norm(theta)), smallest=seen.smallest, largest=seen.largest, inertia=seen.inertia,
        zero_modes=len(modes), delta=seen.delta, parameters=problem.parameters, depth=seen.depth, floor=seen.floor,
        chance=None if seen.floor is None else CHANCE, error=error, gap=gap,
    )  # fmt: skip


def _asked(what: Any, then: Any, data: Any, l2: float) -> tuple[Problem, Float[Array, "parameters"]]:
    """The problem and the point that the arguments of ``certify`` name."""
    if isinstance(what, Problem):
        return what, at(what, then)
    if isinstance(what, WordAttention) and isinstance(then, Corpus):
        problem = word_problem(what, then, l2=l2)
    elif callable(then):
        problem = Problem.of(what, cast(Loss, then), data, l2=l2)
    elif then is not None:
        problem = Problem.of(what, usual_loss(then), then, l2=l2)
    else:
        raise AttnlabError(
            "expected certify(problem, theta), certify(model, data, l2=…) or certify(model, loss, data, l2=…)"
        )
    return problem, problem.start


def missed(depth: int, size: int, chance: float) -> float:
    """The share ε of the spectrum's width by which Lanczos may miss an end, but for a probability ``chance``.

    For k steps in n dimensions from a start drawn evenly from the sphere
    ``P[θ_min − λ_min > ε (λ_max − λ_min)] ≤ 1.648 √n e^{−√ε (2k − 1)}`` (Kuczyński & Woźniakowski 1992, for λ_max of
    a positive matrix; a Krylov space does not know of shifts and signs).

    >>> round(missed(128, 100_000, 1e-3), 4)
    0.0027
    """
    return (math.log(1.648 * math.sqrt(size) / chance) / (2 * depth - 1)) ** 2


@dataclass(frozen=True)
class _Seen:
    kind: Kind
    smallest: Bounded
    largest: Bounded
    inertia: tuple[int, int, int] | None
    delta: float
    depth: int = 0
    floor: float | None = None


def _all(problem: Problem, theta: Array, modes: np.ndarray) -> _Seen:
    """All eigenvalues, on the complement of the zero modes."""
    h = np.asarray(_hessian(problem, theta), np.float64)
    if not np.isfinite(h).all():
        nothing = [Bounded(name, math.nan, -math.inf, math.inf, converged=False) for name in ("λ_min", "λ_max")]
        return _Seen("not stationary", nothing[0], nothing[1], None, math.nan)
    rest = np.linalg.svd(modes, full_matrices=True)[2][len(modes) :] if len(modes) else np.eye(len(h))
    values = np.linalg.eigvalsh(rest @ h @ rest.T) if len(rest) else np.zeros(1)
    rounding = float(np.finfo(theta.dtype).eps) * math.sqrt(len(h)) * float(np.abs(values).max())
    delta = _ROUNDING * rounding + (float(np.linalg.norm(modes @ h, 2)) if len(modes) else 0.0)
    inertia = (int((values < -delta).sum()), int((np.abs(values) <= delta).sum()), int((values > delta).sum()))
    kind: Kind = "saddle" if inertia[0] else "degenerate" if inertia[1] else "minimum"
    low, high = (
        Bounded(name, float(value), float(value - delta), float(value + delta))
        for name, value in zip(("λ_min", "λ_max"), values[[0, -1]], strict=True)
    )
    return _Seen(kind, low, high, inertia, delta)


def _outer(problem: Problem, theta: Array, modes: np.ndarray, depth: int, seed: int) -> _Seen:
    """One-sided statements from Ritz values, on the complement of the zero modes."""
    size = problem.parameters - len(modes)
    depth = min(depth, size)
    given = jnp.asarray(modes, theta.dtype)
    start = jax.random.normal(jax.random.key(seed), theta.shape, theta.dtype)
    values, residuals = (np.asarray(each, np.float64) for each in _ritz(problem, theta, given, start, depth))
    scale = float(np.abs(values).max())
    delta = _ROUNDING * float(np.finfo(theta.dtype).eps) * scale
    good = residuals <= _SETTLED[str(theta.dtype)] * scale
    low, high = (float(each) for each in values)
    smallest = Bounded("λ_min", low, -math.inf, low + float(residuals[0]), bool(good[0]))
    largest = Bounded("λ_max", high, high - float(residuals[1]), math.inf, bool(good[1]))
    # Both ends may be missed: each with half of the chance, and the true width is at most (high − low)/(1 − 2ε).
    share = missed(depth, size, CHANCE / 2)
    floor = low - share * (high - low) / (1 - 2 * share) if share < 0.5 else -math.inf
    kind: Kind = "saddle" if smallest.high < -delta else "no negative curvature found"
    return _Seen(kind, smallest, largest, None, delta, depth, floor)


@eqx.filter_jit
def _ritz(
    problem: Problem, theta: Array, modes: Array, start: Array, depth: int
) -> tuple[Float[Array, "2"], Float[Array, "2"]]:
    _, product = jax.linearize(problem.gradient, theta)

    def without(v: Array) -> Array:
        return v - (modes @ v) @ modes

    def outside(v: Array) -> Array:
        return without(product(without(v)))

    found = ritz(lanczos(outside, without(start), depth))
    ends = jnp.array([0, depth - 1])
    values, vectors = found.values[ends], found.vectors[ends]
    # Against the whole matrix, so that what the zero modes are off by is in the residual.
    return values, jax.lax.map(lambda pair: residual(product, *pair), (values, vectors))


@eqx.filter_jit
def _hessian(problem: Problem, theta: Array) -> Float[Array, "parameters parameters"]:
    return problem.hessian(theta)


@eqx.filter_jit
def _look(problem: Problem, theta: Array) -> tuple[Float[Array, ""], Float[Array, "parameters"]]:
    return jax.value_and_grad(problem.value)(theta)


def _kind_words(certificate: Certificate) -> str:
    if certificate.kind == "not stationary":
        return f"Not stationary (‖θ‖ = {certificate.norm:.3g}, needed ‖∇L‖ ≤ {certificate.tolerance:.0g})"
    words = {"minimum": "A minimum", "saddle": "A saddle", "degenerate": "Degenerate (flat to within δ)"}
    return words.get(certificate.kind, certificate.kind.capitalize())
