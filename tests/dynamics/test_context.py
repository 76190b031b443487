"""How much of the context a word makes up, and values at common times."""

import jax
import numpy as np
import pytest
import xarray as xr

from attnlab import Corpus, GradientDescent, WordAttentionConfig, train
from attnlab.dynamics import InContext, at_times
from attnlab.training import Elapsed, Every, Loss, Scores


def test_parts_of_the_context_from_the_equation():
    rng = np.random.default_rng(0)
    tokens = [[f"w{k}" for k in rng.integers(0, 9, 6)] for _ in range(30)]
    corpus = Corpus.from_tokens(tokens, labels=rng.integers(0, 3, 30).tolist())
    config = WordAttentionConfig.for_corpus(corpus, embedding_std=0.7, key_std=0.5)
    run = train(config, corpus, steps=4, record=[InContext()], when=Every(4))
    model = run.model(0)
    nu, scores = np.asarray(model.embeddings), np.asarray(model.keys) @ np.asarray(model.query)
    shares, ratios = np.zeros((2, len(corpus.vocabulary)))
    present = np.zeros(len(corpus.vocabulary))
    place = {word: k for k, word in enumerate(corpus.vocabulary)}
    for sentence in tokens:
        ids = np.array([place[word] for word in sentence])
        attention = np.exp(scores[ids]) / np.exp(scores[ids]).sum()
        context = attention @ nu[ids]
        for word in np.unique(ids):
            part = attention[ids == word].sum() * nu[word]
            shares[word] += part @ context / (context @ context)
            ratios[word] += np.linalg.norm(part) / np.linalg.norm(context)
            present[word] += 1
    last = run.data.isel(seed=0, step=-1)
    assert np.allclose(last.context_share, shares / present, rtol=1e-10, atol=1e-12)
    assert np.allclose(last.context_ratio, ratios / present, rtol=1e-10, atol=1e-12)


def test_a_context_of_zero_has_no_parts():
    corpus = Corpus.from_tokens([["a", "b"], ["c", "d"]], labels=[0, 1])
    config = WordAttentionConfig.for_corpus(corpus, embedding_std=0.0)
    data = train(config, corpus, steps=0, record=[InContext()]).data
    assert data.context_share.values.tolist() == data.context_ratio.values.tolist() == [[[0.0] * 4]]


def test_steps_over_the_loss_are_those_of_a_plain_loop():
    corpus = Corpus.from_tokens([["a", "n"], ["b", "n"]] * 3, labels=[0, 1] * 3)
    config = WordAttentionConfig.for_corpus(corpus, query_norm=1.0, embedding_std=0.1)
    record = [Loss(), Elapsed(), Scores()]
    floor = 0.3
    run = train(
        config,
        corpus,
        steps=40,
        optimizer=GradientDescent(0.2, loss_floor=floor),
        record=record,
        when=Every(1),
    )
    assert "time" not in run.data.coords
    loss = run.data.loss.values[0]
    steps = 0.2 / np.maximum(loss[:-1], floor)
    assert loss[-1] < floor < loss[0]
    assert np.allclose(np.diff(run.data.elapsed.values[0]), steps, rtol=1e-12)
    # The last step, taken alone from the state before it, with its size given.
    before = train(
        config,
        corpus,
        steps=39,
        optimizer=GradientDescent(0.2, loss_floor=floor),
        record=record,
        when=Every(39),
    ).model(0)
    after = train(
        lambda key: jax.tree.map(jax.numpy.asarray, before),
        corpus,
        steps=1,
        optimizer=GradientDescent(float(steps[-1])),
        record=record,
        when=Every(1),
    )
    assert np.allclose(after.data.loss.values[0, 1], loss[-1], rtol=1e-12)
    assert np.allclose(after.data.score.values[0, 1], run.data.score.values[0, -1], rtol=1e-12)


def test_a_floor_of_the_loss_is_positive():
    with pytest.raises(Exception, match="loss_floor=0"):
        GradientDescent(loss_floor=0.0)


def test_values_are_read_at_common_times_of_runs_with_clocks_of_their_own():
    clock = xr.DataArray([[0.0, 1.0, 10.0, 100.0], [0.0, 2.0, 20.0, 30.0]], dims=("seed", "step"))
    values = xr.apply_ufunc(np.log10, clock.where(clock > 0)).expand_dims(word=["a", "b"])
    found = at_times(values, clock, [1.0, 5.0, 25.0, 50.0])
    assert found.sizes == {"word": 2, "seed": 2, "time": 4}
    expected = np.log10([[1.0, 5.0, 25.0, 50.0], [np.nan, 5.0, 25.0, np.nan]])
    assert np.allclose(found.isel(word=0).values, expected, equal_nan=True)
    failed = at_times(values * np.nan, clock, [1.0])
    assert np.isnan(failed.values).all()
