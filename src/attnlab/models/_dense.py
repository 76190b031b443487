"""Two-layer networks (docs/theory.md#b1): the baseline, and the same after a known attention."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

import attnlab._precision  # noqa: F401  (turns float64 on)
from attnlab._errors import AttnlabError

_BLOCK = 1024

Output = Float[Array, ""] | Float[Array, "outputs"]


# log(1 + t)/t on [0, 1] in powers of t: a Chebyshev fit of degree 8, off by less than 3e-8.
_LOG1P = (
    0.99999997054,
    -0.49999501517,
    0.33319271342,
    -0.24844369892,
    0.19111431081,
    -0.13674769706,
    0.07836166802,
    -0.02958850739,
    0.0052534578,
)


def softplus(x: Float[Array, "..."], sharpness: float = 1.0) -> Float[Array, "..."]:
    """``φ_τ(x) = log(1 + e^{τx})/τ`` with ``sharpness`` τ; ``math.inf`` is ReLU, its limit.

    >>> x = jnp.array([-1e3, 0.0, 1e3])
    >>> softplus(x, 4.0).tolist(), softplus(x, math.inf).tolist()
    ([0.0, 0.17328679513998632, 1000.0], [0.0, 0.0, 1000.0])
    """
    check_sharpness(sharpness)
    if math.isinf(sharpness):
        return jax.nn.relu(x)
    return _log1p_exp(sharpness * x) / sharpness


@jax.custom_jvp
def _log1p_exp(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log(1 + eˣ)``, as ``logaddexp(x, 0)`` without its case distinctions."""
    # max(x, 0) + log(1 + e^{−|x|}): the exponential cannot overflow.
    small = jnp.exp(-jnp.abs(x))
    log1p = _log1p_single if x.dtype == jnp.float32 else jnp.log1p
    return jnp.maximum(x, 0) + log1p(small)


