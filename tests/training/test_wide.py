"""Runs whose scores become too wide for the fast formulas go on in the guarded program, and lose
nothing.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.data import TopicTask
from attnlab.dynamics import SenTerms, identity_error
from attnlab.models import WordAttentionConfig, _pooling
from attnlab.training import (
    Attention,
    EarlyStopping,
    Every,
    GradientDescent,
    Loss,
    Norms,
    Scores,
    train,
)
from attnlab.training import _drive as drive

pytestmark = pytest.mark.slow

TASK = TopicTask(topics=3, topic_words=1, dictionary=40, noise_words=5)
CORPUS = TASK.sample(150, key=jax.random.key(1))
RECORD = (Loss(), Loss("test"), Scores(), Norms(), Attention(), SenTerms())
NAMES = ("loss", "loss_test", "score", "norm", "attention", "i1", "i2")


@pytest.fixture
def narrow(monkeypatch):
    """Call scores wide as soon as they spread by more than a half, and tell which programs ran."""
    jax.clear_caches()
    monkeypatch.setitem(_pooling._SPREAD_LIMIT, jnp.dtype("float64"), 0.5)
    seen = []

    def advance(rules, *args):
        seen.append(rules.guarded)
        return drive_advance(rules, *args)

    drive_advance = drive.advance
    monkeypatch.setattr(drive, "advance", advance)
    yield seen
    jax.clear_caches()


def spread(data) -> np.ndarray:
    return np.asarray(data.score.max("word") - data.score.min("word"))


def run(every: int = 7, **more):
    config = WordAttentionConfig.for_corpus(
        CORPUS, embedding_std=0.3, embedding_dim=6, key_dim=4, query_norm=1.0
    )
    settings = {
        "steps": 60,
        "optimizer": GradientDescent(0.5),
        "record": RECORD,
        "when": Every(every),
    }
    splits = {"test": CORPUS.subset(range(50))}
    return train(more.pop("config", config), CORPUS, splits=splits, **(settings | more))


EXPECTED: dict = {}


def expected(**more):
    key = repr(sorted(more.items()))
    if key not in EXPECTED:
        EXPECTED[key] = run(**more)
    return EXPECTED[key]


CASES = [
    {"batch_of_runs": 1, "every": 1},
    {"batch_of_runs": 3, "seeds": 5},
    {"batch_of_runs": 1, "batch_size": 25},
    {"batch_of_runs": 1, "stop": EarlyStopping("test", patience=3, min_delta=0.02), "every": 2},
    {
        "batch_of_runs": 3,
        "seeds": 3,
        "stop": EarlyStopping("test", patience=3, min_delta=0.02),
        "every": 2,
    },
]


@pytest.fixture(params=range(len(CASES)))
def pair(request):
    """One run under the true limit, and its settings."""
    case = CASES[request.param]
    return case, expected(**case)


def test_the_two_programs_join_without_a_seam(pair, narrow):
    case, plain = pair
    handed = run(**case)
    assert spread(plain.data).min() < 0.5 < np.nanmax(spread(plain.data))
    assert narrow[0] is False
    assert narrow[-1] is True
    assert np.array_equal(handed.data.status, plain.data.status)
    assert np.array_equal(handed.data.last_step, plain.data.last_step)
    for name in NAMES:
        np.testing.assert_allclose(handed.data[name], plain.data[name], rtol=1e-9, atol=1e-12)
    for seed in plain.models:
        np.testing.assert_allclose(
            handed.model(seed).embeddings, plain.model(seed).embeddings, rtol=1e-9, atol=1e-12
        )
    if "batch_size" not in case:
        assert float(identity_error(handed.data).max()) < 1e-9


def test_a_wide_run_leaves_its_neighbours_alone(narrow):
    """Seeds become wide at different steps; each has the same bits beside others as beside copies
    of itself.
    """
    together = run(batch_of_runs=3, seeds=3)
    wide_at = [int(np.argmax(row > 0.5)) for row in spread(together.data)]
    assert len(set(wide_at)) > 1 or spread(together.data).max() > 0.5
    for seed in range(3):
        alone = run(batch_of_runs=3, seeds=[seed])
        for name in NAMES:
            assert np.array_equal(alone.data[name][0], together.data[name].sel(seed=seed)), name
    assert {False, True} == set(narrow)


@pytest.mark.parametrize("batch_of_runs", [1, 2])
def test_a_run_that_starts_wide(batch_of_runs):
    """Scores that spread over thousands: against descent on the literal softmax."""
    config = WordAttentionConfig.for_corpus(
        CORPUS, embedding_std=0.3, key_std=400.0, query_norm=1.0
    )
    trained = run(
        config=config,
        batch_of_runs=batch_of_runs,
        seeds=2,
        steps=5,
        when=Every(5),
        optimizer=GradientDescent(0.5),
    )
    assert spread(trained.data).min() > 300
    assert trained.finished
    start = run(config=config, steps=0).model(0)
    model = jax.tree.map(jnp.asarray, start)
    for _ in range(5):
        gradient = jax.grad(_literal_loss)(model)
        model = eqx.tree_at(
            lambda m: (m.embeddings, m.keys),
            model,
            (model.embeddings - 0.5 * gradient.embeddings, model.keys - 0.5 * gradient.keys),
        )
    np.testing.assert_allclose(trained.model(0).embeddings, model.embeddings, rtol=1e-9, atol=1e-12)
    assert float(trained.data.loss.sel(seed=0, step=5)) == pytest.approx(
        float(_literal_loss(model)), rel=1e-9
    )


def _literal_loss(model):
    """Mean cross-entropy by a masked softmax over all words of the vocabulary."""
    counts = np.zeros((len(CORPUS), len(CORPUS.vocabulary)))
    np.add.at(counts, (CORPUS.rows, CORPUS.words), CORPUS.counts)
    scores = jnp.broadcast_to((model.keys @ model.query)[None, :], counts.shape)
    shifted = jnp.where(counts > 0, scores + np.log(np.maximum(counts, 1)), -jnp.inf)
    logits = jax.nn.softmax(shifted, axis=1) @ model.embeddings @ model.head.weight
    labels = jax.nn.one_hot(CORPUS.labels, logits.shape[1], dtype=logits.dtype)
    return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits, axis=1), axis=1))
