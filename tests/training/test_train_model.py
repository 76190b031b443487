import os
import signal
import threading
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attnlab._errors import AttnlabError
from attnlab.dynamics import SenTerms
from attnlab.training import (
    Accuracy,
    Adam,
    EarlyStopping,
    Every,
    GradientDescent,
    GradientFlow,
    GradientNorm,
    Loss,
    Measure,
    Norms,
    Scores,
    train_model,
)

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).normal(size=(24, 3))
Y = np.sin(X @ np.array([1.0, -2.0, 0.5]))
DATA = {"x": X, "y": Y}


class Net(eqx.Module):
    """Two layers, ``v·tanh(W x)``, times a scale that is not meant to move."""

    w: jax.Array
    v: jax.Array
    scale: jax.Array

    def __call__(self, x):
        return self.scale * (self.v @ jnp.tanh(self.w @ x))


def init(key) -> Net:
    keys = jax.random.split(key)
    return Net(
        jax.random.normal(keys[0], (4, 3), jnp.float64),
        jax.random.normal(keys[1], (4,), jnp.float64),
        jnp.ones(()),
    )


def square(model: Any, batch):
    return jnp.mean((jax.vmap(model)(batch["x"]) - batch["y"]) ** 2)


def parts(model: Net):
    return eqx.tree_at(lambda spec: spec.scale, jax.tree.map(lambda _: True, model), False)


def size(model: Net):
    return jnp.sum(model.v**2)


def flat(model: eqx.Module) -> np.ndarray:
    return np.concatenate(
        [np.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array_like))]
    )


def start(seed: int = 0) -> Net:
    return train_model(init, square, DATA, steps=0, seeds=[seed]).model(seed)


def by_hand(model: Net, steps: int, step_size: float, batches=None):
    """Descent on v and W with the derivatives of v·tanh(W x) written out; yields loss and gradient
    norm per step.
    """
    w, v, rows = np.array(model.w), np.array(model.v), []
    for step in range(steps + 1):
        chosen = slice(None) if batches is None else batches[step]
        x, y = X[chosen], Y[chosen]
        hidden = np.tanh(x @ w.T)
        off = hidden @ v - y
        dv = 2 * off @ hidden / len(x)
        dw = 2 * ((off[:, None] * v[None, :]) * (1 - hidden**2)).T @ x / len(x)
        rows.append((np.mean(off**2), np.sqrt(np.sum(dv**2) + np.sum(dw**2)), np.sum(v**2)))
        if step < steps:
            w, v = w - step_size * dw, v - step_size * dv
    return w, v, np.array(rows)


def test_descent_equals_the_equations_written_out():
    record = [Loss(), GradientNorm(), Measure("size", size)]
    run = train_model(
        init,
        square,
        DATA,
        steps=40,
        when=Every(5),
        optimizer=GradientDescent(0.2),
        record=record,
        trained=parts,
    )
    w, v, rows = by_hand(start(), 40, 0.2)
    np.testing.assert_allclose(run.model(0).w, w, rtol=1e-12)
    np.testing.assert_allclose(run.model(0).v, v, rtol=1e-12)
    assert float(run.model(0).scale) == 1.0
    for i, name in enumerate(("loss", "gradient_norm", "size")):
        np.testing.assert_allclose(run.data[name][0], rows[::5, i], rtol=1e-11)
    assert run.data.attrs["dtype"] == "float64"
    assert run.finished


