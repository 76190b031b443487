"""One variant of attention pooling on sentences: of the topic task, or of a user's texts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.sweeps import RunContext

if TYPE_CHECKING:
    from jax import Array

    from attnlab.data import Corpus
    from attnlab.models import WordAttention

WORK = "attnlab.studies._compare_words:fit_words"
LOOKED_AT = 2000  # validation and test sentences that are looked at, at most
_LONGEST = (
    256  # words of a text that are read: all are padded to the longest, which must not be a book
)


@dataclass(frozen=True)
class WordSettings:
    """One variant of attention pooling at several numbers of labelled sentences.

    - ``seed`` draws sentences (of the topic task), their order, start and minibatches; ``arm`` is
      only a label.
    - ``variant``: as ``Variant.of`` takes it. ``"uniform"`` is mean pooling. A penalty on the query
      has no meaning, since every word has its own score; a prior needs the topic task, which knows
      the words that matter.
    - ``folder``, ``data``: what ``Prepared.save`` wrote, and its hash; without a folder, the topic
      task of ``topics`` … ``noise_words``.
    - ``step_sizes``, ``weight_decays``: all pairs are tried, and chosen by the loss on validation
      sentences.
    - ``course``: whether one more training at the largest size is followed step by step.
    """

    arm: str = ""
    seed: int = 0
    variant: str = "softmax"
    folder: str = ""
    data: str = ""
    sizes: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    steps: int = 600
    batch_size: int = 64
    step_sizes: tuple[float, ...] = (0.03, 0.1)
    weight_decays: tuple[float, ...] = (0.0, 0.1)
    embedding_dim: int = 10
    topics: int = 4
    topic_words: int = 2
    dictionary: int = 2000
    noise_words: int = 20
    course: bool = False
    dtype: str = "float32"

    def __post_init__(self):
        from attnlab.studies._compare_variants import Variant

        penalty = Variant.of(self.variant).penalty
        if penalty == "l1" or (self.folder and "prior" in penalty):
            why = (
                "every word has its own score"
                if penalty == "l1"
                else "nobody knows which words of a text matter"
            )
            raise AttnlabError(
                f"variant {self.variant!r}: the penalty {penalty!r} has no meaning here, since "
                f"{why}; leave it out, or "
                "take a teacher (--task hard)"
            )
        if not self.sizes or min(self.sizes) < 1 or (np.diff(self.sizes) <= 0).any():
            raise AttnlabError(
                f"sizes={list(self.sizes)}: expected increasing positive numbers of sentences"
            )


def fit_words(s: WordSettings, context: RunContext) -> xr.Dataset:
    """One variant's learning curve; labelled data, dimension ``size``.

    ``accuracy`` on test sentences, ``entropy`` of attention there, and of the topic task
    ``attention``, on topic words; beside them what was chosen. With a ``course`` also its curves
    (dimension ``step``) and ``onset``.
    """
    import jax

    from attnlab.models import moving_parts
    from attnlab.studies._compare_variants import Variant, VariantLoss, VariantMeasure
    from attnlab.studies._pooling import curve_order
    from attnlab.studies._text_sample import shortened
    from attnlab.training import Recipe, choose, fit_grid

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
    parts = [shortened(part, longest, rng) for part in (train.subset(order), valid, test)]
    own, checked, tested = (_samples(part, longest, known, s.dtype) for part in parts)
    answer, weigh = WordAnswer(variant.normaliser), WordWeights(variant.normaliser)
    loss, measure = (
        VariantLoss(answer, weigh, variant.penalty, variant.strength),
        VariantMeasure(answer, weigh),
    )
    start = _start(train, s)
    found = choose(
        fit_grid(
            start,
            loss,
            measure,
            own,
            {"valid": checked, "test": tested},
            sizes=s.sizes,
            key=jax.random.split(curve_key)[1],
            step_sizes=s.step_sizes,
            weight_decays=s.weight_decays,
            recipe=Recipe(s.steps, s.batch_size),
            trained=moving_parts,
        )
    )
    if not s.course:
        return found
    from attnlab.studies._compare_course import train_course

    best, names = (
        found.isel(size=-1),
        ("entropy", "accuracy", *(() if known is None else ("attention",))),
    )
    course, _ = train_course(
        start,
        loss,
        measure,
        own,
        tested,
        names=names,
        steps=s.steps,
        step_size=float(best.step_size),
        weight_decay=float(best.weight_decay),
        batch_size=s.batch_size,
        seed=s.seed,
        moving=moving_parts,
        dtype=s.dtype,
    )
    return found.merge(course)


@lru_cache(maxsize=1)
def _texts(folder: str, data: str, root_seed: int) -> tuple[Corpus, Corpus, Corpus]:
    """A user's corpora: many validation and test texts thinned out."""
    from attnlab.studies._text_prepare import open_prepared

    train, valid, test, _, content = open_prepared(folder)
    if content != data:
        raise AttnlabError(
            f"{folder} holds texts with the content {content}, expected {data}: start again"
        )
    rng = np.random.default_rng(root_seed)
    checked, tested = (
        part.subset(np.sort(rng.permutation(len(part))[:LOOKED_AT])) for part in (valid, test)
    )
    return train, checked, tested


def _corpora(
    s: WordSettings, root_seed: int, draws: list[Array]
) -> tuple[Corpus, Corpus, Corpus, np.ndarray | None]:
    """Training, validation and test sentences, and which words matter, where that is known."""
    if s.folder:
        return *_texts(s.folder, s.data, root_seed), None
    from attnlab.data import TopicTask

    task = TopicTask(
        topics=s.topics,
        topic_words=s.topic_words,
        dictionary=s.dictionary,
        noise_words=s.noise_words,
    )
    counts = (max(s.sizes), 500, LOOKED_AT)
    train, valid, test = (task.sample(n, key=key) for n, key in zip(counts, draws, strict=True))
    return train, valid, test, train.word_ids(task.topic_word_ids)


def _samples(corpus: Corpus, length: int, known: np.ndarray | None, dtype: str) -> dict[str, Any]:
    """Sentences as rectangles; ``given``: equal weights on the words that matter."""
    import jax.numpy as jnp

    from attnlab.models import Bags

    bags = Bags.of(corpus, length)
    x = {"words": bags.words, "there": bags.there}
    if known is not None:
        matter = np.isin(np.asarray(bags.words), known) & np.asarray(bags.there)
        x["given"] = jnp.asarray(matter / np.maximum(matter.sum(axis=1, keepdims=True), 1), dtype)
    return {"x": x, "y": bags.labels}


def _start(train: Corpus, s: WordSettings) -> Any:
    """Embeddings, scores and a linear head, as the study of pooling starts them."""
    from attnlab.models import WordAttentionConfig
    from attnlab.studies._pooling import _PoolStart as PoolStart

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
        from attnlab.models import make_normaliser

        return make_normaliser(self.normaliser)(model.scores()[sample["words"]], sample["there"])


@dataclass(frozen=True)
class WordAnswer:
    """Logits of one sentence: all words are projected once, then pooled (docs/theory.md#a2)."""

    normaliser: str

    def __call__(self, model: WordAttention, sample: dict[str, Any]) -> Array:
        """The logits."""
        weights = WordWeights(self.normaliser)(model, sample)
        return model.head.finish(weights @ model.table()[sample["words"]])
