"""A grid of fits against the same fits written out one by one."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import Array

from attnlab import AttnlabError
from attnlab.training import Recipe, choose, fit_grid


class Plane(eqx.Module):
    weight: Array
    frozen: Array

    def __call__(self, x):
        return x @ self.weight + self.frozen


def init(key):
    return Plane(0.1 * jax.random.normal(key, (3,)), jnp.asarray(0.5))


def loss(model, batch):
    return jnp.mean((jax.vmap(model)(batch["x"]) - batch["y"]) ** 2)


def measure(model, checks):
    return {"valid_loss": loss(model, checks), "first": model.weight[0]}


def moving(model):
    return eqx.tree_at(lambda m: m.frozen, jax.tree.map(lambda _: True, model), False)


def _data(count, key=0):
    rng = np.random.default_rng(key)
    x = rng.normal(size=(count, 3))
    return {"x": jnp.asarray(x), "y": jnp.asarray(x @ [1.0, -2.0, 0.5] + 0.5 + 0.1 * rng.normal(size=count))}


RECIPE = Recipe(steps=50, batch_size=8)
GRID = {"sizes": [5, 40], "step_sizes": [0.02, 0.1], "weight_decays": [0.0, 0.3]}


def _grid(**more):
    settings = {**GRID, "recipe": RECIPE, "trained": moving, "key": jax.random.key(3), **more}
    return fit_grid(init, loss, measure, _data(40), _data(30, 1), **settings)


def test_each_fit_is_the_loop_written_out():
    found = _grid()
    data, checks = _data(40), _data(30, 1)
    init_key, draw_key = jax.random.split(jax.random.key(3))
    for size in (5, 40):
        draws = jax.vmap(lambda k, size=size: jax.random.randint(jax.random.fold_in(draw_key, k), (8,), 0, size))
        places_of = np.asarray(draws(jnp.arange(50)))
        for step_size in (0.02, 0.1):
            for decay in (0.0, 0.3):
                weight = np.asarray(init(init_key).weight)
                first, second = np.zeros(3), np.zeros(3)
                for k in range(50):
                    places = places_of[k]
                    x, y = np.asarray(data["x"])[places], np.asarray(data["y"])[places]
                    gradient = 2 * x.T @ (x @ weight + 0.5 - y) / 8
                    first = 0.9 * first + 0.1 * gradient
                    second = 0.999 * second + 0.001 * gradient**2
                    scaled = (first / (1 - 0.9 ** (k + 1))) / (np.sqrt(second / (1 - 0.999 ** (k + 1))) + 1e-8)
                    rate = step_size * (0.99 * 0.5 * (1 + np.cos(np.pi * k / 50)) + 0.01)
                    weight = weight - rate * (scaled + decay * weight)
                one = found.sel(size=size, step_size=step_size, weight_decay=decay)
                assert np.isclose(float(one["first"]), weight[0], rtol=1e-10)
                errors = np.asarray(checks["x"]) @ weight + 0.5 - np.asarray(checks["y"])
                assert np.isclose(float(one.valid_loss), np.mean(errors**2), rtol=1e-10)
                own = np.asarray(data["x"])[:size] @ weight + 0.5 - np.asarray(data["y"])[:size]
                assert np.isclose(float(one.train_loss), np.mean(own**2), rtol=1e-10)


def test_a_fit_alone_equals_the_fit_in_the_grid():
    whole = _grid()
    alone = _grid(sizes=[40], step_sizes=[0.1], weight_decays=[0.3])
    for name in whole.data_vars:
        one = whole[name].sel(size=40, step_size=0.1, weight_decay=0.3)
        assert float(alone[name].squeeze()) == float(one)
    wide = _grid(together=4)
    for name in whole.data_vars:
        assert np.allclose(wide[name], whole[name], rtol=1e-9, atol=1e-12)


def test_samples_beyond_the_size_are_never_seen():
    data = _data(40)
    spoilt = {"x": data["x"].at[5:].set(jnp.nan), "y": data["y"]}
    found = fit_grid(init, loss, measure, spoilt, _data(30, 1), sizes=[5], key=jax.random.key(0), recipe=RECIPE)
    assert np.isfinite(float(found.valid_loss.squeeze()))


def test_other_samples_do_not_recompile():
    from attnlab.training._fit import _fit_all

    compiled: Any = _fit_all
    _grid()
    before = compiled._cache_size()
    _grid(sizes=[7, 12], key=jax.random.key(9))
    assert compiled._cache_size() == before


def test_choose_takes_the_best_on_validation():
    found = _grid()
    chosen = choose(found)
    for size in (5, 40):
        part = found.sel(size=size)
        best = part.valid_loss.values.min()
        assert float(chosen.valid_loss.sel(size=size)) == best
        row = part.where(part.valid_loss == best, drop=True)
        assert float(chosen.weight_decay.sel(size=size)) == float(row.weight_decay[0])
        assert float(chosen.step_size.sel(size=size)) == float(row.step_size[0])
    with pytest.raises(AttnlabError, match="no 'valid'"):
        choose(found, by="valid")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": [41]}, "from 1 to 40"),
        ({"sizes": []}, "expected different numbers"),
        ({"step_sizes": [0.0]}, "must be positive"),
        ({"weight_decays": []}, "weight_decays"),
        ({"together": 0}, "together=0"),
    ],
)
def test_mistakes_are_named(changes, message):
    with pytest.raises(AttnlabError, match=message):
        _grid(**changes)


def test_uneven_data_is_refused():
    with pytest.raises(AttnlabError, match="same number"):
        fit_grid(init, loss, measure, {"x": jnp.ones((3, 3)), "y": jnp.ones(2)}, None, sizes=[1], key=jax.random.key(0))


def test_the_recipe_is_optax_adamw():
    rule = Recipe(steps=10).rule(0.1, 0.0)
    same = optax.adamw(optax.cosine_decay_schedule(0.1, 10, alpha=0.01), weight_decay=0.0)
    weights = jnp.ones(2)
    with jax.numpy_dtype_promotion("standard"):
        update, _ = rule.update(weights, rule.init(weights), weights)
        expected, _ = same.update(weights, same.init(weights), weights)
    assert np.allclose(np.asarray(update), np.asarray(expected))
