"""Fitting many small models: sample sizes × step sizes × weight decays in one compiled program.

A learning curve needs thousands of short fits that differ in numbers alone. Here the number of samples is a number too
(samples beyond it are never drawn), so that a whole grid of fits compiles once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, Float, Int, Key, PyTree

from attnlab._errors import AttnlabError

Loss = Callable[[Any, PyTree], Array]
Measure = Callable[[Any, PyTree], Mapping[str, Array]]
_LATE = 0.8  # of the steps: settling compares the loss there with the loss at the end


@dataclass(frozen=True)
class Recipe:
    """Adam with decoupled weight decay; the step size falls along a cosine to ``end_share`` of where it began.

    ``batch_size`` samples a step are drawn with replacement from the samples of the fit; ``None`` takes all of them.
    """

    steps: int = 1500
    batch_size: int | None = 64
    end_share: float = 0.01

    def __post_init__(self):
        if self.steps < 1 or (self.batch_size is not None and self.batch_size < 1):
            raise AttnlabError(f"steps={self.steps} and batch_size={self.batch_size} must be ≥ 1")
        if not 0 <= self.end_share <= 1:
            raise AttnlabError(f"end_share={self.end_share}: expected a share between 0 and 1")

    def rule(self, step_size: Any, weight_decay: Any) -> optax.GradientTransformation:
        """The optimiser."""
        schedule = optax.cosine_decay_schedule(1.0, self.steps, alpha=self.end_share)
        return optax.adamw(lambda count: step_size * schedule(count), weight_decay=weight_decay)


def fit_grid(
    init: Callable[[Array], Any],
    loss: Loss,
    measure: Measure,
    data: PyTree,
    checks: PyTree,
    *,
    sizes: Sequence[int],
    key: Key[Array, ""],
    step_sizes: Sequence[float] = (0.02,),
    weight_decays: Sequence[float] = (0.0,),
    recipe: Recipe = Recipe(),  # noqa: B008  (frozen)
    trained: Callable[[Any], PyTree] | None = None,
    together: int = 1,
    dims: Mapping[str, Sequence[str]] | None = None,
) -> xr.Dataset:
    """Fit one model per sample size, step size and weight decay; all start from one draw and see nested samples.

    - ``init(key) → module``, ``loss(model, batch) → scalar`` (the mean over a batch), ``measure(model, checks) → {name:
      number}``, traced by JAX. Define them once: functions made anew are compiled anew.
    - ``dims``: the dimensions of what ``measure`` gives as an array instead of a number, such as ``{"map": ("row",
      "column")}``.
    - ``data``: a PyTree of arrays (samples, …); a fit of size n draws from its first n samples.
    - ``checks``: what ``measure`` needs: validation and test data.
    - ``trained(model)``: filter of what moves; by default every floating array.
    - ``together``: fits computed at once; results are equal bit for bit at equal ``together`` only.

    Returns every measured name, ``train_loss`` (on the fit's own samples) and ``settling``, its relative fall over the
    last fifth of the steps, with dimensions (size, step_size, weight_decay).

    >>> class Line(eqx.Module):
    ...     slope: Array
    >>> def loss(line, batch):
    ...     return jnp.mean((line.slope * batch["x"] - batch["y"]) ** 2)
    >>> x = jnp.linspace(-1.0, 1.0, 200)
    >>> found = fit_grid(
    ...     lambda key: Line(jnp.zeros(())), loss, lambda line, checks: {"error": (line.slope - checks) ** 2},
    ...     {"x": x, "y": 3 * x}, jnp.asarray(3.0), sizes=[50, 200], key=jax.random.key(0),
    ... )
    >>> found.error.dims, bool((found.error < 1e-6).all())
    (('size', 'step_size', 'weight_decay'), True)
    """
    available = _available(data)
    counts = [int(n) for n in sizes]
    if not counts or min(counts) < 1 or max(counts) > available or len(set(counts)) != len(counts):
        raise AttnlabError(f"sizes={counts}: expected different numbers from 1 to {available}, the samples given")
    if not step_sizes or min(step_sizes) <= 0 or not weight_decays or min(weight_decays) < 0:
        raise AttnlabError(
            f"step_sizes={list(step_sizes)} must be positive and weight_decays={list(weight_decays)} must be ≥ 0"
        )
    if together < 1:
        raise AttnlabError(f"together={together}: expected at least 1")
    grid = np.array(list(product(counts, step_sizes, weight_decays)), np.float64)
    rows = _fit_all(
        init, loss, measure, recipe, trained, together, data, checks, key, jnp.asarray(grid[:, 0], jnp.int64),
        jnp.asarray(grid[:, 1]), jnp.asarray(grid[:, 2]),
    )  # fmt: skip
    shape = (len(counts), len(step_sizes), len(weight_decays))
    coords = {"size": counts, "step_size": list(step_sizes), "weight_decay": list(weight_decays)}
    return xr.Dataset({name: _labelled(name, values, shape, dims or {}) for name, values in rows.items()}, coords)


def _labelled(
    name: str, values: Array, shape: tuple[int, ...], dims: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, ...], np.ndarray]:
    rest, own = values.shape[1:], tuple(dims.get(name, ()))
    if len(rest) != len(own):
        raise AttnlabError(
            f"measure gives {name!r} the shape {rest}, for which dims names {own}: expected a number, or as many names "
            "of dimensions as the array has, such as dims={'map': ('row', 'column')}"
        )
    return ("size", "step_size", "weight_decay", *own), np.asarray(values).reshape(shape + rest)


def choose(fits: xr.Dataset, by: str = "valid_loss") -> xr.Dataset:
    """For each size the fit with the least ``by``, and which ``step_size`` and ``weight_decay`` it had.

    >>> fits = xr.Dataset(
    ...     {"valid_loss": (("size", "step_size", "weight_decay"), [[[2.0, 1.0]]]), "error": (("size", "step_size",
    ...     "weight_decay"), [[[5.0, 6.0]]])}, {"size": [10], "step_size": [0.02], "weight_decay": [0.0, 0.1]},
    ... )
    >>> chosen = choose(fits)
    >>> chosen.error.values.tolist(), chosen.weight_decay.values.tolist()
    ([6.0], [0.1])
    """
    if by not in fits:
        raise AttnlabError(f"no {by!r} among {sorted(map(str, fits.data_vars))}: measure it, or choose by another name")
    flat = fits.stack(tuning=("step_size", "weight_decay"))
    best = flat[by].fillna(np.inf).argmin("tuning")
    chosen = flat.isel(tuning=best)
    tuned = {name: ("size", np.asarray(chosen[name].values)) for name in ("step_size", "weight_decay")}
    return chosen.drop_vars(["tuning", "step_size", "weight_decay"]).assign(tuned)


def _available(data: PyTree) -> int:
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(data)]
    counts = {shape[0] if shape else 0 for shape in shapes}
    if len(counts) != 1 or 0 in counts:
        raise AttnlabError(f"data holds arrays of the shapes {shapes}; expected the same number ≥ 1 of samples in all")
    return counts.pop()


@functools.partial(jax.jit, static_argnames=("init", "loss", "measure", "recipe", "trained", "together"))
def _fit_all(
    init: Any, loss: Any, measure: Any, recipe: Recipe, trained: Any, together: int, data: PyTree, checks: PyTree,
    key: Key[Array, ""], sizes: Int[Array, "fits"], step_sizes: Float[Array, "fits"], decays: Float[Array, "fits"],
) -> dict[str, Array]:  # fmt: skip
    def one(setting: tuple[Array, Array, Array]) -> dict[str, Array]:
        return _fit_one(init, loss, measure, recipe, trained, data, checks, key, *setting)

    settings = (sizes, step_sizes, decays)
    return jax.lax.map(one, settings, batch_size=None if together == 1 else together)


def _fit_one(
    init: Any, loss: Any, measure: Any, recipe: Recipe, trained: Any, data: PyTree, checks: PyTree,
    key: Key[Array, ""], size: Int[Array, ""], step_size: Float[Array, ""], decay: Float[Array, ""],
) -> dict[str, Array]:  # fmt: skip
    init_key, draw_key = jax.random.split(key)
    model = init(init_key)
    chosen, rest = eqx.partition(model, eqx.is_inexact_array if trained is None else trained(model))
    start, still = eqx.partition(chosen, eqx.is_inexact_array)
    kind = jax.tree.leaves(start)[0].dtype
    rule = recipe.rule(step_size.astype(kind), decay.astype(kind))

    def whole(moving: PyTree) -> Any:
        return eqx.combine(moving, still, rest)

    def batch_loss(moving: PyTree, number: Int[Array, ""]) -> Array:
        if recipe.batch_size is None:
            return own_loss(moving)
        places = jax.random.randint(jax.random.fold_in(draw_key, number), (recipe.batch_size,), 0, size)
        return loss(whole(moving), jax.tree.map(lambda leaf: leaf[places], data))

    def step(carry: tuple[PyTree, Any], number: Int[Array, ""]) -> tuple[tuple[PyTree, Any], None]:
        moving, state = carry
        gradient = jax.grad(batch_loss)(moving, number)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes its integer counter with floats
            update, state = rule.update(gradient, state, moving)
        return (optax.apply_updates(moving, update), state), None

    def own_loss(moving: PyTree) -> Array:
        """On the fit's own samples; how many they are is not known when this is compiled, so all are computed."""
        each = jax.vmap(lambda sample: loss(whole(moving), jax.tree.map(lambda leaf: leaf[None], sample)))(data)
        return jnp.sum(jnp.where(jnp.arange(each.shape[0]) < size, each, 0)) / size.astype(each.dtype)

    late = int(_LATE * recipe.steps)
    carry, _ = jax.lax.scan(step, (start, rule.init(start)), jnp.arange(late))
    before = own_loss(carry[0])
    (end, _), _ = jax.lax.scan(step, carry, jnp.arange(late, recipe.steps))
    after = own_loss(end)
    found = {name: jnp.asarray(value) for name, value in measure(whole(end), checks).items()}
    return found | {"train_loss": after, "settling": (before - after) / jnp.maximum(before, jnp.finfo(kind).tiny)}
