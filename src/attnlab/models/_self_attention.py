"""Self-attention (docs/theory.md#b1) with one or several layers, and with given attention weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from attnlab._errors import AttnlabError
from attnlab.models._dense import (
    Baseline,
    BaselineConfig,
    Output,
    at_least_one,
    check_scale,
    check_sharpness,
    normal,
    softplus,
)
from attnlab.models._normalisers import AbstractNormaliser, Normaliser, Softmax, as_normaliser

SCALES: dict[str, Callable[[int], float]] = {"sqrt": math.sqrt, "dim": float}


class AttentionLayer(eqx.Module):
    """``V a``: each word, a column of ``x`` (t, p), becomes a weighted sum of all words' values.

    ``V = w_V x``; column z of ``a`` is ``norm(c·(w_K x)ᵀ(w_Q x_z)/scale)``, the attention weights of
    word z.

    - ``w_query``, ``w_key``: (d_q, t), ``w_value``: (d_v, t);
    - ``scale``: ``"sqrt"`` for √d_q, ``"dim"`` for d_q; ``factor`` is c, on the logits;
    - ``normaliser``: a name such as ``"sparsemax"`` (see ``make_normaliser``), a normaliser, or a
      hashable function from a vector of logits to weights; softmax by default.

    >>> layer = AttentionLayer(jnp.zeros((2, 3)), jnp.zeros((2, 3)), jnp.eye(3))
    >>> layer(jnp.array([[1.0, 3.0], [0.0, 0.0], [2.0, 4.0]])).tolist()
    [[2.0, 2.0], [0.0, 0.0], [3.0, 3.0]]
    """

    w_query: Float[Array, "d_q t"]
    w_key: Float[Array, "d_q t"]
    w_value: Float[Array, "d_v t"]
    scale: str = eqx.field(static=True, default="sqrt")
    factor: float = eqx.field(static=True, default=1.0)
    normaliser: Normaliser = eqx.field(static=True, default=Softmax(), converter=as_normaliser)

    def logits(self, x: Float[Array, "t p"]) -> Float[Array, "p p"]:
        """``c·(w_K x)ᵀ(w_Q x)/scale``: row j, column z is the logit of key j for word z."""
        return self._logits(x).T

    def attention(self, x: Float[Array, "t p"]) -> Float[Array, "p p"]:
        """``a``; column z holds the attention weights of word z and sums to one."""
        return self._weights(x).T

    def __call__(self, x: Float[Array, "t p"]) -> Float[Array, "d_v p"]:
        """``V a`` of one input."""
        a = self._weights(x)
        mixed = _mix(self.w_value @ x, a)
        # The barrier sits on the transpose, the order in which the head's `vec` reads it.
        return _barrier(mixed.T).T

    def _logits(self, x: Float[Array, "t p"]) -> Float[Array, "p p"]:
        """The logits of word z in row z, the layout that is fast to compute."""
        d_q, t = self.w_query.shape
        if x.ndim != 2 or x.shape[0] != t:
            raise AttnlabError(
                f"an input of shape {x.shape}; expected ({t}, words), a word per column (jax.vmap "
                "for many)"
            )
        return _fit((self.factor / SCALES[self.scale](d_q)) * self.w_query @ x, self.w_key @ x)

    def _weights(self, x: Float[Array, "t p"]) -> Float[Array, "p p"]:
        """The weights of word z in row z."""
        normaliser, logits = self.normaliser, self._logits(x)
        if isinstance(normaliser, Softmax):
            return _softmax(normaliser.scaled(logits))
        if isinstance(normaliser, AbstractNormaliser):
            return normaliser(logits)
        return jax.vmap(normaliser)(logits)


# Under vmap over samples the three functions below become products of many small matrices. On CPUs,
# XLA is several times slower if the product contracts the rows of its first factor (aᵀ b), and it
# recomputes a fused exponential for each of its users. Each function therefore defines its value and
# its derivative in forms whose transposes are fast, too, and barriers keep the compiler from undoing
# this (benchmarks/bench_students.py). Derivatives of any order and mode work.

_barrier = jax.lax.optimization_barrier


@jax.custom_jvp
def _fit(q: Float[Array, "d z"], k: Float[Array, "d j"]) -> Float[Array, "z j"]:
    """``qᵀ k``."""
    return _barrier(_barrier(q.T) @ k)


@_fit.defjvp
def _fit_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (q, k), (dq, dk) = primals, tangents
    # The sum is qᵀ dk. As a broadcast product its transpose with respect to dk is fast as well.
    return _fit(q, k), _barrier(dq.T @ k + jnp.sum(q[:, :, None] * dk[:, None, :], axis=0))


@jax.custom_jvp
def _mix(v: Float[Array, "d j"], a: Float[Array, "z j"]) -> Float[Array, "d z"]:
    """``v aᵀ``."""
    return _barrier(v @ a.T)


@_mix.defjvp
def _mix_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (v, a), (dv, da) = primals, tangents
    # The second term is v daᵀ, computed as (da vᵀ)ᵀ.
    return _mix(v, a), _barrier(dv @ a.T + _barrier(da @ v.T).T)


@jax.custom_jvp
def _softmax(logits: Float[Array, "z j"]) -> Float[Array, "z j"]:
    """Softmax of every row."""
    return _barrier(jax.nn.softmax(logits, axis=1))


@_softmax.defjvp
def _softmax_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    a, (dlogits,) = _softmax(*primals), tangents
    return a, _barrier(a * (dlogits - jnp.sum(a * dlogits, axis=1, keepdims=True)))


class SelfAttention(eqx.Module):
    """``y = w₂ᵀ φ_τ(w₁ᵀ vec(V a))``: one self-attention layer and the two-layer ``head``.

    >>> model = SelfAttentionConfig(embedding_dim=4, words=5).init(jax.random.key(0))
    >>> x = jnp.linspace(-1.0, 1.0, 20).reshape(4, 5)
    >>> model(x).shape, [round(float(s), 9) for s in model.attention(x).sum(axis=0)]
    ((), [1.0, 1.0, 1.0, 1.0, 1.0])
    """

    layer: AttentionLayer
    head: Baseline

    def attention(self, x: Float[Array, "t p"]) -> Float[Array, "p p"]:
        """``a`` of one input."""
        return self.layer.attention(x)

    def attentions(self, x: Float[Array, "t p"]) -> Float[Array, "1 p p"]:
        """``a`` with a leading axis for the layer, as ``KnownWeights`` expects it."""
        return self.attention(x)[None]

    def __call__(self, x: Float[Array, "t p"]) -> Output:
        """Output for one input."""
        return self.head(self.layer(x))


def answers(model: Any, x: Float[Array, "samples ..."]) -> Float[Array, "samples ..."]:
    """``jax.vmap(model)(x)``, for training: ``SelfAttention`` with softmax weights is computed for all
    samples at once, two to four times as fast on CPUs.

    Equal up to rounding. Its first derivative is taken in reverse mode only; for second
    derivatives and forward mode use ``jax.vmap``.

    >>> model = SelfAttentionConfig(embedding_dim=4, words=5).init(jax.random.key(0))
    >>> x = jax.random.normal(jax.random.key(1), (7, 4, 5))
    >>> bool(jnp.allclose(answers(model, x), jax.vmap(model)(x), rtol=1e-12))
    True
    """
    # One sample at a time, as a vmap over a loss asks for, has no axis to be fast along.
    if not isinstance(model, SelfAttention) or x.ndim != 3 or x.shape[0] == 1:
        return jax.vmap(model)(x)
    layer, head, normaliser = model.layer, model.head, model.layer.normaliser
    d_q, t = layer.w_query.shape
    samples, rows, p = x.shape
    fits = rows == t and p * layer.w_value.shape[0] == head.w1.shape[0]  # or vmap raises the error
    if not fits or not isinstance(normaliser, Softmax):
        return jax.vmap(model)(x)
    scale = layer.factor / (SCALES[layer.scale](d_q) * normaliser.temperature)
    columns = x.transpose(1, 2, 0).reshape(t, p * samples)
    q, k, v = (
        (w @ columns).reshape(-1, p, samples)
        for w in (scale * layer.w_query, layer.w_key, layer.w_value)
    )
    words = _attended(q, k, v).reshape(head.w1.shape[0], samples)  # vec of every sample
    hidden = softplus(head.w1.T @ words, head.sharpness)
    y = hidden.T @ head.w2
    return y[:, 0] if head.w2.shape[1] == 1 else y


# Words of all samples with the samples as the last axis: every sum below runs over words or
# dimensions, and is written out term by term, so that XLA makes of it one loop of multiplications
# and additions of neighbouring numbers. (It neither vectorises `jnp.sum` of a product nor a batched
# product of tiny matrices.) z is the word that attends, j the word that it attends to.


@jax.custom_vjp
def _attended(
    q: Float[Array, "d_q z n"], k: Float[Array, "d_q j n"], v: Float[Array, "d_v j n"]
) -> Float[Array, "z d_v n"]:
    """``Σ_j a_zj v_j`` with ``a_zj = e^{q_z·k_j} / Σ_i e^{q_z·k_i}``."""
    return _attend(q, k, v)[0]


def _attend(q: Array, k: Array, v: Array) -> tuple[Array, tuple[Array, ...]]:
    e, is_fine = _exponentials(q, k)
    mixed, one_over = jax.lax.cond(is_fine, _mixed, _mixed_shifted, e, q, k, v)
    return mixed, (is_fine, e, q, k, v, mixed, one_over)


def _attend_back(kept: tuple[Array, ...], slope: Float[Array, "z d_v n"]) -> tuple[Array, ...]:
    return jax.lax.cond(kept[0], _slopes, _slopes_shifted, *kept[1:], slope)


_attended.defvjp(_attend, _attend_back)


def _exponentials(q: Array, k: Array) -> tuple[Float[Array, "z j n"], Array]:
    """``e^{q_z·k_j}``, and whether their sums are far from overflow and underflow, so that a softmax
    need not subtract its largest logit: that would take longer than all else.
    """
    e = jnp.exp(_sum([q[i][:, None] * k[i][None] for i in range(q.shape[0])]))
    total = _sum([e[:, j] for j in range(e.shape[1])])
    limit = jnp.sqrt(jnp.finfo(e.dtype).max) / 16
    return e, jnp.all((total < limit) & (total > 1 / limit))  # false for nan


def _shifted(q: Array, k: Array) -> Float[Array, "z j n"]:
    """The same, divided by the largest of each word z."""
    logits = jnp.einsum("izn,ijn->zjn", q, k)
    return jnp.exp(logits - jnp.max(logits, axis=1, keepdims=True))


def _mixed(e: Array, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    """``Σ_j a_zj v_j``, and ``1 / Σ_j e_zj``."""
    del q, k
    one_over = 1 / _sum([e[:, j] for j in range(e.shape[1])])
    mixed = _sum([e[:, j][:, None] * v[:, j][None] for j in range(e.shape[1])])
    return mixed * one_over[:, None], one_over


def _mixed_shifted(e: Array, q: Array, k: Array, v: Array) -> tuple[Array, Array]:
    del e
    return _mixed(_shifted(q, k), q, k, v)


def _slopes(
    e: Array, q: Array, k: Array, v: Array, mixed: Array, one_over: Array, slope: Array
) -> tuple[Array, Array, Array]:
    """The slopes with respect to q, k and v. That of a logit is ``a_zj (s_z·v_j − s_z·mixed_z)``."""
    p, d_v = e.shape[1], v.shape[0]
    scaled = slope * one_over[:, None]
    level = _sum([scaled[:, i] * mixed[:, i] for i in range(d_v)])
    gain = _sum([scaled[:, i][:, None] * v[i][None] for i in range(d_v)])
    logits = e * (gain - level[:, None])
    return (
        _sum([logits[:, j][None] * k[:, j][:, None] for j in range(p)]),
        _sum([logits[z][None] * q[:, z][:, None] for z in range(p)]),
        _sum([e[z][None] * scaled[z][:, None] for z in range(p)]),
    )


def _slopes_shifted(
    e: Array, q: Array, k: Array, v: Array, mixed: Array, one_over: Array, slope: Array
) -> tuple[Array, Array, Array]:
    del e
    return _slopes(_shifted(q, k), q, k, v, mixed, one_over, slope)


def _sum(terms: list[Array]) -> Array:
    """The sum of arrays, by pairs: shorter chains, less rounding."""
    while len(terms) > 1:
        pairs = [one + other for one, other in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


class MultiLayer(eqx.Module):
    """Layers ``x ← x + V a`` with d_v = t, a last layer ``V a``, and the two-layer ``head``.

    Without ``residual`` every layer is ``x ← V a``. One layer is ``SelfAttention``.

    >>> model = MultiLayerConfig(SelfAttentionConfig(embedding_dim=4, words=5), depth=2).init(jax.random.key(0))
    >>> x = jnp.ones((4, 5))
    >>> model(x).shape, model.attentions(x).shape
    ((), (2, 5, 5))
    """

    layers: tuple[AttentionLayer, ...]
    head: Baseline
    residual: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        check_values([layer.w_value for layer in self.layers])

    def attentions(self, x: Float[Array, "t p"]) -> Float[Array, "layers p p"]:
        """``a`` of every layer, each on the output of the layer before it."""
        weights = [self.layers[0].attention(x)]
        for before, layer in itertools.pairwise(self.layers):
            x = _step(x, before.w_value, weights[-1], self.residual)
            weights.append(layer.attention(x))
        return jnp.stack(weights)

    def __call__(self, x: Float[Array, "t p"]) -> Output:
        """Output for one input."""
        *inner, last = self.layers
        for layer in inner:
            x = x + layer(x) if self.residual else layer(x)
        return self.head(last(x))


def _step(
    x: Float[Array, "t p"], w_value: Float[Array, "t t"], a: Float[Array, "p p"], residual: bool
) -> Float[Array, "t p"]:
    """One inner layer: ``x + V a``, or ``V a``."""
    mixed = w_value @ x @ a
    return x + mixed if residual else mixed


def check_values(values: list[Array]) -> None:
    """Raise an error unless all layers but the last return words of the dimension they take."""
    if not values:
        raise AttnlabError("a stack of no layers; give at least one")
    t = values[0].shape[1]
    for number, w in enumerate(values):
        inner = number < len(values) - 1
        if w.shape[1] != t or (inner and w.shape[0] != t):
            expected = f"({t}, {t})" if inner else f"(any, {t})"
            raise AttnlabError(
                f"w_value of layer {number} of {len(values)} has shape {w.shape}; expected "
                f"{expected}: all layers take words of dimension {t}, and all but the last return "
                "them"
            )


class Frozen(eqx.Module):
    """Holds a module that is not trained: ``trained_parts`` excludes it, and its gradient is zero."""

    module: Any

    def get(self) -> Any:
        """The module, with gradients stopped."""
        arrays, rest = eqx.partition(self.module, eqx.is_inexact_array)
        return eqx.combine(jax.tree.map(jax.lax.stop_gradient, arrays), rest)


def trained_parts(model: PyTree) -> PyTree:
    """True for every floating array of a model outside ``Frozen`` modules.

    Pass it as ``train_model(trained=…)``.

    >>> base = SelfAttentionConfig(embedding_dim=4, words=5)
    >>> teacher = base.init(jax.random.key(0))
    >>> model = KnownWeightsConfig(base).init(jax.random.key(1), teacher=teacher)
    >>> [leaf.shape for leaf in jax.tree.leaves(eqx.filter(model, trained_parts(model)))]
    [(3, 4), (15, 6), (6, 1)]
    """

    def choose(node: Any) -> Any:
        if isinstance(node, Frozen):
            return jax.tree.map(lambda _: False, node)
        return eqx.is_inexact_array(node)

    return jax.tree.map(choose, model, is_leaf=lambda node: isinstance(node, Frozen))


class KnownWeights(eqx.Module):
    """``SelfAttention`` or ``MultiLayer`` with a teacher's attention weights instead of its own.

    - ``teacher``: a frozen module with ``attentions(x) → (layers, p, p)``, run on the same input;
    - ``w_values``: one (d_v, t) per layer; ``None`` for one layer without values, the head on
      ``vec(x a)``.

    Train it with ``trained=trained_parts``: otherwise weight decay shrinks the teacher as well.
    """

    teacher: Frozen
    w_values: tuple[Float[Array, "_ t"], ...] | None
    head: Baseline
    residual: bool = eqx.field(static=True, default=True)

    def __check_init__(self):
        if self.w_values is not None:
            check_values(list(self.w_values))

    def attentions(self, x: Float[Array, "t p"]) -> Float[Array, "layers p p"]:
        """The teacher's weights for one input. They never change: compute them once per input."""
        if self.teacher.module is None:
            raise AttnlabError(
                "no teacher was given to KnownWeightsConfig.init; pass one, or call weighted(x, a)"
            )
        a = self.teacher.get().attentions(x)
        layers = 1 if self.w_values is None else len(self.w_values)
        if a.shape[0] != layers:
            raise AttnlabError(
                f"the teacher has {a.shape[0]} layers, the student {layers}; make them equal"
            )
        return a

    def weighted(self, x: Float[Array, "t p"], a: Float[Array, "layers p p"]) -> Output:
        """Output for one input with given weights."""
        if self.w_values is None:
            return self.head(x @ a[0])
        for w_value, weights in zip(self.w_values[:-1], a[:-1], strict=True):
            x = _step(x, w_value, weights, self.residual)
        return self.head(self.w_values[-1] @ x @ a[-1])

    def __call__(self, x: Float[Array, "t p"]) -> Output:
        """Output for one input."""
        return self.weighted(x, self.attentions(x))


