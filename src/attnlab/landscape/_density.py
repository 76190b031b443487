"""Spectral density of the curvature, by stochastic Lanczos quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from matfree import stochtrace
from scipy import stats as distributions
from scipy.linalg import eigh_tridiagonal

from attnlab._errors import AttnlabError
from attnlab.landscape._operator import Vector, at, curvature, places_of, size_of
from attnlab.landscape._problem import Problem
from attnlab.stats import CONFIDENCE


@dataclass(frozen=True)
class Density:
    """The density of eigenvalues, smoothed by a normal kernel of standard deviation ``smoothing``.

    ``data``: ``density``, ``low`` and ``high`` over ``eigenvalue`` (a pointwise Student band over
    probes), and the ``node`` and ``weight`` of every probe's quadrature, from which they were
    computed. ``seed``, ``probes``, ``depth`` and other settings are attributes.
    """

    data: xr.Dataset

    def share(self, low: float, high: float) -> tuple[float, float]:
        """Share of the eigenvalues in [low, high), without smoothing, and its standard error."""
        inside = (self.data.node >= low) & (self.data.node < high)
        each = self.data.weight.where(inside, 0.0).sum("place").values
        return float(each.mean()), float(each.std(ddof=1) / math.sqrt(len(each)))

    def __str__(self) -> str:
        about, node = self.data.attrs, self.data.node.where(self.data.weight > 0)
        return (
            f"Density of {about['size']} eigenvalues between {float(node.min()):.4g} and "
            f"{float(node.max()):.4g} (Ritz "
            f"values), smoothed by {about['smoothing']:.2g}; {about['probes']} probes of "
            f"{about['depth']} Lanczos "
            f"steps, seed {about['seed']}, {about['confidence']:.0%} band."
        )


def density(
    problem: Problem,
    theta: Vector | None = None,
    *,
    group: str | None = None,
    probes: int = 8,
    depth: int = 64,
    points: int = 400,
    smoothing: float | None = None,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Density:
    """``ρ(x) = 1/p Σ_i N(x; λ_i, smoothing²)`` over the p eigenvalues of ``∇²L(θ)``.

    For a random unit z, Lanczos gives nodes and weights with ``zᵀ f(A) z ≈ Σ_j w_j f(θ_j)``, exact
    for polynomials of degree below ``2·depth``; its mean over probes estimates ``tr f(A)/p``, with
    f the kernel at x.

    ``smoothing`` is by default 1/100 of the width of the spectrum. Ghorbani, Krishnan and Xiao
    (2019), An investigation into neural net optimization via Hessian eigenvalue density.

    >>> from attnlab.landscape._spectrum import quadratic
    >>> found = density(quadratic(jnp.diag(jnp.repeat(jnp.array([1.0, 5.0]), 50))), probes=16, depth=8)
    >>> share, error = found.share(4.0, 6.0)
    >>> abs(share - 0.5) < 4 * error < 0.2
    True
    """
    point, places = at(problem, theta), places_of(problem, group)
    size = size_of(problem, places)
    steps = min(depth, size)
    if probes < 2 or depth < 1 or points < 2 or not (smoothing is None or smoothing > 0):
        raise AttnlabError(
            f"probes={probes}, depth={depth}, points={points}, smoothing={smoothing}: expected at "
            "least 2 probes, at least 2 points, depth ≥ 1 and smoothing > 0"
        )
    nodes, weights = _quadratures(
        *_recurrences(problem, point, places, jax.random.key(seed), probes, steps)
    )
    seen = nodes[weights > 0]
    low, high = float(seen.min()), float(seen.max())
    sigma = _kernel_width(low, high) if smoothing is None else smoothing
    x = np.linspace(low - 4 * sigma, high + 4 * sigma, points)
    about = {
        "size": size,
        "group": group or "",
        "probes": probes,
        "depth": steps,
        "seed": seed,
        "smoothing": sigma,
        "confidence": confidence,
    }
    return Density(_labelled(x, nodes, weights, sigma, confidence).assign_attrs(about))


def _kernel_width(low: float, high: float) -> float:
    """1 % of the width of the spectrum; if all eigenvalues are equal, relative to their size."""
    return 0.01 * max(high - low, 0.01 * max(abs(low), abs(high))) or 1.0


def _labelled(
    x: np.ndarray, nodes: np.ndarray, weights: np.ndarray, sigma: float, confidence: float
) -> xr.Dataset:
    """The kernel's mean over the nodes of each probe, and the band over probes."""
    each = np.stack(
        [
            distributions.norm.pdf(x[:, None], n[None, :], sigma) @ w
            for n, w in zip(nodes, weights, strict=True)
        ]
    )
    half = (
        distributions.t.ppf(0.5 + confidence / 2, len(each) - 1)
        * each.std(0, ddof=1)
        / math.sqrt(len(each))
    )
    mean = each.mean(0)
    return xr.Dataset(
        {
            "density": ("eigenvalue", mean),
            "low": ("eigenvalue", np.maximum(mean - half, 0.0)),
            "high": ("eigenvalue", mean + half),
            "node": (("probe", "place"), nodes),
            "weight": (("probe", "place"), weights),
        },
        coords={"eigenvalue": x},
    )


