"""Every model of docs/theory.md#b1 against its equation, written out in NumPy with loops."""

import dataclasses
import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from attnlab import AttnlabError
from attnlab.models import (
    BaselineConfig,
    Frozen,
    Gate,
    KnownAttentionConfig,
    KnownWeights,
    KnownWeightsConfig,
    MovingBlock,
    MultiLayer,
    MultiLayerConfig,
    SelfAttentionConfig,
    StaticMask,
    VacuousMask,
    answers,
    softplus,
    trained_parts,
    vec,
)
from attnlab.training import OptaxOptimizer, train_model

pytestmark = pytest.mark.slow

KEY = jax.random.key(0)
TEMPERATURES = [0.5, 4.0, math.inf]


# The equations, one number at a time.


def phi(x, tau):
    if math.isinf(tau):
        return max(x, 0.0)
    return max(x, 0.0) + math.log1p(math.exp(-tau * abs(x))) / tau


def literal_head(head, numbers):
    w1, w2 = np.asarray(head.w1), np.asarray(head.w2)
    y = np.zeros(w2.shape[1])
    for k in range(w1.shape[1]):
        inner = 0.0
        for i, number in enumerate(numbers):
            inner += w1[i, k] * number
        for o in range(w2.shape[1]):
            y[o] += w2[k, o] * phi(inner, head.sharpness)
    return y[0] if len(y) == 1 else y


def literal_vec(x):
    return [x[i, z] for z in range(x.shape[1]) for i in range(x.shape[0])]


def literal_mask(mask, x):
    p, f = len(x), np.zeros(len(x))
    for j in range(p):
        if isinstance(mask, StaticMask):
            f[j] = 1.0 if j in mask.relevant else 0.0
        elif isinstance(mask, Gate):
            f[j] = 2 / (1 + math.exp(-3 * x[(j - 1) % p])) if j in mask.relevant else 0.0
        elif isinstance(mask, MovingBlock):
            f[j] = (
                1.0
                if j in [(int(np.argmax(x)) + i) % p for i in range(1, mask.length + 1)]
                else 0.0
            )
        else:
            f[j] = 1.0
    return f


def literal_attention(layer, x):
    w_q, w_k = np.asarray(layer.w_query), np.asarray(layer.w_key)
    d_q, p = w_q.shape[0], x.shape[1]
    divisor = math.sqrt(d_q) if layer.scale == "sqrt" else d_q
    a = np.zeros((p, p))
    for z in range(p):
        query = w_q @ x[:, z]
        e = [math.exp(layer.factor * float(query @ (w_k @ x[:, j])) / divisor) for j in range(p)]
        for j in range(p):
            a[j, z] = e[j] / sum(e)
    return a


def literal_mix(w_value, x, a):
    mixed = np.zeros((w_value.shape[0], x.shape[1]))
    for z, j in itertools.product(range(x.shape[1]), repeat=2):
        mixed[:, z] += a[j, z] * (np.asarray(w_value) @ x[:, j])
    return mixed


def literal_stack(layers, x, residual, weights=None):
    """Input of the head, and the attention of every layer; with ``weights``, these instead of the
    layers' own.
    """
    used = []
    for number, layer in enumerate(layers):
        used.append(literal_attention(layer, x) if weights is None else weights[number])
        mixed = literal_mix(layer.w_value, x, used[-1])
        x = x + mixed if residual and number < len(layers) - 1 else mixed
    return x, np.array(used)


def close(got, expected, atol=1e-12):
    assert np.shape(got) == np.shape(expected)
    assert np.allclose(got, expected, rtol=0, atol=atol)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


# Activation and baseline


