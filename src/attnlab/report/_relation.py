"""Score against norm with the predicted curve, moved through training by a time slider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._palette import BLUE, VERMILLION, faded
from attnlab.report._prepare import axis, labels_of, layout, short, thinned
from attnlab.report._text import plain

if TYPE_CHECKING:
    pass

_MAX_FRAMES = 32
_MAX_DOTS = 240


def relation_figure(
    score: Any,
    norm: Any,
    predicted: tuple[Any, Any],
    *,
    id: str,
    title: str,
    steps: Any = None,
    labels: Sequence[str] | None = None,
    caption: str = "",
    alt: str = "",
    x_label: str = "score",
    y_label: str = "norm",
) -> Figure:
    """One dot per word and seed at (score, norm), the curve ``predicted = (scores, norms)`` and a
    slider over steps.

    ``score`` and ``norm``: (step × …), as labelled arrays with the dimensions ``step``, ``word``,
    ``seed`` in any order, or as plain arrays with the steps first and one ``labels`` entry per dot.

    >>> figure = relation_figure([[0, 0], [1, 2.0]], [[0, 0], [1, 1.5]], ([0, 2], [0, 1.5]), id="r", title="R")
    >>> [frame["name"] for frame in figure.plotly["frames"]]
    ['0', '1']
    """
    x, times, names = _steps_first(score, steps, labels)
    y, _, _ = _steps_first(norm, steps, labels)
    if x.shape != y.shape or len(names) != x.shape[1] or len(times) != len(x):
        raise AttnlabError(
            f"score is {x.shape} (step × dot), norm {y.shape}, with {len(times)} steps and "
            f"{len(names)} labels; "
            "expected the same shape, one step for each row and one label for each dot"
        )
    dots = np.unique(
        np.round(np.linspace(0, x.shape[1] - 1, min(x.shape[1], _MAX_DOTS))).astype(int)
    )
    moments = np.unique(np.round(np.linspace(0, len(x) - 1, min(len(x), _MAX_FRAMES))).astype(int))
    shown, names = (x[moments][:, dots], y[moments][:, dots]), [names[k] for k in dots]
    frames = [
        {"name": str(times[k]), "data": [{"x": short(a), "y": short(b)}], "traces": [0]}
        for k, a, b in zip(moments, *shown, strict=True)
    ]
    table = {
        "step": [step for k in moments for step in [times[k]] * len(dots)],
        "label": names * len(moments),
        x_label: short(shown[0].ravel()),
        y_label: short(shown[1].ravel()),
    }
    curve = np.asarray(predicted[0], dtype=float), np.asarray(predicted[1], dtype=float)
    traces = [_dots(*shown, names, x_label, y_label), _curve(*curve)]
    style = layout(
        460,
        xaxis=axis(x_label, range=_span(x, curve[0])),
        yaxis=axis(y_label, range=_span(y, curve[1])),
    )
    left = (
        "" if len(dots) == x.shape[1] else f"{len(dots)} of {x.shape[1]} dots are drawn and saved. "
    )
    left += (
        ""
        if len(moments) == len(x)
        else f"{len(moments)} of {len(x)} recorded steps are on the slider and saved."
    )
    alt = (
        alt
        or f"{title}. {y_label} against {x_label} of every word and seed, with the predicted "
        "curve, over training."
    )
    caption = (
        caption
        or "Each dot is a word in one run; the dashed curve is the prediction. Move the slider "
        "through training."
    )
    return Figure(
        id,
        title,
        caption,
        alt,
        {"data": traces, "layout": style, "frames": frames},
        table,
        left.strip(),
    )


def _steps_first(
    values: Any, steps: Any, labels: Sequence[str] | None
) -> tuple[np.ndarray, list[Any], list[str]]:
    """An array (step × dot), the steps, and a label for each dot."""
    if hasattr(values, "dims"):
        if "step" not in values.dims:
            raise AttnlabError(
                f"the labelled array has the dimensions {values.dims}; expected one to be 'step'"
            )
        values = values.transpose("step", ...)
        names = labels_of(values, values.dims[1:])
        array = np.asarray(values.values, dtype=float).reshape(values.shape[0], -1)
        return array, values["step"].values.tolist(), list(labels) if labels else names
    array = np.asarray(values, dtype=float)
    array = array.reshape(len(array), -1)
    times = list(range(len(array))) if steps is None else np.asarray(steps).tolist()
    return array, times, list(labels) if labels else [f"dot {k}" for k in range(array.shape[1])]


def _curve(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    kept = thinned(x, lines=1)
    line = {"color": VERMILLION, "width": 2.4, "dash": "dash"}
    data = {"x": short(x[kept]), "y": short(y[kept])}
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "theory",
        "line": line,
        "hoverinfo": "skip",
    } | data


def _dots(
    x: np.ndarray, y: np.ndarray, names: list[str], x_label: str, y_label: str
) -> dict[str, Any]:
    marker = {
        "color": faded(BLUE, 0.55),
        "size": 8,
        "symbol": "circle",
        "line": {"color": BLUE, "width": 1},
    }
    hover = (
        f"%{{text}}<br>{plain(x_label)} %{{x:.4~g}}<br>{plain(y_label)} %{{y:.4~g}}<extra></extra>"
    )
    data = {
        "x": short(x[-1]),
        "y": short(y[-1]),
        "text": [plain(name) for name in names],
        "marker": marker,
        "hovertemplate": hover,
    }
    return {"type": "scatter", "mode": "markers", "name": "measured"} | data


def _span(*values: np.ndarray) -> list[float]:
    """One range for all steps, so that the axes stand still while the dots move."""
    every = np.concatenate([array[np.isfinite(array)].ravel() for array in values])
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    room = 0.05 * (high - low) or 1.0
    return [low - room, high + room]
