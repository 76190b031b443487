import os
import signal
import threading
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, TopicTask
from attnlab.dynamics import Balance, QueryBalance, SenTerms
from attnlab.models import WordAttention, WordAttentionConfig, literal_logits
from attnlab.training import (
    Accuracy,
    Adam,
    At,
    Attention,
    EarlyStopping,
    Every,
    GradientDescent,
    GradientFlow,
    GradientNorm,
    Logarithmic,
    Loss,
    Measure,
    Norms,
    Scores,
    train,
)
from attnlab.training._problem import tall_product

pytestmark = pytest.mark.slow

TASK = TopicTask(topics=3, topic_words=1, dictionary=40, noise_words=5)
CORPUS = TASK.sample(150, key=jax.random.key(1))
HEADS = ["fixed", "linear", "two_layer"]


def config(head: Any = "fixed", **more) -> WordAttentionConfig:
    settings = {
        "embedding_std": 0.3,
        "embedding_dim": 6,
        "key_dim": 4,
        "query_norm": 1.0,
        "hidden": 5,
    }
    return WordAttentionConfig.for_corpus(CORPUS, head=head, **(settings | more))


def flat(model: WordAttention) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)])


def relative(a, b) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max())


def literal_loss(model: WordAttention, corpus: Corpus = CORPUS) -> float:
    logits = literal_logits(model, corpus)
    return float(
        optax.softmax_cross_entropy_with_integer_labels(logits, jnp.asarray(corpus.labels)).mean()
    )


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_reduced_coordinates_are_exact(head, momentum):
    """Descent with a frozen query and a fixed head equals descent with explicit keys and
    embeddings.
    """
    rule = GradientDescent(0.5, momentum=momentum)
    record = [Loss(), Scores(), Norms(), GradientNorm()]
    runs = [
        train(
            config(head, key_std=0.2),
            CORPUS,
            steps=60,
            optimizer=rule,
            record=record,
            coordinates=kind,
        )
        for kind in ("auto", "explicit")
    ]
    assert [r.data.attrs["coordinates"] for r in runs] == ["reduced", "explicit"]
    for name in ("loss", "score", "norm", "gradient_norm"):
        assert relative(runs[0].data[name], runs[1].data[name]) < 1e-12
    assert relative(flat(runs[0].model(0)), flat(runs[1].model(0))) < 1e-12


def test_two_classes_need_one_logit():
    """The one-logit form moves as descent on both columns does: against autodiff of the literal
    model.
    """
    corpus = TopicTask(topics=2, topic_words=1, dictionary=5, noise_words=2).sample(
        8, key=jax.random.key(0)
    )
    settings = WordAttentionConfig.for_corpus(
        corpus, head="linear", embedding_std=0.5, embedding_dim=3, key_dim=2, query_norm=1.0
    )
    run = train(settings, corpus, steps=3, optimizer=GradientDescent(0.7), when=Every(1))
    start = train(settings, corpus, steps=0).model(0)
    model = jax.tree.map(jnp.asarray, start)

    def loss(m):
        labels = jnp.asarray(corpus.labels)
        return optax.softmax_cross_entropy_with_integer_labels(
            literal_logits(m, corpus), labels
        ).mean()

    for _ in range(3):
        gradient = jax.grad(loss)(model)
        gradient = eqx.tree_at(lambda m: m.query, gradient, jnp.zeros_like(gradient.query))
        model = jax.tree.map(lambda p, g: p - 0.7 * g, model, gradient)
    assert relative(flat(run.model(0)), flat(model)) < 1e-12


@pytest.mark.parametrize("head", HEADS)
def test_the_recorded_loss_is_the_loss_of_the_recorded_parameters(head):
    """Stop a run at each recorded step: the literal loss of the model there is the row's loss."""
    whole = train(config(head), CORPUS, steps=12, when=At((5,)), record=[Loss(), Norms()])
    for step in (0, 5, 12):
        part = train(config(head), CORPUS, steps=step)
        row = whole.data.sel(step=step)
        assert float(row.loss[0]) == pytest.approx(literal_loss(part.model(0)), rel=1e-12)
        norms = np.linalg.norm(part.model(0).embeddings, axis=1)
        assert relative(row.norm[0], norms) < 1e-12


