"""A work function by its name, and what it is told about its run."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, get_type_hints

from attnlab._errors import AttnlabError
from attnlab.runs._settings import SettingsType, nearest

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class RunContext:
    """What a work function is told besides its settings: the plan's root seed, the run's index and its hash."""

    root_seed: int
    index: int
    hash: str

    def key(self) -> jax.Array:
        """The random key of this run: the root key, folded with the run's hash (its first two 32-bit words).

        Not with the index: that changes when values are added to a grid, and runs that are kept would then have
        used the keys that new ones get. A hash is the same in every plan that asks for the run.
        """
        import jax

        key = jax.random.key(self.root_seed)
        for word in (self.hash[:8], self.hash[8:16]):
            key = jax.random.fold_in(key, int(word, 16))
        return key


Work = Callable[[Any, RunContext], Any]


@dataclass(frozen=True)
class LoadedWork:
    """A work function, ready to be called, with the type of its settings and its version."""

    name: str
    function: Work
    settings: SettingsType
    version: int


def load_function(name: str, what: str = "function") -> Callable[..., Any]:
    """The function named ``"package.module:function"`` or ``"path/to/file.py:function"``; ``what`` is for messages."""
    target, _, attribute = name.rpartition(":")
    if not target or not attribute:
        raise AttnlabError(f"{what} {name!r}: expected 'package.module:function' or 'path/to/file.py:function'")
    if target == "__main__":
        raise AttnlabError(
            f"{what} {name!r}: other processes cannot import __main__; name the file, 'file.py:function'"
        )
    module = _from_path(Path(target), what) if target.endswith(".py") else _from_name(target, what)
    function = getattr(module, attribute, None)
    if not callable(function):
        there = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        raise AttnlabError(f"{what} {name!r}: {target} has no function {attribute!r}: {nearest(attribute, there)}")
    return function


def load_work(name: str) -> LoadedWork:
    """The work function of a name, as ``load_function`` takes it."""
    function = load_function(name, "work")
    version = getattr(function, "version", 1)
    if type(version) is not int:
        raise AttnlabError(f"work {name!r}: version is {version!r}, expected a whole number")
    return LoadedWork(name, function, _settings_type(name, function), version)


def work_identity(name: str) -> str:
    """The part of a work function's name that enters hashes: of a file only its name, not where it lies.

    >>> work_identity("/somewhere/else/study.py:work")
    'study.py:work'
    """
    target, _, attribute = name.rpartition(":")
    return f"{Path(target).name}:{attribute}" if target.endswith(".py") else name


def _from_name(target: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(target)
    except ImportError as error:
        raise AttnlabError(
            f"{what} module {target!r} cannot be imported ({error}): expected an installed module or the path of a file"
        ) from error


def _from_path(path: Path, what: str) -> ModuleType:
    whole = path.expanduser().resolve()
    if not whole.is_file():
        raise AttnlabError(f"{what} file {path} does not exist (looked at {whole})")
    name = f"attnlab_work_{whole.stem}_{hashlib.sha256(str(whole).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, whole)
    assert spec is not None, "a .py file always has a loader"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _settings_type(name: str, function: Callable[..., Any]) -> SettingsType:
    parameters = list(inspect.signature(function).parameters)
    kind = get_type_hints(function).get(parameters[0]) if parameters else None
    if len(parameters) < 2 or kind is None:
        raise AttnlabError(
            f"work {name!r} takes ({', '.join(parameters)}): expected (settings: SomeFrozenDataclass, context), "
            "the first one annotated"
        )
    return SettingsType(kind)
