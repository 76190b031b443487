"""Variants of attention by name: a normaliser, and a penalty on request; the student and the loss
that they make.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from attnlab._errors import AttnlabError
from attnlab.models import (
    AbstractNormaliser,
    Baseline,
    BaselineConfig,
    attention_entropy,
    entropy_penalty,
    make_normaliser,
    query_l1,
    toward,
)
from attnlab.papers.liu2021.curve_runs import SampleLoss, SampleMeasure

PENALTIES = ("entropy", "l1", "prior", "wrong-prior")


@dataclass(frozen=True)
class Variant:
    """``normaliser`` as ``make_normaliser`` takes it, and ``strength`` times a ``penalty`` on the
    training loss.

    - ``"entropy"``: the mean entropy of attention, which pushes towards few words;
    - ``"l1"``: ``Σ|q_i|`` of the query;
    - ``"prior"``: ``|a − given|²``, given being the weights that are right; ``"wrong-prior"``:
      those of other words.

    >>> Variant.of("softmax:0.25+entropy:0.1")
    Variant(normaliser='softmax:0.25', penalty='entropy', strength=0.1)
    """

    normaliser: str = "softmax"
    penalty: str = ""
    strength: float = 0.0

    @classmethod
    def of(cls, name: str) -> Variant:
        """From its name: ``NORMALISER`` or ``NORMALISER+PENALTY:STRENGTH``."""
        normaliser, plus, rest = name.partition("+")
        make_normaliser(normaliser)
        if not plus:
            return cls(normaliser)
        penalty, _, strength = rest.partition(":")
        try:
            value = float(strength)
        except ValueError:
            value = float("nan")
        if penalty not in PENALTIES or not 0 < value < float("inf"):
            raise AttnlabError(
                f"variant {name!r}: expected a penalty after '+', one of {', '.join(PENALTIES)}, "
                "with a strength above "
                "0, as in softmax+entropy:0.1"
            )
        return cls(normaliser, penalty, value)


class PoolingStudent(eqx.Module):
    """``y = w₂ᵀ φ(w₁ᵀ Σ_z a_z x_z)`` with ``a = norm(xᵀ q)``: words of dimension t, the columns of
    x (docs/theory.md#b5).

    >>> student = StudentStart("sparsemax", embedding_dim=8, hidden=16)(jax.random.key(0))
    >>> x = jnp.ones((8, 5), jnp.float32)
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
    dtype: str = "float32"

    def __call__(self, key: Key[Array, ""]) -> PoolingStudent:
        """Draw a student."""
        query = self.query_std * jax.random.normal(
            jax.random.fold_in(key, 3), (self.embedding_dim,), jnp.float64
        )
        head = BaselineConfig(self.embedding_dim, self.hidden).init(key)
        model = PoolingStudent(query, head, make_normaliser(self.normaliser))
        return jax.tree.map(
            lambda leaf: leaf.astype(self.dtype) if eqx.is_inexact_array(leaf) else leaf, model
        )


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
    """``valid_loss`` and ``error`` (``accuracy`` for labels) as ``SampleMeasure`` says, and what
    attention is like.

    ``entropy``: the mean of ``−Σ a log a`` on test samples, in nats; ``attention``: the mean weight
    of the words that are known to matter, where a sample says which.
    """

    answer: Callable[[Any, Any], Any]
    weigh: Callable[[Any, Any], Any]

    def __call__(self, model: Any, checks: Any) -> dict[str, Array]:
        """All of it, for one model."""
        found = SampleMeasure(self.answer)(model, checks)
        x = checks["test"]["x"]
        weights = jax.vmap(self.weigh, (None, 0))(model, x)
        found["entropy"] = jnp.mean(attention_entropy(weights))
        if "given" in x:
            found["attention"] = jnp.mean(jnp.sum(jnp.where(x["given"] > 0, weights, 0), axis=1))
        if not jnp.issubdtype(checks["test"]["y"].dtype, jnp.floating):
            found["accuracy"] = 1 - found.pop("error")
        return found
