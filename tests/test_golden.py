"""The fast part of the golden numbers, on whatever machine this is; ``make golden`` compares all of
them to 1e-12.
"""

from __future__ import annotations

import json

import pytest

from attnlab.papers import ROTTEN_TOMATOES, claims
from tests.golden import golden

pytestmark = pytest.mark.slow

CLAIMS = ("lu2021.ablation_tc", "beyond.entropy_bound")


def stored(name: str):
    return json.loads((golden.STORED / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_has_the_same_statistics(name, tmp_path, monkeypatch):
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "false")  # the programs of users
    monkeypatch.delenv("XLA_FLAGS")
    golden.run_claims([name], tmp_path)
    now, before = golden.of_claims(tmp_path / "claims")[name], stored(name)
    assert list(golden.differences(before["criteria"], now["criteria"], golden.FLOAT64)) == []
    assert list(golden.differences(before["figures"], now["figures"], golden.DRAWN)) == []


def test_differences_are_found():
    old = {"a": {"mean": 1.0}, "b": [1, 2], "c": "x"}
    assert list(golden.differences(old, old, 0.0)) == []
    new = {"a": {"mean": 1.1}, "b": [1, 3], "d": "x"}
    assert list(golden.differences(old, new, 1e-9)) == [
        "/a/mean: 1.0 -> 1.1",
        "/b[1]: 2 -> 3",
        "/c: gone",
        "/d: new",
    ]


def test_golden_numbers_are_of_claims_and_commands_that_exist():
    assert set(golden.stored_names()) <= {*claims(ROTTEN_TOMATOES), *golden.COMMANDS}
