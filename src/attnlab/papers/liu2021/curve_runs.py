"""The learning curve of any learner, and the work function of those on a teacher: one student, one
seed, all sample sizes and tunings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array, PyTree

from attnlab._errors import AttnlabError
from attnlab.complexity import bound_ratios, population_ratios
from attnlab.models import (
    TEACHER_ATTENTION,
    BaselineConfig,
    Gate,
    Inputs,
    KnownWeightsConfig,
    LabelTeacher,
    MovingBlock,
    MultiLayerConfig,
    SelfAttentionConfig,
    StaticMask,
    Teacher,
    VacuousMask,
    answers,
    evaluate,
    make_label_teacher,
    make_teacher,
)
from attnlab.papers.liu2021.curve_settings import (
    MASKS,
    ON_VECTORS,
    VECTOR_STUDENTS,
    WORD_STUDENTS,
    FitSettings,
    SampleSettings,
)
from attnlab.sweeps import RunContext, load_function
from attnlab.training import Recipe, choose, fit_grid

# docs/theory.md#b2: hidden units of the baseline on vectors and on matrices.
VECTOR_HIDDEN, MATRIX_HIDDEN = 8, 24
# The largest of so many inputs is a candidate predictor; its expectation is found from more of them.
_BOUND_SAMPLES, _MORE_SAMPLES = 4096, 32768
_MASKED_WIDTH = 8  # numbers that are left of an input behind a mask, where so few are relevant
# The settings that say which teacher a seed draws.
_OF_TEACHER = (
    *("seed", "teacher", "features", "relevant", "depth", "noise_std", "label_noise", "classes"),
    *("sharpness", "inputs"),
)
_FACTOR = 3.0  # from a grid's last value to the next one, where the grid says nothing else


class Source(Protocol):
    """Where samples come from: one object per seed, such as a ``Teacher``.

    ``sample(n, key=…, noisy=…)`` gives inputs (n, …) and labels (n,): floats for regression, whole
    numbers for classes. From one key, a smaller sample must be the start of a larger one. Without
    noise the labels are the truth.
    """

    def sample(self, n: int, *, key: Array, noisy: bool = True) -> tuple[Any, Any]:
        """Draw."""
        ...


@dataclass(frozen=True)
class Student:
    """What is fitted: how it starts, what it is given of an input, and how it answers.

    - ``start(key)`` → module;
    - ``given(source, x)`` → arrays (samples, …), computed once for all samples, as x ⊙ f(x) for a
      known f;
    - ``answer(module, sample)`` → a number, or one number per class.
    """

    start: Callable[[Array], Any]
    given: Callable[[Any, Array], PyTree]
    answer: Callable[[Any, Any], Array]


@dataclass(frozen=True)
class Start:
    """``config.init``; equal for equal configurations, so that nothing is compiled twice."""

    config: Any

    def __call__(self, key: Array) -> Any:
        """Draw a model."""
        return self.config.init(key)


@dataclass(frozen=True)
class OwnStart:
    """A user's ``function(key, shape)``, shape being that of one input."""

    function: Callable[..., Any]
    shape: tuple[int, ...]

    def __call__(self, key: Array) -> Any:
        """Draw a model."""
        return self.function(key, self.shape)


def as_it_is(source: Any, x: Array) -> Array:
    """The input itself."""
    del source
    return x


def call(model: Any, sample: Any) -> Array:
    """``model(sample)``."""
    return model(sample)


def weighted(model: Any, sample: tuple[Array, Array]) -> Array:
    """A model with known weights, which come with the input."""
    return model.weighted(*sample)


@dataclass(frozen=True)
class StartAt:
    """The head that a configuration draws, on some of its inputs alone."""

    config: BaselineConfig
    places: tuple[int, ...]

    def __call__(self, key: Array) -> Any:
        """Draw a model; the weights of its inputs are those that the whole head gives them."""
        head = self.config.init(key)
        return eqx.tree_at(lambda m: m.w1, head, head.w1[np.array(self.places)])


