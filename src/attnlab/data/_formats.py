"""Reads rows of text and label: CSV, TSV, JSON Lines, Parquet, and lines that start with a label."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from attnlab._errors import AttnlabError
from attnlab.data._columns import Wanted, choose_columns
from attnlab.data._compressed import LONGEST, bare_ending, most_bytes, too_much
from attnlab.data._delimited import DELIMITERS, delimited_rows, guess_delimiter, header_of
from attnlab.data._encodings import HANDLER
from attnlab.data._sources import PARQUET, Source

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

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
# JSON objects whose keys are taken for the columns, unless they are long.
_LOOKED_AT, _LOOKED_AT_CHARACTERS = 100, 2**20
_RECORDS = 4096  # of Parquet that are decoded at one time
_DECODED = 2**26  # characters of them, about
_LONG = _DECODED // _RECORDS  # characters of a text of which so many may be decoded
_SHARING = {"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"}
# What pyarrow raises besides its own errors.
_DAMAGE = (OSError, ValueError, TypeError, LookupError, OverflowError)
_WITHOUT_PARQUET = "write the table as CSV"


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
    if source.head.startswith(PARQUET):
        if named not in (None, "parquet"):
            raise AttnlabError(
                f"{source.name} is a Parquet file, not {named}: leave format='{named}' (--format) "
                "out"
            )
        return "parquet"
    if named is not None:
        return named
    ending = bare_ending(source.name)
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
    rows = _objects(source)
    looked = _first_objects(rows)
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


def _first_objects(rows: Iterable[tuple[int, Any]]) -> list[tuple[int, Any]]:
    looked, size = [], 0
    for number, item in rows:
        looked.append((number, item))
        size += len(str(item))
        if len(looked) >= _LOOKED_AT or size > _LOOKED_AT_CHARACTERS:
            break
    return looked


def _objects(source: Source) -> Iterator[tuple[int, Any]]:
    """Line number and JSON object, or the line itself if it is not one."""
    for number, line in enumerate(source.lines(), 1):
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
    for number, line in enumerate(source.lines(), 1):
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
        file = stream if source.compression is None else io.BytesIO(stream.read())
        try:
            yield from _records(source, wanted, file)
        except AttnlabError:
            raise
        except (pa.ArrowException, *_DAMAGE) as error:
            words = str(error).splitlines() or [type(error).__name__]
            raise AttnlabError(f"{source.name} is truncated or damaged: {words[0]}") from error


def _records(source: Source, wanted: Wanted, stream: Any) -> Iterator[Row]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(stream)
    columns = list(file.schema_arrow.names)
    text, label = choose_columns(source.name, columns, wanted)
    chosen = [columns[text]] + ([] if label is None else [columns[label]])
    shared, at_once = _ways(source, file.metadata, chosen)
    sharing = pq.ParquetFile(stream, metadata=file.metadata, read_dictionary=shared)
    number = 0
    for group in range(file.num_row_groups):
        # Reading by dictionary takes half as long again, and is for texts that would fill memory.
        reader = sharing if _shares_long_texts(sharing, group, chosen) else file
        for batch in reader.iter_batches(at_once, row_groups=[group], columns=chosen):
            for part in _parts(batch, chosen):
                values = [_values(part.column(name)) for name in chosen]
                for found in zip(*values, strict=True):
                    number += 1
                    nested = any(isinstance(value, dict | list) for value in found)
                    label_value = found[-1] if label is not None else None
                    yield Row(number, found[0], label_value, malformed=nested)


def _ways(source: Source, metadata: pq.FileMetaData, chosen: list[str]) -> tuple[list[str], int]:
    """The columns in which a text that many rows share can stay one text, and how many records to
    decode at one time; an error if the file says that it is a bomb.
    """
    size, longest, others = 0, 1, set()
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema in chosen:
                size += column.total_uncompressed_size
                # In other encodings each text may repeat the beginning of the one before it.
                if not _SHARING.issuperset(column.encodings):
                    others.add(column.path_in_schema)
                    longest = max(longest, min(column.total_uncompressed_size, LONGEST))
    if size > most_bytes(source.path):
        raise too_much(source.path, source.name, _WITHOUT_PARQUET)
    at_once = max(1, min(_RECORDS, _DECODED // longest))
    return [name for name in chosen if name not in others], at_once


def _shares_long_texts(file: pq.ParquetFile, group: int, chosen: list[str]) -> bool:
    """Whether many records of a row group may share a long text: its dictionary has one."""
    for first in file.iter_batches(1, row_groups=[group], columns=chosen):
        lengths = [sizes for name in chosen if (sizes := _lengths(first.column(name))) is not None]
        return any((_compute().max(each).as_py() or 0) > _LONG for each in lengths)
    return False


def _parts(batch: pa.RecordBatch, chosen: list[str]) -> Iterator[pa.RecordBatch]:
    """A batch in parts of which none is large when each row has a text of its own."""
    import pyarrow as pa

    pc, sizes = _compute(), None
    for name in chosen:
        lengths = _lengths(batch.column(name))
        if lengths is not None:
            own = lengths.take(batch.column(name).indices).cast(pa.int64())
            own = pc.fill_null(own, 0)
            sizes = own if sizes is None else pc.add(sizes, own)
    if sizes is None or (pc.sum(sizes).as_py() or 0) <= _DECODED:
        yield batch
        return
    first, taken = 0, 0
    for place, size in enumerate(sizes.to_pylist()):
        if taken and taken + size > _DECODED:
            yield batch.slice(first, place - first)
            first, taken = place, 0
        taken += size
    yield batch.slice(first)


def _lengths(column: Any) -> Any:
    """The lengths of the texts in a column's dictionary; ``None`` for a column without one."""
    import pyarrow as pa

    if not isinstance(column, pa.DictionaryArray) or not _is_text(column.type.value_type):
        return None
    return _compute().binary_length(column.dictionary)


def _compute() -> Any:
    """pyarrow's functions of arrays, which are made when it is imported."""
    from pyarrow import compute

    return compute


def _values(column: pa.Array) -> list[Any]:
    """The values of a column; bytes of a text that are not UTF-8 are marked."""
    import pyarrow as pa

    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if not _is_text(column.type):
        return column.to_pylist()
    try:
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            column = column.cast(pa.large_string())  # written without saying that it is text
        return column.to_pylist()
    except (UnicodeDecodeError, pa.ArrowInvalid):
        raw = column.cast(pa.large_binary()).to_pylist()
        return [value if value is None else value.decode("utf-8", HANDLER) for value in raw]


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


FORMATS: dict[str, Callable[[Source, Wanted], Iterator[Row]]] = {
    "csv": _csv,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "parquet": _parquet,
    "lines": _lines,
}
