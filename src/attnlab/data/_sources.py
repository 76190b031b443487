"""A user's file as a stream of characters: where it lies, its compression and its encoding."""

from __future__ import annotations

import codecs
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from typing import IO

from attnlab._errors import AttnlabError
from attnlab._places import local_file
from attnlab.data._compressed import LONGEST, compression_of, unpacked
from attnlab.data._encodings import (
    BOMS,
    HANDLER,
    find_encoding,
    named_encoding,
    unmarked_utf_16,
)
from attnlab.data._texts import DroppedRows

BROKEN = re.compile("[\ud800-\udfff]")
_HEAD = 2**16
_SIGNATURES = (
    (b"PK\x03\x04", "a zip archive or an Excel workbook: save the sheet as CSV, or unpack it"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook: save the sheet as CSV"),
    (b"%PDF", "a PDF: save its texts as CSV"),
    (b"SQLite format 3", "an SQLite database: export the table as CSV"),
    (b"7z\xbc\xaf", "a 7-Zip archive: unpack it"),
    (b"\x04\x22M\x18", "compressed by lz4: unpack it, or compress it by gzip"),
    (b"ARROW1", "an Arrow (Feather) file: save it as Parquet"),
)
PARQUET = b"PAR1"


@dataclass(frozen=True)
class Source:
    """One file: ``name`` as given, where it lies on this machine, how it is compressed, its first
    bytes, and its encoding. ``recoded``: lines that are in another one.
    """

    path: Path
    name: str
    compression: str | None
    head: bytes
    encoding: str
    recoded: DroppedRows = field(default_factory=DroppedRows)

    @classmethod
    def of(cls, given: str | Path, encoding: str | None) -> Source:
        """Inspect a file; an error if it cannot be read."""
        name, path = str(given), local_file(given)
        if os.path.isdir(path):
            raise AttnlabError(f"{name} is a folder: give the files in it that are to be read")
        if not os.path.exists(path):  # nor if the name is none that a file can have
            raise AttnlabError(f"{name}: there is no such file")
        if not os.path.isfile(path):
            raise AttnlabError(
                f"{name} is not a regular file: it has to be read twice, so write its content to a "
                "file first"
            )
        bare = cls(path, name, None, b"", "utf-8")
        with bare.bytes() as file:
            compression = compression_of(file.read(_HEAD))
        bare = cls(path, name, compression, b"", "utf-8")
        with bare.bytes() as file:
            head = file.read(_HEAD)
        if not head:
            raise AttnlabError(f"{name} is empty: expected rows with a text and a label")
        if head.startswith(PARQUET):
            return cls(path, name, compression, head, "")
        _check_text(name, head, named=encoding is not None)
        if encoding is not None:
            return cls(path, name, compression, head, named_encoding(name, head, encoding))
        marked = next((known for mark, known in BOMS if head.startswith(mark)), None)
        if marked is not None:
            return cls(path, name, compression, head, marked)
        with bare.bytes() as file:
            return cls(path, name, compression, head, *find_encoding(file, name))

    @contextmanager
    def bytes(self) -> Iterator[BufferedIOBase]:
        """The file's bytes, decompressed."""
        if self.compression is not None:
            with unpacked(self.path, self.name, self.compression) as file:
                yield file
            return
        try:
            with open(self.path, "rb") as file:
                yield file
        except OSError as error:
            raise AttnlabError(f"{self.name} cannot be read: {error.strerror or error}") from error

    @contextmanager
    def characters(self, newline: str | None = None) -> Iterator[IO[str]]:
        """The file's characters; undecodable bytes are marked, to report their row."""
        with (
            self.bytes() as file,
            io.TextIOWrapper(
                file,  # pyright: ignore[reportArgumentType]  (a buffer that may have no name)
                encoding=self.encoding,
                errors=HANDLER,
                newline=newline,
            ) as stream,
        ):
            yield stream

    def lines(self, newline: str | None = None) -> Iterator[str]:
        """The file's lines with their ends; an error for one that would fill the memory."""
        with self.characters(newline) as stream:
            number = 0
            while line := stream.readline(LONGEST + 1):
                number += 1
                if len(line) > LONGEST:
                    raise too_long(f"{self.name}, line {number}", "line")
                yield line

    def first_lines(self, most: int = 200) -> list[str]:
        """The first lines of the first 64 KiB, without line ends; a cut last line is left out."""
        text = codecs.decode(self.head, self.encoding, HANDLER)
        lines = re.split("\r\n|\r|\n", text.lstrip("\ufeff"))
        if len(lines) > 1 and len(self.head) == _HEAD:
            lines = lines[:-1]
        return lines[:most]


def too_long(place: str, what: str) -> AttnlabError:
    """The error for a line, row or cell of more than ``LONGEST`` characters."""
    return AttnlabError(
        f"{place}: the {what} is longer than {LONGEST:,} characters; expected texts of up to some "
        "thousand words: cut longer ones, and check that quotes and line ends are those of its "
        "format"
    )


def _check_text(name: str, head: bytes, *, named: bool) -> None:
    """Raise an error for files that are not text: known signatures, or many control characters."""
    again = compression_of(head)
    if again is not None:
        raise AttnlabError(f"{name} is compressed twice, within by {again}: unpack it once")
    for signature, what in _SIGNATURES:
        if head.startswith(signature):
            raise AttnlabError(f"{name} is {what}")
    if named or head.startswith(tuple(mark for mark, _ in BOMS)):
        return
    kind = unmarked_utf_16(head)
    if kind is not None:
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
