"""Zero modes: directions in which symmetry makes a loss exactly flat, from its tangent vectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from attnlab._errors import AttnlabError
from attnlab.landscape._operator import at
from attnlab.landscape._problem import Problem
from attnlab.landscape._spaces import Space, hidden_spaces

_SHORT = 1e-7  # relative to ‖θ‖: shorter tangents do not count
_FLAT = 1e-6  # relative to ‖∇²L‖: tangents with more curvature do not count
_POWER_STEPS = 12


def tangents(
    problem: Problem, theta: Float[Array, "parameters"]
) -> Float[np.ndarray, "tangents parameters"]:
    """Tangents of the orbit of θ: ``(A W, −Aᵀ W′)`` for every hidden space with primal W and dual W′.

    With l2 the A are the antisymmetric matrices, size·(size − 1)/2 per space; without, all size²
    matrices. Tangents that would change untrained arrays are left out. Tangents may be linearly
    dependent: ``zero_modes`` counts the independent ones.

    >>> from attnlab.landscape import squared_error
    >>> from attnlab.models import SelfAttentionConfig
    >>> model = SelfAttentionConfig(embedding_dim=4, words=3, key_dim=2, value_dim=3).init(jax.random.key(0))
    >>> data = {"x": jnp.ones((1, 4, 3)), "y": jnp.zeros(1)}
    >>> for l2 in (0.1, 0.0):
    ...     problem = Problem.of(model, squared_error, data, l2=l2)
    ...     print(tangents(problem, problem.start).shape)
    (4, 88)
    (13, 88)
    """
    inside, outside = _orbit(problem, at(problem, theta), rotations=bool(problem.l2 > 0))
    return np.asarray(inside)[np.asarray(outside) == 0]


def zero_modes(
    problem: Problem,
    theta: Float[Array, "parameters"],
    *,
    given: Float[Array | np.ndarray, "tangents parameters"] | None = None,
    hessian: Float[np.ndarray, "parameters parameters"] | None = None,
) -> Float[np.ndarray, "modes parameters"]:
    """Orthonormal directions in which symmetry makes ``∇²L`` vanish at a stationary point θ.

    They span the tangents of the model's spaces, or the ``given`` ones. If weights are
    rank-deficient, there are fewer than the formula predicts. A direction counts if its tangent is
    longer than 1e-7 ‖θ‖ and if ``‖∇²L u‖`` is at most 1e-6 ``‖∇²L‖``. Given tangents that are not
    flat are an error: they would hide curvature. ``hessian``: ``∇²L(θ)``, if it is known already.
    """
    theta = at(problem, theta)
    own = tangents(problem, theta) if given is None else np.asarray(given, np.float64)
    if own.ndim != 2 or own.shape[1] != problem.parameters:
        raise AttnlabError(
            f"tangents of shape {own.shape}: expected (tangents, {problem.parameters})"
        )
    if not len(own):
        return own
    _, lengths, directions = np.linalg.svd(own, full_matrices=False)
    directions = directions[
        lengths > _SHORT * max(float(np.linalg.norm(np.asarray(theta))), 1e-300)
    ]
    if not len(directions):
        return directions
    if hessian is None:
        bent, largest = _curved(problem, theta, jnp.asarray(directions, theta.dtype))
    else:
        bent, largest = np.linalg.norm(directions @ hessian, axis=1), _largest(hessian)
    flat = np.asarray(bent) <= _FLAT * float(largest)
    if given is not None and not flat.all():
        raise AttnlabError(
            f"{int((~flat).sum())} of the given tangents are not symmetries here: ‖∇²L u‖ is up to "
            f"{float(np.max(np.asarray(bent))):.2g}; give directions along which the loss does "
            "not change"
        )
    return directions[flat]


@eqx.filter_jit
def _curved(
    problem: Problem, theta: Array, directions: Array
) -> tuple[Float[Array, "modes"], Float[Array, ""]]:
    """``‖∇²L u‖`` of each direction, and a lower estimate of ``‖∇²L‖`` by a few power steps."""
    _, product = jax.linearize(problem.gradient, theta)

    def power(_: int, v: Array) -> Array:
        v = product(v)
        return v / jnp.maximum(jnp.linalg.norm(v), 1e-300)

    bent = jnp.linalg.norm(jax.lax.map(product, directions), axis=1)
    v = jax.lax.fori_loop(
        0, _POWER_STEPS, power, jax.random.normal(jax.random.key(0), theta.shape, theta.dtype)
    )
    return bent, jnp.linalg.norm(product(v))


def _largest(hessian: Float[np.ndarray, "parameters parameters"]) -> float:
    """A lower estimate of ``‖∇²L‖``, by the same number of power steps."""
    v = np.random.default_rng(0).normal(size=len(hessian))
    for _ in range(_POWER_STEPS):
        v = hessian @ v
        v = v / max(float(np.linalg.norm(v)), 1e-300)
    return float(np.linalg.norm(hessian @ v))


@eqx.filter_jit
def _orbit(
    problem: Problem, theta: Array, *, rotations: bool
) -> tuple[Float[Array, "tangents parameters"], Float[Array, "tangents"]]:
    """All tangents, and how much each would change untrained arrays."""
    model = problem.model(theta)
    rows, outside = [jnp.zeros((0, problem.parameters), theta.dtype)], [jnp.zeros(0, theta.dtype)]
    for space in hidden_spaces(model):
        generators = _generators(space.size, rotations)
        if len(generators):
            moved = jax.vmap(partial(_tangent, space, model))(jnp.asarray(generators, theta.dtype))
            inside, rest = eqx.partition(moved, problem.trained)
            rows.append(jax.vmap(lambda tree: ravel_pytree(tree)[0])(inside))
            still = [
                jnp.sum(jnp.abs(leaf.reshape(len(generators), -1)), axis=1)
                for leaf in jax.tree.leaves(rest)
            ]
            outside.append(sum(still, jnp.zeros(len(generators), theta.dtype)))
    return jnp.concatenate(rows), jnp.concatenate(outside)


def _generators(size: int, rotations: bool) -> Float[np.ndarray, "generators size size"]:
    """A basis of the antisymmetric matrices, or of all."""
    units = np.eye(size * size).reshape(size, size, size, size)
    if not rotations:
        return units.reshape(-1, size, size)
    below = units[np.tril_indices(size, -1)]
    return below - below.transpose(0, 2, 1)


def _tangent(space: Space, model: Any, generator: Array) -> Any:
    """The derivative of the model along ``M = I + εA``; ``None`` for leaves that are not floats."""
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    unit = jnp.eye(space.size, dtype=generator.dtype)

    def moved(matrix: Array, inverse: Array) -> Any:
        return eqx.filter(
            space.act(eqx.combine(arrays, rest), matrix, inverse), eqx.is_inexact_array
        )

    return jax.jvp(moved, (unit, unit), (generator, -generator))[1]
