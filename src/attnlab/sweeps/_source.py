"""Which code makes a run: a hash of the work function's source, and of all that it reaches.

Syntax trees are compared, so that comments, docstrings and layout do not count. A work function
reaches

- in its own file: itself and the functions, classes, constants, decorators and annotations that it
  names, and that these name; and what the file does when it is imported, except to define other
  names;
- the modules from which any of these import, entirely, and what they import; imports inside
  functions too. A name that a package's ``__init__.py`` only re-exports is followed to where it is
  defined, so that an edit in a package's other modules does not count. Where that cannot be
  determined, the entire package counts.

Modules count if they belong to attnlab or are not installed, that is, are the user's own. Versions
of installed packages are recorded with the plan.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from attnlab._errors import AttnlabError
from attnlab.sweeps._statements import Import, SourceFile, Statement, stamp_of

_ATTNLAB = Path(__file__).parents[1]
_INSTALLED = {"site-packages", "dist-packages"}


class CodeChanged(AttnlabError):
    """A process has loaded other code than the sweep was started with."""


class Seen(NamedTuple):
    """A file as it was read: its time and size, and the hash of its syntax tree."""

    stamp: tuple[int, int]
    digest: str


@dataclass(frozen=True)
class Source:
    """The hash of the source of the function ``name`` in a module, and the files that it was read
    from.
    """

    hash: str
    files: Mapping[Path, Seen]
    module: str
    path: Path
    name: str

    @property
    def is_edited(self) -> bool:
        """Whether the files now hold other code; files that were removed do not count."""
        touched = [path for path, seen in self.files.items() if stamp_of(path) != seen.stamp]
        if not touched or not all(path.exists() for path in touched):
            return False
        return _Walk(self.module, self.path, {}).source(self.name).hash != self.hash


class Watch:
    """Checks modules that a work function loads only while it runs: whether they are then still
    what was hashed.
    """

    def __init__(self, source: Source):
        loaded = _loaded()
        self._waiting = {
            path: seen for path, seen in source.files.items() if str(path) not in loaded
        }

    def check(self) -> None:
        """Check the modules that were loaded since the last call."""
        loaded = _loaded() if self._waiting else set()
        for path in [path for path in self._waiting if str(path) in loaded]:
            seen = self._waiting.pop(path)
            if stamp_of(path) != seen.stamp and SourceFile(path).digest != seen.digest:
                raise CodeChanged(
                    f"{path.name} was edited while the sweep was under way, before it was loaded; "
                    "all runs that finished before are kept, start the same command again"
                )


def source_of(module: str, path: Path, name: str) -> Source:
    """The source of the function ``name`` of a module whose file is ``path``.

    Each file is read once per process: loaded code does not change when its file does.
    """
    return _Walk(module, path, _files).source(name)


class _Walk:
    """Everything that a work function reaches: a line for each statement or module, and the files
    that were read.
    """

    def __init__(self, label: str, path: Path, known: dict[Path, SourceFile]):
        self._label, self._path, self._known = label, path, known
        self._lines: set[str] = set()
        self._files: dict[Path, Seen] = {}
        self._own = _top_folder(label, path)
        self._found: dict[str, Path | None] = {label: path}
        self._done: set[tuple[str, str | None]] = set()
        self._followed: set[tuple[str, tuple[str, ...]]] = set()

    def source(self, name: str) -> Source:
        """The source of a function of the first module."""
        self._take_work(self._label, name)
        text = "\n".join(sorted(self._lines))
        return Source(
            hashlib.sha256(text.encode()).hexdigest(), self._files, self._label, self._path, name
        )

    def _take_work(self, label: str, name: str) -> None:
        """A function, where it is defined: other modules may only re-export it."""
        bound = self._file(label).binding(name)
        if len(bound) == 1 and bound[0].is_import and bound[0].imports[0].name not in (None, "*"):
            passed = bound[0].imports[0]
            module = _absolute(passed, label, self._is_package(label))
            if self._place(module) is not None:
                self._take_work(module, passed.name or "")
                return
        self._take(label, name)

    def _take(self, label: str, name: str) -> None:
        """One name of a file, with what it needs there; the entire file if it does not bind the
        name.
        """
        if (label, name) in self._done:
            return
        self._done.add((label, name))
        file = self._file(label)
        if not any(statement.runs for statement in file.binding(name)):
            self._take_whole(label)
            return
        self._take_statements(label, file.reached([name]))

    def _take_whole(self, label: str) -> None:
        if (label, None) in self._done:
            return
        self._done.add((label, None))
        file = self._file(label)
        self._lines.add(f"{label} {file.digest}")
        self._follow_imports(label, [statement for statement in file.statements if statement.runs])

    def _take_package(self, label: str) -> None:
        """All modules of a package, where it cannot be determined which are used."""
        folder = self._folder(label)
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            module = ".".join((label, *(parts[:-1] if parts[-1] == "__init__" else parts)))
            if _INSTALLED.isdisjoint(parts) and self._place(module) is not None:
                self._take_whole(module)

    def _take_statements(self, label: str, statements: list[Statement]) -> None:
        """Some statements of a file; the order of definitions and imports does not count."""
        self._lines |= {
            f"{label} {statement.digest}" for statement in statements if statement.has_no_order
        }
        ordered = [statement.digest for statement in statements if not statement.has_no_order]
        self._lines.add(" ".join([label, *ordered]))
        self._follow_imports(label, statements)

    def _follow_imports(self, label: str, statements: list[Statement]) -> None:
        uses: dict[str, set[tuple[str, ...]]] = {}
        for dotted in {dotted for statement in statements for dotted in statement.uses}:
            uses.setdefault(dotted[0], set()).add(dotted[1:])
        for one in [one for statement in statements for one in statement.imports]:
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
        """Take what a dotted name ``rest`` in a module refers to."""
        if (label, rest) in self._followed:
            return
        self._followed.add((label, rest))
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
            return  # metadata of a package, such as its version
        bound = self._file(label).binding(name)
        imports = [one for statement in bound if statement.is_import for one in statement.imports]
        passed = [one for one in imports if one.name not in (None, "*")]
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
        """Take what the packages above a module do when they are imported."""
        while label := label.rpartition(".")[0]:
            if (label, "") not in self._done and self._place(label) is not None:
                self._done.add((label, ""))
                self._take_statements(label, self._file(label).reached(()))

    def _file(self, label: str) -> SourceFile:
        path = self._place(label)
        assert path is not None, "only modules with a place are taken"
        if path not in self._known:
            self._known[path] = SourceFile(path)
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
        """The file of a module that counts; of a package its ``__init__.py``, or its folder if it
        has none.
        """
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
        places = [
            Path(origin)
            for origin in (spec.origin, *(spec.submodule_search_locations or ()))
            if origin
        ]
        path = next((path for path in places if path.exists()), None)
        return path if path is not None and self._counts(path) else None

    def _counts(self, path: Path) -> bool:
        if self._own is not None and path.is_relative_to(self._own):
            return True
        return _INSTALLED.isdisjoint(path.parts) and not any(
            path.is_relative_to(folder) for folder in _STANDARD
        )


_STANDARD = [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib")]
_files: dict[Path, SourceFile] = {}


def _loaded() -> set[str]:
    """The files of all modules that this process has loaded."""
    return {
        str(file)
        for module in list(sys.modules.values())
        if (file := getattr(module, "__file__", None))
    }


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


def _absolute(one: Import, label: str, is_package: bool) -> str:
    """The full name of the module that a statement in the module ``label`` imports from."""
    if not one.level:
        return one.module
    parts = label.split(".")
    base = parts[: len(parts) - one.level + is_package]
    return ".".join([*base, *([one.module] if one.module else [])])
