"""Mean against attention pooling: the padded model against the equation, nested and paired
sentences, small curves.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.data import Corpus, TopicTask
from attnlab.lab import along
from attnlab.models import (
    LinearHead,
    WordAttentionConfig,
    attention_weights,
    literal_logits,
    moving_parts,
)
from attnlab.papers.liu2021 import pooling_runs as pooling
from attnlab.papers.liu2021.pooling_runs import bags, fit_pooling, pool_curve
from attnlab.papers.liu2021.pooling_settings import STUDENTS, PoolingSettings
from attnlab.papers.liu2021.pooling_sweeps import UnderDescent, topic_pooling
from attnlab.papers.liu2021.topic_pooling import claim
from attnlab.sweeps import RunContext
from attnlab.training import Recipe

_TOKENS = [["a", "b", "b"], ["c"], ["d", "a", "e", "e", "e"], ["b", "c", "d"]]
_CORPUS = Corpus.from_tokens(_TOKENS, labels=[0, 1, 2, 1])
_SMALL = PoolingSettings(
    sizes=(8, 64),
    sentences=64,
    steps=150,
    batch_size=16,
    step_sizes=(0.1,),
    weight_decays=(0.0, 0.1),
    valid_sentences=60,
    test_sentences=200,
    topics=2,
    topic_words=1,
    dictionary=200,
    noise_words=8,
    embedding_dim=3,
)


def _model(keys: bool):
    config = WordAttentionConfig.for_corpus(
        _CORPUS,
        head="linear",
        embedding_dim=3,
        embedding_std=1.0,
        key_std=float(keys),
        key_dim=1,
        query_norm=1.0,
        trained=("embeddings", "keys", "head") if keys else ("embeddings", "head"),
    )
    return config.init(jax.random.key(0))


def _answers(model, length: int = 6):
    given = bags(_CORPUS, length, np.array([1, 3]), "float64")
    return given, jax.vmap(pooling._pooled_answer, (None, 0))(model, given["x"])


def test_mean_pooling_is_the_mean_word_by_word():
    model = _model(keys=False)
    assert isinstance(model.head, LinearHead)
    embeddings, weight = np.asarray(model.embeddings), np.asarray(model.head.weight)
    expected = []
    for tokens in _TOKENS:
        total = np.zeros(3)
        for token in tokens:
            total += embeddings[_CORPUS.vocabulary.index(token)]
        expected.append(total / len(tokens) @ weight)
    np.testing.assert_allclose(_answers(model)[1], np.stack(expected), rtol=1e-12)


def test_attention_pooling_is_the_equation_and_padding_is_no_word():
    model = _model(keys=True)
    given, logits = _answers(model)
    np.testing.assert_allclose(logits, literal_logits(model, _CORPUS), rtol=1e-12)
    np.testing.assert_allclose(logits, _answers(model, length=40)[1], rtol=1e-12)
    found = pooling._attentive_measure(model, {"valid": given, "test": given})
    entries = attention_weights(model, _CORPUS)
    assert float(found["attention"]) == pytest.approx(
        entries[np.isin(_CORPUS.words, [1, 3])].sum() / len(_CORPUS)
    )
    right = np.asarray(literal_logits(model, _CORPUS)).argmax(1) == _CORPUS.labels
    assert float(found["accuracy"]) == pytest.approx(right.mean())


def test_mean_pooling_leaves_keys_and_query_alone():
    moving = moving_parts(_model(keys=False))
    assert (moving.embeddings, moving.keys, moving.query, moving.head.weight) == (
        True,
        False,
        False,
        True,
    )
    assert moving_parts(_model(keys=True)).keys is True


def test_counts_are_those_of_the_given_words():
    given = pooling._counts(_CORPUS, np.array([4, 1]), "float64")
    assert given["x"].tolist() == [[tokens.count("e"), tokens.count("b")] for tokens in _TOKENS]


def test_students_of_a_seed_see_the_same_nested_sentences(monkeypatch):
    seen = {}

    def look(start, loss, measure, data, checks, *, sizes, key, **rest):
        seen[student, tuple(sizes)] = data, checks, key
        raise InterruptedError

    monkeypatch.setattr(pooling, "fit_grid", look)
    changes = [
        ("mean-pooling", (8, 64)),
        ("attention-pooling", (8, 64)),
        ("attention-pooling", (4, 8)),
    ]
    for student, sizes in [*changes, ("topic-counts", (8, 64))]:
        with pytest.raises(InterruptedError):
            fit_pooling(
                replace(_SMALL, student=student, sizes=sizes, seed=3), RunContext(0, 0, "0" * 16)
            )
    data, checks, key = seen["mean-pooling", (8, 64)]
    for (_, sizes), (other, other_checks, other_key) in seen.items():
        assert np.array_equal(other["y"], data["y"][: max(sizes)])
        assert np.array_equal(other_checks["test"]["y"], checks["test"]["y"])
        assert jnp.array_equal(jax.random.key_data(other_key), jax.random.key_data(key))
    for pair in changes:
        assert np.array_equal(seen[pair][0]["x"]["words"], data["x"]["words"][: max(pair[1])])


def test_attention_needs_fewer_sentences_but_not_fewer_than_counts_of_the_topic_words():
    context = RunContext(7, 0, "0" * 16)
    found = {
        student: fit_pooling(replace(_SMALL, student=student), context) for student in STUDENTS
    }
    for name in ("accuracy", "valid_loss", "train_loss", "settling", "step_size", "weight_decay"):
        assert all(curve[name].dims == ("size",) for curve in found.values())
    mean, attention, counts = (float(found[student].accuracy[1]) for student in STUDENTS)
    assert mean < 0.9 < attention
    assert counts == 1.0
    assert float(found["attention-pooling"].attention[1]) > 2 / 9
    assert "attention" not in found["mean-pooling"]


def test_what_cannot_be_measured_is_refused():
    key, task = jax.random.key(0), TopicTask(topics=2, dictionary=20, noise_words=2)
    corpus = task.sample(9, key=key)
    parts = (corpus, corpus, corpus)
    with pytest.raises(AttnlabError, match="from 1 to 9"):
        pool_curve(*parts, [4, 10], student="mean-pooling", key=key)
    with pytest.raises(AttnlabError, match="expected one of mean-pooling"):
        pool_curve(*parts, [4], student="max-pooling", key=key, recipe=Recipe(1))
    with pytest.raises(AttnlabError, match="say which"):
        pool_curve(*parts, [4], student="topic-counts", key=key)
    with pytest.raises(AttnlabError, match="one vocabulary"):
        pool_curve(corpus, corpus, _CORPUS, [4], student="mean-pooling", key=key)
    with pytest.raises(AttnlabError, match="the longest sentence has 5"):
        bags(_CORPUS, 4, None, "float32")
    with pytest.raises(AttnlabError, match="student='max'"):
        PoolingSettings(student="max")
    with pytest.raises(AttnlabError, match="increasing"):
        PoolingSettings(sizes=(8, 8))


def test_paper_scale_shows_plain_descent_too():
    grid, context = topic_pooling.grid("paper", 2), RunContext(0, 0, "0" * 16)
    sizes = {"mean-pooling": (16, 64), "attention-pooling": (8, 16), "topic-counts": (8, 16)}
    small = {"sentences": 64, "steps": 5, "step_sizes": (0.1,), "weight_decays": (0.0,)}
    small |= {"dictionary": 30, "valid_sentences": 20, "test_sentences": 20, "batch_size": 8}
    arms = {}
    for label, arm in grid.arms.items():
        changed = {**arm, **small, "sizes": sizes[arm["student"]]}
        runs = [fit_pooling(PoolingSettings(seed=k, **changed), context) for k in range(2)]
        arms[label] = along(runs, "seed", range(2))
    data = topic_pooling.measured(arms)
    assert UnderDescent.of(data).student.values.tolist() == ["mean-pooling", "attention-pooling"]
    assert claim.figures is not None
    drawn = {figure.id for figure in claim.figures(data)}
    assert {"pooling_curves", "pooling_descent", "pooling_descent_ratio"} <= drawn
