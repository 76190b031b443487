"""Students and sources by name: what is fitted to samples, and where the samples come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from attnlab._errors import AttnlabError
from attnlab.models import (
    TEACHER_ATTENTION,
    BaselineConfig,
    Gate,
    KnownWeightsConfig,
    LabelTeacher,
    MovingBlock,
    MultiLayerConfig,
    SelfAttentionConfig,
    StaticMask,
    Teacher,
    VacuousMask,
)

VECTOR_HIDDEN, MATRIX_HIDDEN = (
    8,
    24,
)  # docs/theory.md#b2: hidden units of the baseline on vectors and on matrices
_BLOCK = 512


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
class Attended:
    """``x ⊙ f(x)`` with a mask f; the head on it is the known-attention model."""

    mask: Callable[[Array], Array]

    def __call__(self, source: Any, x: Array) -> Array:
        """All attended inputs."""
        del source
        return x * jax.vmap(self.mask)(x)


@dataclass(frozen=True)
class Weights:
    """``(x, a(x))`` with the teacher's attention weights; wrong ones look ``turn`` words further
    than they should.
    """

    turn: int = 0

    def __call__(self, source: Any, x: Array) -> tuple[Array, Array]:
        """Inputs and the weights of every layer, (samples, layers, p, p)."""
        a = jax.lax.map(source.model.attentions, x, batch_size=_BLOCK)
        return x, jnp.roll(a, self.turn, axis=2)


# What each named student is, for teachers on vectors and on matrices.
VECTOR_STUDENTS = ("baseline", "known-attention", "vacuous-mask", "wrong-mask", "self-attention")
MATRIX_STUDENTS = ("baseline", "known-weights", "wrong-weights", "self-attention", "multi-layer")
STUDENTS = tuple(dict.fromkeys((*VECTOR_STUDENTS, *MATRIX_STUDENTS)))


def own_student(function: Callable[..., Any], shape: tuple[int, ...]) -> Student:
    """A user's module, which is called with one input."""
    return Student(OwnStart(function, tuple(shape)), as_it_is, call)


def make_student(
    name: str, source: Any, *, hidden: int | None = None, depth: int = 1, sharpness: float = 4.0
) -> Student:
    """A named student for a teacher; ``hidden`` is the baseline's number of hidden units.

    >>> from attnlab.models import make_teacher
    >>> teacher = make_teacher("gate", key=jax.random.key(0), features=8, relevant=2)
    >>> make_student("known-attention", teacher).given
    Attended(mask=Gate(relevant=(0, 1), features=8))
    """
    if not isinstance(source, Teacher | LabelTeacher):
        raise AttnlabError(
            f"student {name!r} is made for attnlab's teachers; with a source of your own, give "
            "'file.py:function'"
        )
    shape = source.shape
    known = VECTOR_STUDENTS if len(shape) == 1 else MATRIX_STUDENTS
    if name not in known:
        raise AttnlabError(
            f"student {name!r}: for inputs of shape {shape} the students are {', '.join(known)}; "
            "or give your own as "
            "'file.py:function', a function of (key, shape) that returns an Equinox module"
        )
    outputs = _outputs(source)
    if len(shape) == 1:
        return _vector_student(name, source, shape[0], hidden or VECTOR_HIDDEN, sharpness, outputs)
    return _matrix_student(name, shape, hidden or MATRIX_HIDDEN, depth, sharpness, outputs)


def _outputs(source: Any) -> int:
    return source.classes if isinstance(source, LabelTeacher) and source.classes > 2 else 1


def _vector_student(
    name: str, source: Any, p: int, hidden: int, sharpness: float, outputs: int
) -> Student:
    head = Start(BaselineConfig(p, hidden, outputs, sharpness))
    if name == "baseline":
        return Student(head, as_it_is, call)
    if name == "self-attention":
        sizes = SelfAttentionConfig(
            embedding_dim=1, words=p, key_dim=1, value_dim=1, hidden=hidden, outputs=outputs
        )
        return Student(Start(replace(sizes, sharpness=sharpness)), _as_row, call)
    return Student(head, Attended(_mask(name, source, p)), call)


def _as_row(source: Any, x: Array) -> Array:
    """Numbers as words of dimension one."""
    del source
    return x[:, None, :]


def _mask(name: str, source: Any, p: int) -> Callable[[Array], Array]:
    own = getattr(source.model, "mask", None)
    if name == "vacuous-mask":
        return VacuousMask(p)
    if own is None:
        raise AttnlabError(
            f"student {name!r}: this teacher has no mask to know; take 'baseline' or 'vacuous-mask'"
        )
    if name == "known-attention":
        return own
    if isinstance(own, MovingBlock):
        raise AttnlabError(
            "student 'wrong-mask': a moving block has no place that could be wrong; take a static "
            "mask"
        )
    assert isinstance(own, StaticMask | Gate)
    return StaticMask(own.relevant, p).wrong()


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
