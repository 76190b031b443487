"""By which code a run is made: a hash of the work function's source, and of all that it reaches.

What is read are syntax trees, so that comments, docstrings and layout do not count. A work function reaches

- in its own file: itself and the functions, classes, constants, decorators and annotations that it names, and that
  these name; and what the file does when it is imported, except to define other names;
- the modules from which any of these import, whole, and what they import; imports inside of functions too. A name that
  a package's ``__init__.py`` only passes on is looked for where it is defined, so that an edit in a package's other
  modules does not count. Where that cannot be found out, the whole package counts.

Modules count if they belong to attnlab or are not installed, that is, are the user's own. Versions of installed
packages are recorded with the plan.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from attnlab._errors import AttnlabError

_ATTNLAB = Path(__file__).parents[1]
_DYNAMIC = {"import_module", "find_spec", "__import__"}  # calls that take a module by its name
_OPAQUE = {"globals", "eval", "exec"}  # whoever calls these may reach every name of the file
_SILENT = {"kind", "type_comment", "type_ignores", "ctx"}  # fields of syntax trees that mean nothing here
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_INSTALLED = {"site-packages", "dist-packages"}


class CodeChanged(AttnlabError):
    """What a process has loaded is not what the sweep began with."""


class Seen(NamedTuple):
    """A file as it was read: its time and size, and the hash of its syntax tree."""

    stamp: tuple[int, int]
    digest: str


@dataclass(frozen=True)
class Source:
    """The hash of the source of the function ``name`` in a module, and the files that it was read from."""

    hash: str
    files: Mapping[Path, Seen]
    module: str
    path: Path
    name: str

    @property
    def is_edited(self) -> bool:
        """Whether the files say something else by now; those that are gone say nothing."""
        touched = [path for path, seen in self.files.items() if _stamp(path) != seen.stamp]
        if not touched or not all(path.exists() for path in touched):
            return False
        return _Walk(self.module, self.path, {}).source(self.name).hash != self.hash


class Watch:
    """Modules that a work function loads only while it runs: whether they are then still what was hashed."""

    def __init__(self, source: Source):
        loaded = _loaded()
        self._waiting = {path: seen for path, seen in source.files.items() if str(path) not in loaded}

    def check(self) -> None:
        """Look at what was loaded since the last time."""
        loaded = _loaded() if self._waiting else set()
        for path in [path for path in self._waiting if str(path) in loaded]:
            seen = self._waiting.pop(path)
            if _stamp(path) != seen.stamp and _File(path).digest != seen.digest:
                raise CodeChanged(
                    f"{path.name} was edited while the sweep was under way, before it was loaded; all runs that "
                    "finished before are kept, start the same command again"
                )


def source_of(module: str, path: Path, name: str) -> Source:
    """The source of the function ``name`` of a module whose file is ``path``.

    Each file is read once in the life of a process: what was loaded stays loaded, whatever becomes of the file.
    """
    return _Walk(module, path, _files).source(name)


@dataclass(frozen=True)
class _Import:
    """``from module import name as local`` or ``import module as local``; ``local`` is empty for a dynamic one."""

    module: str
    level: int
    name: str | None
    local: str
    is_renamed: bool = False


@dataclass
class _Piece:
    """A statement of a file: the names that it binds or changes, the dotted names that it uses, and its imports."""

    binds: frozenset[str]
    defines: frozenset[str] = frozenset()
    text: list[str] = field(default_factory=list)
    uses: set[tuple[str, ...]] = field(default_factory=set)
    imports: list[_Import] = field(default_factory=list)
    is_import: bool = False
    has_no_order: bool = False
    runs: bool = True  # not if it is for type checkers only
    counts: bool = False  # in any case, as it does something when the file is imported

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256("\0".join(self.text).encode("utf-8", "backslashreplace")).hexdigest()

    def spell(self, node: ast.AST) -> None:
        """Write a syntax tree down, without what has no meaning, and take note of names and imports."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
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
            if value is None or name in _SILENT:
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


