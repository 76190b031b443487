"""The look that all figures share: colours, axes, layout; how many points are drawn; menus.

The colours are Okabe and Ito's, which people with any colour vision tell apart. Figures are
declared in the light ones; the page swaps each for its twin when it is shown dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._words import number, plain

INK = "#1c2230"
MUTED = "#5a6373"
GRID = "#e6e8ec"
PAPER = "#ffffff"
PANEL = "#f5f6f8"

BLUE = "#0072b2"
VERMILLION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#cc79a7"
ORANGE = "#e69f00"
SKY = "#56b4e9"

SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "x")

DARK = {
    INK: "#e7eaf0",
    MUTED: "#a5afbf",
    GRID: "#2c333f",
    PAPER: "#171b22",
    PANEL: "#1f252f",
    BLUE: "#5cb0ea",
    VERMILLION: "#ff8a47",
    GREEN: "#34c79a",
    PURPLE: "#e5a3c8",
    ORANGE: "#f2b638",
    SKY: "#a6dbf8",
}

MAX_POINTS = 400
MAX_RUNS = 48
MAX_SERIES = len(SERIES)  # series that colours tell apart
_BUDGET = 8_000
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif"


def color_of(k: int) -> str:
    """The colour of the k-th series."""
    return SERIES[k % len(SERIES)]


def dash_of(k: int) -> str:
    """The dash of the k-th series."""
    return DASHES[k % len(DASHES)]


def symbol_of(k: int) -> str:
    """The symbol of the k-th series."""
    return SYMBOLS[k % len(SYMBOLS)]


def faded(color: str, share: float) -> str:
    """The colour with an opacity, as ``#rrggbbaa``.

    >>> faded("#0072b2", 0.5)
    '#0072b280'
    """
    return f"{color}{round(255 * share):02x}"


def seeds_first(values: Any, what: str) -> tuple[np.ndarray, list[Any]]:
    """An array (seed × x) and its seeds, from a labelled array with a ``seed`` dimension, or from a
    plain one.
    """
    seeds = None
    if hasattr(values, "dims"):
        if "seed" in values.dims:
            seeds = values["seed"].values.tolist()
            values = values.transpose("seed", ...)
        values = values.values
    array = np.asarray(values, dtype=float)
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise AttnlabError(
            f"{what} has {array.ndim} axes; expected (seed × x): select or average the other axes "
            "first"
        )
    return array, list(range(len(array))) if seeds is None else seeds


def axis_values(x: Any, length: int, what: str) -> np.ndarray:
    """The x axis, checked against the length of what is drawn over it."""
    x = np.asarray(x)
    if x.shape != (length,):
        raise AttnlabError(
            f"x has shape {x.shape}, {what} has {length} columns; expected one x for each column"
        )
    return x


def thinned(x: np.ndarray, lines: int, log: bool = False, most: int = MAX_POINTS) -> np.ndarray:
    """Indices of the points to draw: evenly spread over the axis as it is shown, both ends kept,
    about ``most``.

    >>> thinned(np.arange(10_000), lines=1)[[0, -1]].tolist(), len(thinned(np.arange(10_000), lines=1))
    ([0, 9999], 400)
    """
    most = min(most, max(60, _BUDGET // max(lines, 1)))
    if len(x) <= most:
        return np.arange(len(x))
    even = np.round(np.linspace(0, len(x) - 1, most)).astype(int)
    if not log or np.sum(x > 0) < 2:
        return even
    positive = x[x > 0]
    nearest = np.searchsorted(x, np.geomspace(positive.min(), positive.max(), most - 1)).clip(
        0, len(x) - 1
    )
    return np.unique(np.concatenate([[0], nearest, [len(x) - 1]]))


def some_runs(count: int, most: int = MAX_RUNS) -> np.ndarray:
    """Which runs are drawn one by one: all, or ``most`` spread evenly."""
    return np.unique(np.round(np.linspace(0, count - 1, min(count, most))).astype(int))


def lines_of(values: Any) -> tuple[np.ndarray, list[str]]:
    """An array (line × step) and a label for each line, from a labelled array with any other
    dimensions.

    >>> import xarray as xr
    >>> lines_of(xr.DataArray([[1, 2]], {"seed": [7], "step": [0, 1]}, ("seed", "step")))[1]
    ['seed 7']
    """
    if "step" not in getattr(values, "dims", ()):
        raise AttnlabError(
            f"got {getattr(values, 'dims', 'a plain array')}; expected a labelled array with the "
            "dimension 'step'"
        )
    others = [dim for dim in values.dims if dim != "step"]
    array = values.transpose(..., "step").values.astype(float).reshape(-1, values.sizes["step"])
    return array, labels_of(values, others)


def labels_of(values: Any, dims: Sequence[str]) -> list[str]:
    """A label for each entry over some dimensions: ``seed 3 · good``; a word stands for itself."""
    names = [""]
    for dim in dims:
        words = values[dim].values.tolist() if dim in values.coords else range(values.sizes[dim])
        words = [str(word) if dim.endswith("word") else f"{dim} {word}" for word in words]
        names = [f"{name} · {word}" if name else word for name in names for word in words]
    return names


def of_choice(trace: dict[str, Any], choice: int) -> dict[str, Any]:
    """The trace as one of a choice: the first choice is shown until another is made."""
    shown = trace.get("visible", True)
    return trace | {
        "visible": shown if choice == 0 else False,
        "meta": {"choice": choice, "visible": shown},
    }


def short(values: Any) -> list[Any]:
    """Numbers to 6 significant digits, whole numbers whole, what is not finite as None.

    >>> short([1 / 3, float("nan")]), short(np.array([1234567]))
    ([0.333333, None], [1234567])
    """
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        return array.tolist()
    return [
        float(f"{value:.6g}") if np.isfinite(value) else None
        for value in array.astype(float).tolist()
    ]


def quantiles(runs: np.ndarray, levels: Sequence[float]) -> list[np.ndarray]:
    """Quantiles over the first axis without the missing runs; a column without any run is nan."""
    known = np.isfinite(runs)
    # Sorted, the missing runs of a column stand at its end; NumPy's nanquantile goes through the
    # columns one by one.
    ordered = np.sort(np.where(known, runs, np.inf), axis=0)
    last = known.sum(axis=0) - 1
    columns, present = np.arange(runs.shape[1]), last >= 0
    found = []
    for level in levels:
        place = level * np.maximum(last, 0)
        below = np.floor(place).astype(int)
        low = ordered[below, columns]
        high = ordered[np.minimum(below + 1, np.maximum(last, 0)), columns]
        with np.errstate(invalid="ignore"):  # columns without any run
            found.append(np.where(present, low + (high - low) * (place - below), np.nan))
    return found


def one_note(*parts: str) -> str:
    """What there is to say of what was left out, in one line."""
    return " ".join(filter(None, parts))


def thinning_note(kept: int, of: int) -> str:
    """What the reader must know of points left out."""
    return f"{kept} of {of} recorded points are drawn and saved." if kept < of else ""


def hidden_note(values: Sequence[np.ndarray], log: bool) -> str:
    """What the reader must know of values that a logarithmic axis cannot show."""
    hidden = sum(int(np.sum(array <= 0)) for array in values) if log else 0
    return (
        f"{hidden} values at or below zero are not shown on the logarithmic axis." if hidden else ""
    )


def axis(
    title: str = "", log: bool = False, values: Sequence[np.ndarray] = (), **more: Any
) -> dict[str, Any]:
    """An axis in the common style; a logarithmic one has its ticks at powers of ten as far as the
    values allow.
    """
    style: dict[str, Any] = {
        "title": {"text": plain(title), "font": {"size": 13, "color": MUTED}, "standoff": 8},
        "type": "log" if log else "linear",
        "gridcolor": GRID,
        "linecolor": GRID,
        "tickcolor": GRID,
        "ticks": "outside",
        "ticklen": 4,
        "tickfont": {"size": 12, "color": MUTED},
        "zeroline": False,
        "automargin": True,
        "exponentformat": "power",
        "minexponent": 5,
        "nticks": 7,
    }
    return style | (log_ticks(values) if log else {}) | more


def log_ticks(values: Sequence[np.ndarray], fine: float = 1.8) -> dict[str, Any]:
    """Ticks of a logarithmic axis: powers of ten; 1, 2, 5 where it spans fewer than ``fine``; else
    Plotly's own.
    """
    positive = [array[np.isfinite(array) & (array > 0)] for array in values]
    positive = np.concatenate([np.ravel(array) for array in positive]) if positive else np.ones(1)
    if not len(positive):
        return {}
    low, high = (float(np.log10(value)) for value in (positive.min(), positive.max()))
    if high - low >= fine:
        return {"dtick": int(np.ceil((high - low) / 7))}
    if high - low < 0.7:
        return {}
    powers = range(int(np.floor(low)) - 1, int(np.ceil(high)) + 2)
    ticks = [float(f"{m}e{k}") for k in powers for m in (1, 2, 5)]
    return {"tickmode": "array", "tickvals": ticks, "ticktext": [number(tick) for tick in ticks]}


def layout(height: int, *, top: int = 40, **more: Any) -> dict[str, Any]:
    """A layout in the common style: no title (the page has it), the legend above the plot."""
    style: dict[str, Any] = {
        "height": height,
        "margin": {"l": 64, "r": 18, "t": top, "b": 52},
        "font": {"family": _FONT, "size": 13, "color": INK},
        "paper_bgcolor": PAPER,
        "plot_bgcolor": PAPER,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": PANEL,
            "bordercolor": MUTED,
            "font": {"color": INK, "size": 13},
            "namelength": -1,
        },
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "font": {"size": 13, "color": INK},
        },
        "modebar": {"bgcolor": PAPER, "color": MUTED, "activecolor": INK},
    }
    return style | more


def reference_lines(
    levels: Mapping[str, float], *, vertical: bool = False, drawn: Sequence[np.ndarray] = ()
) -> list[dict[str, Any]]:
    """A thin labelled line at each value, over the first panel; above all that is ``drawn`` its
    label is below it.
    """
    known = [array[np.isfinite(array)] for array in drawn]
    top = max((float(array.max()) for array in known if array.size), default=np.inf)
    shapes = []
    for name, value in levels.items():
        if vertical:
            ends = {"x0": value, "x1": value, "y0": 0, "y1": 1}
            refs = {"xref": "x", "yref": "y domain"}
            anchor = {"xanchor": "left", "yanchor": "top"}
        else:
            ends = {"x0": 0, "x1": 1, "y0": value, "y1": value}
            refs = {"xref": "x domain", "yref": "y"}
            anchor = {"yanchor": "top" if value >= 0.95 * top else "bottom", "xanchor": "right"}
        label = {"text": plain(name), "font": {"size": 12, "color": MUTED}, "padding": 4}
        label |= {"textposition": "end", "textangle": 0} | anchor
        line = {"color": MUTED, "width": 1.2, "dash": "dot"}
        shapes.append({"type": "line"} | refs | ends | {"line": line, "label": label})
    return shapes


def menu_figure(
    figures: Mapping[str, Figure],
    *,
    id: str,
    title: str,
    caption: str = "",
    alt: str = "",
    choice_label: str = "Show",
) -> Figure:
    """One figure from several on the same axes; a menu says which is shown.

    All of the layout but the axes' titles is the first one's.

    >>> from attnlab.report import band_figure
    >>> each = {name: band_figure([0, 1], [[1.0, 2.0]], id="f", title="t") for name in ("score", "norm")}
    >>> both = menu_figure(each, id="f", title="Score or norm")
    >>> both.choices, list(both.table)
    (('score', 'norm'), ['step', 'score · value: seed 0', 'norm · value: seed 0'])
    """
    if not figures:
        raise AttnlabError(
            f"figure {id!r} has nothing to choose from; expected at least one drawing"
        )
    drawings = list(figures.values())
    traces, table, choices = drawings[0].plotly["data"], drawings[0].table, ()
    if len(drawings) > 1:
        traces = [
            of_choice(trace, k)
            for k, drawing in enumerate(drawings)
            for trace in drawing.plotly["data"]
        ]
        table, choices = _tables(figures), tuple(str(name) for name in figures)
    notes = list(dict.fromkeys(drawing.note for drawing in drawings if drawing.note))
    return Figure(
        id=id,
        title=title,
        caption=caption or drawings[0].caption,
        alt=alt or f"{title}. One of {', '.join(figures)}, as chosen.",
        plotly={"data": traces, "layout": _menu_layout(drawings, traces)},
        table=table,
        note=f"{notes[0]} Likewise in the other drawings." if len(notes) > 1 else "".join(notes),
        choices=choices,
        choice_label=choice_label,
    )


def _menu_layout(figures: list[Figure], traces: list[dict[str, Any]]) -> dict[str, Any]:
    """The first layout, with logarithmic ticks that serve all drawings, and each drawing's own axis
    titles.
    """
    layouts = [figure.plotly["layout"] for figure in figures]
    first = dict(layouts[0])
    axes = [key for key in first if key.startswith(("xaxis", "yaxis"))]
    titles = [
        {f"{name}.title.text": one[name]["title"]["text"] for name in axes} for one in layouts
    ]
    if any(each != titles[0] for each in titles):
        first["meta"] = {"titles": titles}
    for name in axes:
        ticks = [one[name].get("tickvals") for one in layouts]
        serve_all = ticks[0] is not None and all(each == ticks[0] for each in ticks)
        if first[name].get("type") == "log" and not serve_all:
            first[name] = _common_ticks(first[name], name, traces)
    return first


def _common_ticks(
    style: dict[str, Any], name: str, traces: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """A logarithmic axis with ticks for the values of all traces on it."""
    side, own_name = name[0], name.replace("axis", "")
    own = [trace.get(side, ()) for trace in traces if trace.get(f"{side}axis", side) == own_name]
    values = [np.array([v for v in row if v is not None], dtype=float) for row in own]
    ticks = ("dtick", "tickmode", "tickvals", "ticktext")
    bare = {key: value for key, value in style.items() if key not in ticks}
    return bare | log_ticks(values, fine=3.5)


def _tables(figures: Mapping[str, Figure]) -> dict[str, list[Any]]:
    """All columns side by side under their choice's name; a first column that all share stands
    once.
    """
    table: dict[str, list[Any]] = {}
    for choice, figure in figures.items():
        for place, (name, values) in enumerate(figure.table.items()):
            if place == 0 and table.setdefault(name, values) == values:
                continue
            table[f"{choice} · {name}"] = values
    return table
