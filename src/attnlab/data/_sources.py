"""A user's file as a stream of characters: gzip, encodings, and errors for binary files."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from attnlab._errors import AttnlabError

UNDECODABLE = (
    "\udcff"  # stands for bytes that are no character; no file's own character can be this one
)
BROKEN = re.compile("[\ud800-\udfff]")
_HANDLER = "attnlab.undecodable"
_CHUNK = 2**20
_HEAD = 2**16
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SIGNATURES = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook: save the sheet as CSV, or unpack it"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook: save the sheet as CSV"),
    (b"%PDF", "a PDF: save its texts as CSV"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"BZh", "compressed by bzip2: unpack it, or compress it by gzip"),
    (b"\xfd7zXZ", "compressed by xz: unpack it, or compress it by gzip"),
    (b"(\xb5/\xfd", "compressed by zstd: unpack it, or compress it by gzip"),
)
PARQUET = b"PAR1"


def _mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return UNDECODABLE, error.end


codecs.register_error(_HANDLER, _mark)


@dataclass(frozen=True)
class Source:
    """One file: ``name`` as given, whether it is compressed, its first bytes, and its encoding."""

    path: Path
    name: str
    compressed: bool
    head: bytes
    encoding: str

    @classmethod
    def of(cls, given: str | Path, encoding: str | None) -> Source:
        """Inspect a file; an error if it cannot be read."""
        path, name = Path(given), str(given)
        if path.is_dir():
            raise AttnlabError(f"{name} is a folder: give the files in it that are to be read")
        if not path.exists():
            raise AttnlabError(f"{name}: there is no such file")
        if not path.is_file():
            raise AttnlabError(
                f"{name} is not a regular file: it has to be read twice, so write its content to a "
                "file first"
            )
        try:
            with open(path, "rb") as file:
                compressed = file.read(2) == b"\x1f\x8b"
        except OSError as error:
            raise AttnlabError(f"{name} cannot be read: {error.strerror or error}") from error
        bare = cls(path, name, compressed, b"", "utf-8")
        with bare.bytes() as file:
            head = file.read(_HEAD)
        if not head:
            raise AttnlabError(f"{name} is empty: expected rows with a text and a label")
        if head.startswith(PARQUET):
            return cls(path, name, compressed, head, "")
        _check_text(name, head, named=encoding is not None)
        return cls(path, name, compressed, head, _encoding(bare, head, encoding))

    @contextmanager
    def bytes(self) -> Iterator[IO[bytes]]:
        """The file's bytes, decompressed."""
        try:
            with gzip.open(self.path, "rb") if self.compressed else open(self.path, "rb") as file:
                yield file  # pyright: ignore[reportReturnType]  (gzip's file is one of bytes)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise AttnlabError(
                f"{self.name} is truncated or damaged: gzip reports {error}"
            ) from error
        except OSError as error:
            raise AttnlabError(f"{self.name} cannot be read: {error.strerror or error}") from error

    @contextmanager
    def characters(self, newline: str | None = None) -> Iterator[IO[str]]:
        """The file's characters; undecodable bytes become ``UNDECODABLE``, to report their row."""
        with (
            self.bytes() as file,
            io.TextIOWrapper(
                file, encoding=self.encoding, errors=_HANDLER, newline=newline
            ) as stream,
        ):
            yield stream

    def first_lines(self, most: int = 200) -> list[str]:
        """The first lines of the first 64 KiB, without line ends; a cut last line is left out."""
        text = codecs.decode(self.head, self.encoding, _HANDLER)
        lines = re.split("\r\n|\r|\n", text.lstrip("\ufeff"))
        if len(lines) > 1 and len(self.head) == _HEAD:
            lines = lines[:-1]
        return lines[:most]


def _check_text(name: str, head: bytes, *, named: bool) -> None:
    """Raise an error for files that are not text: known signatures, or many control characters."""
    for signature, what in _SIGNATURES:
        if head.startswith(signature):
            raise AttnlabError(f"{name} is {what}")
    if named or head.startswith(tuple(mark for mark, _ in _BOMS)):
        return
    zeros = head.count(0)
    if zeros > 0.2 * len(head) and 0 in (head[0::2].count(0), head[1::2].count(0)):
        kind = "utf-16-le" if head[1::2].count(0) else "utf-16-be"
        raise AttnlabError(
            f"{name} looks like UTF-16 without its mark: give encoding={kind!r} (--encoding {kind})"
        )
    controls = sum(map(head.count, (bytes([b]) for b in range(32) if b not in b"\t\n\v\f\r\x1b")))
    if controls > 0.1 * len(head):
        raise AttnlabError(
            f"{name} is not a text file: {controls} of its first {len(head)} bytes are control "
            "characters; expected CSV, TSV, JSON Lines, Parquet or lines of text, or give its "
            "encoding (--encoding)"
        )


def _encoding(source: Source, head: bytes, named: str | None) -> str:
    """The named encoding, or that of the byte order mark, or UTF-8 if valid, otherwise cp1252."""
    if named is not None:
        try:
            "".encode(named)
        except LookupError:
            raise AttnlabError(
                f"encoding={named!r} is not known; expected a name such as 'utf-8', 'cp1252', "
                "'latin-1' or 'utf-16'"
            ) from None
        found = codecs.lookup(named).name
        # The named encoding agrees with the mark: strip the mark, it is not part of the text.
        return next((e for mark, e in _BOMS if head.startswith(mark) and found[:5] == e[:5]), found)
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    good = bad = 0
    decoder = codecs.getincrementaldecoder("utf-8")(_HANDLER)
    with source.bytes() as file:
        while chunk := file.read(_CHUNK):
            if (text := decoder.decode(chunk)).isascii():
                continue
            bad += text.count(UNDECODABLE)
            good += sum(map(len, re.findall(r"[^\x00-\x7f]+", text)))
    # A UTF-8 file with a few damaged rows stays UTF-8: as cp1252 every accent would be wrong.
    return "utf-8" if bad == 0 or good - bad > bad else "cp1252"
