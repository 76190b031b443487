"""Learning curves on a teacher: against direct fits, and models that are written out."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.models import (
    TEACHER_KINDS,
    BaselineConfig,
    KnownAttentionConfig,
    KnownWeightsConfig,
    make_teacher,
    trained_parts,
)
from attnlab.papers.liu2021.curve_runs import (
    Start,
    Student,
    as_it_is,
    call,
    fit_curve,
    fit_samples,
    make_student,
)
from attnlab.papers.liu2021.curve_settings import STUDENTS, TEACHERS, FitSettings, SampleSettings
from attnlab.sweeps import RunContext

pytestmark = pytest.mark.slow

_HERE = RunContext(0, 0, "0" * 16)
_SHORT = FitSettings(steps=60, batch_size=16, dtype="float64")


def _teacher(kind="static-mask", **settings):
    return make_teacher(kind, key=jax.random.key(3), **settings)


@pytest.mark.parametrize("kind", ["static-mask", "gate", "moving-block"])
def test_known_attention_is_the_head_on_attended_inputs(kind):
    """Masking the inputs once must be the model of docs/theory.md#b1, whose mask is a part."""
    teacher = _teacher(kind, features=8, relevant=2)
    whole = Student(
        Start(KnownAttentionConfig(BaselineConfig(8, 8), teacher.model.mask)), as_it_is, call
    )
    key = jax.random.key(5)
    fast, slow = (
        fit_curve(teacher, student, replace(_SHORT, sizes=(8, 40)), key=key).error.values
        for student in (make_student("known-attention", teacher), whole)
    )
    np.testing.assert_allclose(fast, slow, rtol=1e-9)


def test_known_weights_that_come_with_the_data_are_the_teachers():
    teacher = _teacher("multi-layer", depth=2)
    student = make_student("known-weights", teacher, depth=2)
    x, _ = teacher.sample(5, key=jax.random.key(1))
    given = student.given(teacher, x)
    model = student.start(jax.random.key(2))
    assert isinstance(student.start, Start)
    asked = KnownWeightsConfig(student.start.config.base).init(
        jax.random.key(2), teacher=teacher.model
    )
    for k in range(5):
        sample = jax.tree.map(lambda leaf, k=k: leaf[k], given)
        np.testing.assert_allclose(student.answer(model, sample), asked(x[k]), rtol=1e-9)
    assert jax.tree.leaves(eqx.filter(model, trained_parts(model)))
    with pytest.raises(AttnlabError, match="no teacher"):
        model(x[0])
    wrong = make_student("wrong-weights", teacher, depth=2).given(teacher, x)[1]
    np.testing.assert_array_equal(wrong[:, :, 1:], given[1][:, :, :-1])


def test_a_vacuous_mask_is_the_baseline_to_the_last_bit():
    settings = SampleSettings(
        features=8, sizes=(8, 32), steps=50, batch_size=8, test_points=100, valid_points=50
    )
    found = {
        name: fit_samples(SampleSettings(**{**vars(settings), "student": name}), _HERE)
        for name in ("baseline", "vacuous-mask", "wrong-mask")
    }
    np.testing.assert_array_equal(found["baseline"].error, found["vacuous-mask"].error)
    assert not np.array_equal(found["baseline"].error, found["wrong-mask"].error)
    # A vacuous mask changes nothing, so that nothing is predicted; the wrong one hides as much as
    # the true one.
    np.testing.assert_allclose(found["vacuous-mask"].predicted, 1.0)
    assert float(found["wrong-mask"].predicted.sel(predictor="mean_square")) == pytest.approx(
        2.0, rel=0.1
    )


def test_the_error_is_that_of_the_truth():
    """A student that always answers zero has E g²/Var g."""

    class Zero(eqx.Module):
        unused: jax.Array

        def __call__(self, x):
            return 0 * self.unused * x[0]

    teacher, key = _teacher(features=8, relevant=2), jax.random.key(7)
    student = Student(lambda _: Zero(jnp.ones(())), as_it_is, call)
    short = replace(_SHORT, sizes=(8,), test_points=3000)
    found = fit_curve(teacher, student, short, key=key)
    _, truth = teacher.sample(3000, key=jax.random.split(key, 4)[2], noisy=False)
    assert float(found.error[0]) == pytest.approx(
        float(jnp.mean(truth**2) / jnp.var(truth)), rel=1e-9
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_fitted_by_cross_entropy(classes):
    settings = SampleSettings(
        teacher="static-mask",
        student="known-attention",
        features=8,
        relevant=2,
        classes=classes,
        label_noise=0.0,
        sizes=(8, 400),
        steps=300,
        test_points=500,
        valid_points=100,
    )
    found = fit_samples(settings, _HERE)
    assert float(found.error[1]) < 0.15 < float(found.error[0]) + 0.1
    assert (found.error <= 1).all()


def test_the_teachers_that_have_a_name_are_those_that_can_be_made():
    assert set(TEACHERS) == set(TEACHER_KINDS)


def test_every_named_student_can_be_fitted():
    fitted = set()
    for kind in ("static-mask", "self-attention"):
        for name in STUDENTS:
            settings = SampleSettings(
                teacher=kind,
                student=name,
                features=8,
                relevant=2,
                depth=1,
                sizes=(8,),
                steps=3,
                test_points=20,
                valid_points=10,
            )
            try:
                found = fit_samples(settings, _HERE)
            except AttnlabError as error:
                assert "the students are" in str(error)  # noqa: PT017
                continue
            assert np.isfinite(found.error).all()
            fitted.add(name)
    assert fitted == set(STUDENTS)


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": ()},
        {"sizes": (8, 8)},
        {"classes": 1},
        {"dtype": "int"},
        {"steps": 0},
        {"batch_size": 0},
        {"test_points": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused(changes):
    with pytest.raises(AttnlabError):
        SampleSettings(**changes)