@pytest.mark.parametrize("tau", [0.25, 1.0, 4.0, 100.0, math.inf])
def test_softplus_is_its_formula_and_stays_finite(tau):
    x = np.array([-1e3, -30.0, -1.0, -1e-9, 0.0, 1e-9, 2.0, 30.0, 1e3])
    close(softplus(jnp.asarray(x), tau), [phi(v, tau) for v in x])
    slope = jax.vmap(jax.grad(lambda v: softplus(v, tau)))(jnp.asarray(x))
    curvature = jax.vmap(jax.grad(jax.grad(lambda v: softplus(v, tau))))(jnp.asarray(x))
    assert np.isfinite(slope).all()
    assert np.isfinite(curvature).all()
    assert slope[0] < 1e-100
    assert slope[-1] == 1.0


def test_softplus_tends_to_relu():
    x = jnp.linspace(-2.0, 2.0, 41)
    gaps = [
        float(jnp.max(jnp.abs(softplus(x, tau) - softplus(x, math.inf))))
        for tau in (1.0, 10.0, 100.0)
    ]
    close(gaps, [math.log(2) / tau for tau in (1.0, 10.0, 100.0)])


@pytest.mark.parametrize("tau", TEMPERATURES)
@pytest.mark.parametrize("outputs", [1, 3])
def test_baseline_is_its_equation(outputs, tau):
    model = BaselineConfig(6, 5, outputs, tau).init(KEY)
    x = draw(6)
    close(model(jnp.asarray(x)), literal_head(model, x))
    matrix = draw(2, 3)
    close(model(jnp.asarray(matrix)), literal_head(model, literal_vec(matrix)))
    close(vec(jnp.asarray(matrix)), literal_vec(matrix))


def test_a_start_is_a_function_of_its_key_with_the_stated_scales():
    config = BaselineConfig(100, 60, 2, init_scale=3.0)
    model, again, other = (config.init(jax.random.key(k)) for k in (0, 0, 1))
    assert eqx.tree_equal(model, again)
    assert not jnp.any(model.w1 == other.w1)
    assert float(model.w1.std()) == pytest.approx(3 / 10, rel=0.03)
    assert float(model.w2.std()) == pytest.approx(3 / math.sqrt(60), rel=0.2)
    assert len(np.unique(model.w1)) == 6000  # no block of random numbers is drawn twice
    batch = jax.vmap(config.init)(jax.random.split(KEY, 3))
    alone = config.init(jax.random.split(KEY, 3)[1])
    close(batch.w1[1], alone.w1)


# Known attention over features

MASKS = [StaticMask((1, 4), 6), Gate((0, 3, 5), 6), MovingBlock(2, 6), VacuousMask(6)]


