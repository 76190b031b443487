"""Curves over training: the seeds as a band, the single runs on demand, theory on the same axes as
measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import BLUE, DASHES, GREEN, MUTED, SERIES, VERMILLION, faded
from attnlab.report._prepare import (
    MAX_RUNS,
    axis,
    axis_values,
    hidden_note,
    layout,
    of_choice,
    quantiles,
    reference_lines,
    seeds_first,
    short,
    some_runs,
    thinned,
    thinning_note,
)
from attnlab.report._text import plain

_LEVELS = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class _Series:
    """Runs (seed × x) to draw as median, band and single lines, in one colour and on one y axis."""

    name: str
    x: np.ndarray
    runs: np.ndarray
    seeds: list[Any]
    x_label: str
    color: str
    dash: str = "solid"
    y_axis: str = "y"
    group: str = ""
    legend: bool = True
    unit: str = ""
    band: bool = True
    singles: int = MAX_RUNS

    def traces(self, runs_legend: bool) -> list[dict[str, Any]]:
        """Band below, single runs (hidden until asked for), median above."""
        if len(self.runs) == 1:
            return [self._line(self.runs[0], f"seed {plain(self.seeds[0])}")]
        low, median, high = quantiles(self.runs, _LEVELS)
        band = [self._band(low, high)] if self.band else []
        single = [self._single(runs_legend)] if self.singles else []
        return [*band, *single, self._line(median, "median")]

    def columns(self) -> dict[str, list[Any]]:
        """The same numbers as columns."""
        columns = {}
        if len(self.runs) > 1:
            for word, values in zip(
                ("10 %", "median", "90 %"), quantiles(self.runs, _LEVELS), strict=True
            ):
                columns[f"{self.name}: {word}"] = short(values)
        kept = some_runs(len(self.runs), max(self.singles, len(self.runs) == 1))
        return columns | {f"{self.name}: seed {self.seeds[k]}": short(self.runs[k]) for k in kept}

    def _common(self) -> dict[str, Any]:
        return {
            "type": "scatter",
            "mode": "lines",
            "yaxis": self.y_axis,
            "legendgroup": plain(self.group or self.name),
        }

    def _line(self, values: np.ndarray, word: str) -> dict[str, Any]:
        hover = f"%{{y:.4~g}}{self.unit} {word}<br>{plain(self.x_label)} %{{x}}<extra>{plain(self.name)}</extra>"
        line = {"color": self.color, "width": 2.4, "dash": self.dash}
        data = {
            "name": plain(self.name),
            "x": short(self.x),
            "y": short(values),
            "line": line,
            "hovertemplate": hover,
        }
        return self._common() | data | {"showlegend": self.legend}

    def _band(self, low: np.ndarray, high: np.ndarray) -> dict[str, Any]:
        there = np.isfinite(low) & np.isfinite(high)
        x, low, high = self.x[there], low[there], high[there]
        outline = {
            "x": short(np.concatenate([x, x[::-1]])),
            "y": short(np.concatenate([high, low[::-1]])),
        }
        fill = {
            "fill": "toself",
            "fillcolor": faded(self.color, 0.18),
            "line": {"width": 0},
            "hoverinfo": "skip",
        }
        return self._common() | {"name": plain(self.name)} | outline | fill | {"showlegend": False}

    def _single(self, legend: bool) -> dict[str, Any]:
        """All runs in one trace with gaps between them, so that a legend entry shows or hides them
        together.
        """
        kept = some_runs(len(self.runs), self.singles)
        name = (
            "single runs"
            if len(kept) == len(self.runs)
            else f"{len(kept)} of {len(self.runs)} runs"
        )
        x, y, seeds = [], [], []
        for k in kept:
            x += [*short(self.x), None]
            y += [*short(self.runs[k]), None]
            seeds += [str(self.seeds[k])] * (len(self.x) + 1)
        hover = f"seed %{{customdata}}<br>{plain(self.x_label)} %{{x}}<br>%{{y:.4~g}}{self.unit}"
        line = {"color": faded(self.color, 0.55), "width": 1, "dash": self.dash}
        data = {
            "name": name,
            "x": x,
            "y": y,
            "customdata": [plain(seed) for seed in seeds],
            "line": line,
        }
        shown = {
            "visible": "legendonly",
            "legendgroup": "single runs",
            "showlegend": legend,
            "legendrank": 2000,
        }
        return (
            self._common()
            | data
            | shown
            | {"hovertemplate": f"{hover}<extra>{plain(self.name)}</extra>"}
        )


def band_figure(
    x: Any,
    runs: Any,
    *,
    id: str,
    title: str,
    caption: str = "",
    alt: str = "",
    x_label: str = "step",
    y_label: str = "value",
    log_x: bool = False,
    log_y: bool = False,
    lines: Mapping[str, float] | None = None,
    marks: Mapping[str, float] | None = None,
    guides: Mapping[str, tuple[Any, Any]] | None = None,
    singles: int = MAX_RUNS,
) -> Figure:
    """Median and 10–90 % band over seeds of one or several series; single runs when the legend is
    asked for them.

    ``runs``: (seed × x), or name → (seed × x). ``lines``: label → y, ``marks``: label → x, drawn as
    thin lines; ``guides``: label → (x, y), a curve to compare with. ``singles``: how many runs can
    be shown one by one.

    >>> figure = band_figure([1, 2, 4], np.ones((8, 3)), id="loss", title="Loss", log_x=True)
    >>> [trace["name"] for trace in figure.plotly["data"]]
    ['value', 'single runs', 'value']
    """
    named = runs if isinstance(runs, Mapping) else {y_label: runs}
    if not named:
        raise AttnlabError(
            f"figure {id!r} has no series to draw; expected runs of shape (seed × x) or a mapping "
            "of them"
        )
    arrays = {name: seeds_first(values, f"series {name!r}") for name, values in named.items()}
    x = axis_values(x, next(iter(arrays.values()))[0].shape[1], "the first series")
    kept = thinned(x, sum(min(len(array), singles) for array, _ in arrays.values()), log_x)
    traces, table = [], {x_label: short(x[kept])}
    for k, (name, (array, seeds)) in enumerate(arrays.items()):
        axis_values(x, array.shape[1], f"series {name!r}")
        look = {"color": SERIES[k % 7], "dash": DASHES[k % 7], "singles": singles}
        series = _Series(name, x[kept], array[:, kept], seeds, x_label, **look)
        traces += series.traces(runs_legend=k == 0)
        table |= series.columns()
    traces += [_guide(name, *curve) for name, curve in (guides or {}).items()]
    drawn = [array for array, _ in arrays.values()]
    style = layout(400, xaxis=axis(x_label, log_x, [x]), yaxis=axis(y_label, log_y, drawn))
    style["shapes"] = reference_lines(lines or {}, drawn=drawn) + reference_lines(
        marks or {}, vertical=True
    )
    note = [thinning_note(len(kept), len(x)), hidden_note(drawn, log_y)]
    alt = (
        alt
        or f"{title}. Median and 10 to 90 percent band over seeds of {', '.join(arrays)} against "
        f"{x_label}."
    )
    caption = caption or "Line: median over seeds. Band: 10–90 % of seeds."
    return Figure(
        id,
        title,
        caption,
        alt,
        {"data": traces, "layout": style},
        table,
        " ".join(filter(None, note)),
    )


def theory_figure(
    x: Any,
    measured: Any,
    predicted: Any,
    *,
    id: str,
    title: str,
    caption: str = "",
    alt: str = "",
    x_label: str = "step",
    y_label: str = "value",
    log_x: bool = False,
    log_y: bool = False,
    choice_label: str = "Word",
    singles: int = MAX_RUNS,
) -> Figure:
    """Theory over measurement on the same axes, and below the residual ``100 (measured − predicted)
    / |predicted|``.

    ``measured``: (seed × x); ``predicted``: (seed × x), or (x) when it is the same for all seeds.
    Both may be mappings choice → array (one entry per word, say); the reader then chooses which is
    shown.

    >>> figure = theory_figure([0, 1], {"good": [[1, 2.0]]}, {"good": [1, 1.0]}, id="sen", title="SEN")
    >>> figure.table["good: residual in %: seed 0"]
    [0.0, 100.0]
    """
    chosen = isinstance(measured, Mapping)
    pairs = _pairs(measured, predicted) if chosen else {"": (measured, predicted)}
    arrays = {
        choice: (seeds_first(m, "measured"), seeds_first(p, "predicted"))
        for choice, (m, p) in pairs.items()
    }
    (first, _), _ = next(iter(arrays.values()))
    x = axis_values(x, first.shape[1], "measured")
    kept = thinned(x, len(arrays) * min(len(first), singles), log_x)
    traces, table = [], {x_label: short(x[kept])}
    for k, (choice, ((m, seeds), (p, _))) in enumerate(arrays.items()):
        if m.shape != (len(m), len(x)) or p.shape not in {(1, len(x)), m.shape}:
            raise AttnlabError(
                f"measured is {m.shape} and predicted {p.shape}; expected both (seed × {len(x)})"
            )
        panel = _panel(
            f"{choice}: " if chosen else "",
            x[kept],
            m[:, kept],
            p[:, kept],
            seeds,
            x_label,
            singles,
        )
        shown = [
            trace
            for number, series in enumerate(panel)
            for trace in series.traces(runs_legend=number == 0)
        ]
        traces += [of_choice(trace, k) if chosen else trace for trace in shown]
        for series in panel:
            table |= series.columns()
    drawn = [m for (m, _), _ in arrays.values()]
    style = layout(
        540,
        xaxis=axis(x_label, log_x, [x], anchor="y2"),
        yaxis=axis(y_label, log_y, drawn, domain=[0.36, 1]),
    )
    style["yaxis2"] = axis(
        "residual, %", domain=[0, 0.27], zeroline=True, zerolinecolor=VERMILLION, nticks=5
    )
    note = [thinning_note(len(kept), len(x)), hidden_note(drawn, log_y)]
    alt = (
        alt
        or f"{title}. Measured {y_label} with the predicted one on the same axes, and below their "
        "difference in %."
    )
    caption = (
        caption
        or "Lines: median over seeds. Band: 10–90 % of measured runs. Below: the difference in % "
        "of the prediction."
    )
    return Figure(
        id=id,
        title=title,
        caption=caption,
        alt=alt,
        plotly={"data": traces, "layout": style},
        table=table,
        note=" ".join(filter(None, note)),
        choices=tuple(str(choice) for choice in arrays) if chosen else (),
        choice_label=choice_label,
    )


def _pairs(measured: Mapping[str, Any], predicted: Any) -> dict[str, tuple[Any, Any]]:
    if not isinstance(predicted, Mapping) or set(predicted) != set(measured) or not measured:
        raise AttnlabError(
            "measured is a mapping of choices; expected predicted to be one with the same keys"
        )
    return {choice: (measured[choice], predicted[choice]) for choice in measured}


def _guide(name: str, x: Any, y: Any) -> dict[str, Any]:
    line = {"color": MUTED, "width": 1.6, "dash": "dot"}
    data = {"name": plain(name), "x": short(x), "y": short(y), "line": line, "hoverinfo": "skip"}
    return {"type": "scatter", "mode": "lines"} | data


def _panel(
    prefix: str,
    x: np.ndarray,
    measured: np.ndarray,
    predicted: np.ndarray,
    seeds: list[Any],
    x_label: str,
    most: int,
) -> list[_Series]:
    """Measured, predicted and residual, in the order in which they are drawn."""
    size = np.where(predicted == 0, np.nan, np.abs(predicted))
    residual = 100 * (measured - predicted) / size
    own = seeds if len(predicted) == len(seeds) else ["all"]
    residual_name = f"{prefix}residual in %"
    return [
        _Series(f"{prefix}measured", x, measured, seeds, x_label, BLUE, singles=most),
        _Series(
            f"{prefix}theory",
            x,
            predicted,
            own,
            x_label,
            VERMILLION,
            "dash",
            band=False,
            singles=most,
        ),
        _Series(
            residual_name,
            x,
            residual,
            seeds,
            x_label,
            GREEN,
            y_axis="y2",
            legend=False,
            unit=" %",
            singles=most,
        ),
    ]
