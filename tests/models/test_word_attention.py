import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import Corpus
from attnlab.models import (
    Incidence,
    LinearHead,
    WordAttentionConfig,
    _incidence,
    attention_of,
    attention_weights,
    cast,
    kernel,
    literal_logits,
    pool_fast,
    pool_tokens,
    pooled_logits,
)
from attnlab.models._pooling import Tokens
from attnlab.training import Frame, WordObjective

from . import cases

pytestmark = pytest.mark.slow

KERNELS = ["native", "xla"]
EVERY = [
    (name, head, spread, classes)
    for name in cases.SENTENCES
    for head in ("fixed", "linear", "two_layer")
    for spread in (1.0, 80.0, 400.0)
    for classes in ((2, 3) if head == "linear" else (3,))
]


@pytest.fixture(params=KERNELS)
def _kernel(request, monkeypatch):
    monkeypatch.setenv("ATTNLAB_KERNEL", request.param)


def close(a, b, tolerance=1e-12):
    a, b = np.asarray(a), np.asarray(b)
    scale = max(np.abs(b).max(), 1e-300)
    assert np.abs(a - b).max() <= tolerance * max(scale, 1.0), np.abs(a - b).max()


def log_probabilities(logits):
    return jax.nn.log_softmax(logits, axis=1)


def test_the_compiled_kernel_is_there():
    """Everything promised about speed rests on it; a machine without a compiler should know that it
    is slow.
    """
    assert kernel() == ("native", "the compiled kernel is installed")


_pooled = jax.jit(pooled_logits)


@jax.jit
def _evaluate(objective, frame):
    return objective.evaluate(frame, frame.initial(), None, context=True)


@pytest.mark.usefixtures("_kernel")
@pytest.mark.parametrize(("name", "head", "spread", "classes"), EVERY)
def test_pooled_equals_literal(name, head, spread, classes):
    corpus, model = cases.corpus(name, classes), cases.model(name, head, spread, classes)
    incidence = Incidence.of(corpus, "float64")
    close(
        log_probabilities(_pooled(model, incidence)),
        log_probabilities(literal_logits(model, corpus)),
    )


@pytest.mark.usefixtures("_kernel")
@pytest.mark.parametrize(("name", "head", "spread", "classes"), EVERY)
def test_training_gradient_equals_the_equation(name, head, spread, classes):
    corpus, model = cases.corpus(name, classes), cases.model(name, head, spread, classes)
    objective = WordObjective.of(corpus, jnp.dtype("float64"))
    loss, ds, dnu = cases.numpy_loss_and_gradients(model, corpus)
    frame = Frame.of(model, reduced=False)
    evaluation = _evaluate(objective, frame)
    close(evaluation.loss, loss)
    close(objective.loss_and_logits(frame, frame.initial())[0], loss)
    close(evaluation.gradient["values"]["embeddings"], dnu)
    close(evaluation.gradient["scores"]["keys"], np.outer(ds, model.query))
    # Σ_n a_n c_n·g_n = ∂L/∂s − ν·∂L/∂ν (docs/theory.md#a3), here from derivatives that know nothing
    # of it.
    close(evaluation.context_term, ds - np.sum(np.asarray(model.embeddings) * dnu, axis=1))
    if "head" in model.trained:
        literal = jax.grad(lambda m: _loss(literal_logits(m, corpus), corpus))(model)
        close(_flat(evaluation.gradient["values"]["head"]), _flat(literal.head))


def _loss(logits, corpus):
    return optax.softmax_cross_entropy_with_integer_labels(
        logits, jnp.asarray(corpus.labels)
    ).mean()


def _flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


@pytest.mark.usefixtures("_kernel")
@pytest.mark.parametrize("head", ["fixed", "two_layer"])
def test_gradient_agrees_with_finite_differences(head):
    corpus, model = cases.corpus("repeats"), cases.model("repeats", head, 1.0)
    incidence = Incidence.of(corpus, "float64")

    def loss(keys, embeddings):
        moved = eqx.tree_at(lambda m: (m.keys, m.embeddings), model, (keys, embeddings))
        return _loss(pooled_logits(moved, incidence), corpus)

    gradients = jax.grad(loss, argnums=(0, 1))(model.keys, model.embeddings)
    rng = np.random.default_rng(0)
    for part in range(2):
        direction = rng.normal(size=gradients[part].shape)
        at = [model.keys, model.embeddings]
        values = []
        for sign in (1, -1):
            moved = list(at)
            moved[part] = at[part] + sign * 1e-5 * direction
            values.append(float(loss(*moved)))
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(
            float(np.sum(gradients[part] * direction)), rel=1e-7
        )