@pytest.mark.parametrize("mask", MASKS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("outputs", [1, 3])
def test_known_attention_is_its_equation(mask, outputs):
    model = KnownAttentionConfig(BaselineConfig(6, 5, outputs), mask).init(KEY)
    for seed in range(5):
        x = draw(6, seed=seed)
        f = literal_mask(mask, x)
        close(mask(jnp.asarray(x)), f)
        close(model(jnp.asarray(x)), literal_head(model.head, x * f))


@pytest.mark.parametrize("mask", MASKS, ids=lambda m: type(m).__name__)
def test_masks_keep_the_floating_type_and_can_be_told_apart(mask):
    assert mask(jnp.ones(6, jnp.float32)).dtype == jnp.float32
    assert hash(mask) == hash(dataclasses.replace(mask))
    assert mask == dataclasses.replace(mask)
    assert len(set(MASKS)) == len(MASKS)


def test_static_mask_and_gate_see_only_what_is_relevant():
    for kind in (StaticMask, Gate):
        model = KnownAttentionConfig(BaselineConfig(6, 5), kind((1, 4), 6)).init(KEY)
        gradient = jax.grad(model)(jnp.asarray(draw(6)))
        seen = (
            {1, 4} if kind is StaticMask else {0, 1, 3, 4}
        )  # the gate looks at the neighbours, too
        assert set(np.flatnonzero(gradient).tolist()) == seen


def test_the_block_moves_and_every_feature_is_used_equally_often():
    x = jnp.asarray(draw(20000, 8))
    weights = np.asarray(jax.vmap(MovingBlock(3, 8))(x))
    assert (weights.sum(axis=1) == 3).all()
    assert len(np.unique(weights, axis=0)) == 8
    assert np.allclose(weights.mean(axis=0), 3 / 8, atol=0.02)
    # What is let through is alike at all places: the place is not readable from one coordinate's
    # share.
    chosen = np.asarray(x) * weights
    assert np.allclose((chosen**2).mean(axis=0), (chosen**2).mean(), rtol=0.1)
    model = KnownAttentionConfig(BaselineConfig(8, 5), MovingBlock(3, 8)).init(KEY)
    used = jax.vmap(jax.grad(lambda m, x: m(x)), in_axes=(None, 0))(model, x[:200]).head.w1
    assert (np.abs(np.asarray(used)).max(axis=(0, 2)) > 0).all()


def test_a_vacuous_mask_is_the_baseline_exactly_and_a_wrong_mask_misses_everything():
    base, x = BaselineConfig(6, 5), jnp.asarray(draw(6))
    assert KnownAttentionConfig(base, VacuousMask(6)).init(KEY)(x) == base.init(KEY)(x)
    mask = StaticMask((1, 4), 6)
    assert not set(mask.wrong().relevant) & set(mask.relevant)
    assert len(mask.wrong().relevant) == 2


# Self-attention


CONFIG = SelfAttentionConfig(embedding_dim=4, words=5, key_dim=2, value_dim=3, hidden=6)


@pytest.mark.parametrize("scale", ["sqrt", "dim"])
@pytest.mark.parametrize(("factor", "outputs"), [(1.0, 1), (3.0, 1), (1.0, 3)])
def test_self_attention_is_its_equation(scale, factor, outputs):
    model = dataclasses.replace(
        CONFIG, scale=scale, factor=factor, outputs=outputs, query_scale=2.0
    ).init(KEY)
    x = draw(4, 5)
    inner, (a,) = literal_stack([model.layer], x, residual=True)
    close(model.attention(jnp.asarray(x)), a)
    close(model.attention(jnp.asarray(x)).sum(axis=0), np.ones(5))
    close(model.layer(jnp.asarray(x)), inner)
    close(model(jnp.asarray(x)), literal_head(model.head, literal_vec(inner)))


def test_another_normaliser_works_on_the_columns():
    model = dataclasses.replace(CONFIG, normaliser=hard).init(KEY)
    x = jnp.asarray(draw(4, 5))
    a, logits = np.asarray(model.attention(x)), np.asarray(model.layer.logits(x))
    assert (a.sum(axis=0) == 1).all()
    assert (a.argmax(axis=0) == logits.argmax(axis=0)).all()


def hard(logits):
    return jax.nn.one_hot(jnp.argmax(logits), logits.shape[0], dtype=logits.dtype)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("residual", [True, False])
def test_several_layers_are_their_equation(depth, residual):
    model = MultiLayerConfig(dataclasses.replace(CONFIG, query_scale=2.0), depth, residual).init(
        KEY
    )
    x = draw(4, 5)
    inner, a = literal_stack(model.layers, x, residual)
    close(model.attentions(jnp.asarray(x)), a)
    close(model(jnp.asarray(x)), literal_head(model.head, literal_vec(inner)))


@pytest.mark.parametrize("residual", [True, False])
def test_one_layer_is_self_attention(residual):
    one, stack, x = (
        CONFIG.init(KEY),
        MultiLayerConfig(CONFIG, 1, residual).init(KEY),
        jnp.asarray(draw(4, 5)),
    )
    assert one(x) == stack(x)
    assert (one.attentions(x) == stack.attentions(x)).all()


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("residual", [True, False])
def test_known_weights_are_their_equation(depth, residual):
    config = MultiLayerConfig(dataclasses.replace(CONFIG, query_scale=2.0), depth, residual)
    teacher = config.init(jax.random.key(5))
    model = KnownWeightsConfig(config).init(KEY, teacher=teacher)
    own = config.init(KEY)  # the same values and head, from the same key
    x = draw(4, 5)
    _, a = literal_stack(teacher.layers, x, residual)
    inner, _ = literal_stack(own.layers, x, residual, weights=a)
    close(model(jnp.asarray(x)), literal_head(own.head, literal_vec(inner)))
    close(
        model.weighted(jnp.asarray(x), jnp.asarray(a)), literal_head(own.head, literal_vec(inner))
    )


def test_known_weights_without_values_are_their_equation():
    teacher = CONFIG.init(jax.random.key(5))
    model = KnownWeightsConfig(CONFIG, values=False).init(KEY, teacher=teacher)
    x = draw(4, 5)
    inner = literal_mix(np.eye(4), x, literal_attention(teacher.layer, x))
    close(model(jnp.asarray(x)), literal_head(model.head, literal_vec(inner)))
    assert model.head.w1.shape == (20, 6)


@pytest.mark.parametrize("depth", [1, 2])
def test_known_weights_with_the_teachers_own_parameters_are_the_teacher(depth):
    teacher = MultiLayerConfig(CONFIG, depth).init(KEY)
    model = KnownWeights(
        Frozen(teacher), tuple(layer.w_value for layer in teacher.layers), teacher.head
    )
    x = jnp.asarray(draw(4, 5))
    assert model(x) == teacher(x)


@pytest.mark.parametrize(
    ("dtype", "atol"), [("float64", 1e-12), ("float32", 1e-5)], ids=["double", "single"]
)
@pytest.mark.parametrize("query_scale", [1.0, 1000.0], ids=["plain", "logits that overflow"])
@pytest.mark.parametrize(
    "changes", [{}, {"scale": "dim", "normaliser": "softmax:0.5"}, {"outputs": 3, "factor": 2.0}]
)
def test_answers_and_their_gradient_are_those_of_one_sample_at_a_time(
    changes, query_scale, dtype, atol
):
    config = dataclasses.replace(CONFIG, query_scale=math.sqrt(query_scale), **changes)
    model = jax.tree.map(lambda leaf: leaf.astype(dtype), config.init(KEY))
    x = jnp.asarray(draw(37, 4, 5), dtype)
    logits = np.asarray(jax.vmap(model.layer.logits)(x))
    assert (np.abs(logits).max() > 400) == (query_scale > 1)
    double = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), model)
    expected = np.array(
        [
            literal_head(
                double.head,
                literal_vec(
                    literal_mix(
                        double.layer.w_value,
                        np.asarray(s),
                        np.asarray(double.attention(jnp.asarray(s))),
                    )
                ),
            )
            for s in np.asarray(x, np.float64)
        ]
    )
    size = np.abs(expected).max()
    # A single-precision logit of 1000 is off by 1e-4, and so are its weight and all that follows.
    rounding = atol * size * (50 if query_scale > 1 else 1)
    for got in (answers(model, x), jax.jit(answers)(model, x)):
        assert got.dtype == dtype
        close(got, expected, rounding)

    def total(forward):
        return lambda vector, x: jnp.sum(jnp.sin(forward(unravel(vector), x)))

    vector, unravel = ravel_pytree(double)
    wide = jnp.asarray(x, jnp.float64)
    fast, slow = (
        jax.jit(jax.grad(total(f), argnums=(0, 1)))(vector, wide)
        for f in (answers, lambda m, x: jax.vmap(m)(x))
    )
    for got, right in zip(fast, slow, strict=True):
        close(got, right, 1e-12 * max(1.0, float(jnp.abs(right).max())))


