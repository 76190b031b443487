"""Variants of attention on teachers: against equations written out, and paired from
seed to seed.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.models import make_normaliser
from attnlab.papers.liu2021 import variant_runs
from attnlab.papers.liu2021.variant_runs import (
    AttendingTeacher,
    StudentStart,
    VariantLoss,
    VariantMeasure,
    answer_words,
    fit_variant,
    onset_step,
    weigh_words,
    word_source,
)
from attnlab.papers.liu2021.variant_settings import Variant, VariantSettings
from attnlab.sweeps import RunContext

pytestmark = pytest.mark.slow

CONTEXT = RunContext(0, 0, "0" * 16)
SMALL = VariantSettings(
    sizes=(32, 128), steps=150, words=6, embedding_dim=4, hidden=6, test_points=200, valid_points=60
)


@pytest.mark.parametrize(
    "name", ["softmax+entropy", "softmax+l2:1", "softmax+entropy:-1", "softmax+prior:x", "hardmax"]
)
def test_a_wrong_variant_is_refused(name):
    with pytest.raises(AttnlabError, match="expected"):
        Variant.of(name)
    with pytest.raises(AttnlabError, match="expected"):
        VariantSettings(variant=name)


@pytest.mark.parametrize("relevant", [1, 3, 6])
def test_the_teacher_attends_to_the_words_that_its_direction_ranks_first(relevant):
    source = word_source(0, replace(SMALL, relevant=relevant))
    drawn = source.draw(50, jax.random.key(1), False, "float64")
    direction, head = np.asarray(source.model.direction), source.model.head
    assert np.count_nonzero(direction) == 2
    assert np.linalg.norm(direction) == pytest.approx(1)
    for x, given, y in zip(
        *map(np.asarray, (drawn["x"]["words"], drawn["x"]["given"], drawn["y"])), strict=True
    ):
        chosen = sorted(range(6), key=lambda z: -float(direction @ x[:, z]))[:relevant]
        expected = [1 / relevant if z in chosen else 0.0 for z in range(6)]
        np.testing.assert_allclose(given, expected, rtol=1e-12)
        mean = np.mean([x[:, z] for z in chosen], axis=0)
        assert y * float(source.teacher.deviation) == pytest.approx(
            float(head(jnp.asarray(mean))), rel=1e-9
        )
    large = source.draw(20_000, jax.random.key(2), False, "float64")["y"]
    assert float(np.std(large)) == pytest.approx(1, abs=0.03)


def test_noise_is_added_to_the_same_samples_and_smaller_samples_are_the_start_of_larger_ones():
    source = word_source(0, replace(SMALL, noise_std=0.5))
    quiet, noisy = (source.draw(4000, jax.random.key(1), each, "float64") for each in (False, True))
    np.testing.assert_array_equal(quiet["x"]["words"], noisy["x"]["words"])
    assert float(np.std(noisy["y"] - quiet["y"])) == pytest.approx(0.5, rel=0.05)
    few = source.draw(30, jax.random.key(1), True, "float64")
    np.testing.assert_array_equal(few["y"], noisy["y"][:30])


@pytest.mark.parametrize("normaliser", ["softmax:0.5", "sparsemax", "top2", "uniform"])
def test_the_student_is_the_equation_word_by_word(normaliser):
    student = StudentStart(normaliser, 4, 6, query_std=1.0)(jax.random.key(3))
    x = np.random.default_rng(0).normal(size=(4, 5))
    logits = [sum(float(student.query[i]) * x[i, z] for i in range(4)) for z in range(5)]
    weights = np.asarray(make_normaliser(normaliser)(jnp.asarray(logits)))
    context = sum(weights[z] * x[:, z] for z in range(5))
    hidden = np.log1p(np.exp(4 * (context @ np.asarray(student.head.w1)))) / 4
    assert float(student(jnp.asarray(x))) == pytest.approx(
        float((hidden @ np.asarray(student.head.w2))[0]), rel=1e-9
    )


def test_penalties_are_those_of_their_names():
    student = StudentStart("softmax", 4, 6, query_std=1.0)(jax.random.key(3))
    batch = word_source(0, SMALL).draw(8, jax.random.key(1), True, "float64")
    plain = float(VariantLoss(answer_words, weigh_words)(student, batch))
    residual = np.asarray(jax.vmap(student)(batch["x"]["words"]) - batch["y"])
    assert plain == pytest.approx(np.mean(residual**2))
    weights = np.asarray(jax.vmap(student.attention)(batch["x"]["words"]))
    given = np.asarray(batch["x"]["given"])
    expected = {
        "entropy": np.mean(-np.sum(weights * np.log(weights), axis=1)),
        "l1": np.abs(np.asarray(student.query)).sum(),
        "prior": np.mean(np.sum((weights - given) ** 2, axis=1)),
        "wrong-prior": np.mean(np.sum((weights - given[:, [5, 0, 1, 2, 3, 4]]) ** 2, axis=1)),
    }
    for penalty, value in expected.items():
        found = float(VariantLoss(answer_words, weigh_words, penalty, 0.3)(student, batch))
        assert found - plain == pytest.approx(0.3 * value, rel=1e-9), penalty


def test_what_is_measured_of_attention():
    student = StudentStart("sparsemax", 4, 6, query_std=1.0)(jax.random.key(3))
    batch = word_source(0, SMALL).draw(40, jax.random.key(1), False, "float64")
    found = VariantMeasure(answer_words, weigh_words, "error")(
        student, {"valid": batch, "test": batch}
    )
    weights = np.asarray(jax.vmap(student.attention)(batch["x"]["words"]))
    logs = np.log(np.where(weights > 0, weights, 1))
    assert float(found["entropy"]) == pytest.approx(float(np.mean(-np.sum(weights * logs, axis=1))))
    right = np.asarray(batch["x"]["given"]) > 0
    assert float(found["attention"]) == pytest.approx(float(weights[right].sum() / 40))
    wrong = np.mean(
        (np.asarray(jax.vmap(student)(batch["x"]["words"])) - np.asarray(batch["y"])) ** 2
    )
    assert float(found["error"]) == pytest.approx(float(wrong / np.var(batch["y"])))


def test_variants_of_a_seed_see_the_same_samples_and_starts(monkeypatch):
    seen = {}

    def look(learner, data, checks, s, *, key):
        seen[name] = data, checks, key, learner.start(key)
        raise InterruptedError

    monkeypatch.setattr(variant_runs, "learning_curve", look)
    for name in ("softmax", "sparsemax", "softmax+prior:1"):
        with pytest.raises(InterruptedError):
            fit_variant(replace(SMALL, variant=name, seed=3), CONTEXT)
    name = "longer"
    with pytest.raises(InterruptedError):
        fit_variant(replace(SMALL, seed=3, sizes=(8, 300)), CONTEXT)
    data, checks, key, start = seen["softmax"]
    for other, other_checks, other_key, other_start in seen.values():
        np.testing.assert_array_equal(other["y"][:128], data["y"])
        np.testing.assert_array_equal(other_checks["test"]["y"], checks["test"]["y"])
        np.testing.assert_array_equal(jax.random.key_data(other_key), jax.random.key_data(key))
        np.testing.assert_array_equal(other_start.query, start.query)
        np.testing.assert_array_equal(other_start.head.w1, start.head.w1)


def test_a_variant_learns_and_its_course_is_told():
    found = fit_variant(replace(SMALL, course=True, sizes=(32, 512), steps=600), CONTEXT)
    assert float(found.error[1]) < float(found.error[0])
    assert float(found.attention[1]) > 0.4  # of six words one matters
    assert found.course_error.dims == ("step",)
    assert found.step.values[[0, -1]].tolist() == [0, 600]
    assert 0 < float(found.onset) < 600
    assert float(found.sharpness) > 0
    again = fit_variant(replace(SMALL, sizes=(32, 512), steps=600), CONTEXT)
    np.testing.assert_array_equal(again.error, found.error)


def test_onset_is_where_half_of_the_way_is_gone_whichever_way():
    steps = np.array([0, 10, 20, 40])
    assert onset_step(steps, np.array([0.0, 0.0, 0.8, 0.8]), rising=True) == pytest.approx(15)
    assert onset_step(steps, np.array([1.0, 0.5, 0.2, 0.0]), rising=False) == pytest.approx(10)
    assert np.isnan(onset_step(steps, np.array([1.0, np.nan, 0.2, np.nan]), rising=False))
    assert np.isnan(onset_step(steps, np.array([1.0, 3.0, 1.0, 1.01]), rising=True))
    assert np.isnan(onset_step(steps, np.array([1.0, 0.5, 0.2, 0.0]), rising=True))


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(AttnlabError, match=r"expected 1 \(hard\) to 6"):
        replace(SMALL, relevant=7)
    with pytest.raises(AttnlabError, match="increasing"):
        replace(SMALL, sizes=(64, 64))
    with pytest.raises(AttnlabError, match="expected 1 to 4"):
        replace(SMALL, informative=5)


def test_a_teacher_breaks_ties_as_top_k_does():
    teacher = AttendingTeacher(
        jnp.array([1.0]),
        word_source(0, replace(SMALL, embedding_dim=1, informative=1)).model.head,
        2,
    )
    assert teacher.attention(jnp.array([[2.0, 1.0, 1.0]])).tolist() == [0.5, 0.5, 0.0]
