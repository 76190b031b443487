"""The numbers of learning curves as tables: needed samples and ratios, what was tuned, what lies
beyond.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._heat import heat_table
from attnlab.report._marks import Mark, label_of, needed_mark, place, ratio_mark, settings_of, shown
from attnlab.report._page import Figure
from attnlab.report._text import interval, number

if TYPE_CHECKING:
    import xarray as xr

_TUNED = {"step_size": "step size", "weight_decay": "weight decay"}


def answers_table(table: xr.Dataset, *, id: str, title: str) -> Figure:
    """Needed samples, share of seeds that reach the level by themselves, ratio and verdict, row by
    row.
    """
    rows, cells = [], []
    for label, one in _places(table):
        needed = needed_mark(one, label, table.attrs["score"])
        if needed is None:
            continue
        ratio = ratio_mark(one, label)
        share = float(one["reached"])
        saved = f"{shown(ratio)} {_bounds(ratio)}".rstrip() if ratio else "–"
        reach = f"{share:.0%}".replace("%", " %")
        cells.append([_needed_words(needed), reach, saved, str(one["verdict"].values) or "–"])
        rows.append(label)
    columns = [
        "needed samples, 95 % interval",
        "seeds that reach it",
        "ratio, 95 % interval",
        "verdict",
    ]
    return _plain_table(
        rows,
        columns,
        cells,
        id=id,
        title=title,
        caption=f"Ratio: samples needed by {table.attrs['against']} over those needed here; above "
        "1 is a saving. “No "
        "advantage”: the interval excludes a saving of 1.25 times or more.",
    )


def tuning_table(
    table: xr.Dataset, *, id: str, title: str, offered: Mapping[str, Sequence[float]] | None = None
) -> Figure | None:
    """How often validation chose each value, and the share of fits still falling; None if not
    stored.
    """
    names = [name for name in _TUNED if name in table]
    if not names:
        return None
    chosen = {name: _values(table[name].values, (offered or {}).get(name, ())) for name in names}
    columns = [f"{_TUNED[name]} {number(value)}" for name in names for value in chosen[name]]
    students, cells = [str(s) for s in table["student"].values], []
    for student in students:
        one = table.sel(student=student)
        ran = int(one[names[0]].notnull().sum())
        counts = [int((one[name] == value).sum()) for name in names for value in chosen[name]]
        late = [float(one["unsettled"].mean())] if "unsettled" in one else []
        cells.append(
            [
                *(f"{count} of {ran}" for count in counts),
                *(f"{share:.1%}".replace("%", " %") for share in late),
            ]
        )
    columns += ["still falling"] if "unsettled" in table else []
    return _plain_table(
        students,
        columns,
        cells,
        id=id,
        title=title,
        caption="Every student was offered the same values, and each fit's were chosen by its "
        "loss on validation data "
        "that are not counted in n. Still falling: loss fell by over 5 % in the last fifth of the "
        "steps.",
    )


def further_table(table: xr.Dataset, *, id: str, title: str) -> Figure | None:
    """What a power law expects for the level, and how well it predicted what was measured; None if
    not stored.
    """
    if "extrapolated_said" not in table:
        return None
    rows, cells = [], []
    for label, one in _places(table):
        said = str(one["extrapolated_said"].values)
        if not said:
            continue
        value, low, high = (float(one[f"extrapolated{end}"]) for end in ("", "_low", "_high"))
        known = f"{number(value)} {interval((low, high))}" if np.isfinite(value) else "none"
        cells.append([known, said])
        rows.append(label)
    if not rows:
        return None
    if len(rows) > 1 and all(cell == cells[0] for cell in cells):
        rows, cells = ["all students"], cells[:1]
    return _plain_table(
        rows,
        ["samples expected", "in words, with the back-test"],
        cells,
        id=id,
        title=title,
        caption="A power law fitted to the whole curve. It is believed only if the first half of "
        "the sizes predicted "
        "the second half (the back-test).",
    )


def _places(table: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """Every student in every setting, with a label."""
    dim, settings = settings_of(table)
    found = []
    for student in (str(s) for s in table["student"].values):
        for setting in settings:
            words = label_of(dim, setting) if len(settings) > 1 else ""
            found.append(
                (f"{student}, {words}" if words else student, place(table, student, setting))
            )
    return found


def _needed_words(mark: Mark) -> str:
    if mark.kind == "exact":
        return f"{number(mark.value)} {_bounds(mark)}".rstrip()
    return f"{'not reached up to' if mark.kind == 'at least' else 'already met with'} {number(mark.value)}"


def _bounds(mark: Mark) -> str:
    return interval((mark.low, mark.high)) if mark.barred else ""


def _values(found: np.ndarray, offered: Sequence[float]) -> list[float]:
    """What was offered, else what was chosen at least once."""
    if len(offered):
        return [
            float(np.float32(value)) if found.dtype == np.float32 else float(value)
            for value in offered
        ]
    return np.unique(found[~np.isnan(found)]).tolist()


def _plain_table(
    rows: list[str], columns: list[str], cells: list[list[Any]], **more: Any
) -> Figure:
    return heat_table(rows, columns, cells, tones=[["" for _ in row] for row in cells], **more)