@dataclass(frozen=True)
class Attended:
    """``x ⊙ f(x)`` with a mask f; the head on it is the known-attention model. ``places``: all that
    is kept of it where the mask is zero elsewhere.
    """

    mask: Callable[[Array], Array]
    places: tuple[int, ...] | None = None

    def __call__(self, source: Any, x: Array) -> Array:
        """All attended inputs."""
        del source
        attended = x * jax.vmap(self.mask)(x)
        return attended if self.places is None else attended[:, np.array(self.places)]


@dataclass(frozen=True)
class Weights:
    """``(x, a(x))`` with the teacher's attention weights; wrong ones look ``turn`` words further
    than they should.
    """

    turn: int = 0

    def __call__(self, source: Any, x: Array) -> tuple[Array, Array]:
        """Inputs and the weights of every layer, (samples, layers, p, p)."""
        a = evaluate(source.model.attentions, x, x.shape[1:])
        return x, jnp.roll(a, self.turn, axis=2)


def own_student(function: Callable[..., Any], shape: tuple[int, ...]) -> Student:
    """A user's module, which is called with one input."""
    return Student(OwnStart(function, tuple(shape)), as_it_is, call)


def make_student(
    name: str,
    source: Any,
    *,
    hidden: int | None = None,
    depth: int = 1,
    sharpness: float = 4.0,
    kept: float = 1.0,
) -> Student:
    """A named student for a teacher; ``hidden`` is the baseline's number of hidden units, ``kept``
    the share of the relevant features that a known mask or gate lets through.

    >>> from attnlab.models import make_teacher
    >>> teacher = make_teacher("gate", key=jax.random.key(0), features=8, relevant=2)
    >>> make_student("known-attention", teacher).given.mask
    Gate(relevant=(0, 1), features=8)
    """
    if not isinstance(source, Teacher | LabelTeacher):
        raise AttnlabError(
            f"student {name!r} is made for attnlab's teachers; with a source of your own, give "
            "'file.py:function'"
        )
    shape = source.shape
    known = VECTOR_STUDENTS if len(shape) == 1 else WORD_STUDENTS
    if name not in known:
        raise AttnlabError(
            f"student {name!r}: for inputs of shape {shape} the students are {', '.join(known)}; "
            "or give your own as "
            "'file.py:function', a function of (key, shape) that returns an Equinox module"
        )
    outputs = _outputs(source)
    if len(shape) == 1:
        config = BaselineConfig(shape[0], hidden or VECTOR_HIDDEN, outputs, sharpness)
        return _vector_student(name, source, config, kept)
    return _matrix_student(name, shape, hidden or MATRIX_HIDDEN, depth, sharpness, outputs)


def _outputs(source: Any) -> int:
    return source.classes if isinstance(source, LabelTeacher) and source.classes > 2 else 1


def _vector_student(name: str, source: Any, config: BaselineConfig, kept: float) -> Student:
    p = config.numbers
    if name == "baseline":
        return Student(Start(config), as_it_is, call)
    if name == "self-attention":
        sizes = SelfAttentionConfig(
            embedding_dim=1,
            words=p,
            key_dim=1,
            value_dim=1,
            hidden=config.hidden,
            outputs=config.outputs,
            sharpness=config.sharpness,
        )
        return Student(Start(sizes), _as_row, call)
    mask = _mask(name, source, p, kept)
    if not isinstance(mask, StaticMask | Gate):
        return Student(Start(config), Attended(mask), call)
    # What is zero for every input has no influence: left out, students of all p share a program.
    others = [j for j in range(p) if j not in mask.relevant]
    places = (*mask.relevant, *others)[: max(_MASKED_WIDTH, len(mask.relevant))]
    return Student(StartAt(config, places), Attended(mask, places), call)


def _as_row(source: Any, x: Array) -> Array:
    """Numbers as words of dimension one."""
    del source
    return x[:, None, :]


