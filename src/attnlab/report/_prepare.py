"""From arrays to what is drawn: seeds first, few points, short numbers; and the layout that all
figures share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._palette import GRID, INK, MUTED, PANEL, PAPER
from attnlab.report._text import number, plain

MAX_POINTS = 400
MAX_RUNS = 48
_BUDGET = 8_000
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif"


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


def lines_of(values: Any, along: str = "step") -> tuple[np.ndarray, list[str]]:
    """An array (line × along) and a label for each line, from a labelled array with any other
    dimensions.

    >>> import xarray as xr
    >>> lines_of(xr.DataArray([[1, 2]], {"seed": [7], "step": [0, 1]}, ("seed", "step")))[1]
    ['seed 7']
    """
    if along not in getattr(values, "dims", ()):
        raise AttnlabError(
            f"got {getattr(values, 'dims', 'a plain array')}; expected a labelled array with "
            f"{along!r}"
        )
    return np.atleast_2d(
        values.transpose(..., along).values.astype(float).reshape(-1, values.sizes[along])
    ), labels_of(values, [d for d in values.dims if d != along])


def labels_of(values: Any, dims: Sequence[str]) -> list[str]:
    """A label for each entry over some dimensions: ``seed 3 · good``."""
    names = [""]
    for dim in dims:
        words = values[dim].values.tolist() if dim in values.coords else range(values.sizes[dim])
        words = [str(w) if dim in ("word", "any_word") else f"{dim} {w}" for w in words]
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
    present = np.isfinite(runs).any(axis=0)
    result = [np.full(runs.shape[1], np.nan) for _ in levels]
    if present.any():
        columns = np.where(np.isfinite(runs), runs, np.nan)[:, present]
        for row, values in zip(result, np.nanquantile(columns, levels, axis=0), strict=True):
            row[present] = values
    return result


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
        ends = (
            {"x0": value, "x1": value, "y0": 0, "y1": 1}
            if vertical
            else {"x0": 0, "x1": 1, "y0": value, "y1": value}
        )
        label = {"text": plain(name), "font": {"size": 12, "color": MUTED}, "padding": 4}
        place = {"textposition": "end", "textangle": 0} | (
            {"xanchor": "left", "yanchor": "top"}
            if vertical
            else {"yanchor": "top" if value >= 0.95 * top else "bottom", "xanchor": "right"}
        )
        shapes.append(
            {
                "type": "line",
                "xref": "x" if vertical else "x domain",
                "yref": "y domain" if vertical else "y",
            }
            | ends
            | {"line": {"color": MUTED, "width": 1.2, "dash": "dot"}, "label": label | place}
        )
    return shapes
