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
    return {
        "x": jnp.asarray(x),
        "y": jnp.asarray(x @ [1.0, -2.0, 0.5] + 0.5 + 0.1 * rng.normal(size=count)),
    }


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
        draws = jax.vmap(
            lambda k, size=size: jax.random.randint(jax.random.fold_in(draw_key, k), (8,), 0, size)
        )
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
                    scaled = (first / (1 - 0.9 ** (k + 1))) / (
                        np.sqrt(second / (1 - 0.999 ** (k + 1))) + 1e-8
                    )
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
    found = fit_grid(
        init, loss, measure, spoilt, _data(30, 1), sizes=[5], key=jax.random.key(0), recipe=RECIPE
    )
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
        ({"step_sizes": [0.0]}, "expected one or more numbers > 0"),
        ({"weight_decays": []}, "weight_decays"),
        ({"together": 0}, "together=0"),
    ],
)
def test_mistakes_are_named(changes, message):
    with pytest.raises(AttnlabError, match=message):
        _grid(**changes)


def test_uneven_data_is_refused():
    with pytest.raises(AttnlabError, match="same number"):
        fit_grid(
            init,
            loss,
            measure,
            {"x": jnp.ones((3, 3)), "y": jnp.ones(2)},
            None,
            sizes=[1],
            key=jax.random.key(0),
        )


def test_the_recipe_is_optax_adamw():
    rule = Recipe(steps=10).rule(0.1, 0.0)
    same = optax.adamw(optax.cosine_decay_schedule(0.1, 10, alpha=0.01), weight_decay=0.0)
    weights = jnp.ones(2)
    with jax.numpy_dtype_promotion("standard"):
        update, _ = rule.update(weights, rule.init(weights), weights)
        expected, _ = same.update(weights, same.init(weights), weights)
    assert np.allclose(np.asarray(update), np.asarray(expected))


def test_all_samples_at_every_step_is_the_loop_written_out():
    found = _grid(recipe=Recipe(steps=50, batch_size=None))
    data, init_key = _data(40), jax.random.split(jax.random.key(3))[0]
    for size in (5, 40):
        x, y = np.asarray(data["x"])[:size], np.asarray(data["y"])[:size]
        weight = np.asarray(init(init_key).weight)
        first, second, late = np.zeros(3), np.zeros(3), np.inf
        for k in range(50):
            gradient = 2 * x.T @ (x @ weight + 0.5 - y) / size
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            scaled = (first / (1 - 0.9 ** (k + 1))) / (
                np.sqrt(second / (1 - 0.999 ** (k + 1))) + 1e-8
            )
            rate = 0.1 * (0.99 * 0.5 * (1 + np.cos(np.pi * k / 50)) + 0.01)
            weight = weight - rate * (scaled + 0.3 * weight)
            if k == 39:
                late = np.mean((x @ weight + 0.5 - y) ** 2)
        one = found.sel(size=size, step_size=0.1, weight_decay=0.3)
        end = np.mean((x @ weight + 0.5 - y) ** 2)
        assert np.isclose(float(one["first"]), weight[0], rtol=1e-10)
        assert np.isclose(float(one.train_loss), end, rtol=1e-10)
        assert np.isclose(float(one.settling), (late - end) / late, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("size", [5, 40])
def test_a_full_batch_fit_alone_equals_the_fit_in_the_grid(size):
    recipe = Recipe(steps=50, batch_size=None)
    whole, alone = (
        _grid(recipe=recipe),
        _grid(recipe=recipe, sizes=[size], step_sizes=[0.1], weight_decays=[0.3]),
    )
    for name in whole.data_vars:
        assert float(alone[name].squeeze()) == float(
            whole[name].sel(size=size, step_size=0.1, weight_decay=0.3)
        )


def test_full_batches_leave_out_samples_beyond_the_size():
    data = _data(40)
    other = {"x": data["x"].at[5:].set(jnp.nan), "y": data["y"]}
    recipe = Recipe(steps=50, batch_size=None)
    few, spoilt = (
        fit_grid(
            init, loss, measure, d, _data(30, 1), sizes=[5], key=jax.random.key(0), recipe=recipe
        )
        for d in (data, other)
    )
    assert few.equals(spoilt)


def test_measured_arrays_get_the_named_dimensions():
    def arrays(model, checks):
        return {
            "weight": model.weight,
            "outer": jnp.outer(model.weight, checks),
            "first": model.weight[0],
        }

    settings = {"sizes": [5, 40], "key": jax.random.key(0), "recipe": RECIPE}
    names = {"weight": ("input",), "outer": ("input", "check")}
    found = fit_grid(init, loss, arrays, _data(40), jnp.arange(2.0), dims=names, **settings)
    assert found.weight.dims == ("size", "step_size", "weight_decay", "input")
    assert found.outer.sizes == {
        "size": 2,
        "step_size": 1,
        "weight_decay": 1,
        "input": 3,
        "check": 2,
    }
    assert np.array_equal(found.weight.isel(input=0), found["first"])
    assert np.array_equal(found.outer.isel(check=1), found.weight)
    with pytest.raises(AttnlabError, match="'weight' of shape"):
        fit_grid(
            init,
            loss,
            arrays,
            _data(40),
            jnp.arange(2.0),
            dims={"outer": ("input", "check")},
            **settings,
        )


def test_plain_descent_is_the_textbook_step():
    """Full batch, constant step, decay λ: w ← w − h·(∇L + λ w), by hand."""

    class Line(eqx.Module):
        slope: Array

    x = jnp.linspace(-1.0, 1.0, 8)

    def loss(line, batch):
        return jnp.mean((line.slope * batch["x"] - batch["y"]) ** 2)

    found = fit_grid(
        lambda key: Line(jnp.asarray(0.5)),
        loss,
        lambda line, checks: {"slope": line.slope},
        {"x": x, "y": 3 * x},
        0.0,
        sizes=[8],
        key=jax.random.key(0),
        step_sizes=[0.1],
        weight_decays=[0.2],
        recipe=Recipe(7, None, end_share=1.0, optimizer="descent"),
    )
    w = 0.5
    for _ in range(7):
        w -= 0.1 * (2 * float(jnp.mean(x * x)) * (w - 3) + 0.2 * w)
    assert float(found.slope[0, 0, 0]) == pytest.approx(w, rel=1e-12)
    with pytest.raises(AttnlabError, match="'adam' or 'descent'"):
        Recipe(optimizer="sgd")
