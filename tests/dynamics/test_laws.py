"""The thresholds of docs/theory.md#a3 and docs/theory.md#a4 on the reference task, and the controls
that must fail them.
"""

import jax
import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import TopicTask
from attnlab.dynamics import (
    Balance,
    QueryBalance,
    ScoreSum,
    SenTerms,
    Surroundings,
    balance_error,
    identity_error,
    order_in_step,
    query_balance_error,
    score_sum_error,
    sen_error,
    sen_norm,
)
from attnlab.models import WordAttentionConfig
from attnlab.training import Adam, Every, GradientDescent, Loss, Norms, Scores, train

pytestmark = pytest.mark.slow

TASK = TopicTask()
CORPUS = TASK.sample(4000, key=jax.random.key(0))
SMALL_TASK = TopicTask(topics=3, topic_words=1, dictionary=60, noise_words=6)
SMALL = SMALL_TASK.sample(300, key=jax.random.key(0))
PROBES = (Loss(), Scores(), Norms(), SenTerms(), Surroundings(), ScoreSum(), Balance())


@pytest.fixture(scope="module", params=["fixed", "linear", "two_layer"])
def reference(request):
    """One seed of the reference setting, 5000 steps of descent."""
    config = WordAttentionConfig.for_corpus(CORPUS, head=request.param)
    run = train(
        config, CORPUS, steps=5000, record=PROBES, when=Every(25), words=TASK.topic_word_ids
    )
    return request.param, run.data


def quantiles(errors):
    values = errors.values[np.isfinite(errors.values)]
    assert len(values) > 500
    return np.median(values), np.percentile(values, 95), values.max()


def test_the_score_norm_relation_holds(reference):
    head, data = reference
    if head != "two_layer":
        assert np.all(
            np.array(quantiles(sen_error(data, TASK.noise_words))) <= [0.004, 0.008, 0.015]
        )
    corrected = sen_error(data, TASK.noise_words, form="corrected").sel(step=slice(10, None))
    _, p95, worst = quantiles(corrected)
    assert p95 <= 0.005
    assert worst <= (0.04 if head == "two_layer" else 0.005)


def test_the_refined_relation_is_better_late(reference):
    _, data = reference
    late = data.isel(step=[0, -1])
    refined = float(sen_error(late, 20, form="refined").isel(step=-1).median())
    plain = float(sen_error(late, 20).isel(step=-1).median())
    assert refined < plain / 2


def test_the_relation_is_refuted_by_a_wrong_query(reference):
    _, data = reference
    wrong = data.assign(query_norm=1.2 * data.query_norm)
    assert quantiles(sen_error(wrong, TASK.noise_words))[0] > 0.02


def test_the_exact_identity_and_the_score_sum(reference):
    _, data = reference
    assert float(identity_error(data).max()) <= 1e-12
    assert float(score_sum_error(data).max()) <= 1e-13


def test_the_balance_of_embeddings_and_head(reference):
    head, data = reference
    drift = float(balance_error(data)[0])
    if head == "fixed":
        assert drift > 0.5  # the control: nothing balances a frozen head
    else:
        assert drift <= (3e-4 if head == "linear" else 1e-3)


def test_the_relation_from_a_large_start_needs_the_initial_norm():
    config = WordAttentionConfig.for_corpus(CORPUS, embedding_std=0.1)
    run = train(
        config,
        CORPUS,
        steps=3000,
        record=(Scores(), Norms()),
        when=Every(25),
        words=TASK.topic_word_ids,
    )
    median, p95, _ = quantiles(sen_error(run.data, TASK.noise_words))
    assert median <= 0.006
    assert p95 <= 0.02
    without = sen_norm(run.data.score, others=TASK.noise_words, query_norm=run.data.query_norm)
    measured = run.data.query_norm * run.data.norm
    error = (abs(without - measured) / measured).where(run.data.score > 0.05)
    assert quantiles(error)[0] > 0.006


