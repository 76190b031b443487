"""Minibatches of a corpus that stays on disk: memory-mapped arrays, read where a step needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from attnlab.data import Corpus
from attnlab.models import Tokens, pool_tokens, too_wide
from attnlab.training._objective import Capacity, Frame, evaluate_tokens
from attnlab.training._probes import (
    AbstractProbe,
    Accuracy,
    GradientNorm,
    Loss,
    Measure,
    Norms,
    Scores,
)
from attnlab.training._problem import AbstractObjective, Evaluation, Trained

_BLOCK = 8192  # sentences per block for the loss on all sentences


def can_stay_on_disk(corpus: Corpus, probes: Sequence[AbstractProbe]) -> bool:
    """Whether a corpus is memory-mapped and no probe needs all of it at once."""
    light = all(
        isinstance(probe, Loss | Scores | Norms | GradientNorm | Measure)
        or (isinstance(probe, Accuracy) and probe.split is not None)
        for probe in probes
    )
    return light and all(
        _is_mapped(getattr(corpus, name)) for name in ("offsets", "words", "counts", "labels")
    )


def _is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


class MappedObjective(AbstractObjective[Frame]):
    """Mean cross-entropy of word attention on a corpus on disk, for minibatches.

    No array is copied: JAX uses the mapped memory itself, and the operating system caches what was
    used recently. The corpus may be larger than the memory; each step reads its own sentences.
    """

    offsets: Int[Array, "bounds"]
    words: Int[Array, "entries"]
    counts: Int[Array, "entries"]
    labels: Int[Array, "sentences"]
    capacity: Capacity = eqx.field(static=True)
    block_capacity: int = eqx.field(static=True)
    guard: bool = eqx.field(static=True, default=True)

    @classmethod
    def of(cls, corpus: Corpus, batch_size: int) -> MappedObjective:
        """Pass the mapped arrays to JAX."""
        sizes = np.diff(corpus.offsets).astype(np.int32)
        blocks = np.add.reduceat(sizes, np.arange(0, len(sizes), _BLOCK), dtype=np.int64)
        arrays = {
            name: jax.device_put(getattr(corpus, name), may_alias=True)
            for name in ("offsets", "words", "counts", "labels")
        }
        capacity = Capacity.of(corpus, batch_size)
        return cls(**arrays, capacity=capacity, block_capacity=int(blocks.max()))

    @property
    def examples(self) -> int:
        """Number of sentences."""
        return self.labels.shape[0]

    def guarding(self, on: bool) -> MappedObjective:
        """The same data with or without the guard.

        Minibatches are always computed safely. Without the guard they still report scores that are
        too wide, for the objectives of other splits.
        """
        return MappedObjective(
            self.offsets,
            self.words,
            self.counts,
            self.labels,
            self.capacity,
            self.block_capacity,
            on,
        )

    def evaluate(
        self, frame: Frame, trained: Trained, batch: Int[Array, "batch"] | None, *, context: bool
    ) -> Evaluation:
        """Loss and gradient on a minibatch."""
        assert batch is not None, "a corpus on disk is trained on in minibatches"
        scores = frame.scores(trained)
        tokens = self._tokens(batch, self.capacity.entries(guard=self.guard), scores.dtype)
        wide = jnp.zeros((), bool) if self.guard else too_wide(scores)
        wide = wide | self.capacity.too_small(self.offsets, batch, guard=self.guard)
        return evaluate_tokens(frame, trained, tokens, context=context, wide=wide)

    def loss(self, frame: Frame, trained: Trained) -> Float[Array, ""]:
        """Loss on all sentences, block by block."""
        scores, table = frame.scores(trained), frame.valued.table(trained["values"])
        head = frame.valued.head(trained["values"])
        count = self.examples

        def add(block: Int[Array, ""], total: Float[Array, ""]) -> Float[Array, ""]:
            numbers = block * _BLOCK + jnp.arange(_BLOCK, dtype=jnp.int64)
            inside = numbers < count
            # Numbers beyond the last sentence have no entries, so the capacity of a block suffices.
            tokens = self._tokens(
                jnp.where(inside, numbers, count), self.block_capacity, scores.dtype
            )
            logits = jax.vmap(head.finish)(pool_tokens(scores, table, tokens))
            each = optax.softmax_cross_entropy_with_integer_labels(logits, tokens.labels)
            return total + jnp.sum(jnp.where(inside, each, 0))

        blocks = -(-count // _BLOCK)
        return jax.lax.fori_loop(0, blocks, add, jnp.zeros((), scores.dtype)) / count

    def _tokens(self, sentences: Int[Array, "batch"], capacity: int, dtype: Any) -> Tokens:
        """Sentences as tokens; a number beyond the last one is an empty sentence."""
        last = self.offsets.shape[0] - 1
        starts, ends = self.offsets[sentences], self.offsets[jnp.minimum(sentences + 1, last)]
        labels = self.labels[jnp.minimum(sentences, self.examples - 1)]
        return Tokens.between(starts, ends, self.words, self.counts, labels, capacity, dtype)
