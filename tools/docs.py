"""The documentation as a site: ``make docs`` writes build/docs/index.html.

    python tools/docs.py            stage the pages in build/docs-source, then build them with Sphinx
    python tools/docs.py --stage    stage only

The pages are those of docs/, examples/ and of the root. Some kinds of fenced block are filled in
from the library when they are staged, so that nothing in them is typed:

- ``{reference} MODULE``  the entries of the public names that the block lists, in that module
- ``{ledger}``            criteria of claims: a line is ``CLAIM``, or ``CLAIM | part of a criterion``
- ``{catalogue} GROUP``   the claims of a group, refuted and undecided ones first
- ``{derivations}``, ``{glossary}``  those of the papers

A page for every claim and the picture of the house are written besides them.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import inspect
import itertools
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from attnlab.lab import Claim, Control
from attnlab.papers import ROTTEN_TOMATOES, claims
from attnlab.papers.glossary import TERMS
from attnlab.papers.lu2021 import derivations as lu2021_derivations
from attnlab.report import Derivation

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
THEORY = DOCS / "theory.md"
DERIVATIONS = DOCS / "derivations.md"
VERDICTS = DOCS / "verdicts.json"
STAGED = ROOT / "build" / "docs-source"
BUILT = ROOT / "build" / "docs"
GOLDEN = ROOT / "tests" / "golden"
ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
GROUPS = {
    "laws": "Exact laws",
    "lu2021": "Lu, Mao, Nayak (2021): how attention trains",
    "liu2021": "Liu, Balaji, Xue, Min (2021): samples and minima",
    "beyond": "Beyond the two papers",
}
_FENCE = re.compile(
    r"^```\{(reference|ledger|catalogue|derivations|glossary)\} *(.*?)\n(.*?)^```$",
    re.DOTALL | re.M,
)
_ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>\n', re.M)
_SIGNS = {"<=": "≤", ">=": "≥"}


# Staging


def stage(folder: Path = STAGED) -> None:
    """Write all pages that Sphinx reads."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder)
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in ROOT_PAGES:
        shutil.copy(ROOT / name, folder / name.lower())
    for page in folder.rglob("*.md"):
        page.write_text(staged(page.read_text("utf-8")), "utf-8")
    (folder / "claims").mkdir()
    for claim in all_claims().values():
        (folder / "claims" / f"{claim.id}.md").write_text(claim_page(claim), "utf-8")
    (folder / "house.svg").write_text(house(), "utf-8")


def staged(text: str) -> str:
    """A page as Sphinx gets it: blocks filled in, anchors and links to other folders translated."""
    text = _FENCE.sub(lambda found: FILL[found[1]](found[2], found[3].split("\n")), text)
    text = _ANCHOR.sub(r"(\1)=\n", text)
    for name in ROOT_PAGES:
        text = re.sub(rf"\]\((?:\.\./)*{name}\)", f"](/{name.lower()})", text)
    text = re.sub(r"(\bverdicts\.md)#[\w.]+", r"\1", text)  # its anchors stand in a table
    text = re.sub(r"\]\((?:\.\./)*docs/", "](/", text)
    return re.sub(r"\]\((?:\.\./)+examples/", "](/examples/", text)


# The reference


def reference(module: str, lines: list[str]) -> str:
    """A table of some public names, and an entry for each."""
    names = [line.strip() for line in lines if line.strip()]
    rows = [(f"[`{name}`](#{module}.{name})", _summary(module, name)) for name in names]
    entries = [_entry(module, name) for name in names]
    body = "\n\n".join(entries)
    return f"{table(('name', 'what it is'), rows)}\n\n````{{eval-rst}}\n{body}\n````\n"


def listed() -> list[tuple[str, str]]:
    """Module and name of every entry of the reference."""
    found = []
    for page in sorted((DOCS / "reference").glob("*.md")):
        for kind, module, names in _FENCE.findall(page.read_text("utf-8")):
            if kind == "reference":
                found += [(module, name.strip()) for name in names.split("\n") if name.strip()]
    return found


