"""Paired tests of many variants: against scipy, against counting by hand, and under a true null."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attnlab import AttnlabError
from attnlab.stats import holm, rank_variants, signed_rank


def _p_value(found: Any) -> float:
    return float(found.pvalue)


@pytest.mark.parametrize("pairs", [6, 9, 14, 40])
def test_the_test_is_scipys_exact_one(pairs):
    rng = np.random.default_rng(pairs)
    for shift in (0.0, 0.5, 2.0):
        a, b = rng.normal(size=pairs) + shift, rng.normal(size=pairs)
        expected = _p_value(stats.wilcoxon(a, b, method="exact"))
        assert signed_rank(a, b) == pytest.approx(expected, rel=1e-12)


def test_ties_and_zeros_are_counted_pattern_by_pattern():
    difference = np.array([1.0, 1.0, -1.0, 2.0, 0.0, 3.0, 3.0])
    ranks = stats.rankdata(np.abs(difference)) * (difference != 0)
    totals = [abs(np.dot(signs, ranks)) for signs in product([-1, 1], repeat=7)]
    observed = abs(np.dot(np.sign(difference), ranks))
    expected = np.mean([total >= observed for total in totals])
    assert signed_rank(difference, np.zeros(7)) == pytest.approx(expected, rel=1e-12)


def test_what_is_missing_does_not_count_and_few_pairs_tell_nothing():
    a = np.arange(9.0) + 1
    a[3] = np.nan
    assert signed_rank(a, np.zeros(9)) == 2 / 2**8
    assert signed_rank(np.arange(5.0) + 1, np.zeros(5)) == 1
    assert signed_rank(np.ones(9), np.ones(9)) == 1
    with pytest.raises(AttnlabError, match="two lists of the same runs"):
        signed_rank(np.ones(9), np.ones(8))


def test_holm_by_hand_and_whatever_the_order():
    p = np.array([0.04, 0.001, 0.5, 0.02])
    assert holm(p) == pytest.approx([0.08, 0.004, 0.5, 0.06])
    order = np.array([2, 0, 3, 1])
    assert holm(p[order]) == pytest.approx(holm(p)[order])
    assert holm([]).tolist() == []
    assert holm([0.9, 0.8]).max() == 1.0
    with pytest.raises(AttnlabError, match="from 0 to 1"):
        holm([0.5, np.nan])


def test_equal_variants_are_rarely_told_apart():
    # Five variants, 16 runs, no difference: any pair told apart is a mistake, made in at most 5 %
    # of the studies.
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        shared = rng.normal(size=16)
        found = rank_variants({str(k): shared + rng.normal(size=16) for k in range(5)})
        wrong += len(found.groups) > 1
    assert wrong <= stats.binom.ppf(0.999, 200, 0.05)


def test_groups_are_exactly_those_that_no_pair_is_told_apart_in():
    rng = np.random.default_rng(2)
    shared = rng.normal(size=16)
    runs = {
        name: shared + shift + 0.25 * rng.normal(size=16)
        for name, shift in zip("dacb", (3, 0, 0.5, 0.25), strict=True)
    }
    found = rank_variants(runs)
    assert found.names[0] == "a"
    assert found.names[-1] == "d"
    for x, y in combinations("abcd", 2):
        together = any({x, y} <= set(group) for group in found.groups)
        assert together != found.apart(x, y)
    assert found.groups[-1] == ("d",)
    for group, other in combinations(found.groups, 2):
        assert not set(group) <= set(other)
        assert not set(other) <= set(group)
    assert set(found.best) == {name for name in "abcd" if not found.apart("a", name)}


def test_what_rises_is_ranked_the_other_way_and_dropped_runs_are_left_out():
    rng = np.random.default_rng(3)
    good, bad = 1 + 0.01 * rng.normal(size=16), 0.01 * rng.normal(size=16)
    bad[8:] = np.nan
    found = rank_variants({"bad": bad, "good": good}, smaller_is_better=False)
    assert found.names == ("good", "bad")
    assert found.pairs.tolist() == [[16, 8], [8, 8]]
    assert found.apart("good", "bad")
    assert rank_variants({"only": good}).groups == (("only",),)


def test_mistakes_are_told():
    with pytest.raises(AttnlabError, match="all of the same runs"):
        rank_variants({"a": np.ones(8), "b": np.ones(9)})
    with pytest.raises(AttnlabError, match="'b' has no finished run"):
        rank_variants({"a": np.ones(8), "b": np.full(8, np.nan)})