def test_minibatches_are_pieces_of_each_epochs_order():
    """The order is that of the run's batch key and the epoch's number; four steps are an epoch."""
    _, key = jax.random.split(jax.random.fold_in(jax.random.key(0), 0))
    orders = [
        np.asarray(
            jax.random.permutation(jax.random.fold_in(key, epoch), jnp.arange(24, dtype=jnp.int32))
        )
        for epoch in range(3)
    ]
    batches = [orders[step // 4][6 * (step % 4) : 6 * (step % 4) + 6] for step in range(11)]
    run = train_model(
        init,
        square,
        DATA,
        steps=10,
        batch_size=6,
        optimizer=GradientDescent(0.2),
        trained=parts,
        record=[GradientNorm(), Loss()],
        when=Every(1),
    )
    w, _, rows = by_hand(start(), 10, 0.2, batches)
    np.testing.assert_allclose(run.model(0).w, w, rtol=1e-12)
    np.testing.assert_allclose(run.data.gradient_norm[0], rows[:, 1], rtol=1e-11)
    model = run.model(0)
    assert float(run.data.loss[0, -1]) == pytest.approx(float(square(model, DATA)), rel=1e-12)


@pytest.mark.parametrize("batch_of_runs", [1, 2])
@pytest.mark.parametrize("batch_size", [None, 6])
def test_a_run_alone_equals_the_run_in_the_batch(batch_of_runs, batch_size):
    more = {
        "steps": 20,
        "batch_of_runs": batch_of_runs,
        "batch_size": batch_size,
        "optimizer": Adam(0.01),
    }
    batch = train_model(init, square, DATA, seeds=3, **more)
    alone = train_model(init, square, DATA, seeds=[2], **more)
    assert np.array_equal(alone.data.loss[0], batch.data.loss.sel(seed=2))
    assert np.array_equal(flat(alone.model(2)), flat(batch.model(2)))


def test_any_optimiser_against_optax_by_hand():
    rule = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(0.05))
    run = train_model(init, square, DATA, steps=15, optimizer=rule)
    model: Any = jax.tree.map(jnp.asarray, start())
    state = rule.init(model)
    for _ in range(15):
        with jax.numpy_dtype_promotion("standard"):
            update, state = rule.update(jax.grad(square)(model, DATA), state, model)
        model = optax.apply_updates(model, update)
    np.testing.assert_allclose(flat(run.model(0)), flat(model), rtol=1e-12)


def test_the_flow_is_the_limit_of_descent():
    flow = train_model(
        init, square, DATA, steps=4, optimizer=GradientFlow(0.5, rtol=1e-10, atol=1e-12)
    )
    errors = []
    for step_size in (0.02, 0.01):
        run = train_model(
            init,
            square,
            DATA,
            steps=round(2 / step_size),
            optimizer=GradientDescent(step_size),
            when=Every(1000),
        )
        errors.append(np.abs(flat(run.model(0)) - flat(flow.model(0))).max())
    assert 1.8 < errors[0] / errors[1] < 2.2


def test_modules_with_activations_and_integer_data():
    """An ``eqx.nn.MLP`` holds functions and sizes beside its arrays; labels stay integers."""
    labels = (Y > 0).astype(np.int32)

    def mlp(key):
        return eqx.nn.MLP(3, 2, width_size=8, depth=2, key=key)

    run = train_model(
        mlp, _cross_entropy, (X, labels), steps=150, seeds=3, batch_of_runs=3, optimizer=Adam(0.01)
    )
    assert (run.data.loss[:, -1] < 0.3 * run.data.loss[:, 0]).all()
    assert run.model(2).layers[0].weight.dtype == np.float64
    assert run.model(2)(X[0]).shape == (2,)


def _cross_entropy(model, batch):
    x, y = batch
    return optax.softmax_cross_entropy_with_integer_labels(jax.vmap(model)(x), y).mean()


def test_early_stopping_on_a_split():
    valid = {"x": X[:8], "y": -Y[:8]}
    run = train_model(
        init,
        square,
        DATA,
        steps=2000,
        when=Every(1),
        splits={"valid": valid},
        stop=EarlyStopping("valid", patience=3),
    )
    data = run.data.isel(seed=0)
    assert str(data.status.values) == "stopped early"
    assert int(data.last_step) == int(data.best_step) + 3
    assert float(square(run.model(0), valid)) == pytest.approx(
        float(np.nanmin(data.loss_valid)), rel=1e-12
    )


def test_a_run_that_blows_up_is_marked():
    run = train_model(
        init, square, DATA, steps=400, seeds=2, optimizer=GradientDescent(50.0), when=Every(100)
    )
    assert set(run.data.status.values.tolist()) <= {"non-finite", "finished"}
    bad = train_model(init, _infinite, DATA, steps=5)
    assert bad.data.status.values.tolist() == ["non-finite"]
    assert "at step 0" in str(bad.data.reason.values[0])
    assert np.isnan(bad.data.loss).all()


def _infinite(model, batch):
    return square(model, batch) / 0.0


def test_ctrl_c():
    threading.Timer(4.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    run = train_model(init, square, DATA, steps=1_000_000_000, seeds=2, when=Every(10_000_000))
    assert run.data.status.values.tolist() == ["interrupted", "not started"]


class Plain:
    pass


class Weighed(eqx.Module):
    weights: jax.Array

    def __call__(self, model, batch):
        return jnp.mean(self.weights * _vector(model, batch))


def _vector(model, batch):
    return (jax.vmap(model)(batch["x"]) - batch["y"]) ** 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"record": [Scores()]}, "the probe Scores needs the words"),
        ({"record": [Norms()]}, "the probe Norms needs the words"),
        ({"record": [Accuracy()]}, "the probe Accuracy needs the words"),
        ({"record": [SenTerms()]}, "the probe SenTerms needs the words"),
        ({"record": [Loss("dev")]}, "no split 'dev'"),
        ({"init": lambda key: Plain()}, "init returned Plain, expected an Equinox module"),
        ({"loss": _vector}, r"loss returned shape \(24,\)"),
        ({"loss": Weighed(jnp.ones(24))}, "is not hashable"),
        ({"data": {"x": X, "y": Y[:5]}}, "same number"),
        ({"data": {}}, "at least one array"),
        (
            {"splits": {"test": {"x": X[:, :2], "y": Y}}},
            "the split 'test' has examples of the form",
        ),
        ({"batch_size": 25}, "expected 1 to 24, the number of examples"),
        (
            {"trained": lambda model: jax.tree.map(lambda _: False, model)},
            "nothing of Net is trained",
        ),
        ({"dtype": "int8"}, "expected 'float32' or 'float64'"),
        ({"optimizer": GradientFlow(), "batch_size": 6}, "a gradient flow has no steps"),
    ],
)
def test_mistakes_are_refused_in_words(settings, message):
    given = {"init": init, "loss": square, "data": DATA, "steps": 2} | settings
    with pytest.raises(AttnlabError, match=message):
        train_model(given.pop("init"), given.pop("loss"), given.pop("data"), **given)
