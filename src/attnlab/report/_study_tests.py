"""Two tests of what attention means, on a study's page: words removed, and the score–norm relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._page import Figure
from attnlab.report._palette import PAPER, SERIES, SYMBOLS
from attnlab.report._prepare import axis, layout, short
from attnlab.report._scatter import scatter_figure
from attnlab.report._study_parts import counted, percent, quoted, shortened
from attnlab.report._text import interval

if TYPE_CHECKING:
    import xarray as xr

_REMOVED = {"top": "the top-attended word", "other": "a random other word"}
_SHORT = ("top-attended", "random other")  # for labels, which a phone must hold
_WORST = 5


def deletion_figure(deletion: xr.Dataset, *, id: str) -> Figure:
    """How often the prediction flips when a word is removed: the top-attended one against a random
    other one.
    """
    rows = [
        (words, *(float(deletion[f"{name}{end}"]) for end in ("", "_low", "_high")))
        for name, words in _REMOVED.items()
    ]
    highest = max(
        [value for _, *values in rows for value in values if np.isfinite(value)], default=1.0
    )
    style = layout(
        130 + 52 * len(rows), xaxis=axis("share of predictions that flip", tickformat=".0~%")
    )
    style["xaxis"]["range"] = [0, 1.1 * highest or 1.0]
    style["yaxis"] = {"range": [len(rows) - 0.4, -0.9], "visible": False, "fixedrange": True}
    style["margin"]["l"] = 18
    style["annotations"] = [_label(k, *row[1:]) for k, row in enumerate(rows)]
    style["showlegend"] = False
    tested, left = (
        int(deletion[name]) if name in deletion else 0 for name in ("sentences", "left_out")
    )
    one = f" {counted(left)} of one known word are left out." if left else ""
    table: dict[str, list[Any]] = {"removed": [words for words, *_ in rows]}
    table |= {
        name: short([row[k] for row in rows]) for k, name in enumerate(("flips", "low", "high"), 1)
    }
    said = "; ".join(f"{words}: {_bounded(value, low, high)}" for words, value, low, high in rows)
    return Figure(
        id,
        "Does removing a word flip the prediction?",
        f"{counted(tested)} test texts, each without all occurrences of one word.{one} Bars: 95 % "
        "intervals. If "
        "attention meant nothing, both would flip as often.",
        f"Share of predictions that flip without a word. {said}.",
        {"data": [_mark(k, *row) for k, row in enumerate(rows)], "layout": style},
        table,
    )


def _mark(k: int, words: str, value: float, low: float, high: float) -> dict[str, Any]:
    color = SERIES[k % 7]
    ends = {"array": short([high - value]), "arrayminus": short([value - low])}
    bar = {"type": "data", "symmetric": False, "color": color, "thickness": 2, "width": 5} | ends
    marker = {"color": color, "size": 11, "symbol": SYMBOLS[k % 7]}
    hover = f"without {words}: %{{x:.3~p}}<extra></extra>"
    data = {
        "x": short([value]),
        "y": [k + 0.16],
        "error_x": bar,
        "marker": marker,
        "hovertemplate": hover,
    }
    return {"type": "scatter", "mode": "markers", "name": words} | data


def _bounded(value: float, low: float, high: float) -> str:
    return f"{percent(value)} {interval((100 * low, 100 * high))}"


def _label(k: int, value: float, low: float, high: float) -> dict[str, Any]:
    text = f"<b>{_SHORT[k]}</b>   {_bounded(value, low, high)}"
    where = {
        "xref": "x domain",
        "x": 0,
        "xanchor": "left",
        "y": k - 0.2,
        "yanchor": "middle",
        "showarrow": False,
    }
    return where | {"text": text, "font": {"size": 13}, "bgcolor": PAPER}


def sen_figure(sen: xr.Dataset, *, id: str) -> Figure:
    """Measured |q||ν| against the one predicted from the score, with the diagonal; the worst words
    are named.
    """
    import xarray as xr

    words = [shortened(word) for word in sen["word"].values]
    x, y = (
        xr.DataArray(sen[name].values.astype(float), {"word": words}, ("word",))
        for name in ("predicted_scaled_norm", "scaled_norm")
    )
    error = np.abs(sen["sen_error"].values.astype(float))
    known = np.flatnonzero(np.isfinite(error))
    worst = known[np.argsort(-error[known], kind="stable")][:_WORST]
    said = "No word's score is high enough to be compared."
    if known.size:
        listed = ", ".join(f"{quoted([words[k]])} {percent(error[k])}" for k in worst)
        said = f"Half of the words are within {percent(np.median(error[known]))}. Worst: {listed}."
    return scatter_figure(
        {"words": (x, y)},
        id=id,
        title="The score–norm relation on these words",
        identity=True,
        x_label="predicted |q||ν|, from the score alone",
        y_label="measured |q||ν|",
        caption="Theory: s + (e^s − 1)/m = ½|q|²(|ν|² − |ν₀|²), with m the mean number of other "
        "words beside the word. "
        f"On the dotted line theory is exact. {said}",
    )