def _entry(module: str, name: str) -> str:
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value):
        return f".. autoclass:: {module}.{name}\n   :members:"
    if inspect.isfunction(value) or callable(value):
        return f".. autofunction:: {module}.{name}"
    indented = "\n".join(f"   {line}" for line in _doc_of_value(module, name).split("\n"))
    return f".. py:data:: {module}.{name}\n\n{indented}"


def _summary(module: str, name: str) -> str:
    value = getattr(importlib.import_module(module), name)
    known = inspect.isclass(value) or callable(value)
    text = inspect.getdoc(value) if known else _doc_of_value(module, name)
    first = re.split(r"\n\n|(?<=\.)\s", text or "")[0].replace("\n", " ")
    return first.replace("``", "`").rstrip(":")


@functools.cache
def _docs_of_values(room: str) -> dict[str, str]:
    """The strings below assignments of a room's modules, by the assigned names."""
    found = {}
    for path in sorted(Path(inspect.getfile(importlib.import_module(room))).parent.glob("_*.py")):
        nodes = ast.parse(path.read_text("utf-8")).body
        for node, below in itertools.pairwise(nodes):
            text = below.value if isinstance(below, ast.Expr) else None
            if isinstance(node, ast.Assign) and isinstance(text, ast.Constant):
                names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
                found |= dict.fromkeys(names, inspect.cleandoc(str(text.value)))
    return found


def _doc_of_value(room: str, name: str) -> str:
    return _docs_of_values(room)[name]


# The ledger


@functools.cache
def all_claims() -> dict[str, Claim]:
    """Every claim by its id, those about texts too."""
    return claims(ROTTEN_TOMATOES)


@functools.cache
def measured(claim: str) -> dict[str, Any]:
    """Verdict and criteria of a claim as the repository last stored them, at quick scale."""
    path = GOLDEN / f"{claim}.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}


@functools.cache
def at_paper_scale() -> dict[str, Any]:
    """The claims that were judged at paper scale, on fresh seeds."""
    return json.loads(VERDICTS.read_text("utf-8"))["claims"]


def ledger(_: str, lines: list[str]) -> str:
    """A table of criteria: what is asked, what was measured, and the verdict."""
    rows = []
    for line in filter(None, map(str.strip, lines)):
        name, _, part = (piece.strip() for piece in line.partition("|"))
        rows += list(_ledger_rows(name, part))
    return table(("what", "measured", "asked", "verdict"), rows)


def _ledger_rows(name: str, part: str) -> Iterator[tuple[str, ...]]:
    if name not in all_claims():
        raise SystemExit(f"the ledger has no claim {name!r}")
    chosen = [c for c in all_claims()[name].criteria if part in c.name]
    if not chosen:
        raise SystemExit(f"the ledger has no criterion of {name} with {part!r} in its name")
    for criterion in chosen:
        found = measured(name).get("criteria", {}).get(criterion.name, {})
        link = f"[{criterion.name}](/claims/{name}.md)"
        yield link, value(found), criterion.words, found.get("verdict", "not run")


def value(found: dict[str, Any]) -> str:
    """A measured statistic with its interval."""
    statistic, ends = found.get("statistic"), found.get("interval")
    if statistic is None:
        return "–"
    if ends is None:
        return f"{statistic:.3g}"
    low, high = (f"{end:.3g}" if end is not None else "…" for end in ends)
    return f"{statistic:.3g} [{low}, {high}]"


def catalogue(group: str, _: list[str]) -> str:
    """The claims of a group: refuted and undecided ones first."""
    order = {"fails": 0, "inconclusive": 1, "reported": 3, "": 4}
    chosen = [claim for claim in all_claims().values() if claim.id.startswith(f"{group}.")]
    chosen.sort(key=lambda claim: order.get(measured(claim.id).get("verdict", ""), 2))
    rows = [
        (f"[{title(claim)}](/claims/{claim.id}.md)", measured(claim.id).get("verdict", "not run"))
        for claim in chosen
    ]
    names = "\n".join(f"/claims/{claim.id}" for claim in chosen)
    hidden = f"```{{toctree}}\n:hidden:\n\n{names}\n```"
    return f"{table(('finding', 'verdict'), rows)}\n\n{hidden}\n"


