"""A corpus on disk: plain arrays that are mapped into memory, names as JSON, and a checksum of each file."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError

if TYPE_CHECKING:
    from attnlab.tasks._corpus import Corpus

SCHEMA = 1
_RECORD = "corpus.json"
_ARRAYS = {"offsets": "int64", "words": "int32", "counts": "int32", "labels": "int32"}


def save_corpus(corpus: Corpus, folder: str | Path) -> Path:
    """Write ``offsets.npy``, ``words.npy``, ``counts.npy``, ``labels.npy`` and, last, ``corpus.json``."""
    place = Path(folder)
    record = place / _RECORD
    if record.exists():
        if _read_record(record).get("content_hash") == corpus.content_hash:
            return place
        raise AttnlabError(f"{place} holds another corpus: choose another folder, or remove it first")
    place.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, kind in _ARRAYS.items():
        array = np.ascontiguousarray(getattr(corpus, name)).astype(np.dtype(kind).newbyteorder("<"), copy=False)
        path = place / f"{name}.npy"
        _write(path, lambda file, array=array: np.save(file, array, allow_pickle=False))
        files[path.name] = {"bytes": path.stat().st_size, "sha256": _checksum(path)}
    content = {
        "kind": "attnlab.Corpus",
        "schema": SCHEMA,
        "content_hash": corpus.content_hash,
        "files": files,
        "classes": list(corpus.classes),
        "vocabulary": list(corpus.vocabulary),
    }
    _write(record, lambda file: file.write(json.dumps(content).encode()))
    return place


def open_corpus(folder: str | Path) -> dict[str, Any]:
    """The arrays, mapped into memory, and the names of a stored corpus; a file that was changed is refused."""
    place = Path(folder)
    record = _read_record(place / _RECORD)
    if record.get("kind") != "attnlab.Corpus" or record.get("schema") != SCHEMA:
        raise AttnlabError(
            f"{place / _RECORD} has kind {record.get('kind')!r} and schema {record.get('schema')!r}; expected "
            f"'attnlab.Corpus' and {SCHEMA}: it was written by another version of attnlab, or by something else"
        )
    names: dict[str, Any] = {name: record.get(name) for name in ("vocabulary", "classes")}
    for name, value in names.items():
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise AttnlabError(f"{place / _RECORD}: {name} is no list of names; the file was changed, save it anew")
    arrays = {name: _array(place / f"{name}.npy", kind, record) for name, kind in _ARRAYS.items()}
    return {**arrays, **{name: tuple(value) for name, value in names.items()}, "content_hash": record["content_hash"]}


def _array(path: Path, kind: str, record: dict[str, Any]) -> np.ndarray:
    said = record.get("files", {}).get(path.name, {})
    if not path.is_file():
        raise AttnlabError(f"{path} is missing: the stored corpus is not whole, save it anew")
    size = path.stat().st_size
    if size != said.get("bytes"):
        raise AttnlabError(f"{path} has {size} bytes, expected {said.get('bytes')}: it is cut off or was changed")
    if _checksum(path) != said.get("sha256"):
        raise AttnlabError(f"{path} was changed after it was written: its checksum differs; save the corpus anew")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise AttnlabError(f"{path} is no NumPy array: {error}") from error
    if array.ndim != 1 or array.dtype != np.dtype(kind):
        raise AttnlabError(f"{path} has shape {array.shape} and type {array.dtype}; expected one axis of {kind}")
    return array


def _read_record(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise AttnlabError(f"{path.parent} holds no corpus: {path.name} is missing")
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise AttnlabError(f"{path} is no JSON ({error}): it is cut off or was changed") from error
    if not isinstance(content, dict):
        raise AttnlabError(f"{path} holds no JSON object: it was changed")
    return content


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, fill: Any) -> None:
    """Under another name first: a file under its own name is whole."""
    temporary = path.with_name(f".tmp-{uuid.uuid4().hex}")
    try:
        with open(temporary, "xb") as file:
            _filled(file, fill)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _filled(file: IO[bytes], fill: Any) -> None:
    fill(file)
    file.flush()
    os.fsync(file.fileno())
