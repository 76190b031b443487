"""Learning curves, the samples that a level needs, and their ratios, drawn or in tables.

All take a ``table`` as `attnlab.complexity.tabulate` returns it, and read of it

- the attributes ``score`` (the name of the measured variable), ``falling``, ``level``,
  ``statistic``, ``against`` (the student that others are compared with) and ``dim``, the dimension
  of the settings;
- the score (student, setting, seed, size), and in each place (student, setting) ``needed`` and
  ``ratio``, each with ``_low``, ``_high``, ``_kind`` and in words ``needed_said`` and ``said``,
  ``reached`` and ``verdict``;
- where they are stored, of each student ``exponent``, and in each place ``predicted`` (predictor).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._curves import band_outline
from attnlab.report._page import Figure
from attnlab.report._rows import (
    Mark,
    bounds_note,
    edges_of,
    mark_trace,
    marks_table,
    rows_figure,
)
from attnlab.report._style import (
    MUTED,
    axis,
    color_of,
    dash_of,
    hidden_note,
    layout,
    log_ticks,
    menu_figure,
    one_note,
    quantiles,
    reference_lines,
    short,
    symbol_of,
)
from attnlab.report._tables import plain_table
from attnlab.report._words import interval, number, plain

if TYPE_CHECKING:
    import xarray as xr

Kind = Literal["exact", "at least", "at most", "unknown"]
_OUTCOMES: dict[str, Kind] = {
    "crossed": "exact",
    "not reached": "at least",
    "already met": "at most",
}
_RATIOS: dict[str, Kind] = {
    "exact": "exact",
    "at least": "at least",
    "at most": "at most",
    "unknown": "unknown",
}
_MEETING = {
    "exact": "circle-open",
    "at least": "triangle-right-open",
    "at most": "triangle-left-open",
}
_SCORES = {"error": "error, E(ŷ − g)² / Var g"}
_BARS = "Bars: 95 % intervals over seeds (paired for ratios; none with fewer than 8 seeds)."
_EQUAL = {"equal": 1.0}


def _settings_of(table: xr.Dataset) -> tuple[str, list[Any]]:
    """The dimension beside the student, and its values; a table of one setting has none."""
    dim = str(table.attrs.get("dim", "features"))
    return (dim, table[dim].values.tolist()) if dim in table.dims else ("", [None])


def _setting_label(dim: str, setting: Any) -> str:
    """A setting in words.

    >>> _setting_label("features", 16), _setting_label("depth", 2), _setting_label("teacher", "mlp")
    ('p = 16', 'depth 2', 'mlp')
    """
    if setting is None:
        return ""
    return {"features": f"p = {setting}", "depth": f"depth {setting}"}.get(dim, str(setting))


def _place(table: xr.Dataset, student: str, setting: Any) -> xr.Dataset:
    """The table of one student in one setting."""
    dim, _ = _settings_of(table)
    return table.sel({"student": student} | ({dim: setting} if dim else {}))


def _places(
    table: xr.Dataset, students: Sequence[str] | None = None
) -> list[tuple[str, Any, str, xr.Dataset]]:
    """Every student in every setting: student, setting, label and table."""
    dim, settings = _settings_of(table)
    names = [str(s) for s in table["student"].values] if students is None else students
    found = []
    for student in names:
        for setting in settings:
            words = _setting_label(dim, setting) if len(settings) > 1 else ""
            label = f"{student}, {words}" if words else student
            found.append((student, setting, label, _place(table, student, setting)))
    return found


def _is_numeric(table: xr.Dataset) -> bool:
    """Whether the settings are two numbers or more to draw something against; a few layers are
    shown in rows.
    """
    dim, settings = _settings_of(table)
    return dim not in ("", "depth") and len(settings) > 1 and table[dim].dtype.kind in "iuf"


def _numbers(one: xr.Dataset, name: str) -> tuple[float, float, float]:
    """An estimate and the ends of its interval."""
    return float(one[name]), float(one[f"{name}_low"]), float(one[f"{name}_high"])


def _needed_mark(one: xr.Dataset, label: str) -> Mark | None:
    """Needed samples of one student in one setting; off the grid they are a bound at its end."""
    outcome = str(one["needed_kind"].values)
    if outcome not in _OUTCOMES:
        return None
    value, low, high = _numbers(one, "needed")
    if outcome == "not reached":
        ran = one[one.attrs["score"]].notnull()
        ran = ran.any("seed") if "seed" in ran.dims else ran
        value = float(one["size"].values[ran.values].max())
    return Mark(label, value, low, high, _OUTCOMES[outcome], str(one["needed_said"].values))


def _ratio_mark(one: xr.Dataset, label: str) -> Mark | None:
    """The ratio of one student in one setting; none for the student that others are compared with."""
    kind = str(one["ratio_kind"].values)
    if kind not in _RATIOS:
        return None
    value, low, high = _numbers(one, "ratio")
    said = str(one["said"].values) if "said" in one else f"ratio {value:.3g}"
    return Mark(label, 1.0 if np.isnan(value) else value, low, high, _RATIOS[kind], said)


def learning_curves(
    table: xr.Dataset,
    *,
    id: str,
    title: str,
    students: Sequence[str] | None = None,
    y_label: str = "",
    caption: str = "",
) -> Figure:
    """The score of each student against n, with the level and where it is met; one drawing for each
    setting.
    """
    names = [str(s) for s in table["student"].values] if students is None else list(students)
    score = str(table.attrs["score"])
    label = y_label or _SCORES.get(score, score)
    dim, settings = _settings_of(table)
    drawings = {}
    for setting in settings:
        drawing = _curves_of(table, names, setting, id, title, label)
        if drawing is not None:
            drawings[_setting_label(dim, setting)] = drawing
    if not drawings:
        raise AttnlabError(
            f"figure {id!r} has no curve to draw; expected scores of at least one student"
        )
    return menu_figure(
        drawings,
        id=id,
        title=title,
        choice_label=dim.capitalize() if dim in ("features", "teacher", "depth") else "Show",
        caption=caption or _curves_caption(table, names),
        alt=f"{title}. {label} of {', '.join(names)} against the number of training samples.",
    )


def _curves_caption(table: xr.Dataset, students: Sequence[str]) -> str:
    ends = set(np.ravel(table["needed_kind"].sel(student=list(students)).values).tolist())
    caption = (
        f"Line: {table.attrs['statistic']} over seeds; band: 10–90 % of seeds. Open circle: where "
        "the line first meets the level, with its 95 % interval."
    )
    if ends & {"not reached", "already met"}:
        caption += (
            " A triangle: the level was not reached (pointing right) or already met (left) at the "
            "end of the grid."
        )
    return caption


def _curves_of(
    table: xr.Dataset, students: Sequence[str], setting: Any, id: str, title: str, label: str
) -> Figure | None:
    """The curves of one setting; None if no student has any."""
    level, score = float(table.attrs["level"]), str(table.attrs["score"])
    traces: list[dict[str, Any]] = []
    columns: dict[str, list[Any]] = {"n": short(table["size"].values)}
    every = []
    for k, student in enumerate(students):
        one = _place(table, student, setting)
        scores = one[score].transpose("seed", "size").dropna("seed", how="all")
        if scores.sizes["seed"] == 0:
            continue
        for seed, row in zip(scores["seed"].values.tolist(), scores.values, strict=True):
            columns[f"{student}: seed {seed}"] = short(row)
        scores = scores.dropna("size", how="all")
        every.append(scores.values.astype(float))
        traces += _student_traces(student, scores, str(table.attrs["statistic"]), k)
        mark = _needed_mark(one, student)
        if mark is not None:
            ends = (float(scores["size"].min()), float(scores["size"].max()))
            traces.append(_meeting(mark, level, ends, color_of(k)))
    if not every:
        return None
    log = bool(table.attrs["falling"]) and all((values > 0).any() for values in every)
    style = layout(
        440,
        xaxis=axis("training samples n", True, [table["size"].values]),
        yaxis=axis(label, log, [*every, np.array([level])]),
        showlegend=True,
    )
    traces.append(_level_line(level, [n for trace in traces for n in trace["x"]]))
    absent = sum(int(np.isnan(values).sum()) for values in every)
    lost = f"{absent} fits without a score are not drawn." if absent else ""
    note = one_note(lost, hidden_note(every, log))
    return Figure(id, title, "", title, {"data": traces, "layout": style}, columns, note)


def _level_line(level: float, n: list[float]) -> dict[str, Any]:
    """The level as a line of its own in the legend: a label on it would hide where it is met."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"level {number(level)}",
        "line": {"color": MUTED, "width": 1.4, "dash": "dot"},
        "hoverinfo": "skip",
        "x": [min(n), max(n)],
        "y": [level, level],
    }


