"""How many labelled sentences does each student need? One student, one seed, several sizes: of the
topic task, or of a user's texts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, TopicTask, text_parts, thinning
from attnlab.models import (
    Bags,
    WordAttention,
    WordAttentionConfig,
    bag_logits,
    bag_weights,
    moving_parts,
)
from attnlab.papers.liu2021.curve_runs import (
    InType,
    Learner,
    SampleLoss,
    SampleMeasure,
    Start,
    call,
    learning_curve,
    predicted_labels,
)
from attnlab.papers.liu2021.variant_runs import VariantLoss, VariantMeasure, train_course
from attnlab.papers.liu2021.variant_settings import Variant
from attnlab.papers.liu2021.word_settings import TF_IDF, WordSettings
from attnlab.sweeps import RunContext


def fit_words(s: WordSettings, context: RunContext) -> xr.Dataset:
    """One student's learning curve on one seed's sentences; labelled data, dimension ``size``.

    ``accuracy`` on test sentences, and what was chosen on validation sentences. Students that pool
    also tell the ``entropy`` of their attention, and on the topic task ``attention``, the mean
    weight of topic words. With a ``course`` also its curves (dimension ``step``) and ``onset``.

    Order of the sentences, start and minibatches are functions of the seed alone: students of a
    seed are paired, and with equally many sentences drawn size n has the first n of them.
    """
    task = _texts(s, context.root_seed) if s.folder else _topic_task(s, context.root_seed)
    if max(s.sizes) > len(task.train):
        raise AttnlabError(
            f"sizes={list(s.sizes)}: there are {len(task.train)} training sentences; give no more "
            "than that"
        )
    order_key, fit_key = jax.random.split(task.key)
    order = np.asarray(jax.random.permutation(order_key, len(task.train)))[: max(s.sizes)]
    # Of very many texts, only those that are used are shortened.
    rng = np.random.default_rng(s.seed)
    train = thinning.shortened(task.train.subset(order), thinning.LONGEST, rng)
    if s.student == TF_IDF:
        curve = tf_idf_curve(train, task.valid, task.test, s.sizes, s.strengths)
        return curve if s.answers else curve.drop_vars("answers")
    variant = s.variant
    learner = _counting(task, s) if variant is None else _pooling(task, variant, s)
    given = _given(task, s)
    own, valid, test = (given(part) for part in (train, task.valid, task.test))
    checks = {"valid": valid, "test": test}
    if s.answers:
        told = replace(
            learner, measure=WithAnswers(learner.measure, answer_bag), dims={"answers": ("text",)}
        )
        found = learning_curve(told, own, checks, s, key=fit_key)
        found["answers"] = found.answers.isel(size=-1)
    else:
        found = learning_curve(learner, own, checks, s, key=fit_key)
    if not s.course:
        return found
    names = ("entropy", "accuracy", *(() if task.known is None else ("attention",)))
    course, _ = train_course(learner, own, test, found, s, names=names)
    return found.merge(course)


@dataclass(frozen=True, eq=False)
class _Task:
    """Sentences over one vocabulary, the words of it that matter, where that is known, the key of
    the fits, and the words of the longest sentence: as many for all seeds, which so share a program.
    """

    train: Corpus
    valid: Corpus
    test: Corpus
    known: np.ndarray | None
    key: Array
    longest: int


def _topic_task(s: WordSettings, root_seed: int) -> _Task:
    *draws, key = jax.random.split(jax.random.fold_in(jax.random.key(root_seed), s.seed), 4)
    task = TopicTask(
        topics=s.topics,
        topic_words=s.topic_words,
        dictionary=s.dictionary,
        noise_words=s.noise_words,
    )
    counts = (s.available, s.valid_points, s.test_points)
    train, valid, test = (task.sample(n, key=draw) for n, draw in zip(counts, draws, strict=True))
    longest = max(int(part.lengths.max()) for part in (train, valid, test))
    return _Task(train, valid, test, train.word_ids(task.topic_word_ids), key, longest)


def _texts(s: WordSettings, root_seed: int) -> _Task:
    key = jax.random.fold_in(jax.random.key(root_seed), s.seed)
    draw = (root_seed, s.seed) if s.resplit else None
    train, valid, test, longest = _some_texts(s.folder, s.data, root_seed, draw)
    return _Task(train, valid, test, None, key, longest)


@lru_cache(maxsize=1)
def _some_texts(
    folder: str, data: str, root_seed: int, draw: tuple[int, int] | None
) -> tuple[Corpus, Corpus, Corpus, int]:
    """Training texts, those of validation and test: not too many, and not too long; and the length
    of the longest.

    With a ``draw`` all texts are divided again, each class evenly, into parts as large as before;
    the vocabulary stays that of the training texts as they were given.
    """
    parts = text_parts(folder)
    parts.require(data, folder)
    given = parts.train, parts.valid, parts.test
    longest = min(max(int(part.lengths.max()) for part in given), thinning.LONGEST)
    train, *others = given if draw is None else divided_again(given, draw)
    rng = np.random.default_rng(root_seed)
    checked = []
    for part in others:
        few, _ = thinning.some_of(part, thinning.LOOKED_AT)
        checked.append(thinning.shortened(few, thinning.LONGEST, rng))
    return train, *checked, longest


def divided_again(parts: Sequence[Corpus], draw: tuple[int, int]) -> tuple[Corpus, ...]:
    """The sentences of all parts, drawn into parts of the same sizes, each class evenly.

    >>> corpus = Corpus.from_tokens([["a"], ["b"]] * 30, labels=[0, 1] * 30)
    >>> parts = divided_again(corpus.split(0.8, 0.1, 0.1, seed=0), (0, 5))
    >>> [len(part) for part in parts], [int(part.labels.sum()) for part in parts]
    ([48, 6, 6], [24, 3, 3])
    """
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    whole = replace(
        parts[0],
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        words=np.concatenate([part.words for part in parts]),
        counts=np.concatenate([part.counts for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
    )
    seed = int(np.random.SeedSequence(draw).generate_state(1)[0])
    return whole.split(*(len(part) / len(whole) for part in parts), seed=seed)


def _given(task: _Task, s: WordSettings) -> Callable[[Corpus], dict[str, Any]]:
    """What a student is given of sentences."""
    if s.variant is not None:
        return partial(bag_samples, length=task.longest, known=task.known, dtype=s.dtype)
    assert task.known is not None, "only the topic task has counts of known words"
    return partial(count_samples, known=task.known, dtype=s.dtype)


def _pooling(task: _Task, variant: Variant, s: WordSettings) -> Learner:
    """``logits = Wᵀ Σ_w a_w ν_w`` over the words of a sentence, ``a = norm(scores)``; the scores of
    uniform weights stay at zero.
    """
    # With one key coordinate and |q| = 1 the key is the score itself, but for its sign.
    attends = variant.normaliser != "uniform"
    config = WordAttentionConfig.for_corpus(
        task.train,
        head="linear",
        embedding_dim=s.embedding_dim,
        embedding_std=s.embedding_std,
        key_dim=1,
        query_norm=1.0,
        trained=("embeddings", "keys", "head") if attends else ("embeddings", "head"),
        normaliser=variant.normaliser,
    )
    return Learner(
        InType(Start(config), s.dtype),
        VariantLoss(answer_bag, weigh_bag, variant.penalty, variant.strength),
        VariantMeasure(answer_bag, weigh_bag, "accuracy"),
        trained=moving_parts,
    )


def _counting(task: _Task, s: WordSettings) -> Learner:
    """A network on the counts of known words."""
    assert task.known is not None, "only the topic task has counts of known words"
    start = _CountsStart(len(task.known), len(task.train.classes), s.hidden, s.dtype)
    return Learner(start, SampleLoss(call), SampleMeasure(call, "accuracy"))


@dataclass(frozen=True)
class _CountsStart:
    words: int
    classes: int
    hidden: int
    dtype: str

    def __call__(self, key: Array) -> eqx.nn.MLP:
        kind = jnp.dtype(self.dtype)
        return eqx.nn.MLP(self.words, self.classes, self.hidden, 1, key=key, dtype=kind)


@dataclass(frozen=True)
class WithAnswers:
    """What a measure says, and the class that ``answers`` names for each test text."""

    measure: Callable[[Any, Any], dict[str, Array]]
    answer: Callable[[Any, Any], Array]

    def __call__(self, model: Any, checks: Any) -> dict[str, Array]:
        """All of it, for one model."""
        test = checks["test"]
        outputs = jax.vmap(self.answer, (None, 0))(model, test["x"])
        found = self.measure(model, checks)
        return found | {"answers": predicted_labels(outputs, test["y"])}


def answer_bag(model: WordAttention, sample: dict[str, Any]) -> Array:
    """The logits of one sentence."""
    return bag_logits(model, sample["bag"])


def weigh_bag(model: WordAttention, sample: dict[str, Any]) -> Array:
    """The attention of the places of one sentence."""
    return bag_weights(model, sample["bag"])


def bag_samples(
    corpus: Corpus, length: int, known: np.ndarray | None, dtype: str
) -> dict[str, Any]:
    """Sentences as rectangles; ``given``: equal weights on the words that matter, where known."""
    bags = Bags.of(corpus, length)
    x: dict[str, Any] = {"bag": bags}
    if known is not None:
        matter = np.isin(np.asarray(bags.words), known) & np.asarray(bags.present)
        x["given"] = jnp.asarray(matter / np.maximum(matter.sum(axis=1, keepdims=True), 1), dtype)
    return {"x": x, "y": bags.labels}


def count_samples(corpus: Corpus, known: np.ndarray, dtype: str) -> dict[str, Any]:
    """How often each known word occurs in each sentence."""
    column = np.full(len(corpus.vocabulary), -1)
    column[known] = np.arange(len(known))
    counted, there = np.zeros((len(corpus), len(known))), column[corpus.words] >= 0
    counted[corpus.rows[there], column[corpus.words[there]]] = corpus.counts[there]
    return {"x": jnp.asarray(counted, dtype), "y": jnp.asarray(corpus.labels)}


def tf_idf_curve(
    train: Corpus,
    valid: Corpus,
    test: Corpus,
    sizes: tuple[int, ...],
    strengths: tuple[float, ...] = WordSettings.strengths,
) -> xr.Dataset:
    """TF-IDF with logistic regression on the first n training sentences; C by the least loss on
    validation sentences. ``answers`` (text): the class that the largest n names for each test
    sentence.

    Where the first n sentences are all of one class, that class is the answer.

    >>> from attnlab.data import Corpus
    >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "film"]] * 20, labels=[1, 0] * 20)
    >>> tf_idf_curve(corpus, corpus, corpus, (1, 40)).accuracy.values.tolist()
    [0.5, 1.0]
    """
    rows = []
    answers = np.zeros(len(test), np.int32)
    for n in sizes:
        part = train.subset(np.arange(n))
        seen = np.unique(part.labels)
        if len(seen) == 1:
            answers = np.full(len(test), seen[0], np.int32)
            rows.append((float((answers == test.labels).mean()), np.nan, np.nan))
            continue
        weigh = TfidfTransformer(sublinear_tf=True).fit(_counts(part))
        known = valid.subset(np.isin(valid.labels, seen))
        x, x_valid, x_test = (weigh.transform(_counts(each)) for each in (part, known, test))
        best = (np.inf, np.nan, np.nan)
        for strength in strengths:
            model = LogisticRegression(C=strength, max_iter=1000).fit(x, part.labels)
            loss = log_loss(known.labels, model.predict_proba(x_valid), labels=model.classes_)
            if loss < best[0]:
                answers = model.predict(x_test).astype(np.int32)
                best = (loss, float((answers == test.labels).mean()), strength)
        rows.append((best[1], best[0], best[2]))
    accuracy, loss, strength = np.array(rows).T
    columns = {"accuracy": accuracy, "valid_loss": loss, "strength": strength}
    found = xr.Dataset(
        {name: ("size", values) for name, values in columns.items()}, {"size": list(sizes)}
    )
    return found.assign(answers=("text", answers))


def _counts(corpus: Corpus):
    """How often each word occurs in each sentence, sparse."""
    shape = (len(corpus), len(corpus.vocabulary))
    return csr_matrix((corpus.counts.astype(np.float64), corpus.words, corpus.offsets), shape=shape)