def _mask(name: str, source: Any, p: int, kept: float) -> Callable[[Array], Array]:
    own = getattr(source.model, "mask", None)
    if name == "vacuous-mask":
        return VacuousMask(p)
    if own is None:
        raise AttnlabError(
            f"student {name!r}: this teacher has no mask to know; take 'baseline' or 'vacuous-mask'"
        )
    if name == "known-attention":
        return own if kept == 1 else _incomplete(own, kept)
    if isinstance(own, MovingBlock):
        raise AttnlabError(
            "student 'wrong-mask': a moving block has no place that could be wrong; take a static "
            "mask"
        )
    assert isinstance(own, StaticMask | Gate)
    return StaticMask(own.relevant, p).wrong()


def _incomplete(mask: Any, kept: float) -> Callable[[Array], Array]:
    """A mask or gate that loses the last relevant features."""
    if not isinstance(mask, StaticMask | Gate):
        raise AttnlabError(
            f"kept={kept:g}: a moving block cannot lose a part; take a static mask or a gate"
        )
    count = round(kept * len(mask.relevant))
    if count < 1:
        raise AttnlabError(
            f"kept={kept:g} of {len(mask.relevant)} relevant features: expected at least one feature"
        )
    return replace(mask, relevant=mask.relevant[:count])


def _matrix_student(
    name: str, shape: tuple[int, ...], hidden: int, depth: int, sharpness: float, outputs: int
) -> Student:
    t, p = shape
    if name == "baseline":
        return Student(Start(BaselineConfig(t * p, hidden, outputs, sharpness)), as_it_is, call)
    # The sizes and the scale of the teacher; its large queries are for it to know.
    base = replace(
        TEACHER_ATTENTION,
        query_scale=1.0,
        embedding_dim=t,
        words=p,
        sharpness=sharpness,
        outputs=outputs,
    )
    if name == "self-attention":
        return Student(Start(base), as_it_is, call)
    stack = MultiLayerConfig(base, depth)
    if name == "multi-layer":
        return Student(Start(stack), as_it_is, call)
    return Student(
        Start(KnownWeightsConfig(stack)), Weights(turn=int(name == "wrong-weights")), weighted
    )


def make_source(s: SampleSettings, key: Array) -> Source:
    """The teacher that a key draws."""
    if ":" in s.teacher:
        return load_function(s.teacher, "teacher")(key)
    more: dict[str, Any] = {"inputs": s.inputs}
    if s.teacher in ON_VECTORS:
        more |= {"features": s.features, "sharpness": s.softplus}
    if s.teacher in MASKS:
        more["relevant"] = s.relevant
    if s.teacher == "multi-layer":
        more["depth"] = s.depth
    if s.classes:
        return make_label_teacher(
            s.teacher, key=key, classes=s.classes, label_noise=s.label_noise, **more
        )
    return make_teacher(s.teacher, key=key, noise_std=s.noise_std, **more)


def _teacher_of(s: SampleSettings, root_seed: int) -> Source:
    """The teacher of a seed, which its students share."""
    plain = SampleSettings()
    own = {name: getattr(plain, name) for name in vars(plain) if name not in _OF_TEACHER}
    return _made_teacher(replace(s, **own), root_seed)


@lru_cache(maxsize=256)
def _made_teacher(s: SampleSettings, root_seed: int) -> Source:
    key = jax.random.fold_in(jax.random.key(root_seed), s.seed)
    return make_source(s, jax.random.split(key, 3)[0])


def make_learner(s: SampleSettings, source: Source, shape: tuple[int, ...]) -> Student:
    """The student for a teacher whose inputs have this shape."""
    if ":" in s.student:
        return own_student(load_function(s.student, "student"), shape)
    return make_student(
        s.student, source, hidden=s.hidden, depth=s.depth, sharpness=s.softplus, kept=s.kept
    )


