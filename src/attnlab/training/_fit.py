"""Fitting many small models: sample sizes × step sizes × weight decays in one compiled program.

A learning curve needs thousands of short fits that differ only in numbers. The number of samples is
traced, too (samples beyond it are never drawn), so a whole grid of fits compiles once.
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
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Key, PyTree

from attnlab._errors import AttnlabError

Loss = Callable[[Any, PyTree], Array]
Measure = Callable[[Any, PyTree], Mapping[str, Array]]
_LATE = 0.8  # `settling` compares the loss after this share of the steps with the final loss


@dataclass(frozen=True)
class Recipe:
    """Adam with decoupled weight decay and a cosine schedule down to ``end_share`` of the step size.

    ``optimizer="descent"`` takes plain gradient steps instead, with the same decay and schedule.
    ``batch_size`` samples per step are drawn with replacement from the samples of the fit; ``None``
    takes all of them.
    """

    steps: int = 1500
    batch_size: int | None = 64
    end_share: float = 0.01
    optimizer: str = "adam"

    def __post_init__(self):
        if self.steps < 1:
            raise AttnlabError(f"steps={self.steps}: expected at least 1")
        if self.batch_size is not None and self.batch_size < 1:
            raise AttnlabError(
                f"batch_size={self.batch_size}: expected at least 1, or None for all"
            )
        if not 0 <= self.end_share <= 1:
            raise AttnlabError(f"end_share={self.end_share}: expected a share from 0 to 1")
        if self.optimizer not in ("adam", "descent"):
            raise AttnlabError(f"optimizer={self.optimizer!r}: expected 'adam' or 'descent'")

    def rule(self, step_size: Any, weight_decay: Any) -> optax.GradientTransformation:
        """The optimiser."""
        schedule = optax.cosine_decay_schedule(1.0, self.steps, alpha=self.end_share)
        first = optax.scale_by_adam() if self.optimizer == "adam" else optax.identity()
        return optax.chain(
            first,
            optax.add_decayed_weights(weight_decay),
            optax.scale_by_learning_rate(lambda count: step_size * schedule(count)),
        )


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
    """Fit one model per sample size, step size and weight decay.

    All fits start from the same parameters, and their samples are nested.

    - ``init(key) → module``, ``loss(model, batch) → scalar`` (the mean over a batch),
      ``measure(model, checks) → {name: number}``, traced by JAX. Define them once: new functions are
      compiled again.
    - ``dims``: the dimensions of arrays that ``measure`` returns, such as
      ``{"map": ("row", "column")}``.
    - ``data``: a PyTree of arrays (samples, …); a fit of size n draws from its first n samples.
    - ``checks``: the data for ``measure``, such as validation and test data.
    - ``trained(model)``: filter of what is trained; by default every floating array.
    - ``together``: fits computed at once; results are bit for bit equal only for equal ``together``.

    Returns every measured name, ``train_loss`` (on the fit's own samples) and ``settling``, its
    relative fall over the last fifth of the steps, with dimensions (size, step_size, weight_decay).

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
        raise AttnlabError(
            f"sizes={counts}: expected different numbers from 1 to {available}, the samples given"
        )
    if not step_sizes or min(step_sizes) <= 0:
        raise AttnlabError(f"step_sizes={list(step_sizes)}: expected one or more numbers > 0")
    if not weight_decays or min(weight_decays) < 0:
        raise AttnlabError(f"weight_decays={list(weight_decays)}: expected one or more numbers ≥ 0")
    if together < 1:
        raise AttnlabError(f"together={together}: expected at least 1")
    grid = np.array(list(product(counts, step_sizes, weight_decays)), np.float64)
    draws = _draws(key, recipe, counts)
    nth_size = np.repeat(np.arange(len(counts)), len(grid) // len(counts))
    # Full-batch fits of all samples know their size at compile time: they get a faster program.
    entire = (grid[:, 0] == available) & (recipe.batch_size is None)

    # Not within the compiled program: random numbers take long to compile, over and over again.
    arrays, rest = eqx.partition(init(jax.random.split(key)[0]), eqx.is_array)
    leaves, structure = jax.tree.flatten(rest)
    other = tuple(leaves), structure

    def fitted(chosen: np.ndarray, entire: bool) -> dict[str, Array]:
        settings = (
            nth_size[chosen],
            grid[chosen, 0].astype(np.int64),
            grid[chosen, 1],
            grid[chosen, 2],
        )
        return _fit_all(
            arrays,
            other,
            loss,
            measure,
            recipe,
            trained,
            together,
            entire,
            data,
            checks,
            draws,
            settings,
        )

    parts = [(np.flatnonzero(entire == kind), bool(kind)) for kind in np.unique(entire)]
    order = np.argsort(np.concatenate([chosen for chosen, _ in parts]))
    found = [fitted(chosen, kind) for chosen, kind in parts]
    rows = {
        name: np.concatenate([np.asarray(part[name]) for part in found])[order] for name in found[0]
    }
    shape = (len(counts), len(step_sizes), len(weight_decays))
    coords = {"size": counts, "step_size": list(step_sizes), "weight_decay": list(weight_decays)}
    return xr.Dataset(
        {name: _labelled(name, values, shape, dims or {}) for name, values in rows.items()}, coords
    )


def _labelled(
    name: str, values: np.ndarray, shape: tuple[int, ...], dims: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, ...], np.ndarray]:
    rest, own = values.shape[1:], tuple(dims.get(name, ()))
    if len(rest) != len(own):
        raise AttnlabError(
            f"measure returns {name!r} of shape {rest}, but dims names {own}: expected a number, or "
            "one name per dimension of the array, such as dims={'map': ('row', 'column')}"
        )
    return ("size", "step_size", "weight_decay", *own), values.reshape(shape + rest)


def choose(fits: xr.Dataset, by: str | Sequence[str] = "valid_loss") -> xr.Dataset:
    """For each size, the fit with the smallest ``by``, with its ``step_size`` and ``weight_decay``;
    of several names each decides among those that are equal by the ones before it.

    >>> fits = xr.Dataset(
    ...     {"valid_loss": (("size", "step_size", "weight_decay"), [[[2.0, 1.0]]]), "error": (("size", "step_size",
    ...     "weight_decay"), [[[5.0, 6.0]]])}, {"size": [10], "step_size": [0.02], "weight_decay": [0.0, 0.1]},
    ... )
    >>> chosen = choose(fits)
    >>> chosen.error.values.tolist(), chosen.weight_decay.values.tolist()
    ([6.0], [0.1])
    """
    names = [by] if isinstance(by, str) else list(by)
    absent = [name for name in names if name not in fits]
    if absent:
        raise AttnlabError(
            f"no {absent[0]!r} among {sorted(map(str, fits.data_vars))}: measure it, or choose by "
            "another name"
        )
    flat = fits.stack(tuning=("step_size", "weight_decay"))
    columns = [flat[name].fillna(np.inf).transpose("size", "tuning").values for name in names]
    best = np.lexsort(columns[::-1], axis=1)[:, 0]
    chosen = flat.isel(tuning=xr.DataArray(best, dims="size"))
    tuned = {
        name: ("size", np.asarray(chosen[name].values)) for name in ("step_size", "weight_decay")
    }
    return chosen.drop_vars(["tuning", "step_size", "weight_decay"]).assign(tuned)


def _available(data: PyTree) -> int:
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(data)]
    counts = {shape[0] if shape else 0 for shape in shapes}
    if len(counts) != 1 or 0 in counts:
        raise AttnlabError(
            f"data holds arrays of the shapes {shapes}; expected the same number ≥ 1 of samples "
            "in all"
        )
    return counts.pop()


