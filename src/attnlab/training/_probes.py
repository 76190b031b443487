"""Probes define what is recorded. They run inside the compiled loop: weights are never copied out."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab._errors import AttnlabError
from attnlab.models import Tokens
from attnlab.training._bag_objective import BagObjective
from attnlab.training._objective import Frame, WordObjective
from attnlab.training._problem import AbstractFrame, AbstractObjective, Evaluation, Trained

Dims = dict[str, tuple[str, ...]]


class _NoWords(AttnlabError):
    """A probe needs words, but the model has none."""


class _NoSoftmax(AttnlabError):
    """A probe needs softmax attention, but the model has another normaliser."""


class Moment(NamedTuple):
    """A run at one step: parameters, and loss and gradient *of the same step*.

    ``coordinates``, ``data`` and ``parts`` exist for every model; ``frame``, ``objective``,
    ``scores`` and ``embeddings`` only for word attention.
    """

    step: Int[Array, ""]
    coordinates: AbstractFrame
    trained: Trained
    evaluation: Evaluation
    data: AbstractObjective[Any]
    parts: Mapping[str, AbstractObjective[Any]]
    words: Int[Array, "chosen"]
    full_batch: bool

    @property
    def frame(self) -> Frame:
        """The coordinates of word attention."""
        if not isinstance(self.coordinates, Frame):
            raise _NoWords("this model has no words")
        return self.coordinates

    @property
    def objective(self) -> WordObjective:
        """The training corpus, of softmax attention."""
        if isinstance(self.data, BagObjective):
            raise _NoSoftmax(f"the model's attention is {self.data.normaliser.name}")
        if not isinstance(self.data, WordObjective):
            raise _NoWords("this model has no words")
        return self.data

    def scores(self) -> Float[Array, "chosen"]:
        """Scores of the chosen words."""
        return self.frame.scores(self.trained, self.words)

    def embeddings(self) -> Float[Array, "chosen d"]:
        """Embeddings of the chosen words."""
        return self.frame.embeddings(self.trained, self.words)

    def model(self) -> Any:
        """The whole model."""
        return self.coordinates.model(self.trained)

    def split(self, name: str | None) -> AbstractObjective[Any]:
        """The data of a split; the training data for ``None``."""
        if name is None:
            return self.data
        if name not in self.parts:
            raise AttnlabError(
                f"no split {name!r}; expected one of {sorted(self.parts) or 'none'} (pass it as "
                "splits=…)"
            )
        return self.parts[name]


def _of_words(data: AbstractObjective[Any]) -> WordObjective | BagObjective:
    if not isinstance(data, WordObjective | BagObjective):
        raise _NoWords("this model has no words")
    return data


class Transition(NamedTuple):
    """One step: the moment before it, and the update of the parameters."""

    moment: Moment
    update: Trained
    step_size: Float[Array, ""]


class AbstractProbe(abc.ABC):
    """What to record. Probes are small frozen dataclasses: equal probes share one compiled loop."""

    @property
    @abc.abstractmethod
    def dims(self) -> Dims:
        """The recorded names with their dimensions; ``"word"`` is that of the chosen words."""

    @property
    @abc.abstractmethod
    def every_step(self) -> bool:
        """Whether the probe must see every step."""

    @property
    @abc.abstractmethod
    def needs_context(self) -> bool:
        """Whether ``Evaluation.context_term`` is needed."""

    @abc.abstractmethod
    def initial(self, moment: Moment) -> Any:
        """The probe's memory at step 0."""

    @abc.abstractmethod
    def follow(self, memory: Any, transition: Transition) -> Any:
        """The memory after a step."""

    @abc.abstractmethod
    def measure(self, memory: Any, moment: Moment) -> dict[str, Array]:
        """The row to record."""


