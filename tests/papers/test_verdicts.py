"""The verdicts at paper scale belong to today's criteria, and README and docs quote them rightly."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
from pathlib import Path

import pytest

from attnlab.papers import ROTTEN_TOMATOES, claims

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("verdicts", ROOT / "tools" / "verdicts.py")
assert _SPEC is not None
assert _SPEC.loader is not None
verdicts = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(verdicts)

LEDGER = verdicts.stored()
# A quoted figure is a link to the verdict: [0.97 [0.86, 1.13]](docs/verdicts.md#liu2021.flatness_known).
QUOTE = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([\w./-]*verdicts\.md#([\w.]+)\)")
NUMBER = re.compile(r"[−-]?\d+(?:\.\d+)?(?:e[−-]?\d+)?|[−-]?\.\d+")


def test_every_claim_is_judged_or_listed_as_not_run():
    today = claims(ROTTEN_TOMATOES)
    assert {*LEDGER["claims"], *LEDGER["not_run"]} == set(today)
    for name, entry in LEDGER["claims"].items():
        assert entry["hash"] == today[name].ledger()["hash"], (
            f"{name}: {verdicts.OUT_OF_DATE}; run tools/verdicts.py, which lists it as not run, or "
            "judge it again with `make verdicts`"
        )
        assert set(entry["criteria"]) == {c.name for c in today[name].criteria}


def test_the_page_is_that_of_the_ledger():
    assert verdicts.PAGE.read_text("utf-8") == verdicts.page(LEDGER)
    order = [
        LEDGER["claims"][name]["verdict"]
        for name in re.findall(r'<a id="([\w.]+)">', verdicts.PAGE.read_text("utf-8"))
    ]
    assert order == sorted(order, key=verdicts._ORDER.index)


def quoted(text: str) -> list[tuple[str, str]]:
    """Every quoted figure that the ledger does not have, with its claim."""
    wrong = []
    for words, name in QUOTE.findall(text):
        known = _numbers(LEDGER["claims"].get(name, {}))
        wrong += [(name, one) for one in NUMBER.findall(words) if _plain(one) not in known]
    return wrong


def _numbers(entry: dict) -> set[str]:
    """Every statistic and end of an interval of a claim and its controls, as pages write them."""
    criteria = list(entry.get("criteria", {}).values())
    for control in entry.get("controls", {}).values():
        criteria += control["criteria"].values()
    words = " ".join(
        verdicts.measured_words(c) for c in criteria if isinstance(c["statistic"], int | float)
    )
    return {_plain(one) for one in NUMBER.findall(words)}


def _plain(number: str) -> str:
    return f"{float(number.replace('−', '-')):g}"


def test_readme_and_docs_quote_the_ledger():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    wrong = {str(path.name): quoted(path.read_text("utf-8")) for path in pages}
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.skipif(not LEDGER["claims"], reason="nothing was judged at paper scale yet")
def test_a_wrong_figure_and_a_moved_criterion_are_noticed():
    name, entry = next(
        (name, entry)
        for name, entry in LEDGER["claims"].items()
        if any(isinstance(c["statistic"], float) for c in entry["criteria"].values())
    )
    right = next(c for c in entry["criteria"].values() if isinstance(c["statistic"], float))
    link = f"(docs/verdicts.md#{name})"
    assert not quoted(f"[{verdicts.measured_words(right)}]{link}")
    assert quoted(f"[123456.7]{link}") == [(name, "123456.7")]
    moved = copy.deepcopy(LEDGER)
    moved["claims"][name]["hash"] = "another"
    fresh = verdicts.refreshed(moved)
    assert fresh["not_run"][name] == verdicts.OUT_OF_DATE
    assert name not in fresh["claims"]
    assert json.loads(json.dumps(fresh)) == fresh