@pytest.mark.parametrize("batch_of_runs", [1, 3])
def test_a_run_alone_equals_the_run_in_the_batch_bit_for_bit(batch_of_runs):
    probes = [Loss(), Scores(), Norms()]
    batch = train(
        config("two_layer"), CORPUS, steps=40, seeds=5, batch_of_runs=batch_of_runs, record=probes
    )
    for seed in (0, 3, 4):
        alone = train(
            config("two_layer"),
            CORPUS,
            steps=40,
            seeds=[seed],
            batch_of_runs=batch_of_runs,
            record=probes,
        )
        for name in ("loss", "score", "norm"):
            assert np.array_equal(alone.data[name][0], batch.data[name].sel(seed=seed))
        assert np.array_equal(flat(alone.model(seed)), flat(batch.model(seed)))


def test_widths_agree_to_rounding():
    runs = [
        train(config("linear"), CORPUS, steps=100, seeds=4, batch_of_runs=w).data for w in (1, 2, 4)
    ]
    for other in runs[1:]:
        assert relative(other.score, runs[0].score) < 1e-12
        assert relative(other.loss, runs[0].loss) < 1e-12


def test_the_width_can_be_measured_and_is_stored():
    run = train(config(), CORPUS, steps=5, seeds=4, batch_of_runs="auto")
    assert run.data.attrs["batch_of_runs"] in (1, 2, 4)
    assert "1:" in run.data.attrs["batch_of_runs_cost"]


def test_seeds_differ_and_the_root_seed_matters():
    a = train(config(), CORPUS, steps=5, seeds=2).data.score
    b = train(config(), CORPUS, steps=5, seeds=2, root_seed=1).data.score
    assert not np.array_equal(a[0], a[1])
    assert not np.array_equal(a[0], b[0])


def test_schedules_and_dimensions():
    for when, expected in [
        (Every(4), [0, 4, 8, 10]),
        (Logarithmic(3), [0, 1, 3, 10]),
        (At((7,)), [0, 7, 10]),
    ]:
        data = train(config(), CORPUS, steps=10, seeds=2, when=when, words=["topic1.word0", 0]).data
        assert data.step.values.tolist() == expected
        assert data.word.values.tolist() == ["topic1.word0", "topic0.word0"]
        assert data.score.dims == ("seed", "step", "word")
        assert not np.isnan(data.loss).any()
        assert data.time.values == pytest.approx(np.asarray(expected) * 0.1)
    dense = train(config(), CORPUS, steps=10, when=Every(1)).data
    sparse = train(config(), CORPUS, steps=10, when=At((3, 7))).data
    assert np.array_equal(dense.score.sel(step=[0, 3, 7, 10]), sparse.score)


def test_probes_measure_what_they_say():
    test = TASK.sample(60, key=jax.random.key(2))
    record = [
        Attention(),
        Accuracy(),
        Accuracy("test"),
        Loss("test"),
        GradientNorm(),
        Measure("peak", _largest_key),
    ]
    run = train(
        config("linear"), CORPUS, steps=30, when=Every(30), record=record, splits={"test": test}
    )
    model, row = run.model(0), run.data.isel(seed=0, step=-1)
    for corpus, suffix in ((CORPUS, ""), (test, "_test")):
        right = np.argmax(np.asarray(literal_logits(model, corpus)), axis=1) == corpus.labels
        assert float(row[f"accuracy{suffix}"]) == pytest.approx(right.mean())
    assert float(row.loss_test) == pytest.approx(literal_loss(model, test), rel=1e-12)
    scores = np.asarray(model.keys @ model.query)
    mean = np.zeros(len(CORPUS.vocabulary))
    for n in range(len(CORPUS)):
        span = slice(CORPUS.offsets[n], CORPUS.offsets[n + 1])
        e = CORPUS.counts[span] * np.exp(scores[CORPUS.words[span]])
        mean[CORPUS.words[span]] += e / e.sum()
    assert relative(row.attention, mean / CORPUS.sentence_frequency) < 1e-12
    gradient = jax.grad(lambda m: _traced_loss(m))(jax.tree.map(jnp.asarray, model))
    squares = [jnp.sum(g**2) for g in (gradient.keys, gradient.embeddings, gradient.head.weight)]
    assert float(row.gradient_norm) == pytest.approx(float(jnp.sqrt(sum(squares))), rel=1e-10)
    assert float(row.peak) == pytest.approx(np.abs(model.keys).max())


def _largest_key(model):
    return jnp.max(jnp.abs(model.keys))


def _traced_loss(model):
    return optax.softmax_cross_entropy_with_integer_labels(
        literal_logits(model, CORPUS), jnp.asarray(CORPUS.labels)
    ).mean()


