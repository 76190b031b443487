"""The objective of ``train``: word attention on a corpus, in the cheapest exact coordinates.

Descent moves ``κ_w`` only along a frozen query, and ``ν_w`` only inside the span of a frozen first
layer. It is then exact to train one number per word along the query, and one per column of that
layer (docs/theory.md#a2).
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree

from attnlab.data import Corpus
from attnlab.models import (
    AbstractHead,
    AbstractNormaliser,
    Incidence,
    Part,
    Softmax,
    Tokens,
    TwoLayerHead,
    WordAttention,
    guarded,
    pool_tokens,
    too_wide,
)
from attnlab.training._problem import (
    AbstractFrame,
    AbstractObjective,
    Evaluation,
    Outer,
    Trained,
    tall_product,
)

Rows = Int[Array, "rows"] | None


def _rows(array: Array, rows: Rows) -> Array:
    return array if rows is None else array[rows]


class AbstractScores(eqx.Module):
    """The scores as a function of the trained coordinates of keys and query."""

    @abc.abstractmethod
    def initial(self) -> Trained:
        """Coordinates at the start."""

    @abc.abstractmethod
    def scores(self, trained: Trained, rows: Rows = None) -> Float[Array, "rows"]:
        """``s_w``."""

    @abc.abstractmethod
    def gradient(self, trained: Trained, ds: Float[Array, "words"]) -> Trained:
        """The gradient in the trained coordinates, from ``∂L/∂s``."""

    @abc.abstractmethod
    def gradient_square(self, gradient: Trained) -> Float[Array, ""]:
        """Squared norm of the gradient in keys and query."""

    @abc.abstractmethod
    def restore(self, trained: Trained) -> tuple[Array, Array]:
        """Keys and query."""


class FreeScores(AbstractScores):
    """Keys and query themselves as coordinates."""

    keys: Float[Array, "words k"]
    query: Float[Array, "k"]
    parts: tuple[str, ...] = eqx.field(static=True)

    def initial(self) -> Trained:
        """Keys and query, as far as they are trained."""
        return {name: getattr(self, name) for name in self.parts}

    def restore(self, trained: Trained) -> tuple[Array, Array]:
        """Keys and query."""
        return trained.get("keys", self.keys), trained.get("query", self.query)

    def scores(self, trained: Trained, rows: Rows = None) -> Array:
        """``κ_w·q``."""
        keys, query = self.restore(trained)
        return _rows(keys, rows) @ query

    def gradient(self, trained: Trained, ds: Array) -> Trained:
        """``∂L/∂κ_w = ∂L/∂s_w·q`` and ``∂L/∂q = Σ_w ∂L/∂s_w·κ_w``."""
        keys, query = self.restore(trained)
        full = {"keys": ds[:, None] * query[None, :], "query": ds @ keys}
        return {name: full[name] for name in self.parts}

    def gradient_square(self, gradient: Trained) -> Array:
        """Sum of squares."""
        return sum(
            (jnp.sum(g**2) for g in gradient.values()), start=jnp.zeros((), self.query.dtype)
        )


class LineScores(AbstractScores):
    """One coordinate ``b_w`` per key, along a frozen query: ``κ_w = κ_w(0) + b_w q``.

    Descent on the keys, ``Δκ_w = −η ∂L/∂s_w q``, is ``Δb_w = −η ∂L/∂s_w``: the gradient in ``b`` is
    that by the scores, *not* the chain rule's ``|q|² ∂L/∂s``. The metric ``|q|²`` enters where the
    scores are computed, ``s_w = s_w(0) + |q|² b_w``.
    """

    keys: Float[Array, "words k"]
    query: Float[Array, "k"]
    start: Float[Array, "words"]
    metric: Float[Array, ""]

    def initial(self) -> Trained:
        """``b = 0``."""
        return {"along_query": jnp.zeros_like(self.start)}

    def restore(self, trained: Trained) -> tuple[Array, Array]:
        """Keys and query."""
        return self.keys + trained["along_query"][:, None] * self.query[None, :], self.query

    def scores(self, trained: Trained, rows: Rows = None) -> Array:
        """``s_w(0) + |q|² b_w``."""
        return _rows(self.start, rows) + self.metric * _rows(trained["along_query"], rows)

    def gradient(self, trained: Trained, ds: Array) -> Trained:
        """``∂L/∂s``, without the metric (see the class)."""
        del trained
        return {"along_query": ds}

    def gradient_square(self, gradient: Trained) -> Array:
        """``|q|² Σ_w (∂L/∂s_w)²``."""
        return self.metric * jnp.sum(gradient["along_query"] ** 2)


class AbstractValues(eqx.Module):
    """The projected table as a function of the trained coordinates of embeddings and head."""

    @abc.abstractmethod
    def initial(self) -> Trained:
        """Coordinates at the start."""

    @abc.abstractmethod
    def head(self, trained: Trained) -> AbstractHead:
        """The head."""

    @abc.abstractmethod
    def embeddings(self, trained: Trained, rows: Rows = None) -> Float[Array, "rows d"]:
        """``ν_w``."""

    @abc.abstractmethod
    def embedding_change(self, update: Trained, rows: Rows = None) -> Float[Array, "rows d"]:
        """``Δν_w`` of an update."""

    @abc.abstractmethod
    def table(self, trained: Trained) -> Float[Array, "words columns"]:
        """The embeddings after the head's first layer."""

    @abc.abstractmethod
    def gradient(
        self, trained: Trained, dtable: Float[Array, "words columns"], dhead: PyTree
    ) -> Trained:
        """The gradient in the trained coordinates, from ``∂L/∂table`` and that of the head's rest."""

    @abc.abstractmethod
    def gradient_square(self, gradient: Trained) -> Float[Array, ""]:
        """Squared norm of the gradient in embeddings and head."""