@functools.partial(
    jax.jit, static_argnames=("other", "loss", "measure", "recipe", "trained", "together", "entire")
)
def _fit_all(
    arrays: Any,
    other: tuple[tuple[Any, ...], Any],
    loss: Any,
    measure: Any,
    recipe: Recipe,
    trained: Any,
    together: int,
    entire: bool,
    data: PyTree,
    checks: PyTree,
    draws: Int[Array, "sizes steps batch"] | None,
    settings: PyTree,
) -> dict[str, Array]:
    leaves, structure = other  # what the start holds besides arrays
    model = eqx.combine(arrays, jax.tree.unflatten(structure, leaves))

    def one(setting: tuple[Array, Array, Array, Array]) -> dict[str, Array]:
        return _fit_one(
            model, loss, measure, recipe, trained, entire, data, checks, draws, *setting
        )

    return jax.lax.map(one, settings, batch_size=None if together == 1 else together)


def _fit_one(
    model: Any,
    loss: Any,
    measure: Any,
    recipe: Recipe,
    trained: Any,
    entire: bool,
    data: PyTree,
    checks: PyTree,
    draws: Int[Array, "sizes steps batch"] | None,
    nth_size: Int[Array, ""],
    size: Int[Array, ""],
    step_size: Float[Array, ""],
    decay: Float[Array, ""],
) -> dict[str, Array]:
    chosen, rest = eqx.partition(model, eqx.is_inexact_array if trained is None else trained(model))
    start, still = eqx.partition(chosen, eqx.is_inexact_array)
    kind = jax.tree.leaves(start)[0].dtype
    rule = recipe.rule(step_size.astype(kind), decay.astype(kind))

    flat, unravel = _one_vector(start)
    own = data if entire else jax.tree.map(functools.partial(_first, size), data)

    def whole(moving: PyTree) -> Any:
        return eqx.combine(unravel(moving), still, rest)

    def own_loss(moving: PyTree) -> Array:
        """Mean loss on the fit's own samples."""
        if entire:
            return loss(whole(moving), data)
        # The number of samples is traced: evaluate all, one by one, and sum the first `size`.
        each = jax.vmap(
            lambda sample: loss(whole(moving), jax.tree.map(lambda leaf: leaf[None], sample))
        )(own)
        return jnp.sum(jnp.where(jnp.arange(each.shape[0]) < size, each, 0)) / size.astype(
            each.dtype
        )

    def batch_loss(moving: PyTree, number: Int[Array, ""]) -> Array:
        if draws is None:
            return own_loss(moving)
        return loss(whole(moving), _taken(data, draws[nth_size, number]))

    def step(number: Int[Array, ""], carry: tuple[PyTree, Any]) -> tuple[PyTree, Any]:
        moving, state = carry
        gradient = jax.grad(batch_loss)(moving, number)
        with jax.numpy_dtype_promotion("standard"):  # Optax mixes its integer counter with floats
            update, state = rule.update(gradient, state, moving)
        return optax.apply_updates(moving, update), state

    def part(carry: tuple[PyTree, Any], ends: Int[Array, "2"]) -> tuple[tuple[PyTree, Any], Array]:
        carry = jax.lax.fori_loop(ends[0], ends[1], step, carry)
        return carry, own_loss(carry[0])

    late = int(_LATE * recipe.steps)
    # Both parts are one loop, so that the step is compiled once.
    (end, _), losses = jax.lax.scan(
        part, (flat, rule.init(flat)), jnp.array([[0, late], [late, recipe.steps]])
    )
    before, after = losses[0], losses[1]
    found = {name: jnp.asarray(value) for name, value in measure(whole(end), checks).items()}
    return found | {
        "train_loss": after,
        "settling": (before - after) / jnp.maximum(before, jnp.finfo(kind).tiny),
    }


