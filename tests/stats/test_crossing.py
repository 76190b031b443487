"""Crossings against curves with a known inverse."""

import math

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.stats import Crossing, crossing, crossings


def test_a_logarithm_is_inverted_exactly():
    x = np.geomspace(1, 1000, 7)
    found = crossing(x, np.log(x), math.log(50.0))
    assert found.kind == "crossed"
    assert found.value == pytest.approx(50.0, rel=1e-12)


def test_a_line_is_inverted_exactly_and_falling_is_rising_upside_down():
    x = np.linspace(-2, 5, 6)
    assert crossing(x, 3 * x + 1, 4.0, log_x=False).value == pytest.approx(1.0)
    assert crossing(x, -3 * x - 1, -4.0, log_x=False, rising=False).value == pytest.approx(1.0)


def test_the_first_of_several_crossings_counts():
    assert crossing([1, 2, 3, 4], [0, 1, 0, 1], 0.5, log_x=False) == Crossing("crossed", 1.5)


def test_a_point_on_the_level_is_the_crossing():
    assert crossing([1, 7, 9], [0, 2, 3], 2.0) == Crossing("crossed", 7.0)


def test_already_met_not_reached_and_gaps():
    assert crossing([3, 4], [1.0, 2.0], 0.5) == Crossing("already met", 3.0)
    missed = crossing([3, 4], [1.0, 2.0], 5.0)
    assert missed.kind == "not reached"
    assert math.isnan(missed.value)
    assert crossing([1, 2, 3], [0.0, np.nan, 1.0], 0.5, log_x=False) == Crossing("crossed", 2.0)
    assert crossing([1, 2], [0.0, np.inf], 0.5) == Crossing("crossed", 2.0)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1, 2], [1.0], "expected two lists of one length"),
        ([2, 1], [1.0, 2.0], "does not increase"),
        ([0, 1], [1.0, 2.0], "log_x=False"),
        ([1], [np.nan], "no point"),
    ],
)
def test_curves_that_are_none_are_refused(x, y, words):
    with pytest.raises(AttnlabError, match=words):
        crossing(x, y, 1.5)


@pytest.mark.parametrize("log_x", [True, False])
@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize("gaps", [False, True])
def test_many_curves_at_once_are_one_by_one(log_x, rising, gaps):
    rng = np.random.default_rng(0)
    x, curves = np.geomspace(1, 50, 5), np.round(rng.normal(0, 1, (200, 5)), 1)
    curves[rng.random(curves.shape) < 0.1] = np.inf
    curves[rng.random(curves.shape) < 0.1] = -np.inf
    if gaps:
        curves[rng.random(curves.shape) < 0.1] = np.nan
    found = crossings(x, curves, 0.5, log_x=log_x, rising=rising)
    each = [crossing(x, row, 0.5, log_x=log_x, rising=rising) for row in curves]
    assert found.kind.tolist() == [one.kind for one in each]
    np.testing.assert_array_equal(found.value, [one.value for one in each])
    assert len(set(found.kind.tolist())) == 3


def test_many_curves_need_two_axes():
    with pytest.raises(AttnlabError, match="expected \\(curves, points\\)"):
        crossings([1, 2], [1.0, 2.0], 0.5)
