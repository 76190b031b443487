"""The work function behind every question about minima: one problem, many starts, each certified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnlab.landscape import (
    MeanSquare,
    Problem,
    certify,
    exact_spectrum,
    find_saddles,
    flatness,
    group_points,
    minimise,
)
from attnlab.models import (
    BaselineConfig,
    Gate,
    KnownAttentionConfig,
    KnownWeightsConfig,
    MultiLayerConfig,
    SelfAttentionConfig,
    make_label_teacher,
    make_teacher,
    trained_parts,
)
from attnlab.papers.liu2021.point_settings import FLATNESS, ON_VECTORS, PointSettings
from attnlab.sweeps import RunContext

_RELEVANT = 2  # of the 8 numbers that vectors have, how many the gate lets through: the first


def find_points(s: PointSettings, context: RunContext) -> xr.Dataset:
    """Stationary points of one problem from every start, certified; labelled data, dimension
    ``start``.

    ``kind`` as ``certify`` calls it, ``distance`` from there to the stationary point by Newton's
    method, ``error`` (``E(ŷ − g)²/Var g`` on noiseless points, or the share of wrong labels),
    ``loss`` without and ``value`` with the penalty, ``gradient``, ``norm``, ``smallest`` and
    ``largest`` eigenvalue, ``zero_modes``, ``down`` (negative eigenvalues), ``group`` (equal points
    share a number, −1 if not stationary), ``scale`` of the start. With ``flat`` the measures of
    flatness, and how many parameters are ``live``; of saddles all ``eigenvalues`` (start, mode).
    """
    key = jax.random.fold_in(jax.random.key(context.root_seed), s.seed)
    made = make_problem(s, key)
    search = find_saddles if s.saddles else minimise
    found = search(made.problem, made.starts)
    thetas = jnp.asarray(found.theta.values)
    certificates = [certify(made.problem, theta, error=made.error(theta)) for theta in thetas]
    group = np.full(s.starts, -1)
    still = np.flatnonzero([c.stationary for c in certificates])
    if still.size:
        group[still] = group_points(made.problem, thetas[still])
    columns: dict[str, Any] = {
        "kind": [c.kind for c in certificates],
        "distance": [np.nan if c.distance is None else c.distance for c in certificates],
        "error": [c.error for c in certificates],
        "smallest": [c.smallest.value for c in certificates],
        "largest": [c.largest.value for c in certificates],
        "zero_modes": [c.zero_modes for c in certificates],
        "down": [c.inertia[0] if c.inertia else 0 for c in certificates],
        "delta": [c.delta for c in certificates],
        "group": group,
        "scale": [s.scales[k % len(s.scales)] for k in range(s.starts)],
        "status": found.status.values,
    }
    columns |= {name: found[name].values for name in ("loss", "value", "gradient", "norm")}
    if s.flat:
        minima = np.array([c.kind == "minimum" for c in certificates])
        if s.flat == "lowest" and minima.any():
            minima = np.arange(s.starts) == np.where(minima, found.value.values, np.inf).argmin()
        columns |= _flat(made.problem, thetas, minima.tolist())
    data = xr.Dataset({name: ("start", np.asarray(values)) for name, values in columns.items()})
    data = data.assign_coords(start=np.arange(s.starts)).assign(parameters=made.problem.parameters)
    if s.flat:
        data = data.assign(live=count_live(made.problem, made.starts[0]))
    if s.saddles:
        spectra = [exact_spectrum(made.problem, theta).values for theta in thetas]
        data = data.assign(eigenvalues=(("start", "mode"), np.stack(spectra)))
    return data.assign(theta=(("start", "parameter"), found.theta.values)) if s.keep else data


@dataclass(frozen=True)
class Made:
    """A problem, where its search starts (starts, parameters), and the prediction error of a point."""

    problem: Problem
    starts: jax.Array
    error: Callable[[Any], float]


def make_problem(s: PointSettings, key: jax.Array) -> Made:
    """The problem that a key draws: teacher, samples, test points, starts."""
    teacher_key, data_key, test_key, start_key = (jax.random.fold_in(key, k) for k in range(4))
    teacher = _teacher(s, teacher_key)
    count = s.samples if s.drawn is None else s.drawn
    train, test = (
        _drawn(s, teacher, count, data_key, True),
        _drawn(s, teacher, s.test_points, test_key, False),
    )
    if s.shuffled:
        train["y"] = jax.random.permutation(jax.random.fold_in(data_key, 1), train["y"])
    # Of the samples drawn only the first n count: mean over all of weight² r² is mean over those of
    # r².
    train["weight"] = jnp.where(jnp.arange(count) < s.samples, (count / s.samples) ** 0.5, 0.0)
    loss = _loss(s)
    models = _starts(s.model, s.sharpness, tuple(s.scales), s.starts, _numbers(start_key))
    problem = Problem.of(models[0], loss, train, l2=s.l2, trained=trained_parts)
    starts = jnp.stack([problem.flatten(model) for model in models])

    def error(theta: Any) -> float:
        return float(_error(problem, theta, test, bool(s.classes)))

    return Made(problem, starts, error)


def count_live(problem: Problem, theta: Any) -> int:
    """How many parameters have an influence on the outputs: those behind a mask of zeros have none.

    Counted are the columns of the outputs' Jacobian at θ that are not zero for all inputs.
    """
    return int(_influence(problem, theta).sum())


@eqx.filter_jit
def _influence(problem: Problem, theta: Any) -> jax.Array:
    jacobian = jax.jacobian(lambda each: _outputs(problem.model(each), problem.data))(theta)
    return jnp.any(jacobian != 0, axis=0)


def _attention() -> SelfAttentionConfig:
    """docs/theory.md#b3: t=2, p=3, d_q=d_v=2, d=3, logits × 3/d_q."""
    return SelfAttentionConfig(
        embedding_dim=2, words=3, key_dim=2, value_dim=2, hidden=3, scale="dim", factor=3.0
    )


