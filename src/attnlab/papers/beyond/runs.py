"""Work functions: descent at the edge of stability, and the entropy of rows of logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.data import TopicTask
from attnlab.landscape import Curvature
from attnlab.models import (
    LinearHead,
    WordAttention,
    WordAttentionConfig,
    attention_entropy,
    entropy_bound,
)
from attnlab.papers.beyond.settings import TOO_LARGE, WORDS, EdgeSettings, EntropySettings
from attnlab.papers.lu2021.runs import task_keys
from attnlab.sweeps import RunContext
from attnlab.training import Every, GradientDescent, GradientFlow, Loss, train_model

_TOLERANCE = 0.01  # λ_max counts as converged if its residual is at most this share of it
_MOST_EVALUATIONS = 10**6  # of the gradient, in a flow
_NORMS = np.linspace(0.1, 8.0, 60)  # norms at which the extremal row is taken
_SHOWN = 24  # random rows for each T that the figure shows


def train_edge(settings: EdgeSettings, context: RunContext) -> xr.Dataset:
    """Train once; along dimension ``step``: ``loss``, ``sharpness`` λ_max with its
    ``sharpness_residual``, and ``edge`` = λ_max·step_size/2. Where Lanczos has not converged,
    ``sharpness`` and ``edge`` are nan.

    A flow has no steps: its ``edge`` is that of a step of ``step_size`` from where it is.
    """
    s = settings
    rule = GradientDescent(s.step_size)
    if s.flow:
        rule = GradientFlow(s.step_size, max_evaluations=_MOST_EVALUATIONS)
    run = train_model(
        lambda key: edge_model(s, key),
        one_hot_loss,
        edge_data(s, task_keys(context.root_seed, s.seed)[0]),
        steps=s.steps,
        seeds=[s.seed],
        optimizer=rule,
        when=Every(max(1, s.steps // s.rows)),
        record=(Loss(), Curvature(depth=s.depth)),
        root_seed=context.root_seed,
        progress=False,
    )
    data = run.data.isel(seed=0, drop=True)
    status = str(data.status.values)
    if status == "interrupted":
        raise KeyboardInterrupt
    if status != "finished":
        raise AttnlabError(f"the run did not finish: {data.reason.values}")
    if s.flow:
        data = data.assign(edge=(s.step_size / 2 * data.sharpness).where(data.step > 0))
    return where_converged(data.drop_vars(["status", "reason", "last_step"]))


def where_converged(data: xr.Dataset) -> xr.Dataset:
    """λ_max only where its residual is a small share of it."""
    sure = data.sharpness_residual <= _TOLERANCE * abs(data.sharpness)
    return data.assign(sharpness=data.sharpness.where(sure), edge=data.edge.where(sure))


def edge_data(s: EdgeSettings, key: jax.Array) -> dict[str, np.ndarray]:
    """How often each word occurs in each sentence (sentences, words), and one-hot labels
    (sentences, topics).
    """
    task = TopicTask(
        topics=s.topics,
        topic_words=s.topic_words,
        dictionary=s.words - s.topics * s.topic_words,
        noise_words=s.length - 1,
        # The task draws a noisy label from all topics, the sentence's own among them.
        label_noise=s.flipped * s.topics / (s.topics - 1),
    )
    words, labels = task.sample_sequences(s.sentences, key=key)
    counts = (words[:, :, None] == np.arange(s.words)).sum(axis=1)
    return {"counts": counts.astype(float), "target": np.eye(s.topics)[labels]}


def edge_model(s: EdgeSettings, key: jax.Array) -> WordAttention:
    """Word attention whose parts all start with ``init_std`` and all move."""

    def normal_head(key: jax.Array, d: int, classes: int) -> LinearHead:
        return LinearHead(s.init_std * jax.random.normal(key, (d, classes), "float64"))

    return WordAttentionConfig(
        words=s.words,
        classes=s.topics,
        head=normal_head,
        embedding_dim=s.embedding_dim,
        key_dim=s.embedding_dim,
        embedding_std=s.init_std,
        key_std=s.init_std,
        query_std=s.init_std,
        trained=("embeddings", "keys", "query", "head"),
    ).init(key)


def one_hot_loss(model: WordAttention, batch: dict[str, jax.Array]) -> jax.Array:
    """Mean over sentences of ``|logits − one-hot label|²``; a word that occurs twice counts twice
    in the softmax.
    """
    assert isinstance(model.head, LinearHead)
    scores = model.scores()
    weights = batch["counts"] * jnp.exp(scores - jax.lax.stop_gradient(scores.max()))[None, :]
    pooled = (weights @ (model.embeddings @ model.head.weight)) / weights.sum(axis=1, keepdims=True)
    return jnp.mean(jnp.sum((pooled - batch["target"]) ** 2, axis=1))


def measure_entropy(s: EntropySettings, context: RunContext) -> xr.Dataset:
    """Entropy and its bound of rows of logits of many norms and shapes, from even to nearly one
    word.

    - ``least``: the least of entropy − bound over rows;
    - ``tight``: the largest relative difference of the two at the extremal point, over T and σ;
    - ``wrong``: the least of entropy − bound where β is `TOO_LARGE` times too large;
    - ``entropy``, ``norm``, ``words`` (row) of some rows, for the figure.
    """
    rng = np.random.default_rng([context.root_seed, s.seed])
    shares = np.array_split(np.arange(s.rows), len(WORDS))
    rows = [random_logits(rng, len(own), t) for t, own in zip(WORDS, shares, strict=True)]
    words, norm, entropy, bound = _compared(rows)
    wrong = literal_bound(norm, words, TOO_LARGE)
    _, _, extremal, met = _compared([extremal_logits(_NORMS, t) for t in WORDS])
    shown = np.concatenate([own[:_SHOWN] for own in shares])
    return xr.Dataset(
        {
            "least": (entropy - bound).min(),
            "tight": np.abs(extremal / met - 1).max(),
            "wrong": (entropy - wrong).min(),
            "norm": ("row", norm[shown]),
            "entropy": ("row", entropy[shown]),
            "words": ("row", words[shown].astype(float)),
        }
    )


def _compared(groups: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Numbers of words, norms, entropies and bounds of rows of logits, a group for each of `WORDS`.

    Weights are padded with zeros beyond the words, so that all groups have one shape.
    """
    words = np.concatenate([np.full(len(rows), rows.shape[1]) for rows in groups])
    norm = np.concatenate([np.linalg.norm(rows, axis=1) for rows in groups])
    padded = [np.pad(softmax(rows), ((0, 0), (0, max(WORDS) - rows.shape[1]))) for rows in groups]
    entropy = attention_entropy(jnp.asarray(np.concatenate(padded)))
    bound = entropy_bound(jnp.asarray(norm), jnp.asarray(words))
    return words, norm, np.asarray(entropy), np.asarray(bound)


