"""``attnlab claims``: who says it, since when, what is asked, what tells nothing apart."""

from __future__ import annotations

import json

from attnlab.papers import resolve


def listed(run, name: str) -> str:
    """What is printed of a claim, as one line."""
    code, out, _ = run("claims", name)
    assert code == 0
    return " ".join(out.split())


def test_source_thresholds_provenance_and_expectation_are_printed(run):
    out = listed(run, "liu2021.prior_helps")
    assert "source Our reconstruction of a part of Liu, Balaji, Xue, Min (2021)" in out
    since = "set on 2026-11-16, after seeing a prototype's runs (docs/theory.md) and seeds 0 to 7"
    asked = "asked samples saved by the right prior (ratio): interval ≥ 1.25"
    assert f"{asked} thresholds {since}" in out
    assert f"expected holds; {since}" in out


def test_what_moved_and_what_is_not_the_papers_is_printed_with_its_criterion(run):
    out = listed(run, "lu2021.reduced_tl")
    assert "share ≥ 0.8 (moved on 2026-11-19 from “onset, pooled p90 ≤ 0.04, and final" in out
    assert "thresholds" not in out  # every criterion has its own
    assert "learned, depth 3: share ≤ 0.25 (Ours)" in listed(run, "liu2021.depth")


def test_what_does_not_discriminate_is_marked(run):
    out = listed(run, "lu2021.text_competition")
    assert out.count("not discriminating") == 2  # of the second criterion, for both heads


def test_json_is_the_ledger(run):
    code, out, _ = run("claims", "laws.identity", "--json")
    assert code == 0
    (found,) = json.loads(out)
    (claim,) = resolve(["laws.identity"])
    assert found["criteria"] == {"relative error, all heads": "every run ≤ 1e-12"}
    assert found["controls"]["momentum"] == {
        "should": "reject",
        "criteria": {"relative error, momentum": "every run ≤ 1e-12"},
    }
    assert (found["source_kind"], found["expected"]) == ("ours", "holds")
    assert found == {**found, **claim.ledger()}
