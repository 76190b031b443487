"""Certificates: what is proved about a point of a loss, and what is not (docs/theory.md#b3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from attnlab._errors import AttnlabError
from attnlab._html import card, shares_bar
from attnlab.data import Corpus
from attnlab.landscape._kantorovich import ROUNDING, Place, newton_path
from attnlab.landscape._lanczos import lanczos, residual, ritz
from attnlab.landscape._operator import at
from attnlab.landscape._problem import Loss, Problem, usual_loss
from attnlab.landscape._reduced_words import reduced_problem
from attnlab.landscape._spectrum import DENSE_LIMIT
from attnlab.landscape._stationary import TOLERANCE
from attnlab.landscape._symmetry import zero_modes
from attnlab.landscape._words import word_problem
from attnlab.models import WordAttention

Kind = Literal[
    "minimum",
    "saddle",
    "degenerate",
    "no negative curvature found",
    "not stationary",
    "no minimum can be certified",
]
NEAR = 1e-6  # largest distance of the stationary point from θ, relative to max(‖θ‖, 1)
CHANCE = 1e-3  # probability of failure of the statement on what Lanczos may have missed
_SETTLED = {"float32": 1e-5, "float64": 1e-8}


@dataclass(frozen=True)
class Bounded:
    """A number between ``low`` and ``high``, one of which is infinite if only the other is proved.

    ``converged`` is false for a Ritz value with a large residual: only its bound is then valid, and
    ``settled`` raises an error.
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
        """The value, for comparisons; an error if it has not converged."""
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
    """What is proved about a point θ.

    - ``kind``: ``"minimum"`` and ``"degenerate"`` (curvature within ±δ) need all eigenvalues;
      ``"saddle"`` needs a proved negative one; ``"no negative curvature found"`` is the strongest
      statement from Lanczos; for ``"not stationary"`` and ``"no minimum can be certified"``,
      ``why`` states what failed;
    - ``distance``: the length of all Newton steps from θ to the stationary point, and ``allowed``,
      its limit 1e-6 max(‖θ‖, 1). ``None`` with Lanczos;
    - ``h``, ``lipschitz``: Kantorovich's number at the end of the steps, and the estimated Lipschitz
      constant in it;
    - ``gradient``: ``‖∇L‖_∞``; ``tolerance``: its limit where Newton's method proves nothing, which
      is along flat directions and with Lanczos;
    - ``smallest``, ``largest``: λ_min and λ_max of ``∇²L`` with their bounds, without zero modes of
      symmetry;
    - ``inertia``: the number of eigenvalues below −δ, within ±δ and above δ, without zero modes;
      ``None`` with Lanczos;
    - ``zero_modes``: the number of directions along which symmetry keeps the loss constant;
      ``delta``: δ;
    - ``depth``: Lanczos steps, 0 if all eigenvalues were computed; ``floor``: with probability
      1 − ``chance`` no eigenvalue lies below it (Kuczyński & Woźniakowski 1992), otherwise ``None``;
    - ``error``, ``gap``: prediction error, and its excess over the best known, if given.
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
    why: str = ""
    distance: float | None = None
    allowed: float | None = None
    h: float | None = None
    lipschitz: float | None = None
    depth: int = 0
    floor: float | None = None
    chance: float | None = None
    error: float | None = None
    gap: float | None = None

    @property
    def stationary(self) -> bool:
        """Whether a stationary point is proved near θ; with Lanczos, whether the gradient is small."""
        return self.kind not in ("not stationary", "no minimum can be certified")

    def __str__(self) -> str:
        words = _KIND_WORDS.get(self.kind, self.kind.capitalize())
        words += f" ({self.why})" if self.why else ""
        words += f": {_newton_words(self)}, ‖∇L‖ = {self.gradient:.1g}"
        words += f", {self.smallest}, {self.largest}"
        if self.inertia is not None:
            low, none, high = self.inertia
            words += f", inertia {high} up, {none} flat, {low} down (δ = {self.delta:.1g})"
        if self.zero_modes:
            words += f", {self.zero_modes} zero mode{'s' if self.zero_modes > 1 else ''} of symmetry left out"
        if self.floor is not None and self.chance is not None:
            words += f"; {self.depth} Lanczos steps: nothing below {self.floor:.3g}"
            words += f" with probability {1 - self.chance:g}"
        if self.error is not None:
            words += f"; prediction error {self.error:.3g}"
        if self.gap is not None:
            words += f", {self.gap:.3g} above the best known"
        return f"{words}."

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {
            "loss": f"{self.value:.6g}",
            "curvature": f"{self.smallest}, {self.largest}",
        }
        picture = ""
        if self.inertia is not None:
            low, flat, high = self.inertia
            rows["directions"] = f"{high} up, {flat} flat, {low} down"
            picture = shares_bar({"up": high, "flat": flat, "down": low}, label=rows["directions"])
        rows["proved"] = _newton_words(self)
        if self.error is not None:
            rows["prediction error"] = f"{self.error:.3g}"
        return card(self.kind.capitalize(), rows, picture, self.why)


_KIND_WORDS = {
    "minimum": "A minimum",
    "saddle": "A saddle",
    "degenerate": "Degenerate (flat to within δ)",
}


def _newton_words(certificate: Certificate) -> str:
    if certificate.distance is None:
        return f"Newton distance not computed, so that stationary means ‖∇L‖ ≤ {certificate.tolerance:.0g}"
    if math.isnan(certificate.distance):
        return "Newton distance unknown"
    return (
        f"Newton distance {certificate.distance:.2g} (allowed {certificate.allowed:.2g}; h = "
        f"{certificate.h:.2g}, "
        f"Lip(∇²L) ≈ {certificate.lipschitz:.2g} estimated)"
    )


def certify(
    what: Problem | Any,
    then: Float[Array, "parameters"] | Loss | PyTree = None,
    data: PyTree = None,
    *,
    l2: float = 0.0,
    tolerance: float = TOLERANCE,
    error: float | None = None,
    best: float | None = None,
    tangents: Float[Array | np.ndarray, "tangents parameters"] | None = None,
    dense: int = DENSE_LIMIT,
    depth: int = 128,
    seed: int = 0,
) -> Certificate:
    """Certify a point of a loss.

    Call ``certify(problem, theta)``; for a model's own parameters ``certify(model, data, l2=…)``; or
    with your own loss ``certify(model, loss, data, l2=…)``.

    - without a loss, ``data = {"x": …, "y": …}`` is judged by squared error or, for class numbers,
      by cross-entropy;
    - word attention takes a ``Corpus``. Its eigenvalues are those in reduced coordinates
      (``reduced_problem``; every other direction has the curvature l2). Without a penalty it is
      never stationary: its weights escape to infinity;
    - up to ``dense`` parameters all eigenvalues are computed, and a stationary point is proved by
      Newton's method and Kantorovich's theorem (``newton_path``): after at most five steps ``h <
      ½``, with total length at most 1e-6 max(‖θ‖, 1). This holds for minima, saddles and degenerate
      points. If there are flat directions, the theorem covers the curved ones only; along the flat
      ones the gradient must vanish up to rounding and be at most ``tolerance``;
    - above, ``depth`` Lanczos steps from a random vector of ``seed`` bound λ_min from above and
      λ_max from below, and no point is called a minimum. Stationary then only means ``‖∇L‖_∞ ≤
      tolerance``;
    - δ = 1000 √parameters · rounding · λ_max, plus the residual curvature of the zero modes;
    - ``tangents``: directions of symmetry (tangents, parameters) of a model unknown to attnlab;
    - ``error``: prediction error at the point; ``best``: the smallest known one.

    >>> from attnlab.landscape import quadratic
    >>> print(certify(quadratic(jnp.diag(jnp.array([2.0, 1.0])))))  # doctest: +NORMALIZE_WHITESPACE
    A minimum: Newton distance 0 (allowed 1e-06; h = 0, Lip(∇²L) ≈ 0 estimated), ‖∇L‖ = 0, λ_min = 1 ± 6e-13,
    λ_max = 2 ± 6e-13, inertia 2 up, 0 flat, 0 down (δ = 6e-13).
    >>> certify(quadratic(jnp.diag(jnp.array([2.0, -1.0])))).kind
    'saddle'
    """
    problem, theta = _problem_and_point(what, then, data, l2)
    value, gradient = (np.asarray(each) for each in _look(problem, theta))
    steepest = float(np.max(np.abs(gradient)))
    norm = float(jnp.linalg.norm(theta))
    before = 0.0
    if isinstance(what, WordAttention) and isinstance(then, Corpus):
        reduced = reduced_problem(what, then, l2=l2)
        kept = problem.flatten(reduced.model(reduced.start).expand())
        # Directions outside the reduced coordinates have only the penalty ½λ‖·‖²: one Newton step
        # takes them to 0. Its length counts towards the distance.
        before = float(jnp.linalg.norm(theta - kept)) if l2 > 0 else 0.0
        problem, theta = reduced, reduced.start
    small = bool(np.isfinite(value)) and steepest <= tolerance
    given = None if tangents is None else np.zeros((0, problem.parameters))
    if small and tangents is not None:
        given = zero_modes(problem, theta, given=tangents)
    if problem.parameters <= dense:
        path = newton_path(problem, theta, given)
        seen = _all(path, before, NEAR * max(norm, 1.0), tolerance, free=bool(problem.l2 == 0))
    else:
        seen = _outer(problem, theta, given, small, depth, seed)
    if isinstance(what, WordAttention) and l2 == 0:
        seen = replace(
            seen, kind="not stationary", why="weights escape: cross-entropy without a penalty"
        )
    gap = None if error is None or best is None else error - best
    return Certificate(
        value=float(value),
        gradient=steepest,
        tolerance=tolerance,
        norm=norm,
        parameters=problem.parameters,
        chance=None if seen.floor is None else CHANCE,
        error=error,
        gap=gap,
        **vars(seen),
    )


def _problem_and_point(
    what: Any, then: Any, data: Any, l2: float
) -> tuple[Problem, Float[Array, "parameters"]]:
    """The problem and the point from the arguments of ``certify``."""
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
            "expected certify(problem, theta), certify(model, data, l2=…) or certify(model, loss, "
            "data, l2=…)"
        )
    return problem, problem.start


def missed(depth: int, size: int, chance: float) -> float:
    """The share ε of the spectrum's width by which Lanczos misses an end, up to probability ``chance``.

    For k steps in n dimensions from a start uniform on the sphere, ``P[θ_min − λ_min > ε (λ_max −
    λ_min)] ≤ 1.648 √n e^{−√ε (2k − 1)}`` (Kuczyński & Woźniakowski 1992, for λ_max of a positive
    matrix; Krylov spaces are invariant to shifts and signs of the matrix).

    >>> round(missed(128, 100_000, 1e-3), 4)
    0.0027
    """
    return (math.log(1.648 * math.sqrt(size) / chance) / (2 * depth - 1)) ** 2


@dataclass(frozen=True)
class _Seen:
    kind: Kind
    smallest: Bounded
    largest: Bounded
    delta: float
    zero_modes: int = 0
    inertia: tuple[int, int, int] | None = None
    why: str = ""
    distance: float | None = None
    allowed: float | None = None
    h: float | None = None
    lipschitz: float | None = None
    depth: int = 0
    floor: float | None = None


_POINTS = {"minimum": "a minimum", "saddle": "a saddle", "degenerate": "a degenerate point"}


def _all(
    path: list[Place], before: float, allowed: float, tolerance: float, *, free: bool
) -> _Seen:
    """From all eigenvalues: at the proved stationary point, otherwise at the given point."""
    end = path[-1]
    steps = [place.radius for place in path if not place.trouble]
    distance = before + sum(steps) if steps else math.nan
    kind, why = _judged(path, distance, allowed, tolerance, free=free)
    at = end if kind in _POINTS else path[0]
    ends = at.eigenvalues[[0, -1]] if len(at.eigenvalues) else np.zeros(2)
    low, high = (
        Bounded(
            name,
            float(value),
            float(value - at.delta),
            float(value + at.delta),
            converged=not at.trouble,
        )
        for name, value in zip(("λ_min", "λ_max"), ends, strict=True)
    )
    inertia = None if at.trouble else at.inertia
    return _Seen(
        kind,
        low,
        high,
        at.delta,
        len(at.modes),
        inertia,
        why,
        distance,
        allowed,
        end.h,
        end.lipschitz,
    )


def _judged(
    path: list[Place], distance: float, allowed: float, tolerance: float, *, free: bool
) -> tuple[Kind, str]:
    """The kind of the point, and what failed, in words."""
    first, end = path[0], path[-1]
    if first.trouble:
        return "no minimum can be certified", first.trouble
    if not end.proved:
        if distance <= allowed:
            return (
                "no minimum can be certified",
                end.trouble or f"h ≥ ½ after {len(path) - 1} Newton steps",
            )
        if free and _escapes(path):
            return (
                "not stationary",
                f"weights escape: Newton steps take ‖θ‖ from {first.norm:.3g} to {end.norm:.3g}",
            )
        return "not stationary", "Newton steps do not end nearby"
    down, flat, up = end.inertia
    if end.slope > end.noise or (flat and end.slope > tolerance):
        return "not stationary", f"‖∇L‖ = {end.slope:.1g} along directions without curvature"
    kind: Kind = "saddle" if down else "degenerate" if flat or not up else "minimum"
    if distance > allowed:
        return (
            "not stationary",
            f"Newton's method reaches {_POINTS[kind]} at distance {distance:.2g}",
        )
    return kind, ""


def _escapes(path: list[Place]) -> bool:
    """Whether every step goes down and outwards without getting shorter, as on ``exp(−x)``."""
    norms, values = ([getattr(place, name) for place in path] for name in ("norm", "value"))
    lengths = [place.radius for place in path]
    outwards = all(np.diff(norms) > 0) and all(np.diff(values) < 0)
    return len(path) > 1 and outwards and lengths[-1] >= 0.5 * lengths[0]


def _outer(
    problem: Problem, theta: Array, given: np.ndarray | None, small: bool, depth: int, seed: int
) -> _Seen:
    """One-sided bounds from Ritz values, on the complement of the zero modes."""
    modes = np.zeros((0, problem.parameters)) if given is None else given
    if small and given is None:
        modes = zero_modes(problem, theta)
    size = problem.parameters - len(modes)
    depth = min(depth, size)
    start = jax.random.normal(jax.random.key(seed), theta.shape, theta.dtype)
    values, residuals = (
        np.asarray(each, np.float64)
        for each in _ritz(problem, theta, jnp.asarray(modes, theta.dtype), start, depth)
    )
    scale = float(np.abs(values).max())
    delta = ROUNDING * float(np.finfo(theta.dtype).eps) * scale
    good = residuals <= _SETTLED[str(theta.dtype)] * scale
    low, high = (float(each) for each in values)
    smallest = Bounded("λ_min", low, -math.inf, low + float(residuals[0]), bool(good[0]))
    largest = Bounded("λ_max", high, high - float(residuals[1]), math.inf, bool(good[1]))
    # Lanczos may miss both ends, each with half of the chance: the true width is at most
    # (high − low)/(1 − 2ε).
    share = missed(depth, size, CHANCE / 2)
    floor = low - share * (high - low) / (1 - 2 * share) if share < 0.5 else -math.inf
    kind: Kind = "saddle" if smallest.high < -delta else "no negative curvature found"
    why = ""
    if not small:
        kind = "not stationary"
    elif not np.isfinite(values).all():
        kind, why = "no minimum can be certified", "the curvature is not finite"
    return _Seen(kind, smallest, largest, delta, len(modes), why=why, depth=depth, floor=floor)


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
    # Residuals of the whole matrix, not of the projected one: they include the error of zero modes.
    return values, jax.lax.map(lambda pair: residual(product, *pair), (values, vectors))


@eqx.filter_jit
def _look(problem: Problem, theta: Array) -> tuple[Float[Array, ""], Float[Array, "parameters"]]:
    return jax.value_and_grad(problem.value)(theta)