def fit_samples(s: SampleSettings, context: RunContext) -> xr.Dataset:
    """Fit one student to one seed's teacher at every size; labelled data, dimension ``size``.

    ``error`` is ``E(ŷ − g)²/Var g`` on noiseless points (the share of wrong labels for classes);
    ``valid_loss``, ``train_loss``, ``settling`` and the chosen ``step_size`` and ``weight_decay``
    stand beside it. Students that attend by a known rule also have ``predicted``, the bound
    calculators' ratios (dimension ``predictor``).
    """
    key = jax.random.fold_in(jax.random.key(context.root_seed), s.seed)
    source_key, curve_key, bound_key = jax.random.split(key, 3)
    source = (
        _teacher_of(s, context.root_seed) if ":" not in s.teacher else make_source(s, source_key)
    )
    x, _ = source.sample(1, key=source_key)
    student = make_learner(s, source, np.shape(x)[1:])
    found = fit_curve(source, student, s, key=curve_key)
    ratios = predicted_ratios(source, student, bound_key)
    if not ratios:
        return found
    return found.assign(predicted=("predictor", list(ratios.values()))).assign_coords(
        predictor=list(ratios)
    )


def fit_curve(source: Source, student: Student, s: FitSettings, *, key: Array) -> xr.Dataset:
    """One student's learning curve on one source: for each size the fit that validation chose.

    Samples are nested, and a function of ``key`` alone: other students see the same ones.
    Validation and test points are not counted in the sizes.

    >>> import jax
    >>> from attnlab.models import make_teacher
    >>> teacher = make_teacher("static-mask", key=jax.random.key(0), features=8, relevant=2)
    >>> student = make_student("known-attention", teacher)
    >>> curve = fit_curve(teacher, student, FitSettings(sizes=(8, 64), steps=200), key=jax.random.key(1))
    >>> curve.error.dims, bool(curve.error[1] < curve.error[0])
    (('size',), True)
    """
    *draws, fit_key = jax.random.split(key, 4)
    counts = (s.available, s.valid_points, s.test_points)
    train, valid, test = (
        _drawn(source, student, n, draw, noisy, s.dtype)
        for n, draw, noisy in zip(counts, draws, (True, True, False), strict=True)
    )
    learner = Learner(
        InType(student.start, s.dtype), SampleLoss(student.answer), SampleMeasure(student.answer)
    )
    return learning_curve(learner, train, {"valid": valid, "test": test}, s, key=fit_key)


@dataclass(frozen=True)
class Learner:
    """What is fitted: how it starts, its loss, what is measured of a fit, and what moves.

    ``start``, ``loss``, ``measure`` and ``trained`` are as `fit_grid` takes them: equal for equal
    learners, so that nothing is compiled twice. ``dims`` are those of what is measured as an array.
    """

    start: Callable[[Any], Any]
    loss: Callable[[Any, Any], Any]
    measure: Callable[[Any, Any], Any]
    trained: Callable[[Any], Any] | None = None
    dims: Mapping[str, Sequence[str]] | None = None


def learning_curve(
    learner: Learner, train: Any, checks: Any, s: FitSettings, *, key: Array
) -> xr.Dataset:
    """The learning curve of any learner: for each size the fit that validation chose.

    ``train`` is a PyTree of arrays (samples, …), of which a fit of size n sees the first n;
    ``checks`` is what the learner measures on. Start and minibatches are functions of ``key``
    alone: learners that are given the same key are paired. Labelled data, dimension ``size``:
    what was measured, ``train_loss``, ``settling`` (its relative fall over the last fifth of the
    steps), the chosen ``step_size`` and ``weight_decay``, and, where grids widen, ``at_end``:
    whether one of them is an end of the values that were tried. The choice is that of the smallest
    loss on validation samples, or of the fewest wrong validation labels, where the learner counts
    them.
    """

    def fit(
        sizes: Sequence[int], step_sizes: Sequence[float], weight_decays: Sequence[float]
    ) -> xr.Dataset:
        return fit_grid(
            learner.start,
            learner.loss,
            learner.measure,
            train,
            checks,
            sizes=sizes,
            key=key,
            step_sizes=step_sizes,
            weight_decays=weight_decays,
            recipe=Recipe(s.steps, s.batch_size, optimizer=s.optimizer),
            trained=learner.trained,
            dims=learner.dims,
        )

    if not s.widen:
        fits = fit(s.sizes, s.step_sizes, s.weight_decays)
        return choose(fits, by=_criteria(fits))
    # One fit at a time: every size goes its own way, and all fits share one compiled program.
    model = learner.start(jax.random.split(key)[0])
    learner = replace(learner, start=lambda _: model)
    curve = [_widened(lambda step, decay, n=n: fit((n,), (step,), (decay,)), s) for n in s.sizes]
    return xr.concat(curve, "size")


