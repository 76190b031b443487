"""One problem, many starts: what comes back is certified, weighted as said, and wrong where labels
mean nothing.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.papers.liu2021.point_runs import _teacher, count_live, find_points, make_problem
from attnlab.papers.liu2021.point_settings import FLATNESS, PointSettings
from attnlab.sweeps import RunContext

pytestmark = pytest.mark.slow

CONTEXT = RunContext(root_seed=0, index=0, hash="0" * 64)
TINY: dict[str, Any] = {
    "model": "known-attention",
    "starts": 2,
    "scales": (0.1, 1.0),
    "test_points": 200,
    "noise_std": 0.2,
    "l2": 1e-2,
}


@pytest.fixture(scope="module")
def found():
    return find_points(PointSettings(**TINY, samples=16, keep=True), CONTEXT)


def test_minima_are_certified_and_measured(found):
    assert set(found.kind.values.tolist()) == {"minimum"}
    assert float(found.gradient.max()) <= 1e-8
    assert (found.smallest > 0).all()
    assert (found.largest >= found.smallest).all()
    assert (found.down == 0).all()
    assert (found.zero_modes == 0).all()
    assert (found.group >= 0).all()
    np.testing.assert_allclose(
        found.value, found.loss + 0.5e-2 * (found.theta**2).sum("parameter"), rtol=1e-10
    )
    assert found.scale.values.tolist() == [0.1, 1.0]
    assert int(found.parameters) == found.sizes["parameter"]


def test_equal_points_share_a_group(found):
    same = found.group.values[:, None] == found.group.values[None, :]
    away = np.abs(found.value.values[:, None] - found.value.values[None, :])
    assert (away[same] <= 1e-8).all()


def test_the_first_of_many_drawn_are_the_same_problem(found):
    many = find_points(PointSettings(**TINY, samples=16, drawn=64, keep=True), CONTEXT)
    assert many.kind.values.tolist() == found.kind.values.tolist()
    np.testing.assert_allclose(many.value, found.value, rtol=1e-6)
    np.testing.assert_allclose(many.error, found.error, rtol=1e-6)
    np.testing.assert_allclose(many.theta, found.theta, atol=1e-6)


def test_saddles_are_told_from_minima():
    points = find_points(PointSettings(**TINY, samples=16, saddles=True), CONTEXT)
    kinds = points.kind.values
    assert set(kinds.tolist()) <= {"minimum", "saddle", "degenerate", "not stationary"}
    still = kinds != "not stationary"
    assert (points.gradient.values[still] <= 1e-8).all()
    assert (points.group.values[still] >= 0).all()
    assert (points.down.values[kinds == "saddle"] >= 1).all()
    assert (points.smallest.values[kinds == "saddle"] < 0).all()


def test_shuffled_labels_are_the_same_labels_elsewhere():
    key = jax.random.key(3)
    straight, shuffled = (
        make_problem(PointSettings(**TINY, samples=16, shuffled=on), key) for on in (False, True)
    )
    y, moved = (np.asarray(made.problem.data["y"]) for made in (straight, shuffled))
    np.testing.assert_array_equal(np.sort(y), np.sort(moved))
    assert (y != moved).any()
    np.testing.assert_array_equal(straight.problem.data["x"], shuffled.problem.data["x"])
    np.testing.assert_array_equal(straight.starts, shuffled.starts)


@pytest.mark.parametrize("model", ["known-attention", "self-attention", "multi-layer"])
def test_the_teachers_own_parameters_have_no_error(model):
    settings = PointSettings(**TINY | {"model": model}, samples=16)
    key = jax.random.key(5)
    made = make_problem(settings, key)
    teacher = _teacher(settings, jax.random.fold_in(key, 0))
    own = jax.tree.map(jnp.asarray, teacher.model)
    theta = jnp.concatenate(
        [
            jnp.ravel(leaf)
            for leaf in jax.tree.leaves(own)
            if jnp.issubdtype(leaf.dtype, jnp.floating)
        ]
    )
    assert theta.shape == made.problem.start.shape
    assert made.error(theta) <= 1e-12
    assert made.error(made.starts[0]) > 0.1


def test_classes_are_judged_by_wrong_labels():
    made = make_problem(PointSettings(**TINY, samples=16, classes=2), jax.random.key(6))
    assert set(np.asarray(made.problem.data["y"]).tolist()) == {-1.0, 1.0}
    assert 0 < made.error(made.starts[0]) < 1


@pytest.mark.parametrize("where", ["all", "lowest"])
def test_flatness_is_measured_at_certified_minima(found, where):
    points = find_points(PointSettings(**TINY, samples=16, flat=where), CONTEXT)
    lowest = found.value == found.value.min()
    wanted = (found.kind == "minimum") & (lowest if where == "lowest" else True)
    for name in FLATNESS:
        np.testing.assert_array_equal(points[f"flat_{name}"].notnull(), wanted)


def test_eigenvalues_of_saddles_are_those_that_the_certificate_counts():
    points = find_points(PointSettings(**TINY, samples=16, saddles=True, keep=True), CONTEXT)
    key = jax.random.fold_in(jax.random.key(0), 0)
    problem = make_problem(PointSettings(**TINY, samples=16, saddles=True), key).problem
    for start in range(2):
        theta = jnp.asarray(points.theta.values[start])
        dense = np.linalg.eigvalsh(np.asarray(jax.jit(jax.hessian(problem.value))(theta)))
        found = points.eigenvalues.values[start]
        np.testing.assert_allclose(found, dense, atol=1e-9)
        if str(points.kind.values[start]) == "saddle":
            assert (found < -float(points.delta[start])).sum() == int(points.down[start])


@pytest.mark.parametrize(
    ("model", "live", "parameters"),
    [
        ("baseline", 36, 36),
        ("narrow-baseline", 12, 12),
        ("known-attention", 12, 36),
        ("words-baseline", 35, 35),
    ],
)
def test_live_parameters_have_an_influence(model, live, parameters):
    settings: dict[str, Any] = TINY | {"model": model}
    made = make_problem(PointSettings(**settings, samples=16), jax.random.key(1))
    assert made.problem.parameters == parameters
    assert count_live(made.problem, made.starts[0]) == live


def test_the_narrow_baseline_sees_the_relevant_numbers_of_the_same_samples():
    settings = PointSettings(**TINY, samples=16)
    wide, narrow = (
        make_problem(replace(settings, model=model), jax.random.key(1)).problem
        for model in ("baseline", "narrow-baseline")
    )
    np.testing.assert_array_equal(wide.data["x"][:, :2], narrow.data["x"])
    np.testing.assert_array_equal(wide.data["y"], narrow.data["y"])


@pytest.mark.parametrize(
    "wrong",
    [{"model": "other"}, {"drawn": 4}, {"l2": -1.0}, {"classes": 3}, {"scales": ()}, {"starts": 0}],
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(AttnlabError, match=next(iter(wrong))):
        PointSettings(**{"samples": 16} | wrong)