@pytest.mark.usefixtures("_kernel")
def test_second_derivatives_agree_with_the_literal_model():
    corpus, model = cases.corpus("repeats"), cases.model("repeats", "linear", 1.0)
    incidence = Incidence.of(corpus, "float64")
    tangent = jax.tree.map(
        lambda x: jnp.cos(jnp.arange(x.size, dtype=x.dtype)).reshape(x.shape), model
    )

    def product(logits):
        return jax.jvp(jax.grad(lambda m: _loss(logits(m), corpus)), (model,), (tangent,))[1]

    fast = product(lambda m: pooled_logits(m, incidence))
    close(_flat(fast), _flat(product(lambda m: literal_logits(m, corpus))), 1e-11)
    reverse = jax.grad(
        lambda m: sum(
            jnp.sum(a * b)
            for a, b in zip(
                jax.tree.leaves(jax.grad(lambda k: _loss(pooled_logits(k, incidence), corpus))(m)),
                jax.tree.leaves(tangent),
                strict=True,
            )
        )
    )(model)
    close(_flat(reverse), _flat(fast), 1e-11)


@pytest.mark.usefixtures("_kernel")
def test_a_batch_of_models_equals_one_by_one():
    corpus = cases.corpus("repeats")
    incidence = Incidence.of(corpus, "float64")
    models = [cases.model("repeats", "two_layer", spread) for spread in (0.5, 1.0, 400.0)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)
    batch = jax.vmap(lambda m: pooled_logits(m, incidence))(stacked)
    for one, logits in zip(models, batch, strict=True):
        close(logits, literal_logits(one, corpus))


@pytest.mark.usefixtures("_kernel")
def test_float32_survives_any_spread():
    corpus = cases.corpus("one word")
    for spread in (30.0, 80.0, 1e4):
        model = cast(cases.model("one word", "fixed", spread), "float32")
        logits = pooled_logits(model, Incidence.of(corpus, "float32"))
        assert logits.dtype == jnp.float32
        close(log_probabilities(logits), log_probabilities(literal_logits(model, corpus)), 1e-5)


def test_fast_and_safe_pooling_are_the_same_function():
    corpus = cases.corpus("repeats")
    incidence = Incidence.of(corpus, "float64")
    scores, table = jnp.linspace(-3.0, 3.0, 5), jnp.eye(5)
    close(pool_fast(scores, table, incidence), pool_tokens(scores, table, Tokens.of(incidence)))
    e = jnp.exp(scores)
    close(incidence.pool(e, table)[0], pool_fast(scores, table, incidence))
    close(incidence.pool(e, table)[1], incidence.sentence_sums(e[:, None])[:, 0])


def test_attention_weights_sum_to_one_and_count_repeats():
    corpus, model = cases.corpus("repeats"), cases.model("repeats", "fixed", 1.0)
    weights = attention_weights(model, corpus)
    assert np.bincount(corpus.rows, weights=weights) == pytest.approx(np.ones(4))
    s = np.asarray(model.scores())
    expected = 2 * np.exp(s[0]) / (2 * np.exp(s[0]) + np.exp(s[1]))
    assert dict(attention_of(model, corpus, 0))["a"] == pytest.approx(expected)
    assert [w for w, _ in attention_of(model, corpus, 3)] == ["e", "b"]


