"""The reduced model against equations written out in NumPy, exact identities, training, and wrong
assumptions.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from jax.flatten_util import ravel_pytree

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, TopicTask
from attnlab.dynamics import (
    ReducedModel,
    log_slope,
    loss_exponent,
    onset_time,
    order_in_step,
    reduced_descent,
    reduced_flow,
    score_rate,
    score_slowdown,
)
from attnlab.dynamics._reduced import descent_rows, flow_rows
from attnlab.models import LinearHead, WordAttention, WordAttentionConfig
from attnlab.training import At, Every, GradientDescent, Loss, Norms, Scores, train

pytestmark = pytest.mark.slow

TASK = TopicTask()
OTHERS = np.array([3.0, 20.0, 7.5, 11.0, 16.0, 4.0, 30.0, 9.0])
GRID = np.concatenate(
    [[0.0], np.geomspace(1, 1e12, 121)]
)  # one length of times: every flow compiles once


def small(head: Any = "fixed", trained=None):
    """Eight words that start away from zero, with unequal frequencies and surroundings; the task's
    shapes.
    """
    config = WordAttentionConfig(
        words=12,
        classes=4,
        head=head,
        trained=trained,
        embedding_std=0.5,
        key_std=0.4,
        query_norm=0.8,
    )
    share = np.linspace(0.05, 0.2, 8)
    model = config.init(jax.random.key(2))
    return ReducedModel.of(
        model, words=range(3, 11), labels=[2, 0, 1, 3, 2, 2, 0, 1], frequency=share, others=OTHERS
    )


# ---- the equations, written out ----


def numpy_forward(nu, s, weight, label, m):
    a = np.exp(s) / (np.exp(s) + m)
    z = a * nu @ weight
    p = np.exp(z) / np.exp(z).sum()
    return a, p, -np.log(p[label])


def numpy_descent(model, steps, step_size, head_trained):
    """Gradient descent on L_red, one word after the other, with the derivatives taken by hand."""
    nu, s, weight = (np.array(x) for x in (model.embeddings, model.scores, model.head.weight))
    labels, share, m, q2 = (
        np.array(x) for x in (model.labels, model.frequency, model.others, model.query_norm**2)
    )
    for _ in range(steps):
        dnu, ds, dweight = np.zeros_like(nu), np.zeros_like(s), np.zeros_like(weight)
        for t in range(len(s)):
            a, p, _ = numpy_forward(nu[t], s[t], weight, labels[t], m[t])
            dz = share[t] * (p - np.eye(weight.shape[1])[labels[t]])
            dnu[t] = a * weight @ dz
            ds[t] = a * (1 - a) * nu[t] @ weight @ dz
            dweight += a * np.outer(nu[t], dz)
        nu, s = nu - step_size * dnu, s - step_size * q2 * ds
        weight = weight - step_size * dweight * head_trained
    loss = sum(
        share[t] * numpy_forward(nu[t], s[t], weight, labels[t], m[t])[2] for t in range(len(s))
    )
    return nu, s, loss


@pytest.mark.parametrize("head", ["fixed", "linear"])
def test_descent_is_the_equations_written_out(head):
    model = small(head)
    run = reduced_descent(model, 40, step_size=0.3, when=At((1,)))
    for step in (1, 40):
        nu, s, loss = numpy_descent(model, step, 0.3, head == "linear")
        row = run.sel(step=step)
        np.testing.assert_allclose(row.score, s, rtol=1e-12)
        np.testing.assert_allclose(row.norm, np.linalg.norm(nu, axis=1), rtol=1e-12)
        np.testing.assert_allclose(row.loss, loss, rtol=1e-12)
        np.testing.assert_allclose(row.attention, np.exp(s) / (np.exp(s) + OTHERS), rtol=1e-12)


def test_the_gradient_of_a_two_layer_head_is_that_of_finite_differences():
    model = small("two_layer")
    leaves, form = jax.tree.flatten(model.state())
    flat, restore = ravel_pytree(leaves)

    loss = jax.jit(jax.vmap(lambda x: model.at(jax.tree.unflatten(form, restore(x))).loss()))
    shifts = 1e-6 * jnp.eye(len(flat))
    slopes = (loss(flat[None, :] + shifts) - loss(flat[None, :] - shifts)) / 2e-6
    expected = jax.tree.unflatten(form, restore(-slopes))
    expected["keys"] = expected["keys"] * model.query_norm**2
    velocity = jax.jit(lambda state: model.velocity(state))(model.state())
    for got, want in zip(jax.tree.leaves(velocity), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-9)


def test_tiny_losses_and_margins_are_accurate():
    weight = jnp.asarray([[1.0, 0.0, -1.0]])
    model = WordAttention(
        jnp.full((2, 1), 80.0), jnp.zeros((2, 1)), jnp.ones(1), LinearHead(weight)
    )
    reduced = ReducedModel.of(model, words=[0], labels=0, frequency=1.0, others=1.0)
    assert float(reduced.margin()[0]) == 40.0
    np.testing.assert_allclose(reduced.loss(), np.exp(-40.0) + np.exp(-80.0), rtol=1e-12)


# ---- a corpus on which the reduced model is exact ----


@pytest.mark.parametrize("head", ["fixed", "linear"])
def test_it_is_exact_where_symmetry_keeps_the_other_words_at_zero(head):
    """Two mirrored classes and m words that are in every sentence.

    Their embeddings stay at zero, since the classes pull oppositely; their scores fall together, by
    1/m of what the two topic words gain. The gap δ of the scores then moves as in the reduced model
    with |q|² (1 + 2/m): exactly.
    """
    m, d = 4, 3
    rng = np.random.default_rng(0)
    nu, w, query = rng.normal(size=d), rng.normal(size=d), rng.normal(size=2)
    common = [f"common{i}" for i in range(m)]
    corpus = Corpus.from_tokens(
        [["up", *common], ["down", *common]], [0, 1], vocabulary=["up", "down", *common]
    )
    embeddings = jnp.zeros((m + 2, d)).at[0].set(nu).at[1].set(-nu)
    parts = ("embeddings", "keys") if head == "fixed" else ("embeddings", "keys", "head")
    weight = LinearHead(jnp.asarray(np.stack([w, -w], 1)))
    model = WordAttention(embeddings, jnp.zeros((m + 2, 2)), jnp.asarray(query), weight, parts)
    run = train(
        lambda key: model, corpus, steps=400, record=(Loss(), Scores(), Norms()), progress=False
    ).data
    run = run.isel(seed=0)
    wider = WordAttention(embeddings, model.keys, model.query * np.sqrt(1 + 2 / m), weight, parts)
    reduced = ReducedModel.of(
        wider, words=[0, 1], labels=[0, 1], frequency=0.5, others=m, names=("up", "down")
    )
    predicted = reduced_descent(reduced, 400)
    gap = run.score.sel(word=["up", "down"]) - run.score.sel(word="common0", drop=True)
    assert float(gap.isel(step=-1).min()) > 0.3
    np.testing.assert_allclose(
        predicted.score, gap.transpose("step", "word"), rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(predicted.norm, run.norm.sel(word=["up", "down"]), rtol=1e-11)
    np.testing.assert_allclose(predicted.loss, run.loss, rtol=1e-11)


# ---- flow ----


def test_descent_tends_to_the_flow_with_order_one():
    model = small("linear")
    limit = (
        reduced_flow(model, GRID, rtol=1e-11, atol=1e-12)
        .score.sel(time=10, method="nearest")
        .values
    )
    sizes = np.array([0.1, 0.05, 0.025])
    ends = [
        reduced_descent(model, round(10 / h), step_size=h, when=Every(1000)).score.values[-1]
        for h in sizes
    ]
    order = order_in_step(sizes, np.linalg.norm(np.stack(ends) - limit[None, :], axis=1))
    assert 0.95 < order < 1.05


@pytest.mark.parametrize("head", ["fixed", "linear"])
def test_the_score_norm_relation_is_exact_along_the_flow(head):
    """``s + e^s/m`` minus its start is ``½|q|²(|ν|² − |ν₀|²)``, with any head and any start."""
    run = reduced_flow(small(head), GRID, rtol=1e-9, atol=1e-11)
    left = run.score + np.exp(run.score) / xr.DataArray(OTHERS, dims="word")
    right = 0.5 * run.query_norm**2 * (run.norm**2 - run.norm.isel(time=0) ** 2)
    assert float(run.score.max()) > 3
    assert float(abs(left - left.isel(time=0) - right).max()) < 1e-6
    wrong = run.score + np.exp(run.score) / xr.DataArray(OTHERS / 2, dims="word")
    assert float(abs(wrong - wrong.isel(time=0) - right).max()) > 0.1


def test_log_time_agrees_with_direct_integration():
    from scipy.integrate import solve_ivp

    model = small("fixed")
    flat, restore = ravel_pytree(model.state())
    velocity = jax.jit(lambda x: ravel_pytree(model.velocity(restore(x)))[0])
    times = GRID[GRID <= 1.001e4]
    direct = solve_ivp(
        lambda _, x: np.asarray(velocity(jnp.asarray(x))),
        (0, times[-1]),
        flat,
        "DOP853",
        times,
        rtol=1e-10,
        atol=1e-11,
    )
    expected = jax.vmap(restore)(jnp.asarray(direct.y.T))["keys"]
    np.testing.assert_allclose(reduced_flow(model, GRID).score[: len(times)], expected, atol=1e-6)


def test_the_two_layer_head_is_sent_to_descent_and_an_own_smooth_head_is_not():
    with pytest.raises(AttnlabError, match="reduced_descent"):
        reduced_flow(small("two_layer"), [1.0])
    model = small(lambda key, d, classes: SMOOTH)
    flow = reduced_flow(model, GRID).score.sel(time=1)
    descent = reduced_descent(model, 1000, step_size=1e-3).score[-1]
    np.testing.assert_allclose(flow, descent, atol=1e-4)


def SMOOTH(context):
    return jnp.tanh(context[:4])


def test_a_flow_that_cannot_meet_its_tolerance_says_so():
    run = reduced_flow(small(), GRID, rtol=1e-30, atol=1e-30)
    assert not bool(run.success)
    assert np.isfinite(run.score[0]).all()
    assert np.isnan(run.score[-1]).all()


# ---- parts that are frozen, batches, starts ----


@pytest.mark.parametrize(("parts", "still"), [(("embeddings",), "score"), (("keys",), "norm")])
def test_frozen_parts_stay(parts, still):
    model = small("linear", trained=parts)
    run = reduced_descent(model, 50)
    moved = "norm" if still == "score" else "score"
    assert float(abs(run[still][-1] - run[still][0]).max()) == 0
    assert float(abs(run[moved][-1] - run[moved][0]).min()) > 1e-5
    assert not model.head_trained


def several(head):
    models = [ReducedModel.for_task(TASK, key=jax.random.key(k), head=head) for k in range(3)]
    return models, jax.tree.map(lambda *leaves: jnp.stack(leaves), *models)


def test_a_descent_is_the_same_alone_and_in_a_batch():
    models, batch = several("two_layer")
    together = jax.jit(jax.vmap(lambda m: descent_rows(m, jnp.arange(0, 1501, 300), 0.1)))(batch)
    alone = [reduced_descent(m, 1500, when=Every(300)) for m in models]
    np.testing.assert_allclose(
        together["score"], np.stack([run.score for run in alone]), rtol=1e-9, atol=1e-14
    )


def test_a_flow_is_the_same_alone_and_in_a_batch():
    models, batch = several("fixed")
    solve = jax.jit(jax.vmap(lambda m: flow_rows(m, jnp.asarray(GRID), 1e-8, 1e-10, 10_000)))
    rows, evaluations, success = solve(batch)
    alone = [reduced_flow(m, GRID) for m in models]
    assert bool(success.all())
    assert evaluations.tolist() == [int(run.gradient_evaluations) for run in alone]
    np.testing.assert_allclose(
        rows["score"], np.stack([run.score for run in alone]), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("head", ["fixed", "linear", "two_layer"])
def test_the_start_of_a_task_is_the_start_of_training(head):
    key, config = (
        jax.random.key(11),
        WordAttentionConfig(words=TASK.dictionary + 8, classes=4, head=head),
    )
    whole = ReducedModel.of(
        config.init(key),
        words=range(8),
        labels=TASK.topic_of_word[:8],
        frequency=TASK.word_frequency,
        others=20,
        names=TASK.vocabulary[:8],
    )
    drawn = ReducedModel.for_task(TASK, key=key, head=head)
    assert jax.tree.structure(whole) == jax.tree.structure(drawn)
    jax.tree.map(np.testing.assert_array_equal, whole, drawn)


def test_other_seeds_words_and_surroundings_do_not_compile_again():
    from attnlab.dynamics._reduced import _descent, _flow

    def predict(key, **more):
        model = ReducedModel.for_task(TASK, key=jax.random.key(key), **more)
        reduced_descent(model, 20, step_size=0.1 / (key + 1))
        reduced_flow(model, GRID * (1 + key), rtol=1e-6 / (key + 1))

    def compiled():
        return [f._cache_size() for f in (_descent, _flow)]  # pyright: ignore[reportAttributeAccessIssue]

    predict(0)
    before = compiled()
    predict(1, others=10, frequency=0.1, embedding_std=0.2)
    assert compiled() == before


# ---- against training ----


def measured(task, corpus, head, steps=5000):
    """A run of training and what was known before it."""
    start = WordAttentionConfig.for_corpus(corpus, head=head, query_norm=0.9).init(
        jax.random.key(3)
    )
    ids, rule = task.topic_word_ids, GradientDescent(0.1)
    run = train(
        lambda key: start,
        corpus,
        steps=steps,
        optimizer=rule,
        when=Every(50),
        words=ids,
        progress=False,
    )
    known = {"words": ids, "labels": task.topic_of_word[ids], "names": task.vocabulary[: len(ids)]}
    share = corpus.sentence_frequency[ids] / len(corpus)
    return run.data.isel(seed=0), lambda m: ReducedModel.of(
        start, frequency=share, others=m, **known
    )


@pytest.fixture(scope="module", params=["fixed", "linear"])
def reference(request):
    return request.param, *measured(TASK, TASK.sample(4000, key=jax.random.key(0)), request.param)


def test_it_predicts_training_and_half_the_surroundings_do_not(reference):
    head, data, reduced = reference

    def errors(m):
        run = reduced_descent(reduced(m), 5000, when=Every(50))
        pointwise = (abs(run.score - data.score) / data.score).where(data.score > 0.05).values
        late = onset_time(data.score, time=run.time)
        final = abs(run.score / data.score - 1).isel(step=-1)
        onset = abs(onset_time(run.score) / late - 1)
        return (
            np.nanpercentile(pointwise, 95),
            np.nanmax(pointwise),
            float(final.max()),
            float(onset.max()),
        )

    bounds = {"fixed": [0.02, 0.04, 0.015, 0.02], "linear": [np.inf, np.inf, 0.03, 0.025]}[head]
    assert np.all(np.array(errors(TASK.noise_words)) <= bounds)
    p95, worst, final, onset = errors(TASK.noise_words / 2)
    assert final > 0.1
    assert onset > 0.25
    assert min(p95, worst) > 0.1


# ---- rates ----


def test_asymptotic_rates_of_a_fixed_head_and_the_rejected_alternative():
    run = reduced_flow(ReducedModel.for_task(TASK, key=jax.random.key(0), query_norm=1.0), GRID)
    assert abs(float(loss_exponent(run.loss)) + 1) <= 0.02
    assert float(abs(score_rate(run.score) - 2).max()) <= 0.2
    slowdown = score_slowdown(run.score)
    assert slowdown.dims == ("word",)
    assert float(slowdown.max()) < 0.7
    as_if_logarithmic = xr.ones_like(run.score) * np.log(run.time.clip(1))
    assert float(score_slowdown(as_if_logarithmic).max()) == pytest.approx(1)
    assert float(score_rate(as_if_logarithmic).min()) > 10


def test_a_trained_head_takes_half_of_the_growth():
    run = reduced_flow(
        ReducedModel.for_task(TASK, key=jax.random.key(0), query_norm=1.0, head="linear"), GRID
    )
    assert float(abs(score_rate(run.score) - 1).max()) <= 0.2


def test_rates_along_steps_take_the_time_of_the_steps():
    run = reduced_descent(ReducedModel.for_task(TASK, key=jax.random.key(0), query_norm=1.0), 5000)
    by_time = loss_exponent(run.loss, window=(100, 500))
    by_step = loss_exponent(run.loss.drop_vars("time"), window=(1000, 5000))
    assert float(by_time) == pytest.approx(float(by_step), rel=1e-9)
    assert -2 < float(by_time) < -1


def test_slopes_keep_other_dimensions():
    x = np.geomspace(1, 100, 21)
    y = xr.DataArray(
        np.stack([x, x**-3.0])[None], {"time": x, "word": ["a", "b"]}, ("seed", "word", "time")
    )
    slopes = log_slope(y.time, y, (1, 100))
    assert slopes.dims == ("seed", "word")
    np.testing.assert_allclose(slopes.sel(word="b"), [-3.0])


def test_onset_of_a_known_curve():
    """A logistic curve centred at τ = 7 ends at 4: half of it at 7, level 1 at 7 − log 3."""
    time = np.linspace(0, 40, 4001)
    curve = 4 / (1 + np.exp(7 - time))
    score = xr.DataArray(
        np.stack([curve, -curve, 0.2 * curve], 1), {"step": np.arange(4001)}, ("step", "word")
    )
    half = onset_time(score, time=time)
    np.testing.assert_allclose(half, [7, np.nan, 7], atol=1e-4)
    np.testing.assert_allclose(
        onset_time(score, level=1.0, time=time), [7 - np.log(3), np.nan, np.nan], atol=1e-4
    )
    np.testing.assert_allclose(onset_time(score)[0], 700, atol=1e-2)
    level = xr.DataArray([1.0, 1.0, 0.2], dims="word")
    np.testing.assert_allclose(
        onset_time(score, level=level, time=time)[2], 7 - np.log(3), atol=1e-4
    )
    coarse = onset_time(score.assign_coords(time=("step", time)).isel(step=slice(None, None, 50)))
    np.testing.assert_allclose(coarse[0], 7, atol=0.01)


# ---- mistakes ----

MODEL = WordAttentionConfig(words=6, classes=2).init(jax.random.key(0))
GOOD = {"words": [0, 1], "labels": [0, 1], "frequency": 0.5, "others": 20}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"words": [0, 6]}, "0..5"),
        ({"words": []}, "one or more"),
        ({"labels": [0, 2]}, "expected classes of the head, 0..1"),
        ({"labels": [0, 1, 1]}, "each of the 2 words"),
        ({"labels": [0.0, 1.0]}, "class number"),
        ({"frequency": [0.5, 0.0]}, "above 0"),
        ({"others": -1}, "≥ 0"),
        ({"others": [1, 2, 3]}, "2 words"),
        ({"names": ["one"]}, "1 names for 2 words"),
    ],
)
def test_wrong_words_are_refused(wrong, says):
    with pytest.raises(AttnlabError, match=says):
        ReducedModel.of(MODEL, **(GOOD | wrong))


def test_a_trained_query_and_an_idle_model_are_refused():
    for trained, says in ((("keys", "query"), "leave the query frozen"), ((), "no part")):
        model = WordAttentionConfig(words=6, classes=2, trained=trained).init(jax.random.key(0))
        with pytest.raises(AttnlabError, match=says):
            ReducedModel.of(model, **GOOD)


def test_wrong_times_steps_and_windows_are_refused():
    model = ReducedModel.of(MODEL, **GOOD)
    for times in ([], [1.0, 1.0], [-1.0, 2.0], [0.0], [[1.0]], [np.inf]):
        with pytest.raises(AttnlabError, match="times"):
            reduced_flow(model, times)
    with pytest.raises(AttnlabError, match="rtol=0"):
        reduced_flow(model, [1.0], rtol=0.0)
    with pytest.raises(AttnlabError, match="steps=-1"):
        reduced_descent(model, -1)
    run = reduced_descent(model, 2, when=Every(1)).swap_dims(step="time")
    with pytest.raises(AttnlabError, match="at least 3"):
        loss_exponent(run.loss)
    with pytest.raises(AttnlabError, match="above 1"):
        score_rate(run.score, window=(0.5, 2.0))
    with pytest.raises(AttnlabError, match="not positive"):
        log_slope([0.0, 1.0, 2.0], [1.0, 2.0, 3.0], (0, 2))
    with pytest.raises(AttnlabError, match="'time' or 'step'"):
        onset_time(run.score.rename(time="row"))
    with pytest.raises(AttnlabError, match="each of 3 rows"):
        onset_time(run.score, time=[1.0])