def _log1p_single(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """``log(1 + t)`` for t in [0, 1] in single precision, accurate to rounding (1.2e-7).

    XLA vectorises this polynomial. Its own logarithm takes two to three times as long and would be
    most of the time of a small network.
    """
    quotient = jnp.full_like(t, _LOG1P[-1])
    for coefficient in _LOG1P[-2::-1]:
        quotient = quotient * t + jnp.asarray(coefficient, t.dtype)
    return quotient * t


# The derivative is the logistic function: cheaper than differentiating each term.
_log1p_exp.defjvps(lambda tangent, _, x: tangent * jax.nn.sigmoid(x))


def vec(x: Float[Array, "..."]) -> Float[Array, "numbers"]:
    """Stack the columns of a matrix: ``vec(x)[z·t + i] = x[i, z]`` for t rows; the identity on vectors.

    >>> vec(jnp.array([[1.0, 3.0], [2.0, 4.0]])).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    return jnp.ravel(x.T)


def normal(key: Key[Array, ""], shape: tuple[int, ...], std: float = 1.0) -> Float[Array, "..."]:
    """Normal numbers in float64, drawn in blocks of one size: compiled once, not once per shape.

    >>> normal(jax.random.key(0), (3, 2), 0.1).shape
    (3, 2)
    """
    size = math.prod(shape)
    blocks = [_block(key, np.uint32(i)) for i in range(math.ceil(size / _BLOCK))]
    return std * jnp.concatenate(blocks)[:size].reshape(shape)


@jax.jit
def _block(key: Key[Array, ""], i: Array | np.uint32) -> Float[Array, "block"]:
    return jax.random.normal(jax.random.fold_in(key, i), (_BLOCK,), jnp.float64)


class Baseline(eqx.Module):
    """``y = w₂ᵀ φ_τ(w₁ᵀ vec(x))``: one hidden layer, no biases. Also the ``head`` of other models.

    - ``w1``: (numbers of one input, d), ``w2``: (d, outputs); with one output ``y`` is a scalar,
      with more it is a vector, the logits of a classifier;
    - ``x`` has any shape; the columns of a matrix are stacked.

    >>> model = Baseline(jnp.array([[1.0], [-1.0]]), jnp.array([[2.0]]), math.inf)
    >>> float(model(jnp.array([5.0, 2.0])))
    6.0
    """

    w1: Float[Array, "numbers d"]
    w2: Float[Array, "d outputs"]
    sharpness: float = eqx.field(static=True, default=4.0)

    def __call__(self, x: Float[Array, "..."]) -> Output:
        """Output for one input."""
        if x.size != self.w1.shape[0]:
            raise AttnlabError(
                f"an input of shape {x.shape} holds {x.size} numbers, but w1 has "
                f"{self.w1.shape[0]} rows; give one input of that size (jax.vmap for many)"
            )
        y = self.hidden(x) @ self.w2
        return y[0] if self.w2.shape[1] == 1 else y

    def hidden(self, x: Float[Array, "..."]) -> Float[Array, "d"]:
        """``φ_τ(w₁ᵀ vec(x))`` of one input."""
        return softplus(vec(x) @ self.w1, self.sharpness)


@dataclass(frozen=True)
class BaselineConfig:
    """Initialises a ``Baseline``: w₁ ~ N(0, 1/numbers), w₂ ~ N(0, 1/hidden), times ``init_scale``.

    ``numbers`` counts the numbers of one input: p for vectors, t·p for matrices.

    >>> model = BaselineConfig(numbers=16, hidden=8).init(jax.random.key(0))
    >>> model.w1.shape, model.w2.shape, model(jnp.ones(16)).shape
    ((16, 8), (8, 1), ())
    """

    numbers: int
    hidden: int = 8
    outputs: int = 1
    sharpness: float = 4.0
    init_scale: float = 1.0

    def __post_init__(self):
        at_least_one(self, "numbers", "hidden", "outputs")
        check_sharpness(self.sharpness)
        check_scale("init_scale", self.init_scale)

    def init(self, key: Key[Array, ""]) -> Baseline:
        """Draw initial parameters."""
        first, second = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
        return Baseline(
            normal(first, (self.numbers, self.hidden), self.init_scale / math.sqrt(self.numbers)),
            normal(second, (self.hidden, self.outputs), self.init_scale / math.sqrt(self.hidden)),
            self.sharpness,
        )


def at_least_one(config: object, *names: str) -> None:
    """Raise an error for a size below one."""
    for name in names:
        if getattr(config, name) < 1:
            raise AttnlabError(f"{name}={getattr(config, name)}: expected at least 1")


def check_scale(name: str, scale: float) -> None:
    """Raise an error for a scale that is negative or not finite."""
    if not 0 <= scale < math.inf:
        raise AttnlabError(f"{name}={scale}: expected a finite number ≥ 0")


def check_sharpness(sharpness: float) -> None:
    """Raise an error for a sharpness that is not positive."""
    if not sharpness > 0:
        raise AttnlabError(f"sharpness={sharpness}: expected a number > 0, or math.inf for ReLU")


class AbstractMask(abc.ABC):
    """A known attention over features, ``f: R^p → R^p``: a hashable object without parameters."""

    features: int

    @abc.abstractmethod
    def weights(self, x: Float[Array, "features"]) -> Float[Array, "features"]:
        """``f(x)`` of one input."""

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "features"]:
        """``f(x)`` of one input, after a check of its size."""
        if x.shape != (self.features,):
            raise AttnlabError(
                f"{self} got an input of shape {x.shape}; expected ({self.features},)"
            )
        return self.weights(x)


@dataclass(frozen=True)
class StaticMask(AbstractMask):
    """``f_j = 1`` on the relevant features, 0 elsewhere, whatever the input.

    >>> StaticMask((0, 2), features=4)(jnp.ones(4)).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """

    relevant: tuple[int, ...]
    features: int

    def __post_init__(self):
        check_relevant(self.relevant, self.features)

    def weights(self, x: Float[Array, "features"]) -> Float[Array, "features"]:
        """Ones and zeros."""
        return indicator(self.relevant, self.features, x)

    def wrong(self) -> StaticMask:
        """A mask of equal size on the first irrelevant features: a control that must not help.

        >>> StaticMask((0, 2), features=5).wrong()
        StaticMask(relevant=(1, 3), features=5)
        """
        others = [j for j in range(self.features) if j not in self.relevant][: len(self.relevant)]
        if len(others) < len(self.relevant):
            raise AttnlabError(
                f"{len(self.relevant)} of {self.features} features are relevant, so there is no "
                f"wrong mask of equal size; take at least {2 * len(self.relevant)} features"
            )
        return StaticMask(tuple(others), self.features)


@dataclass(frozen=True)
class Gate(AbstractMask):
    """``f_j(x) = 2·sigmoid(3·x_{j−1})`` on the relevant features, 0 elsewhere (docs/theory.md#b2).

    The features form a ring: the neighbour of feature 0 is the last one, relevant or not.

    >>> Gate((0, 2), features=4)(jnp.zeros(4)).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """

    relevant: tuple[int, ...]
    features: int

    def __post_init__(self):
        check_relevant(self.relevant, self.features)

    def weights(self, x: Float[Array, "features"]) -> Float[Array, "features"]:
        """The neighbour's sigmoid."""
        return 2 * jax.nn.sigmoid(3 * jnp.roll(x, 1)) * indicator(self.relevant, self.features, x)


@dataclass(frozen=True)
class MovingBlock(AbstractMask):
    """``f_j(x) = 1`` on the ``length`` features that follow the largest one, 0 elsewhere.

    With ``z = argmax_j x_j`` the block is ``z+1, …, z+length`` on the ring of features. If features
    are independent and identically distributed, all places are equally likely and each feature is in
    the block for a share ``length/features`` of the inputs, so no student can drop a coordinate.
    The largest feature itself is outside, so the features inside carry no information on the place.

    >>> MovingBlock(2, features=5)(jnp.array([0.0, 0.1, 0.2, 9.0, 0.3])).tolist()
    [1.0, 0.0, 0.0, 0.0, 1.0]
    """

    length: int
    features: int

    def __post_init__(self):
        if not 1 <= self.length < self.features:
            raise AttnlabError(
                f"length={self.length} of features={self.features}: a moving block has at least 1 "
                "feature and fewer than all (VacuousMask passes all)"
            )

    def weights(self, x: Float[Array, "features"]) -> Float[Array, "features"]:
        """Ones on the block."""
        behind = (jnp.arange(self.features) - jnp.argmax(x)) % self.features
        return ((behind >= 1) & (behind <= self.length)).astype(x.dtype)


@dataclass(frozen=True)
class VacuousMask(AbstractMask):
    """``f = 1`` everywhere: known attention without information, equal to the baseline.

    >>> VacuousMask(3)(jnp.zeros(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    features: int

    def __post_init__(self):
        at_least_one(self, "features")

    def weights(self, x: Float[Array, "features"]) -> Float[Array, "features"]:
        """Ones."""
        return jnp.ones_like(x)


def indicator(
    relevant: tuple[int, ...], features: int, like: Float[Array, "features"]
) -> Float[Array, "features"]:
    """One on the relevant features, 0 elsewhere, in the floating type of ``like``."""
    weights = np.zeros(features)
    weights[list(relevant)] = 1
    return jnp.asarray(weights, like.dtype)


def check_relevant(relevant: tuple[int, ...], features: int) -> None:
    """Raise an error unless ``relevant`` names one or more different features."""
    if (
        not relevant
        or len(set(relevant)) != len(relevant)
        or not all(0 <= j < features for j in relevant)
    ):
        raise AttnlabError(
            f"relevant={relevant}: expected one or more different features, each from 0 to "
            f"{features - 1}"
        )


class KnownAttention(eqx.Module):
    """``y = w₂ᵀ φ_τ(w₁ᵀ (x ⊙ f(x)))`` with a known map f: the ``head`` on the masked input.

    ``mask`` is one of the masks above or any hashable function from an input to weights of its
    shape.

    >>> head = Baseline(jnp.ones((2, 1)), jnp.ones((1, 1)), math.inf)
    >>> float(KnownAttention(head, StaticMask((1,), features=2))(jnp.array([5.0, 2.0])))
    2.0
    """

    head: Baseline
    mask: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, x: Float[Array, "features"]) -> Output:
        """Output for one input."""
        return self.head(x * self.mask(x))


@dataclass(frozen=True)
class KnownAttentionConfig:
    """Initialises a ``KnownAttention`` with the parameters that ``base`` draws from the same key.

    >>> config = KnownAttentionConfig(BaselineConfig(numbers=6), VacuousMask(6))
    >>> x, key = jnp.arange(6.0), jax.random.key(0)
    >>> bool(config.init(key)(x) == config.base.init(key)(x))
    True
    """

    base: BaselineConfig
    mask: Callable[[Array], Array]

    def __post_init__(self):
        features = getattr(self.mask, "features", self.base.numbers)
        if features != self.base.numbers:
            raise AttnlabError(
                f"the mask has {features} features, but base has numbers={self.base.numbers}; "
                "make them equal"
            )

    def init(self, key: Key[Array, ""]) -> KnownAttention:
        """Draw initial parameters."""
        return KnownAttention(self.base.init(key), self.mask)
