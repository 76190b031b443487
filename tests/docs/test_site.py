"""What the documentation must have, checked without building it: entries, pages, links, tables."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tools import docs

import attnlab
from attnlab.papers import ROTTEN_TOMATOES, claims

ROOT = Path(__file__).resolve().parents[2]
ROOMS = [f"attnlab.{name}" for name in attnlab.__all__ if inspect.ismodule(getattr(attnlab, name))]
ROOMS.append("attnlab.cli")


@pytest.fixture(scope="module")
def staged(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "source"
    docs.stage(folder)
    return folder


def public(room: str) -> set[tuple[str, str]]:
    return {(room, name) for name in importlib.import_module(room).__all__}


def test_every_public_name_of_a_room_has_one_entry():
    listed = docs.listed()
    assert len(listed) == len(set(listed))
    of_rooms = {entry for entry in listed if entry[0] != "attnlab"}
    assert of_rooms == set().union(*map(public, ROOMS))


def test_every_name_of_the_top_level_has_an_entry():
    entries = [getattr(importlib.import_module(module), name) for module, name in docs.listed()]
    documented = {id(entry) for entry in entries}
    values = {name: getattr(attnlab, name) for name in attnlab.__all__}
    missing = [
        name
        for name, value in values.items()
        if not inspect.ismodule(value) and id(value) not in documented
    ]
    assert missing == []
    index = (docs.DOCS / "reference" / "index.md").read_text("utf-8")
    assert [room for room in ROOMS if f"`{room.partition('.')[2]}`" not in index] == []


def test_every_entry_says_what_it_is(staged):
    for page in (staged / "reference").glob("*.md"):
        rows = re.findall(r"^\| \[`(\w+)`\]\(#[\w.]+\) \| (.*) \|$", page.read_text("utf-8"), re.M)
        assert page.stem == "index" or rows
        assert [name for name, words in rows if not words] == []


def test_every_claim_has_a_page_with_its_terms(staged):
    for claim in claims(ROTTEN_TOMATOES).values():
        page = (staged / "claims" / f"{claim.id}.md").read_text("utf-8")
        assert claim.statement in page
        assert claim.refuted_by in page
        for criterion in (*claim.criteria, *(c for one in claim.controls for c in one.criteria)):
            assert docs.table((criterion.name,), []).split("\n")[0].strip("| ") in page
        # The theory names every claim whose numbers are stored (tests/test_theory.py).
        assert f"(/{docs.THEORY.name}#" in page or not docs.measured(claim.id)


def test_a_claims_page_shows_the_stored_measurement(staged):
    claim = "lu2021.sen"
    page = (staged / "claims" / f"{claim}.md").read_text("utf-8")
    stored = json.loads((docs.GOLDEN / f"{claim}.json").read_text("utf-8"))
    assert f"**Verdict:** {stored['verdict']}." in page
    name, one = next(iter(stored["criteria"].items()))
    assert f"| {name} | {one['statistic']:.3g} |" in page


def test_a_claims_page_says_what_was_found_at_paper_scale(monkeypatch):
    claim = claims()["lu2021.sen"]
    words = "**At paper scale**, on seeds that no threshold was set after: inconclusive"
    assert (words in docs.claim_page(claim)) == (
        docs.at_paper_scale().get(claim.id, {}).get("verdict") == "inconclusive"
    )
    monkeypatch.setattr(docs, "at_paper_scale", lambda: {claim.id: {"verdict": "inconclusive"}})
    assert words in docs.claim_page(claim)


def test_anchors_in_the_table_of_verdicts_are_dropped():
    page = "verdicts" + ".md"
    assert docs.staged(f"[0.97](docs/{page}#liu2021.depth)") == f"[0.97](/{page})"


def test_refuted_claims_are_listed_first(staged):
    text = (staged / "claims.md").read_text("utf-8")
    for part in text.split("\n## ")[1:]:
        verdicts = re.findall(r"\.md\) \| (.*) \|$", part, re.M)
        worst_first = sorted(
            verdicts,
            key=lambda verdict: (
                ("fails", "inconclusive").index(verdict)
                if verdict in ("fails", "inconclusive")
                else 2
            ),
        )
        assert verdicts
        assert verdicts == worst_first
    named = re.findall(r"\(/claims/([\w.]+)\.md\)", text)
    assert sorted(named) == sorted(claims(ROTTEN_TOMATOES))


def test_links_of_the_staged_pages_resolve(staged):
    broken = []
    for page in staged.rglob("*.md"):
        text = page.read_text("utf-8")
        for link in re.findall(r"\]\(([^()\s]+)\)", text):
            name, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link) or not name:
                continue
            target = staged / name[1:] if name.startswith("/") else page.parent / name
            if not target.is_file() or (
                anchor and f"({anchor})=" not in target.read_text("utf-8").split("\n")
            ):
                broken.append((page.relative_to(staged).as_posix(), link))
    assert broken == []


def test_a_table_of_the_ledger_is_filled_and_refuses_what_is_not_there():
    filled = docs.staged("```{ledger}\nlaws.optimizers | Adam\n```")
    assert "score sum: Adam breaks it" in filled
    assert "momentum" not in filled
    with pytest.raises(SystemExit, match=r"no criterion of laws\.optimizers with 'Eve'"):
        docs.staged("```{ledger}\nlaws.optimizers | Eve\n```")
    with pytest.raises(SystemExit, match=r"no claim 'laws\.none'"):
        docs.staged("```{ledger}\nlaws.none\n```")


def test_the_readme_names_what_does_not_hold():
    text = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*?) \| (fails|inconclusive) \|", text, re.M)
    named = {
        claim: verdict for names, verdict in rows for claim in re.findall(r"`([\w.]+)`", names)
    }
    stored = {
        path.stem: json.loads(path.read_text("utf-8")).get("verdict")
        for path in docs.GOLDEN.glob("*.json")
    }
    assert named == {c: v for c, v in stored.items() if v in ("fails", "inconclusive")}


def test_links_and_loads_of_a_built_site_are_checked(tmp_path):
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here"></a><a href="b.html#there"></a><a href="https://x.org"></a>'
        '<img src="c.png"><link rel="stylesheet" href="d.css">'
    )
    (tmp_path / "b.html").write_text('<h1 id="there"></h1>')
    (tmp_path / "c.png").touch()
    (tmp_path / "d.css").write_text("a { background: url(c.png) }")
    assert docs.problems(tmp_path) == []
    (tmp_path / "b.html").write_text('<script src="//cdn.org/x.js"></script><a href="none.html">')
    (tmp_path / "d.css").write_text(
        "@import 'https://fonts.org/x.css'; a { background: url(c.png) }"
    )
    assert docs.problems(tmp_path) == [
        "a.html links to b.html#there, which is not there",
        "b.html loads //cdn.org/x.js",
        "b.html links to none.html, which is not there",
        "d.css loads https://fonts.org/x.css",
    ]


def test_the_house_is_drawn_from_the_imports():
    drawn = ET.fromstring(docs.house())
    boxes = {t.text: float(t.get("y", "nan")) for t in drawn.iter() if t.tag.endswith("text")}
    assert set(boxes) == {room.partition(".")[2] for room in ROOMS}
    titles = [t.text or "" for t in drawn.iter() if t.tag.endswith("title")]
    for title in titles:
        low, _, high = title.partition(":")[0].split()
        assert boxes[low] > boxes[high]
    assert "dynamics imports training" in " ".join(titles)


def test_a_line_that_follows_from_two_others_is_not_drawn():
    uses: dict[str, dict[str, int]] = {"a": {}, "b": {"a": 1}, "c": {"b": 2, "a": 3}}
    titles = re.findall(r"<title>(.*?)</title>", docs.draw(uses))
    assert titles == ["b imports a: 1 times", "c imports b: 2 times"]