class _File:
    """A file as statements; a folder has none. What cannot be read as Python is one statement."""

    def __init__(self, path: Path):
        self.stamp = _stamp(path)
        self.pieces: list[_Piece] = []
        data = b"" if path.is_dir() else path.read_bytes()
        try:
            body = ast.parse(data).body if path.suffix == ".py" or not data else None
        except (SyntaxError, ValueError):
            body = None
        if body is None:
            self.pieces = [_Piece(frozenset(), text=[hashlib.sha256(data).hexdigest()], counts=True)]
        else:
            for node in body:
                self.pieces += _pieces(node)
            self._find_effects(is_package=path.name == "__init__.py")
        running = "\n".join(piece.digest for piece in self.pieces if piece.runs)
        self.digest = hashlib.sha256(running.encode()).hexdigest()

    def _find_effects(self, *, is_package: bool) -> None:
        """Mark what does something on import: what defines nothing here, and imports that nothing here uses.

        Packages import names to pass them on; there only ``import module`` stands for what the module does.
        """
        defined = {name for piece in self.pieces for name in piece.defines}
        used = {dotted[0] for piece in self.pieces for dotted in piece.uses}
        for piece in self.pieces:
            if piece.is_import:
                passed_on = is_package and piece.imports[0].name not in (None, "*")
                piece.counts = not passed_on and piece.binds.isdisjoint(used)
            else:
                piece.counts = piece.binds.isdisjoint(defined)

    def binding(self, name: str) -> list[_Piece]:
        """The statements that bind a name; also those for type checkers, which say where a lazy name comes from."""
        return [piece for piece in self.pieces if name in piece.binds]

    def reached(self, names: Iterable[str]) -> list[_Piece]:
        """The statements that some names need, in the file's order."""
        names, chosen, before = set(names), set(), -1
        while len(names) > before:
            before = len(names)
            for number, piece in enumerate(self.pieces):
                if piece.runs and (piece.counts or not names.isdisjoint(piece.binds)):
                    chosen.add(number)
                    names |= {dotted[0] for dotted in piece.uses}
            if names & _OPAQUE:
                return [piece for piece in self.pieces if piece.runs]
        return [self.pieces[number] for number in sorted(chosen)]


