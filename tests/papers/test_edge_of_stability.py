"""Descent at the edge of stability, small: λ_max against the dense Hessian, what is averaged, what
the claim says.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jax.flatten_util import ravel_pytree

from attnlab import AttnlabError
from attnlab.models import LinearHead
from attnlab.papers.beyond.edge_of_stability import Edge, claim
from attnlab.papers.beyond.runs import (
    edge_data,
    edge_model,
    one_hot_loss,
    train_edge,
    where_converged,
)
from attnlab.papers.beyond.settings import EdgeSettings
from attnlab.papers.lu2021.runs import task_keys
from attnlab.sweeps import RunContext
from attnlab.training import run_keys

pytestmark = pytest.mark.slow

CONTEXT = RunContext(root_seed=0, index=0, hash="0" * 64)
TINY = EdgeSettings(
    steps=40,
    rows=4,
    words=12,
    topic_words=1,
    length=4,
    sentences=20,
    embedding_dim=2,
    depth=12,
    step_size=0.5,
)


@pytest.fixture(scope="module")
def run():
    return train_edge(TINY, CONTEXT)


def test_a_run_records_what_the_dense_hessian_says(run):
    assert run.step.values.tolist() == [0, 10, 20, 30, 40]
    assert float(run.loss[-1]) < float(run.loss[0])
    np.testing.assert_allclose(run.edge[1:], 0.5 * TINY.step_size * run.sharpness[1:])
    data = edge_data(TINY, task_keys(0, 0)[0])
    start, unravel = ravel_pytree(edge_model(TINY, run_keys(0, 0)[0]))
    loss = jax.jit(lambda theta: one_hot_loss(unravel(theta), jax.tree.map(jnp.asarray, data)))
    np.testing.assert_allclose(float(run.loss[0]), float(loss(start)), rtol=1e-12)
    dense = np.linalg.eigvalsh(np.asarray(jax.jit(jax.hessian(loss))(start)))
    assert abs(float(run.sharpness[0]) - dense[-1]) <= float(run.sharpness_residual[0]) + 1e-9


def test_the_loss_is_the_models_own_equation():
    data = edge_data(TINY, jax.random.key(1))
    assert data["counts"].sum(axis=1).tolist() == [4] * 20
    assert data["target"].sum(axis=1).tolist() == [1] * 20
    model = edge_model(TINY, jax.random.key(2))
    assert isinstance(model.head, LinearHead)
    keys, query, embeddings, weight = map(
        np.asarray, (model.keys, model.query, model.embeddings, model.head.weight)
    )
    total = 0.0
    for counts, target in zip(data["counts"], data["target"], strict=True):
        tokens = np.repeat(np.arange(12), counts.astype(int))
        attention = np.exp(keys[tokens] @ query)
        context = attention @ embeddings[tokens] / attention.sum()
        total += ((context @ weight - target) ** 2).sum() / 20
    np.testing.assert_allclose(
        float(one_hot_loss(model, jax.tree.map(jnp.asarray, data))), total, rtol=1e-12
    )


def test_a_tenth_of_the_labels_is_flipped():
    many = replace(TINY, sentences=20_000, words=60, topic_words=4, length=8)
    key = jax.random.key(0)
    labels, clean = (
        edge_data(s, key)["target"].argmax(axis=1) for s in (many, replace(many, flipped=0.0))
    )
    assert abs(float((labels != clean).mean()) - 0.1) < 0.01


def test_a_value_that_has_not_converged_is_nan():
    residual = ("step", [1e-6, 0.019, 0.021, np.nan])
    rough = xr.Dataset(
        {
            "sharpness": ("step", [2.0] * 4),
            "edge": ("step", [1.0] * 4),
            "sharpness_residual": residual,
        }
    )
    sure = where_converged(rough)
    assert (
        sure.sharpness.isnull().values.tolist()
        == sure.edge.isnull().values.tolist()
        == [False, False, True, True]
    )
    assert sure.sharpness_residual.equals(rough.sharpness_residual)


def test_a_flow_is_what_small_steps_follow(run):
    flow = train_edge(replace(TINY, flow=True), CONTEXT)
    small = train_edge(replace(TINY, step_size=0.005, steps=4000), CONTEXT)
    np.testing.assert_allclose(flow.loss, small.loss, rtol=1e-4)
    np.testing.assert_allclose(flow.sharpness, small.sharpness, rtol=1e-3)
    np.testing.assert_allclose(flow.edge[1:], 0.5 * TINY.step_size * flow.sharpness[1:])
    assert np.isnan(flow.edge[0])
    assert abs(float(run.loss[1] / small.loss[1]) - 1) > 1e-3  # large steps do not


(SWEEP,) = claim.sweeps
GOOD = {0.5: 1.0, 1.0: 1.05, 2.0: 1.1, 0.02: 0.1}


def measured(run: xr.Dataset, edges: dict[float, float], seeds: int = 8) -> dict[str, xr.Dataset]:
    """What is measured if λ_max·step/2 rises to these levels; a real run gives all other numbers."""
    noise = 0.01 * np.random.default_rng(0).standard_normal((seeds, run.sizes["step"]))
    many = run.expand_dims(seed=np.arange(seeds))
    arms = {}
    for size, level in edges.items():
        edge = many.edge.copy(data=np.where(run.step > 20, level, 0.5 * level) + noise)
        # All steps train for the same time.
        arm = many.assign(edge=edge, sharpness=2 / size * edge)
        arms[str(size)] = arm.assign_coords(step=np.round(run.step.values * 100 / size))
    return SWEEP.measured(arms)


def test_the_last_fifth_is_averaged_without_what_did_not_converge():
    steps = np.arange(0, 101, 10)
    edge = np.where(steps > 80, 1.05, 0.5)
    edge[-1] = np.nan
    names = ("loss", "sharpness", "sharpness_residual", "edge")
    arm = xr.Dataset(dict.fromkeys(names, (("seed", "step"), edge[None])), {"step": steps})
    arm = arm.assign_coords(seed=[0])
    data = SWEEP.measured({"2.0": arm, "0.02": arm})
    np.testing.assert_allclose(Edge.last(data), 1.05)
    np.testing.assert_allclose(Edge.converged(data), 0.5)
    np.testing.assert_allclose(Edge.flow(data).values.ravel(), [1.05, 0.02 / 2 * 1.05])


def test_all_steps_stand_on_one_axis_of_time(run):
    data = measured(run, GOOD)
    np.testing.assert_allclose(Edge.of(data)["time"], 100 * run.step)
    assert bool(Edge.loss(data).notnull().all())


@pytest.mark.parametrize(
    ("level", "verdict"),
    [(1.05, "holds"), (1.3, "fails"), (0.7, "fails")],
    ids=["in", "above", "below"],
)
def test_the_claim_is_judged_by_the_band(run, level, verdict):
    entry = claim.judge(measured(run, GOOD | {1.0: level}))
    assert entry["verdict"] == verdict
    assert all(control["ok"] for control in entry["controls"])


def test_a_flow_that_does_not_sharpen_refutes_it(run):
    # Then the large steps would end where the flow does, and no edge holds them back.
    entry = claim.judge(measured(run, GOOD | {0.02: 0.03}))
    assert entry["verdict"] == "fails"
    assert [c["verdict"] for c in entry["criteria"]] == ["holds"] * 3 + ["fails"]


def test_a_control_at_the_edge_is_noticed(run):
    data = measured(run, GOOD | {0.02: 1.0})
    assert not claim.judge(data)["controls"][0]["ok"]


def test_the_band_marks_where_training_ends(run):
    assert claim.figures is not None
    ends = next(
        figure
        for figure in claim.figures(measured(run, GOOD | {2.0: 1.3}))
        if figure.id == "edge_end"
    )
    assert ends.grid is not None
    assert [row[0] for row in ends.grid.tones] == ["good", "good", "bad", "bad"]
    assert [row[2] for row in ends.grid.tones] == ["good", "", "", ""]


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_the_plan_asks_for_what_the_theory_says_for_equal_times(scale):
    settings = [EdgeSettings(**run.settings) for run in SWEEP.plan(scale, 2).runs]
    assert {s.step_size for s in settings} == {0.5, 1.0, 2.0, 0.02}
    assert len(settings) == 8
    for s in settings:
        assert (s.words, s.length, s.embedding_dim, s.sentences) == (60, 8, 8, 200)
        assert (s.flipped, s.init_std) == (0.1, 0.3)
        assert s.steps * s.step_size == pytest.approx(5000)
        assert s.steps % s.rows == 0  # the looks of all are at equal times
        assert s.flow == (s.step_size == 0.02)


@pytest.mark.parametrize(
    "wrong", [{"step_size": 0.0}, {"words": 8}, {"flipped": 0.6}, {"rows": 0}, {"init_std": 0.0}]
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(AttnlabError, match=next(iter(wrong))):
        EdgeSettings(**wrong)
