"""Normalisers map scores to attention weights (docs/theory.md#b5).

Softmax with a temperature, sparsemax, entmax-1.5, top-k, uniform weights. All depend only on
differences of logits, so gradients of the logits sum to zero (docs/theory.md#a4), and all are
equivariant: permuting the logits permutes the weights.
"""

from __future__ import annotations

import abc
import math
import re
from collections.abc import Callable
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attnlab._errors import AttnlabError
from attnlab.models._pooling import any_in_batch

Weights = Float[Array, "... words"]
Normaliser = Callable[[Array], Array]
NORMALISERS = ("softmax", "softmax:T", "sparsemax", "entmax15", "topK", "uniform")
# Sparsemax and entmax-1.5 (in units of z/2) give no weight to a word this far below the largest.
_OUT = -2.0


class AbstractNormaliser(eqx.Module):
    """Maps logits (…, words) to weights ≥ 0 that sum to one over the last axis.

    A logit of −∞ gets the weight 0, as does a place where ``where`` is false; a row with no place
    left is all zeros. Settings are static, so a normaliser is hashable.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name that ``make_normaliser`` takes."""

    @abc.abstractmethod
    def weigh(self, logits: Weights) -> Weights:
        """Weights of rows in which at least one logit is finite."""

    def __call__(self, logits: Weights, where: Bool[Array, "..."] | None = None) -> Weights:
        """Weights; ``where`` has the shape of the logits or broadcasts to it."""
        if where is None:
            return self.weigh(logits)
        present = jnp.broadcast_to(where, logits.shape)
        some = jnp.any(present, axis=-1, keepdims=True)
        # An empty row is weighed as a row of zeros, so that no nan arises in value or derivative;
        # its weights are then dropped.
        masked = jnp.where(some, jnp.where(present, logits, -jnp.inf), jnp.zeros_like(logits))
        return jnp.where(present, self.weigh(masked), 0)


class Softmax(AbstractNormaliser):
    """``a_i = e^{z_i/T} / Σ_j e^{z_j/T}``.

    >>> Softmax()(jnp.array([0.0, math.log(3.0)])).round(6).tolist()
    [0.25, 0.75]
    >>> Softmax(0.5)(jnp.array([0.0, math.log(3.0) / 2])).round(6).tolist()
    [0.25, 0.75]
    """

    temperature: float = eqx.field(static=True, default=1.0)

    def __check_init__(self):
        if not 0 < self.temperature < math.inf:
            raise AttnlabError(f"temperature={self.temperature}: expected a number > 0 and finite")

    @property
    def name(self) -> str:
        """``softmax``, or ``softmax:T``."""
        return "softmax" if self.temperature == 1 else f"softmax:{self.temperature:g}"

    def scaled(self, logits: Weights) -> Weights:
        """``z/T``."""
        return logits if self.temperature == 1 else logits / self.temperature

    def weigh(self, logits: Weights) -> Weights:
        """Softmax over the last axis."""
        return jax.nn.softmax(self.scaled(logits), axis=-1)


class Sparsemax(AbstractNormaliser):
    """``argmin_a |a − z|²`` over weights: ``a = (z − τ)₊``, with τ such that they sum to one.

    Martins and Astudillo (2016). The derivative is ``da = 1_S (dz − mean_S dz)`` with the support
    S = {a > 0}, also at the kinks where a word enters S.

    >>> Sparsemax()(jnp.array([0.0, 0.5, -3.0])).tolist()
    [0.25, 0.75, 0.0]
    """

    @property
    def name(self) -> str:
        """``sparsemax``."""
        return "sparsemax"

    def weigh(self, logits: Weights) -> Weights:
        """The projection of every row."""
        return _sparsemax(logits)


