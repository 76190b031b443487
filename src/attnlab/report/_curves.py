"""Learning curves: a score against the number of training samples, and where each student meets the
level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._chosen import chosen
from attnlab.report._marks import Mark, label_of, needed_mark, place, settings_of
from attnlab.report._page import Figure
from attnlab.report._palette import DASHES, MUTED, SERIES, SYMBOLS, faded
from attnlab.report._prepare import axis, hidden_note, layout, quantiles, short
from attnlab.report._text import number, plain

if TYPE_CHECKING:
    import xarray as xr

_EDGES = (0.1, 0.9)
_OPEN = {"exact": "circle-open", "at least": "triangle-right-open", "at most": "triangle-left-open"}
_LABELS = {"error": "error, E(ŷ − g)² / Var g"}


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

    ``table``: what ``attnlab.complexity.tabulate`` returns; its attributes say which variable is the
    score, whether it falls or rises, and the level.
    """
    names = [str(s) for s in table["student"].values] if students is None else list(students)
    score = str(table.attrs["score"])
    label = y_label or _LABELS.get(score, score)
    dim, settings = settings_of(table)
    drawn = {}
    for setting in settings:
        figure = _drawing(table, names, setting, id, title, label)
        if figure is not None:
            drawn[label_of(dim, setting)] = figure
    if not drawn:
        raise AttnlabError(
            f"figure {id!r} has no curve to draw; expected scores of at least one student"
        )
    word = {"features": "Features", "teacher": "Teacher", "depth": "Depth"}.get(dim, "Show")
    return chosen(
        drawn,
        id=id,
        title=title,
        choice_label=word,
        caption=caption or _caption(table, names),
        alt=f"{title}. {label} of {', '.join(names)} against the number of training samples.",
    )


def _caption(table: xr.Dataset, students: Sequence[str]) -> str:
    ends = np.ravel(table["needed_kind"].sel(student=list(students)).values)
    triangle = " A triangle: the level was not reached (pointing right) or already met (left) at the end of the grid."
    open_ends = {"not reached", "already met"} & set(map(str, ends))
    return (
        f"Line: {table.attrs['statistic']} over seeds; band: 10–90 % of seeds. Open circle: where "
        "the line first meets "
        f"the level, with its 95 % interval.{triangle if open_ends else ''}"
    )


def _drawing(
    table: xr.Dataset, students: Sequence[str], setting: Any, id: str, title: str, label: str
) -> Figure | None:
    level, falling = float(table.attrs["level"]), bool(table.attrs["falling"])
    traces: list[dict[str, Any]] = []
    columns: dict[str, list[Any]] = {"n": short(table["size"].values)}
    every = []
    for k, student in enumerate(students):
        one = place(table, student, setting)
        scores = one[table.attrs["score"]].transpose("seed", "size").dropna("seed", how="all")
        if scores.sizes["seed"] == 0:
            continue
        columns |= _columns(student, scores)
        scores = scores.dropna("size", how="all")
        every.append(scores.values.astype(float))
        traces += _student(student, scores, str(table.attrs["statistic"]), k)
        mark = needed_mark(one, student, table.attrs["score"])
        ends = (float(scores["size"].min()), float(scores["size"].max()))
        traces += [_meeting(mark, level, ends, SERIES[k % 7])] if mark else []
    if not every:
        return None
    log = falling and all((values > 0).any() for values in every)
    style = layout(
        440,
        xaxis=axis("training samples n", True, [table["size"].values]),
        yaxis=axis(label, log, [*every, _row(level)]),
    )
    style["showlegend"] = True
    traces.append(_level(level, [k for t in traces for k in t["x"]]))
    missing = sum(int(np.isnan(values).sum()) for values in every)
    notes = [
        f"{missing} fits without a score are not drawn." if missing else "",
        hidden_note(every, log),
    ]
    return Figure(
        id,
        title,
        "",
        title,
        {"data": traces, "layout": style},
        columns,
        " ".join(filter(None, notes)),
    )


def _level(level: float, n: list[float]) -> dict[str, Any]:
    """The level as a line of its own in the legend: a label on it would hide where it is met."""
    data = {
        "x": [min(n), max(n)],
        "y": [level, level],
        "name": f"level {number(level)}",
        "mode": "lines",
    }
    return {
        "type": "scatter",
        "line": {"color": MUTED, "width": 1.4, "dash": "dot"},
        "hoverinfo": "skip",
    } | data


def _row(value: float) -> np.ndarray:
    return np.array([value])


def _middle(values: np.ndarray, statistic: str) -> np.ndarray:
    if statistic == "mean":
        there = np.isfinite(values)
        return np.where(there, values, 0.0).sum(axis=0) / np.where(
            there.any(axis=0), there.sum(axis=0), np.nan
        )
    return quantiles(values, (0.5,))[0]


def _columns(student: str, scores: xr.DataArray) -> dict[str, list[Any]]:
    rows = zip(scores["seed"].values.tolist(), scores.values, strict=True)
    return {f"{student}: seed {seed}": short(row) for seed, row in rows}


def _student(student: str, scores: xr.DataArray, statistic: str, k: int) -> list[dict[str, Any]]:
    """Band below, line above."""
    n, values, color = scores["size"].values, scores.values.astype(float), SERIES[k % 7]
    common = {"type": "scatter", "legendgroup": plain(student)}
    traces = []
    if len(values) > 1:
        low, high = quantiles(values, _EDGES)
        outline = {
            "x": short([*n, *n[::-1]]),
            "y": short([*high, *low[::-1]]),
            "mode": "lines",
            "line": {"width": 0},
        }
        fill = {
            "fill": "toself",
            "fillcolor": faded(color, 0.16),
            "hoverinfo": "skip",
            "showlegend": False,
        }
        traces.append(common | outline | fill)
    middle = _middle(values, statistic)
    hover = f"n = %{{x}}: %{{y:.3~g}}, {plain(statistic)} of {len(values)}<extra>{plain(student)}</extra>"
    line = {"color": color, "width": 2.4, "dash": DASHES[k % 7]}
    dots = {"color": color, "size": 6, "symbol": SYMBOLS[k % 7]}
    data = {"name": plain(student), "x": short(n), "y": short(middle), "mode": "lines+markers"}
    return [*traces, common | data | {"line": line, "marker": dots, "hovertemplate": hover}]


def _meeting(mark: Mark, level: float, ends: tuple[float, float], color: str) -> dict[str, Any]:
    """Where a student meets the level, on the level's line; an interval that is open goes to the
    grid's end.
    """
    marker = {
        "symbol": _OPEN[mark.kind],
        "size": 14,
        "color": color,
        "line": {"width": 2.4, "color": color},
    }
    bar = {
        "type": "data",
        "symmetric": False,
        "array": [0.0],
        "arrayminus": [0.0],
        "color": color,
        "thickness": 2,
    }
    if mark.kind == "exact" and mark.barred:
        low, high = max(mark.low, ends[0]), min(mark.high, ends[1])
        bar |= {"array": short([high - mark.value]), "arrayminus": short([mark.value - low])}
    data = {
        "x": short([mark.value]),
        "y": [level],
        "mode": "markers",
        "marker": marker,
        "error_x": bar,
    }
    shown = {
        "showlegend": False,
        "legendgroup": plain(mark.label),
        "hovertemplate": f"{mark.text}<extra></extra>",
    }
    return {"type": "scatter"} | data | shown
