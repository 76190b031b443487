"""The ratio of needed samples: exact values, bounds, pairing, coverage and verdicts."""

import math

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.complexity import sample_ratio
from attnlab.complexity._ratio import _more_seeds
from attnlab.stats import Interval, crossing, more_runs
from tests.complexity.curves import SIZES, constant, labelled, noisy

CROSSED, NEVER, MET = 5 / SIZES, 50 / SIZES + 0.1, 0.01 / SIZES
AT = crossing(SIZES, CROSSED, 0.1, rising=False).value


@pytest.mark.parametrize("curve", [CROSSED, NEVER, MET])
def test_identical_arms_have_the_ratio_one_reached_or_not(curve):
    errors = noisy(curve, np.random.default_rng(0))
    found = sample_ratio(errors, errors.copy(), 0.1)
    assert (found.kind, found.value, found.interval.low, found.interval.high) == ("exact", 1, 1, 1)
    assert found.verdict == "no advantage"
    assert not found.advantage
    assert str(found).startswith("no advantage")


def test_a_known_ratio():
    errors = noisy(CROSSED, np.random.default_rng(1))
    found = sample_ratio(errors.assign_coords(size=4 * SIZES), errors, 0.1)
    assert found.value == pytest.approx(4, rel=1e-12)
    assert found.interval.low == pytest.approx(4, rel=1e-12)
    assert (found.verdict, found.advantage) == ("saves", True)
    assert str(found).startswith("saves 75 % of the samples (ratio 4")
    np.testing.assert_allclose(found.per_seed.values[np.isfinite(found.per_seed.values)], 4)
    back = sample_ratio(errors, errors.assign_coords(size=4 * SIZES), 0.1)
    assert back.verdict == "costs"
    assert str(back).startswith("no advantage: costs 300 % more samples")


@pytest.mark.parametrize(
    ("baseline", "other", "kind", "value", "verdict"),
    [
        (NEVER, CROSSED, "at least", 2048 / AT, "saves"),
        (NEVER, MET, "at least", 2048 / 16, "saves"),
        (CROSSED, MET, "at least", AT / 16, "saves"),
        (CROSSED, NEVER, "at most", AT / 2048, "costs"),
        (MET, CROSSED, "at most", 16 / AT, "costs"),
        (MET, NEVER, "at most", 16 / 2048, "costs"),
        (NEVER, NEVER + 0.1, "unknown", math.nan, "inconclusive"),
        (MET, MET / 2, "unknown", math.nan, "inconclusive"),
    ],
)
def test_what_lies_off_the_grid_gives_bounds_never_an_infinite_ratio(
    baseline, other, kind, value, verdict
):
    found = sample_ratio(constant(baseline), constant(other), 0.1)
    assert (found.kind, found.verdict) == (kind, verdict)
    assert found.value == pytest.approx(value, nan_ok=True)
    assert not math.isinf(found.value)
    assert found.more_seeds is None
    if verdict == "inconclusive":
        assert "widen the grid" in str(found)
    elif kind == "at least":
        assert found.interval.high == math.inf
        assert str(found).startswith("saves at least")
    else:
        assert found.interval.low == 0
        assert str(found).startswith("no advantage: costs at least")


def test_a_bound_too_close_to_one_is_inconclusive_and_says_which_model():
    sizes = np.array([10.0, 20, 40])
    found = sample_ratio(
        constant([1, 0.5, 0.3], sizes=sizes), constant([1, 0.6, 0.09], sizes=sizes), 0.1
    )
    assert found.kind == "at least"
    assert found.value == pytest.approx(40 / found.other.value)
    assert found.verdict == "saves"
    late = sample_ratio(
        constant([1, 0.5, 0.3], sizes=sizes), constant([1, 0.6, 0.09], sizes=4 * sizes), 0.1
    )
    assert late.verdict == "inconclusive"
    assert "the baseline does not reach the level; widen the grid" in str(late)


def test_pairing_cancels_what_a_seed_does_to_both():
    rng = np.random.default_rng(2)
    whole = rng.normal(0, 0.8, (32, 1))
    baseline = noisy(2 * CROSSED, rng, seeds=32, own=0.05, shared=whole)
    paired = sample_ratio(baseline, noisy(CROSSED, rng, seeds=32, own=0.05, shared=whole), 0.1)
    apart = sample_ratio(
        baseline, noisy(CROSSED, rng, seeds=32, own=0.05, shared=rng.permutation(whole)), 0.1
    )

    def width(found):
        return math.log(found.interval.high / found.interval.low)

    assert width(paired) < 0.6 * width(apart)