@dataclass(frozen=True)
class SelfAttentionConfig:
    """Initialises a ``SelfAttention``. The default sizes are those of docs/theory.md#b2.

    - ``embedding_dim`` t and ``words`` p: an input is (t, p); ``key_dim`` d_q, ``value_dim`` d_v;
      ``hidden`` d units in the head, of ``sharpness`` τ;
    - ``scale``, ``factor``, ``normaliser``: as in ``AttentionLayer``;
    - entries of w_Q, w_K and w_V are N(0, 1/t), those of w₁ N(0, 1/(p·d_v)), those of w₂ N(0, 1/d);
      ``init_scale`` multiplies all, and ``query_scale`` those of w_Q and w_K as well.

    >>> SelfAttentionConfig(embedding_dim=4, words=5).init(jax.random.key(0)).head.w1.shape
    (15, 6)
    """

    embedding_dim: int = 4
    words: int = 5
    key_dim: int = 2
    value_dim: int = 3
    hidden: int = 6
    outputs: int = 1
    sharpness: float = 4.0
    scale: str = "sqrt"
    factor: float = 1.0
    normaliser: str | Normaliser = "softmax"
    init_scale: float = 1.0
    query_scale: float = 1.0

    def __post_init__(self):
        at_least_one(self, "embedding_dim", "words", "key_dim", "value_dim", "hidden", "outputs")
        check_sharpness(self.sharpness)
        check_scale("init_scale", self.init_scale)
        check_scale("query_scale", self.query_scale)
        if self.scale not in SCALES:
            raise AttnlabError(f"scale={self.scale!r}: expected 'sqrt' (√d_q) or 'dim' (d_q)")
        as_normaliser(self.normaliser)

    def init(self, key: Key[Array, ""]) -> SelfAttention:
        """Draw initial parameters."""
        return SelfAttention(
            self.init_layer(jax.random.fold_in(key, 2), self.value_dim),
            self.head(self.value_dim).init(key),
        )

    def init_layer(self, key: Key[Array, ""], value_dim: int) -> AttentionLayer:
        """Draw one layer."""
        query_std = self.query_scale * self.init_scale / math.sqrt(self.embedding_dim)
        return AttentionLayer(
            normal(jax.random.fold_in(key, 0), (self.key_dim, self.embedding_dim), query_std),
            normal(jax.random.fold_in(key, 1), (self.key_dim, self.embedding_dim), query_std),
            self.init_values(key, value_dim),
            self.scale,
            self.factor,
            as_normaliser(self.normaliser),
        )

    def init_values(self, key: Key[Array, ""], value_dim: int) -> Float[Array, "d_v t"]:
        """Draw the w_V of one layer."""
        return normal(
            jax.random.fold_in(key, 2),
            (value_dim, self.embedding_dim),
            self.init_scale / math.sqrt(self.embedding_dim),
        )

    def head(self, value_dim: int) -> BaselineConfig:
        """The configuration of a head for p words of dimension ``value_dim``."""
        return BaselineConfig(
            self.words * value_dim, self.hidden, self.outputs, self.sharpness, self.init_scale
        )