def _middle(values: np.ndarray, statistic: str) -> np.ndarray:
    """Mean or median over seeds of the runs that there are."""
    if statistic != "mean":
        return quantiles(values, (0.5,))[0]
    there = np.isfinite(values)
    counts = np.where(there.any(axis=0), there.sum(axis=0), np.nan)
    return np.where(there, values, 0.0).sum(axis=0) / counts


def _student_traces(
    student: str, scores: xr.DataArray, statistic: str, k: int
) -> list[dict[str, Any]]:
    """Band below, line above."""
    n, values, color = scores["size"].values, scores.values.astype(float), color_of(k)
    common = {"type": "scatter", "legendgroup": plain(student)}
    hover = f"n = %{{x}}: %{{y:.3~g}}, {plain(statistic)} of {len(values)}"
    line = common | {
        "name": plain(student),
        "x": short(n),
        "y": short(_middle(values, statistic)),
        "mode": "lines+markers",
        "line": {"color": color, "width": 2.4, "dash": dash_of(k)},
        "marker": {"color": color, "size": 6, "symbol": symbol_of(k)},
        "hovertemplate": f"{hover}<extra>{plain(student)}</extra>",
    }
    if len(values) == 1:
        return [line]
    low, high = quantiles(values, (0.1, 0.9))
    return [common | {"mode": "lines"} | band_outline(n, low, high, color), line]


