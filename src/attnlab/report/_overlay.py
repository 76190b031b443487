"""A prediction drawn over what happened, run by run: all words of one run, and how far theory is
off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import BLUE, GREEN, VERMILLION, faded
from attnlab.report._prepare import axis, layout, of_choice, short, thinned
from attnlab.report._text import plain

if TYPE_CHECKING:
    import xarray as xr

_SEEDS, _LINES, _POINTS = 6, 12, 40


def overlay_figure(
    measured: xr.DataArray,
    predicted: xr.DataArray,
    *,
    id: str,
    title: str,
    caption: str = "",
    alt: str = "",
    x_label: str = "step",
    y_label: str = "value",
    compared: xr.DataArray | None = None,
    log_x: bool = True,
) -> Figure:
    """Dots measured, lines predicted, and below ``100 (predicted − measured) / |measured|``; the
    reader picks a seed.

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
    m, p = measured.transpose(*wanted), predicted.transpose(*wanted)
    counts = m.sizes
    steps = m.step.values
    kept = thinned(steps, lines=1, log=log_x, most=_POINTS)
    kept = kept[(steps[kept] > 0) | (not log_x)]
    part = {"seed": slice(_SEEDS), "word": slice(_LINES), "step": kept}
    m, p = m.isel(part), p.isel(part)
    off = 100 * (p - m) / abs(m).where(m != 0)
    if compared is not None:
        off = off.where(compared.broadcast_like(measured).transpose(*wanted).isel(part))
    traces = [
        of_choice(trace, k)
        for k in range(m.sizes["seed"])
        for trace in _run(m, p, off, k, x_label, y_label)
    ]
    style = layout(
        540,
        xaxis=axis(x_label, log_x, [steps[kept]], anchor="y2"),
        yaxis=axis(y_label, domain=[0.36, 1]),
    )
    style["yaxis2"] = axis(
        "difference, %", domain=[0, 0.27], zeroline=True, zerolinecolor=VERMILLION, nticks=5
    )
    alt = (
        alt
        or f"{title}. Measured {y_label} as dots, predicted as lines, below their difference in "
        "%, seed by seed."
    )
    caption = (
        caption
        or "Dots: measured. Lines: predicted. Below: the difference in % of what was measured."
    )
    return Figure(
        id=id,
        title=title,
        caption=caption,
        alt=alt,
        plotly={"data": traces, "layout": style},
        table=_table(m, p, off, x_label, y_label),
        note=_note(dict(m.sizes), {str(k): v for k, v in counts.items()}),
        choices=tuple(f"seed {seed}" for seed in m.seed.values),
        choice_label="Run",
    )


def _run(
    m: xr.DataArray, p: xr.DataArray, off: xr.DataArray, k: int, x_label: str, y_label: str
) -> list[Any]:
    """The three traces of one seed, each with gaps between its words."""
    words = m.word.values.tolist()
    x = [*short(m.step.values), None] * len(words)
    text = [plain(word) for word in words for _ in range(m.sizes["step"] + 1)]

    def joined(values: xr.DataArray) -> list[Any]:
        return [v for row in values.isel(seed=k).values for v in [*short(row), None]]

    shape = f"<br>{plain(x_label)} %{{x}}<extra>%{{text}}</extra>"
    marker = {"color": faded(BLUE, 0.6), "size": 6, "line": {"color": BLUE, "width": 0.8}}
    theory = {"color": VERMILLION, "width": 1.6}
    common = {"type": "scatter", "x": x}
    return [
        common
        | {
            "mode": "lines",
            "name": "predicted",
            "y": joined(p),
            "line": theory,
            "hoverinfo": "skip",
        },
        common
        | {
            "mode": "markers",
            "name": "measured",
            "y": joined(m),
            "marker": marker,
            "text": text,
            "hovertemplate": f"{plain(y_label)} %{{y:.4~g}}{shape}",
        },
        common
        | {
            "mode": "lines",
            "name": "difference",
            "y": joined(off),
            "yaxis": "y2",
            "showlegend": False,
            "line": {"color": faded(GREEN, 0.8), "width": 1.4},
            "text": text,
            "hovertemplate": f"%{{y:.3~g}} %{shape}",
        },
    ]


def _table(
    m: xr.DataArray, p: xr.DataArray, off: xr.DataArray, x_label: str, y_label: str
) -> dict[str, list[Any]]:
    seeds, words, steps = (m[d].values for d in ("seed", "word", "step"))
    grid = np.meshgrid(
        np.arange(len(seeds)), np.arange(len(words)), np.arange(len(steps)), indexing="ij"
    )
    return {
        "seed": seeds[grid[0].ravel()].tolist(),
        "word": words[grid[1].ravel()].tolist(),
        x_label: steps[grid[2].ravel()].tolist(),
        f"measured {y_label}": short(m.values.ravel()),
        f"predicted {y_label}": short(p.values.ravel()),
        "difference in %": short(off.values.ravel()),
    }


def _note(drawn: dict[Any, int], there: dict[str, int]) -> str:
    names = {"seed": "seeds", "word": "words", "step": "recorded steps"}
    said = [f"{drawn[d]} of {there[d]} {name}" for d, name in names.items() if drawn[d] < there[d]]
    return f"{', '.join(said)} are drawn and saved." if said else ""