def test_answers_of_extreme_inputs_are_finite_and_a_nan_stays_one():
    model = CONFIG.init(KEY)
    for size in (0.0, 1e3):
        y, slope = jax.value_and_grad(lambda x: jnp.sum(answers(model, x)))(
            size * jnp.asarray(draw(6, 4, 5))
        )
        if size < 1e100:
            assert np.isfinite(y)
            assert np.isfinite(slope).all()
    x = jnp.asarray(draw(6, 4, 5)).at[2, 0, 0].set(jnp.nan)
    assert np.isnan(answers(model, x)).tolist() == [number == 2 for number in range(6)]


def test_answers_of_any_other_model_are_its_own():
    x = jnp.asarray(draw(6, 4, 5))
    for config in (
        BaselineConfig(20),
        MultiLayerConfig(CONFIG),
        dataclasses.replace(CONFIG, normaliser="sparsemax"),
    ):
        model = config.init(KEY)
        assert (answers(model, x) == jax.vmap(model)(x)).all()
    with pytest.raises(AttnlabError, match="expected \\(4, words\\)"):
        answers(CONFIG.init(KEY), x.transpose(0, 2, 1))


# Training and extreme inputs

MODELS = {
    "baseline": BaselineConfig(20, 5),
    "static": KnownAttentionConfig(BaselineConfig(20, 5), StaticMask((1, 4), 20)),
    "gate": KnownAttentionConfig(BaselineConfig(20, 5), Gate((1, 4), 20)),
    "block": KnownAttentionConfig(BaselineConfig(20, 5), MovingBlock(2, 20)),
    "self-attention": CONFIG,
    "stack": MultiLayerConfig(CONFIG, 2),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [0.0, 1e3])