class InstantProbe(AbstractProbe):
    """A probe of the current moment, without memory."""

    @property
    def every_step(self) -> bool:
        """False: it is evaluated only when a row is recorded."""
        return False

    @property
    def needs_context(self) -> bool:
        """No."""
        return False

    def initial(self, moment: Moment) -> None:
        """No memory."""

    def follow(self, memory: None, transition: Transition) -> None:
        """No memory."""

    def measure(self, memory: None, moment: Moment) -> dict[str, Array]:
        """The row to record."""
        del memory
        return self.look(moment)

    @abc.abstractmethod
    def look(self, moment: Moment) -> dict[str, Array]:
        """The row to record."""


@dataclass(frozen=True)
class Scores(InstantProbe):
    """``score``: s_w of the chosen words."""

    @property
    def dims(self) -> Dims:
        """One number per word."""
        return {"score": ("word",)}

    def look(self, moment: Moment) -> dict[str, Array]:
        """The scores."""
        return {"score": moment.scores()}


@dataclass(frozen=True)
class Norms(InstantProbe):
    """``norm``: |ν_w| of the chosen words."""

    @property
    def dims(self) -> Dims:
        """One number per word."""
        return {"norm": ("word",)}

    def look(self, moment: Moment) -> dict[str, Array]:
        """The norms."""
        return {"norm": jnp.sqrt(jnp.sum(moment.embeddings() ** 2, axis=1))}


@dataclass(frozen=True)
class Attention(InstantProbe):
    """``attention``: mean attention on each chosen word, over training sentences that contain it."""

    @property
    def dims(self) -> Dims:
        """One number per word."""
        return {"attention": ("word",)}

    def look(self, moment: Moment) -> dict[str, Array]:
        """``mean_{n∋w} a_nw``; repeats of a word in a sentence are summed, an absent word is nan."""
        s = moment.frame.scores(moment.trained)
        if isinstance(moment.data, BagObjective):
            return {"attention": _attention_in_bags(moment.data, s, moment.words)}
        incidence = moment.objective.incidence

        def fast() -> Array:
            e = jnp.exp(s - jnp.max(s))[:, None]
            return (e * incidence.word_sums(1 / incidence.sentence_sums(e)))[:, 0]

        def safe() -> Array:
            tokens = Tokens.of(incidence)
            return jax.ops.segment_sum(tokens.weigh(s), tokens.ids, s.shape[0])

        total = moment.objective.chosen(s, fast, safe)
        offsets = incidence.by_word.offsets
        present = (offsets[moment.words + 1] - offsets[moment.words]).astype(s.dtype)
        return {"attention": total[moment.words] / present}


def _attention_in_bags(data: BagObjective, scores: Array, words: Array) -> Float[Array, "chosen"]:
    weights, bags = data.weights(scores), data.bags

    def of_word(word: Array) -> Array:
        here = (bags.words == word) & bags.present
        sentences = jnp.sum(jnp.any(here, axis=1)).astype(scores.dtype)
        return jnp.sum(jnp.where(here, weights, 0)) / sentences

    return jax.lax.map(of_word, words)


@dataclass(frozen=True)
class Loss(InstantProbe):
    """``loss`` on the training data, or ``loss_<split>`` on a split given to ``train``."""

    split: str | None = None

    @property
    def dims(self) -> Dims:
        """One number."""
        return {_named("loss", self.split): ()}

    def look(self, moment: Moment) -> dict[str, Array]:
        """Mean loss (cross-entropy for ``train``)."""
        # Full-batch descent has already computed its training loss.
        if self.split is None and moment.full_batch:
            return {"loss": moment.evaluation.loss}
        loss = moment.split(self.split).loss(moment.coordinates, moment.trained)
        return {_named("loss", self.split): loss}


@dataclass(frozen=True)
class Accuracy(InstantProbe):
    """``accuracy`` on the training data, or ``accuracy_<split>`` on a split given to ``train``."""

    split: str | None = None

    @property
    def dims(self) -> Dims:
        """One number."""
        return {_named("accuracy", self.split): ()}

    def look(self, moment: Moment) -> dict[str, Array]:
        """Share of sentences whose largest logit is their label's."""
        data = _of_words(moment.split(self.split))
        loss, logits = data.loss_and_logits(moment.frame, moment.trained)
        right = jnp.argmax(logits, axis=1).astype(jnp.int32) == data.labels
        return {_named("accuracy", self.split): jnp.mean(right, dtype=loss.dtype)}


