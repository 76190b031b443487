"""The page of ``attnlab landscape``: stationary points of one problem, and what lies around the
best of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._bands import band_figure
from attnlab.report._dynamics import again_section, card_of_entry
from attnlab.report._heat import heat_table
from attnlab.report._page import Figure, Page, Section
from attnlab.report._palette import BLUE, INK, MUTED, VERMILLION
from attnlab.report._prepare import axis, layout, short
from attnlab.report._render import write_folder
from attnlab.report._scatter import scatter_figure
from attnlab.report._text import number, plain, told

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_ELSEWHERE = ("settings", "command", "summary", "cards", "absent", "title", "question")
_ROWS = 12  # points that the table shows
_GOOD = 0.1
_EQUAL = 1e-6  # an eigenvalue is the penalty's if it differs by no more than this share
_COLUMNS = {
    "kind": "kind",
    "starts": "starts",
    "error": "error",
    "loss": "training loss",
    "smallest": "λ_min",
    "largest": "λ_max",
    "flat_trace": "trace",
    "flat_adaptive_sam": "adaptive SAM",
    "flat_petzka": "Petzka",
}
_ALIGNED = (
    "The second is first brought as near to the first as symmetry allows, so that the barrier is "
    "no matter of "
    "relabelling."
)
# From the valley up; the same in both themes, since ink and centre mark are drawn to be seen on all
# of it.
_HEIGHTS = [[0, "#0b4f7d"], [0.35, "#3f93c4"], [0.7, "#b9dcee"], [1, "#f6f1e4"]]


def landscape_page(data: Data, about: Mapping[str, Any]) -> Page:
    """One page about the stationary points of a problem.

    - ``data["starts"]`` (seed, start): ``kind``, ``error``, ``loss`` of where each start ended;
    - ``data["points"]`` (point): the first problem's distinct points, the best first: ``kind``,
      ``starts``, ``share``, ``error``, ``loss``, ``value``, ``smallest``, ``largest`` and measures
      of flatness ``flat_…``;
    - ``data["surface"]``: ``loss`` (a, b) around the best; ``data["spectrum"]``: ``eigenvalue``
      (number), from the largest down, with the attributes ``certificate``, ``zero_modes``,
      ``delta``, ``l2``; ``data["path"]``: ``loss`` (t) with the attributes ``barrier``, ``place``,
      ``distance``; ``data["descent"]``: as ``trained_path`` gives it.

    All but the first may be missing; ``about["absent"]`` says why for ``"points"`` and ``"path"``.
    Otherwise ``about`` is as for ``dynamics_page``.
    """
    absent = {str(key): str(value) for key, value in (about.get("absent") or {}).items()}
    cards = tuple(card_of_entry(entry) for entry in about.get("cards") or ())
    said = {card.text for card in cards}  # what a card says need not be said twice
    return Page(
        title=str(about.get("title", "attnlab: the landscape of one problem")),
        question=str(
            about.get("question", "Which minima are there, how good are they and how flat?")
        ),
        summary=" ".join(str(each) for each in about.get("summary") or () if str(each) not in said),
        sections=(
            _points(data, absent),
            *_best(data),
            *_between(data, absent),
            again_section(about),
        ),
        cards=cards,
        provenance={str(k).capitalize(): told(v) for k, v in about.items() if k not in _ELSEWHERE},
    )


def write_landscape(folder: str | Path, data: Data, about: Mapping[str, Any]) -> Path:
    """Write ``report.html``, and each figure's drawing and data in ``figures/``."""
    return write_folder(landscape_page(data, about), folder)


def _points(data: Data, absent: Mapping[str, str]) -> Section:
    figures, body = [ends_figure(data["starts"], id="ends")], ()
    if "points" in data:
        figures = [points_table(data["points"], id="distinct"), *figures]
    else:
        reason = absent.get("points", "none was stationary").rstrip(".")
        body = (f"There is no point to show: {reason}.",)
    statement = "Where the search ended from each start, certified, and counted once if equal up to symmetry."
    return Section(
        "points", "Which points are there?", statement, body=body, figures=tuple(figures)
    )