def test_every_part_can_be_frozen():
    start = train(config("linear", key_std=0.1), CORPUS, steps=0).model(0)
    parts = {"embeddings": "embeddings", "keys": "keys", "query": "query", "head": "head.weight"}
    for chosen in parts:
        model = train(config("linear", key_std=0.1, trained=(chosen,)), CORPUS, steps=3).model(0)
        for part in parts:
            before, after = (_part(m, part) for m in (start, model))
            assert np.array_equal(before, after) == (part != chosen), (chosen, part)


def _part(model, name):
    return model.head.weight if name == "head" else getattr(model, name)


def test_any_optax_optimiser_and_adam():
    plain = train(config("linear"), CORPUS, steps=20, optimizer=optax.adam(1e-2)).data
    ours = train(config("linear"), CORPUS, steps=20, optimizer=Adam(1e-2)).data
    assert np.array_equal(plain.loss, ours.loss)
    assert plain.attrs["coordinates"] == "explicit"
    decayed = train(
        config(), CORPUS, steps=20, optimizer=GradientDescent(0.1, weight_decay=0.5)
    ).data
    free = train(config(), CORPUS, steps=20, optimizer=GradientDescent(0.1)).data
    assert float(decayed.norm[0, -1].sum()) < float(free.norm[0, -1].sum())


def test_minibatches_cover_an_epoch_and_average_to_the_full_gradient():
    """One epoch of very small steps moves as far as one full-batch step of the summed size."""
    size = 1e-6
    batches = train(
        config("linear"), CORPUS, steps=6, batch_size=25, optimizer=GradientDescent(size)
    ).model(0)
    full = train(config("linear"), CORPUS, steps=1, optimizer=GradientDescent(6 * size)).model(0)
    start = flat(train(config("linear"), CORPUS, steps=0).model(0))
    assert relative(flat(batches) - start, flat(full) - start) < 1e-4
    again = train(
        config("linear"), CORPUS, steps=6, batch_size=25, optimizer=GradientDescent(size), seeds=3
    )
    assert np.array_equal(flat(again.model(0)), flat(batches))


def test_early_stopping_restores_the_best_parameters():
    noise = np.random.default_rng(0).integers(0, 3, 40).astype(np.int32)
    valid = CORPUS.subset(np.arange(40))
    valid = Corpus(valid.offsets, valid.words, valid.counts, noise, valid.vocabulary, valid.classes)
    stop = EarlyStopping("valid", patience=3)
    run = train(
        config("linear"),
        CORPUS,
        steps=3000,
        optimizer=GradientDescent(1.0),
        when=Every(5),
        stop=stop,
        splits={"valid": valid},
    )
    data = run.data.isel(seed=0)
    assert str(data.status.values) == "stopped early"
    best = int(data.best_step)
    curve = data.loss_valid.dropna("step")
    assert best == int(curve.step[int(np.argmin(curve.values))])
    assert int(data.last_step) == best + 15
    assert literal_loss(run.model(0), valid) == pytest.approx(float(curve.min()), rel=1e-12)
    assert np.isnan(data.loss.sel(step=slice(best + 16, None))).all()


@pytest.mark.parametrize("batch_of_runs", [1, 2])
def test_a_run_that_blows_up_ends_alone(batch_of_runs):
    """Seed 1 starts with an infinite embedding; its neighbour goes on as if it were not there."""

    def init(key):
        model = config("linear").init(key)
        bad = jnp.array_equal(jax.random.key_data(key), jax.random.key_data(_model_key(1)))
        return eqx.tree_at(
            lambda m: m.embeddings, model, model.embeddings * jnp.where(bad, 1e200, 1.0)
        )

    run = train(init, CORPUS, steps=10, seeds=2, batch_of_runs=batch_of_runs, when=Every(2))
    assert run.data.status.values.tolist() == ["finished", "non-finite"]
    assert "no longer finite at step" in str(run.data.reason.values[1])
    assert np.isnan(run.data.loss[1, -1])
    alone = train(init, CORPUS, steps=10, seeds=[0], batch_of_runs=batch_of_runs, when=Every(2))
    assert np.array_equal(alone.data.loss[0], run.data.loss[0])
    assert not run.finished


def _model_key(seed):
    return jax.random.split(jax.random.fold_in(jax.random.key(0), seed))[0]


