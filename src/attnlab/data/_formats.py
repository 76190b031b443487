"""Reads rows of text and label: CSV, TSV, JSON Lines, Parquet, and lines that start with a label."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import PurePath
from typing import Any, NamedTuple

from attnlab._errors import AttnlabError
from attnlab.data._columns import Wanted, choose_columns
from attnlab.data._delimited import DELIMITERS, delimited_rows, guess_delimiter, header_of
from attnlab.data._sources import PARQUET, Source

_EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_LOOKED_AT = 100  # JSON objects whose keys are taken for the columns


class Row(NamedTuple):
    """One row: text and label as they are in the file, or ``malformed`` with what could not be read."""

    number: int
    text: Any
    label: Any
    malformed: bool = False


def guess_format(source: Source, wanted: Wanted, named: str | None) -> str:
    """The named format, or a guess from a file's first bytes, its extension or its first lines."""
    if named is not None and named not in FORMATS:
        raise AttnlabError(f"format={named!r}: expected one of {', '.join(FORMATS)}")
    if named is not None:
        return named
    if source.head.startswith(PARQUET):
        return "parquet"
    ending = PurePath(source.name.lower().removesuffix(".gz")).suffix
    return _EXTENSIONS.get(ending) or _guess_by_content(source, wanted)


def read_rows(source: Source, format: str, wanted: Wanted) -> Iterator[Row]:
    """The rows of a file, one after the other."""
    return FORMATS[format](source, wanted)


def _guess_by_content(source: Source, wanted: Wanted) -> str:
    lines = [line for line in source.first_lines() if line.strip()]
    if lines and lines[0].lstrip().startswith(("{", "[")) and _is_object(lines[0]):
        return "jsonl"
    for delimiter in DELIMITERS:
        columns, equal = header_of(lines, delimiter)
        # A sentence may contain commas: a header must be followed by rows of its width.
        if len(columns) > 1 and equal >= 0.9:
            try:
                choose_columns(source.name, columns, wanted)
            except AttnlabError:
                continue
            return "tsv" if delimiter == "\t" else "csv"
    if not wanted.labelled:
        return "lines"
    fields = [line.split(maxsplit=1) for line in lines]
    labels = {parts[0] for parts in fields}
    if all(len(parts) > 1 for parts in fields) and 1 < len(labels) <= min(
        50, max(2, len(lines) // 2)
    ):
        return "lines"
    raise AttnlabError(
        f"{source.name}: its format is not clear from its name or its first lines; give format='…' "
        f"(--format …), one of {', '.join(FORMATS)}"
    )


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _csv(source: Source, wanted: Wanted) -> Iterator[Row]:
    return _delimited(source, wanted, guess_delimiter(source.first_lines()))


def _tsv(source: Source, wanted: Wanted) -> Iterator[Row]:
    return _delimited(source, wanted, "\t")


def _delimited(source: Source, wanted: Wanted, delimiter: str) -> Iterator[Row]:
    rows = delimited_rows(source, delimiter)
    first = next(rows, None)
    if first is None:
        raise AttnlabError(f"{source.name} has no row: expected rows with a text and a label")
    width = len(first[1])
    columns = first[1] if wanted.header else [str(i + 1) for i in range(width)]
    text, label = choose_columns(source.name, columns, wanted)
    for number, cells in rows if wanted.header else chain([first], rows):
        if len(cells) != width and (len(cells) < width or any(cells[width:])):
            yield Row(number, delimiter.join(cells), None, malformed=True)
        else:
            yield Row(number, cells[text], None if label is None else cells[label])


def _jsonl(source: Source, wanted: Wanted) -> Iterator[Row]:
    with source.characters() as stream:
        rows = _objects(source, stream)
        looked = list(islice(rows, _LOOKED_AT))
        columns = list(
            dict.fromkeys(key for _, item in looked if isinstance(item, dict) for key in item)
        )
        if not columns:
            raise AttnlabError(
                f"{source.name}: none of its first lines is a JSON object; expected JSON Lines, "
                'one object such as {"text": "…", "label": "…"} per line'
            )
        text, label = choose_columns(source.name, columns, wanted)
        for number, item in chain(looked, rows):
            if not isinstance(item, dict):
                yield Row(number, item, None, malformed=True)
                continue
            found = item.get(columns[text]), None if label is None else item.get(columns[label])
            nested = any(isinstance(value, dict | list) for value in found)
            yield Row(number, found[0], found[1], malformed=nested)


def _objects(source: Source, stream: Any) -> Iterator[tuple[int, Any]]:
    """Line number and JSON object, or the line itself if it is not one."""
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        if number == 1 and line.lstrip().startswith("["):
            raise AttnlabError(
                f"{source.name} is one JSON array; expected JSON Lines, one object per line without "
                "commas"
            )
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            item = line
        yield number, item if isinstance(item, dict) else line


def _lines(source: Source, wanted: Wanted) -> Iterator[Row]:
    with source.characters() as stream:
        for number, line in enumerate(stream, 1):
            content = line.strip()
            if not content:
                continue
            if not wanted.labelled:
                yield Row(number, content, None)
                continue
            label, *rest = content.split(maxsplit=1)
            yield Row(number, rest[0] if rest else "", label)


def _parquet(source: Source, wanted: Wanted) -> Iterator[Row]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise AttnlabError(
            f"{source.name} is Parquet, which needs the package pyarrow: pip install "
            "'attnlab[parquet]'"
        ) from error
    if not source.head.startswith(PARQUET):
        raise AttnlabError(
            f"{source.name} is not a Parquet file: it does not start with PAR1; give format='…' "
            "(--format …)"
        )
    with source.bytes() as stream:
        try:
            file = pq.ParquetFile(io.BytesIO(stream.read()) if source.compressed else stream)
            columns = list(file.schema_arrow.names)
            text, label = choose_columns(source.name, columns, wanted)
            chosen = [columns[text]] + ([] if label is None else [columns[label]])
            number = 0
            for batch in file.iter_batches(batch_size=4096, columns=chosen):
                values = [batch.column(name).to_pylist() for name in chosen]
                for found in zip(*values, strict=True):
                    number += 1
                    nested = any(isinstance(value, dict | list | bytes) for value in found)
                    yield Row(
                        number, found[0], found[-1] if label is not None else None, malformed=nested
                    )
        except pa.ArrowException as error:
            raise AttnlabError(
                f"{source.name} is truncated or damaged: {str(error).splitlines()[0]}"
            ) from error


FORMATS: dict[str, Callable[[Source, Wanted], Iterator[Row]]] = {
    "csv": _csv,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "lines": _lines,
}