class Entmax15(AbstractNormaliser):
    """``argmax_a a·z + 4/3 Σ (a_i − a_i^{3/2})`` over weights: ``a = (z/2 − τ)₊²``.

    Peters, Niculae and Martins (2019). Between softmax and sparsemax: words far below the largest
    have no weight, and weights vanish smoothly.

    >>> Entmax15()(jnp.array([0.0, 0.0])).round(12).tolist(), Entmax15()(jnp.array([2.5, 0.0])).tolist()
    ([0.5, 0.5], [1.0, 0.0])
    """

    @property
    def name(self) -> str:
        """``entmax15``."""
        return "entmax15"

    def weigh(self, logits: Weights) -> Weights:
        """The squares of ``(z/2 − τ)₊``."""
        return _entmax_roots(logits) ** 2


class TopK(AbstractNormaliser):
    """Softmax over the ``k`` largest logits. Logits equal to the k-th are *all* kept.

    Breaking ties by position would make the weights depend on the order of words: with all keys at
    zero, only the first k words of a sentence would be attended. Within the kept words the
    derivative is that of softmax.

    >>> TopK(1)(jnp.array([3.0, 1.0, 3.0])).tolist(), TopK(2)(jnp.array([0.0, 9.0, 9.0])).tolist()
    ([0.5, 0.0, 0.5], [0.0, 0.5, 0.5])
    """

    k: int = eqx.field(static=True)

    def __check_init__(self):
        if self.k < 1:
            raise AttnlabError(f"k={self.k}: expected at least 1")

    @property
    def name(self) -> str:
        """``topK``."""
        return f"top{self.k}"

    def weigh(self, logits: Weights) -> Weights:
        """Softmax over the kept logits."""
        kept = logits >= _kth_largest(jax.lax.stop_gradient(logits), self.k)
        return jax.nn.softmax(jnp.where(kept, logits, -jnp.inf), axis=-1)


class Uniform(AbstractNormaliser):
    """Equal weights whatever the logits: mean pooling. Its derivative is zero.

    >>> Uniform()(jnp.array([5.0, 0.0, 1.0]), where=jnp.array([True, True, False])).tolist()
    [0.5, 0.5, 0.0]
    """

    @property
    def name(self) -> str:
        """``uniform``."""
        return "uniform"

    def weigh(self, logits: Weights) -> Weights:
        """One over the number of finite logits."""
        present = (logits > -jnp.inf).astype(logits.dtype)
        return present / jnp.sum(present, axis=-1, keepdims=True)


def make_normaliser(name: str) -> AbstractNormaliser:
    """A normaliser by its name: softmax, softmax:T, sparsemax, entmax15, topK or uniform.

    >>> make_normaliser("softmax:0.25").temperature, make_normaliser("top2").k, make_normaliser("sparsemax").name
    (0.25, 2, 'sparsemax')
    """
    plain = {"softmax": Softmax, "sparsemax": Sparsemax, "entmax15": Entmax15, "uniform": Uniform}
    if name in plain:
        return plain[name]()
    softmax = re.fullmatch(r"softmax:([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)", name)
    top = re.fullmatch(r"top([0-9]+)", name)
    if softmax and 0 < float(softmax[1]) < math.inf:
        return Softmax(float(softmax[1]))
    if top and int(top[1]) > 0:
        return TopK(int(top[1]))
    raise AttnlabError(
        f"normaliser {name!r}: expected one of {', '.join(NORMALISERS)}, with a temperature T > 0 "
        "as in softmax:0.25 and a number K ≥ 1 as in top2"
    )


def as_normaliser(given: Any) -> Normaliser:
    """A normaliser from its name, from itself, or from any hashable function logits → weights."""
    if isinstance(given, str):
        return make_normaliser(given)
    if given is jax.nn.softmax:
        return Softmax()
    if not callable(given):
        raise AttnlabError(
            f"normaliser={given!r}: expected one of {', '.join(NORMALISERS)}, a normaliser, or a "
            "function from a vector of logits to weights"
        )
    return cast(Normaliser, given)


