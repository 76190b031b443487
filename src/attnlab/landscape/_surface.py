"""Slices of the loss along one or two directions, and projections of paths onto them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from attnlab._errors import AttnlabError
from attnlab.landscape._operator import Vector, at, input_axis, pieces
from attnlab.landscape._problem import Problem
from attnlab.landscape._spectrum import DENSE_LIMIT, exact_spectrum, extremes

_AXES = ("a", "b")
_BATCH_NUMBERS = 2**22  # numbers in the parameters of one batch
Directions = Float[Array, "directions parameters"]


@dataclass(frozen=True, eq=False)
class Surface:
    """``L(centre + a·d₁ + b·d₂)`` on a grid.

    - ``data``: ``loss`` over the coordinates ``a`` (and ``b``), which are multiples of the
      directions;
    - ``centre``: (parameters,), ``directions``: (1 or 2, parameters).
    """

    data: xr.Dataset
    centre: np.ndarray
    directions: np.ndarray

    @property
    def loss(self) -> xr.DataArray:
        """The values with their coordinates."""
        return self.data.loss

    def project(self, path: Float[np.ndarray, "steps parameters"]) -> xr.Dataset:
        """The projection of a path onto the plane, and its distance from the plane.

        ``a`` (and ``b``) by ``point``; ``distance`` from the plane; ``away``: distance from the
        centre. A picture of a path is faithful only where ``distance`` is small against ``away``.

        >>> from attnlab.landscape import quadratic
        >>> flat = surface(quadratic(jnp.eye(3)), directions=jnp.eye(3)[:2], points=3)
        >>> seen = flat.project(np.array([[1.0, 2.0, 2.0]]))
        >>> [round(float(seen[name][0]), 12) for name in ("a", "b", "distance", "away")]
        [1.0, 2.0, 2.0, 3.0]
        """
        moved = np.asarray(path, np.float64) - self.centre[None, :].astype(np.float64)
        directions = self.directions.astype(np.float64)
        found = np.linalg.lstsq(directions.T, moved.T, rcond=None)[0].T
        distance = np.linalg.norm(moved - found @ directions, axis=1)
        named = {axis: ("point", found[:, i]) for i, axis in enumerate(_AXES[: len(directions)])}
        return xr.Dataset(
            {
                **named,
                "distance": ("point", distance),
                "away": ("point", np.linalg.norm(moved, axis=1)),
            }
        )

    def __str__(self) -> str:
        values = self.loss
        centre = float(values.sel(dict.fromkeys(values.dims, 0.0)))
        shape = " × ".join(str(n) for n in values.shape)
        return (
            f"{shape} points to ±{float(values[values.dims[0]].max()):g}: the loss is "
            f"{centre:.6g} at the centre, "
            f"{float(values.min()):.6g} at the lowest and {float(values.max()):.6g} at the "
            "highest point of the grid."
        )


def surface(
    problem: Problem,
    theta: Vector | None = None,
    *,
    directions: Directions | Vector,
    span: float | tuple[float, float] = 1.0,
    points: int = 51,
) -> Surface:
    """The loss on a grid from −span to span along one or two ``directions`` (rows).

    ``points`` per direction must be odd, so that the centre is on the grid. The model is never
    changed. Points are computed in batches, to bound memory.

    >>> from attnlab.landscape import quadratic
    >>> found = surface(quadratic(jnp.diag(jnp.array([2.0, 4.0]))), directions=jnp.eye(2), points=3)
    >>> found.loss.values.tolist()
    [[3.0, 1.0, 3.0], [2.0, 0.0, 2.0], [3.0, 1.0, 3.0]]
    """
    point = at(problem, theta)
    along = jnp.atleast_2d(jnp.asarray(directions, point.dtype))
    count = along.shape[0]
    if count not in (1, 2) or along.shape[1] != problem.parameters:
        raise AttnlabError(
            f"directions of shape {along.shape}: expected 1 or 2 rows of {problem.parameters} "
            "numbers"
        )
    if points < 3 or points % 2 == 0:
        raise AttnlabError(
            f"points={points}: expected an odd number ≥ 3, so that the centre is on the grid"
        )
    spans = (span,) * count if isinstance(span, int | float) else tuple(span)
    if len(spans) != count or not all(s > 0 for s in spans):
        raise AttnlabError(
            f"span={span}: expected a positive number, or one for each of {count} directions"
        )
    half = points // 2
    axes = [s * np.arange(-half, half + 1) / half for s in spans]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, count)
    values = values_at(problem, point, along, jnp.asarray(grid, point.dtype))
    names = _AXES[:count]
    data = xr.Dataset(
        {"loss": (names, np.asarray(values).reshape((points,) * count))},
        coords=dict(zip(names, axes, strict=True)),
    )
    return Surface(data, np.asarray(point), np.asarray(along))


def values_at(
    problem: Problem,
    theta: Vector,
    directions: Directions,
    places: Float[Array, "points directions"],
) -> Float[Array, "points"]:
    """``L(θ + places·directions)`` for every row of places, in batches."""
    batch = int(np.clip(_BATCH_NUMBERS // problem.parameters, 1, 32))
    return _values(problem, theta, directions, places, batch)


@eqx.filter_jit
def _values(
    problem: Problem, theta: Vector, directions: Directions, places: Array, batch: int
) -> Array:
    return jax.lax.map(lambda c: problem.value(theta + c @ directions), places, batch_size=batch)


def filter_directions(
    problem: Problem,
    theta: Vector | None = None,
    *,
    count: int = 2,
    seed: int = 0,
    inputs: Mapping[str, int] | None = None,
) -> Directions:
    """Random directions, (count, parameters), with filters as long as those of θ (Li et al., 2018).

    A filter is the input of one neuron: in a weight matrix the weights of one output, in embeddings
    and keys one word, otherwise the whole array. ``inputs`` gives, for arrays by name, the axis of
    inputs if it is not the usual one (ours: the first; Equinox's ``weight``: the last).

    >>> from attnlab.landscape import squared_error
    >>> from attnlab.models import BaselineConfig
    >>> model = BaselineConfig(numbers=3, hidden=2).init(jax.random.key(0))
    >>> problem = Problem.of(model, squared_error, {"x": jnp.zeros((1, 3)), "y": jnp.zeros(1)})
    >>> drawn = problem.model(filter_directions(problem)[0])
    >>> bool(jnp.allclose(jnp.linalg.norm(drawn.w1, axis=0), jnp.linalg.norm(model.w1, axis=0)))
    True
    """
    point = at(problem, theta)
    drawn = jax.random.normal(jax.random.key(seed), (count, problem.parameters), point.dtype)
    rows = []
    for row in drawn:
        parts = []
        for piece in pieces(problem):
            axes = _filter_axes(problem, piece.name, len(piece.shape), inputs or {})
            random, weight = (v[piece.span].reshape(piece.shape) for v in (row, point))
            length, wanted = (
                jnp.sqrt(jnp.sum(v**2, axis=axes, keepdims=True)) for v in (random, weight)
            )
            parts.append((random * jnp.broadcast_to(wanted / length, random.shape)).reshape(-1))
        rows.append(jnp.concatenate(parts))
    return jnp.stack(rows)


def _filter_axes(
    problem: Problem, name: str, ndim: int, inputs: Mapping[str, int]
) -> tuple[int, ...]:
    """The axes of one filter."""
    if ndim < 2:
        return tuple(range(ndim))
    if ndim > 2:
        return tuple(range(1, ndim))
    if name in inputs:
        return (inputs[name],)
    return (1,) if name in ("embeddings", "keys") else (input_axis(problem, name),)


def eigen_directions(
    problem: Problem, theta: Vector | None = None, *, count: int = 2, seed: int = 0
) -> Directions:
    """Unit eigenvectors of the ``count`` largest eigenvalues; an error if they have not converged."""
    if problem.parameters <= DENSE_LIMIT:
        return jnp.asarray(
            exact_spectrum(problem, theta).vectors[::-1][:count], problem.start.dtype
        )
    found = extremes(problem, theta, k=count, ends="largest", seed=seed)
    for value in found.largest:
        _ = value.settled  # raises an error
    return jnp.asarray(found.largest_vectors)


def path_directions(path: Float[np.ndarray, "steps parameters"], *, count: int = 2) -> Directions:
    """Unit directions in which a path varies most about its last point: (count, parameters).

    >>> path_directions(np.array([[3.0, 0.1], [1.0, 0.0], [0.0, 0.0]]), count=1).round(2).tolist()
    [[1.0, 0.03]]
    """
    path = np.asarray(path)
    if len(path) <= count:
        raise AttnlabError(
            f"a path of {len(path)} points: expected at least {count + 1} for {count} directions"
        )
    rows = np.linalg.svd(path - path[-1][None, :], full_matrices=False)[2][:count]
    return jnp.asarray(rows * np.sign(rows[np.arange(count), np.abs(rows).argmax(1)])[:, None])
