"""Models over patches against plain loops over pixels, patches and units, straight from the
equations.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.models import AttentionPoolingConfig, PatchAttentionConfig, PatchGrid

GRID = PatchGrid(7, 9, size=3, stride=2)
SELF = PatchAttentionConfig(
    GRID, embedding_dim=5, key_dim=2, value_dim=4, hidden=6, outputs=3, sharpness=4.0
)
POOL = AttentionPoolingConfig(GRID, embedding_dim=5, hidden=6, outputs=3, sharpness=4.0)
RELU = AttentionPoolingConfig(GRID, embedding_dim=5, hidden=6, outputs=3)
IMAGE = np.random.default_rng(3).standard_normal((7, 9))


def loop_patches(image):
    """Every patch as a list of its pixels, row by row."""
    return [
        [image[top + r, left + c] for r in range(3) for c in range(3)]
        for top in range(0, 5, 2)
        for left in range(0, 7, 2)
    ]


def activation(x, sharpness):
    return max(x, 0.0) if math.isinf(sharpness) else math.log1p(math.exp(sharpness * x)) / sharpness


def times(rows, vector):
    """A matrix, given as rows, times a vector."""
    return [sum(float(a) * b for a, b in zip(row, vector, strict=True)) for row in rows]


def loop_embedded(model, image):
    tau = model.head.sharpness
    return [
        [activation(u, tau) for u in times(model.w_embed.T, patch)] for patch in loop_patches(image)
    ]


def loop_softmax(logits):
    total = sum(math.exp(u) for u in logits)
    return [math.exp(u) / total for u in logits]


def loop_attention(model, image):
    words = loop_embedded(model, image)
    if hasattr(model, "query"):
        return loop_softmax([times([model.query], e)[0] / math.sqrt(5) for e in words])
    keys = [times(model.layer.w_key, e) for e in words]
    total = [0.0] * len(words)
    for e in words:
        query = times(model.layer.w_query, e)
        a = loop_softmax([times([key], query)[0] / math.sqrt(2) for key in keys])
        total = [t + u / len(words) for t, u in zip(total, a, strict=True)]
    return total


def loop_output(model, image):
    words = loop_embedded(model, image)
    values = words if hasattr(model, "query") else [times(model.layer.w_value, e) for e in words]
    weights = loop_attention(model, image)
    pooled = [
        sum(a * v[i] for a, v in zip(weights, values, strict=True)) for i in range(len(values[0]))
    ]
    hidden = [activation(u, model.head.sharpness) for u in times(model.head.w1.T, pooled)]
    return times(model.head.w2.T, hidden)


def loop_map(weights):
    pixels = np.zeros((7, 9))
    corners = [(top, left) for top in range(0, 5, 2) for left in range(0, 7, 2)]
    for a, (top, left) in zip(weights, corners, strict=True):
        for r in range(3):
            for c in range(3):
                pixels[top + r, left + c] += a / 9
    return pixels


@pytest.mark.parametrize("config", [SELF, POOL, RELU], ids=["self", "pool", "relu"])
def test_models_against_loops(config):
    model = config.init(jax.random.key(1))
    plain = jax.tree.map(np.asarray, model)
    image = jnp.asarray(IMAGE)
    weights = loop_attention(plain, IMAGE)
    np.testing.assert_allclose(model.attention(image), weights, rtol=1e-12)
    np.testing.assert_allclose(model(image), loop_output(plain, IMAGE), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(model.attention_map(image), loop_map(weights), rtol=1e-12)
    assert float(model.attention_map(image).sum()) == pytest.approx(1, abs=1e-12)


def test_self_attention_is_the_mean_of_the_words_that_the_layer_returns():
    model = SELF.init(jax.random.key(2))
    image = jnp.asarray(IMAGE)
    words = model.layer(model.embed(image))
    np.testing.assert_allclose(model(image), model.head(words.mean(axis=1)), rtol=1e-12)


@pytest.mark.parametrize("config", [SELF, POOL], ids=["self", "pool"])
def test_a_pattern_moved_by_the_stride_gives_the_same_output(config):
    """On an image that is zero near the border, a place on the lattice cannot be told from another."""
    model = config.init(jax.random.key(4))
    here, there = np.zeros((7, 9)), np.zeros((7, 9))
    here[2, 2], there[2, 4] = 1.7, 1.7
    np.testing.assert_allclose(model(jnp.asarray(here)), model(jnp.asarray(there)), rtol=1e-12)


def test_float32_stays_float32():
    for config in (SELF, POOL):
        model = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), config.init(jax.random.key(1)))
        image = jnp.asarray(IMAGE, jnp.float32)
        assert model(image).dtype == model.attention_map(image).dtype == jnp.float32


def test_the_start_has_the_promised_deviations():
    grid = PatchGrid(8, 8, size=4, stride=2)
    model = PatchAttentionConfig(
        grid, embedding_dim=200, key_dim=100, value_dim=150, init_scale=2.0
    ).init(jax.random.key(0))
    assert float(model.w_embed.std()) == pytest.approx(2 / 4, rel=0.05)
    for leaf in (model.layer.w_query, model.layer.w_key, model.layer.w_value):
        assert float(leaf.std()) == pytest.approx(2 / math.sqrt(200), rel=0.05)
    assert float(model.head.w1.std()) == pytest.approx(2 / math.sqrt(150), rel=0.05)


def test_what_does_not_fit_is_refused():
    with pytest.raises(AttnlabError, match="multiple of 4"):
        PatchGrid(25, 24, size=8, stride=4)
    with pytest.raises(AttnlabError, match="expected \\(7, 9\\)"):
        GRID.words(jnp.zeros((9, 7)))
