"""Distributions of inputs: their stated moments against large samples."""

import jax
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.models import INPUTS, Inputs, make_label_teacher, make_teacher


@pytest.mark.parametrize("kind", INPUTS)
def test_moments_are_those_of_a_large_sample(kind):
    inputs, p = Inputs(kind), 4
    x = inputs.draw(400_000, (p,), np.random.default_rng(0))
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=0.01)
    np.testing.assert_allclose(np.cov(x.T), inputs.covariance(p), atol=0.015)
    kurtosis = (x**4).mean(axis=0) / (x**2).mean(axis=0) ** 2
    # The eighth moment of Student's t is infinite: its fourth is known only roughly.
    np.testing.assert_allclose(
        kurtosis, inputs.kurtosis, rtol=0.25 if kind == "heavy-tailed" else 0.03
    )


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("shape", [(5,), (2, 3)])
def test_fewer_inputs_are_the_start_of_more(kind, shape):
    few, many = (Inputs(kind).draw(n, shape, np.random.default_rng(3)) for n in (7, 20))
    assert many.shape == (20, *shape)
    np.testing.assert_array_equal(few, many[:7])


def test_the_columns_of_a_matrix_are_numbered_in_turn():
    x = Inputs("decaying").draw(100_000, (2, 3), np.random.default_rng(1))
    np.testing.assert_allclose(x.var(axis=0).T.ravel(), 1 / np.arange(1.0, 7), rtol=0.03)


@pytest.mark.parametrize("kind", ["heavy-tailed", "correlated", "rademacher"])
def test_teachers_draw_such_inputs_and_have_unit_variance_on_them(kind):
    teacher = make_teacher("static-mask", key=jax.random.key(0), features=8, inputs=kind)
    x, y = teacher.sample(50_000, key=jax.random.key(1), noisy=False)
    assert float(np.var(y)) == pytest.approx(1, rel=0.1 if kind == "heavy-tailed" else 0.05)
    np.testing.assert_allclose(np.cov(np.asarray(x).T), Inputs(kind).covariance(8), atol=0.05)
    labels = make_label_teacher("dense", key=jax.random.key(0), features=8, inputs=kind)
    assert 0.3 < float(np.mean(labels.sample(2000, key=jax.random.key(1))[1])) < 0.7


def test_unknown_inputs_are_refused():
    with pytest.raises(AttnlabError, match="inputs='cauchy': expected one of normal, rademacher"):
        make_teacher("dense", key=jax.random.key(0), inputs="cauchy")