@dataclass(frozen=True)
class GradientNorm(InstantProbe):
    """``gradient_norm``: norm of the gradient of the step (of its minibatch), by all trained arrays."""

    @property
    def dims(self) -> Dims:
        """One number."""
        return {"gradient_norm": ()}

    def look(self, moment: Moment) -> dict[str, Array]:
        """The norm."""
        return {"gradient_norm": moment.coordinates.gradient_norm(moment.evaluation.gradient)}


@dataclass(frozen=True)
class Elapsed(AbstractProbe):
    """``elapsed``: the time τ, the sum of all steps' sizes, where these are not all equal."""

    @property
    def dims(self) -> Dims:
        """One number."""
        return {"elapsed": ()}

    @property
    def every_step(self) -> bool:
        """True: it is a sum over all steps."""
        return True

    @property
    def needs_context(self) -> bool:
        """No."""
        return False

    def initial(self, moment: Moment) -> Array:
        """Zero."""
        return jnp.zeros_like(moment.evaluation.loss)

    def follow(self, memory: Array, transition: Transition) -> Array:
        """Add one step."""
        return memory + transition.step_size

    def measure(self, memory: Array, moment: Moment) -> dict[str, Array]:
        """The sum."""
        del moment
        return {"elapsed": memory}


@dataclass(frozen=True)
class Measure(InstantProbe):
    """A user-defined quantity: ``function(model) → array``, traced by JAX.

    >>> probe = Measure("query_norm", lambda model: jnp.linalg.norm(model.query))
    >>> probe.dims
    {'query_norm': ()}
    """

    name: str
    function: Callable[[Any], Array]
    axes: tuple[str, ...] = ()

    @property
    def dims(self) -> Dims:
        """As declared."""
        return {self.name: self.axes}

    def look(self, moment: Moment) -> dict[str, Array]:
        """The user-defined value."""
        value = jnp.asarray(self.function(moment.model()))
        if value.ndim != len(self.axes):
            raise AttnlabError(
                f"Measure {self.name!r} returned shape {value.shape} but declares axes {self.axes}"
            )
        return {self.name: value}


def _named(name: str, split: str | None) -> str:
    return name if split is None else f"{name}_{split}"


@contextmanager
def _explaining(probe: AbstractProbe) -> Iterator[None]:
    try:
        yield
    except _NoWords:
        raise no_words(probe) from None
    except _NoSoftmax as error:
        raise no_softmax(probe, str(error)) from None


def no_words(probe: AbstractProbe) -> AttnlabError:
    """The error of a probe that needs words."""
    return AttnlabError(
        f"the probe {type(probe).__name__} needs the words of a WordAttention, which this model "
        "does not have; record Loss, GradientNorm or Measure(name, function_of_the_model) instead, "
        "or use attnlab.train"
    )


def no_softmax(probe: AbstractProbe, why: str) -> AttnlabError:
    """The error of a probe that needs softmax."""
    return AttnlabError(
        f"the probe {type(probe).__name__} is defined for softmax attention only, but {why}; leave "
        "it out"
    )


def first_memories(probes: Sequence[AbstractProbe], moment: Moment) -> tuple[Any, ...]:
    """The probes' memories at step 0."""
    memories = []
    for probe in probes:
        with _explaining(probe):
            memories.append(probe.initial(moment))
    return tuple(memories)


def next_memories(
    probes: Sequence[AbstractProbe], memories: Sequence[Any], transition: Transition
) -> tuple[Any, ...]:
    """The probes' memories after a step."""
    following = []
    for probe, memory in zip(probes, memories, strict=True):
        with _explaining(probe):
            following.append(probe.follow(memory, transition))
    return tuple(following)


def measured(
    probes: Sequence[AbstractProbe], memories: Sequence[Any], moment: Moment
) -> dict[str, Array]:
    """The row of the current step."""
    row: dict[str, Array] = {}
    for probe, memory in zip(probes, memories, strict=True):
        with _explaining(probe):
            row |= probe.measure(memory, moment)
    return row
