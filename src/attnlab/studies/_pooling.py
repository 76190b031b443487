"""Mean against attention pooling: how many labelled sentences each needs, on the topic task or on
any bags of words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.sweeps import RunContext

if TYPE_CHECKING:
    import jax

    from attnlab.data import Corpus, TopicTask
    from attnlab.models import WordAttention
    from attnlab.training import Recipe

WORK = "attnlab.studies._pooling:fit_pooling"
POOLING = ("mean-pooling", "attention-pooling")
STUDENTS = (*POOLING, "topic-counts")
STEP_SIZES, WEIGHT_DECAYS = (0.03, 0.1), (0.0, 0.1)


@dataclass(frozen=True)
class PoolingSettings:
    """One student of the topic task at several numbers of training sentences (docs/theory.md#b2).

    - ``seed`` draws sentences and initial parameters, so that students of equal seed are paired;
      ``arm`` is a label and nothing else.
    - ``student``: ``"mean-pooling"`` (all words of a sentence weigh the same),
      ``"attention-pooling"`` (their weights are learned too), or the control ``"topic-counts"``, a
      two-layer network of ``hidden`` units on how often each topic word occurs: it is told which
      words matter.
    - ``sizes``: numbers of training sentences, the first of the ``sentences`` that are drawn, in a
      random order: students of different sizes still see nested sentences.
    - Tuning, the same for every student: all pairs of ``step_sizes`` and ``weight_decays``, chosen
      by the loss on ``valid_sentences`` further sentences.
    """

    arm: str = ""
    seed: int = 0
    student: str = "attention-pooling"
    sizes: tuple[int, ...] = tuple(2**k for k in range(3, 13))
    sentences: int = 4096
    steps: int = 600
    batch_size: int = 64
    optimizer: str = "adam"
    step_sizes: tuple[float, ...] = STEP_SIZES
    weight_decays: tuple[float, ...] = WEIGHT_DECAYS
    valid_sentences: int = 500
    test_sentences: int = 2000
    topics: int = 4
    topic_words: int = 2
    dictionary: int = 5000
    noise_words: int = 20
    embedding_dim: int = 10
    embedding_std: float = 1e-6
    hidden: int = 10
    dtype: str = "float32"

    def __post_init__(self):
        if self.student not in STUDENTS:
            raise AttnlabError(f"student={self.student!r}: expected one of {', '.join(STUDENTS)}")
        _check_sizes(self.sizes, self.sentences)
        if min(self.valid_sentences, self.test_sentences) < 1:
            raise AttnlabError(
                f"valid_sentences={self.valid_sentences}, test_sentences={self.test_sentences}: "
                "expected at least 1"
            )
        if self.dtype not in ("float32", "float64"):
            raise AttnlabError(f"dtype={self.dtype!r}: expected 'float32' or 'float64'")

    def task(self) -> TopicTask:
        """Where the sentences come from."""
        from attnlab.data import TopicTask

        return TopicTask(
            topics=self.topics,
            topic_words=self.topic_words,
            dictionary=self.dictionary,
            noise_words=self.noise_words,
        )

    def recipe(self) -> Recipe:
        """How each fit is trained."""
        from attnlab.training import Recipe

        return Recipe(self.steps, self.batch_size, optimizer=self.optimizer)


def fit_pooling(s: PoolingSettings, context: RunContext) -> xr.Dataset:
    """One student's learning curve on one seed's sentences of the topic task; see ``pool_curve``.

    Attention pooling also has ``attention``, the mean attention that topic words get in test
    sentences.
    """
    import jax

    task = s.task()
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
        recipe=s.recipe(),
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
    import jax

    from attnlab.studies._samples import SampleLoss
    from attnlab.training import Recipe, choose, fit_grid

    _check_sizes(sizes, len(train))
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
    import jax

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
    from attnlab.models import WordAttentionConfig, moving_parts

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
    return _Student(_PoolStart(config, dtype), given, _pooled_answer, measure, moving_parts)


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
    import jax.numpy as jnp

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
    import jax

    return jax.nn.softmax(model.scores()[bag["words"]] + bag["log_counts"])


def _pooled_answer(model: WordAttention, bag: dict[str, jax.Array]) -> jax.Array:
    """Logits of one sentence: project all words, then pool (docs/theory.md#a2)."""
    return model.head.finish(_weights(model, bag) @ model.table()[bag["words"]])


def _counts_answer(model: Any, counts: jax.Array) -> jax.Array:
    return model(counts)


def _counts(corpus: Corpus, known: np.ndarray, dtype: str) -> dict[str, Any]:
    """How often each known word occurs in each sentence."""
    import jax.numpy as jnp

    column = np.full(len(corpus.vocabulary), -1)
    column[known] = np.arange(len(known))
    counted, there = np.zeros((len(corpus), len(known))), column[corpus.words] >= 0
    counted[corpus.rows[there], column[corpus.words[there]]] = corpus.counts[there]
    return {"x": jnp.asarray(counted, dtype), "y": jnp.asarray(corpus.labels)}


@dataclass(frozen=True)
class _PoolStart:
    """A pooling student; equal for equal configurations, so that nothing is compiled twice."""

    config: Any
    dtype: str

    def __call__(self, key: Any) -> WordAttention:
        return self.config.init(key, self.dtype)


@dataclass(frozen=True)
class _CountsStart:
    """Two layers on counts of known words."""

    words: int
    classes: int
    hidden: int
    dtype: str

    def __call__(self, key: Any) -> Any:
        import equinox as eqx
        import jax.numpy as jnp

        return eqx.nn.MLP(
            self.words, self.classes, self.hidden, 1, key=key, dtype=jnp.dtype(self.dtype)
        )


@dataclass(frozen=True)
class _Measure:
    """``valid_loss``, and the ``accuracy`` on test sentences."""

    answer: Any

    def __call__(self, model: Any, checks: Any) -> dict[str, Any]:
        from attnlab.studies._samples import SampleMeasure

        found = SampleMeasure(self.answer)(model, checks)
        return {"valid_loss": found["valid_loss"], "accuracy": 1 - found["error"]}


def _attentive_measure(model: WordAttention, checks: Any) -> dict[str, Any]:
    """The same, and the mean attention on the known words of test sentences."""
    import jax
    import jax.numpy as jnp

    x = checks["test"]["x"]
    weights = jax.vmap(_weights, (None, 0))(model, x)
    attention = jnp.mean(jnp.sum(jnp.where(x["known"], weights, 0), axis=1))
    return _Measure(_pooled_answer)(model, checks) | {"attention": attention}


def _check_sizes(sizes: Sequence[int], available: int) -> None:
    if not len(sizes) or min(sizes) < 1 or (np.diff(sizes) <= 0).any() or max(sizes) > available:
        raise AttnlabError(
            f"sizes={list(sizes)}: expected increasing numbers of sentences from 1 to "
            f"{available}, the training "
            "sentences that there are"
        )


def _check_parts(train: Corpus, parts: dict[str, Corpus]) -> None:
    for name, part in parts.items():
        if part.vocabulary != train.vocabulary or part.classes != train.classes:
            raise AttnlabError(
                f"{name} has {len(part.vocabulary)} words and {len(part.classes)} classes that "
                "are not those of the "
                f"training sentences ({len(train.vocabulary)} and {len(train.classes)}); build "
                "all over one vocabulary"
            )