def test_gradients_are_finite_at_extreme_inputs(name, size):
    model = MODELS[name].init(KEY)
    x = size * jnp.asarray(
        draw(4, 5) if isinstance(MODELS[name], SelfAttentionConfig | MultiLayerConfig) else draw(20)
    )
    for function in (lambda m, x: m(x), lambda m, x: jax.grad(lambda v: m(v))(x).sum()):
        gradient = eqx.filter_jit(eqx.filter_grad(function))(model, x)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("name", MODELS)
def test_float32_stays_float32(name):
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), MODELS[name].init(KEY))
    x = jnp.ones(
        (4, 5) if isinstance(MODELS[name], SelfAttentionConfig | MultiLayerConfig) else 20,
        jnp.float32,
    )
    assert model(x).dtype == jnp.float32


def squared_error(model, batch):
    x, y = batch
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


def test_training_leaves_the_teacher_of_known_weights_alone_even_with_weight_decay():
    teacher = CONFIG.init(jax.random.key(5))
    x = jnp.asarray(draw(64, 4, 5))
    run = train_model(
        lambda key: KnownWeightsConfig(CONFIG).init(key, teacher=teacher),
        squared_error,
        (x, jax.vmap(teacher)(x)),
        steps=200,
        optimizer=OptaxOptimizer(optax.adamw(0.02, weight_decay=0.1)),
        trained=trained_parts,
        progress=False,
    )
    loss = run.data["loss"].values.ravel()
    assert loss[-1] < 0.3 * loss[0]
    assert eqx.tree_equal(run.model(0).teacher.module, teacher)


def test_no_gradient_enters_a_frozen_teacher():
    model = KnownWeightsConfig(CONFIG).init(KEY, teacher=CONFIG.init(jax.random.key(5)))
    gradient = eqx.filter_grad(lambda m: m(jnp.asarray(draw(4, 5))))(model)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(gradient.teacher))
    assert all((leaf != 0).any() for leaf in jax.tree.leaves(gradient.w_values))


# What is refused