@dataclass(frozen=True)
class MultiLayerConfig:
    """Initialises a ``MultiLayer``: layers and head as in ``base``, d_v = t in all but the last.

    With ``depth=1`` the parameters are those that ``base`` draws from the same key.
    """

    base: SelfAttentionConfig
    depth: int = 2
    residual: bool = True

    def __post_init__(self):
        at_least_one(self, "depth")

    def init(self, key: Key[Array, ""]) -> MultiLayer:
        """Draw initial parameters."""
        layers = tuple(
            self.base.init_layer(k, d_v)
            for k, d_v in zip(self.layer_keys(key), self.value_dims, strict=True)
        )
        return MultiLayer(layers, self.base.head(self.base.value_dim).init(key), self.residual)

    @property
    def value_dims(self) -> tuple[int, ...]:
        """d_v of every layer."""
        return (*[self.base.embedding_dim] * (self.depth - 1), self.base.value_dim)

    def layer_keys(self, key: Key[Array, ""]) -> list[Key[Array, ""]]:
        """A key per layer; the last layer's is the same at every depth."""
        return [
            jax.random.fold_in(key, 2 + self.depth - 1 - number) for number in range(self.depth)
        ]


@dataclass(frozen=True)
class KnownWeightsConfig:
    """Initialises a ``KnownWeights`` with the w_V and head that ``base`` draws from the same key.

    Without ``values`` there is no w_V, and the head gets ``vec(x a)``; for one layer only.

    >>> teacher = MultiLayerConfig(SelfAttentionConfig(embedding_dim=4, words=5), depth=3)
    >>> known = KnownWeightsConfig(teacher).init(jax.random.key(1), teacher=teacher.init(jax.random.key(0)))
    >>> [w.shape for w in known.w_values], known(jnp.ones((4, 5))).shape
    ([(4, 4), (4, 4), (3, 4)], ())
    """

    base: SelfAttentionConfig | MultiLayerConfig
    values: bool = True

    def __post_init__(self):
        if not self.values and self.stack.depth > 1:
            raise AttnlabError(f"values=False with depth={self.stack.depth}: expected depth=1")

    @property
    def stack(self) -> MultiLayerConfig:
        """``base`` as a stack of layers."""
        return (
            self.base if isinstance(self.base, MultiLayerConfig) else MultiLayerConfig(self.base, 1)
        )

    def init(self, key: Key[Array, ""], *, teacher: Any = None) -> KnownWeights:
        """Draw initial parameters; ``teacher`` is a module with ``attentions(x) → (layers, p, p)``.

        Without a teacher only ``weighted(x, a)`` can be called, with weights from the data.
        """
        if teacher is not None and not callable(getattr(teacher, "attentions", None)):
            raise AttnlabError(
                f"teacher is a {type(teacher).__name__}; expected a module with attentions(x) → "
                "(layers, p, p), such as SelfAttention, MultiLayer or the model of a Teacher of "
                "these kinds"
            )
        stack, base = self.stack, self.stack.base
        if not self.values:
            return KnownWeights(
                Frozen(teacher), None, base.head(base.embedding_dim).init(key), stack.residual
            )
        parts = zip(stack.layer_keys(key), stack.value_dims, strict=True)
        values = tuple(base.init_values(k, d_v) for k, d_v in parts)
        return KnownWeights(
            Frozen(teacher), values, base.head(base.value_dim).init(key), stack.residual
        )