def _meeting(mark: Mark, level: float, ends: tuple[float, float], color: str) -> dict[str, Any]:
    """Where a student meets the level, on the level's line; an interval that is open goes to the
    grid's end.
    """
    up, down = 0.0, 0.0
    if mark.kind == "exact" and mark.barred:
        up, down = min(mark.high, ends[1]) - mark.value, mark.value - max(mark.low, ends[0])
    return {
        "type": "scatter",
        "mode": "markers",
        "x": short([mark.value]),
        "y": [level],
        "marker": {
            "symbol": _MEETING[mark.kind],
            "size": 14,
            "color": color,
            "line": {"width": 2.4, "color": color},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": short([up]),
            "arrayminus": short([down]),
            "color": color,
            "thickness": 2,
        },
        "showlegend": False,
        "legendgroup": plain(mark.label),
        "hovertemplate": f"{mark.hover}<extra></extra>",
    }


_Marks = dict[str, list[tuple[Any, Mark]]]


def _marks_of(
    table: xr.Dataset,
    students: Sequence[str] | None,
    mark_of: Callable[[xr.Dataset, str], Mark | None],
) -> _Marks:
    """The marks of each student with their settings; students without any are left out."""
    found: _Marks = {}
    for student, setting, label, one in _places(table, students):
        mark = mark_of(one, label)
        if mark is not None:
            found.setdefault(student, []).append((setting, mark))
    return found


def _all_of(marks: _Marks) -> list[Mark]:
    return [mark for own in marks.values() for _, mark in own]


def needed_figure(
    table: xr.Dataset, *, id: str, title: str, students: Sequence[str] | None = None
) -> Figure:
    """Needed samples: against the settings with the fitted power law where these are numbers, else
    in rows.
    """
    level = number(float(table.attrs["level"]))
    label = f"samples needed for {table.attrs['score']} {level}"
    marks = _marks_of(table, students, _needed_mark)
    caption = f"{_BARS} {bounds_note(_all_of(marks))}"
    if not _is_numeric(table):
        return rows_figure(_all_of(marks), id=id, title=title, caption=caption, x_label=label)
    lines = [
        trace
        for k, (student, own) in enumerate(marks.items())
        for trace in _power_law(table, student, own, k)
    ]
    fitted = "Lines: the power of p that fits best, with its 95 % interval in the legend."
    return _over_settings(
        table,
        marks,
        names={student: _growth(table, student) for student in marks},
        below=lines,
        id=id,
        title=title,
        caption=f"{caption} {fitted if lines else ''} Points at one p stand slightly apart.",
        y_label=label,
    )


def _over_settings(
    table: xr.Dataset,
    marks: _Marks,
    *,
    names: Mapping[str, str],
    below: Sequence[dict[str, Any]],
    id: str,
    title: str,
    caption: str,
    y_label: str,
    lines: Mapping[str, float] | None = None,
    edges: tuple[float, float] | None = None,
    first: int = 0,
) -> Figure:
    """Marks over settings that are numbers; those of several students stand slightly apart.

    ``below`` are traces that are drawn first, ``first`` the colour of the first student.
    """
    dim, settings = _settings_of(table)
    every = _all_of(marks)
    edges = edges or edges_of(every, list((lines or {}).values()))
    traces = list(below)
    for k, (student, own) in enumerate(marks.items()):
        apart = 1.02 ** (k - (len(marks) - 1) / 2)
        x = [float(setting) * apart for setting, _ in own]
        traces.append(
            mark_trace([mark for _, mark in own], x, edges, first + k, name=names[student])
        )
    x_axis = axis("features p" if dim == "features" else dim, True) | {
        "tickmode": "array",
        "tickvals": settings,
        "ticktext": [number(setting) for setting in settings],
        "range": [np.log10(min(settings) / 1.2), np.log10(max(settings) * 1.2)],
    }
    whose = {
        "student": [student for student, own in marks.items() for _ in own],
        dim: [setting for own in marks.values() for setting, _ in own],
    }
    return Figure(
        id,
        title,
        caption,
        f"{title}. {'; '.join(f'{mark.label}: {mark.words}' for mark in every)}.",
        {"data": traces, "layout": _mark_layout(x_axis, y_label, edges, lines or {})},
        marks_table(every, whose),
    )


