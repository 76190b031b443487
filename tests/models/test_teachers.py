import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.models import (
    TEACHER_ATTENTION,
    TEACHER_KINDS,
    Baseline,
    BaselineConfig,
    Frozen,
    Gate,
    KnownWeights,
    LabelTeacher,
    MovingBlock,
    StaticMask,
    Teacher,
    make_label_teacher,
    make_teacher,
)

KEY = jax.random.key(0)


@pytest.mark.parametrize("kind", TEACHER_KINDS)
def test_a_teacher_has_unit_variance_and_the_noise_it_states(kind):
    teacher = make_teacher(kind, key=KEY)
    x, y = teacher.sample(40000, key=jax.random.key(1))
    truth = teacher.truth(x)
    assert float(jnp.var(truth)) == pytest.approx(1, abs=0.06)
    # The best predictor's error on noisy labels, and on noiseless ones.
    assert float(jnp.mean((y - truth) ** 2)) == pytest.approx(teacher.bayes_error, rel=0.03)
    assert float(abs(jnp.mean(y - truth))) < 0.005
    assert teacher.bayes_error == pytest.approx(0.04)
    clean_x, clean_y = teacher.sample(40000, key=jax.random.key(1), noisy=False)
    assert (clean_x == x).all()
    assert (clean_y == truth).all()
    assert float(jnp.mean(x)) == pytest.approx(0, abs=0.01)
    assert float(jnp.var(x)) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("kind", TEACHER_KINDS)
def test_the_truth_is_the_model_input_by_input_and_alike_for_alike_keys(kind):
    teacher, again, other = (make_teacher(kind, key=jax.random.key(k)) for k in (0, 0, 1))
    x, y = teacher.sample(3, key=jax.random.key(1), noisy=False)
    assert np.allclose(y, [teacher.model(one) for one in x], rtol=0, atol=1e-12)
    assert eqx.tree_equal(teacher, again)
    assert not np.allclose(y, other.truth(x))


def test_the_deviation_is_the_one_known_in_closed_form():
    # relu(x₁ + x₂) has variance 2·(1/2 − 1/2π).
    model = Baseline(jnp.ones((2, 1)), jnp.ones((1, 1)), math.inf)
    teacher = Teacher.of(model, key=KEY, shape=(2,), noise_std=0.0)
    assert float(teacher.deviation) == pytest.approx(math.sqrt(1 - 1 / math.pi), rel=0.01)
    x = jnp.asarray([[3.0, 1.0]])
    assert np.allclose(teacher.truth(x), 4 / teacher.deviation, rtol=0, atol=1e-12)
    assert teacher.bayes_error == 0


class Cube(eqx.Module):
    def __call__(self, x):
        return x[0] ** 3


def test_any_module_can_teach():
    teacher = Teacher.of(Cube(), key=KEY, shape=(2,))
    assert float(teacher.deviation) == pytest.approx(math.sqrt(15), rel=0.05)
    assert np.allclose(
        teacher.truth(jnp.asarray([[2.0, 5.0]])), 8 / teacher.deviation, rtol=0, atol=1e-12
    )


def test_mask_teachers_follow_the_protocol():
    teacher = make_teacher("static-mask", key=KEY, features=100, relevant=(3, 70), hidden=6)
    assert teacher.model.mask == StaticMask((3, 70), 100)
    assert teacher.model.head.w1.shape == (100, 6)
    assert float(teacher.model.head.w1.std()) == pytest.approx(2 / math.sqrt(2), rel=0.1)
    assert np.allclose(teacher.model.head.w2[:, 0] * teacher.deviation, [1, -1, 1, -1, 1, -1])
    assert make_teacher("gate", key=KEY).model.mask == Gate((0, 1, 2, 3), 16)
    assert make_teacher("moving-block", key=KEY, features=9, relevant=2).model.mask == MovingBlock(
        2, 9
    )
    assert make_teacher("dense", key=KEY, features=9).model.w1.shape == (9, 4)


def test_an_irrelevant_feature_changes_nothing_and_a_relevant_one_does():
    teacher = make_teacher("static-mask", key=KEY, features=8, relevant=(1, 6))
    x = np.random.default_rng(0).standard_normal((50, 8))
    for j in range(8):
        moved = x.copy()
        moved[:, j] += 1
        assert bool((teacher.truth(moved) == teacher.truth(x)).all()) == (j not in (1, 6))


@pytest.mark.parametrize(
    ("kind", "settings"), [("self-attention", {}), ("multi-layer", {"depth": 3})]
)
def test_known_weights_with_the_teachers_parameters_have_no_error(kind, settings):
    teacher = make_teacher(kind, key=KEY, **settings)
    model = teacher.model
    layers = [model.layer] if kind == "self-attention" else model.layers
    student = KnownWeights(Frozen(model), tuple(layer.w_value for layer in layers), model.head)
    x, y = teacher.sample(20, key=jax.random.key(1), noisy=False)
    assert np.allclose(jax.vmap(student)(x), y, rtol=0, atol=1e-12)
    assert student(x[0]) == model(x[0])


