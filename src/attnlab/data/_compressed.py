"""Compressed files: known by their first bytes, read as one stream, refused where they are bombs."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path, PurePath
from typing import Any

from attnlab._errors import AttnlabError

LONGEST = 2**24  # characters of a line, a row or a cell; a longer one is not a text to classify
ENDINGS = (".gz", ".bz2", ".xz", ".zst")
_SIGNATURES = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
# Text is compressed to a fifth, with luck to a tenth.
_RATIO = 100
_FEW_BYTES = 2**26
# pyarrow's errors are among these, too.
_DAMAGE = (EOFError, OSError, ValueError, MemoryError, zlib.error, lzma.LZMAError)


def compression_of(head: bytes) -> str | None:
    """How a file is compressed, by its first bytes; ``None`` for a plain file.

    >>> compression_of(gzip.compress(b"text,label")), compression_of(b"text,label")
    ('gzip', None)
    """
    return next((name for name, start in _SIGNATURES.items() if start.match(head)), None)


def bare_ending(name: str) -> str:
    """The ending of a file's name, in lower case, without that of a compression.

    >>> bare_ending("s3://bucket/Reviews.CSV.zst")
    '.csv'
    """
    path = PurePath(name.lower())
    return PurePath(path.stem).suffix if path.suffix in ENDINGS else path.suffix


def most_bytes(path: Path) -> int:
    """How much text a file may hold that is smaller on disk: more is taken for a bomb."""
    return max(_FEW_BYTES, _RATIO * path.stat().st_size)


def too_much(path: Path, name: str, remedy: str) -> AttnlabError:
    """The error for a file that holds more than ``most_bytes``."""
    return AttnlabError(
        f"{name} has {path.stat().st_size:,} bytes, but the text in it takes more than "
        f"{most_bytes(path):,}: it is taken for a decompression bomb; if it is right, {remedy}"
    )


@contextmanager
def unpacked(path: Path, name: str, compression: str) -> Iterator[BufferedIOBase]:
    """The content of a compressed file."""
    try:
        packed = _opened(path, name, compression)
    except _DAMAGE as error:
        if isinstance(error, AttnlabError):
            raise
        raise AttnlabError(f"{name} cannot be read: {error}") from error
    with packed, io.BufferedReader(_Bounded(packed, path, name, compression), 2**17) as content:
        yield content


def _opened(path: Path, name: str, compression: str) -> Any:
    if compression == "gzip":
        return gzip.open(path, "rb")
    if compression == "bzip2":
        return bz2.open(path, "rb")
    if compression == "xz":
        return lzma.open(path, "rb")
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise AttnlabError(
            f"{name} is compressed by zstd, which needs the package pyarrow: pip install "
            "'attnlab[parquet]', or compress it by gzip"
        ) from error
    return pa.CompressedInputStream(str(path), "zstd")


class _Bounded(io.RawIOBase):
    """What a decompressor gives, up to ``most_bytes``; its errors in words."""

    def __init__(self, packed: Any, path: Path, name: str, compression: str):
        self._packed, self._path, self._name = packed, path, name
        self._compression, self._left = compression, most_bytes(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._packed.read(len(buffer))
        except _DAMAGE as error:
            raise AttnlabError(
                f"{self._name} is truncated or damaged: {self._compression} reports "
                f"{error or type(error).__name__}"
            ) from error
        self._left -= len(data)
        if self._left < 0:
            raise too_much(self._path, self._name, "unpack it and give the unpacked file")
        buffer[: len(data)] = data
        return len(data)
