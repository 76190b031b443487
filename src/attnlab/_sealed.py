"""Records in JSON that carry their own checksum: a changed one is noticed, and refused in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attnlab import __version__
from attnlab._errors import AttnlabError
from attnlab._json import mismatch, parse_json

_FIELD = "sha256"


def seal(kind: str, schema: int, content: Mapping[str, Any]) -> bytes:
    """A record as it is written: ``content`` with its kind and schema, and in ``sha256`` a checksum
    of all that.

    The checksum is that of the record's canonical JSON without it: keys in order, no spaces, ASCII
    only. How the file is indented does not matter.
    """
    # To JSON and back, since there keys are strings and tuples are lists.
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
    """The record that ``seal`` wrote to ``path``, if nobody changed it and it has the expected
    shape.

    ``what`` it should be and how to get it ``again`` are for the message.
    """
    try:
        record = parse_json(data)
    except ValueError as error:
        reason = f"not valid JSON ({error}), so that it is cut off or was changed"
        raise AttnlabError(f"{path} is not {what}: {reason}; {again}") from None
    if not isinstance(record, dict) or record.get("kind") != kind:
        raise AttnlabError(f"{path} is not {what}: expected what attnlab writes there; {again}")
    if record.get("schema") != schema:
        raise AttnlabError(
            f"{path} has schema {_shown(record.get('schema'))}, this attnlab ({__version__}) "
            f"reads {schema}: use the "
            f"version that wrote it ({_shown(record.get('package'))}); or, if it was changed, "
            f"{again}"
        )
    if _FIELD not in record:
        raise AttnlabError(
            f"{path} has no checksum ({_FIELD!r}): it was written by an older attnlab; {again}"
        )
    if record[_FIELD] != checksum_of(record):
        raise AttnlabError(
            f"{path} was changed after attnlab wrote it: its checksum differs, because it is "
            "damaged or was edited by "
            f"hand; {again}"
        )
    wrong = mismatch(record, dict(shape))
    if wrong:
        raise AttnlabError(f"{path} is not {what}: {wrong}; {again}")
    return record


def _shown(value: Any) -> str:
    return repr(value)[:40]
