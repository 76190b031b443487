"""The work function behind the guidelines: one variant of attention on a teacher that attends to
some of 16 words (docs/theory.md#b5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Key

from attnlab.landscape import Problem, extremes
from attnlab.models import (
    AbstractNormaliser,
    Baseline,
    BaselineConfig,
    Teacher,
    attention_entropy,
    entropy_penalty,
    make_normaliser,
    query_l1,
    toward,
)
from attnlab.papers.liu2021.curve_runs import (
    InType,
    Learner,
    SampleLoss,
    SampleMeasure,
    learning_curve,
)
from attnlab.papers.liu2021.curve_settings import FitSettings
from attnlab.papers.liu2021.variant_settings import Variant, VariantSettings
from attnlab.stats import crossing
from attnlab.sweeps import RunContext
from attnlab.training import (
    Adam,
    InstantProbe,
    Logarithmic,
    ModelObjective,
    Moment,
    train_model,
)

_ROWS = 40  # recorded steps of a course
_COURSE_POINTS = 500  # test samples on which a course is measured
_LEAST_CHANGE = 0.05  # a score that changes by less than this has no onset


def fit_variant(s: VariantSettings, context: RunContext) -> xr.Dataset:
    """One variant's learning curve on one seed's teacher; labelled data, dimension ``size``.

    ``error`` is ``E(ŷ − g)²/Var g`` on noiseless points; ``entropy`` and ``attention`` (on the
    relevant words) say what the student attends to; ``valid_loss``, ``train_loss``, ``settling``
    and the chosen tuning stand beside. With a ``course`` also its curves (dimension ``step``),
    ``onset``, the step at which attention on the relevant words has gone half of its way (the
    error, if all are relevant), and ``sharpness``, λ_max of the training loss at its end.
    """
    variant = Variant.of(s.variant)
    key = jax.random.fold_in(jax.random.key(context.root_seed), s.seed)
    _, *draws, fit_key = jax.random.split(key, 5)
    source = word_source(context.root_seed, s)
    counts = (s.available, s.valid_points, s.test_points)
    train, valid, test = (
        source.draw(n, draw, noisy, s.dtype)
        for n, draw, noisy in zip(counts, draws, (True, True, False), strict=True)
    )
    start = StudentStart(variant.normaliser, s.embedding_dim, s.hidden, s.query_std)
    learner = Learner(
        InType(start, s.dtype),
        VariantLoss(answer_words, weigh_words, variant.penalty, variant.strength),
        VariantMeasure(answer_words, weigh_words, "error"),
    )
    found = learning_curve(learner, train, {"valid": valid, "test": test}, s, key=fit_key)
    if not s.course:
        return found
    own = jax.tree.map(lambda leaf: leaf[: max(s.sizes)], train)
    # With a dense teacher there is no word to find: the onset is that of the error.
    names = (
        ("entropy", "error", "attention")
        if s.relevant < s.words
        else ("entropy", "attention", "error")
    )
    course, model = train_course(learner, own, test, found, s, names=names)
    problem = Problem.of(model, SampleLoss(answer_words), own)
    largest = extremes(problem, depth=32, max_depth=32, tolerance=1e-2, ends="largest").largest[0]
    sharpness = largest.value if largest.converged else np.nan
    return found.merge(course.assign(sharpness=sharpness))


class AttendingTeacher(eqx.Module):
    """``g(x) = head(Σ_z a_z x_z)`` with ``a_z = 1/r`` on the r words of the largest ``u·x_z``:
    columns of x are words.

    >>> head = Baseline(jnp.ones((2, 1)), jnp.ones((1, 1)))
    >>> teacher = AttendingTeacher(jnp.array([1.0, 0.0]), head, 1)
    >>> teacher.attention(jnp.array([[0.0, 3.0, 1.0], [5.0, 5.0, 5.0]])).tolist()
    [0.0, 1.0, 0.0]
    """

    direction: Float[Array, "t"]
    head: Baseline
    relevant: int = eqx.field(static=True)

    def attention(self, x: Float[Array, "t p"]) -> Float[Array, "p"]:
        """The weight of every word."""
        chosen = jax.lax.top_k(self.direction @ x, self.relevant)[1]
        return jnp.zeros(x.shape[1], x.dtype).at[chosen].set(1 / self.relevant)

    def __call__(self, x: Float[Array, "t p"]) -> Float[Array, ""]:
        """Output for one input."""
        return jnp.asarray(self.head(x @ self.attention(x)))


@dataclass(frozen=True, eq=False)
class WordSource:
    """A teacher on words: its samples, and the weights it gives to words. ``teacher`` has outputs
    of unit variance.
    """

    teacher: Teacher
    model: AttendingTeacher

    def draw(self, n: int, key: Key[Array, ""], noisy: bool, dtype: str) -> dict[str, Any]:
        """Samples as students take them: words, the teacher's weights, and labels."""
        x, y = self.teacher.sample(n, key=key, noisy=noisy)
        given = jax.vmap(self.model.attention)(x)
        return jax.tree.map(
            lambda leaf: jnp.asarray(leaf, dtype), {"x": {"words": x, "given": given}, "y": y}
        )


