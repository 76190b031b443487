"""Extrapolation: the fit against scipy's, power laws recovered, everything else refused."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from attnlab._errors import AttnlabError
from attnlab.complexity import back_test, extrapolate
from attnlab.complexity._power_law import fit_power_laws
from tests.complexity.curves import SIZES, constant, noisy


@pytest.mark.parametrize("floor", [None, 0.0, 0.01])
def test_the_fit_is_at_least_as_good_as_scipys_from_many_starts(floor):
    rng = np.random.default_rng(0)
    curves = (3 * SIZES**-0.7 + 0.02) * np.exp(rng.normal(0, 0.1, (3, len(SIZES))))
    found = fit_power_laws(SIZES, curves, floor)
    for k, curve in enumerate(curves):

        def off(theta, curve=curve):
            c = theta[2] if floor is None else floor
            return (c + np.exp(theta[0]) * SIZES ** -theta[1]) / curve - 1

        bounds = ([-20, 0.02, 0], [20, 5, np.inf])
        starts = [(a, b, c) for a in (0, 2) for b in (0.3, 1.0) for c in (1e-4, 0.02)]
        best = min(
            (least_squares(off, start, bounds=bounds) for start in starts), key=lambda one: one.cost
        )
        cost = 0.5 * np.sum((found.at(SIZES)[k] / curve - 1) ** 2)
        assert cost <= best.cost * (1 + 1e-6)
        assert found.rate[k] == pytest.approx(best.x[1], rel=1e-3)


@pytest.mark.parametrize("limit", [None, 0.02])
def test_a_power_law_is_continued_exactly(limit):
    errors = constant(3 * SIZES**-0.7 + 0.02)
    at = extrapolate(errors, size=10_000, limit=limit)
    assert at.outcome == "extrapolated"
    assert at.value == pytest.approx(3 * 10_000**-0.7 + 0.02, rel=1e-4)
    assert (at.limit, at.scale, at.rate) == pytest.approx((0.02, 3, 0.7), rel=1e-3)
    level = extrapolate(errors, level=at.value, limit=limit)
    assert level.value == pytest.approx(10_000, rel=1e-4)
    assert str(level).startswith(f"{at.value:g} is expected with 10,000 samples (95 % interval")


def test_accuracies_are_continued_too():
    accuracy = 0.9 - 2 * SIZES**-0.8
    found = extrapolate(constant(accuracy), size=1e5, falling=False, statistic="mean")
    assert found.value == pytest.approx(0.9 - 2 * 1e5**-0.8, rel=1e-4)
    assert found.limit == pytest.approx(0.9, rel=1e-4)
    known = extrapolate(constant(accuracy), level=0.8999, falling=False, limit=0.9)
    assert known.value == pytest.approx((2 / 1e-4) ** (1 / 0.8), rel=1e-3)
    assert "tested only over 16×" in str(known)


def test_intervals_cover_with_16_seeds():
    rng, inside, made = np.random.default_rng(1), 0, 0
    truth = 3 * 8192**-0.7
    for k in range(60):
        found = extrapolate(
            noisy(3 * SIZES**-0.7, rng, own=0.15, shared=0.1),
            size=8192,
            limit=0.0,
            resamples=200,
            seed=k,
        )
        made += found.outcome == "extrapolated"
        inside += found.interval.low <= truth <= found.interval.high
    assert made >= 54
    assert inside >= 0.85 * made


def test_the_back_test_of_a_power_law_passes():
    found = back_test(noisy(3 * SIZES**-0.7, np.random.default_rng(2), own=0.1), limit=0.0)
    assert found.passed
    assert found.reason == ""
    assert found.fitted == (16, 32, 64, 128)
    assert found.predicted["size"].values.tolist() == [256, 512, 1024, 2048]
    assert found.reach == 16
    assert found.coverage >= 0.75
    np.testing.assert_allclose(found.ratio.estimate, found.predicted / found.measured)
    worst = np.abs(np.log(found.predicted / found.measured)).max()
    assert found.error == pytest.approx(float(np.exp(worst) - 1))


LATE = np.where(SIZES < 200, 1.0 - 1e-3 * np.log(SIZES), 100 / SIZES)
REFUSED = {
    "flat": (np.full(len(SIZES), 0.3), "the curve is flat"),
    "u-shape": (
        0.1 + 0.1 * (np.log2(SIZES) - 7) ** 2 + 1e-3 * np.arange(8)[::-1],
        "not monotone: the error grows by",
    ),
    "plateau": (np.maximum(8 / SIZES, 8 / 128), "beyond chance: it is no power law"),
    "late": (LATE, "beyond chance: it is no power law"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_curves_are_refused_with_the_reason(name):
    curve, words = REFUSED[name]
    found = extrapolate(noisy(curve, np.random.default_rng(3), own=0.02, shared=0.02), size=8192)
    assert found.outcome == "cannot be extrapolated"
    assert words in found.reason
    assert str(found) == f"cannot be extrapolated: {found.reason}"
    assert np.isnan(found.value)
    assert np.isnan(found.interval.low)


def test_a_level_beyond_the_limit_is_refused():
    found = extrapolate(constant(3 * SIZES**-0.7 + 0.02), level=0.01)
    assert found.reason == "the fitted curve levels off at 0.02, short of 0.01"


def test_too_little_is_refused():
    errors = constant(3 * SIZES**-0.7)
    assert "it has 6 sizes, at least 7" in extrapolate(errors.isel(size=slice(6)), size=1e4).reason
    assert extrapolate(errors.isel(size=slice(6)), size=1e4, limit=0.0).outcome == "extrapolated"
    assert "it has 5 seeds, at least 8" in extrapolate(errors.isel(seed=slice(5)), size=1e4).reason
    assert "at or below the limit" in extrapolate(errors, size=1e4, limit=0.1).reason
    noise = noisy(3 * SIZES**-0.7, np.random.default_rng(6), own=1.0)
    assert (
        "within chance: add seeds, or give the limit"
        in extrapolate(noise, size=1e4, tolerance=0.01).reason
    )
    with pytest.raises(AttnlabError, match="cannot be back-tested: it has 6 sizes"):
        back_test(errors.isel(size=slice(6)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "expected exactly one of the two"),
        ({"size": 1, "level": 1}, "one of the two"),
        ({"size": -1}, "samples > 0"),
        ({"size": 9, "limit": -1}, "expected at least 0"),
    ],
)
def test_questions_that_are_none_are_refused(options, words):
    with pytest.raises(AttnlabError, match=words):
        extrapolate(constant(3 * SIZES**-0.7), **options)
