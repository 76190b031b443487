"""How many verdicts of a page may be expected to be false."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from attnlab.lab import Claims, ClaimSettings, Control, Criterion, every_run, mean, reproduce, share
from tests.lab.test_claim import NEAR, claim, toy_claim, toy_sweep, values

REJECTED = Criterion("wrong", values(NEAR), mean <= 0.5)


def entry(name: str, *criteria: Criterion, looks: tuple[float, ...] = (0.95,)):
    one = replace(claim(*criteria), id=name, controls=(Control("c", "s", (REJECTED,)),))
    return one.judge({}, confidence=looks[-1]) | {
        "looks": [{"seeds": 8, "confidence": each} for each in looks]
    }


def said(*entries) -> tuple[int, float] | None:
    """How many intervals the page counts, and how many of their verdicts may be false."""
    settings = ClaimSettings()
    answers = Claims(dict).answers(settings, {}, {"claims": list(entries)})
    found = re.search(r"At most ([\d.]+) of the verdicts on (\d+) int", " ".join(answers.summary))
    return None if found is None else (int(found[2]), float(found[1]))


def test_error_rates_of_all_judged_intervals_add_up():
    estimate = Criterion("e", values(NEAR), mean <= 1.2)
    part = Criterion("s", values([1.0] * 20), share >= 0.75)
    assert said(entry("x.a", estimate)) == (2, 0.1)  # with its control
    assert said(entry("x.a", estimate, part)) == (3, 0.15)


def test_what_has_no_interval_is_not_counted():
    exact = Criterion("b", values([0.1]), every_run <= 0.5)
    few = Criterion("f", values(NEAR[:4]), mean <= 1.2)
    assert said(entry("x.a", exact, few)) == (1, 0.05)  # the control's
    one = claim(exact).judge({}) | {"looks": [{"seeds": 8, "confidence": 0.95}]}
    assert said(one) is None


def test_an_interval_that_several_claims_share_counts_once():
    first, other = (Criterion(name, values(NEAR), mean <= 1.2) for name in ("e", "the same"))
    assert said(entry("x.a", first), entry("x.b", other)) == (2, 0.1)
    stricter = Criterion("e", values(NEAR), mean <= 1.1)
    assert said(entry("x.a", first), entry("x.b", stricter)) == (3, 0.15)


def test_every_look_adds_its_error_rate():
    estimate = Criterion("e", values(NEAR), mean <= 1.2)
    looks = tuple(confidence for _, confidence in ClaimSettings(until="decided").looks)
    assert said(entry("x.a", estimate, looks=looks)) == (2, 0.1)  # 5 % for all looks together
    by_hand = entry("x.a", estimate, looks=(0.95, 0.95, 0.95))
    assert said(by_hand) == (2, 0.3)


def test_no_more_verdicts_are_false_where_every_true_value_lies_at_its_threshold():
    """400 criteria whose mean is their threshold: a decided one is wrong."""
    rng = np.random.default_rng(0)
    criteria = [Criterion(f"c{k}", values(rng.normal(size=12)), mean <= 0.0) for k in range(400)]
    count, expected = said(entry("x.a", *criteria)) or (0, 0.0)
    wrong = sum(one.judge({}).verdict in ("holds", "fails") for one in criteria)
    assert (count, expected) == (401, pytest.approx(20.05, abs=0.1))
    assert abs(wrong - expected) <= 3 * np.sqrt(400 * 0.05 * 0.95)


def test_the_page_prints_it(tmp_path):
    reproduce([toy_claim(toy_sweep(tmp_path))], tmp_path / "out", processes=0)
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "At most 0.1 of the verdicts on 2 intervals are expected to be false" in page
    assert "assumes that runs are independent draws" in page