def _widened(fit: Callable[[float, float], xr.Dataset], s: FitSettings) -> xr.Dataset:
    """The best fit of one size on a grid that goes on where its best fit is at an end."""
    tried = {(a, d): fit(a, d) for a in s.step_sizes for d in s.weight_decays}
    for _ in range(s.widen):
        further = _further(tried)
        if not further:
            break
        tried |= {pair: fit(*pair) for pair in further}
    step, decay = _best(tried)
    chosen = tried[step, decay].isel(step_size=0, weight_decay=0, drop=True)
    tuned = {"step_size": step, "weight_decay": decay, "at_end": bool(_further(tried))}
    return chosen.assign({name: ("size", [value]) for name, value in tuned.items()})


def _further(tried: Mapping[tuple[float, float], xr.Dataset]) -> list[tuple[float, float]]:
    """The pairs next to the best one that have not been tried: beyond an end, or in a corner."""
    step, decay = _best(tried)
    steps, decays = (sorted({pair[k] for pair in tried}) for k in (0, 1))
    pairs = [(value, decay) for value in _next_to(step, steps)]
    pairs += [(step, value) for value in _next_to(decay, decays)]
    return [pair for pair in pairs if pair not in tried]


def _best(tried: Mapping[tuple[float, float], xr.Dataset]) -> tuple[float, float]:
    return min(tried, key=lambda pair: _rank(tried[pair]))


def _rank(fit: xr.Dataset) -> tuple[float, ...]:
    """What the choice goes by: the smaller, the better; a fit without a loss comes last."""
    values = [float(fit[name].values.item()) for name in _criteria(fit)]
    return tuple(math.inf if math.isnan(value) else value for value in values)


def _criteria(fits: xr.Dataset) -> tuple[str, ...]:
    """Wrong validation labels where they are counted, and among equals the validation loss."""
    return ("valid_error", "valid_loss") if "valid_error" in fits else ("valid_loss",)


def _next_to(value: float, grid: Sequence[float]) -> list[float]:
    """The values below and above one of an ascending grid, which goes on at its ends; none for a grid
    of one value, and none below zero.

    >>> _next_to(0.1, [0.0, 0.1]), _next_to(0.0, [0.0, 0.1]), _next_to(0.25, [0.25, 1.0])
    ([0.0, 0.3], [0.1], [0.0625, 1.0])
    """
    if len(grid) == 1:
        return []
    place = grid.index(value)
    below = [grid[place - 1]] if place else [value * grid[0] / grid[1]][: int(value > 0)]
    if place + 1 < len(grid):
        return [*below, grid[place + 1]]
    ratio = value / grid[-2] if grid[-2] > 0 else _FACTOR
    return [*below, float(np.round(value * ratio, 12))]


def _drawn(
    source: Source, student: Student, n: int, key: Array, noisy: bool, dtype: str
) -> dict[str, Any]:
    """What a student is given of ``n`` samples, and their labels; floats in one type."""
    x, y = source.sample(n, key=key, noisy=noisy)
    if len(x) != n or np.shape(y) != (n,):
        raise AttnlabError(
            f"the source gave inputs of shape {np.shape(x)} and labels of shape {np.shape(y)} for "
            f"n={n}; expected "
            f"({n}, …) and ({n},)"
        )

    def typed(leaf: Any) -> Array:
        values = jnp.asarray(leaf)
        return values.astype(dtype) if jnp.issubdtype(values.dtype, jnp.floating) else values

    return jax.tree.map(typed, {"x": student.given(source, jnp.asarray(x)), "y": y})


@dataclass(frozen=True)
class InType:
    """A start whose floating arrays have one type."""

    start: Callable[[Any], Any]
    dtype: str

    def __call__(self, key: Any) -> Any:
        """Draw a model."""
        return jax.tree.map(
            lambda a: a.astype(self.dtype) if eqx.is_inexact_array(a) else a, self.start(key)
        )


