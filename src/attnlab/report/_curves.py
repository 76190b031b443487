"""Curves over an axis: bands over seeds, theory on the same axes as measurement, stages shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._style import (
    BLUE,
    GREEN,
    INK,
    MAX_RUNS,
    MUTED,
    ORANGE,
    PURPLE,
    VERMILLION,
    axis,
    axis_values,
    color_of,
    dash_of,
    faded,
    hidden_note,
    layout,
    of_choice,
    one_note,
    quantiles,
    reference_lines,
    seeds_first,
    short,
    some_runs,
    thinned,
    thinning_note,
)
from attnlab.report._words import plain

if TYPE_CHECKING:
    import xarray as xr

_LEVELS = (0.1, 0.5, 0.9)
_SEEDS, _WORDS, _POINTS = 6, 12, 40  # what an overlay draws at most
_STAGES = (PURPLE, MUTED, ORANGE, GREEN)
_STORIES, _STORY_POINTS = 24, 80  # what a figure of stages offers at most
_WIDE = 0.24  # a stage's name is written above it if it takes this share of the axis


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
            found = quantiles(self.runs, _LEVELS)
            for word, values in zip(("10 %", "median", "90 %"), found, strict=True):
                columns[f"{self.name}: {word}"] = short(values)
        kept = some_runs(len(self.runs), max(self.singles, len(self.runs) == 1))
        return columns | {f"{self.name}: seed {self.seeds[k]}": short(self.runs[k]) for k in kept}

    def _common(self) -> dict[str, Any]:
        name = plain(self.name)
        return {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "yaxis": self.y_axis,
            "legendgroup": name,
        }

    def _line(self, values: np.ndarray, word: str) -> dict[str, Any]:
        hover = f"%{{y:.4~g}}{self.unit} {word}<br>{plain(self.x_label)} %{{x}}"
        return self._common() | {
            "x": short(self.x),
            "y": short(values),
            "line": {"color": self.color, "width": 2.4, "dash": self.dash},
            "hovertemplate": f"{hover}<extra>{plain(self.name)}</extra>",
            "showlegend": self.legend,
        }

    def _band(self, low: np.ndarray, high: np.ndarray) -> dict[str, Any]:
        return self._common() | band_outline(self.x, low, high, self.color)

    def _single(self, legend: bool) -> dict[str, Any]:
        """All runs in one trace with gaps between them, so that a legend entry shows or hides them
        together.
        """
        kept = some_runs(len(self.runs), self.singles)
        every = len(kept) == len(self.runs)
        x, y, seeds = [], [], []
        for k in kept:
            x += [*short(self.x), None]
            y += [*short(self.runs[k]), None]
            seeds += [plain(self.seeds[k])] * (len(self.x) + 1)
        hover = f"seed %{{customdata}}<br>{plain(self.x_label)} %{{x}}<br>%{{y:.4~g}}{self.unit}"
        return self._common() | {
            "name": "single runs" if every else f"{len(kept)} of {len(self.runs)} runs",
            "x": x,
            "y": y,
            "customdata": seeds,
            "line": {"color": faded(self.color, 0.55), "width": 1, "dash": self.dash},
            "visible": "legendonly",
            "legendgroup": "single runs",
            "showlegend": legend,
            "legendrank": 2000,
            "hovertemplate": f"{hover}<extra>{plain(self.name)}</extra>",
        }


def band_outline(x: np.ndarray, low: np.ndarray, high: np.ndarray, color: str) -> dict[str, Any]:
    """The filled area between two curves, where both are known."""
    there = np.isfinite(low) & np.isfinite(high)
    x, low, high = x[there], low[there], high[there]
    return {
        "x": short(np.concatenate([x, x[::-1]])),
        "y": short(np.concatenate([high, low[::-1]])),
        "fill": "toself",
        "fillcolor": faded(color, 0.18),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def band_figure(
    x: Any,
    runs: Any,
    *,
    id: str,
    title: str,
    caption: str = "",
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
        series = _Series(
            name,
            x[kept],
            array[:, kept],
            seeds,
            x_label,
            color_of(k),
            dash_of(k),
            singles=singles,
        )
        traces += series.traces(runs_legend=k == 0)
        table |= series.columns()
    traces += [_guide(name, *curve) for name, curve in (guides or {}).items()]
    drawn = [array for array, _ in arrays.values()]
    style = layout(400, xaxis=axis(x_label, log_x, [x]), yaxis=axis(y_label, log_y, drawn))
    style["shapes"] = [
        *reference_lines(lines or {}, drawn=drawn),
        *reference_lines(marks or {}, vertical=True),
    ]
    words = f"{title}. Median and 10 to 90 percent band over seeds of {', '.join(arrays)} against"
    return Figure(
        id,
        title,
        caption or "Line: median over seeds. Band: 10–90 % of seeds.",
        f"{words} {x_label}.",
        {"data": traces, "layout": style},
        table,
        one_note(thinning_note(len(kept), len(x)), hidden_note(drawn, log_y)),
    )


def _guide(name: str, x: Any, y: Any) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plain(name),
        "x": short(x),
        "y": short(y),
        "line": {"color": MUTED, "width": 1.6, "dash": "dot"},
        "hoverinfo": "skip",
    }


def theory_figure(
    x: Any,
    measured: Any,
    predicted: Any,
    *,
    id: str,
    title: str,
    caption: str = "",
    y_label: str = "value",
    singles: int = MAX_RUNS,
) -> Figure:
    """Theory over measurement along the steps ``x``, and below the residual
    ``100 (measured − predicted) / |predicted|``.

    ``measured``: (seed × x); ``predicted``: (seed × x), or (x) when it is the same for all seeds.
    Both may be mappings word → array; the reader then chooses which word is shown.

    >>> figure = theory_figure([0, 1], {"good": [[1, 2.0]]}, {"good": [1, 1.0]}, id="sen", title="SEN")
    >>> figure.table["good: residual in %: seed 0"]
    [0.0, 100.0]
    """
    has_words = isinstance(measured, Mapping)
    pairs = _pairs(measured, predicted) if has_words else _pairs({"": measured}, {"": predicted})
    every = [runs for (runs, _), _ in pairs.values()]
    x = axis_values(x, every[0].shape[1], "measured")
    kept = thinned(x, len(pairs) * min(len(every[0]), singles))
    traces, table = [], {"step": short(x[kept])}
    for k, (word, ((m, seeds), (p, _))) in enumerate(pairs.items()):
        if m.shape != (len(m), len(x)) or p.shape not in {(1, len(x)), m.shape}:
            raise AttnlabError(
                f"measured is {m.shape} and predicted {p.shape}; expected both (seed × {len(x)})"
            )
        prefix = f"{word}: " if has_words else ""
        for place, series in enumerate(
            _panel(prefix, x[kept], m[:, kept], p[:, kept], seeds, singles)
        ):
            drawn = series.traces(runs_legend=place == 0)
            traces += [of_choice(trace, k) for trace in drawn] if has_words else drawn
            table |= series.columns()
    words = f"Measured {y_label} with the predicted one on the same axes, and below their"
    style = _two_panels(axis("step"), axis(y_label), "residual, %")
    return Figure(
        id=id,
        title=title,
        caption=caption
        or "Lines: median over seeds. Band: 10–90 % of measured runs. Below: the difference in % "
        "of the prediction.",
        alt=f"{title}. {words} difference in %.",
        plotly={"data": traces, "layout": style},
        table=table,
        note=thinning_note(len(kept), len(x)),
        choices=tuple(map(str, pairs)) if has_words else (),
        choice_label="Word",
    )


_Runs = tuple[np.ndarray, list[Any]]


def _pairs(measured: Mapping[str, Any], predicted: Any) -> dict[str, tuple[_Runs, _Runs]]:
    """Of each choice the measured and the predicted runs, with their seeds."""
    if not isinstance(predicted, Mapping) or set(predicted) != set(measured) or not measured:
        raise AttnlabError(
            "measured is a mapping of choices; expected predicted to be one with the same keys"
        )
    return {
        choice: (seeds_first(runs, "measured"), seeds_first(predicted[choice], "predicted"))
        for choice, runs in measured.items()
    }


def _panel(
    prefix: str,
    x: np.ndarray,
    measured: np.ndarray,
    predicted: np.ndarray,
    seeds: list[Any],
    singles: int,
) -> list[_Series]:
    """Measured, predicted and residual, in the order in which they are drawn."""
    size = np.where(predicted == 0, np.nan, np.abs(predicted))
    residual = 100 * (measured - predicted) / size
    own = seeds if len(predicted) == len(seeds) else ["all"]
    theory: dict[str, Any] = {"dash": "dash", "band": False, "singles": singles}
    below: dict[str, Any] = {"y_axis": "y2", "legend": False, "unit": " %", "singles": singles}
    return [
        _Series(f"{prefix}measured", x, measured, seeds, "step", BLUE, singles=singles),
        _Series(f"{prefix}theory", x, predicted, own, "step", VERMILLION, **theory),
        _Series(f"{prefix}residual in %", x, residual, seeds, "step", GREEN, **below),
    ]


def _two_panels(x_axis: dict[str, Any], y_axis: dict[str, Any], difference: str) -> dict[str, Any]:
    """The layout of curves above and of a difference, around a line at zero, below."""
    below = axis(difference, domain=[0, 0.27], zeroline=True, zerolinecolor=VERMILLION, nticks=5)
    return layout(
        540, xaxis=x_axis | {"anchor": "y2"}, yaxis=y_axis | {"domain": [0.36, 1]}, yaxis2=below
    )


def overlay_figure(
    measured: xr.DataArray,
    predicted: xr.DataArray,
    *,
    id: str,
    title: str,
    caption: str = "",
    y_label: str = "value",
    compared: xr.DataArray | None = None,
) -> Figure:
    """Dots measured, lines predicted, and below ``100 (predicted − measured) / |measured|``; the
    reader picks a seed. Steps are on a logarithmic axis.

    Both have the dimensions ``seed``, ``word`` and ``step``. ``compared`` says where the difference
    is drawn (where the quantity is large enough to speak of a relative error). The first seeds,
    words and some points are drawn.

    >>> import xarray as xr
    >>> s = xr.DataArray([[[1.0, 2.0]]], {"seed": [0], "word": ["w"], "step": [1, 2]}, ("seed", "word", "step"))
    >>> overlay_figure(s, s / 2, id="f", title="t").table["difference in %"]
    [-50.0, -50.0]
    """
    wanted = ("seed", "word", "step")
    for array in (measured, predicted):
        if set(array.dims) != set(wanted):
            raise AttnlabError(
                f"figure {id!r}: got the dimensions {array.dims}; expected seed, word and step"
            )
    steps = measured.step.values
    kept = thinned(steps, lines=1, log=True, most=_POINTS)
    kept = kept[steps[kept] > 0]
    part = {"seed": slice(_SEEDS), "word": slice(_WORDS), "step": kept}
    m, p = (array.transpose(*wanted).isel(part) for array in (measured, predicted))
    off = 100 * (p - m) / abs(m).where(m != 0)
    if compared is not None:
        off = off.where(compared.broadcast_like(measured).transpose(*wanted).isel(part))
    traces = [
        of_choice(trace, k)
        for k in range(m.sizes["seed"])
        for trace in _overlaid_run(m, p, off, k, y_label)
    ]
    style = _two_panels(axis("step", True, [steps[kept]]), axis(y_label), "difference, %")
    words = f"Measured {y_label} as dots, predicted as lines, below their difference in %, seed by"
    return Figure(
        id=id,
        title=title,
        caption=caption
        or "Dots: measured. Lines: predicted. Below: the difference in % of what was measured.",
        alt=f"{title}. {words} seed.",
        plotly={"data": traces, "layout": style},
        table=_overlay_table(m, p, off, y_label),
        note=_overlay_note(m, measured),
        choices=tuple(f"seed {seed}" for seed in m.seed.values),
        choice_label="Run",
    )


def _overlaid_run(
    m: xr.DataArray, p: xr.DataArray, off: xr.DataArray, k: int, y_label: str
) -> list[dict[str, Any]]:
    """The three traces of one seed, each with gaps between its words."""
    words = m.word.values.tolist()
    text = [plain(word) for word in words for _ in range(m.sizes["step"] + 1)]
    where = "<br>step %{x}<extra>%{text}</extra>"

    def trace(name: str, values: xr.DataArray, **more: Any) -> dict[str, Any]:
        y = [value for row in values.isel(seed=k).values for value in [*short(row), None]]
        x = [*short(m.step.values), None] * len(words)
        return {"type": "scatter", "x": x, "mode": "lines", "name": name, "y": y} | more

    return [
        trace("predicted", p, line={"color": VERMILLION, "width": 1.6}, hoverinfo="skip"),
        trace(
            "measured",
            m,
            mode="markers",
            marker={"color": faded(BLUE, 0.6), "size": 6, "line": {"color": BLUE, "width": 0.8}},
            text=text,
            hovertemplate=f"{plain(y_label)} %{{y:.4~g}}{where}",
        ),
        trace(
            "difference",
            off,
            yaxis="y2",
            showlegend=False,
            line={"color": faded(GREEN, 0.8), "width": 1.4},
            text=text,
            hovertemplate=f"%{{y:.3~g}} %{where}",
        ),
    ]


def _overlay_table(
    m: xr.DataArray, p: xr.DataArray, off: xr.DataArray, y_label: str
) -> dict[str, list[Any]]:
    seeds, words, steps = (m[dim].values.tolist() for dim in ("seed", "word", "step"))
    return {
        "seed": [seed for seed in seeds for _ in words for _ in steps],
        "word": [word for _ in seeds for word in words for _ in steps],
        "step": steps * (len(seeds) * len(words)),
        f"measured {y_label}": short(m.values.ravel()),
        f"predicted {y_label}": short(p.values.ravel()),
        "difference in %": short(off.values.ravel()),
    }


def _overlay_note(drawn: xr.DataArray, all_runs: xr.DataArray) -> str:
    names = {"seed": "seeds", "word": "words", "step": "recorded steps"}
    left = [
        f"{drawn.sizes[dim]} of {all_runs.sizes[dim]} {name}"
        for dim, name in names.items()
        if drawn.sizes[dim] < all_runs.sizes[dim]
    ]
    return f"{', '.join(left)} are drawn and saved." if left else ""


def stages_figure(
    stage: xr.DataArray,
    panels: Mapping[str, tuple[xr.DataArray, str]],
    *,
    id: str,
    title: str,
    names: Sequence[str],
    caption: str = "",
    alt: str = "",
) -> Figure:
    """Two quantities of a word on a logarithmic step axis, one above the other, with its stages
    shaded; the reader picks word and seed.

    ``stage`` is a number into ``names``; ``panels`` gives two quantities, the upper one first, by
    name: values and label of the axis. All have the dimensions seed, step and word.
    """
    _check_panels(stage, panels, id)
    pairs = [(s, w) for s in range(stage.sizes["seed"]) for w in range(stage.sizes["word"])]
    traces, choices = [], []
    table: dict[str, list[Any]] = {name: [] for name in ("seed", "word", "step", "phase", *panels)}
    for k, (s, w) in enumerate(pairs[:_STORIES]):
        one = stage.isel(seed=s, word=w)
        values = {name: v.isel(seed=s, word=w).values for name, (v, _) in panels.items()}
        story = _Story(one.step.values, one.values.astype(float), values, names)
        seed, word = str(one.seed.values), str(one.word.values)
        choices.append(f"{word}, seed {seed}")
        traces += [of_choice(trace, k) for trace in story.traces(choices[-1])]
        columns = {"seed": [seed] * len(story.kept), "word": [word] * len(story.kept)}
        for name, column in (columns | story.columns()).items():
            table[name] += column
    upper, lower = (label for _, label in panels.values())
    style = layout(
        520,
        xaxis=axis("step", True, [stage.step.values], anchor="y2"),
        yaxis=axis(upper, nticks=6, domain=[0.44, 1]),
        yaxis2=axis(lower, nticks=5, domain=[0, 0.38]),
        showlegend=True,
    )
    note = f"{len(choices)} of {len(pairs)} words and seeds can be chosen and are saved."
    return Figure(
        id,
        title,
        caption,
        alt or f"{title}. {upper} and {lower} of one word against step, with its stages shaded.",
        {"data": traces, "layout": style},
        table,
        note if len(choices) < len(pairs) else "",
        tuple(choices),
        choice_label="Word",
    )


def _check_panels(
    stage: xr.DataArray, panels: Mapping[str, tuple[xr.DataArray, str]], id: str
) -> None:
    if len(panels) != 2:
        raise AttnlabError(f"figure {id!r} has {len(panels)} panels; expected 2")
    named = {"stage": stage} | {name: values for name, (values, _) in panels.items()}
    for name, values in named.items():
        if not {"seed", "step", "word"} <= set(values.dims):
            raise AttnlabError(
                f"figure {id!r}: {name!r} has the dimensions {values.dims}; expected seed, step "
                "and word"
            )


class _Story:
    """One word of one seed: its stage and two quantities, step by step."""

    def __init__(
        self,
        steps: np.ndarray,
        stage: np.ndarray,
        values: Mapping[str, np.ndarray],
        names: Sequence[str],
    ):
        self.steps, self.stage, self.values, self.names = steps, stage, values, names
        kept = thinned(steps, lines=1, log=True, most=_STORY_POINTS)
        upper = next(iter(values.values()))
        self.known = (steps > 0) & np.isfinite(upper)
        self.kept = kept[self.known[kept]]
        self.words = ["" if np.isnan(k) else names[int(k)] for k in stage[self.kept]]

    def columns(self) -> dict[str, list[Any]]:
        """What is drawn, as columns."""
        columns = {
            "step": self.steps[self.kept].tolist(),
            "phase": [word or None for word in self.words],
        }
        return columns | {name: short(values[self.kept]) for name, values in self.values.items()}

    def traces(self, label: str) -> list[dict[str, Any]]:
        """Shades, their names, the two curves."""
        looks = ((BLUE, "solid"), (VERMILLION, "dash"))
        curves = []
        for panel, name, (color, dash) in zip(("y", "y2"), self.values, looks, strict=True):
            hover = f"{name} %{{y:.4~g}}<br>step %{{x}}<br>%{{text}}<extra>{plain(label)}</extra>"
            curves.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": name,
                    "line": {"color": color, "width": 2.4, "dash": dash},
                    "yaxis": panel,
                    "hovertemplate": hover,
                    "x": short(self.steps[self.kept]),
                    "y": short(self.values[name][self.kept]),
                    "text": self.words,
                }
            )
        return [*self._shades(), *curves]

    def _shades(self) -> list[dict[str, Any]]:
        """A tint for each stretch of one stage in both panels, and the stages' names above."""
        there = self.known & np.isfinite(self.stage)
        x = self.steps[there].astype(float)
        if len(x) < 2:
            return []
        spans = _spans(x, self.stage[there].astype(int))
        traces: list[dict[str, Any]] = []
        for panel, values in zip(("y", "y2"), self.values.values(), strict=True):
            low, high = float(np.nanmin(values[there])), float(np.nanmax(values[there]))
            room = 0.06 * (high - low) or 0.1
            if panel == "y":  # it has room for the stages' names
                traces += _tints(spans, self.names, (low - room, high + 3 * room), panel)
                traces.append(_stage_names(spans, self.names, high + 2 * room, x))
            else:
                traces += _tints(spans, self.names, (low - room, high + room), panel)
        return traces


