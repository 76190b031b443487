"""The story of one word: its score and norm against step, with the phases shaded and named."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._heat import heat_table
from attnlab.report._page import Figure
from attnlab.report._palette import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, VERMILLION, faded
from attnlab.report._prepare import axis, layout, of_choice, short, thinned
from attnlab.report._text import number, plain

if TYPE_CHECKING:
    import xarray as xr

PHASES = ("suppressed", "waiting", "rising", "saturated")
_COLORS = (PURPLE, MUTED, ORANGE, GREEN)
_CHOICES, _POINTS, _ROWS = 24, 80, 16


def phase_figure(
    data: xr.Dataset,
    *,
    id: str,
    title: str,
    caption: str = "",
    alt: str = "",
    names: Sequence[str] = PHASES,
) -> Figure:
    """One word's score (above) and norm (below) on a logarithmic step axis; the reader picks word
    and seed.

    ``data``: ``score``, ``norm`` and ``phase`` (a number into ``names``) with the dimensions seed,
    step, word.
    """
    for name in ("score", "norm", "phase"):
        if name not in data or not {"seed", "step", "word"} <= set(data[name].dims):
            raise AttnlabError(
                f"figure {id!r} needs {name!r} with the dimensions seed, step and word"
            )
    pairs = [(s, w) for s in range(data.sizes["seed"]) for w in range(data.sizes["word"])]
    drawn = pairs[:_CHOICES]
    traces, choices = [], []
    table: dict[str, list[Any]] = {
        "seed": [],
        "word": [],
        "step": [],
        "phase": [],
        "score": [],
        "norm": [],
    }
    for k, (s, w) in enumerate(drawn):
        one = data.isel(seed=s, word=w)
        seed, word = str(one.seed.values), str(one.word.values)
        traces += [of_choice(trace, k) for trace in _story(one, names, f"{word}, seed {seed}")]
        choices.append(f"{word}, seed {seed}")
        steps, phase = _kept(one)
        table["seed"] += [seed] * len(steps)
        table["word"] += [word] * len(steps)
        table["step"] += one.step.values[steps].tolist()
        table["phase"] += [None if np.isnan(v) else names[int(v)] for v in phase]
        table["score"] += short(one.score.values[steps])
        table["norm"] += short(one.norm.values[steps])
    style = layout(
        520,
        xaxis=axis("step", True, [data.step.values], anchor="y2"),
        yaxis=axis("score s", nticks=6),
    )
    style["yaxis"]["domain"], style["yaxis2"] = (
        [0.44, 1],
        axis("norm |ν|", domain=[0, 0.38], nticks=5),
    )
    style["showlegend"] = True
    note = (
        f"{len(drawn)} of {len(pairs)} words and seeds can be chosen and are saved."
        if len(drawn) < len(pairs)
        else ""
    )
    caption = caption or (
        "Suppressed: the score falls first. Waiting: it is small still. Rising: it has reached "
        "the onset. Saturated: "
        "it grows at half of its fastest pace in log time, or slower. The axis begins at the "
        "first recorded step."
    )
    alt = alt or f"{title}. Score and norm of one word against step, with its phases shaded."
    return Figure(
        id,
        title,
        caption,
        alt,
        {"data": traces, "layout": style},
        table,
        note,
        tuple(choices),
        choice_label="Word",
    )


def _kept(one: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Places of the steps that are drawn, and the phase at each."""
    steps = one.step.values
    kept = thinned(steps, lines=1, log=True, most=_POINTS)
    kept = kept[(steps[kept] > 0) & np.isfinite(one.score.values[kept])]
    return kept, one.phase.values[kept].astype(float)


def _story(one: xr.Dataset, names: Sequence[str], label: str) -> list[dict[str, Any]]:
    """Shades, their names, the two curves."""
    steps = one.step.values.astype(float)
    there = (steps > 0) & np.isfinite(one.phase.values) & np.isfinite(one.score.values)
    traces: list[dict[str, Any]] = []
    x = steps[there]
    if len(x) > 1:
        spans = _spans(x, one.phase.values[there].astype(int))
        for panel, quantity in (("y", "score"), ("y2", "norm")):
            values = one[quantity].values[there]
            low, high = float(np.nanmin(values)), float(np.nanmax(values))
            room = 0.06 * (high - low) or 0.1
            shades = _shades(
                spans, names, (low - room, high + (3 if panel == "y" else 1) * room), panel
            )
            traces += [
                *shades,
                *([_titles(spans, names, high + 2 * room, x)] if panel == "y" else []),
            ]
    kept, phase = _kept(one)
    said = ["" if np.isnan(v) else names[int(v)] for v in phase]
    for panel, quantity, color in (("y", "score", BLUE), ("y2", "norm", VERMILLION)):
        hover = f"{quantity} %{{y:.4~g}}<br>step %{{x}}<br>%{{text}}<extra>{plain(label)}</extra>"
        line = {"color": color, "width": 2.4, "dash": "solid" if panel == "y" else "dash"}
        data = {
            "x": short(one.step.values[kept]),
            "y": short(one[quantity].values[kept]),
            "text": said,
        }
        look = {
            "mode": "lines",
            "name": quantity,
            "line": line,
            "yaxis": panel,
            "hovertemplate": hover,
        }
        traces.append({"type": "scatter"} | look | data)
    return traces


