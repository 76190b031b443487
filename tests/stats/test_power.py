"""The number of further runs decides about as often as it says."""

import math

import numpy as np
import pytest
from scipy.special import stdtrit

from attnlab._errors import AttnlabError
from attnlab.stats import interval_of, more_runs


def test_the_formula_by_hand():
    # The truth is known to lie at the distance 1: (t_N + z) σ/√N ≤ 1 for the first time at the N
    # that is found.
    runs, sigma = 8, 2.0
    reach = stdtrit(runs - 1, 0.975) * sigma / math.sqrt(runs)
    count = runs + (more_runs(runs, reach, 1.0, least=1.0) or 0)

    def clears(n: int) -> bool:
        return (stdtrit(n - 1, 0.975) + 0.8416212) * sigma / math.sqrt(n) <= 1.0

    assert clears(count)
    assert not clears(count - 1)


@pytest.mark.parametrize("truth", [0.25, 0.5])
def test_undecided_runs_are_decided_in_about_four_of_five_cases(truth):
    """Ten runs whose interval holds 0; then as many as advised, drawn from the same truth."""
    rng, decided = np.random.default_rng(1), []
    while len(decided) < 300:
        first = rng.normal(truth, 1.0, 10)
        found = interval_of(first, "mean")
        if found.low > 0 or found.estimate <= 0:
            continue
        more = more_runs(10, found.high - found.estimate, found.estimate)
        if more is None or more > 5000:
            continue
        every = np.concatenate([first, rng.normal(truth, 1.0, more)])
        decided.append(interval_of(every, "mean").low > 0)
    assert np.mean(decided) >= 0.8 - 2 * 0.023


def test_what_no_number_of_runs_decides():
    assert more_runs(8, 1.0, 0.0) is None
    with pytest.raises(AttnlabError, match="expected ≥ 2 runs"):
        more_runs(8, 0.0, 1.0)
