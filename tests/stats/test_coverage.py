"""How often nominal 95 % intervals cover the truth, from 8 and from 16 runs (``make coverage``
prints the table).

Each passes at the coverage that is asked for, less two standard errors of the simulation.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.complexity.curves import SIZES, labelled

from attnlab.complexity import needed_samples, sample_ratio
from attnlab.stats import crossing, interval_of, share_interval

CLOSED, RESAMPLED = 10_000, 2_000
Draw = Callable[[np.random.Generator, int], np.ndarray]


def normal(rng, n):
    return rng.normal(size=n)


def lognormal(rng, n):
    return rng.lognormal(size=n)


def heavy(rng, n):
    return rng.standard_t(3, size=n)


def paired(rng, n):
    """Ratios of two models whose seeds have half of their spread in common."""
    both = 0.5 * rng.normal(size=n)
    return np.exp(0.3 + both + 0.4 * rng.normal(size=n)) / np.exp(both + 0.4 * rng.normal(size=n))


def heavy_ratio(rng, n):
    return np.exp(0.3 + 0.3 * rng.standard_t(3, size=n))


def report(what: str, n: int, covered: float, asked: float, repeats: int, capsys) -> None:
    with capsys.disabled():
        print(f"\n{what:55} {n:3} runs  covers {covered:.3f}  asked {asked:.2f}", end="")
    assert covered >= asked - 2 * math.sqrt(asked * (1 - asked) / repeats)


@pytest.mark.coverage
@pytest.mark.parametrize("n", [8, 16])
@pytest.mark.parametrize(
    ("statistic", "draw", "truth", "asked"),
    [
        ("median", normal, 0.0, 0.94),
        ("median", lognormal, 1.0, 0.94),
        ("median", heavy, 0.0, 0.94),
        ("mean", normal, 0.0, 0.94),
        ("lognormal mean", lognormal, math.exp(0.5), 0.93),
        ("median ratio", paired, math.exp(0.3), 0.94),
        ("geometric mean", paired, math.exp(0.3), 0.94),
        ("median ratio", heavy_ratio, math.exp(0.3), 0.94),
    ],
)
def test_locations(statistic: str, draw: Draw, truth: float, asked: float, n: int, capsys):
    rng = np.random.default_rng(0)
    found = [interval_of(draw(rng, n), statistic) for _ in range(CLOSED)]  # pyright: ignore[reportArgumentType]
    covered = float(np.mean([one.low <= truth <= one.high for one in found]))
    report(f"{statistic}, {draw.__name__}", n, covered, asked, CLOSED, capsys)


@pytest.mark.coverage
@pytest.mark.parametrize("n", [8, 16])
@pytest.mark.parametrize("truth", [0.99, 0.95, 0.8, 0.5])
def test_shares_of_runs(truth: float, n: int, capsys):
    rng = np.random.default_rng(0)
    found = [share_interval(int(k), n) for k in rng.binomial(n, truth, CLOSED)]
    covered = float(np.mean([one.low <= truth <= one.high for one in found]))
    report(f"share of runs, {truth}", n, covered, 0.94, CLOSED, capsys)


@pytest.mark.coverage
@pytest.mark.parametrize("n", [8, 16])
@pytest.mark.parametrize("alike", [0.3, 3.0])
@pytest.mark.parametrize("truth", [0.99, 0.95, 0.8, 0.5])
def test_shares_of_problems_with_nine_starts_each(truth: float, alike: float, n: int, capsys):
    """Problems have shares of their own, drawn from a beta distribution: nearly all or nothing
    where ``alike`` < 1.
    """
    rng = np.random.default_rng(0)
    own = rng.beta(truth * alike, (1 - truth) * alike, (CLOSED, n))
    sums = (rng.binomial(9, own) / 9).sum(axis=1)
    found = [share_interval(float(s), n) for s in sums]
    covered = float(np.mean([one.low <= truth <= one.high for one in found]))
    report(f"share, 9 starts a problem, {truth}, beta {alike}", n, covered, 0.94, CLOSED, capsys)


@pytest.mark.coverage
@pytest.mark.parametrize("n", [8, 16])
def test_crossings_of_a_mean_curve(n: int, capsys):
    rng, inside = np.random.default_rng(0), 0
    curve, level = 1 - 0.8 * SIZES**-0.4, 0.9
    truth = crossing(SIZES, curve, level).value
    for k in range(RESAMPLED):
        scores = labelled(
            curve + rng.normal(0, 0.02, (n, 1)) + rng.normal(0, 0.03, (n, len(SIZES)))
        )
        found = needed_samples(
            scores, level, falling=False, statistic="mean", resamples=2000, seed=k
        ).interval
        inside += found.low <= truth <= found.high
    report("crossing of a mean curve", n, inside / RESAMPLED, 0.92, RESAMPLED, capsys)


@pytest.mark.coverage
@pytest.mark.parametrize("n", [8, 16])
@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_ratios_of_needed_samples(statistic: str, n: int, capsys):
    rng, inside = np.random.default_rng(0), 0
    curves = [1 - a * SIZES**-0.4 for a in (0.8, 0.6)]
    truth = crossing(SIZES, curves[0], 0.9).value / crossing(SIZES, curves[1], 0.9).value
    for k in range(RESAMPLED):
        both = rng.normal(0, 0.02, (n, 1))
        slow, fast = (
            labelled(curve + both + rng.normal(0, 0.02, (n, len(SIZES)))) for curve in curves
        )
        found = sample_ratio(
            slow,
            fast,
            0.9,
            falling=False,
            statistic=statistic,  # pyright: ignore[reportArgumentType]
            resamples=2000,
            seed=k,
        ).interval
        inside += found.low <= truth <= found.high
    report(
        f"ratio of needed samples, {statistic} curves",
        n,
        inside / RESAMPLED,
        0.94,
        RESAMPLED,
        capsys,
    )


@pytest.mark.parametrize("n", [8, 16])
def test_a_mean_covers_often_enough_at_a_glance(n: int):
    """The part of the table that takes a second, for every run of the tests."""
    rng = np.random.default_rng(0)
    found = [interval_of(normal(rng, n), "mean") for _ in range(CLOSED)]
    assert np.mean([one.low <= 0 <= one.high for one in found]) >= 0.94 - 2 * math.sqrt(
        0.94 * 0.06 / CLOSED
    )
    shares = [share_interval(int(k), n) for k in rng.binomial(n, 0.95, CLOSED)]
    assert np.mean([one.low <= 0.95 <= one.high for one in shares]) >= 0.94 - 2 * math.sqrt(
        0.94 * 0.06 / CLOSED
    )
