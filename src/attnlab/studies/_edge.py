"""Does plain descent train at the edge of stability? The sweep behind docs/theory.md#c5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.papers.lu2021.runs import task_keys
from attnlab.studies._measure import side_by_side
from attnlab.studies._study import Data, Scale, Study, arm_plan
from attnlab.sweeps import RunContext

if TYPE_CHECKING:
    import jax

    from attnlab.models import WordAttention

WORK = "attnlab.studies._edge:train_edge"
CONTROL = 0.02  # a step so small that training does not get to the edge
_TOLERANCE = 0.01  # λ_max counts as converged if its residual is at most this share of it
_LAST = 0.2  # the share of training that is averaged
_STEP_SIZES = (0.5, 1.0, 2.0, CONTROL)
# Quick runs are looked at less often, not shorter: the smallest of the large steps is at the edge
# only late.
_ROWS: dict[Scale, int] = {"quick": 50, "paper": 100}


@dataclass(frozen=True)
class EdgeSettings:
    """One run of full-batch descent on word attention; the defaults are those of docs/theory.md#c5.

    - ``seed`` draws sentences and start; ``arm`` is a label and nothing else.
    - Sentences of ``length`` words, one of them of its topic, from a vocabulary of ``words``; a
      share ``flipped`` of the labels (in expectation) is another class than the topic's. The loss
      is the mean over sentences of ``|logits − one-hot label|²``.
    - Embeddings, keys, query and the linear head are all trained, from ``init_std`` per entry.
    - ``rows``: how often λ_max is looked at, by ``depth`` Lanczos steps.
    """

    arm: str = ""
    seed: int = 0
    step_size: float = 1.0
    steps: int = 10_000
    rows: int = 100
    depth: int = 32
    topics: int = 2
    topic_words: int = 4
    words: int = 60
    length: int = 8
    sentences: int = 200
    embedding_dim: int = 8
    flipped: float = 0.1
    init_std: float = 0.3

    def __post_init__(self):
        for name in ("steps", "rows", "depth", "sentences", "embedding_dim"):
            if getattr(self, name) < 1:
                raise AttnlabError(f"{name}={getattr(self, name)}: expected at least 1")
        if not self.step_size > 0 or not self.init_std > 0:
            raise AttnlabError(
                f"step_size={self.step_size}, init_std={self.init_std}: expected positive numbers"
            )
        if self.words <= self.topics * self.topic_words or self.length < 1:
            raise AttnlabError(
                f"words={self.words} must exceed the {self.topics * self.topic_words} topic "
                "words, and "
                f"length={self.length} be at least 1"
            )
        if not 0 <= self.flipped <= 1 - 1 / self.topics:
            raise AttnlabError(
                f"flipped={self.flipped}: expected 0 to {1 - 1 / self.topics:.3g}, where labels "
                "are chance"
            )


def train_edge(settings: EdgeSettings, context: RunContext) -> xr.Dataset:
    """Train once; along dimension ``step``: ``loss``, ``sharpness`` λ_max with its
    ``sharpness_residual``, and ``edge`` = λ_max·step_size/2. Where Lanczos has not converged,
    ``sharpness`` and ``edge`` are nan.
    """
    from attnlab.landscape import Curvature
    from attnlab.training import Every, GradientDescent, Loss, train_model

    s = settings
    run = train_model(
        lambda key: edge_model(s, key),
        one_hot_loss,
        edge_data(s, task_keys(context.root_seed, s.seed)[0]),
        steps=s.steps,
        seeds=[s.seed],
        optimizer=GradientDescent(s.step_size),
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
    return _converged(data.drop_vars(["status", "reason", "last_step"]))


def _converged(data: xr.Dataset) -> xr.Dataset:
    """λ_max only where its residual is a small share of it."""
    sure = data.sharpness_residual <= _TOLERANCE * abs(data.sharpness)
    return data.assign(sharpness=data.sharpness.where(sure), edge=data.edge.where(sure))


def edge_data(s: EdgeSettings, key: jax.Array) -> dict[str, np.ndarray]:
    """How often each word occurs in each sentence (sentences, words), and one-hot labels
    (sentences, topics).
    """
    from attnlab.data import TopicTask

    task = TopicTask(
        topics=s.topics,
        topic_words=s.topic_words,
        dictionary=s.words - s.topics * s.topic_words,
        noise_words=s.length - 1,
        label_noise=s.flipped * s.topics / (s.topics - 1),
    )
    words, labels = task.sample_sequences(s.sentences, key=key)
    counts = (words[:, :, None] == np.arange(s.words)).sum(axis=1)
    return {"counts": counts.astype(float), "target": np.eye(s.topics)[labels]}


def edge_model(s: EdgeSettings, key: jax.Array) -> WordAttention:
    """Word attention whose parts all start with ``init_std`` and all move."""
    from attnlab.models import WordAttentionConfig

    return WordAttentionConfig(
        words=s.words,
        classes=s.topics,
        head=_normal_head(s.init_std),
        embedding_dim=s.embedding_dim,
        key_dim=s.embedding_dim,
        embedding_std=s.init_std,
        key_std=s.init_std,
        query_std=s.init_std,
        trained=("embeddings", "keys", "query", "head"),
    ).init(key)


def _normal_head(std: float) -> Any:
    def make(key: jax.Array, d: int, classes: int):
        import jax

        from attnlab.models import LinearHead

        return LinearHead(std * jax.random.normal(key, (d, classes), "float64"))

    return make


def one_hot_loss(model: WordAttention, batch: dict[str, jax.Array]) -> jax.Array:
    """Mean over sentences of ``|logits − one-hot label|²``; a word that occurs twice counts twice
    in the softmax.
    """
    import jax
    import jax.numpy as jnp

    from attnlab.models import LinearHead

    assert isinstance(model.head, LinearHead)
    scores = model.scores()
    weights = batch["counts"] * jnp.exp(scores - jax.lax.stop_gradient(scores.max()))[None, :]
    pooled = (weights @ (model.embeddings @ model.head.weight)) / weights.sum(axis=1, keepdims=True)
    return jnp.mean(jnp.sum((pooled - batch["target"]) ** 2, axis=1))


def _edge(scale: Scale, seeds: int):
    """Large steps that reach the edge, and one that is too small for it."""
    arms = {str(size): {"step_size": size, "rows": _ROWS[scale]} for size in _STEP_SIZES}
    return arm_plan(WORK, "edge", arms, seeds)


def _measure_edge(arms: Data) -> Data:
    """Of each step size and seed the course of λ_max·step/2 and its mean over the last fifth of
    training.
    """
    parts = [
        data[["loss", "sharpness", "edge"]].assign(
            last=_end(data.edge).mean("step"), converged=_end(data.edge).notnull().mean("step")
        )
        for data in arms.values()
    ]
    return {"edge": side_by_side(parts, "step_size", [float(label) for label in arms])}


def _end(edge: xr.DataArray) -> xr.DataArray:
    return edge.sel(step=edge.step > (1 - _LAST) * edge.step.max())


EDGE = Study("edge", _edge, _measure_edge)
