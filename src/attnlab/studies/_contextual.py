"""One run of attention over contextual inputs: a convolution over neighbouring words (beyond Lu et
al. 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array

from attnlab.dynamics import area_under_curve
from attnlab.models import ContextualAttention, ContextualConfig, contextual_logits
from attnlab.training import Every, InstantProbe, Loss, Moment, train_model

if TYPE_CHECKING:
    from attnlab.studies._topic import TopicSettings
    from attnlab.tasks import TopicTask


@dataclass(frozen=True)
class Look(InstantProbe):
    """What is recorded of the first ``words`` words, as word attention records it.

    ``norm`` is that of the word's own part of the convolution's output, ``ν_w C_0``: what the
    attention acts on in place of an embedding. ``embedding_norm`` is |ν_w|.
    """

    words: int

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number a word, or one."""
        dims: dict[str, tuple[str, ...]] = {}
        for name in ("score", "norm", "embedding_norm", "attention"):
            dims[name] = ("word",)
        for name in ("accuracy_test", "separation_score", "separation_norm"):
            dims[name] = ()
        return dims

    def look(self, moment: Moment) -> dict[str, Array]:
        """Everything from the model and its sentences."""
        model: Any = moment.model()
        scores = model.scores()
        outputs = model.embeddings @ model.kernel[model.kernel.shape[0] // 2]
        norms = jnp.linalg.norm(outputs, axis=1)
        data: Any = moment.data
        sentences = data.data["words"]
        weights = jax.nn.softmax(scores[sentences], axis=1)
        held = jnp.arange(self.words)[:, None, None] == sentences[None].astype(jnp.int64)
        present = jnp.sum(jnp.any(held, axis=2), axis=1, dtype=scores.dtype)
        attention = jnp.sum(jnp.where(held, weights[None], 0), axis=(1, 2)) / present
        test: Any = moment.parts["test"]
        found = jnp.argmax(contextual_logits(model, test.data["words"]), axis=1).astype(jnp.int32)
        right = found == test.data["labels"]

        chosen = jnp.arange(self.words)
        return {
            "score": scores[: self.words],
            "norm": norms[: self.words],
            "attention": attention,
            "embedding_norm": jnp.linalg.norm(model.embeddings[: self.words], axis=1),
            "accuracy_test": jnp.mean(right, dtype=scores.dtype),
            "separation_score": area_under_curve(scores, chosen),
            "separation_norm": area_under_curve(norms, chosen),
        }


def _loss(model: ContextualAttention, batch: dict[str, Array]) -> Array:
    logits = contextual_logits(model, batch["words"])
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()


def _moving(parts: tuple[str, ...]):
    """A filter for the parts that move: those that are named, and the convolution."""

    def chosen(model: ContextualAttention) -> ContextualAttention:
        return jax.tree_util.tree_map_with_path(
            lambda path, _: path[0].name in (*parts, "kernel"), model
        )

    return chosen


def train_contextual(s: TopicSettings, task: TopicTask, keys: Any, rule: Any, root_seed: int):
    """The trajectory of one run, with the names of ``train``."""
    config = ContextualConfig(s.config(), s.reach or 0)

    def sentences(count: int, key: Any) -> dict[str, np.ndarray]:
        words, labels = task.sample_sequences(count, key=key)
        return {"words": words.astype(np.int32), "labels": labels.astype(np.int32)}

    count = len(task.topic_word_ids)
    run = train_model(
        config.init,
        _loss,
        sentences(s.sentences, keys[0]),
        steps=s.steps,
        seeds=[s.seed],
        optimizer=rule,
        record=[Loss(), Look(count)],
        when=Every(max(1, s.steps // s.rows)),
        batch_size=s.batch_size,
        splits={"test": sentences(s.test_sentences, keys[1])},
        trained=_moving(config.base.trained_parts),
        root_seed=root_seed,
        dtype=s.dtype,
        progress=False,
    )
    query = run.model(s.seed).query
    names = xr.DataArray(list(task.vocabulary[:count]), dims="word")
    run.data.coords["word"] = names
    run.data["query_norm"] = ("seed", [float(jnp.linalg.norm(query))])
    return run
