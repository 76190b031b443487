"""A work function, with what a sweep must know about it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from attnlab._errors import AttnlabError
from attnlab.sweeps._load import load_function, load_module
from attnlab.sweeps._settings import SettingsType
from attnlab.sweeps._source import Source, source_of


@dataclass(frozen=True)
class LoadedWork:
    """A work function, with the type of its settings and the source that it was loaded from.

    ``version`` is part of its runs' hashes, and so of their random keys: the attribute ``version``
    of the function, by default 1. ``batch`` is how many runs ``batched`` declares that one call
    computes, lists in and out; ``None`` for a function of one run.
    """

    name: str
    function: Callable[..., Any]
    settings: SettingsType
    version: int
    batch: int | None
    source: Source


_loaded: dict[tuple[str, str], LoadedWork] = {}


def load_work(name: str) -> LoadedWork:
    """The work function of a name, as ``load_function`` takes it. Its source is read only once, when
    the function is loaded.
    """
    function = load_function(name, "work")
    module, attribute = load_module(name, "work")
    known = _loaded.get((module.__name__, attribute))
    if known is not None and known.function is function:
        return known
    version = getattr(function, "version", 1)
    if type(version) is not int:
        raise AttnlabError(f"work {name!r}: version is {version!r}, expected a whole number")
    batch: int | None = getattr(function, "batch", None)
    settings = _settings_type(name, function, batch)
    found = LoadedWork(name, function, settings, version, batch, _source(name))
    _loaded[module.__name__, attribute] = found
    return found


def _source(name: str) -> Source:
    module, attribute = load_module(name, "work")
    target = name.rpartition(":")[0]
    if getattr(module, "__file__", None) is None:
        raise AttnlabError(
            f"work {name!r}: {target} has no file; expected a function in a Python file"
        )
    path = Path(str(module.__file__))
    # A file that is named by its path is not the module of that name, even if there is one.
    label = f"<{path.stem.replace('.', '_')}>" if target.endswith(".py") else module.__name__
    return source_of(label, path, attribute)


def work_identity(name: str) -> str:
    """The part of a work function's name that enters hashes: of a file only its name, not its
    folder.

    >>> work_identity("/somewhere/else/study.py:work")
    'study.py:work'
    """
    target, _, attribute = name.rpartition(":")
    return f"{Path(target).name}:{attribute}" if target.endswith(".py") else name


def _settings_type(name: str, function: Callable[..., Any], batch: int | None) -> SettingsType:
    parameters = list(inspect.signature(function).parameters)
    kind = get_type_hints(function).get(parameters[0]) if parameters else None
    if len(parameters) < 2 or kind is None:
        raise AttnlabError(
            f"work {name!r} takes ({', '.join(parameters)}): expected (settings: "
            "SomeFrozenDataclass, context), the first one annotated"
        )
    if batch is not None:
        if get_origin(kind) not in (list, Sequence) or len(get_args(kind)) != 1:
            raise AttnlabError(
                f"work {name!r} is batched and takes settings: {kind}: expected (settings: "
                "list[SomeFrozenDataclass], contexts: list[RunContext])"
            )
        (kind,) = get_args(kind)
    return SettingsType(kind)