def _spans(x: np.ndarray, phase: np.ndarray) -> list[tuple[float, float, int]]:
    """Stretches of one phase: from its first step to the next one's first."""
    starts = [0, *(np.flatnonzero(np.diff(phase)) + 1).tolist()]
    ends = [*starts[1:], len(x) - 1]
    return [
        (float(x[a]), float(x[b]), int(phase[a]))
        for a, b in zip(starts, ends, strict=True)
        if x[b] > x[a]
    ]


def _shades(
    spans: Any, names: Sequence[str], heights: tuple[float, float], panel: str
) -> list[dict[str, Any]]:
    shades, seen = [], set()
    for start, end, phase in spans:
        color = _COLORS[phase % len(_COLORS)]
        x, y = (
            [start, start, end, end, start],
            [heights[0], heights[1], heights[1], heights[0], heights[0]],
        )
        look = {
            "fill": "toself",
            "fillcolor": faded(color, 0.2),
            "line": {"width": 0},
            "mode": "lines",
        }
        legend = {
            "showlegend": panel == "y" and phase not in seen,
            "legendgroup": names[phase],
            "name": names[phase],
        }
        seen.add(phase)
        place = {"x": short(x), "y": short(y), "yaxis": panel, "hoverinfo": "skip"}
        shades.append({"type": "scatter"} | look | legend | place)
    return shades


def _titles(spans: Any, names: Sequence[str], height: float, x: np.ndarray) -> dict[str, Any]:
    """The names of the phases above the curve, where there is room for them; the legend has them
    all.
    """
    whole = np.log(x[-1] / x[0])
    wide = [(a, b, phase) for a, b, phase in spans if np.log(b / a) > 0.24 * whole]
    place = {"x": short([np.sqrt(a * b) for a, b, _ in wide]), "y": short([height] * len(wide))}
    text = {"text": [names[phase] for *_, phase in wide], "textfont": {"size": 12, "color": INK}}
    look = {
        "type": "scatter",
        "mode": "text",
        "hoverinfo": "skip",
        "showlegend": False,
        "name": "phases",
    }
    return look | place | text


def phase_table(data: xr.Dataset, *, id: str, title: str, caption: str = "") -> Figure:
    """Every word's phases over the seeds: how often it is suppressed, when it sets off and when it
    saturates.
    """
    words = data.word.values.tolist()
    cells = []
    for word in words[:_ROWS]:
        one = data.sel(word=word)
        dips = int(one.suppressed_until.notnull().sum())
        cells.append(
            [
                f"{dips} of {one.sizes['seed']}",
                number(float(one.depth.min())) if dips else "–",
                _middle(one.onset),
                _middle(one.saturation),
                _middle(one.score.isel(step=-1)),
            ]
        )
    columns = [
        "seeds in which it is first suppressed",
        "lowest score, change from the start",
        "sets off at step",
        "saturates at step",
        "final score",
    ]
    tones = [[""] * len(columns) for _ in cells]
    caption = (
        caption
        or "Medians over seeds, in brackets the smallest and largest; a dash: it did not happen."
    )
    figure = heat_table(
        [str(w) for w in words[:_ROWS]],
        columns,
        cells,
        id=id,
        title=title,
        tones=tones,
        caption=caption,
    )
    note = f"{_ROWS} of {len(words)} words are shown; all are saved." if len(words) > _ROWS else ""
    return dataclasses.replace(figure, table=_every(data), note=note)


def _middle(values: xr.DataArray) -> str:
    known = values.values[np.isfinite(values.values)]
    if not len(known):
        return "–"
    middle = number(float(np.median(known)))
    missing = values.size - len(known)
    span = (
        f" [{number(float(known.min()))}, {number(float(known.max()))}]" if len(known) > 1 else ""
    )
    return middle + span + (f", not in {missing}" if missing else "")


def _every(data: xr.Dataset) -> dict[str, list[Any]]:
    """All words of all seeds."""
    names = {
        "suppressed_until": "suppressed until step",
        "depth": "lowest score, change from the start",
        "onset": "sets off at step",
        "saturation": "saturates at step",
    }
    seeds, words = data.seed.values.tolist(), data.word.values.tolist()
    table = {
        "seed": [s for s in seeds for _ in words],
        "word": [str(w) for _ in seeds for w in words],
    }
    columns = {
        label: short(data[name].transpose("seed", "word").values.ravel())
        for name, label in names.items()
    }
    return table | columns
