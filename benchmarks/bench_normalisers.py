"""Training steps under each normaliser against those under softmax: dense self-attention, and word
attention.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from _timing import interleaved, result, use_one_thread

use_one_thread()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402

from attnlab.data import TopicTask  # noqa: E402
from attnlab.models import (  # noqa: E402
    Bags,
    SelfAttentionConfig,
    WordAttentionConfig,
    bag_logits,
    make_normaliser,
)
from attnlab.training import Every, GradientDescent, Loss, train  # noqa: E402

_CONFIG = SelfAttentionConfig(embedding_dim=8, words=16, key_dim=4, value_dim=4, hidden=32)
_NAMES = ("softmax", "softmax:0.25", "sparsemax", "entmax15", "top2", "uniform")
_JUDGED = ("sparsemax", "entmax15")
_STEP_SIZE, _DENSE_STEPS, _WORD_STEPS = 0.02, 60, 20


def _descent(
    start: Any, loss: Callable[[Any, Any], jax.Array], data: Any, steps: int
) -> Callable[[], None]:
    """A call that takes so many steps of full-batch descent from the start."""
    arrays, rest = eqx.partition(start, eqx.is_inexact_array)

    @jax.jit
    def run(arrays: Any, data: Any) -> Any:
        def step(_: int, arrays: Any) -> Any:
            gradient = jax.grad(lambda moving: loss(eqx.combine(moving, rest), data))(arrays)
            return jax.tree.map(lambda a, g: a - _STEP_SIZE * g, arrays, gradient)

        return jax.lax.fori_loop(0, steps, step, arrays)

    def call() -> None:
        end = jax.block_until_ready(run(arrays, data))
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(end))

    return call


def _squares(model: Any, data: tuple[jax.Array, jax.Array]) -> jax.Array:
    x, y = data
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


def _dense(samples: int) -> list[dict[str, object]]:
    """Students of a softmax teacher, in float32 as they are fitted."""
    x = jax.random.normal(
        jax.random.key(1), (samples, _CONFIG.embedding_dim, _CONFIG.words), jnp.float32
    )

    def start(name: str, seed: int) -> Any:
        # Logits of the size that trained attention has: at the start of training every normaliser
        # keeps all words.
        config = dataclasses.replace(_CONFIG, normaliser=name, query_scale=2.0)
        return jax.tree.map(
            lambda leaf: leaf.astype(jnp.float32), config.init(jax.random.key(seed))
        )

    y = jax.vmap(start("softmax", 2))(x)
    steps = max(1, _DENSE_STEPS * 64 // samples)
    calls = {name: _descent(start(name, 3), _squares, (x, y), steps) for name in _NAMES}
    seconds = interleaved(calls)
    return [
        _line(f"dense self-attention step, {samples} samples", name, seconds, steps)
        for name in _NAMES[1:]
    ]


def _cross_entropy(name: str) -> Callable[[Any, Any], jax.Array]:
    """The loss of word attention on padded sentences under a normaliser."""
    normaliser = make_normaliser(name)

    def loss(model: Any, bags: Bags) -> jax.Array:
        logits = bag_logits(model, bags, normaliser=normaliser)
        return optax.softmax_cross_entropy_with_integer_labels(logits, bags.labels).mean()

    return loss


def _words() -> list[dict[str, object]]:
    """The topic task on padded bags, against the pooled exponential of ``train``, which is
    softmax's alone.
    """
    corpus = TopicTask().sample(1000, key=jax.random.key(0))
    bags, config = Bags.of(corpus), WordAttentionConfig.for_corpus(corpus, head="linear")
    start = config.init(jax.random.key(1))
    calls = {name: _descent(start, _cross_entropy(name), bags, _WORD_STEPS) for name in _NAMES}

    def pooled(steps: int) -> Callable[[], None]:
        def call() -> None:
            train(
                config,
                corpus,
                steps=steps,
                optimizer=GradientDescent(_STEP_SIZE),
                when=Every(steps),
                record=(Loss(),),
                progress=False,
            )

        return call

    # The difference of two lengths: a call of train does more than to take steps.
    short, long = _WORD_STEPS, 21 * _WORD_STEPS
    seconds = interleaved(calls | {"short": pooled(short), "long": pooled(long)})
    seconds["pooled"] = (seconds["long"] - seconds["short"]) / 20
    return [_line("word attention step", name, seconds, _WORD_STEPS, "pooled") for name in _NAMES]


def _line(
    what: str, name: str, seconds: dict[str, float], steps: int, against: str = "softmax"
) -> dict[str, object]:
    judged = name in _JUDGED and against == "softmax"
    return result(
        f"{what}: {name}",
        {"pooled": "softmax, pooled exponential"}.get(against, against),
        seconds[name] / seconds[against],
        3.0 if judged else None,
        at_most=True,
        ms_per_step={who: seconds[who] / steps * 1e3 for who in (name, against)},
    )


def measure() -> list[dict[str, object]]:
    """Cost of a training step relative to softmax's."""
    return [*_dense(64), *_dense(1000), *_words()]


if __name__ == "__main__":
    for line in measure():
        print(line)