def title(claim: Claim) -> str:
    """What was found; where that is not written down, the claim's title."""
    return claim.finding.get(measured(claim.id).get("verdict", ""), claim.title)


def claim_page(claim: Claim) -> str:
    """The page of a claim, from the claim itself and the stored measurement."""
    text = "\n\n".join(part for part in _claim_parts(claim) if part) + "\n"
    return re.sub(r"\bdocs/([a-z]+)\.md", r"[docs/\g<1>.md](/\g<1>.md)", text)


def _claim_parts(claim: Claim) -> Iterator[str]:
    facts, found = claim.ledger(), measured(claim.id)
    verdict = found.get("verdict", "not run")
    yield f"# {title(claim)}"
    yield f"**{claim.id}.** {claim.statement}"
    yield claim.why
    expected = "" if facts["expected"] == "holds" else ", as expected" * (verdict == "fails")
    yield f"**Verdict:** {verdict}{expected}. **Source:** {facts['source']}."
    if judged := at_paper_scale().get(claim.id):
        yield (
            f"**At paper scale**, on seeds that no threshold was set after: {judged['verdict']} "
            f"([all verdicts](/{VERDICTS.with_suffix('.md').name}))."
        )
    yield "## Criteria"
    yield (
        "Measured at quick scale; these are the numbers that the repository stores, and `make golden` "
        "measures them again."
        if found
        else "No measurement is stored yet."
    )
    yield table(
        ("criterion", "measured", "asked", "verdict"),
        [
            (name, value(one), words, one.get("verdict", "not run"))
            for name, words in facts["criteria"].items()
            for one in [found.get("criteria", {}).get(name, {})]
        ],
    )
    yield "## Controls"
    yield "\n\n".join(_control(claim, control, found) for control in claim.controls)
    yield "## How it is measured"
    yield claim.how_measured
    yield f"**Refuted by:** {claim.refuted_by}"
    if claim.notes:
        yield "## Notes"
        yield "\n".join(f"- {note}" for note in claim.notes)
    yield "## Provenance"
    yield "\n".join(_provenance(facts))
    if claim.id in derived():
        yield f"The derivation, line by line: [Derivations](/{DERIVATIONS.name})."
    yield "## Run it"
    corpus = f" --corpus {ROTTEN_TOMATOES}" * bool(claim.options)
    yield f"```sh\nattnlab reproduce {claim.id}{corpus}\n```"
    yield _in_the_theory(claim)


def _control(claim: Claim, control: Control, found: dict[str, Any]) -> str:
    must = "must be rejected" if control.should == "reject" else "must hold"
    rows = [
        (criterion.name, value(one), criterion.words, one.get("verdict", "not run"))
        for criterion in control.criteria
        for one in [found.get("criteria", {}).get(f"control {control.id}: {criterion.name}", {})]
    ]
    head = f"**{control.id}** ({must}). {control.statement}"
    return f"{head}\n\n{table(('criterion', 'measured', 'asked', 'verdict'), rows)}"


def _provenance(facts: dict[str, Any]) -> Iterator[str]:
    yield f"- thresholds: {facts['provenance'] or 'it is not stated when they were set'}"
    for name, own in facts["of_criteria"].items():
        yield f"- {name}: {'; '.join(own.values())}"
    since = facts["expected_provenance"]
    yield f"- expected: {facts['expected']}" + (f"; {since}" if since else "")


