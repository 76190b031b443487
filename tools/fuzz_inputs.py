"""Damage files of texts at random and read them as a study does: python tools/fuzz_inputs.py 5000 --seed 0

Each case is a small file (CSV, TSV, JSON Lines, Parquet, lines; in several encodings; plain or
compressed) that is mutated before or after it is compressed, and read with options that may not fit
it, at once or in a stream, in a process of its own. It must be read or refused in words, soon and in
little memory; a case that is not can be repeated alone: python tools/fuzz_inputs.py --case NUMBER.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from attnlab._errors import AttnlabError
from attnlab.data import TextSource, prepare_texts

SECONDS, GIBIBYTES = 20, 1.5
OK, REFUSED, FOREIGN = "read", "refused in words", "foreign exception or crash"
TOO_LARGE, TOO_LONG = f"over {GIBIBYTES} GiB", f"over {SECONDS} s"
OUTCOMES = (OK, REFUSED, FOREIGN, TOO_LARGE, TOO_LONG)
_WORDS = (
    "good",
    "bad",
    "film",
    "naïve",
    "café",
    "“quoted”",
    "don't",
    "3.5",
    "=1+2",
    "привет",
    "🙂",
)
_ODD = (
    *(b'"', b"''", b"\0", b"\r", b"\n\n", b"\t\t", b",,,,", b"{", b"[" * 3000, b"]}", b"\\ud800"),
    *(b"\xff", b"\xc3", b"\xe9t\xe9", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"PAR1", b"BZh9"),
    *(b"NaN", b"null", b"1e999", b"9" * 5000, b"-0.0", b"true", b"\xe2\x80\xa8", b"\x85", b"\x1a"),
    *(b"\x80\x81", "\ud800".encode("utf-8", "surrogatepass"), "é".encode("utf-16"), b"+AGE-"),
)
_ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "utf-16-le")
_ASKED = (
    *("utf-8", "cp1252", "latin-1", "utf-16", "utf-16-be", "utf-32", "utf-7", "utf-8+cp1252"),
    *("rot13", "hex", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"),
    *("shift_jis", "iso2022_jp", "hz", "gb18030", "big5", "euc_kr", "koi8-r", "cp037", "mbcs", ""),
    *("a\0b", "no such", "zlib", "utf-8" * 99),
)
_NAMES = ("a.csv", "a.tsv", "a.jsonl", "a.json", "a.parquet", "a.txt", "a", "a.csv.gz", "a.zst")


@dataclass(frozen=True)
class Case:
    """A file and the options to read it with."""

    name: str
    content: bytes
    options: dict[str, Any]
    is_stream: bool


def case_of(seed: str) -> Case:
    """The case of a seed; the same at any time."""
    draw = random.Random(seed)
    kind = draw.choice(("csv", "csv", "tsv", "jsonl", "lines", "parquet", "parquet"))
    if kind == "parquet":
        content = draw.choice(_parquet_files())
    else:
        encoding = draw.choice(_ENCODINGS)
        text = _text(kind, draw)
        content = text.encode(encoding, "replace")
        if draw.random() < 0.15:  # lines of two encodings
            lines = text.encode().splitlines(keepends=True)
            recode = lambda line: line.decode().encode("cp1252", "replace")  # noqa: E731
            content = b"".join(recode(li) if draw.random() < 0.3 else li for li in lines)
    pack = draw.choice((None, None, None, *_PACKERS.values()))
    is_early = pack is None or draw.random() < 0.85
    if is_early:
        content = _mutated(content, draw)
    if pack is not None:
        content = pack(content)
    if not is_early:
        content = _mutated(content, draw)
    name = draw.choice(_NAMES) if draw.random() < 0.15 else f"a.{kind}"
    return Case(name, content, _options(kind, draw), draw.random() < 0.5)


def read(case: Case, folder: Path) -> None:
    """Read a case as ``attnlab study`` does; raises what reading raises."""
    file = folder / case.name
    file.write_bytes(case.content)
    source = TextSource((str(file),), **case.options)
    stream_bytes = 0 if case.is_stream else None
    prepare_texts(source, folder=folder / "corpus", stream_bytes=stream_bytes)


def _text(kind: str, draw: random.Random) -> str:
    rows = [
        (" ".join(draw.choices(_WORDS, k=draw.randrange(1, 9))) + f" w{k}", draw.choice("ab"))
        for k in range(draw.choice((9, 30, 200)))
    ]
    if kind == "jsonl":
        return "".join(
            json.dumps({"text": t, "label": c}, ensure_ascii=False) + "\n" for t, c in rows
        )
    if kind == "lines":
        return "".join(f"{label} {text}\n" for text, label in rows)
    delimiter = "\t" if kind == "tsv" else draw.choice(",,;|")
    quote = draw.choice(('"', ""))
    body = "".join(f"{quote}{text}{quote}{delimiter}{label}\n" for text, label in rows)
    return f"text{delimiter}label\n{body}"


@cache
def _parquet_files() -> tuple[bytes, ...]:
    """Small tables of several types, encodings and compressions."""
    texts = [f"a good film {k}" if k % 2 else f"bad {k % 7} café" for k in range(60)]
    labels = [k % 2 for k in range(60)]
    tables = (
        pa.table({"text": texts, "label": [str(label) for label in labels]}),
        pa.table({"text": texts, "label": labels, "more": [[label] for label in labels]}),
        pa.table({"text": pa.array(texts).dictionary_encode(), "label": [0.5 * c for c in labels]}),
        pa.table({"text": pa.array([t.encode() for t in texts]), "label": [c > 0 for c in labels]}),
        pa.table(
            {
                "text": pa.array(texts, pa.large_string()),
                "label": pa.array(labels).cast("timestamp[s]"),
            }
        ),
        pa.table({"text": texts, "label": [{"a": label} for label in labels]}),
    )
    ways = (
        {"compression": "snappy"},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "none", "use_dictionary": False},
        {"compression": "gzip", "row_group_size": 7},
        {
            "compression": "none",
            "use_dictionary": False,
            "column_encoding": {"text": "DELTA_BYTE_ARRAY"},
        },
    )
    found = []
    for table in tables:
        for way in ways:
            if "column_encoding" in way and table["text"].type not in (pa.string(), pa.binary()):
                continue
            target = io.BytesIO()
            pq.write_table(table, target, **way)
            found.append(target.getvalue())
    return tuple(found)


def _mutated(content: bytes, draw: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(draw.choice((0, 1, 1, 2, 4, 16))):
        if not data:
            break
        begin = draw.randrange(len(data))
        if draw.random() < 0.3:  # where headers and footers are
            begin = draw.choice((min(begin, 64), max(0, len(data) - 1 - begin % 400)))
        end = min(len(data), begin + int(draw.paretovariate(0.6)))
        way = draw.randrange(8)
        if way == 0:
            data[begin] ^= 1 << draw.randrange(8)
        elif way == 1:
            data[begin:end] = draw.randbytes(min(end - begin, 4096))
        elif way == 2:
            del data[begin:end]
        elif way == 3:
            data[begin:begin] = draw.choice(_ODD)
        elif way == 4:
            data[begin:begin] = bytes(data[begin:end][:2000]) * draw.choice((2, 50, 1000))
        elif way == 5:
            del data[begin:]
        elif way == 6:
            other = draw.randrange(len(data))
            data[begin:end] = data[other : other + end - begin]
        else:
            data[begin:begin] = draw.choice(_ODD) * draw.choice((1, 10, 1000))
    return bytes(data)


def _packed_by_zstd(content: bytes) -> bytes:
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, "zstd") as file:
        file.write(content)
    return target.getvalue().to_pybytes()


_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": _packed_by_zstd,
}


def _options(kind: str, draw: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {"header": draw.random() < 0.9}
    if draw.random() < 0.15:
        options["format"] = draw.choice((kind, "csv", "tsv", "jsonl", "parquet", "lines"))
    if draw.random() < 0.15:
        options["encoding"] = draw.choice(_ASKED)
    if kind != "lines" and draw.random() < 0.5:
        options |= {"text": "text", "label": "label"}
    if draw.random() < 0.05:
        options |= {"text": draw.choice(("1", "label", "texts", "\ud800"))}
    return options


def _in_child(case: Case) -> tuple[str, str]:
    """What happens to a case in a process of its own: outcome, and a traceback."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as said:
        with warnings.catch_warnings():
            # The child reads a file and ends: it needs no thread of this process.
            warnings.filterwarnings("ignore", message=".*fork")
            child = os.fork()
        if child == 0:
            _be_child(case, Path(folder), said.fileno())
        _, status, used = os.wait4(child, 0)
        said.seek(0)
        words = said.read()
    signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if signalled == signal.SIGALRM:
        return TOO_LONG, words
    if signalled or os.WEXITSTATUS(status) == 2:
        return FOREIGN, words or f"killed by signal {signalled}"
    if used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) > GIBIBYTES * 2**30:
        return TOO_LARGE, f"{used.ru_maxrss / 2**20:.2f} GiB"
    return (OK, REFUSED)[os.WEXITSTATUS(status)], words


