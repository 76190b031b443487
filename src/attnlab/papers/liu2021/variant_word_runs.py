"""One variant of attention pooling on sentences: of the topic task, or of a user's texts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, TopicTask, text_parts, thinning
from attnlab.models import (
    Bags,
    WordAttention,
    WordAttentionConfig,
    make_normaliser,
    moving_parts,
)
from attnlab.papers.liu2021.curve_runs import Learner, learning_curve
from attnlab.papers.liu2021.pooling_runs import PoolStart, curve_order
from attnlab.papers.liu2021.variant_runs import VariantLoss, VariantMeasure, train_course
from attnlab.papers.liu2021.variant_settings import LOOKED_AT, Variant, WordSettings
from attnlab.runs import RunContext

# Words of a text that are read: all are padded to the longest, which must not be a book.
_LONGEST = 256


def fit_words(s: WordSettings, context: RunContext) -> xr.Dataset:
    """One variant's learning curve; labelled data, dimension ``size``.

    ``accuracy`` on test sentences, ``entropy`` of attention there, and of the topic task
    ``attention``, on topic words; beside them what was chosen. With a ``course`` also its curves
    (dimension ``step``) and ``onset``.
    """
    variant = Variant.of(s.variant)
    *draws, curve_key = jax.random.split(
        jax.random.fold_in(jax.random.key(context.root_seed), s.seed), 4
    )
    train, valid, test, known = _corpora(s, context.root_seed, draws)
    if max(s.sizes) > len(train):
        raise AttnlabError(
            f"sizes={list(s.sizes)}: there are {len(train)} training sentences; give no more than "
            "that"
        )
    order = curve_order(curve_key, len(train))[: max(s.sizes)]
    longest = min(max(int(part.lengths.max()) for part in (train, valid, test)), _LONGEST)
    rng = np.random.default_rng(context.root_seed)
    parts = [thinning.shortened(part, longest, rng) for part in (train.subset(order), valid, test)]
    own, checked, tested = (word_samples(part, longest, known, s.dtype) for part in parts)
    answer, weigh = WordAnswer(variant.normaliser), WordWeights(variant.normaliser)
    learner = Learner(
        _start(train, s),
        VariantLoss(answer, weigh, variant.penalty, variant.strength),
        VariantMeasure(answer, weigh, "accuracy"),
        trained=moving_parts,
    )
    checks = {"valid": checked, "test": tested}
    found = learning_curve(learner, own, checks, s, key=jax.random.split(curve_key)[1])
    if not s.course:
        return found
    names = ("entropy", "accuracy", *(() if known is None else ("attention",)))
    course, _ = train_course(learner, own, tested, found, s, names=names)
    return found.merge(course)


@lru_cache(maxsize=1)
def _texts(folder: str, data: str, root_seed: int) -> tuple[Corpus, Corpus, Corpus]:
    """A user's corpora: many validation and test texts thinned out."""
    parts = text_parts(folder)
    parts.require(data, folder)
    rng = np.random.default_rng(root_seed)
    checked, tested = (
        part.subset(np.sort(rng.permutation(len(part))[:LOOKED_AT]))
        for part in (parts.valid, parts.test)
    )
    return parts.train, checked, tested


def _corpora(
    s: WordSettings, root_seed: int, draws: list[Array]
) -> tuple[Corpus, Corpus, Corpus, np.ndarray | None]:
    """Training, validation and test sentences, and which words matter, where that is known."""
    if s.folder:
        return *_texts(s.folder, s.data, root_seed), None
    task = TopicTask(
        topics=s.topics,
        topic_words=s.topic_words,
        dictionary=s.dictionary,
        noise_words=s.noise_words,
    )
    counts = (max(s.sizes), 500, LOOKED_AT)
    train, valid, test = (task.sample(n, key=key) for n, key in zip(counts, draws, strict=True))
    return train, valid, test, train.word_ids(task.topic_word_ids)


def word_samples(
    corpus: Corpus, length: int, known: np.ndarray | None, dtype: str
) -> dict[str, Any]:
    """Sentences as rectangles; ``given``: equal weights on the words that matter."""
    bags = Bags.of(corpus, length)
    x = {"words": bags.words, "there": bags.there}
    if known is not None:
        matter = np.isin(np.asarray(bags.words), known) & np.asarray(bags.there)
        x["given"] = jnp.asarray(matter / np.maximum(matter.sum(axis=1, keepdims=True), 1), dtype)
    return {"x": x, "y": bags.labels}


def _start(train: Corpus, s: WordSettings) -> PoolStart:
    """Embeddings, scores and a linear head, as learning curves of pooling start them."""
    config = WordAttentionConfig.for_corpus(
        train,
        head="linear",
        embedding_dim=s.embedding_dim,
        embedding_std=1e-6,
        key_dim=1,
        query_norm=1.0,
        trained=("embeddings", "keys", "head"),
    )
    return PoolStart(config, s.dtype)


@dataclass(frozen=True)
class WordWeights:
    """Attention of the places of one sentence under a normaliser."""

    normaliser: str

    def __call__(self, model: WordAttention, sample: dict[str, Any]) -> Array:
        """The weights."""
        return make_normaliser(self.normaliser)(model.scores()[sample["words"]], sample["there"])


@dataclass(frozen=True)
class WordAnswer:
    """Logits of one sentence: all words are projected once, then pooled (docs/theory.md#a2)."""

    normaliser: str

    def __call__(self, model: WordAttention, sample: dict[str, Any]) -> Array:
        """The logits."""
        weights = WordWeights(self.normaliser)(model, sample)
        return model.head.finish(weights @ model.table()[sample["words"]])
