"""Existence of a stationary point near a given point: Newton's method with Kantorovich's theorem.

On a slice ``θ + span(C)`` where the eigenvalues of ``∇²L`` are away from zero, let ``s`` be the
Newton step, ``κ`` the smallest ``|λ|`` and ``Lip`` a Lipschitz constant of ``∇²L`` within ``2‖s‖``
of θ. If ``h = ‖s‖ Lip/κ < ½``, L has exactly one stationary point on the slice within ``2‖s‖``. Its
distance is at most ``2‖s‖/(1 + √(1 − 2h))``, and no eigenvalue changes sign on the way (each changes
by at most ``κ (1 − √(1 − 2h))``).

Directions of symmetry are left out of the slice. Nothing is lost: at the stationary point of the
slice, the gradient vanishes on the slice by the theorem, and along the orbit by symmetry.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnlab.landscape._problem import Problem
from attnlab.landscape._symmetry import zero_modes

STEPS = 5
ROUNDING = 1e3  # error of an eigenvalue in units of the rounding of one operation
_POWER_STEPS = 6
_SAFETY = 2.0  # the Lipschitz constant is sampled, hence underestimated

Modes = Float[np.ndarray, "modes parameters"]
_NO_MODES = np.zeros((0, 0))
_UNKNOWN = np.full(1, np.nan)


class Place(NamedTuple):
    """One point of a Newton path.

    - ``value``, ``gradient``: L and ∇L; ``norm``: ‖θ‖;
    - ``eigenvalues``: of ``∇²L`` on the complement of the ``modes`` of symmetry, ascending;
      ``delta``: their rounding error;
    - ``step``: the Newton step along the eigenvectors with ``|λ| > δ``; ``lipschitz``: the constant
      of ``∇²L`` on their span, estimated within twice the step; ``h``: Kantorovich's number;
    - ``slope``: ``‖∇L‖`` along all other directions, flat or of symmetry; ``noise``: its size from
      rounding alone, ``ROUNDING · ε √parameters · |λ|_max · max(‖θ‖, 1)``;
    - ``trouble``: why nothing can be computed, in words; the rest is then nan.
    """

    value: float
    gradient: Float[np.ndarray, "parameters"]
    norm: float
    modes: Modes = _NO_MODES
    eigenvalues: Float[np.ndarray, "rest"] = _UNKNOWN
    delta: float = math.nan
    step: Float[np.ndarray, "parameters"] = _UNKNOWN
    lipschitz: float = math.nan
    h: float = math.nan
    slope: float = math.nan
    noise: float = math.nan
    trouble: str = ""

    @property
    def proved(self) -> bool:
        """Whether a stationary point on the slice is proved."""
        return self.h < 0.5

    @property
    def radius(self) -> float:
        """The largest possible distance of that point; if nothing is proved, the step length."""
        length = float(np.linalg.norm(self.step))
        return 2 * length / (1 + math.sqrt(1 - 2 * self.h)) if self.proved else length

    @property
    def inertia(self) -> tuple[int, int, int]:
        """Eigenvalues below −δ, within ±δ and above δ."""
        flat = int((np.abs(self.eigenvalues) <= self.delta).sum())
        down = int((self.eigenvalues < -self.delta).sum())
        return down, flat, len(self.eigenvalues) - down - flat


def newton_path(
    problem: Problem, theta: Float[Array, "parameters"], given: Modes | None = None
) -> list[Place]:
    """Places from θ on, one Newton step apart, up to the first where a stationary point is proved.

    Zero modes are computed at each place unless ``given``. The path ends early if a value is not
    finite.
    """
    places: list[Place] = []
    for _ in range(STEPS + 1):
        places.append(place(problem, theta, given))
        if places[-1].proved or places[-1].trouble:
            break
        theta = theta + jnp.asarray(places[-1].step, theta.dtype)
    return places


def place(
    problem: Problem,
    theta: Float[Array, "parameters"],
    given: Modes | None = None,
    radius: float | None = None,
) -> Place:
    """The place at θ; the Lipschitz constant is sampled within ``radius``, by default 2‖step‖."""
    value, gradient, hessian = (
        np.asarray(each, np.float64) for each in _derivatives(problem, theta)
    )
    norm = float(jnp.linalg.norm(theta))
    trouble = _not_finite(value, gradient, hessian)
    if trouble:
        return Place(float(value), gradient, norm, trouble=trouble)
    modes = zero_modes(problem, theta, hessian=hessian) if given is None else given
    # An orthonormal basis of the complement of the modes: the slice without symmetry.
    rest = np.linalg.qr(modes.T, mode="complete")[0][:, len(modes) :] if len(modes) else None
    eigenvalues, vectors = np.linalg.eigh(hessian if rest is None else rest.T @ hessian @ rest)
    vectors = vectors if rest is None else rest @ vectors
    largest = float(np.abs(eigenvalues).max(initial=0.0))
    rounding = ROUNDING * float(np.finfo(theta.dtype).eps) * math.sqrt(len(hessian)) * largest
    if 0 < rounding < np.finfo(theta.dtype).tiny:
        trouble = f"the curvature is denormal: {largest:.2g} is too small to compute with"
        return Place(float(value), gradient, norm, modes, eigenvalues, trouble=trouble)
    # Modes are flat only up to 1e-6 of the curvature: what is left of it shifts other eigenvalues.
    delta = rounding + (float(np.linalg.norm(modes @ hessian, 2)) if len(modes) else 0.0)
    curved = np.abs(eigenvalues) > delta
    onto, bent = vectors[:, curved], eigenvalues[curved]
    slopes = onto.T @ gradient
    with np.errstate(over="ignore", invalid="ignore"):
        step = -onto @ (slopes / bent)
    if not np.isfinite(step).all():
        return Place(
            float(value), gradient, norm, modes, eigenvalues, trouble="the Newton step is infinite"
        )
    slope = float(np.linalg.norm(gradient - onto @ slopes))
    noise = rounding * max(norm, 1.0)
    lipschitz = h = 0.0
    if len(bent):
        # κ is the smallest |λ| minus its error, so that h is not underestimated.
        softest = np.abs(bent).argmin()
        lipschitz = _lipschitz(problem, theta, onto, step, onto[:, softest], noise, radius)
        h = float(np.linalg.norm(step)) * lipschitz / (abs(float(bent[softest])) - delta)
    return Place(
        float(value), gradient, norm, modes, eigenvalues, delta, step, lipschitz, h, slope, noise
    )


def _not_finite(value: np.ndarray, gradient: np.ndarray, hessian: np.ndarray) -> str:
    """Which of loss, gradient and curvature is not finite, in words; empty if all are finite."""
    for name, each in (("loss", value), ("gradient", gradient), ("curvature", hessian)):
        if np.isnan(each).any():
            return f"the {name} is not a number (NaN)"
        if np.isinf(each).any():
            return f"the {name} is infinite"
    return ""


def _lipschitz(
    problem: Problem,
    theta: Array,
    onto: np.ndarray,
    step: np.ndarray,
    soft: np.ndarray,
    noise: float,
    radius: float | None,
) -> float:
    """An estimate of the Lipschitz constant of ``∇²L`` on span(``onto``), within ``radius`` of θ.

    The constant is the largest ``‖D³L[v, v]‖`` over unit vectors v and points of the ball. It is
    searched by power steps ``v ← D³L[v, v]`` at the centre and at six points of the sphere, and
    doubled, since a search underestimates it. D³L comes from automatic differentiation: finite
    differences over a step of 1e-12 would be rounding. Derivatives do not see kinks; for these, the
    gradient after the Newton step gives another estimate, from ``‖∇L(θ + s)‖ ≤ ½ Lip ‖s‖²``.
    """
    length = float(np.linalg.norm(step))
    radius = 2 * length if radius is None else radius
    other = np.random.default_rng(0).normal(size=len(step))
    other = onto @ (onto.T @ other)
    along = step / length if length > 0 else other
    directions = [along, soft, along, along, soft, soft, other, other]
    offsets = radius * np.array([0.0, 0.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    cast = [
        jnp.asarray(each, theta.dtype)
        for each in (onto @ onto.T, np.stack(directions), offsets, step)
    ]
    sizes, after = (np.asarray(each, np.float64) for each in _bends(problem, theta, *cast))
    largest = _SAFETY * float(sizes.max()) if np.isfinite(sizes).all() else math.inf
    beyond = float(np.linalg.norm(onto.T @ after)) - noise
    return max(largest, 2 * beyond / length**2) if beyond > 0 and length > 0 else largest


@eqx.filter_jit
def _derivatives(
    problem: Problem, theta: Array
) -> tuple[Float[Array, ""], Float[Array, "parameters"], Float[Array, "parameters parameters"]]:
    value, gradient = jax.value_and_grad(problem.value)(theta)
    return value, gradient, problem.hessian(theta)


@eqx.filter_jit
def _bends(
    problem: Problem,
    theta: Float[Array, "parameters"],
    onto: Float[Array, "parameters parameters"],
    directions: Float[Array, "tries parameters"],
    offsets: Float[Array, "tries"],
    step: Float[Array, "parameters"],
) -> tuple[Float[Array, "steps tries"], Float[Array, "parameters"]]:
    """``‖D³L[v, v]‖`` of each try at each power step, and the gradient after the Newton step."""

    def unit(v: Array) -> Array:
        return v / jnp.maximum(jnp.linalg.norm(v), jnp.finfo(v.dtype).tiny)

    def bend(point: Array, v: Array) -> Array:
        def slope(at: Array) -> Array:
            return jax.jvp(problem.gradient, (at,), (v,))[1]

        return onto @ jax.jvp(slope, (point,), (v,))[1]

    directions = jax.vmap(unit)(directions)
    points = theta[None] + offsets[:, None] * directions

    def power(v: Array, _: None) -> tuple[Array, Array]:
        bent = jax.vmap(bend)(points, v)
        return jax.vmap(unit)(bent), jnp.linalg.norm(bent, axis=1)

    return jax.lax.scan(power, directions, None, _POWER_STEPS)[1], problem.gradient(theta + step)
