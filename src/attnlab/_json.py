"""JSON files: read strictly, compared with the expected shape, and sealed by a checksum.

A file may have been damaged, edited or crafted: whatever is wrong with it is reported in one
message.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab import __version__
from attnlab._errors import AttnlabError

_DEEPEST = 64
_FIELD = "sha256"
_WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
}


def parse_json(data: bytes) -> Any:
    """The content of a JSON file; a ``ValueError`` says what is wrong with it.

    Also refused is what Python's parser accepts or fails on: a key that is given twice, a number
    that is too large for a float, and lists or objects nested more than 64 deep.

    >>> parse_json(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    ValueError: 'a' is given twice
    >>> parse_json(b"[" * 100_000)
    Traceback (most recent call last):
        ...
    ValueError: it is nested more than 64 deep
    """
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_float=_float)
    except RecursionError:
        raise ValueError(f"it is nested more than {_DEEPEST} deep") from None
    _check_depth(value)
    return value


def mismatch(value: Any, shape: Any, where: str = "it") -> str | None:
    """A message where a JSON value does not have the expected shape; ``None`` where it has.

    A shape is ``str``, ``bool``, ``int``, ``float`` (finite, also a whole number), ``None``,
    ``object`` (anything), a ``range`` of whole numbers, a ``frozenset`` of texts, ``[shape]`` for a
    list, ``[one, other, …]`` for a list of just these, ``{str: shape}`` for an object of any keys,
    ``{"key": shape}`` for one that has these keys at least, or a tuple of shapes one of which must
    fit.

    >>> mismatch({"runs": ["a", 3]}, {"runs": [str]})
    'runs[1] is 3: expected text'
    >>> mismatch({"size": -1}, {"size": (None, range(10))})
    'size is -1: expected null or a whole number from 0 to 9'
    >>> mismatch({}, {"size": int})
    "it has no 'size'"
    """
    if _conforms(value, shape):
        return None
    if isinstance(shape, list) and isinstance(value, list) and len(shape) in (1, len(value)):
        shapes = shape * len(value) if len(shape) == 1 else shape
        found = (
            mismatch(entry, inner, f"{where}[{i}]")
            for i, (entry, inner) in enumerate(zip(value, shapes, strict=True))
        )
        return next((words for words in found if words), None)
    if isinstance(shape, dict) and isinstance(value, dict):
        return _mismatch_of_object(value, shape, "" if where == "it" else f"{where}.", where)
    if isinstance(shape, tuple):
        return _got(value, where, " or ".join(map(_expected, shape)))
    return _got(value, where, _expected(shape))


def _conforms(value: Any, shape: Any) -> bool:
    """Whether a value has a shape; many times as fast as finding words for what is wrong."""
    if isinstance(shape, tuple):
        return any(_conforms(value, one) for one in shape)
    if isinstance(shape, list):
        if not isinstance(value, list) or len(shape) not in (1, len(value)):
            return False
        shapes = shape * len(value) if len(shape) == 1 else shape
        return all(map(_conforms, value, shapes))
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        wanted = dict.fromkeys(value, shape[str]) if str in shape else shape
        return all(key in value and _conforms(value[key], inner) for key, inner in wanted.items())
    return _fits(value, shape)


def seal(kind: str, schema: int, content: Mapping[str, Any]) -> bytes:
    """The bytes of a record: ``content`` with its kind and schema, and in ``sha256`` a checksum of
    all that.

    The checksum is that of the record's canonical JSON without it: keys in order, no spaces, ASCII
    only. How the file is indented does not matter.
    """
    # To JSON and back, since the checksum is of what a reader gets: keys are strings, tuples lists.
    record = json.loads(json.dumps({"kind": kind, "schema": schema, **content}))
    text = json.dumps({**record, _FIELD: checksum_of(record)}, indent=1, ensure_ascii=False) + "\n"
    # Half of a surrogate pair, as in a file name that is not text, becomes JSON's own escape.
    return text.encode("utf-8", "backslashreplace")


def checksum_of(record: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a record, without its field ``sha256``."""
    rest = {key: value for key, value in record.items() if key != _FIELD}
    return hashlib.sha256(
        json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def unseal(
    data: bytes,
    path: Path,
    *,
    kind: str,
    schema: int,
    what: str,
    again: str,
    shape: Mapping[str, Any],
) -> dict[str, Any]:
    """The record that ``seal`` wrote to ``path``, if it is unchanged and has the expected shape.

    ``what`` it should be and how to get it ``again`` are for the message.
    """
    try:
        record = parse_json(data)
    except ValueError as error:
        reason = f"not valid JSON ({error}), because it is cut off or was changed"
        raise AttnlabError(f"{path} is not {what}: {reason}; {again}") from None
    if not isinstance(record, dict) or record.get("kind") != kind:
        raise AttnlabError(f"{path} is not {what}: expected what attnlab writes there; {again}")
    if record.get("schema") != schema:
        raise AttnlabError(
            f"{path} has schema {_shown(record.get('schema'))}, this attnlab ({__version__}) "
            f"reads {schema}: use the version that wrote it ({_shown(record.get('package'))}); "
            f"or, if it was changed, {again}"
        )
    if _FIELD not in record:
        raise AttnlabError(
            f"{path} has no checksum ({_FIELD!r}): it was written by an older attnlab; {again}"
        )
    if record[_FIELD] != checksum_of(record):
        raise AttnlabError(
            f"{path} was changed after attnlab wrote it: its checksum differs, because it is "
            f"damaged or was edited by hand; {again}"
        )
    wrong = mismatch(record, dict(shape))
    if wrong:
        raise AttnlabError(f"{path} is not {what}: {wrong}; {again}")
    return record


def _mismatch_of_object(
    value: dict[str, Any], shape: dict[Any, Any], prefix: str, where: str
) -> str | None:
    wanted = dict.fromkeys(value, shape[str]) if str in shape else shape
    for key, inner in wanted.items():
        words = (
            mismatch(value[key], inner, f"{prefix}{key}")
            if key in value
            else f"{where} has no {key!r}"
        )
        if words:
            return words
    return None


def _fits(value: Any, shape: Any) -> bool:
    """Whether a value is of a shape without parts."""
    if shape is object:
        return True
    if shape is None:
        return value is None
    if isinstance(shape, range):
        return type(value) is int and value in shape
    if isinstance(shape, frozenset):
        return isinstance(value, str) and value in shape
    if shape is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    return type(value) is shape


def _expected(shape: Any) -> str:
    if shape is None:
        return "null"
    if isinstance(shape, range):
        return f"a whole number from {shape.start} to {shape.stop - 1}"
    if isinstance(shape, frozenset):
        return " or ".join(sorted(shape))
    if isinstance(shape, list):
        return "a list" if len(shape) == 1 else f"a list of {len(shape)}"
    return "an object" if isinstance(shape, dict) else _WORDS[shape]


def _got(value: Any, where: str, expected: str) -> str:
    shown = (
        json.dumps(value)
        if isinstance(value, str | int | float | None)
        else f"a {type(value).__name__}"
    )
    return f"{where} is {shown if len(shown) <= 40 else shown[:40] + '…'}: expected {expected}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} is given twice")
    return found


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [one for one in level if isinstance(one, dict | list)]
        if not level:
            return
        level = [
            inner for one in level for inner in (one.values() if isinstance(one, dict) else one)
        ]
    raise ValueError(f"it is nested more than {_DEEPEST} deep")


def _shown(value: Any) -> str:
    return repr(value)[:40]