@dataclass(frozen=True)
class SampleLoss:
    """Mean squared error; for whole-number labels cross-entropy, with one output for two classes."""

    answer: Callable[[Any, Any], Any]

    def __call__(self, model: Any, batch: Any) -> Any:
        """The mean over a batch."""
        outputs, y = _answers(self.answer, model, batch["x"]), batch["y"]
        if jnp.issubdtype(y.dtype, jnp.floating):
            _expect(outputs.ndim == 1, "one number per input, for regression", outputs)
            return jnp.mean((outputs - y) ** 2)
        if outputs.ndim == 1:
            return jnp.mean(optax.sigmoid_binary_cross_entropy(outputs, y.astype(outputs.dtype)))
        _expect(outputs.ndim == 2, "one number per input, or one per class", outputs)
        logs = jax.nn.log_softmax(outputs, axis=1)
        return -jnp.mean(jnp.take_along_axis(logs, y[:, None], axis=1))


@dataclass(frozen=True)
class SampleMeasure:
    """``valid_loss``, and on test points the ``score``: ``"error"`` is ``E(ŷ − g)²/Var g``, or the
    share of wrong labels, ``"accuracy"`` that of right ones.
    """

    answer: Callable[[Any, Any], Any]
    score: str = "error"

    def __call__(self, model: Any, checks: Any) -> dict[str, Any]:
        """Both for one model."""
        test = checks["test"]
        outputs, y = _answers(self.answer, model, test["x"]), test["y"]
        if jnp.issubdtype(y.dtype, jnp.floating):
            score = jnp.mean((outputs - y) ** 2) / jnp.var(y)
        elif self.score == "accuracy":
            score = jnp.mean((predicted_labels(outputs, y) == y).astype(outputs.dtype))
        else:
            score = jnp.mean(predicted_labels(outputs, y) != y)
        return {"valid_loss": SampleLoss(self.answer)(model, checks["valid"]), self.score: score}


def _answers(answer: Callable[[Any, Any], Any], model: Any, x: Any) -> Any:
    """``answer(model, x)`` for every sample; all at once where a model is called and can do so."""
    if answer is call and eqx.is_array(x):
        return answers(model, x)
    return jax.vmap(answer, (None, 0))(model, x)


def predicted_labels(outputs: Any, y: Any) -> Any:
    """The labels that outputs stand for, in the type of ``y``."""
    found = outputs > 0 if outputs.ndim == 1 else jnp.argmax(outputs, axis=1)
    return found.astype(y.dtype)


def _expect(right: bool, expected: str, outputs: Any) -> None:
    if not right:
        raise AttnlabError(
            f"the model's outputs for a batch have shape {outputs.shape}; expected {expected}: "
            "does the model return "
            "an array of shape () for one input?"
        )


def predicted_ratios(source: Source, student: Student, key: Array) -> dict[str, float]:
    """The bound calculators' ratios of raw against attended inputs; none for students that do not
    attend by a rule.
    """
    if not isinstance(student.given, Attended | Weights):
        return {}
    mask = getattr(student.given, "mask", None)
    if isinstance(mask, StaticMask) and isinstance(source, Teacher):
        return _population(source.inputs, mask.features, mask.relevant)
    x, _ = source.sample(_BOUND_SAMPLES, key=key)
    given = student.given(source, x)
    seen = given if isinstance(student.given, Attended) else given[0] @ given[1][:, 0]
    return bound_ratios(x, seen).as_dict()


@lru_cache(maxsize=64)
def _population(inputs: Inputs, features: int, kept: tuple[int, ...]) -> dict[str, float]:
    """The same of the distribution itself, where a mask is static."""
    x = inputs.draw(_MORE_SAMPLES, (features,), np.random.default_rng(0))
    squares = np.stack([(part**2).sum(axis=1) for part in (x, x[:, list(kept)])], axis=1)
    found = population_ratios(
        inputs.covariance(features),
        list(kept),
        kurtosis=inputs.kurtosis,
        squares=squares,
        draws=_BOUND_SAMPLES,
    )
    return found.as_dict()