def word_source(root_seed: int, s: VariantSettings) -> WordSource:
    """The teacher of one seed; the head is that of the teachers of docs/theory.md#b2: 4 units,
    signs ±, the first layer × 2.
    """
    quiet, model = _noiseless(
        root_seed, s.seed, s.relevant, s.words, s.embedding_dim, s.informative
    )
    return WordSource(Teacher(quiet.model, quiet.deviation, s.noise_std, quiet.shape), model)


@lru_cache(maxsize=512)
def _noiseless(
    root_seed: int, seed: int, relevant: int, words: int, embedding_dim: int, informative: int
) -> tuple[Teacher, AttendingTeacher]:
    """Drawn once for all variants of a seed: finding its variance takes as long as a short fit."""
    key = jax.random.split(jax.random.fold_in(jax.random.key(root_seed), seed), 5)[0]
    direction_key, head_key, scale_key = jax.random.split(key, 3)
    drawn = jax.random.normal(direction_key, (informative,))
    direction = jnp.zeros(embedding_dim).at[:informative].set(drawn)
    head = BaselineConfig(embedding_dim, 4, init_scale=2.0).init(head_key)
    head = eqx.tree_at(lambda h: h.w2, head, jnp.asarray([[1.0], [-1.0], [1.0], [-1.0]]))
    model = AttendingTeacher(direction / jnp.linalg.norm(direction), head, relevant)
    return Teacher.of(model, key=scale_key, shape=(embedding_dim, words), noise_std=0.0), model


class PoolingStudent(eqx.Module):
    """``y = w₂ᵀ φ(w₁ᵀ Σ_z a_z x_z)`` with ``a = norm(xᵀ q)``: words of dimension t, the columns of
    x (docs/theory.md#b5).

    >>> student = StudentStart("sparsemax", embedding_dim=8, hidden=16)(jax.random.key(0))
    >>> x = jnp.ones((8, 5))
    >>> student(x).shape, student.attention(x).shape
    ((), (5,))
    """

    query: Float[Array, "t"]
    head: Baseline
    normaliser: AbstractNormaliser

    def attention(self, x: Float[Array, "t p"]) -> Float[Array, "p"]:
        """The weight of every word."""
        return self.normaliser(self.query @ x)

    def __call__(self, x: Float[Array, "t p"]) -> Float[Array, ""]:
        """Output for one input."""
        return jnp.asarray(self.head(x @ self.attention(x)))


@dataclass(frozen=True)
class StudentStart:
    """How a ``PoolingStudent`` starts: the query is N(0, query_std²), the head as
    ``BaselineConfig`` says.

    The query starts small: hard attention that starts on a wrong word gives it no gradient, and a
    variant that is cooler than another starts further out.
    """

    normaliser: str
    embedding_dim: int = 8
    hidden: int = 16
    query_std: float = 0.1

    def __call__(self, key: Key[Array, ""]) -> PoolingStudent:
        """Draw a student."""
        query = self.query_std * jax.random.normal(
            jax.random.fold_in(key, 3), (self.embedding_dim,), jnp.float64
        )
        head = BaselineConfig(self.embedding_dim, self.hidden).init(key)
        return PoolingStudent(query, head, make_normaliser(self.normaliser))


def answer_words(model: PoolingStudent, sample: dict[str, Array]) -> Array:
    """The student's output for one sample."""
    return model(sample["words"])


def weigh_words(model: PoolingStudent, sample: dict[str, Array]) -> Array:
    """The student's attention in one sample."""
    return model.attention(sample["words"])