class FreeValues(AbstractValues):
    """Embeddings and head themselves as coordinates."""

    start: Float[Array, "words d"]
    start_head: AbstractHead
    parts: tuple[str, ...] = eqx.field(static=True)

    def initial(self) -> Trained:
        """Embeddings and head, as far as they are trained."""
        full = {"embeddings": self.start, "head": eqx.filter(self.start_head, eqx.is_inexact_array)}
        return {name: full[name] for name in self.parts}

    def head(self, trained: Trained) -> AbstractHead:
        """The head."""
        if "head" not in self.parts:
            return self.start_head
        return eqx.combine(trained["head"], self.start_head)

    def embeddings(self, trained: Trained, rows: Rows = None) -> Array:
        """``ν_w``."""
        return _rows(trained.get("embeddings", self.start), rows)

    def embedding_change(self, update: Trained, rows: Rows = None) -> Array:
        """``Δν_w``; zero for frozen embeddings."""
        if "embeddings" in self.parts:
            return _rows(update["embeddings"], rows)
        return jnp.zeros_like(_rows(self.start, rows))

    def table(self, trained: Trained) -> Array:
        """``E @ projection``."""
        projection = self.head(trained).projection()
        embeddings = self.embeddings(trained)
        return embeddings if projection is None else tall_product(embeddings, projection)

    def gradient(self, trained: Trained, dtable: Array, dhead: PyTree) -> Trained:
        """``∂L/∂E = ∂L/∂U·Wᵀ`` (as its factors) and ``∂L/∂W = Eᵀ·∂L/∂U`` plus the gradient of the head's rest."""
        projection = self.head(trained).projection()
        gradient: dict[str, Any] = {}
        if "embeddings" in self.parts:
            gradient["embeddings"] = dtable if projection is None else Outer(dtable, projection)
        if "head" in self.parts:
            gradient["head"] = dhead
            if projection is not None:
                _, pull = jax.vjp(lambda t: self.head(t).projection(), trained)
                # In this order XLA reads the embeddings as they are stored; Eᵀ dtable transposes a copy.
                (first,) = pull((dtable.T @ self.embeddings(trained)).T)
                gradient["head"] = jax.tree.map(jnp.add, first["head"], dhead)
        return gradient

    def gradient_square(self, gradient: Trained) -> Array:
        """Sum of squares."""
        return sum(
            (jnp.sum(g**2) for g in jax.tree.leaves(gradient)),
            start=jnp.zeros((), self.start.dtype),
        )


