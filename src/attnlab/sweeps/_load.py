"""Loading a function by its name."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from attnlab._errors import AttnlabError
from attnlab.sweeps._settings import nearest


def load_function(name: str, what: str = "function") -> Callable[..., Any]:
    """The function named ``"package.module:function"`` or ``"path/to/file.py:function"``; ``what``
    is for messages.
    """
    module, attribute = load_module(name, what)
    function = getattr(module, attribute, None)
    if not callable(function):
        there = [key for key, value in vars(module).items() if inspect.isfunction(value)]
        target = name.rpartition(":")[0]
        raise AttnlabError(
            f"{what} {name!r}: {target} has no function {attribute!r}: {nearest(attribute, there)}"
        )
    return function


def load_module(name: str, what: str = "function") -> tuple[ModuleType, str]:
    """The module that such a name begins with, and the function's name in it."""
    target, _, attribute = name.rpartition(":")
    if not target or not attribute:
        raise AttnlabError(
            f"{what} {name!r}: expected 'package.module:function' or 'path/to/file.py:function'"
        )
    if target == "__main__":
        raise AttnlabError(
            f"{what} {name!r}: other processes cannot import __main__; name the file, "
            "'file.py:function'"
        )
    if target.endswith(".py"):
        return _from_path(Path(target), what), attribute
    return _from_name(target, what), attribute


def _from_name(target: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(target)
    except ImportError as error:
        raise AttnlabError(
            f"{what} module {target!r} cannot be imported ({error}): expected an installed module "
            "or the path of a file"
        ) from error


def _from_path(path: Path, what: str) -> ModuleType:
    full = path.expanduser().resolve()
    if not full.is_file():
        raise AttnlabError(f"{what} file {path} does not exist (looked at {full})")
    name = f"attnlab_work_{full.stem}_{hashlib.sha256(str(full).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, full)
    assert spec is not None, "a .py file always has a loader"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look up their module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
