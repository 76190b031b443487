"""The statements of a Python file: what each binds, uses and imports, and its hash without comments
and layout.
"""

from __future__ import annotations

import ast
import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

_DYNAMIC = {"import_module", "find_spec", "__import__"}  # calls that take a module by its name
_OPAQUE = {"globals", "eval", "exec"}  # calls that may reach every name of the file
_IGNORED_FIELDS = {"kind", "type_comment", "type_ignores", "ctx"}  # of syntax trees
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)


@dataclass(frozen=True)
class Import:
    """``from module import name as local`` or ``import module as local``; ``local`` is empty for a
    dynamic one.
    """

    module: str
    level: int
    name: str | None
    local: str
    is_renamed: bool = False


@dataclass
class Statement:
    """A statement of a file: the names that it binds or changes, the dotted names that it uses, and
    its imports.
    """

    binds: frozenset[str]
    defines: frozenset[str] = frozenset()
    text: list[str] = field(default_factory=list)
    uses: set[tuple[str, ...]] = field(default_factory=set)
    imports: list[Import] = field(default_factory=list)
    is_import: bool = False
    has_no_order: bool = False
    runs: bool = True  # not if it is for type checkers only
    counts: bool = False  # always, since it does something when the file is imported

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256("\0".join(self.text).encode("utf-8", "backslashreplace")).hexdigest()

    def spell(self, node: ast.AST) -> None:
        """Append a syntax tree to the text, without what has no meaning, and collect its names and
        imports.
        """
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            return
        if isinstance(node, ast.If) and _is_for_types(node.test):
            self._spell_all("orelse", node.orelse)
            return
        if isinstance(node, ast.Name | ast.Attribute):
            dotted = _dotted(node)
            if dotted is not None:
                self.uses.add(dotted)
                self.text.append(".".join(dotted))
                return
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports += _imports(node)
        elif isinstance(node, ast.Call):
            self.imports += _dynamic_imports(node)
        self.text.append(f"({type(node).__name__}")
        for name in node._fields:
            value = getattr(node, name, None)
            if value is None or name in _IGNORED_FIELDS:
                continue
            if name in ("annotation", "returns"):
                self.uses |= _quoted(value)
            if isinstance(value, ast.AST):
                self.text.append(f"{name}=")
                self.spell(value)
            elif isinstance(value, list):
                self._spell_all(name, value)
            else:
                self.text.append(f"{name}={value!r}")
        self.text.append(")")

    def _spell_all(self, name: str, values: list[Any]) -> None:
        if values:
            self.text.append(f"{name}[")
            for value in values:
                self.spell(value) if isinstance(value, ast.AST) else self.text.append(repr(value))
            self.text.append("]")


class SourceFile:
    """A file as statements; a folder has none. What cannot be read as Python is one statement."""

    def __init__(self, path: Path):
        self.stamp = stamp_of(path)
        self.statements: list[Statement] = []
        data = b"" if path.is_dir() else path.read_bytes()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they are shown when the file is imported
                body = ast.parse(data).body if path.suffix == ".py" or not data else None
        except (SyntaxError, ValueError):
            body = None
        if body is None:
            self.statements = [
                Statement(frozenset(), text=[hashlib.sha256(data).hexdigest()], counts=True)
            ]
        else:
            for node in body:
                self.statements += _statements(node)
            self._find_effects(is_package=path.name == "__init__.py")
        running = "\n".join(statement.digest for statement in self.statements if statement.runs)
        self.digest = hashlib.sha256(running.encode()).hexdigest()

    def _find_effects(self, *, is_package: bool) -> None:
        """Mark statements that do something on import: those that define nothing here, and imports
        that nothing here uses.

        Packages import names to re-export them; there only ``import module`` is for its effects.
        """
        defined = {name for statement in self.statements for name in statement.defines}
        used = {dotted[0] for statement in self.statements for dotted in statement.uses}
        for statement in self.statements:
            if statement.is_import:
                re_exports = is_package and statement.imports[0].name not in (None, "*")
                statement.counts = not re_exports and statement.binds.isdisjoint(used)
            else:
                statement.counts = statement.binds.isdisjoint(defined)

    def binding(self, name: str) -> list[Statement]:
        """The statements that bind a name, including those for type checkers, which say where a
        lazily loaded name comes from.
        """
        return [statement for statement in self.statements if name in statement.binds]

    def reached(self, names: Iterable[str]) -> list[Statement]:
        """The statements that some names need, in the file's order."""
        names, chosen, before = set(names), set(), -1
        while len(names) > before:
            before = len(names)
            for number, statement in enumerate(self.statements):
                if statement.runs and (statement.counts or not names.isdisjoint(statement.binds)):
                    chosen.add(number)
                    names |= {dotted[0] for dotted in statement.uses}
            if names & _OPAQUE:
                return [statement for statement in self.statements if statement.runs]
        return [self.statements[number] for number in sorted(chosen)]