def points_table(points: xr.Dataset, *, id: str) -> Figure:
    """The distinct points, a row each."""
    shown = points.isel(point=slice(_ROWS))
    columns = {name: title for name, title in _COLUMNS.items() if name in points}
    rows = [f"{label}" for label in shown["point"].values]
    cells = [[_cell(shown.isel(point=k), name) for name in columns] for k in range(len(rows))]
    left = points.sizes["point"] - len(rows)
    more = (
        f" The first {len(rows)} of {points.sizes['point']}; all lie in the folder's data."
        if left
        else ""
    )
    return heat_table(
        rows,
        list(columns.values()),
        cells,
        id=id,
        title="The distinct stationary points of the first problem",
        tones=[["" for _ in row] for row in cells],
        caption="Minima first, the lowest loss with penalty at the top. Points that differ by the "
        "order of hidden "
        "units or by turning a hidden space are one. Starts: how many of those tried ended there, "
        "no measure "
        "of all there could be. λ_min and λ_max are of the loss with penalty, zero modes of "
        "symmetry left out; "
        "trace, adaptive SAM and Petzka's measure are of the loss alone, at minima only, and "
        "smaller is "
        f"flatter.{more}",
    )


def _cell(point: xr.Dataset, name: str) -> Any:
    if name == "starts":
        return f"{int(point['starts'])} ({100 * float(point['share']):.3g}\u00a0%)"
    return str(point[name].values) if name == "kind" else float(point[name])


def ends_figure(starts: xr.Dataset, *, id: str) -> Figure:
    """Error against training loss, one dot per start."""
    kinds, many = starts["kind"].values, starts.sizes["seed"] > 1
    groups = {}
    for kind in sorted({str(kind) for kind in kinds.ravel()}):
        at = np.argwhere(kinds == kind)
        labels = [
            f"{starts.start.values[k]}" + (f" of problem {starts.seed.values[i]}" if many else "")
            for i, k in at
        ]
        x, y = (_named(starts[name].values[tuple(at.T)], labels) for name in ("loss", "error"))
        groups[kind] = (x, y)
    error = starts["error"].values[np.isfinite(starts["error"].values)]
    wide = len(error) > 0 and bool(error.min() > 0) and bool(error.max() > 5 * error.min())
    return scatter_figure(
        groups,
        id=id,
        title="Error against training loss, one dot per start",
        x_label="training loss (without penalty)",
        y_label="prediction error",
        lines={"good": _GOOD},
        log_y=wide,
        caption="The symbol says what was certified. Below the dotted line a point is called good "
        "(error ≤ "
        f"{_GOOD:g}). Dots of equal points lie on each other.",
    )


def _named(values: np.ndarray, labels: list[str]) -> xr.DataArray:
    import xarray as xr

    return xr.DataArray(values, {"start": labels}, ("start",))


def _best(data: Data) -> tuple[Section, ...]:
    """The certificate, the spectrum and the surface of the best point."""
    sections = []
    if "spectrum" in data:
        spectrum = data["spectrum"]
        sections.append(
            Section(
                "certificate",
                "What is proved of the lowest point?",
                str(spectrum.attrs.get("certificate", "")),
                body=(_zero_words(spectrum),),
                figures=(spectrum_figure(spectrum, id="spectrum"),),
            )
        )
    if "surface" in data:
        statement = (
            "The loss in a plane through the lowest point found, along two random directions."
        )
        body = (_lowest_words(data["surface"]),)
        figure = surface_figure(data["surface"], id="surface")
        sections.append(
            Section("surface", "What lies around it?", statement, body=body, figures=(figure,))
        )
    if "descent" in data:
        sections.append(_descent(data["descent"]))
    return tuple(sections)


def _descent(descent: xr.Dataset) -> Section:
    told = descent.attrs
    statement = "Adam from the first start that the search took there, in the plane in which its path varies most."
    body = (
        f"After {int(told['steps'])} steps of size {number(told['step_size'])} the largest entry "
        "of the gradient is "
        f"{number(told['gradient'], 2)}: training stopped here, at no certified point. The plane "
        "holds "
        f"{100 * float(told['share']):.3g}\u00a0% of the path's squared extent; where the "
        "distance from it is large, "
        "the heights under the path are not those that training met.",
    )
    return Section(
        "descent",
        "How does training get there?",
        statement,
        body=body,
        figures=(
            descent_figure(descent, id="descent"),
            distance_figure(descent, id="descent_distance"),
        ),
    )


def _zero_words(spectrum: xr.Dataset) -> str:
    values, attrs = spectrum["eigenvalue"].values, spectrum.attrs
    delta, modes = float(attrs.get("delta", 0.0)), int(attrs.get("zero_modes", 0))
    flat = int((np.abs(values) <= delta).sum())
    said = f"Of {len(values)} eigenvalues {int((values > delta).sum())} are positive, {int((values < -delta).sum())} "
    said += f"negative and {flat} zero to within δ = {number(delta, 1)}. "
    l2 = float(attrs.get("l2", 0.0))
    alone = int((np.abs(values - l2) <= max(delta, _EQUAL * l2)).sum()) if l2 else 0
    if alone:
        said += (
            f"{alone} equal the penalty's λ = {number(l2)}: these directions the data do not see. "
        )
    if modes:
        return f"{said}{modes} zero modes come from symmetry: along them the model stays the same function."
    return f"{said}No continuous symmetry leaves a direction flat."


