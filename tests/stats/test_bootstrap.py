"""Bootstrap intervals against simulation and closed forms."""

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.stats import bootstrap_interval, paired_ratio


@pytest.mark.parametrize("method", ["BCa", "percentile"])
@pytest.mark.parametrize(
    ("statistic", "draw", "truth"),
    [
        (np.mean, lambda rng, size: rng.normal(size=size), 0.0),
        (np.median, lambda rng, size: rng.normal(size=size), 0.0),
        (np.median, lambda rng, size: rng.exponential(size=size), np.log(2)),
    ],
)
def test_covers_the_truth_as_often_as_it_says(method, statistic, draw, truth):
    samples = draw(np.random.default_rng(1), (32, 500))
    interval = bootstrap_interval(samples, statistic, seed=0, resamples=600, method=method)
    covered = np.mean((interval.low <= truth) & (truth <= interval.high))
    assert 0.91 <= covered <= 0.98  # 0.95 less the known defect at 32 runs, ± three standard errors


def test_of_a_mean_is_the_normal_interval_when_runs_are_many():
    sample = np.random.default_rng(2).normal(3.0, 2.0, 2000)
    interval = bootstrap_interval(sample, np.mean, seed=0)
    half = 1.959964 * sample.std(ddof=1) / np.sqrt(sample.size)
    assert interval.estimate == sample.mean()
    np.testing.assert_allclose(
        [interval.low, interval.high], [sample.mean() - half, sample.mean() + half], atol=0.1 * half
    )


def test_every_column_is_as_if_alone():
    samples = np.random.default_rng(3).normal(size=(12, 3))
    together = bootstrap_interval(samples, seed=5, method="percentile")
    # Columns share the resampled runs, so each is the interval of that column with the same resamples.
    rng = np.random.default_rng(5)
    again = bootstrap_interval(samples, seed=5, method="percentile")
    assert together.low.shape == (3,)
    np.testing.assert_array_equal(together.low, again.low)
    for column in range(3):
        picks = rng.integers(0, 12, (4000, 12))
        own = np.quantile(np.median(samples[picks, column], axis=1), [0.025, 0.975])
        np.testing.assert_allclose([together.low[column], together.high[column]], own, atol=0.25)


def test_a_plain_function_gives_what_numpy_gives():
    sample = np.random.default_rng(4).normal(size=10)
    vectorised = bootstrap_interval(sample, np.mean, seed=0, resamples=200)
    plain = bootstrap_interval(sample, lambda values: sum(values) / len(values), seed=0, resamples=200)
    np.testing.assert_allclose([plain.low, plain.high], [vectorised.low, vectorised.high], rtol=1e-12)


@pytest.mark.parametrize("statistic", [np.mean, np.median])
def test_equal_values_have_no_width_and_no_nan(statistic):
    interval = bootstrap_interval(np.full((9, 2), 4.0), statistic, seed=0)
    for end in (interval.low, interval.high, interval.estimate):
        np.testing.assert_array_equal(end, [4.0, 4.0])


def test_one_degenerate_column_leaves_the_others():
    samples = np.random.default_rng(6).normal(size=(10, 2))
    samples[:, 1] = 1.0
    interval = bootstrap_interval(samples, np.mean, seed=0)
    assert interval.low[0] < interval.high[0]
    assert interval.low[1] == interval.high[1] == 1.0


def test_pairs_cancel_what_a_seed_does_to_both():
    rng = np.random.default_rng(7)
    luck = rng.lognormal(sigma=1.0, size=16)
    a, b = 2.0 * luck * rng.lognormal(sigma=0.01, size=16), luck
    paired = paired_ratio(a, b, statistic=np.mean, seed=0)
    broken = paired_ratio(a, rng.permutation(b), statistic=np.mean, seed=0)
    assert paired.estimate == pytest.approx(2.0, abs=0.05)
    assert paired.high - paired.low < 0.1 * (broken.high - broken.low)


def test_the_ratio_covers_the_truth_with_the_width_of_the_delta_method():
    rng = np.random.default_rng(8)
    b = rng.normal(5.0, 1.0, (32, 2000))
    a = 1.5 * b + rng.normal(0.0, 0.5, (32, 2000))
    interval = paired_ratio(a, b, statistic=np.mean, seed=0, resamples=500)
    assert 0.91 <= np.mean((interval.low <= 1.5) & (interval.high >= 1.5)) <= 0.96
    width = np.mean(interval.high - interval.low)
    assert width == pytest.approx(2 * 1.96 * 0.5 / 5.0 / np.sqrt(32), rel=0.05)  # a/b − 1.5 = noise/b


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bootstrap_interval([1.0] * 7, seed=0), "7 runs: expected at least 8"),
        (lambda: bootstrap_interval([1.0] * 8 + [np.nan], seed=0), "1 values that are nan"),
        (lambda: bootstrap_interval([1.0] * 8, seed=0, level=95), "level=95"),
        (lambda: bootstrap_interval([1.0] * 8, seed=0, resamples=3), "resamples=3"),
        (lambda: paired_ratio([1.0] * 8, [1.0] * 9, seed=0), "same runs in both"),
        (lambda: paired_ratio(np.ones(8), np.linspace(-1, 1.01, 8), seed=0), "denominator is zero or changes"),
        (lambda: paired_ratio(np.ones(8), np.zeros(8), seed=0), "denominator is zero or changes"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(AttnlabError, match=words):
        call()