def _be_child(case: Case, folder: Path, said: int) -> None:
    os.dup2(said, 2)
    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = 2
    try:
        read(case, folder)
        code = 0
    except AttnlabError as error:
        str(error).encode("utf-8", "backslashreplace")
        code = 1
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(code)


def main() -> int:
    """Read so many cases, print how they ended; 1 where one ended badly."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", help="one case alone, in this process")
    asked = parser.parse_args()
    warnings.simplefilter("error")
    if asked.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            read(case_of(asked.case), Path(folder))
        return 0
    _parquet_files()
    counts, started = Counter[str](), time.monotonic()
    largest = 0.0
    for number in range(asked.count):
        seed = f"{asked.seed}-{number}"
        begun = time.monotonic()
        outcome, words = _in_child(case_of(seed))
        largest = max(largest, time.monotonic() - begun)
        counts[outcome] += 1
        if outcome not in (OK, REFUSED):
            print(f"--case {seed}: {outcome}\n{words}", flush=True)
    for outcome in OUTCOMES:
        print(f"{counts[outcome]:6} {outcome}")
    seconds = time.monotonic() - started
    print(f"{asked.count} files in {seconds:.0f} s, at most {largest:.1f} s for one")
    return int(counts[OK] + counts[REFUSED] < asked.count)


if __name__ == "__main__":
    sys.exit(main())