def spectrum_figure(spectrum: xr.Dataset, *, id: str) -> Figure:
    """All eigenvalues by size, on a log scale; zeros are left to the words."""
    values, rank = spectrum["eigenvalue"].values, spectrum["number"].values
    delta, l2 = float(spectrum.attrs.get("delta", 0.0)), float(spectrum.attrs.get("l2", 0.0))
    up, down = values > delta, values < -delta
    groups: dict[str, tuple[Any, Any]] = {"positive": (rank[up], values[up])}
    if down.any():
        groups["negative (its size)"] = (rank[down], -values[down])
    line = (
        " The dotted line is the penalty's own curvature: the data do not bend directions on it."
        if l2
        else ""
    )
    return scatter_figure(
        groups,
        id=id,
        title="All eigenvalues of the curvature",
        x_label="number, from the largest",
        y_label="eigenvalue",
        log_y=True,
        lines={"penalty λ": l2} if l2 else None,
        caption=f"Of the loss with penalty, from the dense matrix.{line} Zeros are not drawn.",
    )


def _lowest_words(surface: xr.Dataset) -> str:
    loss = surface["loss"]
    centre = float(loss.sel(a=0.0, b=0.0))
    said = f"The loss is {number(centre, 4)} at the centre and up to {number(float(loss.max()))} in this picture. "
    if float(loss.min()) < centre:
        return (
            f"{said}A point of the plane is lower than the centre ({number(float(loss.min()), 4)})."
        )
    return f"{said}Nothing in this plane is lower; other planes may show what this one does not."


def surface_figure(surface: xr.Dataset, *, id: str) -> Figure:
    """Contours of the loss, coloured by its logarithm, with the centre marked."""
    contour, table, (low, high) = _contours(surface["loss"])
    centre = _cross("the point")
    style = layout(520, xaxis=axis("a, first direction"), yaxis=axis("b, second direction"))
    size = surface["loss"].sizes
    return Figure(
        id,
        "The loss around the lowest point found",
        "Loss with penalty; lines are even steps of its logarithm. Each direction is random, with "
        "what feeds each "
        "neuron as long as at the point itself (filter-normalised), so that 1 is a change as "
        "large as the weights. "
        "Cross: the point.",
        f"Contours of the loss on {size['a']} × {size['b']} points, from {number(low)} to "
        f"{number(high)}.",
        {"data": [contour, centre], "layout": style},
        table,
    )


def descent_figure(descent: xr.Dataset, *, id: str) -> Figure:
    """The plane of a training path with the path projected on it."""
    contour, table, (low, high) = _contours(descent["loss"])
    a, b, steps = descent["path_a"].values, descent["path_b"].values, descent["step"].values
    off, losses = descent["distance"].values, descent["path_loss"].values
    said = [
        f"step {step}<br>loss there {number(loss)}<br>distance from the plane {number(far)}"
        for step, loss, far in zip(steps, losses, off, strict=True)
    ]
    path = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": short(a),
        "y": short(b),
        "name": "training",
        "line": {"color": "#14181f", "width": 2},
        "marker": {"color": VERMILLION, "size": 5},
        "text": said,
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }
    style = layout(
        520, xaxis=axis("a, along the path's widest direction"), yaxis=axis("b, along the next")
    )
    return Figure(
        id,
        "Training on the plane of its path",
        "Loss with penalty on the plane through the end of training; the line is the path's "
        "nearest points on the "
        "plane, a dot per recorded step (evenly spaced in log time). Cross: where training "
        "stopped. Axes are distances "
        "between weights.",
        f"The path of {len(steps)} recorded steps over contours from {number(low)} to "
        f"{number(high)}.",
        {"data": [contour, path, _cross("where training stopped")], "layout": style},
        table,
    )


def distance_figure(descent: xr.Dataset, *, id: str) -> Figure:
    """How far from the plane the path runs."""
    steps = descent["step"].values.astype(float)
    return band_figure(
        np.maximum(steps, 0.5),
        {
            "from the plane": descent["distance"].expand_dims("seed"),
            "from its end": descent["away"].expand_dims("seed"),
        },
        id=id,
        title="How far the path is from the plane",
        x_label="step",
        y_label="distance between weights",
        log_x=True,
        singles=0,
        caption="Step 0 is drawn at one half. Where the two lines are near each other, the "
        "picture above says little of what training met.",
    )


