"""The training step against PyTorch: the plain padded module, and PyTorch with the same algebra."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from _timing import interleaved, result, use_one_thread

use_one_thread()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from attnlab.data import Corpus, TopicTask  # noqa: E402
from attnlab.models import Incidence, WordAttentionConfig, kernel  # noqa: E402
from attnlab.training import GradientDescent, Loss, Norms, Scores, WordObjective  # noqa: E402
from attnlab.training._drive import padded as as_slots  # noqa: E402
from attnlab.training._loop import Fixed, Rules, Shared, advance, start  # noqa: E402
from attnlab.training._objective import Frame  # noqa: E402
from attnlab.training._optimizers import without_step_size  # noqa: E402

_STEP = 0.1


def text_corpus() -> tuple[str, Corpus]:
    """SST-2 where ``ATTNLAB_SST2`` names its folder, else made-up text of its size: Zipf-like
    words.
    """
    folder = os.environ.get("ATTNLAB_SST2")
    if folder:
        lines = (Path(folder) / "stsa.binary.train").read_text("utf-8").splitlines()
        sentences = [[w for w in line.split()[1:] if any(c.isalnum() for c in w)] for line in lines]
        kept = [(s, line[0]) for s, line in zip(sentences, lines, strict=True) if s]
        return "SST-2", Corpus.from_tokens([s for s, _ in kept], [label for _, label in kept])
    rng = np.random.default_rng(0)
    sentences, words = 6900, 17_000
    lengths = np.clip(rng.poisson(17, sentences), 1, None)
    frequency = 1 / np.arange(1, words + 1)
    tokens = rng.choice(words, lengths.sum(), p=frequency / frequency.sum())
    rows = np.repeat(np.arange(sentences), lengths)
    names = [f"w{i}" for i in range(words)]
    labels = rng.integers(0, 2, sentences)
    return "Zipf text", Corpus.from_pairs(
        rows, tokens, labels, vocabulary=names, classes=("0", "1")
    )


def our_steps(
    config: WordAttentionConfig, corpus: Corpus, every: int | None = None
) -> Callable[[int], float]:
    """A function that takes so many steps of attnlab's loop, recording 8 words every so many steps."""
    kind = jnp.dtype("float32")
    words = jnp.arange(8, dtype=jnp.int32)
    shared = Shared(WordObjective.of(corpus, kind), {}, words, jnp.asarray(_STEP, kind))
    fixed = Fixed(Frame.of(config.init(jax.random.key(0), kind), reduced=True), jax.random.key(1))
    probes = (Loss(),) if every is None else (Loss(), Scores(), Norms())
    rules = Rules(without_step_size(GradientDescent()), probes, None, None, 512, 1)
    run = start(rules, fixed, shared)

    def go(steps: int) -> float:
        nonlocal run
        at = int(run.step)
        if every is None:
            stops, places = [at + steps], [512 if steps else 0]
        else:
            stops, places = (
                [at + k for k in range(every, steps + 1, every)],
                list(range(steps // every)),
            )
        run, rows = advance(rules, run, fixed, shared, *as_slots(stops, places, 512))
        return float(rows["loss"][0])

    return go


def two_passes(config: WordAttentionConfig, corpus: Corpus) -> Callable[[int], float]:
    """A function that pools and differentiates so many times: what no step can do without."""
    index = Incidence.of(corpus, jnp.float32)
    columns = config.init(jax.random.key(0), "float32").table().shape[1]
    start = jax.random.normal(jax.random.key(1), (index.words, columns), jnp.float32)

    @jax.jit
    def passes(count: jax.Array, e: jax.Array, table: jax.Array) -> jax.Array:
        def one(_: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            e, table = state
            pooled, mass = index.pool(e, table)
            ds, dtable = index.pool_gradient(e, table, pooled, mass, pooled)
            small = jnp.float32(1e-9)  # each round needs the last one's result
            return e + small * ds, table + small * dtable

        return jax.lax.fori_loop(jnp.int32(0), count, one, (e, table))[0]

    return lambda count: float(passes(jnp.int32(count), jnp.ones_like(start[:, 0]), start)[0])


def measure() -> list[dict[str, object]]:
    """Every ratio that the engine promises."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    from _torch_models import algebra_steps, plain_steps

    topic = TopicTask().sample(4000, key=jax.random.key(0))
    text_name, text = text_corpus()
    cases = [
        ("topic FC", topic, {"head": "fixed"}, 60.0, 1.5, 60, 4),
        ("topic TC", topic, {"head": "linear"}, 50.0, 1.5, 60, 4),
        ("topic TL", topic, {"head": "two_layer"}, 28.0, None, 60, 4),
        (
            f"{text_name} FC d=200",
            text,
            {"head": "fixed", "embedding_dim": 200},
            1100.0,
            1.0,
            60,
            1,
        ),
        (
            f"{text_name} TC d=100",
            text,
            {"head": "linear", "embedding_dim": 100},
            220.0,
            1.5,
            30,
            1,
        ),
    ]
    _same_work(topic, plain_steps, algebra_steps)
    lines = []
    for name, corpus, settings, target_plain, target_algebra, steps, plain in cases:
        config = WordAttentionConfig.for_corpus(corpus, **settings)
        model = config.init(jax.random.key(0), "float32")
        ours, padded, same, passes = (
            our_steps(config, corpus),
            plain_steps(model, corpus, _STEP),
            algebra_steps(model, corpus, _STEP),
            two_passes(config, corpus),
        )
        times = interleaved(
            {
                "ours": lambda ours=ours, n=steps: ours(n),
                "plain": lambda padded=padded, n=plain: padded(n),
                "algebra": lambda same=same, n=steps // 2: same(n),
                "passes": lambda passes=passes, n=steps: passes(n),
            }  # pyright: ignore[reportArgumentType]
        )
        ms = times["ours"] / steps * 1e3
        lines += [
            result(
                f"step {name}",
                "plain PyTorch",
                times["plain"] / plain * 1e3 / ms,
                target_plain,
                ms=ms,
            ),
            result(
                f"step {name}",
                "PyTorch, same algebra",
                times["algebra"] / (steps // 2) * 1e3 / ms,
                target_algebra,
                ms=ms,
            ),
            result(
                f"two passes over the words of {name}",
                "plain PyTorch (a bound)",
                times["plain"] / plain / (times["passes"] / steps),
                None,
                ms=times["passes"] / steps * 1e3,
            ),
        ]
    return [*lines, _recording_cost(topic), _memory()]


def _same_work(corpus: Corpus, *references) -> None:
    """The three contestants train the same model: their losses agree after 20 steps from a start
    that matters.
    """
    for head in ("fixed", "linear", "two_layer"):
        config = WordAttentionConfig.for_corpus(
            corpus, head=head, embedding_std=0.3, query_norm=1.0
        )
        model = config.init(jax.random.key(0), "float32")
        ours = our_steps(config, corpus)
        ours(20)
        expected = ours(0)
        for make in references:
            loss = make(model, corpus, _STEP)(21)
            assert abs(loss - expected) < 1e-4 * expected, (head, make.__name__, loss, expected)


def _recording_cost(corpus: Corpus) -> dict[str, object]:
    """Time of 500 steps that record 8 words at every step, over 500 steps that record none."""
    config = WordAttentionConfig.for_corpus(corpus)
    none, every = our_steps(config, corpus), our_steps(config, corpus, every=1)
    times = interleaved({"none": lambda: none(500), "every": lambda: every(500)})  # pyright: ignore[reportArgumentType]
    return result(
        "recording 8 words at every step",
        "recording none",
        times["every"] / times["none"],
        1.1,
        at_most=True,
    )


_MEMORY_JOB = """
import jax
from attnlab.models import WordAttentionConfig
from attnlab.data import TopicTask
from attnlab.training import Every, train
task = TopicTask()
corpus = task.sample(4000, key=jax.random.key(0))
run = train(WordAttentionConfig.for_corpus(corpus), corpus, steps=5000, seeds=16, when=Every(1),
            words=task.topic_word_ids, dtype="float32")
assert run.finished and run.data.score.shape == (16, 5001, 8)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 2**20)
"""


def _memory() -> dict[str, object]:
    """Peak memory in GiB of 16 seeds × 5000 steps, 8 words recorded at every step, in a process of
    its own.
    """
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY_JOB], capture_output=True, text=True, check=True
    )
    return result(
        "memory of 16 seeds × 5000 steps (GiB)", "1 GiB", float(done.stdout), 1.0, at_most=True
    )


if __name__ == "__main__":
    print(f"kernel: {kernel()}")
    for line in measure():
        print(line)
