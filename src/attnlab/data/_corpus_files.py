"""A corpus on disk: memory-mapped arrays, names as JSON, and a checksum of each file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab._places import atomic_file, write_atomically

if TYPE_CHECKING:
    from attnlab.data._corpus import Corpus

SCHEMA = 1
ARRAYS = {"offsets": "int64", "words": "int32", "counts": "int32", "labels": "int32"}
TRUSTED = (
    2**26
)  # bytes of a file from which on one that has kept its size and time of writing is not read through
_RECORD = "corpus.json"


def save_corpus(corpus: Corpus, folder: str | Path) -> Path:
    """Write ``offsets.npy``, ``words.npy``, ``counts.npy``, ``labels.npy`` and, last,
    ``corpus.json``.
    """
    place = Path(folder)
    record = place / _RECORD
    if record.exists():
        if _read_record(record).get("content_hash") == corpus.content_hash:
            return place
        raise AttnlabError(
            f"{place} holds another corpus: choose another folder, or remove it first"
        )
    place.mkdir(parents=True, exist_ok=True)
    for name, kind in ARRAYS.items():
        array = np.ascontiguousarray(getattr(corpus, name)).astype(
            np.dtype(kind).newbyteorder("<"), copy=False
        )
        with atomic_file(place / f"{name}.npy") as file:
            np.save(file, array, allow_pickle=False)
    return seal_corpus(corpus, place)


def seal_corpus(corpus: Corpus, place: Path) -> Path:
    """Write ``corpus.json`` next to the arrays; this completes a stored corpus."""
    files = {}
    for path in (place / f"{name}.npy" for name in ARRAYS):
        state = path.stat()
        files[path.name] = {
            "bytes": state.st_size,
            "sha256": _checksum(path),
            "written": state.st_mtime_ns,
        }
    content = {
        "kind": "attnlab.Corpus",
        "schema": SCHEMA,
        "content_hash": corpus.content_hash,
        "names_hash": names_hash(corpus.vocabulary, corpus.classes),
        "files": files,
        "classes": list(corpus.classes),
        "vocabulary": list(corpus.vocabulary),
    }
    write_atomically(place / _RECORD, json.dumps(content).encode())
    return place


def open_corpus(folder: str | Path) -> tuple[dict[str, Any], str, bool]:
    """Memory-mapped arrays and names of a stored corpus; its content hash; whether it was trusted.

    A truncated or changed file is an error. A large file with unchanged size and modification time
    is trusted: it was checked when it was written, and reading all of it in every process would take
    longer than using it.
    """
    place = Path(folder)
    record = _read_record(place / _RECORD)
    if record.get("kind") != "attnlab.Corpus" or record.get("schema") != SCHEMA:
        raise AttnlabError(
            f"{place / _RECORD} has kind {record.get('kind')!r} and schema "
            f"{record.get('schema')!r}; expected 'attnlab.Corpus' and {SCHEMA}: it was written by "
            "another version of attnlab, or by another program"
        )
    names: dict[str, Any] = {name: record.get(name) for name in ("vocabulary", "classes")}
    for name, value in names.items():
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise AttnlabError(
                f"{place / _RECORD}: {name} is not a list of names; the file was changed, save it again"
            )
    arrays = {name: _array(place / f"{name}.npy", kind, record) for name, kind in ARRAYS.items()}
    named = {name: tuple(value) for name, value in names.items()}
    trusted = any(found[1] for found in arrays.values())
    if trusted and names_hash(**named) != record.get("names_hash"):
        raise AttnlabError(
            f"{place}: the names in {_RECORD} were changed after they were written; save it again"
        )
    return (
        {name: found[0] for name, found in arrays.items()} | named,
        str(record["content_hash"]),
        trusted,
    )


def names_hash(vocabulary: Sequence[str], classes: Sequence[str]) -> str:
    """SHA-256 over the names of words and classes."""
    digest = hashlib.sha256()
    hash_names(digest, vocabulary, classes)
    return digest.hexdigest()


def hash_names(digest: Any, *lists: Sequence[str]) -> None:
    """Add lists of names to a checksum: the length of each name in bytes, then the name."""
    for names in lists:
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        digest.update(
            b"".join([len(each).to_bytes(8, "little") + each for each in encoded]) + b"\xff"
        )


def _array(path: Path, kind: str, record: dict[str, Any]) -> tuple[np.ndarray, bool]:
    """An array, and whether its content was trusted."""
    written = record.get("files", {}).get(path.name, {})
    if not path.is_file():
        raise AttnlabError(f"{path} is missing: the stored corpus is incomplete, save it again")
    state = path.stat()
    if state.st_size != written.get("bytes"):
        raise AttnlabError(
            f"{path} has {state.st_size} bytes, expected {written.get('bytes')}: it was truncated "
            "or changed"
        )
    trusted = state.st_size >= TRUSTED and state.st_mtime_ns == written.get("written")
    if not trusted and _checksum(path) != written.get("sha256"):
        raise AttnlabError(
            f"{path} was changed after it was written: its checksum differs; save the corpus again"
        )
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise AttnlabError(f"{path} is not a NumPy array: {error}") from error
    if array.ndim != 1 or array.dtype != np.dtype(kind):
        raise AttnlabError(
            f"{path} has shape {array.shape} and type {array.dtype}; expected one axis of {kind}"
        )
    return array, trusted


def _read_record(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise AttnlabError(f"{path.parent} holds no corpus: {path.name} is missing")
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise AttnlabError(
            f"{path} is not valid JSON ({error}): it was truncated or changed"
        ) from error
    if not isinstance(content, dict):
        raise AttnlabError(f"{path} is not a JSON object: it was changed")
    return content


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
