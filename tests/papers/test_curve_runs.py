"""Learning curves on a teacher: against direct fits, and models that are written out."""

import re
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from attnlab import AttnlabError
from attnlab.complexity import Question, tabulate
from attnlab.models import (
    TEACHER_KINDS,
    BaselineConfig,
    KnownAttentionConfig,
    KnownWeightsConfig,
    make_teacher,
    trained_parts,
)
from attnlab.papers.liu2021.curve_runs import (
    Attended,
    Start,
    Student,
    _widened,
    as_it_is,
    call,
    fit_curve,
    fit_samples,
    make_learner,
    make_source,
    make_student,
)
from attnlab.papers.liu2021.curve_settings import STUDENTS, TEACHERS, FitSettings, SampleSettings
from attnlab.papers.liu2021.point_runs import find_points
from attnlab.papers.liu2021.point_settings import PointSettings
from attnlab.sweeps import RunContext

pytestmark = pytest.mark.slow

_HERE = RunContext(0, 0, "0" * 16)
_SHORT = FitSettings(steps=60, batch_size=16, dtype="float64")


def _teacher(kind="static-mask", **settings):
    return make_teacher(kind, key=jax.random.key(3), **settings)


@pytest.mark.parametrize("p", [8, 12])
@pytest.mark.parametrize("kind", ["static-mask", "gate", "moving-block"])
def test_known_attention_is_the_head_on_attended_inputs(kind, p):
    """Masking the inputs once, and leaving out what is always zero, must be the model of
    docs/theory.md#b1, whose mask is a part.
    """
    teacher = _teacher(kind, features=p, relevant=2)
    whole = Student(
        Start(KnownAttentionConfig(BaselineConfig(p, 8), teacher.model.mask)), as_it_is, call
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
    arms = {(name, 8): found[name].expand_dims(seed=8) for name in ("baseline", "vacuous-mask")}
    level = float(found["baseline"].error.mean())
    table = tabulate(arms, Question(level)).sel(student="vacuous-mask", features=8)
    assert (float(table.ratio_low), float(table.ratio), float(table.ratio_high)) == (1, 1, 1)
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


def test_an_incomplete_mask_loses_the_last_relevant_features():
    teacher = _teacher(features=12, relevant=4)
    x, _ = teacher.sample(6, key=jax.random.key(1))
    given = make_student("known-attention", teacher, kept=0.5).given(teacher, x)
    np.testing.assert_array_equal(given[:, :2], x[:, :2])
    assert not given[:, 2:].any()
    gate = make_student("known-attention", _teacher("gate", features=12), kept=0.75).given
    assert isinstance(gate, Attended)
    assert getattr(gate.mask, "relevant", None) == (0, 1, 2)
    for kind, kept in (("static-mask", 0.1), ("moving-block", 0.5)):
        with pytest.raises(AttnlabError, match="kept="):
            make_student("known-attention", _teacher(kind, features=12, relevant=4), kept=kept)


def _bowl(best):
    """Fits whose validation loss is smallest at ``best`` = (log₂ step, log₃ decay), in this grid."""

    def fit(step, decay):
        place = np.log2(step), np.log(decay) / np.log(3)
        loss = sum((a - b) ** 2 for a, b in zip(place, best, strict=True))
        return xr.Dataset(
            {"valid_loss": (("size", "step_size", "weight_decay"), [[[loss]]])},
            {"size": [8], "step_size": [step], "weight_decay": [decay]},
        )

    return fit


@pytest.mark.parametrize(
    ("best", "widen", "found", "at_end"),
    [
        ((0, 0), 2, (1.0, 1.0), False),  # within the grid: nothing is added
        ((3, 0), 1, (4.0, 1.0), True),
        ((3, 0), 2, (8.0, 1.0), True),  # the best, but nothing beyond it was tried
        ((3, 0), 3, (8.0, 1.0), False),
        ((-2, 2), 2, (0.25, 9.0), True),  # a corner
        ((-2, 2), 3, (0.25, 9.0), False),
    ],
)
def test_a_grid_goes_on_where_its_end_is_chosen(best, widen, found, at_end):
    settings = FitSettings(
        sizes=(8,), step_sizes=(0.5, 1.0, 2.0), weight_decays=(1 / 3, 1.0, 3.0), widen=widen
    )
    chosen = _widened(_bowl(best), settings)
    place = float(chosen.step_size[0]), float(chosen.weight_decay[0])
    assert place == pytest.approx(found)
    assert bool(chosen.at_end[0]) is at_end


def test_wrong_labels_decide_before_the_loss_where_they_are_counted():
    def fit(step, decay):
        columns = {"valid_loss": decay, "valid_error": abs(step - 1.0)}
        grid = ("size", "step_size", "weight_decay")
        return xr.Dataset(
            {name: (grid, [[[value]]]) for name, value in columns.items()},
            {"size": [8], "step_size": [step], "weight_decay": [decay]},
        )

    settings = FitSettings(
        sizes=(8,), step_sizes=(0.5, 1.0, 2.0), weight_decays=(0.0, 0.1), widen=2
    )
    chosen = _widened(fit, settings)
    assert (float(chosen.step_size[0]), float(chosen.weight_decay[0])) == (1.0, 0.0)
    assert not chosen.at_end[0]  # nothing lies below a decay of zero


def test_widening_fits_the_same_models_and_a_run_alone_is_the_run_in_a_batch():
    teacher, key = _teacher(features=12, relevant=2), jax.random.key(2)
    student = make_student("known-attention", teacher)
    plain = replace(_SHORT, sizes=(8, 40), weight_decays=(0.1,))
    whole = fit_curve(teacher, student, plain, key=key)
    singly = fit_curve(teacher, student, replace(plain, widen=2), key=key)
    np.testing.assert_array_equal(whole.error, singly.error)
    alone = fit_curve(teacher, student, replace(plain, widen=2, sizes=(40,), drawn=40), key=key)
    np.testing.assert_array_equal(singly.error[1:], alone.error)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FitSettings(widen=-1), "widen=-1: expected at least 0"),
        (lambda: SampleSettings(sharpness=-1.0), "sharpness=-1.0: expected a number above 0"),
        (lambda: SampleSettings(kept=0.0), "kept=0.0: expected a share above 0 and up to 1"),
        (
            lambda: PointSettings(model="self-attention", inputs="uniform"),
            "inputs='uniform', sharpness=4 with model='self-attention': other than 'normal'",
        ),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, message):
    with pytest.raises(AttnlabError, match=re.escape(message)):
        make()


def test_the_known_gate_has_minima_under_other_inputs_and_activations():
    """Another distribution is another problem, and the error at the found minimum is small."""
    settings = PointSettings(model="known-attention", starts=1, scales=(1.0,), test_points=500)
    usual, other = (
        find_points(replace(settings, inputs=inputs), _HERE) for inputs in ("normal", "rademacher")
    )
    assert usual.kind.values.tolist() == other.kind.values.tolist() == ["minimum"]
    assert float(other.error[0]) < 0.1
    assert float(usual.error[0]) != float(other.error[0])


def test_a_sharpness_of_zero_is_relu():
    settings = SampleSettings(sharpness=0.0, features=8)
    source: Any = make_source(settings, jax.random.key(0))
    start: Any = make_learner(settings, source, (8,)).start
    assert source.model.head.sharpness == start.config.sharpness == np.inf