def _mark_layout(
    x_axis: dict[str, Any], y_label: str, edges: tuple[float, float], lines: Mapping[str, float]
) -> dict[str, Any]:
    """A logarithmic y axis from edge to edge, with lines to compare with."""
    ticks = log_ticks([np.array(edges)], 3.5)
    y_axis = axis(y_label, True) | ticks | {"range": [np.log10(edge) for edge in edges]}
    shapes = reference_lines(lines)
    return layout(440, xaxis=x_axis, yaxis=y_axis, showlegend=True, shapes=shapes)


def _growth(table: xr.Dataset, student: str) -> str:
    """A student's name with its exponent, as far as that is known."""
    if "exponent" not in table:
        return student
    one = table.sel(student=student)
    kind = str(one["exponent_kind"].values)
    value, low, high = _numbers(one, "exponent")
    if kind in ("unknown", "not run") or np.isnan(value):
        return f"{student}: exponent unknown"
    sign = {"at least": "≥ ", "at most": "≤ "}.get(kind, "")
    bounds = f" [{_two(low)}, {_two(high)}]" if np.isfinite(low) or np.isfinite(high) else ""
    return f"{student}: exponent {sign}{_two(value)}{bounds}"


def _two(value: float) -> str:
    """A number with two decimals."""
    return f"{value:.2f}".replace("-", "−") if np.isfinite(value) else number(value)


