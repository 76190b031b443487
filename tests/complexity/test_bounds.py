"""Bound calculators against direct formulas; rank agreement against scipy and against every
completion.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from attnlab._errors import AttnlabError
from attnlab.complexity import (
    bound_ratios,
    expected_largest,
    population_ratios,
    rank_agreement_with,
    sample_ratio,
)
from attnlab.models import Inputs
from tests.complexity.curves import SIZES, constant


def test_ratios_are_the_direct_formulas():
    rng = np.random.default_rng(0)
    x = rng.normal(1, 1, (200, 6)) @ rng.normal(0, 1, (6, 6))
    attended = x / (1 + np.exp(-3 * np.roll(x, 1, axis=1)))
    found = bound_ratios(x, attended)
    for rows, bounds in ((x, found.raw), (attended, found.attended)):
        norms, sigma = np.linalg.norm(rows, axis=1), np.cov(rows.T)
        expected = SimpleNamespace(
            mean_square=np.mean(norms**2),
            largest_square=norms.max() ** 2,
            fourth_moment=np.mean(norms**4) ** 0.5,
            participation=np.trace(sigma) ** 2 / np.linalg.norm(sigma) ** 2,
            intrinsic_dimension=np.trace(sigma) / np.linalg.norm(sigma, 2),
        )
        for name, value in vars(expected).items():
            assert getattr(bounds, name) == pytest.approx(value, rel=1e-10)
    for name, value in found.as_dict().items():
        assert value == pytest.approx(getattr(found.raw, name) / getattr(found.attended, name))
    assert "candidate predictors" in str(found)


@pytest.mark.parametrize(("p", "s"), [(16, 4), (32, 4), (32, 8)])
def test_a_static_mask_of_s_of_p_standard_normal_features(p, s):
    x = np.random.default_rng(1).normal(0, 1, (20_000, p))
    found = bound_ratios(x, x * (np.arange(p) < s))
    assert found.mean_square == pytest.approx(p / s, rel=0.02)
    assert found.fourth_moment == pytest.approx(np.sqrt(p * (p + 2) / (s * (s + 2))), rel=0.02)
    assert found.participation == pytest.approx(p / s, rel=0.02)
    assert found.intrinsic_dimension == pytest.approx(p / s, rel=0.08)


def test_a_vacuous_mask_has_the_ratio_one_and_axes_are_flattened():
    x = np.random.default_rng(2).normal(0, 1, (50, 3, 4))
    assert set(bound_ratios(x, x).as_dict().values()) == {1.0}
    assert bound_ratios(x, x[:, :2]) == bound_ratios(x.reshape(50, 12), x[:, :2].reshape(50, 8))


def test_fewer_samples_than_features_and_uncentred():
    x = np.random.default_rng(3).normal(2, 1, (10, 30))
    moment = x.T @ x / 10
    found = bound_ratios(x, x, centred=False).raw
    assert found.intrinsic_dimension == pytest.approx(np.trace(moment) / np.linalg.norm(moment, 2))
    assert found.participation == pytest.approx(np.trace(moment) ** 2 / np.linalg.norm(moment) ** 2)


def test_inputs_that_are_none_are_refused():
    x = np.random.default_rng(4).normal(0, 1, (10, 3))
    for bad, words in (
        (x[0], "shape"),
        (x[:9], "10 samples and attended 9"),
        (0 * x, "empty"),
        (x + np.inf, "finite"),
    ):
        with pytest.raises(AttnlabError, match=words):
            bound_ratios(x, bad)


def test_without_bounds_it_is_spearmans_correlation():
    rng = np.random.default_rng(5)
    x = rng.normal(0, 1, 15)
    y = np.round(x + rng.normal(0, 1, 15), 1)
    found = rank_agreement_with(x, y)
    assert found.value == found.highest == pytest.approx(spearmanr(x, y)[0])
    assert -1 <= found.interval.low < found.value < found.interval.high <= 1
    assert str(found).startswith(
        f"rank agreement {found.value:.2f} over 15 settings (95 % interval"
    )


def test_bounded_values_are_taken_at_their_worst_and_best():
    rng = np.random.default_rng(6)
    for _ in range(20):
        x, y = rng.permutation(7).astype(float), rng.permutation(7).astype(float)
        open_ = rng.choice(7, 2, replace=False)
        mask = np.isin(np.arange(7), open_)
        found = rank_agreement_with(x, y, at_least=mask, resamples=100)
        places = np.arange(-1, 9) + np.array([[0.0], [0.31], [0.62]])
        pairs = np.array(list(itertools.product(places.ravel(), repeat=2)))
        trials = np.tile(y, (len(pairs), 1))
        trials[:, open_] = pairs
        ranks = rankdata(trials[(pairs >= y[open_]).all(axis=1)], axis=1)
        every = [np.corrcoef(rankdata(x), row)[0, 1] for row in np.unique(ranks, axis=0)]
        assert found.value == pytest.approx(min(every), abs=1e-9)
        assert found.highest == pytest.approx(max(every), abs=1e-9)
        assert (
            found.value - 1e-9
            <= np.corrcoef(rankdata(x), rankdata(y))[0, 1]
            <= found.highest + 1e-9
        )


def test_sample_ratios_bring_their_own_bounds():
    base = constant(20 / SIZES)
    ratios = [sample_ratio(base, constant(20 / SIZES / k), 0.05) for k in range(2, 10)]
    never, unknown = constant(20 / SIZES + 1), constant(30 / SIZES + 1)
    ratios += [sample_ratio(never, base, 0.05), sample_ratio(never, unknown, 0.05)]
    found = rank_agreement_with(np.arange(10), ratios)
    assert found.left_out == 1
    assert found.bounded.tolist() == [0] * 8 + [1]
    assert found.highest == 1
    assert "1 known only as bounds, taken at their worst" in str(found)
    assert str(found).endswith("1 left out)")


def test_few_settings_have_no_interval_and_odd_ones_are_refused():
    found = rank_agreement_with([1, 2, 3], [1, 2, 3])
    assert (found.value, found.interval.low, found.interval.high) == (1, -1, 1)
    with pytest.raises(AttnlabError, match="at least 3"):
        rank_agreement_with([1, 2], [1, 2])
    with pytest.raises(AttnlabError, match="one of each"):
        rank_agreement_with([1, 2, 3], [1, 2])
    with pytest.raises(AttnlabError, match="no setting in both"):
        rank_agreement_with([1, 2, 3], [1, 2, 3], at_least=[True] * 3, at_most=[True] * 3)


@pytest.mark.parametrize("kind", ["normal", "uniform", "correlated", "decaying", "heavy-tailed"])
def test_the_ratios_of_a_distribution_are_those_of_a_large_sample(kind):
    inputs, p, kept = Inputs(kind), 6, [0, 1, 2]
    x = inputs.draw(400_000, (p,), np.random.default_rng(0))
    squares = np.stack([(x**2).sum(axis=1), (x[:, kept] ** 2).sum(axis=1)], axis=1)
    found = population_ratios(
        inputs.covariance(p), kept, kurtosis=inputs.kurtosis, squares=squares, draws=100
    )
    sampled = bound_ratios(x, x[:, kept])
    for name in ("mean_square", "fourth_moment", "participation", "intrinsic_dimension"):
        for whole, part in ((found, sampled), (found.raw, sampled.raw)):
            tolerance = 0.08 if (kind, name) == ("heavy-tailed", "fourth_moment") else 0.02
            assert getattr(whole, name) == pytest.approx(getattr(part, name), rel=tolerance)
    blocks = squares.reshape(4000, 100, 2).max(axis=1).mean(axis=0)
    assert found.raw.largest_square == pytest.approx(blocks[0], rel=0.03)
    assert found.attended.largest_square == pytest.approx(blocks[1], rel=0.03)


def test_the_expected_largest_is_that_of_uniform_numbers():
    values = (np.arange(100_000) + 0.5) / 100_000
    for draws in (1, 9, 99):
        assert expected_largest(values, draws) == pytest.approx(draws / (draws + 1), rel=1e-4)