def random_logits(rng: np.random.Generator, rows: int, words: int) -> np.ndarray:
    """Centred rows whose norms spread over 0.01 … 30: normal ones, peaked ones, and ones near the
    extremal point.
    """
    normal = rng.normal(size=(rows, words))
    peaked = normal * np.exp(2 * rng.normal(size=(rows, words)))
    near = extremal_logits(np.ones(rows), words) + 0.1 * normal * rng.random((rows, 1))
    kind = rng.integers(0, 3, rows)
    logits = np.choose(kind[:, None], [normal, peaked, near])
    logits = logits - logits.mean(axis=1, keepdims=True)
    size = 10 ** rng.uniform(-2, 1.5, (rows, 1))
    return size * logits / np.linalg.norm(logits, axis=1, keepdims=True)


def extremal_logits(sigma: np.ndarray, words: int) -> np.ndarray:
    """The row of norm σ of the least entropy: one logit ``σ√((T−1)/T)``, all others
    ``−σ/√(T(T−1))``.
    """
    rows = np.repeat(-(np.asarray(sigma) / np.sqrt(words * (words - 1)))[:, None], words, axis=1)
    rows[:, 0] = np.asarray(sigma) * np.sqrt((words - 1) / words)
    return rows


def literal_bound(sigma: Any, words: Any, factor: float = 1.0) -> Any:
    """The bound as docs/theory.md#c5 writes it; with a ``factor`` on β it is another one, which
    does not hold.
    """
    beta = factor * np.exp(-sigma * np.sqrt(words / (words - 1)))
    mass = 1 + (words - 1) * beta
    return np.log(mass) + sigma * np.sqrt(words * (words - 1)) * beta / mass


def softmax(logits: np.ndarray) -> np.ndarray:
    """In float64, row by row."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)
