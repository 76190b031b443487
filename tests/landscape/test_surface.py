"""Surfaces against a plain loop, paths against geometry."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import TopicTask
from attnlab.landscape import (
    Parameters,
    Problem,
    eigen_directions,
    filter_directions,
    path_directions,
    quadratic,
    squared_error,
    surface,
    word_problem,
)
from attnlab.models import LinearHead, SelfAttentionConfig, WordAttentionConfig
from attnlab.training import Every, train_model

CONFIG = SelfAttentionConfig(embedding_dim=3, words=4)
DATA = {
    "x": jax.random.normal(jax.random.key(1), (50, 3, 4)),
    "y": jax.random.normal(jax.random.key(2), (50,)),
}


def made(dtype="float64"):
    cast = lambda tree: jax.tree.map(lambda leaf: leaf.astype(dtype), tree)  # noqa: E731
    return Problem.of(cast(CONFIG.init(jax.random.key(0))), squared_error, cast(DATA), l2=0.01)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_plane_is_a_plain_loop(dtype):
    problem = made(dtype)
    directions = filter_directions(problem)
    found = surface(problem, directions=directions, span=(1.0, 0.5))
    assert found.loss.shape == (51, 51)
    assert (found.loss.a.values[[0, 25, 50]] == [-1, 0, 1]).all()
    assert (found.loss.b.values[[0, 25, 50]] == [-0.5, 0, 0.5]).all()
    value = eqx.filter_jit(problem.value)
    for a in found.loss.a.values[::5]:
        for b in found.loss.b.values[::5]:
            expected = float(
                value(
                    problem.start
                    + a.astype(dtype) * directions[0]
                    + b.astype(dtype) * directions[1]
                )
            )
            assert float(found.loss.sel(a=a, b=b)) == pytest.approx(
                expected, rel=1e-5 if dtype == "float32" else 1e-12
            )
    assert float(found.loss.sel(a=0, b=0)) == pytest.approx(float(value(problem.start)), rel=1e-6)
    assert "at the centre" in str(found)


def test_the_model_is_never_changed():
    model = CONFIG.init(jax.random.key(0))
    before = [np.array(leaf) for leaf in jax.tree.leaves(model)]
    problem = Problem.of(model, squared_error, DATA)
    surface(problem, directions=filter_directions(problem, count=1), points=5)
    for old, new in zip(before, jax.tree.leaves(model), strict=True):
        np.testing.assert_array_equal(old, new)


def test_filters_are_as_long_as_the_weights():
    problem = made()
    model, drawn = (
        problem.model(problem.start),
        problem.model(filter_directions(problem, seed=3)[1]),
    )
    for one, other, axis in (
        (model.layer.w_query, drawn.layer.w_query, 1),
        (model.layer.w_value, drawn.layer.w_value, 1),
        (model.head.w1, drawn.head.w1, 0),
        (model.head.w2, drawn.head.w2, 0),
    ):
        np.testing.assert_allclose(np.linalg.norm(one, axis=axis), np.linalg.norm(other, axis=axis))
    given = problem.model(filter_directions(problem, inputs={"head.w1": 1})[0])
    np.testing.assert_allclose(
        np.linalg.norm(given.head.w1, axis=1), np.linalg.norm(model.head.w1, axis=1)
    )


def test_words_are_filters():
    corpus = TopicTask(topics=2, topic_words=1, dictionary=20, noise_words=3).sample(
        20, key=jax.random.key(0)
    )
    model = WordAttentionConfig.for_corpus(
        corpus, embedding_std=1.0, key_std=1.0, head="linear"
    ).init(jax.random.key(0))
    problem = word_problem(model, corpus)
    drawn = problem.model(filter_directions(problem)[0])
    np.testing.assert_allclose(
        np.linalg.norm(drawn.embeddings, axis=1), np.linalg.norm(model.embeddings, axis=1)
    )
    assert isinstance(model.head, LinearHead)
    np.testing.assert_allclose(
        np.linalg.norm(drawn.head.weight, axis=0), np.linalg.norm(model.head.weight, axis=0)
    )


def test_eigenvectors_see_the_eigenvalues():
    problem = quadratic(jnp.diag(jnp.array([1.0, 6.0, 2.0])))
    found = surface(problem, directions=eigen_directions(problem, count=1), points=3)
    np.testing.assert_allclose(found.loss, [3, 0, 3], atol=1e-12)
    assert found.loss.dims == ("a",)
    large = Problem.of(
        jnp.zeros(2500), lambda t, _: 3 * t[7] ** 2 + 0.1 * jnp.vdot(t, t), jnp.zeros(0)
    )
    assert abs(float(eigen_directions(large, count=1)[0, 7])) == pytest.approx(1, abs=1e-6)


def test_a_training_path_lies_where_geometry_says():
    run = train_model(
        CONFIG.init, squared_error, DATA, steps=60, when=Every(5), record=(Parameters(),)
    )
    path = run.data.theta[0].values
    problem = Problem.of(run.model(0), squared_error, DATA)
    np.testing.assert_allclose(path[-1], problem.start, rtol=1e-12)
    plane = surface(problem, directions=path_directions(path), points=3)
    seen = plane.project(path)
    assert float(seen.distance[-1]) == pytest.approx(0, abs=1e-9)
    on_plane = (
        seen.a.values[:, None] * plane.directions[0] + seen.b.values[:, None] * plane.directions[1]
    )
    away = np.linalg.norm(path - path[-1], axis=1)
    np.testing.assert_allclose(
        np.linalg.norm(path - path[-1] - on_plane, axis=1), seen.distance, atol=1e-9
    )
    np.testing.assert_allclose(seen.away, away)
    assert (seen.distance <= seen.away + 1e-12).all()
    assert float(seen.distance.max()) < 0.5 * away.max()
    random = surface(problem, directions=filter_directions(problem), points=3).project(path)
    assert float(random.distance[0]) > 0.5 * away[0]


def test_nonsense_is_refused():
    problem = quadratic(jnp.eye(3))
    with pytest.raises(AttnlabError, match="odd number"):
        surface(problem, directions=jnp.eye(3)[:2], points=50)
    with pytest.raises(AttnlabError, match="1 or 2 rows"):
        surface(problem, directions=jnp.eye(3))
    with pytest.raises(AttnlabError, match="span"):
        surface(problem, directions=jnp.eye(3)[:1], span=(1.0, 2.0))
    with pytest.raises(AttnlabError, match="expected at least"):
        path_directions(np.zeros((2, 3)))
