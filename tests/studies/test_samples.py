"""Learning curves of students: against direct fits, made-up curves with known answers, and models
of one's own.
"""

import json
import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from attnlab import AttnlabError
from attnlab.complexity import Question, end_values, tabulate
from attnlab.models import (
    Baseline,
    BaselineConfig,
    KnownAttentionConfig,
    KnownWeightsConfig,
    make_teacher,
    trained_parts,
)
from attnlab.studies import (
    SampleSettings,
    explore_samples,
    fit_curve,
    fit_samples,
    measure_samples,
    read_exploration,
)
from attnlab.studies._students import STUDENTS, Start, Student, as_it_is, call, make_student
from attnlab.sweeps import RunContext
from attnlab.training import Recipe

_HERE = RunContext(0, 0, "0" * 16)
_SHORT = Recipe(60, 16)


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
        fit_curve(teacher, student, [8, 40], key=key, recipe=_SHORT, dtype="float64").error.values
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
    found = fit_curve(
        teacher, student, [8], key=key, recipe=_SHORT, test_points=3000, dtype="float64"
    )
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


def _curve(n, scale, seeds=8):
    sizes = np.asarray(n, float)
    error = scale / sizes[None] * np.linspace(0.9, 1.1, seeds)[:, None]
    part = xr.DataArray(error, dims=("seed", "size"), coords={"seed": range(seeds), "size": sizes})
    return xr.Dataset({"error": part, "settling": 0 * part, "train_loss": part, "valid_loss": part})


def test_answers_of_made_up_curves_are_the_known_ones():
    """error = c·p/n for one student and c/n for the other: n(ε) = c·p/ε, exponents 1 and 0, ratio
    p.
    """
    n = np.geomspace(4, 4096, 41)
    arms = {("baseline", p): _curve(n, 1.0 * p) for p in (4, 16, 64)}
    arms |= {("known", p): _curve(n, 1.0) for p in (4, 16, 64)}
    found = tabulate(arms, Question(0.1), further=True)
    np.testing.assert_allclose(found.needed.sel(student="baseline"), [40, 160, 640], rtol=0.02)
    np.testing.assert_allclose(found.ratio.sel(student="known"), [4, 16, 64], rtol=0.03)
    np.testing.assert_allclose(found.exponent, [1, 0], atol=0.01)
    assert set(found.verdict.sel(student="known").values.tolist()) == {"saves"}
    assert found.verdict.sel(student="baseline").values.tolist() == ["", "", ""]
    assert (found.unsettled == 0).all()
    np.testing.assert_allclose(
        found.extrapolated.sel(student="baseline"), [40, 160, 640], rtol=0.05
    )
    ends = end_values(found, "ratio", student="known", features=16)
    assert ends[1] <= ends[0] <= ends[2]
    assert (ends.attrs["kind"], ends.attrs["seeds"], ends.attrs["asked"]) == ("exact", 8, 8)
    np.testing.assert_allclose(list(ends.attrs["by_seed"].values()), float(ends[0]), rtol=0.05)


def test_what_a_grid_does_not_reach_is_never_an_infinite_ratio():
    arms = {
        ("baseline", 0): _curve([4, 8, 16], 100.0),
        ("good", 0): _curve([4, 8, 16], 1.0),
        ("best", 0): _curve([4, 8, 16], 0.01),
    }
    found = tabulate(arms, Question(0.1), dim="setting").isel(setting=0)
    assert found.needed_kind.values.tolist() == ["not reached", "crossed", "already met"]
    assert found.ratio_kind.values.tolist() == ["not run", "at least", "at least"]
    assert np.isfinite(found.ratio[1:]).all()
    assert float(found.ratio[1]) == pytest.approx(16 / float(found.needed[1]))


def test_fits_that_still_fall_are_counted():
    data = _curve([8, 16], 1.0)
    data["settling"] = data.settling + 0.2
    data["train_loss"] = xr.where(data.size == 8, 1e-6, data.train_loss)
    found = tabulate(
        {("a", 0): data, ("b", 0): _curve([8, 16], 1.0)}, Question(0.1, against="a"), dim="s"
    )
    assert found.unsettled.values.ravel().tolist() == [
        0.5,
        0.0,
    ]  # a loss of 1e-6 has nowhere to fall


