"""Every normaliser against a slow oracle: a general solver, an optimality condition by bisection,
or its definition.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from attnlab._errors import AttnlabError
from attnlab.models import (
    AttentionPoolingConfig,
    Bags,
    Entmax15,
    MultiLayerConfig,
    PatchAttentionConfig,
    PatchGrid,
    SelfAttentionConfig,
    Softmax,
    Sparsemax,
    TopK,
    Uniform,
    WordAttentionConfig,
    bag_logits,
    bag_weights,
    literal_logits,
    make_normaliser,
    pooled_logits,
)
from attnlab.models._incidence import Incidence
from attnlab.models._normalisers import as_normaliser
from tests.models import cases

pytestmark = pytest.mark.slow

NAMES = ("softmax", "softmax:0.25", "sparsemax", "entmax15", "top1", "top2", "top5", "uniform")
LEARNING = tuple(name for name in NAMES if name not in ("uniform", "top1"))
RNG = np.random.default_rng(0)


def padded(*values):
    """Twelve logits: those given, and others far below them."""
    return np.concatenate([values, np.linspace(-8.0, -5.0, 12 - len(values)) + min(values)])


# Of one length, so that little is compiled.
LOGITS = {
    "one word": np.array([3.0]),
    "equal": np.full(12, -2.0),
    "ties at the top": padded(1.0, 0.3, 1.0, 1.0, -4.0),
    "ties below": padded(1.0, 0.4, 0.4, 0.4, -1.0),
    "nearly equal": 1e-9 * RNG.normal(size=12),
    "small": 0.3 * RNG.normal(size=12),
    "ordinary": 2.0 * RNG.normal(size=12),
    "many": 0.5 * RNG.normal(size=300),
    "large": 1e3 * RNG.normal(size=12),
    "far above": padded(1e3, 1e3 - 0.3, 1e3 - 0.7, -1e3),
    "far below": padded(-1e3, -1e3 - 0.1, -1e3 + 0.4, -1e3 + 0.03),
}
weigh = jax.jit(lambda norm, z: norm(z), static_argnums=0)


def sparsemax_by_sorting(z):
    """The threshold of the largest support whose last word stays above it."""
    ordered = np.sort(z)[::-1]
    thresholds = (np.cumsum(ordered) - 1) / np.arange(1, len(z) + 1)
    return np.maximum(z - thresholds[np.flatnonzero(ordered > thresholds).max()], 0)


def entmax_by_bisection(z):
    """τ at which ``Σ (z/2 − τ)₊² = 1``, which falls from ≥ 1 at max − 1 to 0 at max."""
    x = z / 2 - z.max() / 2
    low, high = -1.0, 0.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if (np.maximum(x - middle, 0) ** 2).sum() > 1 else (low, middle)
    return np.maximum(x - (low + high) / 2, 0) ** 2


def literal(name, z):
    """Weights from the definition, in NumPy."""
    if name == "uniform":
        return np.full(len(z), 1 / len(z))
    if name == "sparsemax":
        return sparsemax_by_sorting(z - z.max())
    if name == "entmax15":
        return entmax_by_bisection(z)
    temperature, k = (
        (float(name[8:] or 1), len(z)) if name.startswith("softmax") else (1.0, int(name[3:]))
    )
    kept = np.array([np.sum(z > own) < k for own in z])
    e = np.where(kept, np.exp((z - z.max()) / temperature), 0)
    return e / e.sum()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", LOGITS)
def test_weights_are_those_of_the_definition(name, case):
    z, norm = LOGITS[case], make_normaliser(name)
    a = np.asarray(weigh(norm, z))
    assert np.allclose(a, literal(name, z), rtol=0, atol=1e-12)
    assert abs(a.sum() - 1) <= 1e-12
    assert a.min() >= 0
    rough = np.asarray(weigh(norm, (z - z.max()).astype(np.float32)))
    assert rough.dtype == np.float32
    assert np.allclose(rough, a, rtol=0, atol=3e-6)


@pytest.mark.parametrize("case", [c for c in LOGITS if c != "many"])
@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_weights_are_the_optimum_that_a_general_solver_finds(name, case):
    z = np.maximum(
        LOGITS[case] - LOGITS[case].max(), -50.0
    )  # the solver knows no shift, and fails at large numbers
    power = {"sparsemax": 2.0, "entmax15": 1.5}[name]
    weight = 1 / (power * (power - 1))

    def cost(a):
        """Minus ``a·z`` plus Tsallis' entropy."""
        return weight * np.sum(np.maximum(a, 0) ** power - a) - a @ z

    def slope(a):
        return weight * (power * np.maximum(a, 0) ** (power - 1) - 1) - z

    n = len(z)
    found = minimize(
        cost,
        np.full(n, 1 / n),
        jac=slope,
        method="SLSQP",
        bounds=[(0, 1)] * n,
        options={"ftol": 1e-16, "maxiter": 500},
        constraints=[{"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(n)}],
    )
    a = np.asarray(weigh(make_normaliser(name), z))
    assert np.allclose(a, found.x, rtol=0, atol=1e-5)
    assert cost(a) <= cost(found.x / found.x.sum()) + 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_a_word_that_is_not_there_has_no_weight_and_no_influence(name):
    norm, z = make_normaliser(name), RNG.normal(size=(4, 6))
    there = np.array(
        [[1, 0, 1, 1, 0, 1], [0, 0, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]], bool
    )

    def masked(z):
        return norm(z, jnp.asarray(there))

    a = np.asarray(masked(jnp.asarray(z)))
    for row, (weights, here) in enumerate(zip(a, there, strict=True)):
        assert (weights[~here] == 0).all()
        if here.any():
            assert np.allclose(weights[here], literal(name, z[row][here]), rtol=0, atol=1e-12)
    assert (a[3] == 0).all()
    assert np.allclose(weigh(norm, np.where(there, z, -np.inf)[:3]), a[:3], rtol=0, atol=1e-15)
    assert np.array_equal(norm(jnp.asarray(z), jnp.asarray(there[0])), masked_by(norm, z, there[0]))
    gradient, moved = jax.jit(
        lambda z: (
            jax.grad(lambda z: jnp.sum(masked(z) * jnp.sin(z)[::-1]))(z),
            jax.jvp(masked, (z,), (jnp.where(there, 0.0, 1.0),))[1],
        )
    )(z)
    assert np.isfinite(gradient).all()
    assert (np.asarray(moved) == 0).all()


def masked_by(norm, z, row):
    """One mask for all rows, said at length."""
    return norm(jnp.asarray(z), jnp.asarray(np.broadcast_to(row, z.shape)))


def differences(function, z, size=1e-6):
    """Derivative by central differences, along a last axis."""
    steps = size * jnp.eye(len(z))
    rows = jax.vmap(lambda e: (function(z + e) - function(z - e)) / (2 * size))(steps)
    return jnp.moveaxis(rows, 0, -1)


@functools.partial(jax.jit, static_argnums=0)
def derivatives(norm, z):
    """Jacobians and Hessians by several modes, the first of each by differences."""

    def bent(z):
        return jnp.sum(jnp.sin(3 * norm(z)) * jnp.arange(1.0, len(z) + 1))

    jacobians = (differences(norm, z), jax.jacfwd(norm)(z), jax.jacrev(norm)(z))
    return jacobians, (
        differences(jax.grad(bent), z),
        jax.hessian(bent)(z),
        jax.jacrev(jax.jacrev(bent))(z),
    )


SMOOTH = {
    name: ["small", "ordinary", "far above", "far below"]
    + ["nearly equal"] * (not name.startswith("top"))
    for name in NAMES  # a difference from nearly equal logits would change which are kept
}


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in SMOOTH for case in SMOOTH[name]]
)
def test_derivatives_are_those_of_finite_differences(name, case):
    jacobians, hessians = derivatives(make_normaliser(name), LOGITS[case])
    for jacobian in jacobians[1:]:
        assert np.allclose(jacobian, jacobians[0], rtol=0, atol=2e-7)
    for hessian in hessians[1:]:
        assert np.allclose(hessian, hessians[0], rtol=0, atol=2e-5)