def test_coverage_with_16_paired_seeds():
    rng, inside, saved, repeats = np.random.default_rng(3), 0, 0, 200
    truth = crossing(SIZES, 4 * CROSSED + 0.005, 0.1, rising=False).value
    truth /= crossing(SIZES, CROSSED + 0.005, 0.1, rising=False).value
    for k in range(repeats):
        whole = rng.normal(0, 0.3, (16, 1))
        slow, fast = (noisy(a * CROSSED + 0.005, rng, own=0.2, shared=whole) for a in (4, 1))
        found = sample_ratio(slow, fast, 0.1, resamples=500, seed=k)
        inside += found.interval.low <= truth <= found.interval.high
        saved += found.advantage
    assert 0.85 <= inside / repeats <= 1
    assert saved == repeats


def test_without_a_difference_an_advantage_is_rare():
    rng, verdicts = np.random.default_rng(4), []
    for k in range(100):
        verdicts.append(
            sample_ratio(
                noisy(CROSSED, rng), noisy(CROSSED, rng), 0.1, resamples=300, seed=k
            ).verdict
        )
    assert verdicts.count("saves") <= 7
    assert verdicts.count("costs") <= 7


def test_few_seeds_ask_for_more():
    found = sample_ratio(constant(2 * CROSSED, seeds=5), constant(CROSSED, seeds=5), 0.1)
    assert (found.verdict, found.more_seeds) == ("inconclusive", 3)
    assert str(found).startswith("inconclusive: run 3 more seeds, an interval needs 8 (ratio 2")


def test_further_seeds_exclude_the_farther_end():
    # r = log 1.5 lies above the worthwhile 1.25: only "no advantage" is left to exclude, at
    # distance r.
    wide = Interval(low=1.5**-1, high=1.5**3, estimate=1.5)
    half = math.log(1.25) / 2
    assert _more_seeds("exact", wide, 16, 1.25) == more_runs(
        16, 2 * math.log(1.5), math.log(1.5), least=half
    )
    # r = 0: a worthwhile saving is left to exclude, at distance log 1.25.
    level = Interval(low=0.9, high=1.25**3, estimate=1.0)
    assert _more_seeds("exact", level, 10, 1.25) == more_runs(
        10, 3 * math.log(1.25), math.log(1.25), least=half
    )
    # An end off the grid is as far as the other one; two say nothing.
    beyond = Interval(low=1.5**-1, high=math.inf, estimate=1.5)
    assert _more_seeds("exact", beyond, 16, 1.25) == _more_seeds("exact", wide, 16, 1.25)
    assert _more_seeds("exact", Interval(low=0.0, high=math.inf, estimate=1.5), 16, 1.25) is None
    assert _more_seeds("at least", wide, 16, 1.25) is None


def test_more_seeds_decide_what_was_open():
    rng = np.random.default_rng(5)
    slow, fast = (noisy(a * CROSSED, rng, seeds=400) for a in (1.3, 1))
    few = sample_ratio(slow.isel(seed=slice(12)), fast.isel(seed=slice(12)), 0.1)
    assert few.verdict == "inconclusive"
    assert few.more_seeds is not None
    assert sample_ratio(slow, fast, 0.1).verdict == "saves"


def test_seeds_pair_by_label():
    rng = np.random.default_rng(6)
    errors = labelled(noisy(CROSSED, rng).values, seeds=np.arange(16))
    assert sample_ratio(errors, errors.isel(seed=rng.permutation(16)), 0.1).value == 1
    with pytest.raises(AttnlabError, match="do not pair"):
        sample_ratio(errors, errors.assign_coords(seed=np.arange(16) + 1), 0.1)
    with pytest.raises(AttnlabError, match="16 and 9 seeds"):
        sample_ratio(errors, errors.isel(seed=slice(9)), 0.1)
    with pytest.raises(AttnlabError, match="worthwhile"):
        sample_ratio(errors, errors, 0.1, worthwhile=1.0)


def test_accuracies_with_the_mean():
    rng = np.random.default_rng(7)
    noise = rng.normal(0, 0.01, (16, len(SIZES)))
    slow, fast = (labelled(1 - a * SIZES**-0.5 + noise) for a in (2.0, 1.0))
    found = sample_ratio(slow, fast, 0.9, falling=False, statistic="mean")
    assert found.verdict == "saves"
    assert found.interval.low < 4 < found.interval.high * 1.1
