"""The settings of a run: which fields there are, of which type, and what was given for them."""

from __future__ import annotations

import dataclasses
import difflib
import math
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from attnlab._errors import AttnlabError

_PLAIN = (bool, int, float, str, type(None))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that was probably meant, then all of them.

    >>> nearest("sede", ["seed", "steps"])
    "did you mean 'seed'? Known: seed, steps"
    """
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known: {', '.join(known) or 'none'}"


class SettingsType:
    """A frozen dataclass whose fields are str, int, float, bool, None, ``Literal``, or tuples or
    unions of these.
    """

    def __init__(self, cls: type):
        if not (dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            raise AttnlabError(f"settings of type {_words(cls)}: expected a frozen dataclass")
        self.cls = cls
        hints = get_type_hints(cls)
        self._fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
        self.kinds = {name: hints[name] for name in self._fields}
        for name, kind in self.kinds.items():
            if not _is_supported(kind):
                raise AttnlabError(
                    f"{cls.__name__}.{name} is of type {_words(kind)}: expected str, int, float, "
                    "bool, None, a Literal, or tuples or unions of these, so that settings can be "
                    "stored as JSON"
                )

    def check(self, name: str, value: Any) -> Any:
        """The value of one field in its canonical form: a float for an int where the field is a
        float, tuples for lists. Other types are an error.
        """
        if name not in self.kinds:
            raise AttnlabError(
                f"{self.cls.__name__} has no field {name!r}: {nearest(name, self.kinds)}"
            )
        try:
            return _conform(value, self.kinds[name])
        except TypeError:
            raise AttnlabError(
                f"{self.cls.__name__}.{name}: got {value!r} ({type(value).__name__}), "
                f"expected {_words(self.kinds[name])}"
            ) from None

    def complete(self, given: Mapping[str, Any], besides: Iterable[str] = ()) -> dict[str, Any]:
        """What was given, checked, and the defaults of all other fields except ``besides``."""
        checked = {name: self.check(name, value) for name, value in given.items()}
        full = {}
        for name, field in self._fields.items():
            if name in checked:
                full[name] = checked[name]
            elif name in besides:
                continue
            elif field.default is not dataclasses.MISSING:
                full[name] = self.check(name, field.default)
            elif field.default_factory is not dataclasses.MISSING:
                full[name] = self.check(name, field.default_factory())
            else:
                raise AttnlabError(
                    f"{self.cls.__name__}.{name} has no default: give it in base or grid"
                )
        return full

    def build(self, settings: Mapping[str, Any]) -> Any:
        """The settings object that the work function gets."""
        checked = {name: self.check(name, value) for name, value in settings.items()}
        try:
            return self.cls(**checked)
        except AttnlabError:
            raise
        except (TypeError, ValueError) as error:
            raise AttnlabError(f"{self.cls.__name__}({checked}): {error}") from error


def freeze(value: Any) -> Any:
    """Lists, as JSON reads them, back to tuples."""
    return tuple(freeze(entry) for entry in value) if isinstance(value, (list, tuple)) else value


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _is_supported(kind: Any) -> bool:
    if get_origin(kind) is Literal:
        return all(isinstance(value, _PLAIN) for value in get_args(kind))
    if get_origin(kind) is tuple or _is_union(kind):
        return all(entry is Ellipsis or _is_supported(entry) for entry in get_args(kind))
    return kind is None or kind in _PLAIN


def _conform(value: Any, kind: Any) -> Any:
    """The value as an instance of ``kind``; ``TypeError`` where it is not one."""
    value = value.item() if isinstance(value, np.generic) else value
    if _is_union(kind):
        # The member of exactly this type first, so that 1 stays an int in int | float.
        members = sorted(get_args(kind), key=lambda member: member is not type(value))
        for member in members:
            try:
                return _conform(value, member)
            except TypeError:
                continue
        raise TypeError
    if get_origin(kind) is Literal:
        for allowed in get_args(kind):
            if type(value) is type(allowed) and value == allowed:
                return value
        raise TypeError
    if get_origin(kind) is tuple:
        return _conform_tuple(value, get_args(kind))
    if kind is None or kind is type(None):
        if value is not None:
            raise TypeError
        return None
    if kind is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if kind is not float and type(value) is kind:
        return value
    raise TypeError


def _conform_tuple(value: Any, kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple, range)):
        raise TypeError
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_conform(entry, kinds[0]) for entry in value)
    if len(kinds) != len(value):
        raise TypeError
    return tuple(_conform(entry, kind) for entry, kind in zip(value, kinds, strict=True))


def _words(kind: Any) -> str:
    """A type as it is written in code."""
    if kind is float:
        return "a finite float"
    if isinstance(kind, type) and not get_args(kind):
        return kind.__name__
    return str(kind).replace("typing.", "")
