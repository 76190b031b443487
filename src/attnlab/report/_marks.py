"""Estimates with intervals that may be only bounds: needed samples and ratios, against a number or
in rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import PAPER, SERIES, SYMBOLS
from attnlab.report._prepare import axis, layout, log_ticks, reference_lines, short
from attnlab.report._text import interval, number, plain

if TYPE_CHECKING:
    import xarray as xr

Kind = Literal["exact", "at least", "at most", "unknown"]
_SIGNS = {"exact": "", "at least": "≥ ", "at most": "≤ "}
_UP = {"at least": "triangle-up-open", "at most": "triangle-down-open", "unknown": "circle-x-open"}
_ASIDE = {
    "at least": "triangle-right-open",
    "at most": "triangle-left-open",
    "unknown": "circle-x-open",
}
_ROOM = 1.35


@dataclass(frozen=True)
class Mark:
    """An estimate to draw: ``kind`` says whether ``value`` is it or only a bound; ``text`` is safe
    for a hover.
    """

    label: str
    value: float
    low: float
    high: float
    kind: Kind
    text: str

    @property
    def barred(self) -> bool:
        """Whether there is an interval to draw; seven seeds or fewer give none."""
        open_ends = self.low <= 0 and np.isinf(self.high)
        return np.isfinite(self.value) and not (open_ends and self.kind in ("exact", "unknown"))


def settings_of(table: xr.Dataset) -> tuple[str, list[Any]]:
    """The dimension beside the student, and its values; a table of one setting has none."""
    dim = str(table.attrs.get("dim", "features"))
    return (dim, table[dim].values.tolist()) if dim in table.dims else ("", [None])


def label_of(dim: str, setting: Any) -> str:
    """A setting in words.

    >>> label_of("features", 16), label_of("depth", 2), label_of("teacher", "mlp")
    ('p = 16', 'depth 2', 'mlp')
    """
    if setting is None:
        return ""
    return {"features": f"p = {setting}", "depth": f"depth {setting}"}.get(dim, str(setting))


def place(table: xr.Dataset, student: str, setting: Any) -> xr.Dataset:
    """The table of one student in one setting."""
    dim, _ = settings_of(table)
    return table.sel({"student": student} | ({dim: setting} if dim else {}))


def is_numeric(table: xr.Dataset) -> bool:
    """Whether the settings are two numbers or more to draw something against; a few layers are
    shown in rows.
    """
    dim, settings = settings_of(table)
    return dim not in ("", "depth") and len(settings) > 1 and table[dim].dtype.kind in "iuf"


def needed_mark(one: xr.Dataset, label: str, score: str) -> Mark | None:
    """Needed samples of one student in one setting; off the grid they are a bound at its end."""
    outcome = str(one["needed_kind"].values)
    kinds: dict[str, Kind] = {
        "crossed": "exact",
        "not reached": "at least",
        "already met": "at most",
    }
    if outcome not in kinds:
        return None
    value, low, high = (float(one[f"needed{end}"]) for end in ("", "_low", "_high"))
    if outcome == "not reached":
        ran = (
            one[score].notnull().any("seed") if "seed" in one[score].dims else one[score].notnull()
        )
        value = float(one["size"].values[ran.values].max())
    return Mark(
        label,
        value,
        low,
        high,
        kinds[outcome],
        f"{plain(label)}<br>{plain(one['needed_said'].values)}",
    )


def ratio_mark(one: xr.Dataset, label: str) -> Mark | None:
    """The ratio of one student in one setting; none for the student that others are compared with."""
    kind = str(one["ratio_kind"].values)
    kinds: dict[str, Kind] = {
        "exact": "exact",
        "at least": "at least",
        "at most": "at most",
        "unknown": "unknown",
    }
    if kind not in kinds:
        return None
    value, low, high = (float(one[f"ratio{end}"]) for end in ("", "_low", "_high"))
    said = str(one["said"].values) if "said" in one else f"ratio {value:.3g}"
    value = 1.0 if np.isnan(value) else value
    return Mark(label, value, low, high, kinds[kind], f"{plain(label)}<br>{plain(said)}")


def shown(mark: Mark) -> str:
    """The estimate of a mark in a few characters."""
    return "unknown" if mark.kind == "unknown" else f"{_SIGNS[mark.kind]}{number(mark.value)}"


def off_grid(marks: Sequence[Mark]) -> str:
    """What the reader must know of marks that are only bounds; nothing if there are none."""
    kinds = {mark.kind for mark in marks}
    bounds = "A triangle is a bound: the level was not reached, or already met, at the end of a grid of sizes."
    unknown = "A crossed circle: unknown, as both students are off their grids."
    return " ".join(
        [bounds] * bool(kinds & {"at least", "at most"}) + [unknown] * ("unknown" in kinds)
    )


def edges_of(marks: Sequence[Mark], also: Sequence[float] = ()) -> tuple[float, float]:
    """A logarithmic axis that holds all that is finite, with room for open ends."""
    every = np.array([x for m in marks for x in (m.value, m.low, m.high)] + list(also), dtype=float)
    every = every[np.isfinite(every) & (every > 0)]
    return (float(every.min() / _ROOM), float(every.max() * _ROOM)) if len(every) else (0.5, 2.0)


def _bar(marks: Sequence[Mark], edges: tuple[float, float], color: str) -> dict[str, Any]:
    """Error bars; an end that is not known reaches the edge of the drawing."""
    up = [min(m.high, edges[1]) - m.value if m.barred else 0.0 for m in marks]
    down = [m.value - max(m.low, edges[0]) if m.barred else 0.0 for m in marks]
    numbers = {"array": short(np.maximum(up, 0)), "arrayminus": short(np.maximum(down, 0))}
    return {
        "type": "data",
        "symmetric": False,
        "color": color,
        "thickness": 1.8,
        "width": 5,
    } | numbers


def mark_trace(
    marks: Sequence[Mark],
    across: Sequence[float],
    edges: tuple[float, float],
    k: int,
    *,
    name: str,
    rows: bool = False,
) -> dict[str, Any]:
    """One trace of marks: upright over ``across``, or lying in rows of that height."""
    color, symbols = SERIES[k % 7], _ASIDE if rows else _UP
    marker = {
        "color": color,
        "size": 11,
        "symbol": [symbols.get(m.kind, SYMBOLS[k % 7]) for m in marks],
        "line": {"color": color, "width": 2},
    }
    along, other = short([m.value for m in marks]), short(across)
    data = {"x": along, "y": other} if rows else {"x": other, "y": along}
    bar = {"error_x" if rows else "error_y": _bar(marks, edges, color)}
    text = {"text": [m.text for m in marks], "hovertemplate": "%{text}<extra></extra>"}
    return (
        {"type": "scatter", "mode": "markers", "name": plain(name), "marker": marker}
        | data
        | bar
        | text
    )


def marks_table(
    groups: Sequence[tuple[Sequence[Any], Mark]], heads: Sequence[str]
) -> dict[str, list[Any]]:
    """Marks as columns, after the columns that say whose they are."""
    table: dict[str, list[Any]] = {
        head: [words[k] for words, _ in groups] for k, head in enumerate(heads)
    }
    marks = [mark for _, mark in groups]
    known = [m.value if m.kind != "unknown" else np.nan for m in marks]
    table |= {"value": short(known), "is": [m.kind for m in marks]}
    return table | {"low": short([m.low for m in marks]), "high": short([m.high for m in marks])}


def rows_figure(
    marks: Sequence[Mark],
    *,
    id: str,
    title: str,
    caption: str,
    x_label: str,
    lines: Mapping[str, float] | None = None,
    beside: Sequence[tuple[str, int, float]] = (),
) -> Figure:
    """One row for each mark on a logarithmic axis, its label and number above it.

    ``beside``: (name, row, value), small open symbols to compare with.
    """
    if not marks:
        raise AttnlabError(f"figure {id!r} has no rows to draw; expected at least one estimate")
    edges = edges_of(marks, [*(lines or {}).values(), *(value for _, _, value in beside)])
    traces = [
        mark_trace(
            marks, [k + 0.16 for k in range(len(marks))], edges, 0, name="measured", rows=True
        )
    ]
    traces += [
        _beside(name, beside, 1 + j)
        for j, name in enumerate(dict.fromkeys(name for name, _, _ in beside))
    ]
    ends = [np.log10(edges[0]), np.log10(edges[1])]
    ticks = log_ticks([np.array(edges)], 2.2)
    style = layout(130 + 52 * len(marks), xaxis=axis(x_label, True) | ticks | {"range": ends})
    style["yaxis"] = {"range": [len(marks) - 0.4, -0.9], "visible": False, "fixedrange": True}
    style["margin"]["l"] = 18
    style["shapes"] = reference_lines(lines or {}, vertical=True)
    style["annotations"] = [_row_label(k, mark) for k, mark in enumerate(marks)]
    style["showlegend"] = len(traces) > 1
    table = marks_table([([mark.label], mark) for mark in marks], [""])
    alt = f"{title}. {'; '.join(f'{m.label}: {shown(m)}' for m in marks)}."
    return Figure(id, title, caption, alt, {"data": traces, "layout": style}, table)


def _row_label(k: int, mark: Mark) -> dict[str, Any]:
    known = mark.barred and (mark.kind == "exact" or mark.value not in (mark.low, mark.high))
    bounds = f" {interval((mark.low, mark.high))}" if known else ""
    text = f"<b>{plain(mark.label)}</b>   {shown(mark)}{bounds}"
    where = {
        "xref": "x domain",
        "x": 0,
        "xanchor": "left",
        "y": k - 0.2,
        "yanchor": "middle",
        "showarrow": False,
    }
    return where | {"text": text, "font": {"size": 13}, "bgcolor": PAPER}


def _beside(name: str, beside: Sequence[tuple[str, int, float]], k: int) -> dict[str, Any]:
    own = [(row, value) for one, row, value in beside if one == name]
    marker = {
        "symbol": f"{SYMBOLS[k % 7]}-open",
        "size": 9,
        "color": SERIES[k % 7],
        "line": {"width": 1.6},
    }
    data = {
        "x": short([value for _, value in own]),
        "y": [row + 0.16 for row, _ in own],
        "name": plain(name),
    }
    return {
        "type": "scatter",
        "mode": "markers",
        "marker": marker,
        "hovertemplate": "%{x:.3~g}<extra></extra>",
    } | data
