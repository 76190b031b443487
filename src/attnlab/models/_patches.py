"""Attention over image patches: self-attention, and pooling with one query (docs/theory.md#b2).

The words are overlapping square patches without positions. The label does not depend on the digit's
place, and a model that cannot tell places apart need not learn this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

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
from attnlab.models._normalisers import Normaliser, Softmax, as_normaliser
from attnlab.models._self_attention import AttentionLayer


@dataclass(frozen=True)
class PatchGrid:
    """Square patches of ``size`` × ``size`` pixels, ``stride`` pixels apart, on one image.

    >>> grid = PatchGrid(24, 24, size=8, stride=4)
    >>> grid.patches, grid.words(jnp.zeros((24, 24))).shape
    (25, (64, 25))
    """

    rows: int = 24
    columns: int = 24
    size: int = 8
    stride: int = 4

    def __post_init__(self):
        at_least_one(self, "rows", "columns", "size", "stride")
        for name in ("rows", "columns"):
            rest = getattr(self, name) - self.size
            if rest < 0 or rest % self.stride:
                raise AttnlabError(
                    f"{name}={getattr(self, name)}: patches of {self.size} pixels every "
                    f"{self.stride} pixels do not cover it; expected {self.size} plus a multiple "
                    f"of {self.stride}"
                )

    @property
    def patches(self) -> int:
        """Number of patches: the words p."""
        return len(self.pixels)

    @property
    def pixels(self) -> Int[np.ndarray, "p t"]:
        """The pixels of each patch; pixels and patches are numbered row by row."""
        top = np.arange(0, self.rows - self.size + 1, self.stride)
        left = np.arange(0, self.columns - self.size + 1, self.stride)
        corners = (top[:, None] * self.columns + left[None, :]).reshape(-1, 1)
        within = (
            np.arange(self.size)[:, None] * self.columns + np.arange(self.size)[None, :]
        ).reshape(1, -1)
        return corners + within

    def words(self, image: Float[Array, "rows columns"]) -> Float[Array, "t p"]:
        """The patches of one image as the columns of a matrix."""
        if image.shape != (self.rows, self.columns):
            raise AttnlabError(
                f"an image of shape {image.shape}; expected {(self.rows, self.columns)} (jax.vmap "
                "for many)"
            )
        return jnp.ravel(image)[self.pixels].T

    def spread(self, attention: Float[Array, "p"]) -> Float[Array, "rows columns"]:
        """Weights of pixels from weights of patches: each patch splits its weight equally.

        >>> PatchGrid(2, 3, size=2, stride=1).spread(jnp.array([0.2, 0.8])).tolist()
        [[0.05, 0.25, 0.2], [0.05, 0.25, 0.2]]
        """
        shares = np.zeros((self.patches, self.rows * self.columns))
        np.put_along_axis(shares, self.pixels, 1 / self.size**2, axis=1)
        return (attention @ jnp.asarray(shares, attention.dtype)).reshape(self.rows, self.columns)


class PatchAttention(eqx.Module):
    """Self-attention over patches: ``y = head(V ā)`` with ``V = w_V E`` and ``ā = (1/p) Σ_z a^(z)``.

    ``P`` (t, p) are the patches, ``E = φ_τ(w_Eᵀ P)`` (m, p) their embeddings, and ``a`` (p, p) the
    attention of one ``AttentionLayer`` on ``E``. Its output words, the columns of ``V a``, are
    averaged to ``V ā``, so ``ā`` is the total attention that a patch receives.

    >>> model = PatchAttentionConfig(PatchGrid(8, 8, size=4, stride=2), outputs=10).init(jax.random.key(0))
    >>> image = jnp.ones((8, 8))
    >>> model(image).shape, model.attention(image).shape, round(float(model.attention_map(image).sum()), 9)
    ((10,), (9,), 1.0)
    """

    w_embed: Float[Array, "t m"]
    layer: AttentionLayer
    head: Baseline
    grid: PatchGrid = eqx.field(static=True)

    def embed(self, image: Float[Array, "rows columns"]) -> Float[Array, "m p"]:
        """``E`` of one image."""
        return _embedded(self.w_embed, self.grid.words(image), self.head.sharpness)

    def attention(self, image: Float[Array, "rows columns"]) -> Float[Array, "p"]:
        """``ā``: the attention each patch receives; sums to one."""
        return jnp.mean(self.layer.attention(self.embed(image)), axis=1)

    def attention_map(self, image: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
        """The attention each pixel receives; sums to one."""
        return self.grid.spread(self.attention(image))

    def __call__(self, image: Float[Array, "rows columns"]) -> Output:
        """Output for one image."""
        embedded = self.embed(image)
        weights = jnp.mean(self.layer.attention(embedded), axis=1)
        return self.head(self.layer.w_value @ (embedded @ weights))


class AttentionPooling(eqx.Module):
    """One query over patches: ``y = head(E a)`` with ``E = φ_τ(w_Eᵀ P)`` and ``a = norm(Eᵀ q/√m)``.

    ``norm`` is the ``normaliser``, softmax by default.

    >>> model = AttentionPoolingConfig(PatchGrid(8, 8, size=4, stride=2), outputs=10).init(jax.random.key(0))
    >>> image = jnp.ones((8, 8))
    >>> model(image).shape, model.attention(image).shape, round(float(model.attention_map(image).sum()), 9)
    ((10,), (9,), 1.0)
    """

    w_embed: Float[Array, "t m"]
    query: Float[Array, "m"]
    head: Baseline
    grid: PatchGrid = eqx.field(static=True)
    normaliser: Normaliser = eqx.field(static=True, default=Softmax(), converter=as_normaliser)

    def embed(self, image: Float[Array, "rows columns"]) -> Float[Array, "m p"]:
        """``E`` of one image."""
        return _embedded(self.w_embed, self.grid.words(image), self.head.sharpness)

    def attention(self, image: Float[Array, "rows columns"]) -> Float[Array, "p"]:
        """``a``: the attention each patch receives; sums to one."""
        return self._weights(self.embed(image))

    def attention_map(self, image: Float[Array, "rows columns"]) -> Float[Array, "rows columns"]:
        """The attention each pixel receives; sums to one."""
        return self.grid.spread(self.attention(image))

    def __call__(self, image: Float[Array, "rows columns"]) -> Output:
        """Output for one image."""
        embedded = self.embed(image)
        return self.head(embedded @ self._weights(embedded))

    def _weights(self, embedded: Float[Array, "m p"]) -> Float[Array, "p"]:
        return self.normaliser(self.query @ embedded / math.sqrt(len(self.query)))


@dataclass(frozen=True)
class PatchAttentionConfig:
    """Initialises a ``PatchAttention``.

    - ``embedding_dim`` m, ``key_dim`` d_q, ``value_dim`` d_v; ``hidden`` d units in the head, of
      ``sharpness`` τ;
    - entries of w_E are N(0, 1/t), those of w_Q, w_K and w_V N(0, 1/m), the head's those of
      ``BaselineConfig``; ``init_scale`` multiplies all; ``normaliser`` is as in ``AttentionLayer``.

    >>> grid = PatchGrid(24, 24, size=8, stride=4)
    >>> PatchAttentionConfig(grid, embedding_dim=32).init(jax.random.key(0)).w_embed.shape
    (64, 32)
    """

    grid: PatchGrid = field(default_factory=PatchGrid)
    embedding_dim: int = 32
    key_dim: int = 8
    value_dim: int = 32
    hidden: int = 32
    outputs: int = 1
    sharpness: float = math.inf
    init_scale: float = 1.0
    normaliser: str | Normaliser = "softmax"

    def __post_init__(self):
        at_least_one(self, "embedding_dim", "key_dim", "value_dim", "hidden", "outputs")
        check_sharpness(self.sharpness)
        check_scale("init_scale", self.init_scale)
        as_normaliser(self.normaliser)

    def init(self, key: Key[Array, ""]) -> PatchAttention:
        """Draw initial parameters."""
        std = self.init_scale / math.sqrt(self.embedding_dim)
        shapes = [
            (self.key_dim, self.embedding_dim),
            (self.key_dim, self.embedding_dim),
            (self.value_dim, self.embedding_dim),
        ]
        query, keys, value = (
            normal(jax.random.fold_in(key, 3 + i), shape, std) for i, shape in enumerate(shapes)
        )
        head = BaselineConfig(
            self.value_dim, self.hidden, self.outputs, self.sharpness, self.init_scale
        )
        embed = _embedding(key, self.grid, self.embedding_dim, self.init_scale)
        layer = AttentionLayer(query, keys, value, normaliser=as_normaliser(self.normaliser))
        return PatchAttention(embed, layer, head.init(key), self.grid)


@dataclass(frozen=True)
class AttentionPoolingConfig:
    """Initialises an ``AttentionPooling``.

    Entries of w_E are N(0, 1/t), those of the query N(0, 1), the head's those of
    ``BaselineConfig``; ``init_scale`` multiplies all; ``normaliser`` is as in ``AttentionLayer``.

    >>> grid = PatchGrid(24, 24, size=8, stride=4)
    >>> AttentionPoolingConfig(grid, embedding_dim=32).init(jax.random.key(0)).query.shape
    (32,)
    """

    grid: PatchGrid = field(default_factory=PatchGrid)
    embedding_dim: int = 32
    hidden: int = 32
    outputs: int = 1
    sharpness: float = math.inf
    init_scale: float = 1.0
    normaliser: str | Normaliser = "softmax"

    def __post_init__(self):
        at_least_one(self, "embedding_dim", "hidden", "outputs")
        check_sharpness(self.sharpness)
        check_scale("init_scale", self.init_scale)
        as_normaliser(self.normaliser)

    def init(self, key: Key[Array, ""]) -> AttentionPooling:
        """Draw initial parameters."""
        query = normal(jax.random.fold_in(key, 3), (self.embedding_dim,), self.init_scale)
        head = BaselineConfig(
            self.embedding_dim, self.hidden, self.outputs, self.sharpness, self.init_scale
        )
        embed = _embedding(key, self.grid, self.embedding_dim, self.init_scale)
        return AttentionPooling(
            embed, query, head.init(key), self.grid, as_normaliser(self.normaliser)
        )


def _embedded(
    w_embed: Float[Array, "t m"], words: Float[Array, "t p"], sharpness: float
) -> Float[Array, "m p"]:
    """``φ_τ(w_Eᵀ P)``."""
    # In this order, vmap over images yields one large matrix product: twice as fast.
    return softplus(words.T @ w_embed, sharpness).T


def _embedding(
    key: Key[Array, ""], grid: PatchGrid, embedding_dim: int, scale: float
) -> Float[Array, "t m"]:
    return normal(jax.random.fold_in(key, 2), (grid.size**2, embedding_dim), scale / grid.size)
