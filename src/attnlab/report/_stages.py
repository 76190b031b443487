"""Two quantities of one thing against step, one above the other, with its stages shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, VERMILLION, faded
from attnlab.report._prepare import axis, layout, of_choice, short, thinned
from attnlab.report._text import plain

if TYPE_CHECKING:
    import xarray as xr

_COLORS = (PURPLE, MUTED, ORANGE, GREEN)
_LINES = ((BLUE, "solid"), (VERMILLION, "dash"))
_CHOICES, _POINTS = 24, 80
_WIDE = 0.24  # a stage's name is written above it if it takes this share of the axis


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
    """Two quantities of a word on a logarithmic step axis; the reader picks word and seed.

    ``stage`` is a number into ``names``; ``panels`` gives two quantities, the upper one first, by
    name: values and label of the axis. All have the dimensions seed, step and word.
    """
    if len(panels) != 2:
        raise AttnlabError(f"figure {id!r} has {len(panels)} panels; expected 2")
    for name, values in {"stage": stage, **{k: v for k, (v, _) in panels.items()}}.items():
        if not {"seed", "step", "word"} <= set(values.dims):
            raise AttnlabError(
                f"figure {id!r}: {name!r} has the dimensions {values.dims}; expected seed, step "
                "and word"
            )
    pairs = [(s, w) for s in range(stage.sizes["seed"]) for w in range(stage.sizes["word"])]
    drawn = pairs[:_CHOICES]
    traces, choices = [], []
    table: dict[str, list[Any]] = {name: [] for name in ("seed", "word", "step", "phase", *panels)}
    for k, (s, w) in enumerate(drawn):
        one = stage.isel(seed=s, word=w)
        values = {name: v.isel(seed=s, word=w).values for name, (v, _) in panels.items()}
        seed, word = str(one.seed.values), str(one.word.values)
        label = f"{word}, seed {seed}"
        story = _Story(one.step.values, one.values.astype(float), values, names)
        traces += [of_choice(trace, k) for trace in story.traces(label)]
        choices.append(label)
        kept = story.kept
        table["seed"] += [seed] * len(kept)
        table["word"] += [word] * len(kept)
        table["step"] += story.steps[kept].tolist()
        table["phase"] += [said or None for said in story.words]
        for name in panels:
            table[name] += short(values[name][kept])
    upper, lower = (label for _, label in panels.values())
    style = layout(
        520,
        xaxis=axis("step", True, [stage.step.values], anchor="y2"),
        yaxis=axis(upper, nticks=6, domain=[0.44, 1]),
        yaxis2=axis(lower, nticks=5, domain=[0, 0.38]),
        showlegend=True,
    )
    note = f"{len(drawn)} of {len(pairs)} words and seeds can be chosen and are saved."
    return Figure(
        id,
        title,
        caption,
        alt or f"{title}. {upper} and {lower} of one word against step, with its stages shaded.",
        {"data": traces, "layout": style},
        table,
        note if len(drawn) < len(pairs) else "",
        tuple(choices),
        choice_label="Word",
    )


class _Story:
    """One word of one seed."""

    def __init__(
        self,
        steps: np.ndarray,
        stage: np.ndarray,
        values: Mapping[str, np.ndarray],
        names: Sequence[str],
    ):
        self.steps, self.stage, self.values, self.names = steps, stage, values, names
        kept = thinned(steps, lines=1, log=True, most=_POINTS)
        upper = next(iter(values.values()))
        self.known = (steps > 0) & np.isfinite(upper)
        self.kept = kept[self.known[kept]]
        self.words = ["" if np.isnan(k) else names[int(k)] for k in stage[self.kept]]

    def traces(self, label: str) -> list[dict[str, Any]]:
        """Shades, their names, the two curves."""
        traces: list[dict[str, Any]] = []
        there = self.known & np.isfinite(self.stage)
        x = self.steps[there].astype(float)
        if len(x) > 1:
            spans = _spans(x, self.stage[there].astype(int))
            for panel, values in zip(("y", "y2"), self.values.values(), strict=True):
                low, high = float(np.nanmin(values[there])), float(np.nanmax(values[there]))
                room = 0.06 * (high - low) or 0.1
                # The upper panel has room for the stages' names.
                top = high + (3 if panel == "y" else 1) * room
                traces += _shades(spans, self.names, (low - room, top), panel)
                if panel == "y":
                    traces.append(_titles(spans, self.names, high + 2 * room, x))
        for panel, name, (color, dash) in zip(("y", "y2"), self.values, _LINES, strict=True):
            hover = f"{name} %{{y:.4~g}}<br>step %{{x}}<br>%{{text}}<extra>{plain(label)}</extra>"
            traces.append(
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
        return traces


def _spans(x: np.ndarray, stage: np.ndarray) -> list[tuple[float, float, int]]:
    """Stretches of one stage: from its first step to the next one's first."""
    starts = [0, *(np.flatnonzero(np.diff(stage)) + 1).tolist()]
    ends = [*starts[1:], len(x) - 1]
    return [
        (float(x[a]), float(x[b]), int(stage[a]))
        for a, b in zip(starts, ends, strict=True)
        if x[b] > x[a]
    ]


def _shades(
    spans: Sequence[tuple[float, float, int]],
    names: Sequence[str],
    heights: tuple[float, float],
    panel: str,
) -> list[dict[str, Any]]:
    """A tinted rectangle for each stretch; each stage stands once in the legend."""
    low, high = heights
    shades, seen = [], set()
    for start, end, stage in spans:
        shades.append(
            {
                "type": "scatter",
                "mode": "lines",
                "fill": "toself",
                "fillcolor": faded(_COLORS[stage % len(_COLORS)], 0.2),
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
    return shades


def _titles(
    spans: Sequence[tuple[float, float, int]], names: Sequence[str], height: float, x: np.ndarray
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
