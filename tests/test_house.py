"""The floor plan, file by file: no reach past a room's door, no cycles, light imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
HEAVY = (
    "jax",
    "xarray",
    "scipy",
    "sklearn",
    "zarr",
    "dask",
    "distributed",
    "jinja2",
    "latex2mathml",
)


@cache
def imports() -> dict[str, frozenset[str]]:
    """Which modules of attnlab each of them imports at run time, inside functions too."""
    names = {_name(path): path for path in SOURCE.rglob("*.py")}
    return {name: frozenset(_imported(path, name, set(names))) for name, path in names.items()}


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, name: str, known: set[str]) -> set[str]:
    found = set()
    for node in _runtime_nodes(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in known - {"attnlab"}}
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
    return found - {name, "attnlab"}


def _runtime_nodes(tree: ast.AST):
    """All nodes but those under ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _runtime_nodes(node)


def _room(name: str) -> str:
    return ".".join(name.split(".")[:2])


def test_no_file_reaches_past_another_rooms_door():
    reaches = {
        f"{name} -> {target}"
        for name, targets in imports().items()
        for target in targets
        if _room(target) != _room(name)
        and any(part.startswith("_") for part in target.split(".")[2:])
    }
    assert reaches == set()


def test_files_import_each_other_in_one_direction():
    graph = imports()
    state: dict[str, int] = {}

    def visit(name: str, path: tuple[str, ...]) -> None:
        if state.get(name) == 1:
            cycle = (*path[path.index(name) :], name)
            pytest.fail(" -> ".join(cycle))
        if state.get(name) == 2:
            return
        state[name] = 1
        for target in sorted(graph[name]):
            visit(target, (*path, name))
        state[name] = 2

    for name in sorted(graph):
        visit(name, ())


@pytest.mark.parametrize(
    ("statement", "forbidden"),
    [
        ("import attnlab.lab", HEAVY),
        ("import attnlab.report", HEAVY),
        ("from attnlab.papers import claims; claims('rotten-tomatoes')", HEAVY),
        ("from attnlab.questions import questions; questions()", HEAVY),
        ("import attnlab.cli", HEAVY),
    ],
)
def test_listing_and_help_load_nothing_heavy(statement, forbidden):
    code = f"{statement}; import sys; print(*(m for m in {forbidden!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_formatter_has_no_exceptions():
    marks = ("fmt: " + "skip", "fmt: " + "off")
    found = [p.name for p in SOURCE.rglob("*.py") if any(m in p.read_text("utf-8") for m in marks)]
    assert found == []


def test_what_the_lab_replaced_is_gone():
    assert [
        name for name in ("studies", "claims", "tasks") if (SOURCE / "attnlab" / name).exists()
    ] == []