def stamp_of(path: Path) -> tuple[int, int]:
    """When a file was written, and its size."""
    try:
        about = os.stat(path)
    except OSError:
        return (0, 0)
    return about.st_mtime_ns, about.st_size


def _statements(node: ast.stmt) -> Iterator[Statement]:
    """The parts of a top-level statement that count separately."""
    if isinstance(node, ast.If) and _is_for_types(node.test):
        for inner in node.body:
            for statement in _statements(inner):
                statement.runs = False
                yield statement
        for inner in node.orelse:
            yield from _statements(inner)
    elif isinstance(node, ast.If) and _is_main(node.test):
        return
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for one in _imports(node):
            text = ["import", one.module, str(one.level), str(one.name), one.local]
            yield Statement(
                frozenset([one.local]), text=text, imports=[one], is_import=True, has_no_order=True
            )
    else:
        defined, changed = _bound(node)
        statement = Statement(
            defined | changed, defined, has_no_order=isinstance(node, _DEFINITIONS)
        )
        statement.spell(node)
        if statement.text:
            yield statement


def _bound(node: ast.stmt) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a statement defines, and those whose attributes or entries it sets.

    Statements that are neither definitions nor assignments may do anything when the file is
    imported, and get no names.
    """
    if isinstance(node, _DEFINITIONS):
        return frozenset([node.name]), frozenset()
    if not isinstance(node, _ASSIGNMENTS) and type(node).__name__ != "TypeAlias":
        return frozenset(), frozenset()
    stored = [one for one in ast.walk(node) if isinstance(getattr(one, "ctx", None), ast.Store)]
    roots = [_root(one) for one in stored if isinstance(one, ast.Attribute | ast.Subscript)]
    names = frozenset(one.id for one in stored if isinstance(one, ast.Name))
    return names, frozenset(root for root in roots if root is not None)


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[Import]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield Import(node.module or "", node.level, alias.name, alias.asname or alias.name)
        else:
            local = alias.asname or alias.name.partition(".")[0]
            yield Import(alias.name, 0, None, local, is_renamed=alias.asname is not None)


def _dynamic_imports(node: ast.Call) -> Iterator[Import]:
    called = _dotted(node.func)
    if called and called[-1] in _DYNAMIC and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield Import(first.value, 0, None, "")


def _dotted(node: ast.AST) -> tuple[str, ...] | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else None


def _quoted(annotation: Any) -> set[tuple[str, ...]]:
    """The dotted names in annotations that are written as strings."""
    found: set[tuple[str, ...]] = set()
    if not isinstance(annotation, ast.AST):
        return found
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inner = ast.parse(node.value.strip(), mode="eval")
            except SyntaxError:
                continue
            found |= {dotted for each in ast.walk(inner) if (dotted := _dotted(each))}
    return found


def _is_for_types(test: ast.expr) -> bool:
    dotted = _dotted(test)
    return dotted is not None and dotted[-1] == "TYPE_CHECKING"


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and _dotted(test.left) == ("__name__",)
