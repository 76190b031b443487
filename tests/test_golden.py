"""The fast part of the golden numbers, on whatever machine this is; ``make golden`` compares all of
them to 1e-12.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

_FILE = Path(__file__).parent.parent / "tools" / "golden.py"
_SPEC = importlib.util.spec_from_file_location("golden", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
golden = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(golden)

# Figures are written with six digits. What hangs on a processor's last bit is left to `make
# golden`.
DRAWN, FLOAT64 = 1e-5, 1e-9
COMMANDS = ("dynamics", "samples", "digits", "landscape", "compare")
CLAIMS = ("lu2021.rate", "beyond.entropy_bound")


def stored(name: str):
    return json.loads((golden.STORED / f"{name}.json").read_text("utf-8"))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_draws_the_same_numbers(name, tmp_path):
    golden.run_command(name, tmp_path)
    now = golden.of_command(tmp_path / name)
    assert list(golden.differences(stored(name)["figures"], now["figures"], DRAWN)) == []


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_has_the_same_statistics(name, tmp_path):
    golden.run_claims([name], tmp_path)
    now, before = golden.of_claims(tmp_path / "claims")[name], stored(name)
    assert list(golden.differences(before["criteria"], now["criteria"], FLOAT64)) == []
    assert list(golden.differences(before["figures"], now["figures"], DRAWN)) == []


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


def test_every_claim_has_golden_numbers():
    from attnlab.claims import CLAIMS as known
    from attnlab.claims import text_claims

    names = {*known, *(claim.id for claim in text_claims("rotten-tomatoes")), "liu2021.text"}
    assert names <= set(golden.stored_names())
