"""Criteria that hold in every control: marked, and never the only ground of a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attnlab.lab import (
    Claims,
    Control,
    Criterion,
    every_run,
    mean,
    pooled_median,
    read_record,
    reproduce,
)
from tests.lab.test_claim import NEAR, claim, toy_claim, toy_sweep, values


def judged(criteria, *controls):
    """The entry of a claim with these controls, each a tuple of criteria."""
    made = tuple(Control(f"control {k}", "s", each) for k, each in enumerate(controls))
    return replace(claim(*criteria), controls=made).judge({})


def marks(entry):
    return [c["discriminates"] for c in entry["criteria"]]


def low(name, value, limit=0.5):
    return Criterion(name, values([value]), every_run <= limit)


def middle(name, value, limit=0.5):
    return Criterion(name, values([value]), pooled_median <= limit)


def test_a_control_passes_when_one_criterion_rejects_it():
    entry = judged((low("max", 0.1), middle("median", 0.1)), (low("m", 0.9), middle("d", 0.1)))
    assert entry["controls"][0]["ok"]
    assert entry["verdict"] == "holds"
    assert marks(entry) == [True, False]


def test_a_criterion_that_one_control_of_two_rejects_discriminates():
    criteria = (low("max", 0.1), middle("median", 0.1))
    entry = judged(criteria, (low("m", 0.9), middle("d", 0.1)), (low("m", 0.1), middle("d", 0.9)))
    assert marks(entry) == [True, True]


def test_criteria_of_one_kind_belong_to_their_counterparts_in_order():
    """Fixed and linear head with the same bounds: only the second head's is blind."""
    criteria = (low("max, fixed", 0.1), low("max, linear", 0.1))
    entry = judged(criteria, (low("fixed, wrong", 0.9), low("linear, wrong", 0.2)))
    assert marks(entry) == [True, False]
    swapped = judged(criteria, (low("fixed, wrong", 0.2), low("linear, wrong", 0.9)))
    assert marks(swapped) == [False, True]


def test_a_control_of_one_criterion_stands_for_all_that_ask_the_same():
    entry = judged((low("a", 0.1), low("b", 0.2)), (low("wrong", 0.9),))
    assert marks(entry) == [True, True]


def test_what_no_control_asks_is_not_called_blind():
    entry = judged((low("a", 0.1), low("b", 0.2, 0.3)), (low("wrong", 0.9),))
    assert marks(entry) == [True, True]


def test_a_control_that_is_undecided_does_not_make_a_criterion_blind():
    open_one = Criterion("open", values(NEAR), mean <= 1.0)
    decided = Criterion("mean", values(NEAR - 0.5), mean <= 1.0)
    entry = judged((low("max", 0.1), decided), (low("m", 0.9), open_one))
    assert marks(entry) == [True, True]


def test_a_positive_control_does_not_make_a_criterion_blind():
    good = low("max", 0.1)
    one = replace(claim(good), controls=(Control("accepted", "s", (good,), should="accept"),))
    entry = one.judge({})
    assert (entry["verdict"], marks(entry)) == ("holds", [True])


def test_a_claim_does_not_hold_by_criteria_that_every_control_fulfils():
    """The control is rejected by a comparison that the claim itself does not make."""
    entry = judged((middle("median", 0.1),), (middle("median", 0.2), low("other", 0.9)))
    assert marks(entry) == [False]
    assert entry["controls"][0]["ok"]
    assert entry["verdict"] == "inconclusive"
    assert "none of them is discriminating" in entry["reason"]
    failed = judged((middle("median", 0.9),), (middle("median", 0.2), low("other", 0.9)))
    assert failed["verdict"] == "fails"


@pytest.fixture
def folder(tmp_path):
    """Results of a claim with a blind criterion, and its claims."""
    one = toy_claim(toy_sweep(tmp_path))
    blind = replace(one.criteria[0], name="loose", requires=pooled_median <= 9.0)
    control = replace(
        one.controls[0],
        criteria=(
            *one.controls[0].criteria,
            replace(blind, measure=one.controls[0].criteria[0].measure),
        ),
    )
    one = replace(one, criteria=(*one.criteria, blind), controls=(control,))
    reproduce([one], tmp_path / "out", processes=0)
    return tmp_path / "out", Claims(lambda: {one.id: one})


def test_page_and_details_name_what_does_not_discriminate(folder):
    out, claims = folder
    record = read_record(out)
    assert record.content["claims"][0]["verdict"] == "holds"
    details, *_ = claims.details(record)
    names = [row[2] for row in details.rows if row]
    assert names[1].startswith("loose (not discriminating)\n")
    assert "not discriminating" not in names[0]
    (section,) = claims.sections(record)
    assert section.facts["Not discriminating"] == "loose: holds in every control, too"
    assert "loose: holds in every control, too" in (out / "report.html").read_text("utf-8")
