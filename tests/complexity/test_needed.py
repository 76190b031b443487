"""Needed samples against curves with a known inverse; the interval's coverage by simulation."""

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity import needed_samples
from attnlab.stats import crossing
from tests.complexity.curves import SIZES, constant, labelled, noisy


def test_interpolation_by_hand():
    # Between 10 (error .4) and 1000 (error .2) the level .25 lies three quarters of the way in log
    # n.
    errors = constant([0.4, 0.2], sizes=[10, 1000])
    found = needed_samples(errors, 0.25)
    assert found.outcome == "crossed"
    assert found.value == pytest.approx(10 * 100**0.75, rel=1e-12)
    assert found.interval.low == found.interval.high == found.value == found.interval.estimate


def test_rising_is_falling_upside_down():
    rng = np.random.default_rng(0)
    errors = noisy(5 / SIZES, rng)
    down = needed_samples(errors, 0.1, statistic="mean")
    up = needed_samples(1 - errors, 0.9, falling=False, statistic="mean")
    assert up.value == pytest.approx(down.value, rel=1e-9)
    assert up.interval.high == pytest.approx(down.interval.high, rel=1e-9)
    np.testing.assert_allclose(up.curve, 1 - down.curve)


@pytest.mark.parametrize(("name", "reduce"), [("median", np.median), ("mean", np.mean)])
def test_median_and_mean_are_what_numpy_says(name, reduce):
    errors = noisy(5 / SIZES, np.random.default_rng(1))
    found = needed_samples(errors, 0.1, statistic=name)
    expected = reduce(errors.values, axis=0)
    assert found.value == pytest.approx(
        crossing(SIZES, expected, 0.1, rising=False).value, rel=1e-12
    )
    np.testing.assert_allclose(found.curve, expected)


def test_not_reached_is_an_outcome():
    found = needed_samples(constant(5 / SIZES), 1e-4)
    assert found.outcome == "not reached"
    assert np.isnan(found.value)
    assert (found.interval.low, found.interval.high) == (2048, np.inf)
    assert found.share.estimate == 0
    assert (
        str(found)
        == "0.0001 is not reached with up to 2,048 samples (0 of 8 seeds reach it by themselves)"
    )


def test_already_met_is_only_an_upper_bound():
    found = needed_samples(constant(5 / SIZES), 0.9)
    assert found.outcome == "already met"
    assert (found.value, found.interval.low, found.interval.high) == (16, 0, 16)
    assert (
        str(found)
        == "0.9 is already met with the fewest, 16 samples (8 of 8 seeds reach it by themselves)"
    )


def test_an_interval_may_end_beyond_the_grid_and_seeds_are_counted():
    # 9 of 16 seeds learn, as learned self-attention does: the median crosses, many resamples do
    # not.
    values = np.ones((16, len(SIZES)))
    values[:9] = 5 / SIZES
    found = needed_samples(labelled(values), 0.1)
    assert found.outcome == "crossed"
    assert found.interval.high == np.inf
    assert np.isfinite(found.per_seed.values).sum() == 9
    assert found.share.estimate == 9 / 16
    assert "beyond 2,048; 9 of 16 seeds reach it" in str(found)


def test_a_level_that_is_left_again_is_said():
    found = needed_samples(constant([1, 0.05, 1, 0.05], sizes=[10, 20, 40, 80]), 0.1)
    assert found.outcome == "crossed"
    assert not found.lasting
    assert str(found).endswith("and left again at a larger size")


def test_failed_fits_count_as_the_worst_or_are_left_out():
    values = np.tile(5 / SIZES, (9, 1))
    values[:5, 3:] = np.nan
    assert needed_samples(labelled(values), 0.03).outcome == "not reached"
    left = needed_samples(labelled(values), 0.03, failed="omit")
    assert left.value == needed_samples(constant(5 / SIZES), 0.03).value
    assert left.missing == 25
    assert str(left).endswith("25 fits have no score")


def test_a_size_that_nobody_ran_is_not_part_of_the_grid():
    values = np.tile(5 / SIZES, (8, 1))
    values[:, -1] = np.nan
    found = needed_samples(labelled(values), 1e-4)
    assert found.largest == SIZES[-2]


def test_few_seeds_have_an_estimate_but_no_interval():
    found = needed_samples(constant(5 / SIZES, seeds=3), 0.1)
    assert found.outcome == "crossed"
    assert (found.interval.low, found.interval.high) == (0, np.inf)
    assert "no interval from 3 seeds" in str(found)


def test_sizes_and_dims_in_any_order():
    errors = noisy(5 / SIZES, np.random.default_rng(2))
    shuffled = errors.isel(size=[3, 1, 0, 2, 7, 6, 5, 4]).transpose("size", "seed")
    assert needed_samples(shuffled, 0.1).value == needed_samples(errors, 0.1).value


@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_coverage_of_the_interval_with_16_seeds(statistic):
    rng, inside, repeats = np.random.default_rng(3), 0, 200
    if statistic == "median":
        curve, level, falling = 5 / SIZES + 0.005, 0.1, True
    else:
        curve, level, falling = 1 - 0.8 * SIZES**-0.4, 0.9, False
    truth = crossing(SIZES, curve, level, rising=not falling).value
    for k in range(repeats):
        if statistic == "median":
            scores = noisy(curve, rng)
        else:
            scores = labelled(
                curve + rng.normal(0, 0.02, (16, 1)) + rng.normal(0, 0.03, (16, len(SIZES)))
            )
        found = needed_samples(
            scores, level, falling=falling, statistic=statistic, resamples=500, seed=k
        )
        inside += found.interval.low <= truth <= found.interval.high
    assert 0.85 <= inside / repeats <= 1


@pytest.mark.parametrize(
    ("errors", "options", "words"),
    [
        (np.ones((8, 3)), {}, "ndarray: expected a labelled array"),
        (xr.DataArray(np.ones((8, 3)), dims=("seed", "n")), {}, r"\('seed', 'n'\): expected"),
        (xr.DataArray(np.ones((8, 3)), dims=("seed", "size")), {}, "coordinate 'size'"),
        (constant([1, 1], sizes=[4, 4]), {}, "without repeats"),
        (constant([1, 1], sizes=[0, 4]), {}, "positive sizes"),
        (constant([1, 1], sizes=[2, 4]), {"statistic": "mode"}, "'median', 'mean'"),
        (constant([1, 1], sizes=[2, 4]), {"failed": "zero"}, "'worst', 'omit'"),
        (constant([1, 1], sizes=[2, 4]), {"resamples": 3}, "at least 100"),
        (constant([1, 1], sizes=[2, 4]), {"confidence": 95}, "between 0 and 1"),
    ],
)
def test_what_is_no_set_of_curves_is_refused(errors, options, words):
    with pytest.raises(AttnlabError, match=words):
        needed_samples(errors, 0.5, **options)
