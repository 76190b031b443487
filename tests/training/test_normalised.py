"""Training word attention under every normaliser: each step against the literal equation, probes,
refusals.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import train
from attnlab._errors import AttnlabError
from attnlab.data import Corpus
from attnlab.dynamics import AttentionEntropy, ScoreSum, SenTerms, Surroundings
from attnlab.models import (
    Softmax,
    WordAttentionConfig,
    attention_entropy,
    attention_weights,
    literal_logits,
)
from attnlab.training import Accuracy, Adam, Attention, Every, Loss, Norms, Scores
from attnlab.training._drive import run_keys

pytestmark = pytest.mark.slow

NAMES = ("softmax:0.25", "sparsemax", "entmax15", "top2", "uniform")
TOKENS = [list("abca"), list("bd"), list("ccd"), list("a"), list("dbaec"), list("ebb")]
CORPUS = Corpus.from_tokens(TOKENS, labels=[0, 1, 1, 0, 1, 0])
EVERYTHING = (Loss(), Accuracy(), Scores(), Norms(), Attention())


def config(name: str, **more) -> WordAttentionConfig:
    chosen = {
        "head": "linear",
        "embedding_dim": 3,
        "key_dim": 2,
        "embedding_std": 0.5,
        "key_std": 0.7,
    }
    return WordAttentionConfig.for_corpus(CORPUS, normaliser=name, **(chosen | more))


def literal_step(model, step_size: float):
    """One step of descent on the literal logits, in the parts that are trained."""

    def loss(parts):
        moved = jax.tree.map(lambda x: x, model)
        for name, value in parts.items():
            object.__setattr__(moved, name, value)
        chances = jax.nn.log_softmax(literal_logits(moved, CORPUS), axis=1)
        return -jnp.mean(chances[jnp.arange(len(CORPUS)), CORPUS.labels])

    parts = {name: getattr(model, name) for name in model.trained}
    value, slope = jax.value_and_grad(loss)(parts)
    moved = jax.tree.map(lambda x: x, model)
    for name, part in parts.items():
        object.__setattr__(
            moved, name, jax.tree.map(lambda p, g: p - step_size * g, part, slope[name])
        )
    return float(value), moved


@pytest.mark.parametrize("head", ["linear", "fixed"])
@pytest.mark.parametrize("name", NAMES)
def test_descent_is_that_of_the_literal_equation(name, head):
    run = train(config(name, head=head), CORPUS, steps=3, when=Every(1), record=EVERYTHING)
    model = config(name, head=head).init(run_keys(0, 0)[0])
    for step in range(4):
        value, following = literal_step(model, 0.1)
        assert float(run.data.loss[0, step]) == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(run.data.score[0, step], model.scores(), atol=1e-12)
        right = np.argmax(np.asarray(literal_logits(model, CORPUS)), axis=1) == CORPUS.labels
        assert float(run.data.accuracy[0, step]) == right.mean()
        np.testing.assert_allclose(run.data.attention[0, step], _mean_attention(model), atol=1e-12)
        model = following if step < 3 else model
    assert run.model(0).normaliser.name == name
    assert run.data.attrs["normaliser"] == name


def _mean_attention(model) -> np.ndarray:
    weights, rows = attention_weights(model, CORPUS), CORPUS.rows
    assert np.bincount(rows, weights) == pytest.approx(np.ones(len(CORPUS)))
    total = np.bincount(CORPUS.words, weights, len(CORPUS.vocabulary))
    return total / np.bincount(CORPUS.words, minlength=len(CORPUS.vocabulary))


@pytest.mark.parametrize("name", NAMES)
def test_minibatches_adam_and_splits_go_through_the_same_loop(name):
    run = train(
        config(name),
        CORPUS,
        steps=40,
        seeds=2,
        optimizer=Adam(0.05),
        batch_size=3,
        record=(Loss("test"), Loss()),
        splits={"test": CORPUS},
        when=Every(20),
    )
    np.testing.assert_allclose(run.data.loss_test, run.data.loss, atol=1e-12)
    assert (run.data.loss.isel(step=-1) < run.data.loss.isel(step=0)).all()
    alone = train(
        config(name),
        CORPUS,
        steps=40,
        seeds=[1],
        optimizer=Adam(0.05),
        batch_size=3,
        record=(Loss(),),
        when=Every(20),
    )
    np.testing.assert_array_equal(alone.data.loss[0], run.data.loss.sel(seed=1))


def test_softmax_by_padded_sentences_is_softmax():
    """A temperature of 1 that is not recognised as softmax trains as softmax does."""
    fast = train(config("softmax"), CORPUS, steps=20, when=Every(5))
    slow = train(config("softmax:1.0000000000000002"), CORPUS, steps=20, when=Every(5))
    np.testing.assert_allclose(fast.data.score, slow.data.score, atol=1e-12)
    assert fast.data.attrs["normaliser"] == "softmax"


def test_entropy_is_that_of_the_models_own_attention():
    run = train(
        config("sparsemax"),
        CORPUS,
        steps=2,
        when=Every(1),
        record=(AttentionEntropy(normaliser=_of("sparsemax")),),
    )
    model, rows = config("sparsemax").init(run_keys(0, 0)[0]), []
    for tokens in TOKENS:
        scores = model.scores()[jnp.asarray([CORPUS.vocabulary.index(t) for t in tokens])]
        rows.append(float(attention_entropy(model.normaliser(scores))))
    assert float(run.data.entropy[0, 0]) == pytest.approx(np.mean(rows), abs=1e-12)
    with pytest.raises(AttnlabError, match="expected the model's normaliser, sparsemax"):
        train(config("sparsemax"), CORPUS, steps=1, record=(AttentionEntropy(),))


def _of(name: str):
    return config(name).init(jax.random.key(0)).normaliser


def test_probes_of_softmax_are_refused_in_words():
    for probe in (SenTerms(), Surroundings()):
        message = (
            rf"{type(probe).__name__} .* softmax attention only, but the model's attention is top2"
        )
        with pytest.raises(AttnlabError, match=message):
            train(config("top2"), CORPUS, steps=1, record=(probe,))
    train(config("top2"), CORPUS, steps=1, record=(ScoreSum(),))


@pytest.mark.parametrize("name", ["softmax", "sparsemax"])
def test_a_function_that_makes_models_is_called_once_for_each_seed(name):
    """It may note what it made, as a prediction from the start does."""
    made = []

    def init(key):
        made.append(config(name).init(key))
        return made[-1]

    run = train(init, CORPUS, steps=1, seeds=[3, 1], when=Every(1))
    assert len(made) == 2
    for place, model in enumerate(made):
        np.testing.assert_allclose(run.data.score[place, 0], model.scores(), atol=1e-14)


def test_a_wrong_normaliser_is_refused():
    with pytest.raises(AttnlabError, match="hardmax"):
        config("hardmax")
    assert config("softmax").init(jax.random.key(0)).normaliser == Softmax()