class _Walk:
    """Everything that a work function reaches: a line for each statement or module, and the files that were read."""

    def __init__(self, label: str, path: Path, known: dict[Path, _File]):
        self._label, self._path, self._known = label, path, known
        self._lines: set[str] = set()
        self._files: dict[Path, Seen] = {}
        self._own = _top_folder(label, path)
        self._found: dict[str, Path | None] = {label: path}
        self._done: set[tuple[str, str | None]] = set()

    def source(self, name: str) -> Source:
        """The source of a function of the first module."""
        self._take_work(self._label, name)
        text = "\n".join(sorted(self._lines))
        return Source(hashlib.sha256(text.encode()).hexdigest(), self._files, self._label, self._path, name)

    def _take_work(self, label: str, name: str) -> None:
        """A function, where it is defined: other modules may have passed it on."""
        bound = self._file(label).binding(name)
        if len(bound) == 1 and bound[0].is_import and bound[0].imports[0].name not in (None, "*"):
            passed = bound[0].imports[0]
            module = _absolute(passed, label, self._is_package(label))
            if self._place(module) is not None:
                self._take_work(module, passed.name or "")
                return
        self._take(label, name)

    def _take(self, label: str, name: str) -> None:
        """One name of a file, with what it needs there; the whole file if that does not bind it."""
        if (label, name) in self._done:
            return
        self._done.add((label, name))
        file = self._file(label)
        if not any(piece.runs for piece in file.binding(name)):
            self._take_whole(label)
            return
        self._take_pieces(label, file.reached([name]))

    def _take_whole(self, label: str) -> None:
        if (label, None) in self._done:
            return
        self._done.add((label, None))
        file = self._file(label)
        self._lines.add(f"{label} {file.digest}")
        self._follow_imports(label, [piece for piece in file.pieces if piece.runs])

    def _take_package(self, label: str) -> None:
        """All modules of a package: what of it is used cannot be told."""
        folder = self._folder(label)
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            self._take_whole(".".join((label, *parts)))

    def _take_pieces(self, label: str, pieces: list[_Piece]) -> None:
        """Some statements of a file; the order of definitions and imports does not count."""
        self._lines |= {f"{label} {piece.digest}" for piece in pieces if piece.has_no_order}
        ordered = [piece.digest for piece in pieces if not piece.has_no_order]
        self._lines.add(" ".join([label, *ordered]))
        self._follow_imports(label, pieces)

    def _follow_imports(self, label: str, pieces: list[_Piece]) -> None:
        uses: dict[str, set[tuple[str, ...]]] = {}
        for dotted in {dotted for piece in pieces for dotted in piece.uses}:
            uses.setdefault(dotted[0], set()).add(dotted[1:])
        for one in [one for piece in pieces for one in piece.imports]:
            module = _absolute(one, label, self._is_package(label))
            if self._place(module) is None:
                continue
            rests = uses.get(one.local, set())
            if one.name == "*" or not one.local:
                self._take_package(module) if self._is_package(module) else self._take_whole(module)
            elif one.name is not None:
                for rest in rests or {()}:
                    self._follow(module, (one.name, *rest))
            else:
                top = module if one.is_renamed else module.partition(".")[0]
                for rest in rests:
                    self._follow(top, rest)
                self._take_ancestors(f"{module}.")
                if not self._is_package(module):
                    self._take_whole(module)

    def _follow(self, label: str, rest: tuple[str, ...]) -> None:
        """What a dotted name ``rest`` in a module means."""
        self._take_ancestors(label)
        if not self._is_package(label):
            self._take_whole(label)
            return
        self._take_ancestors(f"{label}.")
        if not rest:
            self._take_package(label)
            return
        name, *more = rest
        if name.startswith("__"):
            return  # what a package says about itself, such as its version
        bound = self._file(label).binding(name)
        passed = [one for piece in bound if piece.is_import for one in piece.imports if one.name not in (None, "*")]
        if passed and len(passed) == len(bound):
            for one in passed:
                module = _absolute(one, label, is_package=True)
                self._lines.add(f"{label}.{name} is {module}.{one.name}")
                if self._place(module) is not None:
                    self._follow(module, (one.name or "", *more))
        elif bound:
            self._take(label, name)
        elif self._place(f"{label}.{name}") is not None:
            self._follow(f"{label}.{name}", tuple(more))
        else:
            self._take_package(label)

    def _take_ancestors(self, label: str) -> None:
        """What the packages above a module do when they are imported."""
        while label := label.rpartition(".")[0]:
            if (label, "") not in self._done and self._place(label) is not None:
                self._done.add((label, ""))
                self._take_pieces(label, self._file(label).reached(()))

    def _file(self, label: str) -> _File:
        path = self._place(label)
        assert path is not None, "only modules with a place are taken"
        if path not in self._known:
            self._known[path] = _File(path)
        file = self._known[path]
        self._files[path] = Seen(file.stamp, file.digest)
        return file

    def _is_package(self, label: str) -> bool:
        path = self._place(label)
        return path is not None and (path.name == "__init__.py" or path.is_dir())

    def _folder(self, label: str) -> Path:
        path = self._place(label)
        assert path is not None
        return path if path.is_dir() else path.parent

    def _place(self, label: str) -> Path | None:
        """The file of a module that counts; of a package its ``__init__.py``, or its folder if it has none."""
        if label not in self._found:
            parent, _, name = label.rpartition(".")
            if not parent:
                self._found[label] = self._top(name)
            elif self._is_package(parent):
                self._found[label] = _in_folder(self._folder(parent), name)
            else:
                self._found[label] = None
        return self._found[label]

    def _top(self, name: str) -> Path | None:
        if name == "attnlab":
            return _ATTNLAB / "__init__.py"
        if name in sys.stdlib_module_names or not name:
            return None
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            spec = None
        if spec is None:
            return _in_folder(self._path.parent, name)
        places = [Path(origin) for origin in (spec.origin, *(spec.submodule_search_locations or ())) if origin]
        path = next((path for path in places if path.exists()), None)
        return path if path is not None and self._counts(path) else None

    def _counts(self, path: Path) -> bool:
        if self._own is not None and path.is_relative_to(self._own):
            return True
        return _INSTALLED.isdisjoint(path.parts) and not any(path.is_relative_to(folder) for folder in _STANDARD)