class SpanValues(AbstractValues):
    """Coordinates A of embeddings in the span of a frozen first layer P: ``E = E(0) + A Pᵀ``.

    Descent on the embeddings is ``ΔA = −η ∂L/∂U`` for the table ``U = E P``; the metric ``PᵀP``
    enters in ``U = U(0) + A PᵀP`` (compare ``LineScores``).
    """

    start: Float[Array, "words d"]
    start_head: AbstractHead
    projection: Float[Array, "d columns"]
    start_table: Float[Array, "words columns"]
    metric: Float[Array, "columns columns"]

    def initial(self) -> Trained:
        """``A = 0``."""
        return {"along_head": jnp.zeros_like(self.start_table)}

    def head(self, trained: Trained) -> AbstractHead:
        """The frozen head."""
        del trained
        return self.start_head

    def embeddings(self, trained: Trained, rows: Rows = None) -> Array:
        """``E(0) + A Pᵀ``."""
        return _rows(self.start, rows) + self.embedding_change(trained, rows)

    def embedding_change(self, update: Trained, rows: Rows = None) -> Array:
        """``ΔA Pᵀ``."""
        return _rows(update["along_head"], rows) @ self.projection.T

    def table(self, trained: Trained) -> Array:
        """``U(0) + A PᵀP``."""
        return self.start_table + trained["along_head"] @ self.metric

    def gradient(self, trained: Trained, dtable: Array, dhead: PyTree) -> Trained:
        """``∂L/∂U``, without the metric (see the class)."""
        del trained, dhead
        return {"along_head": dtable}

    def gradient_square(self, gradient: Trained) -> Array:
        """``‖∂L/∂U·Pᵀ‖²``."""
        return jnp.sum((gradient["along_head"] @ self.metric) * gradient["along_head"])


class Frame(AbstractFrame):
    """The constants of one run of word attention, and the map from coordinates to the model."""

    keyed: AbstractScores
    valued: AbstractValues
    trained_parts: tuple[Part, ...] = eqx.field(static=True)
    normaliser: AbstractNormaliser = eqx.field(static=True, default=Softmax())

    @classmethod
    def of(cls, model: WordAttention, *, reduced: bool) -> Frame:
        """Choose coordinates for a model.

        ``reduced`` allows coordinates that are exact only for linear optimisers.
        """
        parts = model.trained
        if reduced and "keys" in parts and "query" not in parts:
            scores = LineScores(model.keys, model.query, model.scores(), model.query @ model.query)
        else:
            scores = FreeScores(
                model.keys, model.query, tuple(p for p in ("keys", "query") if p in parts)
            )
        projection = model.head.projection()
        spanned = reduced and "embeddings" in parts and "head" not in parts
        if spanned and projection is not None and projection.shape[1] < projection.shape[0]:
            metric = projection.T @ projection
            values = SpanValues(
                model.embeddings, model.head, projection, model.embeddings @ projection, metric
            )
        else:
            values = FreeValues(
                model.embeddings, model.head, tuple(p for p in ("embeddings", "head") if p in parts)
            )
        return cls(scores, values, parts, model.normaliser)

    def initial(self) -> Trained:
        """Coordinates at the start."""
        return {"scores": self.keyed.initial(), "values": self.valued.initial()}

    def scores(self, trained: Trained, rows: Rows = None) -> Float[Array, "rows"]:
        """``s_w``."""
        return self.keyed.scores(trained["scores"], rows)

    def embeddings(self, trained: Trained, rows: Rows = None) -> Float[Array, "rows d"]:
        """``ν_w``."""
        return self.valued.embeddings(trained["values"], rows)

    def embedding_change(self, update: Trained, rows: Rows = None) -> Float[Array, "rows d"]:
        """``Δν_w`` of an update."""
        return self.valued.embedding_change(update["values"], rows)

    def model(self, trained: Trained) -> WordAttention:
        """The whole model."""
        keys, query = self.keyed.restore(trained["scores"])
        values = trained["values"]
        head = self.valued.head(values)
        return WordAttention(
            self.valued.embeddings(values), keys, query, head, self.trained_parts, self.normaliser
        )

    def gradient_norm(self, gradient: Trained) -> Float[Array, ""]:
        """Norm of the gradient in the model's own trained parameters."""
        square = self.keyed.gradient_square(gradient["scores"])
        return jnp.sqrt(square + self.valued.gradient_square(gradient["values"]))


