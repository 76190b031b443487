"""Needed samples and their ratios, against the number of features, in rows, or against what was
predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._chosen import chosen
from attnlab.report._marks import (
    Mark,
    edges_of,
    is_numeric,
    label_of,
    mark_trace,
    marks_table,
    needed_mark,
    off_grid,
    place,
    ratio_mark,
    rows_figure,
    settings_of,
    shown,
)
from attnlab.report._page import Figure
from attnlab.report._palette import DASHES, MUTED, SERIES, SYMBOLS
from attnlab.report._prepare import axis, layout, log_ticks, reference_lines, short
from attnlab.report._text import interval, number, plain

if TYPE_CHECKING:
    import xarray as xr

_BARS = "Bars: 95 % intervals over seeds (paired for ratios; none with fewer than 8 seeds)."
_LINES = {"equal": 1.0}
_AXES = {"features": "features p"}


def needed_figure(
    table: xr.Dataset, *, id: str, title: str, students: Sequence[str] | None = None
) -> Figure:
    """Needed samples: against the settings with the fitted power law where these are numbers, else
    in rows.
    """
    level = number(float(table.attrs["level"]))
    x_label = f"samples needed for {table.attrs['score']} {level}"
    marks = _all_marks(table, students, "needed")
    if not is_numeric(table):
        rows = [mark for own in marks.values() for _, mark in own]
        return rows_figure(
            rows, id=id, title=title, caption=f"{_BARS} {off_grid(rows)}", x_label=x_label
        )
    lines = [
        trace
        for k, (student, own) in enumerate(marks.items())
        for trace in _power_law(table, student, own, k)
    ]
    fitted = (
        "Lines: the power of p that fits best, with its 95 % interval in the legend."
        if lines
        else ""
    )
    every = [mark for own in marks.values() for _, mark in own]
    caption = f"{_BARS} {off_grid(every)} {fitted} Points at one p stand slightly apart."
    names = {student: _growth(table, student) for student in marks}
    return _against(
        table, marks, names, lines, {}, id=id, title=title, caption=caption, y_label=x_label
    )


def ratio_figure(
    table: xr.Dataset,
    *,
    id: str,
    title: str,
    students: Sequence[str] | None = None,
    predictors: Mapping[str, str] | None = None,
    note: str = "",
) -> Figure:
    """How many times fewer samples than the student ``against``.

    Beside it, ratios that were predicted: ``predictors`` are those of the table's ``predicted``
    that are drawn, with their words; ``note`` ends the caption if there are any.
    """
    against = str(table.attrs["against"])
    label = f"samples needed by {against} / by the student"
    marks = _all_marks(table, students, "ratio")
    if not marks:
        raise AttnlabError(
            f"figure {id!r} has no ratio to draw; expected a student beside {against!r}"
        )
    predicted = _predicted(table, marks, predictors or {})
    every = [mark for own in marks.values() for _, mark in own]
    words = note if any(predicted.values()) else ""
    caption = f"Above 1: fewer samples than {against}. {_BARS} {off_grid(every)} {words}".rstrip()
    if is_numeric(table):
        drawn = {}
        also = [
            v
            for one in predicted.values()
            for values in one.values()
            for v in values
            if v is not None
        ]
        edges = edges_of(
            every, [1.0, *also]
        )  # the same for all students, so that they can be compared
        for k, (student, own) in enumerate(marks.items()):
            beside = [
                _prediction(table, name, values, j)
                for j, (name, values) in enumerate(predicted[student].items())
            ]
            drawn[student] = _against(
                table,
                {student: own},
                {student: f"{student}, measured"},
                beside,
                _LINES,
                id=id,
                title=title,
                caption=caption,
                y_label=label,
                edges=edges,
                first=k,
            )
        return chosen(drawn, id=id, title=title, choice_label="Student", caption=caption)
    beside, row = [], 0
    for student, own in marks.items():
        for j in range(len(own)):
            beside += [
                (name, row, value)
                for name, values in predicted[student].items()
                if (value := values[j]) is not None
            ]
            row += 1
    return rows_figure(
        every, id=id, title=title, caption=caption, x_label=label, lines=_LINES, beside=beside
    )


def ratio_rows(
    ratios: Mapping[str, xr.Dataset],
    *,
    id: str,
    title: str,
    x_label: str,
    lines: Mapping[str, float] | None = None,
    caption: str = "",
) -> Figure:
    """Ratios of several tables in rows: by label, one student in one setting.

    Places without a ratio are left out.
    """
    found = [ratio_mark(one, label) for label, one in ratios.items()]
    marks = [mark for mark in found if mark is not None]
    caption = f"{caption} {off_grid(marks)}"
    return rows_figure(marks, id=id, title=title, x_label=x_label, lines=lines, caption=caption)


def ratios_against(
    table: xr.Dataset,
    predicted: Sequence[float],
    groups: Sequence[Any],
    *,
    id: str,
    title: str,
    x_label: str,
    caption: str = "",
    note: str = "",
    setting_label: str = "setting",
    group_label: str = "",
) -> Figure:
    """Measured ratios (setting) over what was predicted of them, a colour for each group.

    ``predicted`` and ``groups`` have an entry for each setting; ``caption`` and ``note`` stand
    before and after what is said of bounds.
    """
    marks, across, group_of = [], [], []
    for k, (x, group) in enumerate(zip(predicted, groups, strict=True)):
        mark = ratio_mark(table.isel(setting=k), str(table["setting"].values[k]))
        if mark is not None:
            bounds = interval((mark.low, mark.high))
            marks.append(replace(mark, text=f"{mark.text} {bounds}<br>predicted {x:.3g}"))
            across.append(float(x))
            group_of.append(group)
    edges = edges_of(marks)
    traces = []
    for k, group in enumerate(sorted(set(group_of))):
        own = [place for place, one in enumerate(group_of) if one == group]
        name = f"{group} {group_label}".strip()
        chosen_marks = [marks[place] for place in own]
        traces.append(
            mark_trace(chosen_marks, [across[place] for place in own], edges, k, name=name)
        )
    y_axis = axis(
        "measured ratio of needed samples", True, [np.array(edges)], range=np.log10(edges).tolist()
    )
    style = layout(440, xaxis=axis(x_label, True, [np.array(across)]), yaxis=y_axis)
    rows = [((mark.label, x), mark) for mark, x in zip(marks, across, strict=True)]
    columns = marks_table(rows, (setting_label, "predicted"))
    words = f"{caption} {off_grid(marks)} {note}".strip()
    return Figure(id, title, words, title, {"data": traces, "layout": style}, columns)


def _all_marks(
    table: xr.Dataset, students: Sequence[str] | None, name: str
) -> dict[str, list[tuple[Any, Mark]]]:
    """The marks of each student with their settings; students without any are left out."""
    dim, settings = settings_of(table)
    names = [str(s) for s in table["student"].values] if students is None else list(students)
    found: dict[str, list[tuple[Any, Mark]]] = {}
    for student in names:
        for setting in settings:
            one = place(table, student, setting)
            words = label_of(dim, setting) if len(settings) > 1 else ""
            label = f"{student}, {words}" if words else student
            mark = (
                needed_mark(one, label, table.attrs["score"])
                if name == "needed"
                else ratio_mark(one, label)
            )
            if mark is not None:
                found.setdefault(student, []).append((setting, mark))
    return found


def _against(
    table: xr.Dataset,
    marks: dict[str, list[tuple[Any, Mark]]],
    names: dict[str, str],
    beside: list[dict[str, Any]],
    lines: dict[str, float],
    *,
    id: str,
    title: str,
    caption: str,
    y_label: str,
    edges: tuple[float, float] | None = None,
    first: int = 0,
) -> Figure:
    """Marks over settings that are numbers, both axes logarithmic."""
    dim, settings = settings_of(table)
    every = [mark for own in marks.values() for _, mark in own]
    edges = edges or edges_of(every, list(lines.values()))
    traces = list(beside)
    for k, (student, own) in enumerate(marks.items()):
        apart = 1.02 ** (k - (len(marks) - 1) / 2)
        x = [float(setting) * apart for setting, _ in own]
        traces.append(
            mark_trace([mark for _, mark in own], x, edges, first + k, name=names[student])
        )
    span = [np.log10(min(settings) / 1.2), np.log10(max(settings) * 1.2)]
    ticks = {"tickmode": "array", "tickvals": settings, "ticktext": [number(s) for s in settings]}
    style = layout(
        440,
        xaxis=axis(_AXES.get(dim, dim), True, [np.array(settings, dtype=float)])
        | ticks
        | {"range": span},
        yaxis=axis(y_label, True)
        | log_ticks([np.array(edges)], 3.5)
        | {"range": [np.log10(e) for e in edges]},
    )
    style["showlegend"] = True
    style["shapes"] = reference_lines(lines)
    columns = marks_table(
        [((s, v), mark) for s, own in marks.items() for v, mark in own], ("student", dim)
    )
    alt = f"{title}. " + "; ".join(f"{mark.label}: {shown(mark)}" for mark in every) + "."
    return Figure(id, title, caption, alt, {"data": traces, "layout": style}, columns)


def _growth(table: xr.Dataset, student: str) -> str:
    """A student's name with its exponent, as far as that is known."""
    if "exponent" not in table:
        return student
    one = table.sel(student=student)
    kind = str(one["exponent_kind"].values)
    value, low, high = (float(one[f"exponent{end}"]) for end in ("", "_low", "_high"))
    if kind in ("unknown", "not run") or np.isnan(value):
        return f"{student}: exponent unknown"
    sign = {"at least": "≥ ", "at most": "≤ "}.get(kind, "")
    bounds = f" [{_two(low)}, {_two(high)}]" if np.isfinite(low) or np.isfinite(high) else ""
    return f"{student}: exponent {sign}{_two(value)}{bounds}"


