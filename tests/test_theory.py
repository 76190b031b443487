"""The sources refer to sections of docs/theory.md, and it refers to the sources: all of it exists."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

from attnlab.papers import resolve

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "tests" / "golden"
FOLDERS = (".ci", "benchmarks", "docs", "examples", "src", "tests", "tools")
PAGE = (ROOT / "docs" / "theory.md").read_text("utf-8")
ANCHOR = re.compile(r'<a id="([^"]*)"></a>')


def _texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the repository and its content."""
    found = [path for path in ROOT.iterdir() if path.is_file()]
    found += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(found):
        if "__pycache__" in path.parts or any(part.endswith(".egg-info") for part in path.parts):
            continue
        try:
            yield path.relative_to(ROOT), path.read_text("utf-8")
        except UnicodeDecodeError:  # a picture, a compiled kernel
            continue


def test_references_resolve_to_sections():
    anchors = set(ANCHOR.findall(PAGE))
    found = [
        (path, anchor)
        for path, text in _texts()
        for anchor in re.findall(r"docs/theory\.md#([\w-]*)", text)
    ]
    assert len(found) > 50
    assert [reference for reference in found if reference[1] not in anchors] == []


def test_each_of_several_references_is_written_in_full():
    short = re.compile(r"theory\.md#\w+(?:,|\s+and|\s+to)\s+#?[a-cA-C]\d")
    assert [(path, match) for path, text in _texts() for match in short.findall(text)] == []


def test_every_section_has_an_anchor_of_its_own():
    anchors = ANCHOR.findall(PAGE)
    assert len(anchors) == len(set(anchors))
    lines = PAGE.splitlines()
    headings = [i for i, line in enumerate(lines) if re.match(r"##+ ", line)]
    assert len(headings) == len(anchors)
    for i in headings:
        anchor = ANCHOR.fullmatch(lines[i - 1])
        assert anchor, f"no anchor above {lines[i]!r}"
        assert lines[i].lower().lstrip("# ").split(maxsplit=1)[0].rstrip(".") == anchor[1], lines[i]


def test_names_of_the_library_exist():
    named = set(re.findall(r"\battnlab\.([a-z]+)\.(\w+)((?:\.\w+)*)", PAGE))
    assert len(named) > 50
    for room, name, attributes in named:
        module = importlib.import_module(f"attnlab.{room}")
        assert name in module.__all__, f"attnlab.{room}.{name}"
        value = getattr(module, name)
        for attribute in attributes.split(".")[1:]:
            value = getattr(value, attribute)


def test_claims_are_named_and_exist():
    claims = {claim.id for claim in resolve([], corpus="rotten-tomatoes")}
    groups = "|".join(sorted({claim.split(".")[0] for claim in claims}))
    named = set(re.findall(rf"`((?:{groups})\.\w+)`", PAGE))
    assert named <= claims
    # A claim is new until its golden numbers are stored; then this page must name it.
    assert {claim for claim in claims if (STORED / f"{claim}.json").is_file()} <= named


def test_markdown_files_that_are_referred_to_exist():
    missing = []
    for path, text in _texts():
        for name in re.findall(r"[\w./-]+\.md\b", text):
            places = ((ROOT / path).parent, ROOT, ROOT / "docs")
            if not name.startswith("//") and not any((place / name).is_file() for place in places):
                missing.append((path, name))
    assert missing == []


def test_relative_links_of_markdown_files_resolve():
    broken = []
    for path, text in _texts():
        if path.suffix != ".md":
            continue
        for link in re.findall(r"\]\(([^()\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (ROOT / path).parent / name if name else ROOT / path
            if not target.exists() or (
                anchor and anchor not in ANCHOR.findall(target.read_text("utf-8"))
            ):
                broken.append((path, link))
    assert broken == []