def _power_law(
    table: xr.Dataset, student: str, own: list[tuple[Any, Mark]], k: int
) -> list[dict[str, Any]]:
    """The fitted line through the middle of the points; none where a point is only a bound."""
    if "exponent" not in table or len(own) < 2 or any(mark.kind != "exact" for _, mark in own):
        return []
    slope = float(table["exponent"].sel(student=student))
    x = np.log([float(setting) for setting, _ in own])
    y = np.log([mark.value for _, mark in own])
    ends = np.array([x.min(), x.max()])
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "line": {"color": color_of(k), "width": 1.6, "dash": dash_of(k)},
            "hoverinfo": "skip",
            "showlegend": False,
            "x": short(np.exp(ends)),
            "y": short(np.exp(y.mean() + slope * (ends - x.mean()))),
        }
    ]


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

    Next to it, ratios that were predicted: ``predictors`` are those of the table's ``predicted``
    that are drawn, with their words; ``note`` ends the caption if there are any.
    """
    against = str(table.attrs["against"])
    label = f"samples needed by {against} / by the student"
    marks = _marks_of(table, students, _ratio_mark)
    if not marks:
        raise AttnlabError(
            f"figure {id!r} has no ratio to draw; expected a student beside {against!r}"
        )
    predicted = {
        student: _predicted(table, student, own, predictors or {}) for student, own in marks.items()
    }
    words = note if any(predicted.values()) else ""
    every = _all_of(marks)
    caption = f"Above 1: fewer samples than {against}. {_BARS} {bounds_note(every)} {words}"
    texts: dict[str, Any] = {"id": id, "title": title, "caption": caption.rstrip()}
    if not _is_numeric(table):
        beside = _beside_rows(marks, predicted)
        return rows_figure(every, x_label=label, lines=_EQUAL, beside=beside, **texts)
    also = [v for one in predicted.values() for values in one.values() for v in values if v]
    edges = edges_of(every, [1.0, *also])  # the same for all students, so that they compare
    drawings = {
        student: _over_settings(
            table,
            {student: own},
            names={student: f"{student}, measured"},
            below=_predictions(table, predicted[student]),
            lines=_EQUAL,
            y_label=label,
            edges=edges,
            first=k,
            **texts,
        )
        for k, (student, own) in enumerate(marks.items())
    }
    return menu_figure(drawings, choice_label="Student", **texts)


_Predicted = dict[str, list[float | None]]


def _predicted(
    table: xr.Dataset, student: str, own: list[tuple[Any, Mark]], predictors: Mapping[str, str]
) -> _Predicted:
    """Of each predictor, in words, the mean over seeds in each setting of a student."""
    found: _Predicted = {}
    if "predicted" not in table:
        return found
    for name, words in predictors.items():
        means: list[float | None] = []
        for setting, _ in own:
            values = _place(table, student, setting)["predicted"].sel(predictor=name).values
            means.append(float(np.nanmean(values)) if np.isfinite(values).any() else None)
        if any(mean is not None for mean in means):
            found[words] = means
    return found


def _beside_rows(
    marks: _Marks, predicted: Mapping[str, _Predicted]
) -> list[tuple[str, int, float]]:
    """What was predicted of each row: name, row, value."""
    beside, row = [], 0
    for student, own in marks.items():
        for k in range(len(own)):
            for name, values in predicted[student].items():
                value = values[k]
                if value is not None:
                    beside.append((name, row, value))
            row += 1
    return beside


def _predictions(table: xr.Dataset, predicted: _Predicted) -> list[dict[str, Any]]:
    """Each predictor over the settings, in its own symbol."""
    _, settings = _settings_of(table)
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "line": {"color": MUTED, "width": 1, "dash": "dot"},
            "marker": {
                "symbol": f"{symbol_of(k + 1)}-open",
                "size": 9,
                "color": MUTED,
                "line": {"width": 1.6},
            },
            "hovertemplate": f"%{{y:.3~g}}<extra>{plain(words)}</extra>",
            "x": short(settings),
            "y": values,
            "name": plain(words),
        }
        for k, (words, values) in enumerate(predicted.items())
    ]


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
    found = [_ratio_mark(one, label) for label, one in ratios.items()]
    marks = [mark for mark in found if mark is not None]
    caption = f"{caption} {bounds_note(marks)}"
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
    marks: list[Mark] = []
    across: list[float] = []
    by_group: dict[Any, list[int]] = {}
    for k, (x, group) in enumerate(zip(predicted, groups, strict=True)):
        mark = _ratio_mark(table.isel(setting=k), str(table["setting"].values[k]))
        if mark is not None:
            by_group.setdefault(group, []).append(len(marks))
            bounds = interval((mark.low, mark.high))
            marks.append(replace(mark, said=f"{mark.said} {bounds}\npredicted {x:.3g}"))
            across.append(float(x))
    edges = edges_of(marks)
    traces = []
    for k, group in enumerate(sorted(by_group)):
        own = by_group[group]
        places = [across[place] for place in own]
        name = f"{group} {group_label}".strip()
        traces.append(mark_trace([marks[place] for place in own], places, edges, k, name=name))
    x_axis = axis(x_label, True, [np.array(across)])
    style = _mark_layout(x_axis, "measured ratio of needed samples", edges, {})
    whose = {setting_label: [mark.label for mark in marks], "predicted": across}
    words = f"{caption} {bounds_note(marks)} {note}".strip()
    drawn = {"data": traces, "layout": style}
    return Figure(id, title, words, title, drawn, marks_table(marks, whose))


def answers_table(table: xr.Dataset, *, id: str, title: str) -> Figure:
    """Needed samples, share of seeds that reach the level by themselves, ratio and verdict, row by
    row.
    """
    rows: list[str] = []
    columns: dict[str, list[str]] = {
        "needed samples, 95 % interval": [],
        "seeds that reach it": [],
        "ratio, 95 % interval": [],
        "verdict": [],
    }
    for _, _, label, one in _places(table):
        needed = _needed_mark(one, label)
        if needed is None:
            continue
        ratio = _ratio_mark(one, label)
        rows.append(label)
        cells = (
            _needed_words(needed),
            f"{float(one['reached']):.0%}".replace("%", " %"),
            f"{ratio.words} {ratio.bounds}".rstrip() if ratio else "–",
            str(one["verdict"].values) or "–",
        )
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
    return plain_table(
        rows,
        columns,
        id=id,
        title=title,
        caption=f"Ratio: samples needed by {table.attrs['against']} over those needed here; above "
        "1 is a saving. “No advantage”: the interval excludes a saving of 1.25 times or more.",
    )


def _needed_words(mark: Mark) -> str:
    if mark.kind == "exact":
        return f"{number(mark.value)} {mark.bounds}".rstrip()
    outcome = "not reached up to" if mark.kind == "at least" else "already met with"
    return f"{outcome} {number(mark.value)}"