@dataclass(frozen=True)
class VariantLoss:
    """The mean loss of a batch, and the penalty of a variant.

    ``answer(model, sample)`` gives outputs, ``weigh(model, sample)`` attention weights; a sample's
    ``"given"`` are weights that are right, which a prior needs.
    """

    answer: Callable[[Any, Any], Any]
    weigh: Callable[[Any, Any], Any]
    penalty: str = ""
    strength: float = 0.0

    def __call__(self, model: Any, batch: Any) -> Array:
        """Both, for one model."""
        loss = SampleLoss(self.answer)(model, batch)
        return loss + self.strength * self._penalty(model, batch["x"]) if self.penalty else loss

    def _penalty(self, model: Any, x: Any) -> Array:
        if self.penalty == "l1":
            return query_l1(model.query)
        weights = jax.vmap(self.weigh, (None, 0))(model, x)
        if self.penalty == "entropy":
            return entropy_penalty(weights)
        # Wrong weights are those of the words one place further: as sparse as the right ones, and
        # as useless as any.
        given = jnp.roll(x["given"], 1, axis=1) if self.penalty == "wrong-prior" else x["given"]
        return toward(weights, given)


@dataclass(frozen=True)
class VariantMeasure:
    """``valid_loss`` and the score as ``SampleMeasure`` says, and what attention is like.

    ``entropy``: the mean of ``−Σ a log a`` on test samples, in nats; ``attention``: the mean weight
    of the words that are known to matter, where a sample says which.
    """

    answer: Callable[[Any, Any], Any]
    weigh: Callable[[Any, Any], Any]
    score: str

    def __call__(self, model: Any, checks: Any) -> dict[str, Array]:
        """All of it, for one model."""
        found = SampleMeasure(self.answer, self.score)(model, checks)
        x = checks["test"]["x"]
        weights = jax.vmap(self.weigh, (None, 0))(model, x)
        found["entropy"] = jnp.mean(attention_entropy(weights))
        if "given" in x:
            found["attention"] = jnp.mean(jnp.sum(jnp.where(x["given"] > 0, weights, 0), axis=1))
        return found


@dataclass(frozen=True)
class _Looked(InstantProbe):
    """What a measure says of test samples along training, under the same names."""

    function: Callable[[Any, Any], dict[str, Array]]
    names: tuple[str, ...]

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """A number each."""
        return dict.fromkeys(self.names, ())

    def look(self, moment: Moment) -> dict[str, Array]:
        """Measure now."""
        part = moment.split("test")
        assert isinstance(part, ModelObjective)
        found = self.function(moment.model(), {"valid": part.data, "test": part.data})
        return {name: found[name] for name in self.names}


def train_course(
    learner: Learner,
    train: Any,
    test: Any,
    found: xr.Dataset,
    s: FitSettings,
    *,
    names: tuple[str, ...],
) -> tuple[xr.Dataset, Any]:
    """Train once by Adam with the constant step that suited the largest size in ``found``: what
    ``names`` of the learner's measure did on the way, and the trained model.

    The data set has the dimension ``step``; a name x is there as ``course_x``. ``onset`` is that of
    the last name, see ``onset_step``.
    """
    best = found.isel(size=-1)
    few = jax.tree.map(lambda leaf: leaf[:_COURSE_POINTS], test)
    count = jax.tree.leaves(train)[0].shape[0]
    run = train_model(
        learner.start,
        learner.loss,
        train,
        steps=s.steps,
        seeds=[s.seed],
        optimizer=Adam(float(best.step_size), weight_decay=float(best.weight_decay)),
        record=(_Looked(learner.measure, names),),
        when=Logarithmic(_ROWS),
        splits={"test": few},
        batch_size=min(s.batch_size, count),
        trained=learner.trained,
        dtype=s.dtype,
        progress=False,
    )
    data = run.data.isel(seed=0, drop=True)
    course = xr.Dataset({f"course_{name}": data[name] for name in names})
    course = course.drop_vars([name for name in course.coords if name != "step"])
    onset = onset_step(data.step.values, data[names[-1]].values, rising=names[-1] != "error")
    return course.assign(onset=onset), run.model(s.seed)


def onset_step(steps: np.ndarray, score: np.ndarray, *, rising: bool) -> float:
    """The step at which a score has gone half of its way from the first to the last value; nan if
    it gets nowhere.

    Scores are shares, or errors in units of the teacher's variance: a way of less than 0.05 is
    none.

    >>> onset_step(np.array([0, 10, 20, 30]), np.array([1.0, 1.0, 0.0, 0.0]), rising=False)
    15.0
    >>> onset_step(np.array([0, 10]), np.array([0.06, 0.07]), rising=True)
    nan
    """
    first, last = float(score[0]), float(score[-1])
    way = last - first if rising else first - last
    if not way >= _LEAST_CHANGE:
        return float("nan")
    return crossing(steps, score, (first + last) / 2, log_x=False, rising=rising).value
