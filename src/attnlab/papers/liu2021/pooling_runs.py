"""Mean against attention pooling: how many labelled sentences each needs, on the topic task or on
any bags of words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, TopicTask
from attnlab.models import WordAttention, WordAttentionConfig, moving_parts
from attnlab.papers.liu2021.curve_runs import SampleLoss, SampleMeasure
from attnlab.papers.liu2021.pooling_settings import (
    POOLING,
    STEP_SIZES,
    STUDENTS,
    WEIGHT_DECAYS,
    PoolingSettings,
    check_sizes,
)
from attnlab.sweeps import RunContext
from attnlab.training import Recipe, choose, fit_grid


def fit_pooling(s: PoolingSettings, context: RunContext) -> xr.Dataset:
    """One student's learning curve on one seed's sentences of the topic task; see ``pool_curve``.

    Attention pooling also has ``attention``, the mean attention that topic words get in test
    sentences.
    """
    task = TopicTask(
        topics=s.topics,
        topic_words=s.topic_words,
        dictionary=s.dictionary,
        noise_words=s.noise_words,
    )
    *draws, curve_key = jax.random.split(
        jax.random.fold_in(jax.random.key(context.root_seed), s.seed), 4
    )
    counts = (s.sentences, s.valid_sentences, s.test_sentences)
    train, valid, test = (task.sample(n, key=key) for n, key in zip(counts, draws, strict=True))
    return pool_curve(
        train,
        valid,
        test,
        s.sizes,
        student=s.student,
        key=curve_key,
        words=task.topic_word_ids,
        recipe=Recipe(s.steps, s.batch_size, optimizer=s.optimizer),
        step_sizes=s.step_sizes,
        weight_decays=s.weight_decays,
        embedding_dim=s.embedding_dim,
        embedding_std=s.embedding_std,
        hidden=s.hidden,
        dtype=s.dtype,
    )


def pool_curve(
    train: Corpus,
    valid: Corpus,
    test: Corpus,
    sizes: Sequence[int],
    *,
    student: str,
    key: jax.Array,
    words: Iterable[str | int | np.integer] | None = None,
    recipe: Recipe | None = None,
    step_sizes: Sequence[float] = STEP_SIZES,
    weight_decays: Sequence[float] = WEIGHT_DECAYS,
    embedding_dim: int = 10,
    embedding_std: float = 1e-6,
    hidden: int = 10,
    dtype: str = "float32",
) -> xr.Dataset:
    """Test accuracy of one student after training on so many sentences; labelled data, dimension
    ``size``.

    ``logits = Wᵀ Σ_w a_w ν_w`` over the words of a sentence: ``"mean-pooling"`` has equal a_w and
    learns W and ν; ``"attention-pooling"`` also learns a score s_w per word, ``a = softmax(s)``.
    Where it is known which ``words`` matter, ``"topic-counts"`` is a network of ``hidden`` units on
    their counts, and attention pooling tells the ``attention`` that they get.

    - Training sentences come in a random order; size n takes the first n. Order, start and
      minibatches are functions of ``key`` alone: students that are given the same key are paired.
      Give each seed its own.
    - For each size the fit of least ``valid_loss`` among all ``step_sizes`` and ``weight_decays``
      is kept, and says which it was; ``train_loss`` and ``settling`` (its relative fall over the
      last fifth of the steps) stand beside.

    >>> import jax
    >>> from attnlab.data import TopicTask
    >>> from attnlab.training import Recipe
    >>> task = TopicTask(topics=2, topic_words=1, dictionary=100, noise_words=6)
    >>> parts = [task.sample(n, key=jax.random.key(n)) for n in (128, 100, 500)]
    >>> curve = pool_curve(*parts, [4, 128], student="attention-pooling", key=jax.random.key(0), recipe=Recipe(200))
    >>> curve.accuracy.dims, bool(curve.accuracy[1] > 0.95)
    (('size',), True)
    """
    check_sizes(sizes, len(train))
    _check_parts(train, {"valid": valid, "test": test})
    known = None if words is None else train.word_ids(words)
    if student == "topic-counts":
        made = _counting(train, known, hidden, dtype)
    elif student in POOLING:
        longest = max(int(part.lengths.max()) for part in (train, valid, test))
        made = _pooling(train, student, known, longest, embedding_dim, embedding_std, dtype)
    else:
        raise AttnlabError(f"student={student!r}: expected one of {', '.join(STUDENTS)}")
    order, fit_key = curve_order(key, len(train))[: max(sizes)], jax.random.split(key)[1]
    fits = fit_grid(
        made.start,
        SampleLoss(made.answer),
        made.measure,
        made.given(train.subset(order)),
        {"valid": made.given(valid), "test": made.given(test)},
        sizes=sizes,
        key=fit_key,
        step_sizes=step_sizes,
        weight_decays=weight_decays,
        recipe=recipe or Recipe(600),
        trained=made.moving,
    )
    return choose(fits)


def curve_order(key: jax.Array, available: int) -> np.ndarray:
    """The order in which a key takes training sentences: size n has the first n of it, whatever the
    student.
    """
    return np.asarray(jax.random.permutation(jax.random.split(key)[0], available))


@dataclass(frozen=True)
class _Student:
    """What is fitted: how it starts, what it is given of a corpus, how it answers, what is
    measured, what moves.

    All but ``given`` are equal for equal students, so that nothing is compiled twice.
    """

    start: Callable[[Any], Any]
    given: Callable[[Corpus], dict[str, Any]]
    answer: Callable[[Any, Any], Any]
    measure: Callable[[Any, Any], dict[str, Any]]
    moving: Callable[[Any], Any] | None = None


def _pooling(
    train: Corpus,
    student: str,
    known: np.ndarray | None,
    length: int,
    embedding_dim: int,
    std: float,
    dtype: str,
) -> _Student:
    """Word attention whose keys move, or stay at zero."""
    attends = student == "attention-pooling"
    # With one key coordinate and |q| = 1 the key is the score itself, but for its sign.
    config = WordAttentionConfig.for_corpus(
        train,
        head="linear",
        embedding_dim=embedding_dim,
        embedding_std=std,
        key_dim=1,
        query_norm=1.0,
        trained=("embeddings", "keys", "head") if attends else ("embeddings", "head"),
    )
    measure = _attentive_measure if attends and known is not None else _Measure(_pooled_answer)
    given = partial(bags, length=length, known=known, dtype=dtype)
    return _Student(PoolStart(config, dtype), given, _pooled_answer, measure, moving_parts)


def _counting(train: Corpus, known: np.ndarray | None, hidden: int, dtype: str) -> _Student:
    """A network on the counts of known words."""
    if known is None or not len(known):
        raise AttnlabError(
            "student='topic-counts' counts the words that matter: say which they are, words=[…]"
        )
    start = _CountsStart(len(known), len(train.classes), hidden, dtype)
    given = partial(_counts, known=known, dtype=dtype)
    return _Student(start, given, _counts_answer, _Measure(_counts_answer))


def bags(corpus: Corpus, length: int, known: np.ndarray | None, dtype: str) -> dict[str, Any]:
    """Sentences as rectangles for minibatches, ``{"x": …, "y": labels}``: shape (sentences,
    length).

    A padded place has the log count −∞, so that it has no weight whatever the scores; it is no word
    of the model.
    """
    if corpus.lengths.max() > length:
        raise AttnlabError(
            f"length={length}: the longest sentence has {corpus.lengths.max()} words"
        )
    places = corpus.rows, np.arange(len(corpus.words)) - corpus.offsets[corpus.rows]
    words, logs = np.zeros((len(corpus), length), np.int32), np.full((len(corpus), length), -np.inf)
    words[places], logs[places] = corpus.words, np.log(corpus.counts)
    x = {"words": jnp.asarray(words), "log_counts": jnp.asarray(logs, dtype)}
    if known is not None:
        x["known"] = jnp.asarray(np.isin(words, known))
    return {"x": x, "y": jnp.asarray(corpus.labels)}


def _weights(model: WordAttention, bag: dict[str, jax.Array]) -> jax.Array:
    """Attention of each place of one sentence, counts included: ``a ∝ count · e^s``."""
    return jax.nn.softmax(model.scores()[bag["words"]] + bag["log_counts"])


def _pooled_answer(model: WordAttention, bag: dict[str, jax.Array]) -> jax.Array:
    """Logits of one sentence: project all words, then pool (docs/theory.md#a2)."""
    return model.head.finish(_weights(model, bag) @ model.table()[bag["words"]])


def _counts_answer(model: Any, counts: jax.Array) -> jax.Array:
    return model(counts)


def _counts(corpus: Corpus, known: np.ndarray, dtype: str) -> dict[str, Any]:
    """How often each known word occurs in each sentence."""
    column = np.full(len(corpus.vocabulary), -1)
    column[known] = np.arange(len(known))
    counted, there = np.zeros((len(corpus), len(known))), column[corpus.words] >= 0
    counted[corpus.rows[there], column[corpus.words[there]]] = corpus.counts[there]
    return {"x": jnp.asarray(counted, dtype), "y": jnp.asarray(corpus.labels)}


@dataclass(frozen=True)
class PoolStart:
    """A pooling student; equal for equal configurations, so that nothing is compiled twice."""

    config: Any
    dtype: str

    def __call__(self, key: Any) -> WordAttention:
        """The parameters that a key draws."""
        return self.config.init(key, self.dtype)


@dataclass(frozen=True)
class _CountsStart:
    """Two layers on counts of known words."""

    words: int
    classes: int
    hidden: int
    dtype: str

    def __call__(self, key: Any) -> Any:
        return eqx.nn.MLP(
            self.words, self.classes, self.hidden, 1, key=key, dtype=jnp.dtype(self.dtype)
        )


@dataclass(frozen=True)
class _Measure:
    """``valid_loss``, and the ``accuracy`` on test sentences."""

    answer: Any

    def __call__(self, model: Any, checks: Any) -> dict[str, Any]:
        found = SampleMeasure(self.answer)(model, checks)
        return {"valid_loss": found["valid_loss"], "accuracy": 1 - found["error"]}


def _attentive_measure(model: WordAttention, checks: Any) -> dict[str, Any]:
    """The same, and the mean attention on the known words of test sentences."""
    x = checks["test"]["x"]
    weights = jax.vmap(_weights, (None, 0))(model, x)
    attention = jnp.mean(jnp.sum(jnp.where(x["known"], weights, 0), axis=1))
    return _Measure(_pooled_answer)(model, checks) | {"attention": attention}


def _check_parts(train: Corpus, parts: dict[str, Corpus]) -> None:
    for name, part in parts.items():
        if part.vocabulary != train.vocabulary or part.classes != train.classes:
            raise AttnlabError(
                f"{name} has {len(part.vocabulary)} words and {len(part.classes)} classes that "
                f"are not those of the training sentences ({len(train.vocabulary)} and "
                f"{len(train.classes)}); build all over one vocabulary"
            )
