"""The short form of ``tools/fuzz_inputs.py``: damaged files are read, or refused in words."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from attnlab._errors import AttnlabError
from attnlab.data import read_texts

_FILE = Path(__file__).parents[2] / "tools" / "fuzz_inputs.py"
_SPEC = importlib.util.spec_from_file_location("fuzz_inputs", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
fuzz = importlib.util.module_from_spec(_SPEC)
sys.modules["fuzz_inputs"] = fuzz  # dataclasses look their module up there
_SPEC.loader.exec_module(fuzz)


def test_damaged_files_are_read_or_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)  # what is read is not kept
    counts = Counter()
    for number in range(300):
        folder = tmp_path / str(number)
        folder.mkdir()
        try:
            fuzz.read(fuzz.case_of(f"short-{number}"), folder)
            counts["read"] += 1
        except AttnlabError:
            counts["refused"] += 1
    assert min(counts.values()) > 60


def test_the_same_seed_is_the_same_file():
    assert fuzz.case_of("1-2") == fuzz.case_of("1-2") != fuzz.case_of("1-3")


@pytest.mark.parametrize(
    ("does", "outcome"),
    [
        (lambda *_: None, "read"),
        (lambda *_: read_texts([]), "refused"),
        (lambda *_: [][0], "foreign"),
        (lambda *_: os.kill(os.getpid(), 9), "foreign"),
        (lambda *_: os.kill(os.getpid(), 14), "over 20 s"),
    ],
)
def test_what_happens_to_a_file_is_seen(monkeypatch, does, outcome):
    monkeypatch.setattr(fuzz, "read", does)
    monkeypatch.setattr(fuzz, "GIBIBYTES", 1000)  # a fork of a large process is a large process
    assert fuzz._in_child(fuzz.case_of("0-0"))[0].startswith(outcome)
    if outcome == "read":
        monkeypatch.setattr(fuzz, "GIBIBYTES", 0)
        assert fuzz._in_child(fuzz.case_of("0-0"))[0] == fuzz.TOO_LARGE