def _one_vector(start: PyTree) -> tuple[PyTree, Callable[[PyTree], PyTree]]:
    """The trained arrays as one vector, which takes the optimiser fewer operations.

    Arrays of different types stay as they are.
    """
    if len({leaf.dtype for leaf in jax.tree.leaves(start)}) > 1:
        return start, lambda moving: moving
    return ravel_pytree(start)


def _first(size: Int[Array, ""], leaf: Array) -> Array:
    """The first ``size`` samples; the first one replaces all others, so that no nan of theirs leaks."""
    number = jnp.arange(leaf.shape[0])
    return leaf.at[jnp.where(number < size, number, 0)].get()


def _taken(data: PyTree, places: Int[Array, "batch"]) -> PyTree:
    """The samples at these places, which must exist."""
    return jax.tree.map(lambda leaf: leaf.at[places].get(mode="promise_in_bounds"), data)


def _draws(
    key: Key[Array, ""], recipe: Recipe, counts: Sequence[int]
) -> Int[np.ndarray, "sizes steps batch"] | None:
    """The places of every step's samples, per sample size: drawn ahead, by one compiled program.

    Drawing them within the step would cost more than the gradient of a small model, and as much
    compilation time.
    """
    if recipe.batch_size is None:
        return None
    words = np.asarray(jax.random.key_data(jax.random.split(key)[1])).tobytes()
    return np.stack([_places(words, n, recipe.steps, recipe.batch_size) for n in counts])


@functools.lru_cache(maxsize=16)  # fits of one size that are tuned one by one have the same draws
def _places(words: bytes, size: int, steps: int, batch: int) -> Int[np.ndarray, "steps batch"]:
    key = jax.random.wrap_key_data(jnp.asarray(np.frombuffer(words, np.uint32)))
    return np.asarray(_draw(key, jnp.asarray(size), steps, batch))


@functools.partial(jax.jit, static_argnames=("steps", "batch"))
def _draw(
    key: Key[Array, ""], size: Int[Array, ""], steps: int, batch: int
) -> Int[Array, "steps batch"]:
    draw = jax.vmap(
        lambda number: jax.random.randint(jax.random.fold_in(key, number), (batch,), 0, size)
    )
    return draw(jnp.arange(steps)).astype(jnp.int32)
