"""Who states a claim, and when its thresholds were set."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attnlab._errors import AttnlabError
from attnlab.lab import Claims, Criterion, Provenance, Source, every_run
from tests.lab.test_claim import claim, values


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Source("said"), "'stated', 'seen', 'rebuilt', 'ours'"),  # pyright: ignore
        (lambda: Source("stated"), "expected a paper"),
        (lambda: Source("ours", "Lu (2021)"), "expected a paper, unless"),
        (lambda: Provenance("today"), "'paper', 'before', 'after'"),  # pyright: ignore
        (lambda: Provenance("before"), "expected a date such as"),
        (lambda: Provenance("after", "yesterday", "all"), "expected a date such as"),
        (lambda: Provenance("after", "2026-11-19"), "what had been seen"),
        (lambda: Provenance("before", "2026-11-19", "all"), "nothing otherwise"),
        (lambda: Provenance("paper", "2026-11-19"), "has neither"),
    ],
)
def test_what_contradicts_itself_is_refused(make, message):
    with pytest.raises(AttnlabError, match=message):
        make()


def test_each_kind_is_said_in_words():
    paper = "Lu (2021)"
    assert Source("stated", paper, "section 4").words == "Stated in Lu (2021): section 4"
    assert Source("seen", paper).words == "Seen in the experiments of Lu (2021)"
    rebuilt = "Our reconstruction of a part of Lu (2021) that we do not have"
    assert Source("rebuilt", paper).words == rebuilt
    assert Provenance("paper").words == "from the paper"
    moved = Provenance("before", "2026-11-19", moved_from="mean ≤ 1")
    assert moved.words == "moved on 2026-11-19 from “mean ≤ 1”, before measuring"


SEEN = Provenance("after", "2026-11-18", "seeds 0 to 7")
BEFORE = Provenance("before", "2026-11-19")


def test_a_claim_is_ours_and_states_nothing_about_thresholds_unless_told():
    entry = claim(Criterion("c", values([0.1]), every_run <= 0.5)).judge({})
    assert (entry["source"], entry["source_kind"]) == ("Ours", "ours")
    assert entry["expected_provenance"] == entry["criteria"][0]["provenance"] == ""
    with pytest.raises(AttnlabError, match=r"expected a Source, such as Source\(\"ours\""):
        claim(Criterion("c", values([0.1]), every_run <= 0.5), source="my notebook")


def test_a_criterion_may_have_a_source_and_a_provenance_of_its_own():
    first = Criterion("first", values([0.1]), every_run <= 0.5)
    second = replace(first, name="second", provenance=BEFORE, source=Source("ours"))
    one = claim(first, second, provenance=SEEN, source=Source("stated", "Lu (2021)"))
    entry = one.judge({})
    assert [c["provenance"] for c in entry["criteria"]] == [SEEN.words, BEFORE.words]
    assert [c["source"] for c in entry["criteria"]] == ["Stated in Lu (2021)", "Ours"]
    assert entry["expected_provenance"] == SEEN.words
    later = replace(one, expected_provenance=BEFORE).judge({})
    assert later["expected_provenance"] == BEFORE.words
    assert one.ledger()["of_criteria"] == {
        "second": {"source": "Ours", "provenance": "set on 2026-11-19, before measuring"}
    }


def test_the_hash_changes_with_criteria_thresholds_and_expectation_and_with_nothing_else():
    criterion = Criterion("c", values([0.1]), every_run <= 0.5)
    one = claim(criterion, provenance=SEEN)
    control = one.controls[0]
    same = [
        replace(one, title="another title", provenance=BEFORE, source=Source("ours", note="n")),
        replace(one, criteria=(replace(criterion, measure=values([0.2]), provenance=BEFORE),)),
    ]
    others = [
        replace(one, criteria=(replace(criterion, name="d"),)),
        replace(one, criteria=(replace(criterion, requires=every_run <= 0.5 + 1e-12),)),
        replace(one, criteria=(replace(criterion, requires=every_run >= 0.5),)),
        replace(one, criteria=(criterion, criterion)),
        replace(one, expected="fails"),
        replace(one, controls=(replace(control, should="accept"),)),
        replace(one, controls=(replace(control, criteria=(replace(criterion, unit="s"),)),)),
    ]
    own = one.ledger()["hash"]
    assert {each.ledger()["hash"] for each in same} == {own}
    hashes = {each.ledger()["hash"] for each in others}
    assert len(hashes) == len(others)
    assert own not in hashes


def test_the_page_says_it_once_or_by_criterion_where_they_differ():
    first = Criterion("first", values([0.1]), every_run <= 0.5)
    second = replace(first, name="second", provenance=BEFORE, source=Source("ours"))
    paper = Source("stated", "Lu (2021)")

    def section(*criteria):
        one = claim(*criteria, provenance=SEEN, source=paper)
        entry = one.judge({}) | {"command": "", "looks": []}
        return Claims(lambda: {one.id: one}).section(entry, {})

    same = section(first, replace(first, name="third"))
    assert (same.source, same.facts["Thresholds"]) == (paper.words, SEEN.words)
    assert same.facts["Expectation"] == f"“holds”, {SEEN.words}"
    both = section(first, second)
    assert both.source == "first: Stated in Lu (2021); second: Ours"
    assert both.facts["Thresholds"] == f"first: {SEEN.words}; second: {BEFORE.words}"
    own = claim(first).judge({}) | {"command": "", "looks": []}
    assert {"Thresholds", "Expectation"}.isdisjoint(Claims(dict).section(own, {}).facts)
