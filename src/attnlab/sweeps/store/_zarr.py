"""Zarr 3 in one ZIP file, which is decoded only if it holds nothing but what is written here.

Zarr lets a file name the codecs that decode it, including one that unpickles, and declare arrays of
any size. So the directory of a ZIP file and all its metadata are checked before anything is
decoded.
"""

from __future__ import annotations

import io
import math
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab._json import mismatch, parse_json

if TYPE_CHECKING:
    import xarray as xr
    from zarr.abc.store import Store

# Compressed, an array of equal values takes next to no space, whatever its size. So larger arrays
# than this are not compressed when they are written, and are refused when they come from 250 times
# fewer bytes.
PACKED_BYTES = 2**30
_MOST_RATIO = 250
_STRING_BYTES = 64  # of a string in memory, besides its characters
_SIZES = {"bool": 1, "complex64": 8, "complex128": 16, "float16": 2, "float32": 4, "float64": 8}
_SIZES |= {f"{sign}int{8 * size}": size for sign in ("", "u") for size in (1, 2, 4, 8)}
_FIXED, _VARIABLE = "fixed_length_utf32", "string"
_WHOLE = range(2**53)
_GROUP = {"zarr_format": range(3, 4), "node_type": str, "attributes": {str: object}}
_ARRAY = {
    "shape": [_WHOLE],
    "data_type": (str, {"name": str, "configuration": {"length_bytes": range(4, 2**31)}}),
    "chunk_grid": {"name": str, "configuration": {"chunk_shape": [range(1, 2**53)]}},
    "chunk_key_encoding": {"name": str, "configuration": {"separator": str}},
    "codecs": [{"name": str}],
}
_CODECS = {("bytes",), ("bytes", "zstd"), ("vlen-utf8",), ("vlen-utf8", "zstd")}
_CHUNK = re.compile(r"(.*)/c((?:/\d+)*)", re.DOTALL)


class Damaged(ValueError):
    """A file holds something else than what attnlab writes; the message says what."""


def pack_zarr(
    groups: Mapping[str, xr.Dataset], encoding: Mapping[str, Mapping[str, Any]] | None = None
) -> bytes:
    """The bytes of a ZIP file with each data set as the group of its name (``""`` is the root).

    ``encoding``: for each group how to store its variables. Everything stays in memory, so that a
    full disk can only refuse the one final write.
    """
    import zarr.storage

    entries: dict[str, Any] = {}
    memory = zarr.storage.MemoryStore(entries)
    for group, data in groups.items():
        given = {name: dict(how) for name, how in (encoding or {}).get(group, {}).items()}
        for name, variable in data.variables.items():
            if _bytes_in_memory(variable) > PACKED_BYTES:
                given.setdefault(str(name), {})["compressors"] = None
        with warnings.catch_warnings():
            # Zarr warns that fixed-width strings have no specification yet.
            warnings.simplefilter("ignore")
            data.to_zarr(
                memory,
                group=group or None,
                mode="w",
                zarr_format=3,
                consolidated=False,
                write_empty_chunks=True,
                encoding=given,
            )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, value in sorted(entries.items()):
            archive.writestr(zipfile.ZipInfo(name), value.to_bytes())
    return buffer.getvalue()


def _bytes_in_memory(variable: xr.Variable) -> int:
    if variable.dtype.kind in "OT":
        return sum(_STRING_BYTES + 4 * len(text) for text in variable.values.ravel().tolist())
    return variable.nbytes


