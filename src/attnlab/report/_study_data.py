"""The first section of a study's page: what was read from the user's files, and what was not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._histogram import histogram_figure
from attnlab.report._page import Card, Figure, Section
from attnlab.report._study_parts import (
    LINE,
    counted,
    distinct,
    missing,
    percent,
    plain_table,
    shortened,
)

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_PARTS = {"train": "training", "valid": "validation", "test": "test"}
_CLASSES, _FILES, _REASONS, _EXAMPLES, _VALUES = 50, 20, 20, 3, 6
_BINS = 48
_PLACE = 48  # characters


def data_section(
    data: Data, reading: Mapping[str, Any], absent: Mapping[str, str], cards: tuple[Card, ...]
) -> Section:
    """Rows, classes and balance, lengths, vocabulary, and what was dropped and why."""
    figures = [
        *_classes(reading),
        *_files(reading),
        *_lost(
            reading.get("dropped") or (), id="dropped", title="Rows that were left out, and why"
        ),
        *_lost(
            reading.get("leaks") or (),
            id="leaks",
            title="Texts that stand in more than one part",
            caption="A model can know these test texts by heart, so that its accuracy on them "
            "says little.",
        ),
        *_lengths(data),
        *_sampled(reading.get("sampled") or ()),
    ]
    body = [
        *_rows(reading),
        *_vocabulary(reading),
        *missing({"lengths": "Words per text"}, data, absent, section="data"),
    ]
    if not reading:
        body = [*body, *missing({"reading": "What was read"}, (), absent, section="data")]
    return Section(
        "data",
        "Your data",
        "What was read, and what was not.",
        body=tuple(body),
        cards=cards,
        figures=tuple(figures),
    )


def _rows(reading: Mapping[str, Any]) -> list[str]:
    """How many rows there are and how many are used; lengths in words."""
    said = []
    if "rows" in reading:
        left = reading["rows"] - reading.get("kept", reading["rows"])
        out = f"{counted(left)} are left out" if left else "none is left out"
        said.append(
            f"{counted(reading['rows'])} rows were read, {counted(reading.get('kept'))} are used, "
            f"{out}."
        )
    if reading.get("split"):
        said.append(f"The split into training, validation and test texts: {reading['split']}.")
    if "leaks" in reading and not reading["leaks"]:
        said.append("No text stands in more than one of training, validation and test data.")
    lengths = reading.get("lengths") or {}
    if lengths:
        said.append(
            f"Half of the training texts have up to {counted(lengths.get('median'))} words, nine "
            "in ten up to "
            f"{counted(lengths.get('p90'))}, the longest has {counted(lengths.get('longest'))}."
        )
    return [" ".join(said)] if said else []


def _vocabulary(reading: Mapping[str, Any]) -> list[str]:
    words = reading.get("vocabulary") or {}
    if not words:
        return []
    said = f"The vocabulary, from training texts only, has {counted(words.get('size'))} words"
    said += f"; {counted(words['left_out'])} more are left out." if words.get("left_out") else "."
    unknown = words.get("unknown") or {}
    shares = [
        f"{percent(share)} of {_PARTS.get(part, part)} words" for part, share in unknown.items()
    ]
    tail = " Not in it, and so unseen by the models: " + ", ".join(shares) + "." if shares else ""
    return [said + tail]


def _classes(reading: Mapping[str, Any]) -> list[Figure]:
    """Rows of each class in each part, its share, and which values of the label column it was read
    from.
    """
    classes = reading.get("classes") or {}
    if not classes:
        return []
    order = sorted(classes, key=lambda name: -sum(classes[name].values()))
    shown = order[:_CLASSES]
    parts = [part for part in _PARTS if any(part in counts for counts in classes.values())]
    columns: dict[str, list[Any]] = {
        _PARTS[p]: [classes[name].get(p, 0) for name in shown] for p in parts
    }
    words = {name: [counted(value) for value in values] for name, values in columns.items()}
    total = sum(sum(counts.values()) for counts in classes.values())
    columns["share"] = [sum(classes[name].values()) / max(total, 1) for name in shown]
    words["share"] = [percent(share) for share in columns["share"]]
    read = {
        name: [value for value, own in (reading.get("labels") or {}).items() if own == name]
        for name in shown
    }
    if any(values and values != [name] for name, values in read.items()):
        columns["read from"] = [_values(read[name]) for name in shown]
    left = (
        f" The {len(shown)} largest of {len(order)} classes are shown."
        if len(shown) < len(order)
        else ""
    )
    return [
        plain_table(
            distinct(shortened(name) for name in shown),
            columns,
            id="classes",
            title="Classes, and how many rows each has",
            shown=words,
            caption=f"{_balance([sum(counts.values()) for counts in classes.values()], total)}{left}",
        )
    ]


def _values(values: Sequence[str]) -> str:
    shown = [shortened(value) for value in values[:_VALUES]]
    return (
        ", ".join([*shown, *([f"… ({len(values)} in all)"] if len(values) > _VALUES else [])])
        or "–"
    )


def _balance(counts: Sequence[int], total: int) -> str:
    """What always naming the largest class would score: the accuracy that means nothing."""
    if not total:
        return "No row has a class."
    return (
        f"Always naming the largest class is right in {percent(max(counts) / total)} of the rows."
    )


def _files(reading: Mapping[str, Any]) -> list[Figure]:
    files = list(reading.get("files") or ())
    if not files:
        return []
    shown = files[:_FILES]
    columns: dict[str, list[Any]] = {
        "format": [shortened(file.get("format") or "–") for file in shown],
        "encoding": [shortened(file.get("encoding") or "–") for file in shown],
        "rows": [file.get("rows") for file in shown],
    }
    left = f"The first {len(shown)} of {len(files)} files." if len(shown) < len(files) else ""
    return [
        plain_table(
            distinct(shortened(file.get("name", ""), LINE) for file in shown),
            columns,
            id="files",
            caption=left,
            title="Files that were read",
            shown={"rows": [counted(file.get("rows")) for file in shown]},
        )
    ]


def _lost(
    entries: Sequence[Mapping[str, Any]], *, id: str, title: str, caption: str = ""
) -> list[Figure]:
    """Reasons with counts and first examples, the most frequent first."""
    if not entries:
        return []
    order = sorted(entries, key=lambda entry: -entry["count"])[:_REASONS]
    columns = {
        "count": [entry["count"] for entry in order],
        "first examples": [_examples(entry.get("examples") or ()) for entry in order],
    }
    return [
        plain_table(
            distinct(shortened(entry["reason"], LINE) for entry in order),
            columns,
            id=id,
            title=title,
            caption=caption,
            shown={"count": [counted(entry["count"]) for entry in order]},
        )
    ]


def _sampled(entries: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """What stands for more than was looked at: a figure, how many, of how many."""
    if not entries:
        return []
    columns: dict[str, list[Any]] = {
        "used": [entry["used"] for entry in entries],
        "of": [entry["of"] for entry in entries],
        "what": [shortened(entry.get("what", "texts"), LINE) for entry in entries],
    }
    words = {name: [counted(value) for value in columns[name]] for name in ("used", "of")}
    return [
        plain_table(
            distinct(shortened(entry["figure"], LINE) for entry in entries),
            columns,
            id="sampled",
            shown=words,
            title="Figures that look at some of the data",
            caption="Drawn at random, the same whenever the study is run. All else is of all "
            "texts.",
        )
    ]


def _examples(examples: Sequence[Mapping[str, Any]]) -> str:
    shown = [
        f"{_place(example)}: “\u2068{shortened(example['text'], LINE)}\u2069”"
        if str(example.get("text") or "").strip()
        else _place(example)
        for example in examples[:_EXAMPLES]
    ]
    return "; ".join(shown) or "–"


def _place(example: Mapping[str, Any]) -> str:
    """File and row; of a long path its end, where the row is."""
    place = str(example.get("place", ""))
    return shortened(place if len(place) <= _PLACE else f"…{place[1 - _PLACE :]}", _PLACE)


def _lengths(data: Data) -> list[Figure]:
    if "lengths" not in data or not data["lengths"]["length"].size:
        return []
    values = np.asarray(data["lengths"]["length"].values, dtype=float)
    low, high = np.floor(values.min()), np.ceil(values.max())
    # Whole numbers of words in each bin, or some bins would hold more lengths than others.
    width = int(np.ceil((high - low + 1) / _BINS))
    edges: Any = np.arange(low - 0.5, high + width, width)
    return [
        histogram_figure(
            {"training texts": values},
            id="lengths",
            title="Words per training text",
            x_label="words",
            y_label="share of the texts",
            bins=edges,
            caption=f"Known and unknown words, in bins of {width} word{'s' if width > 1 else ''}.",
        )
    ]
