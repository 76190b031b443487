"""Work functions for the tests of this folder; worker processes load them from this file."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import xarray as xr

from attnlab.sweeps import RunContext, batched, keys_of


@dataclass(frozen=True)
class Numbers:
    seed: int
    size: int = 3
    scale: float = 1.0
    label: str = "plain"
    widths: tuple[int, ...] = (1, 2)
    limit: int | None = None
    seconds: float = 0.0
    diary: str = ""


def _note(settings: Numbers) -> None:
    """Leave a trace of every call, so that tests can count them."""
    if settings.diary:
        (Path(settings.diary) / f"{settings.seed}-{os.getpid()}-{time.time_ns()}").touch()


def numbers(settings: Numbers, context: RunContext) -> xr.Dataset:
    _note(settings)
    time.sleep(settings.seconds)
    rng = np.random.default_rng([context.root_seed, settings.seed])
    values = settings.scale * rng.normal(size=settings.size)
    values[0] = -0.0 if settings.seed == 0 else values[0]
    return xr.Dataset(
        {
            "value": ("step", values, {"units": "nats", "_FillValue": -1}),
            "count": ((), 2**60 + settings.seed),
            "single": ("step", values.astype(np.float32)),
            "flag": ((), settings.seed % 2 == 0),
            "word": ((), "ü☃"[: 1 + settings.seed % 2]),
        },
        coords={"step": np.arange(settings.size), "time": ("step", 0.5 * np.arange(settings.size))},
        attrs={"seed_of_run": settings.seed, "same": [1, 2], "rate": np.float64(0.5)},
    )


def fragile(settings: Numbers, context: RunContext) -> xr.Dataset:
    if settings.seed % 4 == 1:
        raise RuntimeError("the model diverged")
    if settings.seed % 4 == 3:
        raise SystemExit("leaving")
    return numbers(settings, context)


def single(settings: Numbers, context: RunContext) -> xr.Dataset:
    """One number: the least that a run can store."""
    return xr.Dataset({"value": 0.5 * settings.seed})


def failing(settings: Numbers, context: RunContext) -> xr.Dataset:
    raise RuntimeError("the model diverged")


def opaque(settings: Numbers, context: RunContext) -> xr.Dataset:
    data = numbers(settings, context)
    return (
        data
        if settings.seed
        else data.assign(thing=("step", np.array([object(), None, 3], dtype=object)))
    )


def deadly_once(settings: Numbers, context: RunContext) -> xr.Dataset:
    """Seed 2 kills its process, but only the first time."""
    first_time = not list(Path(settings.diary).glob("2-*"))
    _note(settings)
    if settings.seed == 2 and first_time:
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers(settings, context)


def deadly(settings: Numbers, context: RunContext) -> xr.Dataset:
    """Seed 2 always kills its process."""
    _note(settings)
    if settings.seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return numbers(settings, context)


@dataclass(frozen=True)
class Descent:
    seed: int
    width: int = 8
    steps: int = 20


@functools.cache
def _train(width: int, steps: int):
    """Gradient descent on a random form, compiled once for each size."""
    import jax
    import jax.numpy as jnp

    def loss(x, form):
        return jnp.sum(jnp.tanh(form @ x) ** 2)

    @jax.jit
    def train(key):
        first, second = jax.random.split(key)
        form = jax.random.normal(first, (width, width), jnp.float32)

        def step(x, _):
            value, slope = jax.value_and_grad(loss)(x, form)
            return x - jnp.float32(0.05) * slope, value

        return jax.lax.scan(step, jax.random.normal(second, (width,), jnp.float32), length=steps)

    return train


def descent(settings: Descent, context: RunContext) -> xr.Dataset:
    end, losses = _train(settings.width, settings.steps)(context.key())
    return xr.Dataset({"loss": ("step", np.asarray(losses)), "end": ("axis", np.asarray(end))})


def environment(settings: Numbers, context: RunContext) -> xr.Dataset:
    names = ("XLA_FLAGS", "OMP_NUM_THREADS", "JAX_PLATFORMS", "JAX_COMPILATION_CACHE_DIR", "NPROC")
    print("a work function may print")
    return xr.Dataset(
        {"setting": ("name", [os.environ.get(name, "") for name in names])}, {"name": list(names)}
    )


def untyped(settings, context):
    return xr.Dataset()


def loosely_typed(settings: dict, context: RunContext) -> xr.Dataset:
    return xr.Dataset()


def numbers_v2(settings: Numbers, context: RunContext) -> xr.Dataset:
    return numbers(settings, context)


numbers_v2.version = 2  # type: ignore[attr-defined]


def hanging(settings: Numbers, context: RunContext) -> xr.Dataset:
    """Seed 2 never ends; by its label it does not even let other threads of its process go on."""
    _note(settings)
    if settings.seed == 2 and settings.label == "stubborn":
        ctypes.PyDLL(None).sleep(1000)
    if settings.seed == 2:
        time.sleep(1000)
    return numbers(replace(settings, diary=""), context)


def deadly_to_parents(settings: Numbers, context: RunContext) -> xr.Dataset:
    """Seed 2 kills the process that started its own; only the first time, unless its label is
    "always".
    """
    kills = settings.label == "always" or not list(Path(settings.diary).glob("2-*"))
    _note(settings)
    if settings.seed == 2 and kills:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    return numbers(settings, context)


@functools.cache
def _train_many(width: int, steps: int):
    """``_train`` for many keys at once."""
    import jax

    return jax.jit(jax.vmap(_train(width, steps)))


@batched(4)
def descents(settings: list[Descent], contexts: list[RunContext]) -> list[xr.Dataset]:
    """``descent``, four at once."""
    assert (len(settings), len(contexts)) == (4, 4)
    (width,) = {one.width for one in settings}
    found = map(np.asarray, _train_many(width, settings[0].steps)(keys_of(contexts)))
    return [
        xr.Dataset({"loss": ("step", losses), "end": ("axis", end)})
        for end, losses in zip(*found, strict=True)
    ]


@batched(4)
def many_numbers(settings: list[Numbers], contexts: list[RunContext]) -> list[xr.Dataset]:
    """``numbers``; a group with the label "fragile" raises if it holds seed 5 or 6."""
    time.sleep(settings[0].seconds)
    if settings[0].label == "fragile" and {5, 6} & {one.seed for one in settings}:
        raise RuntimeError("the model diverged")
    if settings[0].label == "slow" and 2 in {one.seed for one in settings}:
        time.sleep(60)
    return [numbers(one, context) for one, context in zip(settings, contexts, strict=True)]


@batched(2)
def too_few(settings: list[Numbers], contexts: list[RunContext]) -> list[xr.Dataset]:
    return [numbers(settings[0], contexts[0])]


@batched(2)  # type: ignore[arg-type]
def one_setting(settings: Numbers, contexts: list[RunContext]) -> list[xr.Dataset]:
    return []