class Gated(eqx.Module):
    """Attention that cannot help where every feature counts: a learned weight per feature before
    the head.
    """

    logits: jax.Array
    head: Baseline

    def __call__(self, x):
        return self.head(x * jax.nn.softmax(self.logits) * x.shape[0])


def gated(key, shape):
    return Gated(jnp.zeros(shape), BaselineConfig(shape[0], 8).init(key))


def test_a_useless_attention_model_of_ones_own_has_no_advantage():
    told = []
    found = measure_samples(
        lambda key: make_teacher("dense", key=key, features=6),
        {"plain": "baseline", "gated": gated},
        level=0.2,
        sizes=[16, 32, 64, 128],
        seeds=8,
        recipe=Recipe(500),
        progress=told.append,
    )
    assert found.verdict.sel(student="gated").item() in ("no advantage", "costs")
    assert "no advantage" in found.said.sel(student="gated").item()
    assert len(told) == 16


class Doubled:
    """A generator of one's own: y = 2·x₀, without noise."""

    def sample(self, n, *, key, noisy=True):
        x = np.random.default_rng(int(jax.random.bits(key)) % 2**32).standard_normal((n, 3))
        return x, 2 * x[:, 0]


def test_a_generator_of_ones_own():
    def linear(key, shape):
        return eqx.nn.Linear(shape[0], "scalar", use_bias=False, key=key)

    found = measure_samples(
        lambda key: Doubled(),
        {"linear": linear},
        level=0.01,
        sizes=[4, 8, 32],
        seeds=2,
        recipe=Recipe(400),
        step_sizes=[0.05],
    )
    assert float(found.error.sel(size=32).max()) < 0.01
    with pytest.raises(AttnlabError, match="is none of the students"):
        measure_samples(lambda key: Doubled(), {"linear": linear}, against="other")
    with pytest.raises(AttnlabError, match="made for attnlab's teachers"):
        measure_samples(lambda key: Doubled(), {"baseline": "baseline"}, sizes=[4], seeds=1)


def test_explore_stores_and_runs_a_changed_file_anew(tmp_path):
    file = tmp_path / "mine.py"
    text = textwrap.dedent(
        """
        import equinox as eqx

        def mine(key, shape):
            return eqx.nn.MLP(shape[0], "scalar", 4, 1, key=key)
        """
    )
    file.write_text(text)
    own = f"{file}:mine"
    settings = SampleSettings(relevant=2, sizes=(8, 32), steps=30, test_points=50, valid_points=20)
    call_it = {
        "students": ("baseline", own),
        "features": (8,),
        "seeds": 2,
        "processes": 0,
        "progress": False,
    }
    done = explore_samples(settings, tmp_path / "out", **call_it)
    assert done.ok
    table = done.data["samples"]
    assert table.student.values.tolist() == ["baseline", own]
    again = read_exploration(tmp_path / "out")
    assert again.kind == "samples"
    assert np.array_equal(again.data["samples"].error, table.error)
    assert again.about == json.loads(json.dumps(done.about))
    before = len(list((tmp_path / "out" / "runs").iterdir()))
    explore_samples(settings, tmp_path / "out", **call_it)
    assert len(list((tmp_path / "out" / "runs").iterdir())) == before
    file.write_text(text.replace("4, 1", "5, 1"))
    explore_samples(settings, tmp_path / "out", **call_it)
    assert len(list((tmp_path / "out" / "runs").iterdir())) == before + 1


@pytest.mark.parametrize(
    ("changes", "more", "said"),
    [
        ({"teacher": "statik-mask"}, {}, "no such teacher"),
        ({}, {"students": ("baseline", "known-weights")}, "the students are"),
        ({}, {"students": ("baseline", "nowhere.py:mine")}, "does not exist"),
        ({}, {"students": ("baseline", "baseline")}, "each once"),
        ({}, {"against": "other"}, "none of the students"),
        ({}, {"level": 0.0}, "above 0"),
        ({}, {"seeds": 0}, "at least 1"),
        ({"teacher": "dense"}, {}, "no mask to know"),
    ],
)
def test_mistakes_are_told_before_any_run(tmp_path, changes, more, said):
    with pytest.raises(AttnlabError, match=said):
        explore_samples(SampleSettings(**changes), tmp_path, **more)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": ()},
        {"sizes": (8, 8)},
        {"classes": 1},
        {"dtype": "int"},
        {"steps": 0},
        {"test_points": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused(changes):
    with pytest.raises(AttnlabError):
        SampleSettings(**changes)