def _quadratures(alphas: Array, betas: Array) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of every probe, (probes, depth).

    The nodes are the eigenvalues of T, the weights the squared first entries of its eigenvectors.
    """
    pairs = [
        eigh_tridiagonal(a, b[:-1])
        for a, b in zip(np.asarray(alphas), np.asarray(betas), strict=True)
    ]
    return np.stack([values for values, _ in pairs]), np.stack(
        [vectors[0] ** 2 for _, vectors in pairs]
    )


@eqx.filter_jit
def _recurrences(
    problem: Problem, theta: Vector, places: Any, key: Array, probes: int, depth: int
) -> tuple[Float[Array, "probes depth"], Float[Array, "probes depth"]]:
    """T of every probe, one probe after the other."""
    product = curvature(problem, theta, places)
    like = jnp.zeros(size_of(problem, places), theta.dtype)
    with jax.numpy_dtype_promotion("standard"):  # matfree's sampler
        starts = stochtrace.sampler_sphere(like, num=probes)(key)
    return jax.lax.map(lambda z: recurrence(product, z, depth), starts)


def quadratures(
    product: Callable[[Array], Array],
    like: Float[Array, "size"],
    key: Array,
    probes: int,
    depth: int,
) -> tuple[Float[Array, "probes depth"], Float[Array, "probes depth"]]:
    """Nodes and weights of every probe, for use inside a compiled function.

    ``zᵀ f(A) z ≈ Σ_j w_j f(θ_j)`` for the unit vector z of a probe.
    """

    def one(start: Array) -> tuple[Array, Array]:
        alphas, betas = recurrence(product, start, depth)
        values, vectors = jnp.linalg.eigh(
            jnp.diag(alphas) + jnp.diag(betas[:-1], 1) + jnp.diag(betas[:-1], -1)
        )
        return values, vectors[0] ** 2

    starts = jax.random.normal(key, (probes, like.shape[0]), like.dtype)
    return jax.lax.map(one, starts)


def recurrence(
    product: Callable[[Array], Array], start: Float[Array, "size"], depth: int
) -> tuple[Float[Array, "depth"], Float[Array, "depth"]]:
    """Lanczos' three-term recurrence: the diagonal of T, and its subdiagonal with one entry more.

    Vectors are neither reorthogonalised nor kept. Eigenvalues may then appear as several copies that
    share one weight, which does not change a quadrature, and it is four times as fast as
    ``lanczos``. Once the vectors span an invariant space, β and all that follows is 0.
    """
    tiny = 10 * start.shape[0] ** 0.5 * jnp.finfo(start.dtype).eps

    def step(
        state: tuple[Array, Array, Array], _: None
    ) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
        before, v, beta = state
        w = product(v)
        length = jnp.linalg.norm(w)
        w = w - beta * before
        alpha = jnp.vdot(v, w)
        w = w - alpha * v
        after = jnp.linalg.norm(w)
        after = jnp.where(after <= tiny * length, jnp.zeros_like(after), after)
        following = jnp.where(
            after > 0, w / jnp.where(after > 0, after, jnp.ones_like(after)), jnp.zeros_like(w)
        )
        return (v, following, after), (alpha, after)

    first = (jnp.zeros_like(start), start / jnp.linalg.norm(start), jnp.zeros((), start.dtype))
    _, (alphas, betas) = jax.lax.scan(step, first, None, length=depth)
    return alphas, betas
