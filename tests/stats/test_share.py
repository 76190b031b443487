"""Exact shares against scipy's, their fractions against simulation, and what few runs can say."""

import numpy as np
import pytest
from scipy import stats

from attnlab._errors import AttnlabError
from attnlab.stats import may_violate, share_interval, trials_needed


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(
    ("successes", "trials"), [(0, 1), (1, 1), (0, 20), (20, 20), (7, 9), (300, 1000)]
)
def test_a_share_of_whole_runs_is_clopper_and_pearsons(successes, trials, level):
    oracle = stats.binomtest(successes, trials).proportion_ci(level, method="exact")
    share = share_interval(successes, trials, confidence=level)
    assert share.estimate == successes / trials
    np.testing.assert_allclose([share.low, share.high], [oracle.low, oracle.high], rtol=1e-9)


def test_unknown_trials_are_taken_at_their_worst_on_both_sides():
    found = share_interval(6, 8, unknown=2)
    assert found.estimate == 6 / 8
    assert found.low == share_interval(6, 10).low
    assert found.high == share_interval(8, 10).high


def test_a_fraction_lies_between_its_neighbours():
    ends = [share_interval(s, 16) for s in (14, 14.5, 15)]
    assert ends[0].low < ends[1].low < ends[2].low
    assert ends[0].high < ends[1].high < ends[2].high


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95, 0.99])
def test_the_trials_needed_are_just_enough(share):
    needed = trials_needed(share)
    assert share_interval(needed, needed).low >= share
    assert share_interval(needed - 1, needed - 1).low < share


def test_how_many_runs_may_violate():
    # One-sided: with 4 runs within the bound a share v of violations leaves (1 − v)⁴ = 5 %.
    assert (1 - may_violate(0, 4)) ** 4 == pytest.approx(0.05, rel=1e-12)
    assert may_violate(4, 4) == 1.0
    oracle = stats.binomtest(2, 16, alternative="less").proportion_ci(0.95, method="exact").high
    assert may_violate(2, 16) == pytest.approx(oracle, rel=1e-12)


@pytest.mark.parametrize(
    ("successes", "trials", "unknown"), [(0, 0, 0), (3, 2, 0), (-1, 2, 0), (1, 2, -1)]
)
def test_counts_that_are_none_are_refused(successes, trials, unknown):
    with pytest.raises(AttnlabError, match="successes of"):
        share_interval(successes, trials, unknown=unknown)


def test_no_number_of_runs_proves_certainty():
    with pytest.raises(AttnlabError, match="no number of runs"):
        trials_needed(1.0)
    with pytest.raises(AttnlabError, match="of 0 runs"):
        may_violate(0, 0)