def _teacher(s: PointSettings, key: jax.Array) -> Any:
    """The teacher whose outputs are learned."""
    kind = "multi-layer" if s.model == "multi-layer" else "self-attention"
    if s.model in ON_VECTORS:
        kind = "gate"
    return _drawn_teacher(kind, s.classes, s.noise_std, s.inputs, s.sharpness, _numbers(key))


def _numbers(key: jax.Array) -> tuple[int, ...]:
    """A key as numbers, which can be looked up."""
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


# Problems of one seed share their teacher, whatever the model, its penalty and its number of samples:
# finding its variance takes as long as a short search.
@lru_cache(maxsize=512)
def _drawn_teacher(
    kind: str,
    classes: int,
    noise_std: float,
    inputs: str,
    sharpness: float,
    numbers: tuple[int, ...],
) -> Any:
    sizes: dict[str, Any] = {"attention": _attention()}
    if kind == "gate":
        sizes = {"features": 8, "relevant": _RELEVANT, "hidden": 4, "sharpness": sharpness}
    elif kind == "multi-layer":
        sizes["depth"] = 2
    key = jax.random.wrap_key_data(jnp.asarray(numbers, jnp.uint32))
    if classes:
        return make_label_teacher(kind, key=key, inputs=inputs, **sizes)
    return make_teacher(kind, key=key, noise_std=noise_std, inputs=inputs, **sizes)


@lru_cache(maxsize=512)
def _starts(
    model: str, sharpness: float, scales: tuple[float, ...], count: int, numbers: tuple[int, ...]
) -> tuple[Any, ...]:
    """The models that the searches of a seed start from."""
    config = _config(model, sharpness)
    key = jax.random.wrap_key_data(jnp.asarray(numbers, jnp.uint32))
    return tuple(
        _scaled(config, scales[k % len(scales)]).init(jax.random.fold_in(key, k))
        for k in range(count)
    )


def _config(model: str, sharpness: float) -> Any:
    base = _attention()
    wide = BaselineConfig(8, 4, sharpness=sharpness)
    return {
        "baseline": wide,
        "narrow-baseline": replace(wide, numbers=_RELEVANT),
        "known-attention": KnownAttentionConfig(wide, Gate(tuple(range(_RELEVANT)), 8)),
        "words-baseline": BaselineConfig(base.embedding_dim * base.words, 5),
        "known-weights": KnownWeightsConfig(base),
        "known-weights-plain": KnownWeightsConfig(base, values=False),
        "self-attention": base,
        "multi-layer": MultiLayerConfig(base, 2),
    }[model]


def _scaled(config: Any, scale: float) -> Any:
    """The configuration with larger or smaller initial weights."""
    if hasattr(config, "base"):
        return replace(config, base=replace(config.base, init_scale=scale))
    return replace(config, init_scale=scale)


def _drawn(s: PointSettings, teacher: Any, n: int, key: jax.Array, noisy: bool) -> dict[str, Any]:
    x, y = teacher.sample(n, key=key, noisy=noisy)
    if s.model == "narrow-baseline":
        x = x[:, :_RELEVANT]
    data = {"x": x, "y": 2.0 * y.astype(x.dtype) - 1.0 if s.classes else y}
    if s.model.startswith("known-weights"):
        data["a"] = _attentions(teacher.model, x)
    return data


# Compiled once: a function made at each call would be compiled at each call.
@eqx.filter_jit
def _attentions(model: Any, x: jax.Array) -> jax.Array:
    return jax.vmap(model.attentions)(x)


@eqx.filter_jit
def _error(problem: Problem, theta: Any, test: Any, classes: bool) -> jax.Array:
    """The share of wrong labels, or the mean square error over the outputs' variance."""
    outputs = _outputs(problem.model(theta), test)
    if classes:
        return jnp.mean((outputs > 0) != (test["y"] > 0))
    return jnp.mean((outputs - test["y"]) ** 2) / jnp.var(test["y"])


def _outputs(model: Any, data: Any) -> Any:
    return (
        jax.vmap(model.weighted)(data["x"], data["a"])
        if "a" in data
        else jax.vmap(model)(data["x"])
    )


def _differences(model: Any, data: Any) -> Any:
    return data["weight"] * (_outputs(model, data) - data["y"])


def _logistic(model: Any, data: Any) -> Any:
    """Cross-entropy of labels ±1."""
    return jnp.mean(data["weight"] ** 2 * jax.nn.softplus(-data["y"] * _outputs(model, data)))


def _loss(s: PointSettings) -> Any:
    return _logistic if s.classes else MeanSquare(_differences)


def _flat(problem: Problem, thetas: Any, wanted: list[bool]) -> dict[str, list[float]]:
    """The measures at certified minima, nan elsewhere."""
    rows = [
        flatness(problem, theta).measures if ok else {}
        for theta, ok in zip(thetas, wanted, strict=True)
    ]
    return {f"flat_{name}": [row.get(name, np.nan) for row in rows] for name in FLATNESS}
