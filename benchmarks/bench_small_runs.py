"""Many small runs through a sweep, against the same runs under a hand-written ``vmap``."""

from __future__ import annotations

import functools
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from _timing import result, use_one_thread

use_one_thread()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import xarray as xr  # noqa: E402

from attnlab.sweeps import Plan, RunContext, batched, keys_of, run_plan  # noqa: E402

_HERE = Path(__file__).resolve()
_WIDTH, _RUNS, _REPEATS = 64, 512, 5


@dataclass(frozen=True)
class Fit:
    """A network of 24 weights on 200 samples of its own."""

    seed: int
    samples: int = 200
    steps: int = 500
    step_size: float = 0.1


def _fit(key: jax.Array, samples: int, steps: int, step_size: float) -> tuple[jax.Array, jax.Array]:
    """Gradient descent on ``tanh(x w) v``; the loss at every step, and the weights at the end."""
    data_key, start_key, label_key = jax.random.split(key, 3)
    x = jax.random.normal(data_key, (samples, 5), jnp.float32)
    y = jnp.sin(x[:, 0]) + 0.1 * jax.random.normal(label_key, (samples,), jnp.float32)

    def loss(w: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ w[:20].reshape(5, 4)) @ w[20:] - y) ** 2)

    def step(w: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        value, slope = jax.value_and_grad(loss)(w)
        return w - jnp.asarray(step_size, w.dtype) * slope, value

    start = 0.5 * jax.random.normal(start_key, (24,), jnp.float32)
    return jax.lax.scan(step, start, length=steps)


@functools.cache
def _program(samples: int, steps: int, step_size: float):
    one = functools.partial(_fit, samples=samples, steps=steps, step_size=step_size)
    return jax.jit(jax.vmap(one))


@batched(_WIDTH)
def fit(settings: Sequence[Fit], contexts: Sequence[RunContext]) -> list[xr.Dataset]:
    """The work function."""
    first = settings[0]
    found = _program(first.samples, first.steps, first.step_size)(keys_of(contexts))
    weights, losses = (np.asarray(array) for array in found)
    return [
        xr.Dataset({"loss": ("step", curve), "weights": ("weight", end)})
        for curve, end in zip(losses, weights, strict=True)
    ]


def _plan(seeds: range) -> Plan:
    return Plan(f"{_HERE}:fit", name="fits", grid={"seed": list(seeds)})


def _by_hand(seeds: range) -> np.ndarray:
    """What a script does: groups of keys through the same program, curves in one array."""
    keys = jax.vmap(jax.random.key)(jnp.asarray(seeds))
    program = _program(Fit.samples, Fit.steps, Fit.step_size)
    groups = [program(keys[at : at + _WIDTH]) for at in range(0, len(seeds), _WIDTH)]
    return np.concatenate([np.asarray(losses) for _, losses in groups])


def _by_sweep(seeds: range) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        return run_plan(_plan(seeds), folder, processes=0).dataset().loss.values


def measure() -> list[dict[str, object]]:
    """CPU time of a sweep over that of the program alone, in turns, compiled before."""
    subjects = {"sweep": _by_sweep, "vmap": _by_hand}
    seconds: dict[str, list[float]] = {name: [] for name in subjects}
    for repeat in range(-1, _REPEATS):
        seeds = range(_WIDTH) if repeat < 0 else range(repeat * _RUNS, (repeat + 1) * _RUNS)
        for name, compute in subjects.items():
            begun = time.process_time()
            losses = compute(seeds)
            assert losses.shape == (len(seeds), Fit.steps)
            assert np.median(losses[:, -1]) < np.median(losses[:, 0]) / 2
            if repeat >= 0:
                seconds[name].append(time.process_time() - begun)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    return [
        result(
            f"sweep of {_RUNS} runs of a model of 24 weights, {Fit.steps} steps",
            "the same runs under vmap, written by hand",
            medians["sweep"] / medians["vmap"],
            1.3,
            at_most=True,
            ms_a_run={name: value / _RUNS * 1e3 for name, value in medians.items()},
        )
    ]


if __name__ == "__main__":
    for line in measure():
        print(line)