def _in_the_theory(claim: Claim) -> str:
    """Links to the sections of the theory that name the claim."""
    text = THEORY.read_text("utf-8")
    pieces = re.split(r'<a id="([\w-]+)"></a>\n#+ (.*)\n', text)[1:]
    named = [
        f"[{heading}](/{THEORY.name}#{anchor})"
        for anchor, heading, body in zip(*(pieces[k::3] for k in range(3)), strict=True)
        if f"`{claim.id}`" in body
    ]
    return f"**In the theory:** {'; '.join(named)}." if named else ""


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table; cells may hold links and code, not bars."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    text = re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")
    return re.sub(r" ?([≤≥]) ", "\u00a0\\1\u00a0", text)


def derivations(*_: object) -> str:
    """Every derivation: formula and reason, line by line."""
    found = []
    for claim in all_claims().values():
        for derivation in derived().get(claim.id, ()):
            lines = [f"$$\n{line.latex}\n$$\n\n{line.words}" for line in derivation.lines]
            more = f"The claim: [{title(claim)}](/claims/{claim.id}.md)."
            found += [f"## {derivation.title}", *lines, more]
    return "\n\n".join(found)


@functools.cache
def derived() -> dict[str, list[Derivation]]:
    """The derivations of the papers by the claim that they stand beside."""
    found: dict[str, list[Derivation]] = {}
    for module in (lu2021_derivations,):
        for value in vars(module).values():
            if isinstance(value, Derivation):
                found.setdefault(value.id, []).append(value)
    return found


def glossary(*_: object) -> str:
    """The glossary as a table."""
    rows = [(term.symbol, f"${term.latex}$" if term.latex else "", term.meaning) for term in TERMS]
    return table(("term", "in formulas", "meaning"), rows)


FILL: dict[str, Callable[[str, list[str]], str]] = {
    "reference": reference,
    "ledger": ledger,
    "catalogue": catalogue,
    "derivations": derivations,
    "glossary": glossary,
}


# The house


def house() -> str:
    """The rooms as an SVG, drawn from the imports: a room stands below all rooms that it imports."""
    import grimp

    graph = grimp.build_graph("attnlab", exclude_type_checking_imports=True)
    rooms = sorted(room for room in graph.find_children("attnlab") if graph.find_children(room))
    return draw({room: _used(graph, room, rooms) for room in rooms})


def _used(graph: Any, room: str, rooms: list[str]) -> dict[str, int]:
    """The rooms that a room imports, with the number of its files' imports."""
    files = graph.find_descendants(room) | {room}
    imported = [name for file in files for name in graph.find_modules_directly_imported_by(file)]
    counts = {
        other: sum(name == other or name.startswith(f"{other}.") for name in imported)
        for other in rooms
        if other != room
    }
    return {other: count for other, count in counts.items() if count}


def draw(uses: dict[str, dict[str, int]]) -> str:
    """Rooms in rows, below all that they import. A line that follows from two others is left out."""

    @functools.cache
    def below(room: str) -> int:
        """The longest way down to a room that nothing imports."""
        return 1 + max((below(user) for user in uses if room in uses[user]), default=-1)

    @functools.cache
    def above(room: str) -> int:
        """The longest way up to a room that imports nothing."""
        return 1 + max(map(above, uses[room]), default=-1)

    @functools.cache
    def reached(room: str) -> frozenset[str]:
        return frozenset(uses[room]).union(*map(reached, uses[room]))

    last = max(map(below, uses))
    rows: dict[int, list[str]] = {}
    for room in sorted(uses):
        # What imports next to nothing stands near those that need it, not at the top.
        rows.setdefault(above(room) if above(room) > 1 else last - below(room), []).append(room)
    width, step = 900, 92
    places: dict[str, tuple[float, float]] = {}
    for level, row in sorted(rows.items()):
        middle = {
            room: statistics.mean([places[other][0] for other in uses[room]] or [width])
            for room in row
        }
        users = {room: sum(room in others for others in uses.values()) for room in row}
        for k, room in enumerate(sorted(row, key=lambda room: (middle[room], -users[room]))):
            alone = min(middle[room], width / 2)
            x = alone if len(row) == 1 else width * (k + 0.5) / len(row)
            places[room] = (x, 40.0 + level * step)
    lines = [
        _line(places[room], places[other], f"{_short(room)} imports {_short(other)}: {count} times")
        for room, others in uses.items()
        for other, count in others.items()
        if not any(other in reached(between) for between in others)
    ]
    boxes = [
        f'<rect x="{x - 58:.0f}" y="{y - 18:.0f}" width="116" height="36" rx="6"/>'
        f'<text x="{x:.0f}" y="{y + 5:.0f}">{_short(room)}</text>'
        for room, (x, y) in places.items()
    ]
    style = (
        ".house path{fill:none;stroke:#8aa0b8;stroke-width:2}"
        ".house path:hover{stroke:#d1495b;stroke-width:4}"
        ".house rect{fill:var(--color-background-secondary,#f4f6f8);stroke:#5b7a99}"
        ".house text{fill:var(--color-foreground-primary,#222);text-anchor:middle;"
        "font:600 15px system-ui,sans-serif}"
    )
    bottom = 40 + last * step + 40
    return (
        f'<svg class="house" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom}" '
        f'role="img" aria-label="The rooms of attnlab and their imports"><style>{style}</style>'
        f"{''.join(lines)}{''.join(boxes)}</svg>\n"
    )