def _cross(name: str) -> dict[str, Any]:
    marker = {
        "symbol": "x",
        "size": 11,
        "color": "#ffffff",
        "line": {"color": "#14181f", "width": 1.5},
    }
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [0],
        "y": [0],
        "name": name,
        "marker": marker,
        "showlegend": False,
        "hovertemplate": f"{name}<extra></extra>",
    }


def _contours(values: xr.DataArray) -> tuple[dict[str, Any], dict[str, Any], tuple[float, float]]:
    """Contours of the logarithm of a loss (a, b), the numbers as a table, and the lowest and
    highest of them.
    """
    loss = values.transpose("b", "a")
    a, b, rows = short(loss["a"].values), short(loss["b"].values), loss.values
    heights = np.log10(np.maximum(rows, np.finfo(float).tiny))
    low, high = float(heights.min()), float(heights.max())
    ticks = np.linspace(low, high, 6)
    bar = {
        "title": {"text": "loss", "font": {"size": 13, "color": MUTED}},
        "tickvals": short(ticks),
        "ticktext": [number(10**tick, 2) for tick in ticks],
        "tickfont": {"size": 12, "color": MUTED},
        "outlinewidth": 0,
        "thickness": 14,
    }
    contour = {
        "type": "contour",
        "x": a,
        "y": b,
        "z": [short(row) for row in heights],
        "colorscale": _HEIGHTS,
        "colorbar": bar,
        "contours": {"start": low, "end": high, "size": (high - low) / 20 or 1.0},
        "ncontours": 20,
        "autocontour": False,
        "line": {"width": 0.5, "color": "#ffffff"},
        "showlegend": False,
        "customdata": [short(row) for row in rows],
        "hovertemplate": "a %{x:.3~g}, b %{y:.3~g}<br>loss %{customdata:.4~g}<extra></extra>",
    }
    places = np.meshgrid(loss["a"].values, loss["b"].values)
    table = {
        "a": short(places[0].ravel()),
        "b": short(places[1].ravel()),
        "loss": short(rows.ravel()),
    }
    return contour, table, (10**low, 10**high)


def _between(data: Data, absent: Mapping[str, str]) -> tuple[Section, ...]:
    title, statement = (
        "Are the lowest minima connected?",
        "The straight line between the two distinct minima of the lowest loss with penalty.",
    )
    if "path" in data:
        return (Section("path", title, statement, figures=(path_figure(data["path"], id="line"),)),)
    return (
        (Section("path", title, f"Not shown: {absent['path'].rstrip('.')}."),)
        if "path" in absent
        else ()
    )


def path_figure(
    path: xr.Dataset,
    *,
    id: str,
    title: str = "The loss on the straight line between the two lowest minima",
    caption: str = _ALIGNED,
    ends: str = "the two minima",
    x_label: str = "t, from the lowest (0) to the next (1)",
    y_label: str = "loss with penalty",
) -> Figure:
    """The loss along a path, with its barrier; by default between two minima."""
    t, loss, barrier = path["t"].values, path["loss"].values, float(path.attrs["barrier"])
    place = float(path.attrs["place"])
    below = (1 - place) * loss[0] + place * loss[-1]
    hover = "t %{x:.3~g}<br>loss %{y:.4~g}<extra></extra>"
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": short(t),
            "y": short(loss),
            "name": "loss on the line",
            "line": {"color": BLUE, "width": 2.4},
            "hovertemplate": hover,
        },
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": [0, 1],
            "y": short(loss[[0, -1]]),
            "name": ends,
            "line": {"color": MUTED, "width": 1.4, "dash": "dot"},
            "marker": {"color": INK, "size": 8},
            "hovertemplate": hover,
        },
        {
            "type": "scatter",
            "mode": "lines",
            "x": [place, place],
            "y": short([below, below + barrier]),
            "name": plain(f"barrier {number(barrier)}"),
            "line": {"color": VERMILLION, "width": 2.4, "dash": "dash"},
            "hoverinfo": "skip",
        },
    ]
    style = layout(380, xaxis=axis(x_label), yaxis=axis(y_label))
    apart = f" They are {number(path.attrs['distance'])} apart" if "distance" in path.attrs else ""
    if apart and "unaligned" in path.attrs:
        apart += f" ({number(path.attrs['unaligned'])} before alignment)"
    return Figure(
        id,
        title,
        f"{caption}{apart + '.' if apart else ''} The barrier is the largest rise above the line "
        "between the two "
        "losses, at the points computed; a curved path may be lower.",
        f"The loss rises by {number(barrier)} above the line between {number(loss[0])} and "
        f"{number(loss[-1])}.",
        {"data": traces, "layout": style | {"showlegend": True}},
        {"t": short(t), "loss": short(loss)},
    )