def test_ctrl_c_returns_what_was_recorded():
    warm = train(
        config(), CORPUS, steps=10, when=Every(50_000), words=[0]
    )  # compiled now, so that the steps begin at once
    assert warm.finished
    threading.Timer(3.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    run = train(config(), CORPUS, steps=100_000_000, seeds=3, when=Every(50_000), words=[0])
    assert time.monotonic() - begun < 30
    assert run.data.status.values.tolist() == ["interrupted", "not started", "not started"]
    reached = int(run.data.last_step[0])
    assert 0 < reached < 100_000_000
    seen = run.data.loss[0].sel(step=slice(0, reached))
    assert not np.isnan(seen).any()
    assert np.isnan(run.data.loss[0].sel(step=slice(reached + 1, None))).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_flow_is_the_limit_of_descent_with_order_one():
    flow = train(
        config("linear"),
        CORPUS,
        steps=10,
        optimizer=GradientFlow(1.0, rtol=1e-10, atol=1e-12),
        when=Every(10),
    )
    sizes = np.array([0.2, 0.1, 0.05, 0.025])
    errors, run = [], flow
    for size in sizes:
        run = train(
            config("linear"),
            CORPUS,
            steps=round(10 / size),
            optimizer=GradientDescent(size),
            when=At(()),
        )
        errors.append(np.abs(run.data.score[0, -1] - flow.data.score[0, -1]).max())
    order = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert 0.9 < order < 1.1
    assert run.data.time[-1] == flow.data.time[-1]
    assert float(flow.data.gradient_evaluations[0]) > 6


def test_flow_records_rows_like_descent():
    flow = train(
        config(), CORPUS, steps=20, optimizer=GradientFlow(0.1), when=Every(5), seeds=2
    ).data
    assert flow.step.values.tolist() == [0, 5, 10, 15, 20]
    assert flow.status.values.tolist() == ["finished"] * 2
    descent = train(config(), CORPUS, steps=20, when=Every(5), seeds=2).data
    assert relative(flow.loss, descent.loss) < 0.02
    assert np.array_equal(flow.score[:, 0], descent.score[:, 0])


def test_float32_and_float64_tell_the_same_story():
    single = train(config("linear"), CORPUS, steps=50, dtype="float32")
    double = train(config("linear"), CORPUS, steps=50)
    assert single.data.score.dtype == np.float32
    assert single.model(0).embeddings.dtype == np.float32
    assert relative(single.data.score, double.data.score) < 1e-4


def test_a_head_of_ones_own():
    class Tanh(eqx.Module):
        weight: jax.Array

        def __call__(self, context):
            return jnp.tanh(context) @ self.weight

    settings = config(
        lambda key, d, classes: Tanh(jax.random.normal(key, (d, classes), jnp.float64))
    )
    run = train(
        settings, CORPUS, steps=400, optimizer=GradientDescent(0.5), record=[Loss(), Accuracy()]
    )
    assert float(run.data.loss[0, -1]) == pytest.approx(literal_loss(run.model(0)), rel=1e-12)
    assert float(run.data.loss[0, -1]) < 0.5 * float(run.data.loss[0, 0])


@pytest.mark.parametrize("batch_of_runs", [1, 2])
@pytest.mark.parametrize("kind", ["module", "function"])
def test_heads_that_hold_functions(kind, batch_of_runs):
    def make(key, d, classes):
        if kind == "function":
            return _three_tanhs
        return eqx.nn.MLP(
            d, classes, width_size=4, depth=2, activation=jax.nn.tanh, key=key, dtype=jnp.float64
        )

    run = train(config(make), CORPUS, steps=20, seeds=2, batch_of_runs=batch_of_runs)
    for seed in (0, 1):
        assert float(run.data.loss.sel(seed=seed, step=20)) == pytest.approx(
            literal_loss(run.model(seed)), rel=1e-12
        )


def _three_tanhs(context):
    return jnp.tanh(context)[:3]


def test_functions_made_anew_for_each_seed_cannot_share_a_batch():
    with pytest.raises(AttnlabError, match="or train with batch_of_runs=1"):
        train(
            config(lambda key, d, classes: lambda context: context[:classes]),
            CORPUS,
            steps=1,
            seeds=2,
            batch_of_runs=2,
        )


def test_the_flow_remembers_its_start():
    """A drift is measured against the start of the run: small under the flow, and not exactly zero."""
    probes = [Balance(), QueryBalance()]
    parts = ("embeddings", "keys", "query", "head")
    rules = (GradientFlow(0.5), GradientDescent(0.5))
    flow, descent = (
        train(
            config("linear", trained=parts),
            CORPUS,
            steps=100,
            optimizer=rule,
            record=probes,
            when=Every(50),
        ).data
        for rule in rules
    )
    for name in ("balance_drift", "query_balance_drift"):
        last = float(flow[name][0, -1])
        assert 0 < last < 1e-3 * float(descent[name][0, -1])
    assert float(flow.query_norm[0]) == float(descent.query_norm[0]) == pytest.approx(1.0)


def test_rows_do_not_depend_on_neighbours():
    """Seed 1 has scores so wide that it needs the slow path; seed 0 beside it records the bits it
    has beside a copy.
    """

    def init(key):
        wide = jnp.array_equal(jax.random.key_data(key), jax.random.key_data(_model_key(1)))
        model = config("linear", key_std=0.2).init(key)
        return eqx.tree_at(lambda m: m.keys, model, model.keys * jnp.where(wide, 5000.0, 1.0))

    record = [Loss(), Loss("test"), Accuracy("test"), Attention(), Scores()]
    more = {
        "steps": 10,
        "batch_of_runs": 2,
        "record": record,
        "splits": {"test": CORPUS.subset(range(50))},
    }
    beside = train(init, CORPUS, seeds=2, **more).data.sel(seed=0)
    alone = train(init, CORPUS, seeds=[0], **more).data.sel(seed=0)
    for name in ("loss", "loss_test", "accuracy_test", "attention", "score"):
        assert np.array_equal(beside[name], alone[name]), name


def test_a_sweeps_own_ctrl_c_is_left_alone():
    """Under somebody else's handler the signal reaches that handler, and the run goes on to its
    end.
    """
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    try:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        run = train(config(), CORPUS, steps=60_000, when=Every(20_000), words=[0])
        time.sleep(0.6)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]
    assert run.finished


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (WordAttentionConfig(words=10, classes=3), "embeddings of 10 words but the corpus has 43"),
        (WordAttentionConfig(words=43, classes=2), r"shape \(2,\); expected \(3,\)"),
        (lambda key: "model", "init returned str"),
    ],
)
def test_a_model_that_does_not_fit_is_refused(init, message):
    with pytest.raises(AttnlabError, match=message):
        train(init, CORPUS, steps=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Adam(-1.0), "step_size=-1.0: expected a number > 0"),
        (lambda: EarlyStopping(patience=0), "patience=0: expected at least 1"),
        (lambda: config(query_norm=-1.0), "needs both to be positive"),
        (lambda: GradientDescent(0.1, momentum=1.0), "momentum < 1"),
        (lambda: Every(0), "≥ 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, message):
    with pytest.raises(AttnlabError, match=message):
        make()


OTHER = TopicTask(topics=3, topic_words=1, dictionary=41, noise_words=5).sample(
    20, key=jax.random.key(3)
)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": -1}, "steps=-1"),
        ({"splits": {"test": OTHER}}, "the split 'test' has 44 words"),
        ({"optimizer": optax.adam(0.1), "record": [SenTerms()]}, "SenTerms needs the step size"),
        ({"seeds": []}, "at least one run"),
        ({"seeds": [1, 1]}, "distinct"),
        ({"batch_size": 151}, "1 to 150"),
        ({"optimizer": "adam"}, "expected GradientDescent"),
        ({"stop": EarlyStopping("valid")}, "'valid'; expected one of"),
        ({"record": [Loss(), Loss()]}, "two probes record the name 'loss'"),
        ({"record": [Loss("dev")]}, "no split 'dev'"),
        ({"words": ["zebra"]}, "'zebra' is not in the vocabulary"),
        ({"optimizer": GradientFlow(), "batch_size": 10}, "a gradient flow has no steps"),
        ({"steps": 10_000_000, "when": Every(1), "seeds": 16}, "GiB of memory"),
        ({"when": At((50,))}, "step 50: expected steps from 0 to 5"),
    ],
)
def test_mistakes_are_refused_in_words(settings, message):
    with pytest.raises(AttnlabError, match=message):
        train(config(), CORPUS, **({"steps": 5} | settings))


@pytest.mark.parametrize("rows", [64, 66, 5])
def test_a_tall_product_and_its_derivatives_are_those_of_the_plain_one(rows):
    draw = np.random.default_rng(0)
    tall, small, weights = (
        jnp.asarray(draw.normal(size=shape), jnp.float32)
        for shape in ((rows, 10), (10, 4), (rows, 4))
    )

    def found(product):
        def cost(left, right):
            return jnp.sum(weights * jnp.tanh(product(left, right)))

        return jax.value_and_grad(cost, argnums=(0, 1))(tall, small)

    fast, plain = found(tall_product), found(jnp.matmul)
    for one, other in zip(jax.tree.leaves(fast), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
