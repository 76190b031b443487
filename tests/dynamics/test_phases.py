import jax
import numpy as np
import pytest
import xarray as xr
from scipy.stats import mannwhitneyu, spearmanr

from attnlab import AttnlabError, TopicTask, WordAttentionConfig, train
from attnlab.dynamics import (
    PHASES,
    Separation,
    alignment,
    at_loss,
    falling_share,
    phases,
    rank_agreement,
    separation,
    suppression,
)
from attnlab.training import At, Every, Norms, Scores


def _steps(**variables):
    length = len(next(iter(variables.values())))
    return xr.Dataset(
        {k: ("step", np.asarray(v, float)) for k, v in variables.items()},
        {"step": np.arange(length)},
    )


def test_separation_is_mann_whitney():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 6, (3, 40)).astype(float)
    chosen = rng.random(40) < 0.3
    found = separation(xr.DataArray(values, dims=("seed", "word")), chosen)
    expected = [
        mannwhitneyu(row[chosen], row[~chosen]).statistic / chosen.sum() / (~chosen).sum()
        for row in values
    ]
    assert np.allclose(found.values, expected)
    assert np.isnan(float(separation(xr.DataArray(values[0], dims="word"), np.zeros(40, bool))))


def test_the_probe_agrees_with_the_function():
    task = TopicTask(topics=2, topic_words=2, dictionary=30, noise_words=4)
    corpus = task.sample(200, key=jax.random.key(0))
    config = WordAttentionConfig.for_corpus(corpus, query_norm=1.0, embedding_std=0.1)
    words = task.topic_word_ids
    run = train(config, corpus, steps=60, when=At((0, 20, 60)), words=words, record=[Separation()])
    every = train(config, corpus, steps=60, when=At((0, 20, 60)), record=[Scores(), Norms()])
    chosen = np.isin(np.arange(len(corpus.vocabulary)), words)
    for name, variable in (("separation_score", "score"), ("separation_norm", "norm")):
        expected = separation(every.data[variable], chosen)
        assert np.allclose(
            run.data[name].values, expected.transpose("seed", "step").values, atol=1e-12
        )


def test_rank_agreement_is_spearman():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 5, 30))
    found = rank_agreement(xr.DataArray(x, dims=("w", "step")), xr.DataArray(y, dims=("w", "step")))
    expected = np.array([np.asarray(spearmanr(a, b))[0] for a, b in zip(x, y, strict=True)])
    assert np.allclose(found.values, expected)
    constant = xr.DataArray(np.ones(30), dims="step")
    assert np.isnan(float(rank_agreement(constant, constant)))


def test_a_share_of_falling_increments_sees_what_a_rank_correlation_does_not():
    values = xr.DataArray(
        [[0.0, -1.0, -2.0, 5.0, 6.0], [np.nan] * 5, [0.0, np.nan, np.nan, 1.0, 0.0]],
        dims=("word", "step"),
    )
    assert falling_share(values).values.tolist()[::2] == [0.5, 1.0]
    assert np.isnan(float(falling_share(values)[1]))
    both_fall = xr.DataArray([3.0, 2.0, 1.0], dims="step")
    assert float(rank_agreement(both_fall, both_fall**2)) == 1.0
    assert float(falling_share(both_fall)) == 1.0


def test_alignment_from_the_definition():
    model = WordAttentionConfig(words=6, classes=3, embedding_std=1.0).init(jax.random.key(0))
    found = alignment(model, [1, 4], [2, 0])
    weight, nu = np.asarray(model.head.weight), np.asarray(model.embeddings)  # pyright: ignore[reportAttributeAccessIssue]
    mean = weight.mean(axis=1)
    assert np.allclose(found, [nu[1] @ (weight[:, 2] - mean), nu[4] @ (weight[:, 0] - mean)])
    with pytest.raises(AttnlabError, match="linear head, got TwoLayerHead"):
        alignment(
            WordAttentionConfig(words=6, classes=3, head="two_layer").init(jax.random.key(0)),
            [1],
            [2],
        )


def test_misaligned_words_are_first_suppressed():
    task = TopicTask(topics=3, topic_words=3, dictionary=400, noise_words=10)
    corpus = task.sample(900, key=jax.random.key(0))
    starts = []

    def init(key):
        starts.append(
            WordAttentionConfig.for_corpus(corpus, embedding_std=0.5, query_norm=1.0).init(key)
        )
        return starts[-1]

    run = train(init, corpus, steps=600, when=Every(10), words=task.topic_word_ids)
    found = suppression(run.data.isel(seed=0))
    aligned = alignment(starts[0], task.topic_word_ids, task.topic_of_word[task.topic_word_ids])
    assert 0 < int(found.dip.sum()) < 9
    assert float(separation(-xr.DataArray(aligned, dims="word"), found.dip)) > 0.9
    assert float(found.fall_together.mean()) == 1.0


def test_no_dip_no_story_of_one():
    found = suppression(_steps(score=[0, 0.1, 0.2], norm=[1, 2, 3]))
    assert not bool(found.dip)
    assert np.isnan(float(found.dip_step))
    assert np.isnan(float(found.fall_together))


def test_phases_of_a_drawn_curve():
    step = np.arange(0, 2001, 10)
    score = (
        -0.1 * np.sin(np.clip(step / 200, 0, 1) * np.pi)
        + 3 / (1 + np.exp(-(step - 700) / 60))
        - 3 / (1 + np.exp(700 / 60))
    )
    data = xr.Dataset({"score": ("step", score), "norm": ("step", 1 + score)}, {"step": step})
    assert abs(float(phases(data).onset) - 700) < 2  # half of the last value
    found = phases(data, onset_level=0.5)
    told = [PHASES[int(p)] for p in found.phase.values]
    assert list(dict.fromkeys(told)) == ["suppressed", "waiting", "rising", "saturated"]
    assert abs(float(found.suppressed_until) - 100) <= 10
    # 3/(1+e^{-x}) = .5 at x = −log 5
    assert abs(float(found.onset) - (700 - 60 * np.log(5))) < 2
    assert 700 < float(found.saturation) < 900
    flat = phases(xr.zeros_like(data))
    assert np.isnan(float(flat.onset))
    assert set(flat.phase.values.tolist()) == {1.0}


def test_equal_loss():
    data = _steps(score=[0, 1, 2, 3], loss=[1, 0.5, 0.25, 0.125])
    assert np.isclose(float(at_loss(data.score, data.loss, 0.25)), 2.0)
    assert np.isclose(float(at_loss(data.score, data.loss, 0.25 * 2**-0.5)), 2.5)
    assert np.isnan(float(at_loss(data.score, data.loss, 0.01)))
    assert float(at_loss(data.score, data.loss, 2.0)) == 0.0
