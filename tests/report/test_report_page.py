from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
import subprocess
import sys

import pytest

from attnlab._errors import AttnlabError
from attnlab.report import Card, Figure, Page, Section, render, write_folder


def without_scripts(text: str) -> str:
    return re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL)


def test_numbers_and_controls_stand_in_tables(judged):
    section = judged("laws.sum", "holds", "holds")
    assert section.headline == section.criteria[0]
    text = without_scripts(render(Page("t", "q", sections=(section,))))
    for part in (
        "0.0021",
        "[0.0018, 0.0025]",
        "≤ 0.05",
        "must be rejected",
        "as it should",
        "8 asked, 7 finished, 1 failed",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("verdict", "expected", "contradicts"),
    [
        ("holds", "holds", False),
        ("fails", "fails", False),
        ("fails", "holds", True),
        ("holds", "fails", True),
        ("inconclusive", "holds", False),
        ("not run", "fails", False),
    ],
)
def test_the_page_says_when_a_verdict_contradicts_what_was_expected(
    judged, verdict, expected, contradicts
):
    section = judged("a", verdict, expected)
    text = without_scripts(render(Page("t", "q", sections=(section,))))
    assert section.contradicts is contradicts
    assert ("This verdict contradicts" in text) is contradicts
    assert ("none contradicts" in text) is (verdict == expected)
    assert ("as expected" if verdict == expected else f"expected: {expected}") in text


def test_the_top_counts_verdicts(judged):
    verdicts = ["holds", "holds", "fails", "inconclusive", "not run"]
    sections = tuple(judged(f"c{k}", v, "holds") for k, v in enumerate(verdicts))
    text = render(Page("t", "q", sections=sections))
    tally = re.findall(r"<b>(\d)</b> ([a-z ]+)<", text)
    assert tally[:4] == [("2", "hold"), ("1", "fails"), ("1", "inconclusive"), ("1", "not run")]
    assert tally[4] == ("1", "contradicts what was expected")
    assert text.count('class="card ') == 5


def test_a_page_needs_no_verdict_and_may_have_its_own_cards():
    section = Section(
        "words", "Words", cards=(Card("accuracy", "How often it is right", headline="0.81"),)
    )
    text = render(
        Page("t", "q", sections=(section,), cards=(Card("text", "Learned", "holds", link="words"),))
    )
    assert len(text) < 100_000, "a page without figures does not carry the script"
    assert 'href="#words"' in text
    assert "0.81" in text


@pytest.mark.parametrize(
    ("name", "verdict"), [("a", "perhaps"), ("a b", "holds"), ('"><script>', "holds")]
)
def test_unknown_verdicts_and_ids_that_are_no_anchors_are_refused(judged, name, verdict):
    with pytest.raises(AttnlabError, match=r"expected one of|is not an anchor"):
        judged(name, verdict, "holds")


def test_double_ids_are_refused():
    with pytest.raises(AttnlabError, match="'a' occurs twice"):
        Page("t", "q", sections=(Section("a", "A"), Section("a", "B")))
    figure = Figure("f", "t", "c", "a", {"data": [], "layout": {}}, {})
    with pytest.raises(AttnlabError, match="figure id 'f' occurs twice"):
        Page("t", "q", sections=(Section("a", "A", figures=(figure, figure)),))


def test_text_from_data_is_escaped_everywhere(evil_page, evil):
    text = render(evil_page)
    assert evil not in text
    assert "<img" not in without_scripts(text)
    blocks = re.findall(
        r'<script type="application/json"[^>]*>(.*?)</script>', text, flags=re.DOTALL
    )
    assert len(blocks) == 6
    for block in blocks:
        json.loads(block)
        assert not re.search("[<>&\u2028\u2029]", block)
    assert text.count("</script") == len(blocks) + 3


def test_nothing_is_loaded_from_elsewhere(evil_page):
    text = without_scripts(render(evil_page))
    addresses = re.findall(r'(?:src|href|action)\s*=\s*"([^"]*)"', text)
    assert {a for a in addresses if not a.startswith("#")} == {
        "https://example.org/paper?a=1&amp;b=2"
    }
    assert not re.search(r"@import|url\((?!#)|<link|<iframe|<img", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy.group(1)
    assert "unsafe-eval" not in policy.group(1)
    assert policy.group(1).count("'sha256-") == 3


def test_the_page_is_small_json_and_the_same_each_time(evil_page):
    text = render(evil_page)
    assert text == render(evil_page)
    assert len(text.encode()) <= 12e6
    json.dumps(dataclasses.asdict(evil_page))


def test_figures_data_are_no_formulas_to_a_spreadsheet(evil_page, evil, tmp_path):
    write_folder(evil_page, tmp_path)
    tables = [path.read_text() for path in (tmp_path / "figures").glob("*.csv")]
    cells = [cell for text in tables for row in csv.reader(text.splitlines()) for cell in row]
    assert f"'{evil}" in cells
    assert not [cell for cell in cells if cell.startswith("=")]
    assert [cell for cell in cells if cell.startswith("-")]  # numbers stay numbers


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    page = Page("t", "q")
    path = write_folder(page, tmp_path / "new")
    before = path.read_text()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AttnlabError, match=r"No space left on device.*make it writable"):
        write_folder(Page("other", "q"), path.parent)
    assert path.read_text() == before
    assert {p.name for p in path.parent.iterdir()} == {"figures", "report.html"}
    (tmp_path / "taken" / "report.html").mkdir(parents=True)
    with pytest.raises(AttnlabError, match="is a folder"):
        write_folder(page, tmp_path / "taken")


def test_the_room_imports_nothing_that_computes():
    late = ("jax", "jinja2", "latex2mathml", "equinox")
    code = f"import sys, attnlab.report; print([m for m in {late} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