def small_run(steps, rule, probes, head="linear", **settings):
    config = WordAttentionConfig.for_corpus(SMALL, head=head, query_norm=0.9, **settings)
    words = SMALL_TASK.topic_word_ids
    return train(
        config, SMALL, steps=steps, optimizer=rule, record=probes, when=Every(10), words=words
    ).data


@pytest.mark.parametrize("head", ["linear", "two_layer"])
def test_the_drift_of_the_balance_is_linear_in_the_step(head):
    sizes = np.array([0.1, 0.05, 0.025])
    drifts = [
        small_run(round(50 / s), GradientDescent(s), (Balance(),), head).balance_drift[0, -1]
        for s in sizes
    ]
    assert 0.9 < order_in_step(sizes, np.array(drifts)) < 1.1


def test_the_laws_of_a_trained_query():
    sizes = np.array([0.1, 0.05, 0.025])
    parts = ("embeddings", "keys", "query")
    runs = [
        small_run(round(100 / s), GradientDescent(s), (QueryBalance(),), "fixed", trained=parts)
        for s in sizes
    ]
    drifts = [float(query_balance_error(run)[0]) for run in runs]
    assert drifts[0] > 1e-6  # the query has really moved
    assert 0.9 < order_in_step(sizes, np.array(drifts)) < 1.1
    for run in runs:
        assert float(run.query_turn.max()) <= 1e-12
        assert float(run.key_sum.max()) <= 1e-13
    adam = small_run(200, Adam(0.01), (QueryBalance(),), "fixed", trained=parts)
    assert float(adam.key_sum.max()) > 1e-3
    assert float(query_balance_error(adam)[0]) > 0.05


def test_what_each_optimiser_keeps():
    probes = (Scores(), Norms(), SenTerms(), ScoreSum())
    descent, momentum, decay, adam = (
        small_run(400, rule, probes)
        for rule in (
            GradientDescent(0.1),
            GradientDescent(0.02, momentum=0.9),
            GradientDescent(0.1, weight_decay=1e-3),
            Adam(0.01),
        )
    )
    for run in (descent, momentum, decay):
        assert float(score_sum_error(run).max()) <= 1e-13
    assert float(score_sum_error(adam).max()) > 0.1
    assert float(identity_error(descent).max()) <= 1e-12
    for run in (momentum, decay, adam):
        assert float(identity_error(run).max()) > 1e-4
    config = WordAttentionConfig.for_corpus(SMALL, head="linear", query_norm=0.9)
    sgd = train(
        config, SMALL, steps=400, batch_size=30, record=probes, when=Every(10), words=[0, 1, 2]
    ).data
    assert float(identity_error(sgd).max()) <= 1e-12
    assert float(score_sum_error(sgd).max()) <= 1e-13


def test_surroundings_against_a_literal_count():
    run = train(
        WordAttentionConfig.for_corpus(SMALL, embedding_std=0.5),
        SMALL,
        steps=20,
        record=(Surroundings(),),
    )
    model, row = run.model(0), run.data.isel(seed=0, step=-1)
    s, nu = np.asarray(model.keys @ model.query), np.asarray(model.embeddings)
    for w in (0, 10, 40):
        masses, others = [], []
        for n in range(len(SMALL)):
            span = slice(SMALL.offsets[n], SMALL.offsets[n + 1])
            words, counts = SMALL.words[span], SMALL.counts[span]
            if w in words:
                e = np.where(words == w, 0, counts * np.exp(s[words]))
                masses.append(e.sum())
                others.append(e @ nu[words] / e.sum())
        assert float(row.others_mass[w]) == pytest.approx(np.mean(masses), rel=1e-10)
        assert float(row.offset_norm[w]) == pytest.approx(
            np.linalg.norm(nu[w] - np.mean(others, 0)), rel=1e-10
        )


def test_a_missing_record_is_named():
    run = train(WordAttentionConfig.for_corpus(SMALL), SMALL, steps=2)
    with pytest.raises(AttnlabError, match="no 'i1'"):
        identity_error(run.data)