_STANDARD = [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib")]
_files: dict[Path, _File] = {}


def _stamp(path: Path) -> tuple[int, int]:
    try:
        about = os.stat(path)
    except OSError:
        return (0, 0)
    return about.st_mtime_ns, about.st_size


def _loaded() -> set[str]:
    """The files of all modules that this process has loaded."""
    return {str(file) for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}


def _top_folder(label: str, path: Path) -> Path | None:
    """The folder of the top package that a module belongs to; ``None`` if it belongs to none."""
    depth = label.count(".") + (path.name == "__init__.py")
    return path.parents[depth - 1] if depth else None


def _in_folder(folder: Path, name: str) -> Path | None:
    """A module in a package's folder; of a compiled one the C++ source."""
    for path in (folder / name / "__init__.py", folder / f"{name}.py", folder / f"{name}.cc"):
        if path.is_file():
            return path
    return folder / name if any((folder / name).glob("*.py")) else None


def _absolute(one: _Import, label: str, is_package: bool) -> str:
    """The whole name of the module that a statement in the module ``label`` imports from."""
    if not one.level:
        return one.module
    parts = label.split(".")
    base = parts[: len(parts) - one.level + is_package]
    return ".".join([*base, *([one.module] if one.module else [])])


def _pieces(node: ast.stmt) -> Iterator[_Piece]:
    """The parts of a statement at the top of a file that count or do not count by themselves."""
    if isinstance(node, ast.If) and _is_for_types(node.test):
        for inner in node.body:
            for piece in _pieces(inner):
                piece.runs = False
                yield piece
        for inner in node.orelse:
            yield from _pieces(inner)
    elif isinstance(node, ast.If) and _is_main(node.test):
        return
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for one in _imports(node):
            text = ["import", one.module, str(one.level), str(one.name), one.local]
            yield _Piece(frozenset([one.local]), text=text, imports=[one], is_import=True, has_no_order=True)
    else:
        defined, changed = _bound(node)
        piece = _Piece(defined | changed, defined, has_no_order=isinstance(node, _DEFINITIONS))
        piece.spell(node)
        if piece.text:
            yield piece


def _bound(node: ast.stmt) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a statement defines, and those whose attributes or entries it sets.

    Statements that are neither definitions nor assignments may do anything when the file is imported: none is theirs.
    """
    if isinstance(node, _DEFINITIONS):
        return frozenset([node.name]), frozenset()
    if not isinstance(node, _ASSIGNMENTS) and type(node).__name__ != "TypeAlias":
        return frozenset(), frozenset()
    stored = [one for one in ast.walk(node) if isinstance(getattr(one, "ctx", None), ast.Store)]
    roots = [_root(one) for one in stored if isinstance(one, ast.Attribute | ast.Subscript)]
    return frozenset(one.id for one in stored if isinstance(one, ast.Name)), frozenset(filter(None, roots))


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[_Import]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield _Import(node.module or "", node.level, alias.name, alias.asname or alias.name)
        else:
            local = alias.asname or alias.name.partition(".")[0]
            yield _Import(alias.name, 0, None, local, is_renamed=alias.asname is not None)


def _dynamic_imports(node: ast.Call) -> Iterator[_Import]:
    called = _dotted(node.func)
    if called and called[-1] in _DYNAMIC and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield _Import(first.value, 0, None, "")


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