def test_third_derivatives_exist():
    z = jnp.asarray(LOGITS["small"][:4])

    def bent(z):
        return jnp.sum(jnp.sin(3 * Entmax15()(z)) * jnp.arange(1.0, 5.0))

    third = np.asarray(jax.jit(jax.jacfwd(jax.jacrev(jax.jacfwd(bent))))(z))
    assert np.allclose(
        third, jax.jit(lambda z: differences(jax.hessian(bent), z))(z), rtol=0, atol=1e-5
    )
    assert np.abs(third).max() > 0.1


jacobian_of = jax.jit(lambda norm, z: jax.jacrev(norm)(z), static_argnums=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", [c for c in LOGITS if len(LOGITS[c]) == 12])
def test_derivatives_are_finite_everywhere_and_a_shift_changes_nothing(name, case):
    jacobian = np.asarray(jacobian_of(make_normaliser(name), LOGITS[case]))
    assert np.isfinite(jacobian).all()
    # Columns sum to zero since weights sum to one, rows since only differences matter: the law Σ_w
    # s_w.
    assert np.allclose(jacobian.sum(axis=0), 0, rtol=0, atol=1e-13)
    assert np.allclose(jacobian.sum(axis=1), 0, rtol=0, atol=1e-13)


def test_where_a_word_is_about_to_enter_the_derivative_is_that_of_one_side():
    a, da = jax.jvp(Sparsemax(), (jnp.array([1.0, 0.0]),), (jnp.array([1.0, 0.0]),))
    assert a.tolist() == [1.0, 0.0]
    assert da.tolist() == [0.0, 0.0]
    # From the other side both words share: the derivative jumps here, and no other value would be
    # right for both.
    inside = jax.jvp(Sparsemax(), (jnp.array([1.0 - 1e-9, 0.0]),), (jnp.array([1.0, 0.0]),))[1]
    assert np.allclose(inside, [0.5, -0.5])


@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_top_k_keeps_all_words_that_tie_with_the_kth(k):
    z = jnp.array([0.5, 2.0, 0.5, -1.0, 2.0, 0.5])
    kept = np.asarray(weigh(TopK(k), z)) > 0
    assert kept.sum() == {1: 2, 2: 2, 3: 5, 9: 6}[k]
    assert np.asarray(z)[kept].min() >= np.sort(np.asarray(z))[::-1][min(k, 6) - 1]


@pytest.mark.parametrize("name", NAMES)
def test_words_are_treated_alike_and_a_row_does_not_see_its_neighbours(name):
    norm, z = (
        make_normaliser(name),
        jnp.asarray(RNG.normal(size=(40, 9)) * RNG.choice([0.1, 1, 50], (40, 1))),
    )
    order = RNG.permutation(9)
    batch = np.asarray(weigh(norm, z))
    assert np.allclose(weigh(norm, z[:, order]), batch[:, order], rtol=0, atol=1e-14)
    assert np.allclose([weigh(norm, row) for row in z], batch, rtol=0, atol=1e-15)
    assert np.array_equal(
        jax.jit(jax.vmap(jax.vmap(norm)))(z.reshape(8, 5, 9)), batch.reshape(8, 5, 9)
    )


def test_names_are_what_they_are_made_from():
    for name in NAMES:
        made = make_normaliser(name)
        assert made.name == name
        assert made == make_normaliser(name)
        assert hash(made) == hash(make_normaliser(name))
    assert Softmax() != Softmax(0.5)
    assert Sparsemax() != Entmax15()
    assert make_normaliser("softmax:1") == Softmax()
    assert isinstance(make_normaliser("uniform"), Uniform)


WRONG = (
    "soft",
    "softmax:",
    "softmax:0",
    "softmax:-1",
    "softmax:x",
    "softmax:1.2.3",
    "top0",
    "top",
    "top-1",
    "",
)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_name_is_refused_with_a_list(name):
    with pytest.raises(
        AttnlabError, match=f"normaliser {name!r}.*softmax:T, sparsemax, entmax15, topK, uniform"
    ):
        make_normaliser(name)


def test_wrong_settings_are_refused():
    for make in (lambda: Softmax(0.0), lambda: Softmax(float("nan")), lambda: TopK(0)):
        with pytest.raises(AttnlabError, match=r"expected|at least"):
            make()
    with pytest.raises(AttnlabError, match="normaliser=3"):
        as_normaliser(3)
    configs: tuple[Any, ...] = (SelfAttentionConfig, PatchAttentionConfig, AttentionPoolingConfig)
    for config in configs:
        with pytest.raises(AttnlabError, match="softmix"):
            config(normaliser="softmix")


# Models


CONFIG = SelfAttentionConfig(
    embedding_dim=4, words=5, key_dim=2, value_dim=3, hidden=6, query_scale=2.0
)


@pytest.mark.parametrize("name", NAMES)
def test_self_attention_normalises_every_column(name):
    x = jnp.asarray(RNG.normal(size=(4, 5)))
    model = dataclasses.replace(CONFIG, normaliser=name).init(jax.random.key(0))
    expected = np.stack(
        [literal(name, column) for column in np.asarray(model.layer.logits(x)).T], axis=1
    )
    assert np.allclose(model.attention(x), expected, rtol=0, atol=1e-12)
    assert np.allclose(model.layer(x), model.layer.w_value @ x @ expected, rtol=0, atol=1e-12)
    stack = MultiLayerConfig(dataclasses.replace(CONFIG, normaliser=name), depth=2).init(
        jax.random.key(0)
    )
    assert np.allclose(stack.attentions(x).sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", LEARNING)
def test_the_gradient_of_a_stack_is_that_of_finite_differences(name):
    stack = MultiLayerConfig(dataclasses.replace(CONFIG, normaliser=name), depth=2).init(
        jax.random.key(3)
    )
    x = jnp.asarray(np.random.default_rng(5).normal(size=(6, 4, 5)))
    flat, unravel = ravel_pytree(stack)

    @jax.jit
    def loss(vector):
        return jnp.mean(jax.vmap(unravel(vector))(x) ** 2)

    direction = jnp.asarray(np.random.default_rng(6).normal(size=flat.shape))
    slope = float((loss(flat + 1e-6 * direction) - loss(flat - 1e-6 * direction)) / 2e-6)
    assert float(jax.jit(jax.grad(loss))(flat) @ direction) == pytest.approx(
        slope, rel=1e-6, abs=1e-8
    )


def test_softmax_by_any_name_is_the_same_bits():
    x = jnp.asarray(RNG.normal(size=(4, 5)))
    outputs = {
        float(dataclasses.replace(CONFIG, normaliser=n).init(jax.random.key(0))(x))
        for n in ("softmax", "softmax:1", Softmax(), jax.nn.softmax)
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("name", NAMES)
def test_patch_models_take_every_normaliser(name):
    grid, image = PatchGrid(8, 8, size=4, stride=2), jnp.asarray(RNG.normal(size=(8, 8)))
    pooling = AttentionPoolingConfig(grid, embedding_dim=6, normaliser=name).init(jax.random.key(0))
    embedded = np.asarray(pooling.embed(image))
    expected = literal(name, np.asarray(pooling.query) @ embedded / np.sqrt(6))
    assert np.allclose(pooling.attention(image), expected, rtol=0, atol=1e-12)
    assert np.allclose(
        pooling(image), pooling.head(jnp.asarray(embedded @ expected)), rtol=0, atol=1e-12
    )
    patches = PatchAttentionConfig(grid, embedding_dim=6, normaliser=name).init(jax.random.key(0))
    columns = np.asarray(patches.layer.logits(patches.embed(image))).T
    assert np.allclose(
        patches.attention(image), np.mean([literal(name, c) for c in columns], axis=0), atol=1e-12
    )


# Word attention on padded bags


def _shifted(logits):
    return logits - logits.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("corpus", cases.SENTENCES)
@pytest.mark.parametrize("name", NAMES)
def test_padded_bags_are_the_equation_word_by_word(corpus, name):
    model, data, norm = (
        cases.model(corpus, "linear", 1.5),
        cases.corpus(corpus),
        make_normaliser(name),
    )
    bags = Bags.of(data, 9)
    logits = jax.jit(lambda m: bag_logits(m, bags, normaliser=norm))(model)
    scores, nu = np.asarray(model.scores()), np.asarray(model.embeddings)
    rows = [
        [data.vocabulary.index(word) for word in sentence] for sentence in cases.SENTENCES[corpus]
    ]
    contexts = np.stack([literal(name, scores[row]) @ nu[row] for row in rows])
    expected = _shifted(contexts @ np.asarray(model.head.weight))  # pyright: ignore[reportAttributeAccessIssue]
    assert np.allclose(_shifted(logits), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["softmax", "sparsemax"])
def test_padded_bags_agree_with_the_other_ways_to_logits(name):
    model, data, norm = (
        cases.model("repeats", "two_layer", 1.5),
        cases.corpus("repeats"),
        make_normaliser(name),
    )
    bags = Bags.of(data)
    logits = bag_logits(model, bags, normaliser=norm)
    assert np.allclose(logits, literal_logits(model, data, normaliser=norm), rtol=0, atol=1e-12)
    weights = np.asarray(bag_weights(model, bags, normaliser=norm))
    assert np.allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert (weights[~np.asarray(bags.present)] == 0).all()
    if name == "softmax":
        assert np.allclose(
            logits, pooled_logits(model, Incidence.of(data, jnp.float64)), rtol=0, atol=1e-12
        )


def test_bags_hold_every_word_as_often_as_it_occurs():
    data = cases.corpus("repeats")
    bags = Bags.of(data)
    for n, sentence in enumerate(cases.SENTENCES["repeats"]):
        held = np.asarray(bags.words)[n][np.asarray(bags.present)[n]]
        assert sorted(data.vocabulary[w] for w in held) == sorted(sentence)
    assert np.array_equal(bags.labels, data.labels)
    with pytest.raises(AttnlabError, match="length=3: the longest sentence has 4 words"):
        Bags.of(data, 3)


@pytest.mark.parametrize("name", LEARNING)
def test_gradients_of_the_scores_sum_to_zero(name):
    data, norm = cases.corpus("repeats"), make_normaliser(name)
    config = WordAttentionConfig.for_corpus(
        data, head="linear", embedding_std=1.0, key_std=1.0, query_norm=1.0
    )
    model, bags = config.init(jax.random.key(1)), Bags.of(data)
    pull = jax.jit(jax.grad(lambda m: jnp.sum(jnp.sin(bag_logits(m, bags, normaliser=norm)))))(
        model
    ).keys
    assert np.abs(np.asarray(pull)).max() > 1e-3
    assert np.abs(np.asarray(pull).sum(axis=0)).max() <= 1e-14