class Capacity(NamedTuple):
    """How many entries a minibatch may have: what it hardly ever exceeds, and the maximum.

    Shapes are static, and capacity for the longest sentences all at once would be several times
    what a typical minibatch needs. The guarded program has it; the ordinary one halts where it would
    need more (``Evaluation.wide``), and the guarded one continues.
    """

    likely: int
    most: int

    @classmethod
    def of(cls, corpus: Corpus, batch_size: int) -> Capacity:
        """``likely`` is exceeded with probability below 1e-12 per step, by Bernstein's inequality.

        >>> from attnlab.data import Corpus
        >>> corpus = Corpus.from_tokens([["a"]] * 9000 + [[f"w{k}" for k in range(100)]] * 1000, labels=[0, 1] * 5000)
        >>> Capacity.of(corpus, 256)
        Capacity(likely=7238, most=25600)
        """
        sizes = np.diff(corpus.offsets).astype(np.float64)
        most = int(np.partition(sizes, len(sizes) - batch_size)[len(sizes) - batch_size :].sum())
        # Bernstein: P(sum > mean + x) ≤ exp(−x²/2 / (v + bx/3)) with variance v of the sum and
        # largest deviation b of a term. It also holds without replacement. Solve for x.
        variance, largest = batch_size * sizes.var(), sizes.max() - sizes.mean()
        log = -np.log(1e-12)
        excess = largest * log / 3 + np.sqrt((largest * log / 3) ** 2 + 2 * variance * log)
        return cls(min(most, int(np.ceil(batch_size * sizes.mean() + excess))), most)

    def entries(self, *, guard: bool) -> int:
        """The number of entries of a program."""
        return self.most if guard else self.likely

    def too_small(
        self, offsets: Int[Array, "bounds"], batch: Int[Array, "batch"], *, guard: bool
    ) -> Bool[Array, ""]:
        """Whether a minibatch has more entries than the program's capacity."""
        if guard or self.likely == self.most:
            return jnp.zeros((), bool)
        return jnp.sum(offsets[batch + 1] - offsets[batch]) > self.likely


class WordObjective(AbstractObjective[Frame]):
    """Mean cross-entropy of word attention on a corpus.

    With ``guard``, each sentence gets its own shift where one shift for all could underflow.
    Without it, such scores are only reported (``Evaluation.wide``), and the program is half as
    large.
    """

    incidence: Incidence
    capacity: Capacity = eqx.field(static=True, default=Capacity(0, 0))
    guard: bool = eqx.field(static=True, default=True)

    @classmethod
    def of(cls, corpus: Corpus, dtype: jnp.dtype, batch_size: int | None = None) -> WordObjective:
        """Copy a corpus to JAX."""
        capacity = Capacity(0, 0) if batch_size is None else Capacity.of(corpus, batch_size)
        return cls(Incidence.of(corpus, dtype), capacity)

    @property
    def examples(self) -> int:
        """Number of sentences."""
        return self.incidence.sentences

    @property
    def labels(self) -> Int[Array, "sentences"]:
        """The class of each sentence."""
        return self.incidence.labels

    def guarding(self, on: bool) -> WordObjective:
        """The same data with or without the guard."""
        return WordObjective(self.incidence, self.capacity, on)

    def chosen(
        self, scores: Float[Array, "words"], fast: Callable[[], Any], safe: Callable[[], Any]
    ) -> Any:
        """``fast()``, or with the guard ``safe()`` if the scores are too wide for one shift."""
        return guarded(too_wide(scores), fast, safe) if self.guard else fast()

    def loss(self, frame: Frame, trained: Trained) -> Float[Array, ""]:
        """Loss on all sentences."""
        return self.loss_and_logits(frame, trained)[0]

    def loss_and_logits(
        self, frame: Frame, trained: Trained
    ) -> tuple[Float[Array, ""], Float[Array, "sentences c"]]:
        """Loss and logits on all sentences."""
        scores, table = frame.scores(trained), frame.valued.table(trained["values"])
        head = frame.valued.head(trained["values"])
        pooled = self.chosen(
            scores,
            lambda: self.incidence.pool(jnp.exp(scores - jnp.max(scores)), table)[0],
            lambda: pool_tokens(scores, table, Tokens.of(self.incidence)),
        )
        logits = _finished(head, pooled)
        return cross_entropy(logits, self.incidence.labels), logits

    def evaluate(
        self, frame: Frame, trained: Trained, batch: Int[Array, "batch"] | None, *, context: bool
    ) -> Evaluation:
        """Loss and gradient, on all sentences or on a minibatch of them."""
        scores, table = frame.scores(trained), frame.valued.table(trained["values"])
        head = frame.valued.head(trained["values"])
        wide = jnp.zeros((), bool) if self.guard else too_wide(scores)
        if batch is not None:
            tokens = Tokens.gather(self.incidence, batch, self.capacity.entries(guard=self.guard))
            wide = wide | self.capacity.too_small(
                self.incidence.by_sentence.offsets, batch, guard=self.guard
            )
            return evaluate_tokens(frame, trained, tokens, context=context, wide=wide)
        raw = self.chosen(
            scores,
            lambda: _from_incidence(scores, table, head, self.incidence, context),
            lambda: _from_tokens(scores, table, head, Tokens.of(self.incidence), context),
        )
        return _evaluation(frame, trained, raw, wide)


