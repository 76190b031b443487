"""Curvature along training against the dense matrix of the models on the way."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import TopicTask
from attnlab.landscape import (
    Curvature,
    Parameters,
    Problem,
    exact_spectrum,
    squared_error,
    word_problem,
)
from attnlab.models import BaselineConfig, WordAttentionConfig
from attnlab.training import At, Every, GradientDescent, GradientFlow, Loss, train, train_model

pytestmark = pytest.mark.slow

DATA = {
    "x": jax.random.normal(jax.random.key(1), (40, 3)),
    "y": jax.random.normal(jax.random.key(2), (40,)),
}
INIT = BaselineConfig(numbers=3, hidden=4).init


@pytest.fixture(scope="module")
def run():
    probes = (Loss(), Parameters(), Curvature(depth=16))
    return train_model(
        INIT,
        squared_error,
        DATA,
        steps=40,
        seeds=2,
        when=Every(20),
        record=probes,
        optimizer=GradientDescent(0.2),
    )


def test_it_is_the_largest_eigenvalue_on_the_way(run):
    for seed in (0, 1):
        problem = Problem.of(run.model(seed), squared_error, DATA)
        for row in range(3):
            true = exact_spectrum(problem, jnp.asarray(run.data.theta[seed, row].values)).largest
            assert float(run.data.sharpness[seed, row]) == pytest.approx(true, rel=1e-9)
            assert float(run.data.sharpness_residual[seed, row]) < 1e-8
    np.testing.assert_allclose(run.data.edge[:, 1:], 0.1 * run.data.sharpness[:, 1:])
    assert np.isnan(run.data.edge[:, 0]).all()


def test_few_steps_show_their_residual():
    looks = Curvature(depth=2)
    data = train_model(INIT, squared_error, DATA, steps=0, record=(looks,)).data
    true = exact_spectrum(Problem.of(drawn(), squared_error, DATA)).values
    value, error = float(data.sharpness[0, 0]), float(data.sharpness_residual[0, 0])
    assert error > 1e-3
    assert value <= true[-1] + 1e-12
    assert np.abs(true - value).min() <= error


def drawn():
    return train_model(INIT, squared_error, DATA, steps=0).model(0)


def test_between_its_own_steps_there_is_nan():
    data = train_model(
        INIT,
        squared_error,
        DATA,
        steps=8,
        when=Every(2),
        record=(Curvature(depth=8, every=4),),
        seeds=2,
        batch_of_runs=2,
    ).data
    assert np.isfinite(data.sharpness.values).tolist() == [[True, False, True, False, True]] * 2


def test_descent_settles_at_the_edge_of_stability():
    """A valley ½(xy − 1)²: too large a step drives descent to where λ_max·step/2 is at most 1."""

    class Valley(eqx.Module):
        theta: jax.Array

    def loss(valley, data):
        return 0.5 * jnp.mean((valley.theta[0] * valley.theta[1] * data - 1) ** 2)

    run = train_model(
        lambda key: Valley(jnp.array([0.3, 3.0])),
        loss,
        jnp.ones(1),
        steps=2000,
        when=At((0, 1, 2000)),
        optimizer=GradientDescent(0.25),
        record=(Loss(), Curvature(depth=2)),
    )
    assert float(run.data.edge[0, 1]) > 1
    assert float(run.data.edge[0, 2]) <= 1 + 1e-6
    assert float(run.data.loss[0, 2]) < 1e-8


def test_words_have_the_curvature_of_their_own_parameters():
    """Training keeps one number per word here; the curvature is that of all."""
    corpus = TopicTask(topics=2, topic_words=1, dictionary=12, noise_words=3).sample(
        30, key=jax.random.key(0)
    )
    config = WordAttentionConfig.for_corpus(
        corpus, embedding_dim=3, key_dim=2, embedding_std=0.5, query_norm=1.5
    )
    run = train(
        config, corpus, steps=10, when=Every(10), record=(Curvature(depth=24), Parameters())
    )
    problem = word_problem(run.model(0), corpus)
    np.testing.assert_allclose(run.data.theta[0, -1], problem.start, rtol=1e-9, atol=1e-12)
    true = exact_spectrum(problem).largest
    assert float(run.data.sharpness[0, -1]) == pytest.approx(true, rel=1e-8)


def test_a_flow_has_curvature_but_no_edge():
    data = train_model(
        INIT,
        squared_error,
        DATA,
        steps=4,
        when=Every(2),
        record=(Curvature(depth=8),),
        optimizer=GradientFlow(0.1),
    ).data
    assert np.isfinite(data.sharpness).all()
    assert np.isnan(data.edge).all()


def test_nonsense_is_refused():
    with pytest.raises(AttnlabError, match="expected numbers ≥ 1"):
        Curvature(depth=0)


def test_all_of_the_curvature_along_training_and_by_group():
    """Smallest eigenvalue, trace and density against the dense matrix of the whole and of a block."""
    looks = (
        Parameters(),
        Curvature(depth=16, probes=8, nodes=16),
        Curvature(depth=16, group="w2", probes=4, every=10),
    )
    run = train_model(INIT, squared_error, DATA, steps=20, when=Every(5), record=looks)
    problem = Problem.of(run.model(0), squared_error, DATA)
    for row in range(5):
        theta = jnp.asarray(run.data.theta[0, row].values)
        at = run.data.isel(seed=0, step=row)
        whole, block = exact_spectrum(problem, theta), exact_spectrum(problem, theta, group="w2")
        assert float(at.smallest) == pytest.approx(whole.smallest, abs=1e-9)
        assert abs(float(at.trace) - whole.trace) <= 4 * float(at.trace_error) + 1e-9
        # Quadrature: weights are shares, and the mean node is the mean eigenvalue up to the probes'
        # spread.
        np.testing.assert_allclose(at.weight.sum("place"), 1.0)
        means = (at.node * at.weight).sum("place").values
        assert abs(means.mean() - whole.values.mean()) <= 4 * means.std(ddof=1) / 8**0.5
        assert at.node.max() <= whole.largest * (1 + 1e-9)
        if row % 2 == 0:
            assert float(at.sharpness_w2) == pytest.approx(block.largest, rel=1e-9)
            assert float(at.trace_w2) == pytest.approx(block.trace, rel=1e-9)
        else:
            assert np.isnan(float(at.sharpness_w2))
