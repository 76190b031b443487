"""Probes: what is recorded. They run inside the compiled loop, so that whole weights are never copied out."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab._errors import AttnlabError
from attnlab.models import Tokens, WordAttention, guarded, too_wide
from attnlab.training._objective import Evaluation, Frame, Trained, WordObjective

Dims = dict[str, tuple[str, ...]]


class Moment(NamedTuple):
    """A run at one step: parameters, and loss and gradient *of the same step*."""

    step: Int[Array, ""]
    frame: Frame
    trained: Trained
    evaluation: Evaluation
    objective: WordObjective
    splits: dict[str, WordObjective]
    words: Int[Array, "chosen"]
    full_batch: bool

    def scores(self) -> Float[Array, "chosen"]:
        """Scores of the chosen words."""
        return self.frame.scores(self.trained, self.words)

    def embeddings(self) -> Float[Array, "chosen d"]:
        """Embeddings of the chosen words."""
        return self.frame.embeddings(self.trained, self.words)

    def model(self) -> WordAttention:
        """The whole model."""
        return self.frame.model(self.trained)

    def split(self, name: str | None) -> WordObjective:
        """The data of a split; the training data for ``None``."""
        if name is None:
            return self.objective
        if name not in self.splits:
            raise AttnlabError(f"no split {name!r}; given were {sorted(self.splits) or 'none'} (train(..., splits=…))")
        return self.splits[name]


class Transition(NamedTuple):
    """One step: where it started, and by how much the parameters moved."""

    moment: Moment
    update: Trained
    step_size: float


class AbstractProbe(abc.ABC):
    """What to record. Probes are small frozen dataclasses: equal probes share one compiled loop."""

    @property
    @abc.abstractmethod
    def dims(self) -> Dims:
        """The names recorded, and their dimensions; ``"word"`` stands for the chosen words."""

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
    """A probe of the present moment alone."""

    @property
    def every_step(self) -> bool:
        """It looks only when a row is recorded."""
        return False

    @property
    def needs_context(self) -> bool:
        """No."""
        return False

    def initial(self, moment: Moment) -> None:
        """Nothing to remember."""

    def follow(self, memory: None, transition: Transition) -> None:
        """Nothing to remember."""

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
        """One number a word."""
        return {"score": ("word",)}

    def look(self, moment: Moment) -> dict[str, Array]:
        """The scores."""
        return {"score": moment.scores()}


@dataclass(frozen=True)
class Norms(InstantProbe):
    """``norm``: |ν_w| of the chosen words."""

    @property
    def dims(self) -> Dims:
        """One number a word."""
        return {"norm": ("word",)}

    def look(self, moment: Moment) -> dict[str, Array]:
        """The norms."""
        return {"norm": jnp.sqrt(jnp.sum(moment.embeddings() ** 2, axis=1))}


@dataclass(frozen=True)
class Attention(InstantProbe):
    """``attention``: mean attention on each chosen word over the training sentences that contain it."""

    @property
    def dims(self) -> Dims:
        """One number a word."""
        return {"attention": ("word",)}

    def look(self, moment: Moment) -> dict[str, Array]:
        """``mean_{n∋w} a_nw``, repeats of a word in one sentence counted together; nan for an absent word."""
        incidence = moment.objective.incidence
        s = moment.frame.scores(moment.trained)

        def fast() -> Array:
            e = jnp.exp(s - jnp.max(s))[:, None]
            return (e * incidence.word_sums(1 / incidence.sentence_sums(e)))[:, 0]

        def safe() -> Array:
            tokens = Tokens.of(incidence)
            return jax.ops.segment_sum(tokens.weigh(s), tokens.ids, s.shape[0])

        total = guarded(too_wide(s), fast, safe)
        offsets = incidence.by_word.offsets
        present = (offsets[moment.words + 1] - offsets[moment.words]).astype(s.dtype)
        return {"attention": total[moment.words] / present}


@dataclass(frozen=True)
class Loss(InstantProbe):
    """``loss`` on the training data, or ``loss_<split>`` on a split given to ``train``."""

    split: str | None = None

    @property
    def dims(self) -> Dims:
        """One number."""
        return {_named("loss", self.split): ()}

    def look(self, moment: Moment) -> dict[str, Array]:
        """Mean cross-entropy; on the training data of full-batch descent it costs nothing."""
        if self.split is None and moment.full_batch:
            return {"loss": moment.evaluation.loss}
        loss, _ = moment.split(self.split).loss_and_logits(moment.frame, moment.trained)
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
        data = moment.split(self.split)
        loss, logits = data.loss_and_logits(moment.frame, moment.trained)
        right = jnp.argmax(logits, axis=1).astype(jnp.int32) == data.incidence.labels
        return {_named("accuracy", self.split): jnp.mean(right, dtype=loss.dtype)}


@dataclass(frozen=True)
class GradientNorm(InstantProbe):
    """``gradient_norm``: norm of the gradient that the step follows (the minibatch's), by all that is trained."""

    @property
    def dims(self) -> Dims:
        """One number."""
        return {"gradient_norm": ()}

    def look(self, moment: Moment) -> dict[str, Array]:
        """The norm."""
        return {"gradient_norm": moment.frame.gradient_norm(moment.evaluation.gradient)}


@dataclass(frozen=True)
class Measure(InstantProbe):
    """A quantity of one's own: ``function(model) → array``, traced by JAX.

    >>> probe = Measure("query_norm", lambda model: jnp.linalg.norm(model.query))
    >>> probe.dims
    {'query_norm': ()}
    """

    name: str
    function: Callable[[WordAttention], Array]
    axes: tuple[str, ...] = ()

    @property
    def dims(self) -> Dims:
        """As declared."""
        return {self.name: self.axes}

    def look(self, moment: Moment) -> dict[str, Array]:
        """The user's number."""
        value = jnp.asarray(self.function(moment.model()))
        if value.ndim != len(self.axes):
            raise AttnlabError(f"Measure {self.name!r} returned shape {value.shape} but declares axes {self.axes}")
        return {self.name: value}


def _named(name: str, split: str | None) -> str:
    return name if split is None else f"{name}_{split}"