def test_matrix_teachers_take_their_sizes():
    sizes = dataclasses.replace(TEACHER_ATTENTION, embedding_dim=2, words=3, value_dim=2, hidden=3)
    for kind in ("self-attention", "mlp", "multi-layer"):
        teacher = make_teacher(kind, key=KEY, attention=sizes)
        assert teacher.sample(5, key=KEY)[0].shape == (5, 2, 3)
    assert len(make_teacher("multi-layer", key=KEY, depth=3, residual=False).model.layers) == 3


@pytest.mark.parametrize(
    "teacher",
    [make_teacher("dense", key=KEY), make_label_teacher("dense", key=KEY, label_noise=0.3)],
)
def test_a_small_sample_is_the_start_of_a_large_one(teacher):
    small, large = (teacher.sample(n, key=jax.random.key(2)) for n in (10, 1500))
    assert all((a == b[:10]).all() for a, b in zip(small, large, strict=True))
    assert not np.allclose(teacher.sample(10, key=jax.random.key(3))[0], small[0])


@pytest.mark.parametrize("kind", ["static-mask", "self-attention"])
@pytest.mark.parametrize(
    ("classes", "label_noise"), [(2, 0.0), (2, 0.2), (2, 0.7), (4, 0.2), (4, 0.9)]
)
def test_the_bayes_error_of_labels_is_that_of_the_best_guess(kind, classes, label_noise):
    teacher = make_label_teacher(kind, key=KEY, classes=classes, label_noise=label_noise)
    x, y = (np.asarray(part) for part in teacher.sample(40000, key=jax.random.key(1)))
    truth = np.asarray(teacher.truth(x))
    assert teacher.classes == classes
    assert set(truth.tolist()) == set(range(classes))
    # Given the true class, the best guess is the most frequent noisy label.
    right = sum(np.bincount(y[truth == c], minlength=classes).max() for c in range(classes))
    assert 1 - right / len(y) == pytest.approx(teacher.bayes_error, abs=0.01)
    assert (y != truth).mean() == pytest.approx(label_noise, abs=0.01)
    assert (
        np.asarray(teacher.sample(50, key=jax.random.key(1), noisy=False)[1]) == truth[:50]
    ).all()


def test_labels_are_sign_and_argmax():
    x = np.random.default_rng(0).standard_normal((50, 6))
    for outputs in (1, 3):
        model = BaselineConfig(6, 4, outputs).init(KEY)
        plain = LabelTeacher.of(model, key=KEY, shape=(6,), centred=False)
        values = np.array([model(jnp.asarray(one)) for one in x])
        expected = values > 0 if outputs == 1 else values.argmax(axis=1)
        assert (np.asarray(plain.truth(x)) == expected).all()


def test_centred_labels_leave_no_class_rare():
    for seed in range(3):
        teacher = make_label_teacher("dense", key=jax.random.key(seed))
        share = float(teacher.sample(4000, key=KEY)[1].mean())
        assert 0.3 < share < 0.7


ERRORS = {
    "kind='mask': no such teacher; the kinds are 'static-mask', 'gate'": lambda: make_teacher(
        "mask", key=KEY
    ),
    "depth=3: a teacher of kind 'gate' does not use": lambda: make_teacher(
        "gate", key=KEY, depth=3
    ),
    "relevant=2: a teacher of kind 'dense'": lambda: make_teacher("dense", key=KEY, relevant=2),
    r"relevant=\(1, 2\): a moving block": lambda: make_teacher(
        "moving-block", key=KEY, relevant=(1, 2)
    ),
    "noise_std=-1.0": lambda: make_teacher("dense", key=KEY, noise_std=-1.0),
    "gain=0.0": lambda: make_teacher("dense", key=KEY, gain=0.0),
    "label_noise=1.5": lambda: make_label_teacher("dense", key=KEY, label_noise=1.5),
    "classes=1": lambda: make_label_teacher("dense", key=KEY, classes=1),
    "n=0": lambda: make_teacher("dense", key=KEY).sample(0, key=KEY),
    r"inputs of shape \(5, 3\); expected \(n, 16\)": lambda: make_teacher("dense", key=KEY).truth(
        np.ones((5, 3))
    ),
    "the model has 3 outputs": lambda: Teacher.of(
        BaselineConfig(6, 4, 3).init(KEY), key=KEY, shape=(6,)
    ),
    "standard deviation 0.0": lambda: Teacher.of(
        BaselineConfig(6, init_scale=0.0).init(KEY), key=KEY, shape=(6,)
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_mistakes_are_refused(message):
    with pytest.raises(AttnlabError, match=message):
        ERRORS[message]()
