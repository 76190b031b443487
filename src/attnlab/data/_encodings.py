"""Encodings of users' files: named, marked or found out; undecodable bytes are marked, not lost."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from io import BufferedIOBase
from typing import Any

from attnlab._errors import AttnlabError
from attnlab.data._compressed import LONGEST
from attnlab.data._texts import DroppedRows

UNDECODABLE = (
    "\udcff"  # stands for bytes that are no character; no file's own character can be this one
)
HANDLER = "attnlab.undecodable"
# The codec for files whose lines are UTF-8 in part and cp1252 in part.
BY_LINE = "utf-8+cp1252"
NOT_UTF_8 = "not UTF-8, read as cp1252"  # of lines
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What Python calls encodings of text but no file is written in.
_PYTHON_ONLY = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}
_CHUNK = 2**20


def named_encoding(name: str, head: bytes, asked: str) -> str:
    """The encoding that was asked for; where the file's mark agrees, that of the mark, which is no
    part of the text.
    """
    try:
        "".encode(asked)
        found = codecs.lookup(asked).name
    except (LookupError, ValueError):
        found = None
    if found is None or found in _PYTHON_ONLY:
        raise AttnlabError(
            f"encoding={asked!r} is not known; expected a name such as 'utf-8', 'cp1252', "
            "'latin-1' or 'utf-16'"
        )
    marked = [encoding for mark, encoding in BOMS if head.startswith(mark)]
    if found in ("utf-16", "utf-32") and found not in marked:
        raise AttnlabError(
            f"{name} does not start with the mark of {found}: say the order of its bytes, "
            f"encoding='{found}-le' or '{found}-be' (--encoding {found}-le)"
        )
    return next((encoding for encoding in marked if found[:5] == encoding[:5]), found)


def unmarked_utf_16(head: bytes) -> str | None:
    """The encoding of a file that looks like UTF-16 without its mark."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if min(even, odd) > 0 or even + odd <= 0.02 * len(head):
        return None
    return "utf-16-le" if odd else "utf-16-be"


def find_encoding(file: BufferedIOBase, name: str) -> tuple[str, DroppedRows]:
    """UTF-8, cp1252, or one of the two line by line; and the lines that are not UTF-8 of the latter.

    A file is cp1252 if no line has a character that is valid as UTF-8 alone. A line that is UTF-8
    but for some bytes stays UTF-8, and undecodable: as cp1252 its accents would be wrong.
    """
    utf_8 = other = False
    found, number = DroppedRows(), 0
    for lines in _whole_lines(file):
        text = _utf_8(lines)
        if text is not None:
            utf_8 = utf_8 or not text.isascii()
            number += lines.count(_line_end(lines))
            continue
        for line in lines.split(_line_end(lines)):
            number += 1
            text, is_utf_8 = decoded_line(line)
            if is_utf_8:
                utf_8 = utf_8 or not text.isascii()
            else:
                other = True
                found.add(NOT_UTF_8, f"{name}, line {number}", text)
        number -= 1  # after the last line end there is no further line
    if not other:
        return "utf-8", DroppedRows()
    return (BY_LINE, found) if utf_8 else ("cp1252", DroppedRows())


def decoded_line(line: bytes) -> tuple[str, bool]:
    """A line as UTF-8, or as cp1252 where most of what is not ASCII is not valid as UTF-8; and
    whether it is UTF-8.

    >>> [decoded_line("café".encode(encoding)) for encoding in ("utf-8", "cp1252")]
    [('café', True), ('café', False)]
    """
    text = _utf_8(line)
    if text is not None:
        return text, True
    text = line.decode("utf-8", HANDLER)
    bad = text.count(UNDECODABLE)
    if sum(map(len, re.findall(r"[^\x00-\x7f]+", text))) - bad >= bad:
        return text, True
    return line.decode("cp1252", HANDLER), False


def _whole_lines(file: BufferedIOBase) -> Iterator[bytes]:
    """A file in parts that end where a line ends, unless a line is too long to be read anyway."""
    rest = b""
    while chunk := file.read(_CHUNK):
        rest += chunk
        end = rest.rfind(_line_end(rest)) + 1
        if len(rest) > LONGEST:
            end = len(rest)
        if end:
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest


def _line_end(data: bytes) -> bytes:
    return b"\n" if b"\n" in data else b"\r"


def _utf_8(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _by_line(data: Any, errors: str = "strict") -> tuple[str, int]:
    """The decoder of ``BY_LINE`` for whole lines; ``errors`` are always marked."""
    del errors
    lines = bytes(data)
    text = _utf_8(lines)
    if text is not None:
        return text, len(lines)
    end = _line_end(lines)
    return end.decode().join(decoded_line(line)[0] for line in lines.split(end)), len(lines)


class _LineDecoder(codecs.BufferedIncrementalDecoder):
    """Decodes whole lines, and keeps the beginning of a line until the rest of it comes."""

    def _buffer_decode(self, input: Any, errors: str, final: bool) -> tuple[str, int]:
        data = bytes(input)
        end = data.rfind(_line_end(data)) + 1
        return _by_line(data if final or len(data) > LONGEST else data[:end], errors)


def _encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
    return text.encode("utf-8", errors), len(text)


def _codec(name: str) -> codecs.CodecInfo | None:
    if re.split(r"[^a-z0-9]+", name) != ["utf", "8", "cp1252"]:
        return None
    return codecs.CodecInfo(_encode, _by_line, incrementaldecoder=_LineDecoder, name=BY_LINE)


def _mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return UNDECODABLE, error.end


codecs.register_error(HANDLER, _mark)
codecs.register(_codec)