def _line(low: tuple[float, float], high: tuple[float, float], words: str) -> str:
    (x, y), (to_x, to_y) = low, high
    y, to_y = y - 18, to_y + 18
    bend = (y - to_y) / 2
    return (
        f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {y - bend:.0f} {to_x:.0f} {to_y + bend:.0f} '
        f'{to_x:.0f} {to_y:.0f}"><title>{words}</title></path>'
    )


def _short(room: str) -> str:
    return room.rpartition(".")[2]


# The built site


class _Page(HTMLParser):
    """The ids of a page, the places that it links to, and the files that a browser loads for it."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag names."""
        given = {name: text or "" for name, text in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loads += [given[name] for name in ("src", "srcset", "data", "poster") if name in given]
        if tag == "link" and given.get("rel", "") not in _NOT_LOADED:
            self.loads.append(given.get("href", ""))


_NOT_LOADED = ("next", "prev", "index", "search", "canonical", "author", "copyright")
_WEB = re.compile(r"(?:https?:)?//|ftp:")


def problems(folder: Path) -> list[str]:
    """Links of a built site that lead nowhere, and whatever it would load from a network."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        found += [f"{name} loads {load}" for load in page.loads if _WEB.match(load)]
        for link in [*page.links, *page.loads]:
            if not link or re.match(r"[a-z]+:|//", link):
                continue
            place, _, anchor = unquote(link).partition("#")
            target = (path.parent / place.split("?")[0]).resolve() if place else path
            ids = pages[target].ids if target in pages else {anchor}
            if not target.exists() or (anchor and anchor not in ids):
                found.append(f"{name} links to {link}, which is not there")
    for path in sorted(folder.rglob("*.css")):
        loads = re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")]+)", path.read_text("utf-8"))
        found += [f"{path.name} loads {load}" for load in loads if _WEB.match(load)]
    return found


def main() -> int:
    """Stage, and build unless told otherwise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--stage", action="store_true", help="stage the pages only")
    chosen = parser.parse_args()
    stage()
    if chosen.stage:
        return 0
    command = ["-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-d"]
    doctrees = ROOT / "build" / "docs-doctrees"
    shutil.rmtree(BUILT, ignore_errors=True)
    whole = [sys.executable, *command, str(doctrees), str(STAGED), str(BUILT)]
    if code := subprocess.run(whole, check=False).returncode:
        return code
    found = problems(BUILT)
    print(*found, sep="\n", end="\n" * bool(found))
    size = sum(path.stat().st_size for path in BUILT.rglob("*") if path.is_file())
    count = sum(1 for _ in BUILT.rglob("*.html"))
    print(f"{BUILT / 'index.html'}: {count} pages, {size / 1e6:.1f} MB, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