def evaluate_tokens(
    frame: Frame, trained: Trained, tokens: Tokens, *, context: bool, wide: Bool[Array, ""]
) -> Evaluation:
    """Loss and gradient on some sentences, by a separate softmax for each."""
    scores, table = frame.scores(trained), frame.valued.table(trained["values"])
    raw = _from_tokens(scores, table, frame.valued.head(trained["values"]), tokens, context)
    return _evaluation(frame, trained, raw, wide)


def _evaluation(frame: Frame, trained: Trained, raw: Any, wide: Bool[Array, ""]) -> Evaluation:
    """Transform derivatives by scores, table and head to the coordinates of the frame."""
    loss, ds, dtable, dhead, term = raw
    gradient = {
        "scores": frame.keyed.gradient(trained["scores"], ds),
        "values": frame.valued.gradient(trained["values"], dtable, dhead),
    }
    return Evaluation(loss, gradient, term, wide)


def cross_entropy(
    logits: Float[Array, "sentences classes"], labels: Int[Array, "sentences"]
) -> Float[Array, ""]:
    """Mean cross-entropy over sentences."""
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def _finished(
    head: AbstractHead, pooled: Float[Array, "sentences columns"]
) -> Float[Array, "sentences classes"]:
    """The rest of the head for all sentences; in a few large products where its form is known."""
    if isinstance(head, TwoLayerHead):
        hidden = jax.nn.relu(pooled + head.bias1[None, :])
        return tall_product(hidden, head.weight2) + head.bias2[None, :]
    return jax.vmap(head.finish)(pooled)


def head_gradient(pooled, head, labels):
    """Loss, and its derivatives by the pooled rows and by the rest of the head."""
    arrays, static = eqx.partition(head, eqx.is_inexact_array)

    def cost(pooled, arrays):
        return cross_entropy(_finished(eqx.combine(arrays, static), pooled), labels)

    loss, (dpooled, dhead) = jax.value_and_grad(cost, argnums=(0, 1))(pooled, arrays)
    return loss, dpooled, dhead


def _along_context(pooled, dpooled):
    """``c_n·g_n`` per sentence: for a linear first layer it is ``−pooled_n·∂L/∂pooled_n``."""
    return -jnp.sum(pooled * dpooled, axis=1)


def _from_tokens(scores, table, head, tokens: Tokens, context: bool):
    pooled, pull = jax.vjp(lambda s, t: pool_tokens(s, t, tokens), scores, table)
    loss, dpooled, dhead = head_gradient(pooled, head, tokens.labels)
    ds, dtable = pull(dpooled)
    term = None
    if context:
        terms = tokens.weigh(scores) * _along_context(pooled, dpooled)[tokens.rows]
        term = jax.ops.segment_sum(terms, tokens.ids, scores.shape[0])
    return loss, ds, dtable, dhead, term


def _from_incidence(scores, table, head, incidence: Incidence, context: bool):
    # Written by hand instead of by `jax.vjp`: two passes over the corpus, forward and back.
    e = jnp.exp(scores - jnp.max(scores))
    pooled, mass = incidence.pool(e, table)
    loss, dpooled, dhead = head_gradient(pooled, head, incidence.labels)
    ds, dtable = incidence.pool_gradient(e, table, pooled, mass, dpooled)
    term = None
    if context:
        # Computed separately from ds, so that the exact identity is an independent check of the
        # gradient.
        term = e * incidence.word_sums((_along_context(pooled, dpooled) / mass)[:, None])[:, 0]
    return loss, ds, dtable, dhead, term