ERRORS = {
    "sharpness=0.0": lambda: softplus(jnp.ones(2), 0.0),
    "sharpness=-1.0": lambda: BaselineConfig(4, sharpness=-1.0),
    "hidden=0": lambda: BaselineConfig(4, hidden=0),
    "init_scale=-1.0": lambda: BaselineConfig(4, init_scale=-1.0),
    r"shape \(3,\) holds 3 numbers, but w1 has 4 rows": lambda: BaselineConfig(4).init(KEY)(
        jnp.ones(3)
    ),
    r"relevant=\(\)": lambda: StaticMask((), 4),
    r"relevant=\(1, 1\)": lambda: StaticMask((1, 1), 4),
    r"relevant=\(4,\)": lambda: Gate((4,), 4),
    "length=4 of features=4": lambda: MovingBlock(4, 4),
    "features=0": lambda: VacuousMask(0),
    "take at least 6 features": lambda: StaticMask((0, 1, 2), 4).wrong(),
    r"input of shape \(3,\); expected \(4,\)": lambda: VacuousMask(4)(jnp.ones(3)),
    "mask has 4 features, but base has numbers=5": lambda: KnownAttentionConfig(
        BaselineConfig(5), VacuousMask(4)
    ),
    "scale='cube'": lambda: SelfAttentionConfig(scale="cube"),
    "query_scale=-1.0": lambda: SelfAttentionConfig(query_scale=-1.0),
    "words=0": lambda: SelfAttentionConfig(words=0),
    r"input of shape \(5, 4\); expected \(4, words\)": lambda: CONFIG.init(KEY)(jnp.ones((5, 4))),
    "depth=0": lambda: MultiLayerConfig(CONFIG, 0),
    "layer 0 of 2 has shape": lambda: MultiLayer(
        (CONFIG.init(KEY).layer,) * 2, CONFIG.init(KEY).head
    ),
    "stack of no layers": lambda: MultiLayer((), CONFIG.init(KEY).head),
    "values=False with depth=2": lambda: KnownWeightsConfig(
        MultiLayerConfig(CONFIG, 2), values=False
    ),
    "teacher is a Baseline": lambda: KnownWeightsConfig(CONFIG).init(
        KEY, teacher=BaselineConfig(4).init(KEY)
    ),
    "teacher has 2 layers, the student 1": lambda: KnownWeightsConfig(CONFIG).init(
        KEY, teacher=MultiLayerConfig(CONFIG, 2).init(KEY)
    )(jnp.ones((4, 5))),
}


@pytest.mark.parametrize("message", ERRORS)
def test_mistakes_are_refused(message):
    with pytest.raises(AttnlabError, match=message):
        ERRORS[message]()


@pytest.mark.parametrize(
    "normaliser", [jax.nn.softmax, lambda s: jax.nn.sigmoid(s) / 4], ids=["softmax", "sigmoid"]
)
def test_every_derivative_of_the_attention_is_that_of_the_formula(normaliser):
    layer = SelfAttentionConfig(
        embedding_dim=3, words=4, normaliser=normaliser, factor=2.0
    ).init_layer(jax.random.key(0), 2)
    x = jax.random.normal(jax.random.key(1), (5, 3, 4))
    weights, unravel = ravel_pytree(layer)

    def plain(vector, x):
        fast = unravel(vector)
        logits = (fast.w_key @ x).T @ (fast.w_query @ x) * (2.0 / math.sqrt(2))
        return fast.w_value @ x @ jnp.stack([normaliser(column) for column in logits.T], axis=1)

    def outputs(function):
        return lambda vector: jnp.sin(jax.vmap(function, in_axes=(None, 0))(vector, x))

    fast, slow = outputs(lambda vector, x: unravel(vector)(x)), outputs(plain)
    for derivative in (
        lambda f: f,
        jax.jacfwd,
        jax.jacrev,
        lambda f: jax.hessian(lambda v: jnp.sum(f(v) ** 3)),
    ):
        expected = np.asarray(derivative(slow)(weights))
        assert np.allclose(
            derivative(fast)(weights), expected, rtol=0, atol=1e-11 * np.abs(expected).max()
        )


def test_softplus_in_single_precision_is_that_of_double_to_rounding():
    x = np.concatenate([np.linspace(-30, 30, 20_001), [0.0, 1e-6, -1e-6, 1e3, -1e3]])
    single = np.asarray(softplus(jnp.asarray(x, jnp.float32), 1.0), np.float64)
    double = np.logaddexp(np.float64(np.float32(x)), 0.0)
    assert np.abs(single - double).max() <= 2.5e-7 * np.maximum(1, np.abs(double)).max()
    assert (np.abs(single - double) <= 2.5e-7 * np.maximum(1, double)).all()