_Span = tuple[float, float, int]


def _spans(x: np.ndarray, stage: np.ndarray) -> list[_Span]:
    """Stretches of one stage: from its first step to the next one's first."""
    starts = [0, *(np.flatnonzero(np.diff(stage)) + 1).tolist()]
    ends = [*starts[1:], len(x) - 1]
    return [
        (float(x[a]), float(x[b]), int(stage[a]))
        for a, b in zip(starts, ends, strict=True)
        if x[b] > x[a]
    ]


def _tints(
    spans: Sequence[_Span], names: Sequence[str], heights: tuple[float, float], panel: str
) -> list[dict[str, Any]]:
    """A tinted rectangle for each stretch; each stage stands once in the legend."""
    low, high = heights
    tints, seen = [], set()
    for start, end, stage in spans:
        tints.append(
            {
                "type": "scatter",
                "mode": "lines",
                "fill": "toself",
                "fillcolor": faded(_STAGES[stage % len(_STAGES)], 0.2),
                "line": {"width": 0},
                "showlegend": panel == "y" and stage not in seen,
                "legendgroup": names[stage],
                "name": names[stage],
                "x": short([start, start, end, end, start]),
                "y": short([low, high, high, low, low]),
                "yaxis": panel,
                "hoverinfo": "skip",
            }
        )
        seen.add(stage)
    return tints


def _stage_names(
    spans: Sequence[_Span], names: Sequence[str], height: float, x: np.ndarray
) -> dict[str, Any]:
    """The names of the stages where there is room for them; the legend has them all."""
    whole = np.log(x[-1] / x[0])
    wide = [(a, b, stage) for a, b, stage in spans if np.log(b / a) > _WIDE * whole]
    return {
        "type": "scatter",
        "mode": "text",
        "name": "phases",
        "hoverinfo": "skip",
        "showlegend": False,
        "x": short([np.sqrt(a * b) for a, b, _ in wide]),
        "y": short([height] * len(wide)),
        "text": [names[stage] for *_, stage in wide],
        "textfont": {"size": 12, "color": INK},
    }