# Sorting would find τ in one pass, but on CPUs XLA's sort takes tens of times longer than a softmax.
# Instead, τ is found by Newton's method: Σ (z − t)₊ − 1 is convex and decreasing in t, so steps from
# its left never overshoot. For sparsemax it is piecewise linear: each step but the last drops a word
# from the support, and the last one ends at τ exactly.


def _below_top(x: Weights) -> Weights:
    """``x − max x``, clipped at ``_OUT``: the same weights, but finite for any logits."""
    return jnp.maximum(x - jnp.max(x, axis=-1, keepdims=True), _OUT)


def _total(x: Weights) -> Float[Array, "... 1"]:
    """The sum of every row, as a matrix product: on CPUs XLA does not vectorise sums of short rows."""
    return jnp.matmul(x, jnp.ones((x.shape[-1], 1), x.dtype), precision="highest")


def _root(step: Callable[[Array], Array], like: Weights, tolerance: float) -> Float[Array, "... 1"]:
    """Repeat ``t ← step(t) ≥ t`` from −1, until no row rises by more than ``tolerance``."""

    def again(state: tuple[Array, Array]) -> tuple[Array, Array]:
        t = state[0]
        new = jnp.maximum(step(t), t)
        return new, any_in_batch(jnp.any(new - t > tolerance))

    return jax.lax.while_loop(
        lambda state: state[1], again, (jnp.full_like(like[..., :1], -1), jnp.array(True))
    )[0]


@jax.custom_jvp
def _sparsemax(logits: Weights) -> Weights:
    z = _below_top(logits)

    def step(t: Array) -> Array:
        on = (z > t).astype(z.dtype)
        return (_total(on * z) - 1) / _total(on)

    # The barrier keeps XLA from computing the weights again for each of their users.
    return jax.lax.optimization_barrier(jnp.maximum(z - _root(step, z, 0.0), 0))


@_sparsemax.defjvp
def _sparsemax_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    a, (dz,) = _sparsemax(*primals), tangents
    on = (a > 0).astype(a.dtype)
    mean = jnp.sum(on * dz, axis=-1, keepdims=True) / jnp.sum(on, axis=-1, keepdims=True)
    return a, on * (dz - mean)


@jax.custom_jvp
def _entmax_roots(logits: Weights) -> Weights:
    """``r = (z/2 − τ)₊`` with ``Σ r² = 1``, by Newton's steps for ``|r| = 1``."""
    x = _below_top(logits / 2)

    def step(t: Array) -> Array:
        r = jnp.maximum(x - t, 0)
        size = jnp.sqrt(_total(r**2))
        return t + (size - 1) * size / _total(r)

    # Newton converges quadratically: a step this small leaves an error below rounding.
    small = 0.1 * float(jnp.finfo(x.dtype).eps) ** 0.5
    return jax.lax.optimization_barrier(jnp.maximum(x - _root(step, x, small), 0))


@_entmax_roots.defjvp
def _entmax_roots_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    r, (dz,) = _entmax_roots(*primals), tangents
    on = (r > 0).astype(r.dtype)
    # From the derivative of Σ r² = 1: Σ r (dz/2 − dτ) = 0 gives 2 dτ = mean. Written with r itself,
    # so that it can be differentiated again.
    mean = jnp.sum(r * dz, axis=-1, keepdims=True) / jnp.sum(r, axis=-1, keepdims=True)
    return r, on * (0.5 * (dz - mean))


def _kth_largest(logits: Weights, k: int) -> Float[Array, "... 1"]:
    """The k-th largest of every row, ties counted; −∞ if a row has fewer than k finite logits."""

    # Lower the threshold to the next smaller value until k logits reach it.
    def lower(_: Any, t: Array) -> Array:
        enough = jnp.sum(logits >= t, axis=-1, keepdims=True) >= k
        below = jnp.max(jnp.where(logits < t, logits, -jnp.inf), axis=-1, keepdims=True)
        return jnp.where(enough, t, below)

    return jax.lax.fori_loop(0, k - 1, lower, jnp.max(logits, axis=-1, keepdims=True))
