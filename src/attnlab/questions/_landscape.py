"""What lies around the points of one problem: the work of ``attnlab landscape`` that needs JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnlab.landscape import (
    Certificate,
    Parameters,
    Problem,
    aligned,
    certify,
    exact_spectrum,
    filter_directions,
    path_directions,
    straight_path,
    surface,
)
from attnlab.papers.liu2021.point_runs import make_problem
from attnlab.papers.liu2021.point_settings import PointSettings
from attnlab.training import Adam, Logarithmic, Loss, train_model

_GRID = 31  # points of the surface in each direction
_PATH = 80  # recorded steps of a training path
_OF_POINT = (  # what `find_points` says of where a start ended, kept of each distinct point
    "kind",
    "error",
    "loss",
    "value",
    "norm",
    "gradient",
    "smallest",
    "largest",
    "zero_modes",
    "down",
)


def surroundings(s: PointSettings, root_seed: int, first: xr.Dataset) -> dict[str, xr.Dataset]:
    """What there is to see at the stationary points of one problem, of which ``first`` has the ends.

    ``"points"``, the distinct ones, minima first; around the lowest of them ``"surface"``,
    ``"spectrum"`` and ``"descent"``, how Adam trains from the first start that ended there; and
    ``"path"``, the straight line between the two lowest minima, if there are two. Nothing if no
    point is stationary.
    """
    points = distinct_points(first)
    if points.sizes["point"] == 0:
        return {}
    made = make_problem(s, jax.random.fold_in(jax.random.key(root_seed), int(first.seed)))
    problem = made.problem
    thetas = first.theta.values[points.first_start.values]
    lowest = jnp.asarray(thetas[0])
    error, best = float(points.error[0]), float(np.nanmin(points.error.values))
    certificate = certify(problem, lowest, error=error, best=best)
    data = {
        "points": points,
        "surface": _surface(problem, lowest, certificate),
        "spectrum": _spectrum(problem, lowest, certificate),
        "descent": trained_path(problem, made.starts[int(points.first_start[0])]),
    }
    if int((points.kind == "minimum").sum()) > 1:
        data["path"] = _between(problem, thetas[0], thetas[1])
    return data


def distinct_points(starts: xr.Dataset) -> xr.Dataset:
    """One entry per group of equal stationary points, minima first, then by L; of ``find_points``
    of one problem.

    ``share`` is the share of these starts that ended there, ``first_start`` the first of them.

    >>> ends = {"kind": ["saddle", "minimum", "minimum", "not stationary"], "group": [0, 1, 1, -1],
    ...         "value": [3.0, 1.0, 1.0, 2.0]}
    >>> found = distinct_points(xr.Dataset({name: ("start", values) for name, values in ends.items()}))
    >>> found.kind.values.tolist(), found.share.values.tolist(), found.first_start.values.tolist()
    (['minimum', 'saddle'], [0.5, 0.25], [1, 0])
    """
    group, kind, value = starts.group.values, starts.kind.values, starts.value.values

    def rank(first: int) -> tuple[bool, float]:
        return str(kind[first]) != "minimum", float(value[first])

    found = [int(number) for number in dict.fromkeys(group) if number >= 0]
    firsts = sorted((int(np.argmax(group == number)) for number in found), key=rank)
    counts = np.array([(group == group[first]).sum() for first in firsts], int)
    flat = [str(name) for name in starts.data_vars if str(name).startswith("flat_")]
    columns = {name: starts[name].values[firsts] for name in (*_OF_POINT, *flat) if name in starts}
    columns |= {"starts": counts, "share": counts / len(group), "first_start": firsts}
    return xr.Dataset(
        {name: ("point", np.asarray(values)) for name, values in columns.items()},
        {"point": np.arange(1, len(firsts) + 1)},
    )


def _surface(problem: Problem, point: jax.Array, certificate: Certificate) -> xr.Dataset:
    """The loss in a plane of two random filter-normalised directions."""
    directions = filter_directions(problem, point)
    seen = surface(problem, point, directions=directions, points=_GRID)
    return seen.data.assign_attrs(kind=certificate.kind)


def _spectrum(problem: Problem, point: jax.Array, certificate: Certificate) -> xr.Dataset:
    """All eigenvalues, from the largest down, with what was certified of the point."""
    values = exact_spectrum(problem, point).values[::-1].copy()
    return xr.Dataset(
        {"eigenvalue": ("number", values)},
        {"number": np.arange(1, len(values) + 1)},
        {
            "kind": certificate.kind,
            "zero_modes": certificate.zero_modes,
            "delta": certificate.delta,
            "l2": float(problem.l2),
            "certificate": str(certificate),
        },
    )


def trained_path(
    problem: Problem, start: Any, *, steps: int = 3000, step_size: float = 0.01
) -> xr.Dataset:
    """Training by Adam from a start, seen in the plane in which its path varies most about its end.

    - ``loss`` (a, b): L on the plane; ``path_a``, ``path_b`` (step): the path's nearest points on
      it; ``distance`` (step): how far from the plane it runs, ``away``: how far from its end;
      ``path_loss`` (step): L on the path;
    - attributes ``share``, of the path's squared extent that the plane holds, and ``gradient``,
      ‖∇L‖_∞ at its end.
    """

    def loss(model: Any, _: Any) -> Any:
        return problem.value(problem.flatten(model))

    run = train_model(
        lambda key: problem.model(start),
        loss,
        jnp.zeros(1),
        steps=steps,
        optimizer=Adam(step_size),
        record=(Loss(), Parameters()),
        when=Logarithmic(_PATH),
        trained=lambda model: problem.trained,
        progress=False,
    )
    path = run.data.theta.isel(seed=0).values
    end, directions = jnp.asarray(path[-1]), path_directions(path)
    extent = np.abs((path - path[-1][None]) @ np.asarray(directions).T).max(axis=0)
    first, second = (float(1.15 * reach) or 1.0 for reach in np.maximum(extent, 0.1 * extent.max()))
    seen = surface(problem, end, directions=directions, span=(first, second), points=_GRID)
    along = seen.project(path).rename(point="step", a="path_a", b="path_b")
    found = seen.data.assign({str(name): along[name] for name in along.data_vars})
    found = found.assign(path_loss=("step", run.data.loss.isel(seed=0).values))
    found = found.assign_coords(step=run.data.step.values)
    away = float((along.away**2).sum())
    held = 1 - float((along.distance**2).sum()) / away if away else 1.0
    gradient = float(jnp.max(jnp.abs(problem.gradient(end))))
    return found.assign_attrs(share=held, gradient=gradient, steps=steps, step_size=step_size)


def _between(problem: Problem, a: np.ndarray, b: np.ndarray) -> xr.Dataset:
    """The loss on the straight line from a to the copy of b nearest to it."""
    start = jnp.asarray(a)
    end = jnp.asarray(aligned(problem, jnp.asarray(b), start))
    path = straight_path(problem, start, end)
    return path.data.assign_attrs(
        barrier=path.barrier,
        place=path.place,
        height=path.height,
        distance=float(np.linalg.norm(np.asarray(end) - a)),
        unaligned=float(np.linalg.norm(b - a)),
    )
