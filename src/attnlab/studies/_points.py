"""The work function behind every study of minima: one problem, many starts, each end certified
(docs/theory.md#b3, docs/theory.md#b4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.sweeps import RunContext

if TYPE_CHECKING:
    import jax

    from attnlab.landscape import Problem
    from attnlab.models import SelfAttentionConfig

WORK = "attnlab.studies._points:find_points"
ON_VECTORS = ("baseline", "known-attention")
ON_WORDS = (
    "words-baseline",
    "known-weights",
    "known-weights-plain",
    "self-attention",
    "multi-layer",
)
MODELS = (*ON_VECTORS, *ON_WORDS)
FLATNESS = ("largest", "trace", "trace_per_parameter", "keskar", "sam", "adaptive_sam", "petzka")


@dataclass(frozen=True)
class PointSettings:
    """One problem and how its stationary points are looked for; the defaults are those of
    docs/theory.md#b3.

    - ``seed`` draws teacher, data and starts; ``arm`` is a label and nothing else.
    - ``model``: on 8 numbers of which a gate lets 2 through, ``"baseline"`` and
      ``"known-attention"`` (4 hidden units); on 3 words of dimension 2, ``"words-baseline"`` (5
      hidden units, about as many parameters as attention), ``"known-weights"`` with a trained w_V,
      ``"known-weights-plain"`` without, ``"self-attention"``, and ``"multi-layer"`` of two layers.
      The teacher is a gate, self-attention, or a stack of two layers.
    - ``samples`` n with ``noise_std``, the first of ``drawn`` (n by default): problems of equally many
      drawn share one compiled program; ``shuffled`` labels have nothing to do with their inputs.
      ``classes`` 0 is regression; 2 label by the sign of the teacher's output, for cross-entropy.
    - ``l2``: λ of ½λ‖θ‖²; ``starts`` at the ``scales`` in turn. ``saddles`` looks for stationary
      points of any kind instead of minima.
    - ``flat``: measures of flatness, ``"all"`` at every certified minimum, ``"lowest"`` at the one
      of least L, ``""`` nowhere. ``keep``: the points themselves.
    """

    arm: str = ""
    seed: int = 0
    model: str = "self-attention"
    samples: int = 128
    drawn: int | None = None
    noise_std: float = 0.2
    shuffled: bool = False
    classes: int = 0
    l2: float = 1e-3
    starts: int = 9
    scales: tuple[float, ...] = (0.1, 1.0, 3.0)
    saddles: bool = False
    flat: str = ""
    keep: bool = False
    test_points: int = 2000

    def __post_init__(self):
        if self.model not in MODELS:
            raise AttnlabError(f"model={self.model!r}: expected one of {', '.join(MODELS)}")
        if (
            min(self.samples, self.starts) < 1
            or self.test_points < 2
            or not self.scales
            or min(self.scales) <= 0
        ):
            raise AttnlabError(
                f"samples={self.samples}, starts={self.starts}, test_points={self.test_points}, "
                f"scales={self.scales}: "
                "expected positive numbers"
            )
        if self.drawn is not None and self.drawn < self.samples:
            raise AttnlabError(f"drawn={self.drawn}: expected at least samples={self.samples}")
        if self.flat not in ("", "lowest", "all"):
            raise AttnlabError(f"flat={self.flat!r}: expected 'lowest', 'all' or ''")
        if self.l2 < 0 or self.classes not in (0, 2):
            raise AttnlabError(f"l2={self.l2} must be ≥ 0, classes={self.classes} must be 0 or 2")


def find_points(s: PointSettings, context: RunContext) -> xr.Dataset:
    """Stationary points of one problem from every start, certified; labelled data, dimension
    ``start``.

    ``kind`` as ``certify`` calls it, ``distance`` from there to the stationary point by Newton's
    method, ``error`` (``E(ŷ − g)²/Var g`` on noiseless points, or the share of wrong labels),
    ``loss`` without and ``value`` with the penalty, ``gradient``, ``norm``, ``smallest`` and
    ``largest`` eigenvalue, ``zero_modes``, ``down`` (negative eigenvalues), ``group`` (equal points
    share a number, −1 if not stationary), ``scale`` of the start; with ``flat`` the measures of
    flatness.
    """
    import jax
    import jax.numpy as jnp

    from attnlab.landscape import certify, find_saddles, group_points, minimise

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
    return data.assign(theta=(("start", "parameter"), found.theta.values)) if s.keep else data


@dataclass(frozen=True)
class Made:
    """A problem, where its search starts (starts, parameters), and the prediction error of a point."""

    problem: Problem
    starts: jax.Array
    error: Callable[[Any], float]


def make_problem(s: PointSettings, key: jax.Array) -> Made:
    """The problem that a key draws: teacher, samples, test points, starts."""
    import jax
    import jax.numpy as jnp

    from attnlab.landscape import Problem
    from attnlab.models import trained_parts

    teacher_key, data_key, test_key, start_key = (jax.random.fold_in(key, k) for k in range(4))
    teacher, config = _teacher(s, teacher_key), _config(s)
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
    models = [
        _scaled(config, s.scales[k % len(s.scales)]).init(jax.random.fold_in(start_key, k))
        for k in range(s.starts)
    ]
    problem = Problem.of(models[0], loss, train, l2=s.l2, trained=trained_parts)
    starts = jnp.stack([problem.flatten(model) for model in models])

    def error(theta: Any) -> float:
        outputs = _outputs(problem.model(theta), test)
        if s.classes:
            return float(jnp.mean((outputs > 0) != (test["y"] > 0)))
        return float(jnp.mean((outputs - test["y"]) ** 2) / jnp.var(test["y"]))

    return Made(problem, starts, error)


def _attention() -> SelfAttentionConfig:
    """docs/theory.md#b3: t=2, p=3, d_q=d_v=2, d=3, logits × 3/d_q."""
    from attnlab.models import SelfAttentionConfig

    return SelfAttentionConfig(
        embedding_dim=2, words=3, key_dim=2, value_dim=2, hidden=3, scale="dim", factor=3.0
    )