def test_initial_scales_are_what_their_names_say():
    config = WordAttentionConfig(words=20_000, classes=4, embedding_std=0.1, key_std=0.2, key_dim=8)
    model = config.init(jax.random.key(0))
    assert float(model.embeddings.std()) == pytest.approx(0.1, rel=0.02)
    assert float(model.keys.std()) == pytest.approx(0.2, rel=0.02)
    assert isinstance(model.head, LinearHead)
    assert model.head.weight.diagonal().tolist() == [1.0] * 4
    wide = WordAttentionConfig(words=2, classes=4, key_dim=5000)
    queries = wide.init(jax.random.key(1)).query
    assert float(queries.std()) == pytest.approx(0.3, rel=0.05)
    linear = (
        WordAttentionConfig(words=5, classes=400, head="linear", embedding_dim=25)
        .init(jax.random.key(0))
        .head
    )
    assert isinstance(linear, LinearHead)
    assert 0.99 * 0.2 < float(jnp.abs(linear.weight).max()) <= 0.2
    assert float(linear.weight.std()) == pytest.approx(0.2 / 3**0.5, rel=0.02)


def test_a_seed_is_the_same_start_in_both_types():
    config = WordAttentionConfig(words=30, classes=2, head="two_layer", embedding_std=1.0)
    double, single = config.init(jax.random.key(3)), config.init(jax.random.key(3), "float32")
    close(_flat(single), _flat(double), 1e-6)
    assert {leaf.dtype for leaf in jax.tree.leaves(single)} == {jnp.dtype("float32")}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": "linaer"}, "expected 'fixed', 'linear'"),
        ({"embedding_std": -1.0}, "expected a finite number ≥ 0"),
        ({"embedding_dim": 0}, "at least 1"),
        ({"trained": ("embedings",)}, "'embedings' is not a part"),
    ],
)
def test_bad_settings_are_refused_in_words(settings, message):
    with pytest.raises(AttnlabError, match=message):
        WordAttentionConfig(words=5, classes=2, **settings)


def test_the_kernel_says_why_it_is_in_use(monkeypatch):
    monkeypatch.setenv("ATTNLAB_KERNEL", "xla")
    assert kernel() == ("xla", "forced by ATTNLAB_KERNEL=xla")
    monkeypatch.setenv("ATTNLAB_KERNEL", "")
    monkeypatch.setattr(_incidence, "_why_not_native", lambda: "the compiled kernel was not built")
    assert str(kernel()) == "xla: the compiled kernel was not built"
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert kernel().why == "JAX runs on 'gpu', and the compiled kernel only on the CPU"
    monkeypatch.setenv("ATTNLAB_KERNEL", "native")
    with pytest.raises(AttnlabError, match="ATTNLAB_KERNEL=native, but JAX runs on 'gpu'"):
        kernel()


@pytest.mark.usefixtures("_kernel")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 2, 3, 5, 7, 8, 11, 16, 19])
def test_sums_of_rows_equal_the_dense_product(columns, dtype):
    """Any number of columns, counts above one, a word in no sentence, one run and several."""
    rng = np.random.default_rng(columns)
    dense = rng.poisson(0.7, (12, 9))
    dense[:, 0], dense[:, 4] = 1, 0
    rows, words = np.nonzero(dense)
    repeats = dense[rows, words]
    corpus = Corpus.from_pairs(
        np.repeat(rows, repeats),
        np.repeat(words, repeats),
        np.arange(12) % 2,
        vocabulary=[f"w{i}" for i in range(9)],
        classes=("0", "1"),
    )
    incidence = Incidence.of(corpus, dtype)
    tables = jnp.asarray(rng.normal(size=(3, 9, columns)), dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    together = jax.vmap(incidence.sentence_sums)(tables)
    for table, batched in zip(tables, together, strict=True):
        alone = incidence.sentence_sums(table)
        close(alone, dense @ np.asarray(table, np.float64), tolerance)
        assert (alone == batched).all()
    back = incidence.word_sums(together[0])
    close(back, dense.T @ np.asarray(together[0], np.float64), tolerance)
    e = jnp.exp(tables[0, :, 0])
    weighted = np.asarray(e[:, None] * tables[1], np.float64)
    expected = (dense @ weighted) / (dense @ np.asarray(e, np.float64))[:, None]
    close(incidence.pool(e, tables[1])[0], expected, 10 * tolerance)


def test_an_unknown_kernel_is_refused(monkeypatch):
    monkeypatch.setenv("ATTNLAB_KERNEL", "gpu")
    with pytest.raises(AttnlabError, match="expected 'native' or 'xla'"):
        kernel()
