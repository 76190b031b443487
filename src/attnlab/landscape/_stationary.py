"""Stationary points from many starts: minima by BFGS or Levenberg–Marquardt and Newton, saddles by
‖∇L‖².
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import xarray as xr
from jaxtyping import Array, Float, Int

from attnlab._errors import AttnlabError
from attnlab.landscape._krylov import minimise_krylov
from attnlab.landscape._newton import newton_minimum, newton_stationary
from attnlab.landscape._problem import DENSE_LIMIT, MeanSquare, Problem

Method = Literal["bfgs", "lm", "newton", "krylov"]
Starts = Float[Array | np.ndarray, "starts parameters"]
TOLERANCE = 1e-8
ESCAPED = 10.0  # weights escape if, without a penalty, ‖θ‖ grows by this factor (from at least 1)

_Out = TypeVar("_Out")
_First = Callable[[Problem, Array, int], tuple[Array, Array]]


def minimise(
    problem: Problem,
    starts: Starts,
    *,
    method: Method | None = None,
    tolerance: float = TOLERANCE,
    steps: int = 2000,
    newton_steps: int = 200,
) -> xr.Dataset:
    """Minimise ``L`` from every start (starts, parameters) until ``‖∇L‖_∞ ≤ tolerance``.

    - ``"bfgs"``: Optimistix' BFGS with at most ``steps`` steps; ``"lm"``: its Levenberg–Marquardt,
      for a ``MeanSquare`` loss; ``"newton"``: neither. Each is followed by at most ``newton_steps``
      steps of saddle-free Newton;
    - a start that fails is repeated with the next of bfgs, lm (if the loss allows) and newton, but
      not if ``l2 = 0``: weights then mostly escape, which ``status`` reports;
    - ``"krylov"``: L-BFGS, then Newton with conjugate gradients, by products ``∇²L v``. The default
      above 2000 parameters, where the others would need the whole matrix.

    The data set has along ``start``: ``theta``; ``value`` L; ``loss`` without the penalty;
    ``gradient`` ``‖∇L‖_∞``; ``norm`` ``‖θ‖``; ``steps`` and ``newton_steps``; ``method``, the last
    one used; ``status``: ``"stationary"``, ``"weights escape"`` (``l2 = 0`` and ‖θ‖ grew tenfold,
    from at least 1), ``"not converged"``. ``certify`` decides whether a stationary point is a
    minimum. Everything is computed in float64.

    Starts run one after the other in one compiled loop: start k alone is bit for bit equal to start
    k among others.

    >>> from attnlab.landscape import squared_error
    >>> from attnlab.models import BaselineConfig, make_teacher
    >>> x, y = make_teacher("dense", key=jax.random.key(0), features=2, hidden=1).sample(20, key=jax.random.key(1))
    >>> config = BaselineConfig(numbers=2, hidden=1)
    >>> problem = Problem.of(config.init(jax.random.key(2)), squared_error, {"x": x, "y": y}, l2=1e-3)
    >>> starts = [problem.flatten(config.init(jax.random.key(seed))) for seed in range(3)]
    >>> found = minimise(problem, jnp.stack(starts))
    >>> found.status.values.tolist(), bool((found.gradient <= 1e-8).all())
    (['stationary', 'stationary', 'stationary'], True)
    """
    if method is None:
        method = "bfgs" if problem.parameters <= DENSE_LIMIT else "krylov"
    if method not in get_args(Method):
        raise AttnlabError(f"method={method!r}: expected one of {', '.join(get_args(Method))}")
    if method == "lm" and not isinstance(problem.loss, MeanSquare):
        raise AttnlabError(
            "method='lm' needs a loss that is a mean of squares; give MeanSquare(residuals), or "
            "take 'bfgs'"
        )
    points = _checked(problem, starts)
    found = _run(problem, points, method, tolerance, steps, newton_steps)
    for following in _fallbacks(problem, method):
        again = found["gradient"].values > tolerance
        if not again.any():
            break
        # Finished starts begin at their end and stop at once: a smaller number of starts would
        # compile again.
        restarted = jnp.where(
            jnp.asarray(again)[:, None], points, jnp.asarray(found["theta"].values)
        )
        other = _run(problem, restarted, following, tolerance, steps, newton_steps)
        found = xr.where(xr.DataArray(again, dims="start"), other, found)
    return _labelled(problem, found, points, tolerance, method)


def find_saddles(
    problem: Problem, starts: Starts, *, tolerance: float = TOLERANCE, newton_steps: int = 1000
) -> xr.Dataset:
    """Stationary points of any kind from every start, by Levenberg–Marquardt on ``½‖∇L‖²``.

    Returns the data set of ``minimise``. A start that ends "not converged" is at a minimum of
    ``‖∇L‖`` that is not a stationary point of L; about half of them are.

    >>> from attnlab.landscape import quadratic
    >>> found = find_saddles(quadratic(jnp.diag(jnp.array([2.0, -1.0]))), jnp.ones((1, 2)))
    >>> found.status.values.tolist(), bool(abs(found.theta).max() < 1e-8)
    (['stationary'], True)
    """
    points = _checked(problem, starts)
    theta, taken = _saddles(problem, points, tolerance, newton_steps)
    found = _measured(problem, theta, jnp.zeros_like(taken), taken, "gradient norm")
    return _labelled(problem, found, points, tolerance, "gradient norm")


def _fallbacks(problem: Problem, method: Method) -> list[Method]:
    if problem.l2 == 0 or method == "krylov":
        return []
    order: list[Method] = ["bfgs", "lm", "newton"]
    return [m for m in order if m != method and (m != "lm" or isinstance(problem.loss, MeanSquare))]


def _checked(problem: Problem, starts: Starts) -> Float[Array, "starts parameters"]:
    points = jnp.asarray(starts)
    if points.ndim != 2 or not len(points) or points.shape[1] != problem.parameters:
        raise AttnlabError(
            f"starts of shape {points.shape}: expected (starts, {problem.parameters}), a point per "
            "row"
        )
    if points.dtype != jnp.float64 or problem.start.dtype != jnp.float64:
        raise AttnlabError(
            f"starts are {points.dtype}, the model {problem.start.dtype}; expected float64 in both, "
            "for gradients of 1e-8"
        )
    return points


def _run(
    problem: Problem, starts: Array, method: Method, tolerance: float, steps: int, newton_steps: int
) -> xr.Dataset:
    if method == "krylov":
        theta, taken, newton = map(
            jnp.asarray, minimise_krylov(problem, starts, tolerance, steps, newton_steps)
        )
    else:
        theta, taken, newton = _minima(problem, starts, method, tolerance, steps, newton_steps)
    return _measured(problem, theta, taken, newton, method)


@eqx.filter_jit
def _minima(
    problem: Problem, starts: Array, method: Method, tolerance: float, steps: int, newton_steps: int
) -> tuple[Float[Array, "starts parameters"], Int[Array, "starts"], Int[Array, "starts"]]:
    def one(theta: Array) -> tuple[Array, Array, Array]:
        first, taken = _FIRST[method](problem, theta, steps)
        # Discard the result of a first method that diverged or went up.
        better = problem.value(first) <= problem.value(theta)
        at = newton_minimum(
            problem, jnp.where(better, first, theta), tolerance=tolerance, steps=newton_steps
        )
        return at.theta, taken, at.steps

    return _each(one, starts)


@eqx.filter_jit
def _saddles(problem: Problem, starts: Array, tolerance: float, steps: int) -> tuple[Array, Array]:
    def one(theta: Array) -> tuple[Array, Array]:
        at = newton_stationary(problem, theta, tolerance=tolerance, steps=steps)
        return at.theta, at.steps

    return _each(one, starts)


def _each(one: Callable[[Array], _Out], starts: Array) -> _Out:
    """One start after the other. XLA would unroll a loop of one turn, and round differently."""
    if len(starts) > 1:
        return jax.lax.map(one, starts)
    return jax.tree.map(lambda leaf: leaf[:1], jax.lax.map(one, jnp.concatenate([starts, starts])))


def _bfgs(problem: Problem, theta: Array, steps: int) -> tuple[Array, Array]:
    solver = optx.BFGS(rtol=1e-6, atol=1e-6)
    ended = optx.minimise(
        lambda y, _: problem.value(y), solver, theta, max_steps=steps, throw=False
    )
    return ended.value, ended.stats["num_steps"].astype(jnp.int32)


def _lm(problem: Problem, theta: Array, steps: int) -> tuple[Array, Array]:
    """``mean r² + ½λ‖θ‖²`` as a sum of squares, of ``r/√n`` and ``√(λ/2) θ``."""
    loss = problem.loss
    assert isinstance(loss, MeanSquare)

    def squares(y: Array, _: None) -> tuple[Array, Array]:
        r = loss.residuals(problem.model(y), problem.data)
        return r / r.size**0.5, (0.5 * problem.l2) ** 0.5 * y

    solver = optx.LevenbergMarquardt(rtol=1e-6, atol=1e-6)
    ended = optx.least_squares(squares, solver, theta, max_steps=steps, throw=False)
    return ended.value, ended.stats["num_steps"].astype(jnp.int32)


def _nothing(problem: Problem, theta: Array, steps: int) -> tuple[Array, Array]:
    return theta, jnp.zeros((), jnp.int32)


_FIRST: dict[str, _First] = {"bfgs": _bfgs, "lm": _lm, "newton": _nothing}


@eqx.filter_jit
def _look(problem: Problem, theta: Array) -> tuple[Array, Array, Array]:
    def one(point: Array) -> tuple[Array, Array, Array]:
        return problem.value(point), problem.plain(point), jnp.max(jnp.abs(problem.gradient(point)))

    return _each(one, theta)


def _measured(
    problem: Problem, theta: Array, steps: Array, newton: Array, method: str
) -> xr.Dataset:
    value, loss, gradient = _look(problem, theta)
    per = {
        "value": value,
        "loss": loss,
        "gradient": gradient,
        "norm": jnp.linalg.norm(theta, axis=1),
    }
    columns = {name: ("start", np.asarray(each)) for name, each in per.items()}
    columns |= {
        "steps": ("start", np.asarray(steps)),
        "newton_steps": ("start", np.asarray(newton)),
    }
    columns["method"] = ("start", np.full(len(theta), method, object))
    return xr.Dataset({"theta": (("start", "parameter"), np.asarray(theta)), **columns})


def _labelled(
    problem: Problem, found: xr.Dataset, points: Array, tolerance: float, method: str
) -> xr.Dataset:
    """The data set with status, names of parameters, and settings."""
    still = found["gradient"].values <= tolerance
    away = found["norm"].values > ESCAPED * np.maximum(
        np.linalg.norm(np.asarray(points), axis=1), 1.0
    )
    status = np.where(
        still,
        "stationary",
        np.where(away & (float(problem.l2) == 0), "weights escape", "not converged"),
    )
    found = found.assign(status=("start", status)).assign_coords(
        start=np.arange(len(points)), name=("parameter", problem.names)
    )
    return found.assign(method=found["method"].astype(str)).assign_attrs(
        l2=float(problem.l2), tolerance=tolerance, method=method
    )
