"""The theory of part A under other normalisers: laws, the relation of score and norm, entropy along
training.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, TopicTask
from attnlab.dynamics import (
    AttentionEntropy,
    saturation,
    sen_norm,
    sen_norm_under,
    sen_potential,
)
from attnlab.models import (
    AbstractNormaliser,
    Entmax15,
    SelfAttentionConfig,
    Softmax,
    Sparsemax,
    TopK,
    Uniform,
    WordAttentionConfig,
    make_normaliser,
)
from attnlab.training import Attention, Every, Logarithmic, Loss, Norms, Scores, train, train_model

pytestmark = pytest.mark.slow

M = 20


def ratio(normaliser, others):
    """``a/a′`` of a word of score u among others of score 0, by automatic differentiation."""

    def attention(u):
        return normaliser(jnp.concatenate([u[None], jnp.zeros(others)]))[0]

    return jax.jit(lambda u: attention(u) / jax.grad(attention)(u))


@pytest.mark.parametrize(
    "normaliser", [Softmax(), Softmax(0.25), Softmax(4.0), Sparsemax(), Entmax15()], ids=str
)
def test_the_potential_is_the_integral_of_attention_over_its_slope(normaliser):
    rate = ratio(normaliser, M)
    for score in (-0.02, 0.1, 0.5, 0.95) + ((1.5, 1.9) if saturation(normaliser) > 1 else ()):
        expected, _ = scipy.integrate.quad(
            lambda u: float(rate(jnp.asarray(u))), 0, score, epsabs=1e-11
        )
        found = float(sen_potential(score, normaliser=normaliser, others=M))
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_top_k_sees_the_other_kept_words_alone():
    # Other scores differ a little, as in training: two words are kept, and the other one is all
    # that is left of m.
    def attention(u):
        return TopK(2)(jnp.concatenate([u[None], -1e-9 * jnp.arange(1.0, M + 1)]))[0]

    rate = jax.jit(lambda u: attention(u) / jax.grad(attention)(u))
    expected, _ = scipy.integrate.quad(lambda u: float(rate(jnp.asarray(u))), 0, 1.2)
    assert float(sen_potential(1.2, normaliser=TopK(2), others=M)) == pytest.approx(
        expected, rel=1e-6
    )


@pytest.mark.parametrize("normaliser", [Sparsemax(), Entmax15()], ids=str)
def test_at_saturation_a_word_has_all_attention_and_the_relation_ends(normaliser):
    stop = saturation(normaliser)
    for score, full in ((stop, True), (stop - 1e-3, False)):
        a = float(normaliser(jnp.concatenate([jnp.asarray(score)[None], jnp.zeros(M)]))[0])
        assert (a == pytest.approx(1.0, abs=1e-15)) is full
    scores = xr.DataArray([stop - 0.1, stop, stop + 1], dims="word")
    found = sen_potential(scores, normaliser=normaliser, others=M)
    assert found.dims == ("word",)
    assert np.isfinite(found.values).tolist() == [True, False, False]


def test_softmax_is_the_relation_of_the_paper_and_frozen_scores_have_none():
    score = np.linspace(0.1, 3, 5)
    given = {"others": M, "query_norm": 0.7, "initial_norm": 0.2, "i1": 0.01}
    assert np.allclose(
        sen_norm_under(score, normaliser=Softmax(), **given), sen_norm(score, **given), rtol=1e-14
    )
    for normaliser in (Uniform(), TopK(1)):
        assert np.isnan(sen_potential(score, normaliser=normaliser, others=M)).all()


# Training


SMALL = TopicTask(topics=3, topic_words=1, dictionary=300, noise_words=8)
NAMES = ("softmax", "softmax:0.25", "sparsemax", "entmax15", "top2")


@cache
def trained(normaliser):
    """Descent on a small topic task; scores, norms and attention of all words along training."""
    corpus = SMALL.sample(200, key=jax.random.key(0))
    config = WordAttentionConfig.for_corpus(corpus, query_norm=1.0, normaliser=normaliser)
    record = [Scores(), Norms(), Attention()]
    run = train(
        config, corpus, steps=600, seeds=2, record=record, when=Logarithmic(60), progress=False
    )
    return run.data


@pytest.mark.parametrize("name", NAMES)
def test_every_normaliser_conserves_the_sum_of_scores(name):
    score = trained(name).score
    drift = (abs(score.sum("word")) / abs(score).sum("word").where(lambda total: total > 0)).max()
    assert 0 < float(drift) <= 1e-13


def relation_error(data, normaliser):
    words = data.isel(word=SMALL.topic_word_ids)
    score = words.score.where((words.score > 0.05) & (words.attention < 0.999))
    start = words.norm.sel(step=0, drop=True)
    known = {"others": SMALL.noise_words, "query_norm": words.query_norm, "initial_norm": start}
    predicted = sen_norm_under(score, normaliser=normaliser, **known)
    measured = words.query_norm * words.norm
    return (abs(predicted - measured) / measured).median(("word", "step"))


@pytest.mark.parametrize("name", NAMES)
def test_each_normaliser_has_a_relation_of_its_own(name):
    data = trained(name)
    assert float(relation_error(data, make_normaliser(name)).max()) <= 0.04
    if name != "softmax":
        assert float(relation_error(data, Softmax()).min()) >= 0.1


def test_scores_stay_under_uniform_weights():
    data = trained("uniform")
    assert (data.score == 0).all()
    assert np.allclose(data.attention.isel(step=-1, word=SMALL.topic_word_ids), 1 / 9)


class Sigmoids(AbstractNormaliser):
    """Weights that a shift of all scores changes: the control of the law."""

    @property
    def name(self):
        return "sigmoids"

    def weigh(self, logits):
        e = jax.nn.sigmoid(logits)
        return e / jnp.sum(e, axis=-1, keepdims=True)


def test_without_shift_invariance_the_sum_of_scores_is_not_conserved():
    score = trained(Sigmoids()).score.isel(step=-1)
    assert float((abs(score.sum("word")) / abs(score).sum("word")).min()) > 1e-2


# The entropy along training


def literal_rows(rows):
    """Mean and least entropy, and mean bound, of rows of finite logits, one by one in NumPy."""
    entropies, bounds = [], []
    for z in rows:
        entropies.append(scipy.stats.entropy(scipy.special.softmax(z)))
        t, sigma = len(z), np.linalg.norm(z - z.mean())
        beta = np.exp(-sigma * np.sqrt(t / (t - 1))) if t > 1 else 0.0
        spread = (t - 1) * beta
        bounds.append(np.log1p(spread) + sigma * np.sqrt(t * (t - 1)) * beta / (1 + spread))
    return np.mean(entropies), np.min(entropies), np.mean(bounds)


def test_the_entropy_of_words_is_that_of_every_sentence():
    corpus = Corpus.from_tokens(
        [["a", "b", "a"], ["c"], ["b", "c", "d", "a"], ["d", "d"]], labels=[0, 1, 1, 0]
    )
    config = WordAttentionConfig.for_corpus(
        corpus, head="linear", embedding_std=1.0, key_std=2.0, query_norm=1.0
    )
    run = train(
        config, corpus, steps=20, record=(AttentionEntropy(),), when=Every(20), progress=False
    )
    scores = np.asarray(run.model(0).keys) @ np.asarray(run.model(0).query)
    found = run.data.isel(seed=0, step=-1)
    expected = literal_rows(
        [scores[np.array(row)] for row in ([0, 0, 1], [2], [1, 2, 3, 0], [3, 3])]
    )
    assert np.allclose(
        [found.entropy, found.entropy_least, found.entropy_bound], expected, rtol=1e-12, atol=1e-15
    )
    assert bool((run.data.entropy >= run.data.entropy_bound).all())


def columns(model, data):
    return jnp.swapaxes(jax.vmap(model.layer.logits)(data["x"]), 1, 2)


def square(model, batch):
    return jnp.mean((jax.vmap(model)(batch["x"]) - batch["y"]) ** 2)


@pytest.mark.parametrize("name", ["softmax", "softmax:0.5", "sparsemax"])
def test_the_entropy_of_self_attention_is_that_of_every_column(name):
    x = np.random.default_rng(0).normal(size=(6, 4, 5))
    data, norm = {"x": x, "y": x[:, 0, 0]}, make_normaliser(name)
    config = SelfAttentionConfig(embedding_dim=4, words=5, normaliser=name, query_scale=2.0)
    probe = AttentionEntropy(columns, norm)
    run = train_model(
        config.init,
        square,
        data,
        steps=10,
        record=(Loss(), probe),
        when=Logarithmic(60),
        progress=False,
    )
    model, found = run.model(0), run.data.isel(seed=0, step=-1)
    logits = [np.asarray(model.layer.logits(jnp.asarray(one))) for one in x]
    rows = np.concatenate([z.T for z in logits])
    if isinstance(norm, Softmax):
        expected = literal_rows(rows / norm.temperature)
        assert np.allclose(
            [found.entropy, found.entropy_least, found.entropy_bound], expected, rtol=1e-12
        )
    else:
        entropies = [
            scipy.stats.entropy(column)
            for one in x
            for column in np.asarray(model.attention(jnp.asarray(one))).T
        ]
        assert float(found.entropy) == pytest.approx(np.mean(entropies), rel=1e-12)
        assert "entropy_bound" not in found


def test_the_probe_says_where_it_does_not_fit():
    corpus = Corpus.from_tokens([["a", "b"], ["c"]], labels=[0, 1])
    config = WordAttentionConfig.for_corpus(corpus)
    for probe, message in (
        (AttentionEntropy(columns), "for train_model"),
        (AttentionEntropy(None, Sparsemax()), "expected the model's normaliser, softmax"),
    ):
        with pytest.raises(AttnlabError, match=message):
            train(config, corpus, steps=2, record=(probe,), progress=False)
    with pytest.raises(AttnlabError, match="AttentionEntropy needs the words"):
        train_model(
            SelfAttentionConfig(embedding_dim=2, words=3).init,
            square,
            {"x": np.ones((2, 2, 3)), "y": np.ones(2)},
            steps=1,
            record=(AttentionEntropy(),),
            progress=False,
        )