def _teacher(s: PointSettings, key: jax.Array) -> Any:
    from attnlab.models import make_label_teacher, make_teacher

    kind: str
    sizes: dict[str, Any]
    if s.model in ON_VECTORS:
        kind, sizes = "gate", {"features": 8, "relevant": 2, "hidden": 4}
    elif s.model == "multi-layer":
        kind, sizes = "multi-layer", {"attention": _attention(), "depth": 2}
    else:
        kind, sizes = "self-attention", {"attention": _attention()}
    if s.classes:
        return make_label_teacher(kind, key=key, **sizes)
    return make_teacher(kind, key=key, noise_std=s.noise_std, **sizes)


def _config(s: PointSettings) -> Any:
    from attnlab.models import (
        BaselineConfig,
        Gate,
        KnownAttentionConfig,
        KnownWeightsConfig,
        MultiLayerConfig,
    )

    base = _attention()
    return {
        "baseline": BaselineConfig(8, 4),
        "known-attention": KnownAttentionConfig(BaselineConfig(8, 4), Gate((0, 1), 8)),
        "words-baseline": BaselineConfig(base.embedding_dim * base.words, 5),
        "known-weights": KnownWeightsConfig(base),
        "known-weights-plain": KnownWeightsConfig(base, values=False),
        "self-attention": base,
        "multi-layer": MultiLayerConfig(base, 2),
    }[s.model]


def _scaled(config: Any, scale: float) -> Any:
    """The configuration with larger or smaller initial weights."""
    if hasattr(config, "base"):
        return replace(config, base=replace(config.base, init_scale=scale))
    return replace(config, init_scale=scale)


def _drawn(s: PointSettings, teacher: Any, n: int, key: jax.Array, noisy: bool) -> dict[str, Any]:
    import equinox as eqx
    import jax

    x, y = teacher.sample(n, key=key, noisy=noisy)
    data = {"x": x, "y": 2.0 * y.astype(x.dtype) - 1.0 if s.classes else y}
    if s.model.startswith("known-weights"):
        data["a"] = eqx.filter_jit(lambda model, x: jax.vmap(model.attentions)(x))(teacher.model, x)
    return data


def _outputs(model: Any, data: Any) -> Any:
    import jax

    return (
        jax.vmap(model.weighted)(data["x"], data["a"])
        if "a" in data
        else jax.vmap(model)(data["x"])
    )


def _differences(model: Any, data: Any) -> Any:
    return data["weight"] * (_outputs(model, data) - data["y"])


def _logistic(model: Any, data: Any) -> Any:
    """Cross-entropy of labels ±1."""
    import jax
    import jax.numpy as jnp

    return jnp.mean(data["weight"] ** 2 * jax.nn.softplus(-data["y"] * _outputs(model, data)))


def _loss(s: PointSettings) -> Any:
    from attnlab.landscape import MeanSquare

    return _logistic if s.classes else MeanSquare(_differences)


def _flat(problem: Problem, thetas: Any, wanted: list[bool]) -> dict[str, list[float]]:
    """The measures at certified minima, nan elsewhere."""
    from attnlab.landscape import flatness

    rows = [
        flatness(problem, theta).measures if ok else {}
        for theta, ok in zip(thetas, wanted, strict=True)
    ]
    return {f"flat_{name}": [row.get(name, np.nan) for row in rows] for name in FLATNESS}