def _two(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if np.isfinite(value) else number(value)


def _power_law(
    table: xr.Dataset, student: str, own: list[tuple[Any, Mark]], k: int
) -> list[dict[str, Any]]:
    """The fitted line through the middle of the points; none where a point is only a bound."""
    if "exponent" not in table or len(own) < 2 or any(mark.kind != "exact" for _, mark in own):
        return []
    slope = float(table["exponent"].sel(student=student))
    x, y = (
        np.log([float(v) for v in values])
        for values in ([s for s, _ in own], [m.value for _, m in own])
    )
    ends = np.array([x.min(), x.max()])
    line = {"color": SERIES[k % 7], "width": 1.6, "dash": DASHES[k % 7]}
    data = {"x": short(np.exp(ends)), "y": short(np.exp(y.mean() + slope * (ends - x.mean())))}
    return [
        {"type": "scatter", "mode": "lines", "line": line, "hoverinfo": "skip", "showlegend": False}
        | data
    ]


def _predicted(
    table: xr.Dataset, marks: dict[str, list[tuple[Any, Mark]]], predictors: Mapping[str, str]
) -> dict[str, dict[str, list[float | None]]]:
    """Of each student and predictor, in words, the mean over seeds in each of its settings."""
    found: dict[str, dict[str, list[float | None]]] = {}
    for student, own in marks.items():
        found[student] = {}
        if "predicted" not in table:
            continue
        for name, words in predictors.items():
            values = [
                place(table, student, setting)["predicted"].sel(predictor=name).values
                for setting, _ in own
            ]
            means = [float(np.nanmean(v)) if np.isfinite(v).any() else None for v in values]
            if any(mean is not None for mean in means):
                found[student][words] = means
    return found


def _prediction(
    table: xr.Dataset, words: str, values: list[float | None], k: int
) -> dict[str, Any]:
    """One predictor over the settings, in its own symbol."""
    _, settings = settings_of(table)
    marker = {
        "symbol": f"{SYMBOLS[(k + 1) % 7]}-open",
        "size": 9,
        "color": MUTED,
        "line": {"width": 1.6},
    }
    data = {
        "x": short(settings),
        "y": values,
        "name": plain(words),
        "mode": "lines+markers",
        "marker": marker,
    }
    line = {"color": MUTED, "width": 1, "dash": "dot"}
    return {
        "type": "scatter",
        "line": line,
        "hovertemplate": f"%{{y:.3~g}}<extra>{plain(words)}</extra>",
    } | data
