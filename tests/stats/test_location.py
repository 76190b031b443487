"""Means, medians and ratios against scipy and formulas written again; where there is no interval,
none is given.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.stats.mstats import median_cihs

from attnlab._errors import AttnlabError
from attnlab.stats import LOCATIONS, Location, interval_of

VALUES = np.random.default_rng(0).lognormal(0.3, 0.8, 11)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_a_mean_has_students_interval(level):
    oracle = stats.ttest_1samp(VALUES, 0.0).confidence_interval(level)
    found = interval_of(VALUES, "mean", confidence=level)
    np.testing.assert_allclose(
        [found.low, found.high, found.estimate], [*oracle, VALUES.mean()], rtol=1e-12
    )


def test_a_median_lies_between_order_statistics_of_known_coverage():
    # 11 runs: [x₂, x₁₀] covers 98.83 %, [x₃, x₉] 93.46 %; Hettmansperger and Sheather interpolate
    # between the two.
    ordered = np.sort(VALUES)
    assert 1 - 2 * stats.binom.cdf(2, 11, 0.5) < 0.95 < 1 - 2 * stats.binom.cdf(1, 11, 0.5)
    found = interval_of(VALUES, "median")
    assert ordered[1] < found.low < ordered[2]
    assert ordered[8] < found.high < ordered[9]
    assert found.estimate == np.median(VALUES)


def test_ratios_are_taken_in_logarithms():
    pairs: list[tuple[Location, Location]] = [
        ("geometric mean", "mean"),
        ("median ratio", "median"),
    ]
    for ratio, plain in pairs:
        logs, found = interval_of(np.log(VALUES), plain), interval_of(VALUES, ratio)
        expected = np.exp([logs.low, logs.high, logs.estimate])
        np.testing.assert_allclose([found.low, found.high, found.estimate], expected, rtol=1e-12)
        inverse = interval_of(1 / VALUES, ratio)  # turned round, a ratio has the inverse interval
        np.testing.assert_allclose(
            [1 / inverse.high, 1 / inverse.low], [found.low, found.high], rtol=1e-12
        )


def test_coxs_interval_by_hand():
    logs = np.log(VALUES)
    n, mean, variance = len(logs), logs.mean(), logs.var(ddof=1)
    reach = stats.t.ppf(0.975, n - 1) * math.sqrt(variance / n + variance**2 / (2 * (n - 1)))
    found = interval_of(VALUES, "lognormal mean")
    expected = np.exp(
        [mean + variance / 2 - reach, mean + variance / 2 + reach, mean + variance / 2]
    )
    np.testing.assert_allclose([found.low, found.high, found.estimate], expected, rtol=1e-12)


@pytest.mark.parametrize("statistic", LOCATIONS)
def test_equal_values_and_few_runs_have_no_interval(statistic):
    equal = interval_of([3.0] * 20, statistic)
    few = interval_of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], statistic)
    assert equal.estimate == pytest.approx(3.0)
    assert not equal.exists
    assert not few.exists
    assert "all 20 values are equal" in str(equal)
    assert "at least 8" in str(few)


def test_a_median_of_few_runs_cannot_be_surer_than_its_extremes():
    # From the least to the greatest of 8 runs the median is covered with probability 1 − 2⁻⁷ = 99.2
    # %.
    values = np.arange(8.0)
    assert interval_of(values, "median", confidence=0.992).exists
    assert "too few" in interval_of(values, "median", confidence=0.993).reason


@pytest.mark.parametrize(
    ("values", "statistic", "words"),
    [
        ([1.0, math.nan] * 5, "mean", "5 of 10 values are nan"),
        ([1.0, -1.0] * 5, "geometric mean", "5 values are not positive"),
        ([[1.0, 2.0]], "mean", "one number for each run"),
        ([], "mean", "one number for each run"),
        ([1.0] * 8, "max", "'max': expected one of"),
    ],
)
def test_what_cannot_be_estimated_is_refused(values, statistic, words):
    with pytest.raises(AttnlabError, match=words):
        interval_of(values, statistic)


@pytest.mark.parametrize("runs", [8, 9, 20, 111])
def test_the_interval_of_a_median_is_scipys(runs):
    values = np.random.default_rng(runs).lognormal(size=runs)
    for confidence in (0.9, 0.95, 0.99):
        found = interval_of(values, confidence=confidence)
        expected = median_cihs(values, alpha=1 - confidence)
        np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-12)