@contextmanager
def open_zarr(source: Path | bytes) -> Iterator[tuple[Store, list[str]]]:
    """The store in a ZIP file, and its groups; raises ``Damaged`` if it, or what is then read from
    it, is not what ``pack_zarr`` wrote.

    The file is one of this machine, from which only what is asked for is read, or its bytes.
    """
    import zarr.buffer
    import zarr.storage

    try:
        with zipfile.ZipFile(
            io.BytesIO(source) if isinstance(source, bytes) else source
        ) as archive:
            groups = _checked(
                archive, len(source) if isinstance(source, bytes) else source.stat().st_size
            )
            if isinstance(source, bytes):
                entries = {
                    name: zarr.buffer.cpu.Buffer.from_bytes(archive.read(name))
                    for name in archive.namelist()
                }
                store = zarr.storage.MemoryStore(dict(entries), read_only=True)
            else:
                store = zarr.storage.ZipStore(source, mode="r", read_only=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield store, groups
        finally:
            store.close()
    except (Damaged, MemoryError):
        raise
    except Exception as error:  # zipfile, Zarr, its codecs and xarray each raise their own
        if isinstance(error, OSError) and not isinstance(source, bytes):
            raise  # of the disk; with bytes it is Zarr's, which raises it for a missing group
        raise Damaged(f"{type(error).__name__}: {error}") from error


def _checked(archive: zipfile.ZipFile, size: int) -> list[str]:
    """The groups of an archive; raises ``Damaged`` if anything in it is unexpected."""
    members = archive.infolist()
    names = {member.filename for member in members}
    if len(names) < len(members):
        raise Damaged("a name occurs twice in it")
    if any(
        member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in members
    ):
        raise Damaged("its members are compressed or encrypted: expected neither")
    if sum(member.file_size for member in members) > size:
        raise Damaged("its members are larger than the file")
    about = {_above(name): name for name in names if _last(name) == "zarr.json"}
    chunks: dict[str, list[str]] = {}
    for name in names.difference(about.values()):
        found = _CHUNK.fullmatch(name)
        if found is None or found[1] not in about:
            raise Damaged(f"{name!r} belongs to no Zarr 3 array")
        chunks.setdefault(found[1], []).append(name)
    groups = []
    for path, name in about.items():
        metadata = parse_json(archive.read(name))
        _check(metadata, _GROUP, name)
        if (
            metadata["node_type"] == "group"
            and path not in chunks
            and not metadata.get("consolidated_metadata")
        ):
            groups.append(path)
        elif metadata["node_type"] == "array":
            _check_array(archive, metadata, name, chunks.get(path, []))
        else:
            raise Damaged(f"{name} is neither a plain group nor an array")
    return sorted(groups)


def _check_array(
    archive: zipfile.ZipFile, metadata: dict[str, Any], name: str, chunks: list[str]
) -> None:
    """Refuse an array that needs another codec, lacks chunks, or declares more values than its
    bytes can hold.
    """
    _check(metadata, _ARRAY, name)
    shape, grid = metadata["shape"], metadata["chunk_grid"]["configuration"]["chunk_shape"]
    codecs = tuple(codec["name"] for codec in metadata["codecs"])
    layout = (metadata["chunk_grid"]["name"], metadata["chunk_key_encoding"])
    if codecs not in _CODECS or metadata.get("storage_transformers") or len(grid) != len(shape):
        raise Damaged(
            f"{name} asks for the codecs {', '.join(codecs)[:80]}: none of those that attnlab "
            "writes"
        )
    if layout != ("regular", {"name": "default", "configuration": {"separator": "/"}}):
        raise Damaged(f"{name} has other chunks than those that attnlab writes")
    expected = math.prod(-(-length // step) for length, step in zip(shape, grid, strict=True))
    if len(chunks) != expected:
        raise Damaged(f"{name} declares {expected} chunks, there are {len(chunks)}")
    item = _item_size(metadata["data_type"], name)
    if (item is None) != (codecs[0] == "vlen-utf8"):
        raise Damaged(
            f"{name} has values of the type {metadata['data_type']!r} with the codec {codecs[0]}"
        )
    packed = sum(archive.getinfo(chunk).file_size for chunk in chunks)
    sizes = [_unpacked_size(archive, chunk, "zstd" in codecs) for chunk in chunks]
    strings = _STRING_BYTES * expected * math.prod(grid) if item is None else 0
    if sum(sizes) + strings > max(PACKED_BYTES, _MOST_RATIO * packed):
        raise Damaged(f"{name} declares more values than its {packed} bytes can hold")
    if item is not None and any(found != item * math.prod(grid) for found in sizes):
        raise Damaged(f"{name} declares other values than its chunks hold")
    if item is None:
        for chunk in chunks:
            _check_strings(archive.read(chunk), math.prod(grid), "zstd" in codecs, name)


def _item_size(kind: str | dict[str, Any], name: str) -> int | None:
    """Bytes of a value; ``None`` for strings of any length."""
    if isinstance(kind, dict) and kind["name"] == _FIXED:
        return kind["configuration"]["length_bytes"]
    if isinstance(kind, str) and (kind in _SIZES or kind == _VARIABLE):
        return _SIZES.get(kind)
    raise Damaged(
        f"{name} has values of the type {str(kind)[:40]}: none of those that attnlab writes"
    )


def _unpacked_size(archive: zipfile.ZipFile, chunk: str, is_packed: bool) -> int:
    """Bytes of a chunk when it is unpacked, from the header of its Zstandard frame (RFC 8878,
    3.1.1.1).
    """
    if not is_packed:
        return archive.getinfo(chunk).file_size
    with archive.open(chunk) as file:
        head = file.read(18)
    # Magic number, then a byte of flags: the two highest bits give the width of the content size,
    # the two lowest that of the dictionary id; bit 5 says that there is no window descriptor.
    flags = head[4] if len(head) > 4 and head[:4] == b"\x28\xb5\x2f\xfd" else 0
    is_single = bool(flags & 0x20)
    width = (1 if is_single else 0, 2, 4, 8)[flags >> 6]
    start = 5 + (not is_single) + (0, 1, 2, 4)[flags & 3]
    if not width or len(head) < start + width:
        raise Damaged(f"{chunk} does not declare its size")
    return int.from_bytes(head[start : start + width], "little") + (256 if width == 2 else 0)


def _check_strings(data: bytes, count: int, is_packed: bool, name: str) -> None:
    """Refuse a chunk that declares another number of strings: the codec allocates that many."""
    from numcodecs.zstd import Zstd

    found = int.from_bytes(bytes(Zstd().decode(data) if is_packed else data)[:4], "little")
    if found != count:
        raise Damaged(f"{name} declares {count} strings in a chunk, there are {found}")


def _check(value: Any, shape: Any, name: str) -> None:
    wrong = mismatch(value, shape)
    if wrong:
        raise Damaged(f"{name}: {wrong}")


def _above(name: str) -> str:
    return name.rpartition("/")[0]


def _last(name: str) -> str:
    return name.rpartition("/")[2]
