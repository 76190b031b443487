"""Figures of the claims of Lu, Mao and Nayak (2021) about scores and norms: the relation, its
starts and its reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from attnlab.report._bands import band_figure
from attnlab.report._chosen import chosen
from attnlab.report._heat import heat_table
from attnlab.report._page import Figure
from attnlab.report._relation import relation_figure
from attnlab.report._text import head_name, number

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_FORMS = {
    "sen_error": "plain form",
    "sen_error_corrected": "corrected for finite steps",
    "sen_error_refined": "refined",
}


def sen_relation(
    run: xr.Dataset, *, title: str = "Every word moves along one curve", caption: str = ""
) -> Figure:
    """Norm against score with the relation's curve; where each word has its own, measured against
    predicted norm.
    """
    curve = relation_curve(run["score"], run["predicted_scaled_norm"])
    if curve is not None:
        return relation_figure(
            run["score"],
            run["scaled_norm"],
            curve,
            id="sen_relation",
            title=title,
            x_label="score s",
            y_label="|q||ν|",
            caption=f"{caption} One dot per word and seed, the dashed curve is the relation; move "
            "the slider through "
            "training.".strip(),
        )
    ends = np.array(
        [
            np.nanmin(run["predicted_scaled_norm"].values),
            np.nanmax(run["predicted_scaled_norm"].values),
        ]
    )
    return relation_figure(
        run["predicted_scaled_norm"],
        run["scaled_norm"],
        (ends, ends),
        id="sen_relation",
        title="The norm that the score predicts, and the norm it is",
        x_label="|q||ν| predicted from s and |ν₀|",
        y_label="|q||ν| measured",
        caption=f"{caption} One dot per word and seed; on the dashed line both are equal. "
        "Embeddings start large, so "
        "each word has a curve of its own and the prediction is drawn instead of the "
        "score.".strip(),
    )


_BOUNDS = {"median ≤ 0.4 %": 0.4, "largest ≤ 1.5 %": 1.5}


def relation_curve(
    score: xr.DataArray, predicted: xr.DataArray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The one curve norm(score) that all predictions lie on, or None where each word's start gives
    it its own.

    >>> import xarray as xr
    >>> s = xr.DataArray([[0.0, 2.0], [0.0, 4.0]], dims=("word", "step"))
    >>> relation_curve(s, s**2)
    (array([0., 2., 4.]), array([ 0.,  4., 16.]))
    """
    start = predicted.isel(step=0).values
    x, y = score.values.ravel(), predicted.transpose(*score.dims).values.ravel()
    there = np.isfinite(x) & np.isfinite(y)
    if not there.any() or np.nanmax(np.abs(start), initial=0.0) > 0.02 * np.max(y[there]):
        return None
    x, places = np.unique(x[there], return_index=True)
    even = np.searchsorted(x, np.linspace(x[0], x[-1], 200)).clip(0, len(x) - 1)
    kept = np.unique(even)
    return x[kept], y[there][places][kept]


def sen_error_figure(
    run: xr.Dataset, *, lines: Mapping[str, float] = _BOUNDS, note: str = ""
) -> Figure:
    """The relation's error along training: each form, of the median and of the worst word, per head
    if there are.
    """
    figures = {}
    for name, form in _FORMS.items():
        if name not in run:
            continue
        for which, of in (("median word", "median"), ("worst word", "max")):
            error = 100 * getattr(run[name], of)("word")
            series = (
                {head_name(h): error.sel(head=h) for h in run["head"].values.tolist()}
                if ("head" in error.dims)
                else {which: error}
            )
            figures[f"{form}, {which}"] = band_figure(
                run["step"].values,
                series,
                id="sen_error",
                title=form,
                y_label="error of |q||ν| in %",
                log_y=True,
                lines=lines,
                singles=0,
            )
    return chosen(
        figures,
        id="sen_error",
        title="Error of the relation along training",
        choice_label="Form",
        caption="Relative error of the predicted |q||ν|, of words with s > 0.05. Line: median "
        "over seeds; band: "
        f"10–90 % of seeds. {note}Corrected: |q|²I₁ added, what descent misses of the flow. "
        "Refined: the "
        "other words' weight and context measured.",
        alt="Error of the predicted norm in percent against step, on a logarithmic axis.",
    )


def _tone(value: float, good: float, mixed: float) -> str:
    return (
        ""
        if not np.isfinite(value)
        else "good"
        if value <= good
        else "mixed"
        if value <= mixed
        else "bad"
    )


def _beyond_sen(data: Data) -> list[Figure]:
    beyond = data["beyond"]
    names = beyond["setting"].values.tolist()
    cells, tones = [], []
    for name in names:
        one = beyond.sel(setting=name)
        error = one["sen_error"].values
        error = error[np.isfinite(error)]
        marks = np.quantile(error, [0.5, 0.95, 1.0]) if len(error) else np.full(3, np.nan)
        last = one.dropna("step", how="all").isel(step=-1)
        ends = [float(last[v].median()) for v in ("accuracy_test", "loss")]
        cells.append(
            [*("–" if np.isnan(v) else f"{number(100 * v)} %" for v in marks), *map(number, ends)]
        )
        tones.append([*(_tone(float(v), 0.01, 0.05) for v in marks), "", ""])
    own = names[0]
    error = {name: 100 * beyond["sen_error"].sel(setting=name).median("word") for name in names}
    drawn = {
        name: band_figure(
            beyond["step"].values,
            {name: error[name]} | ({} if name == own else {own: error[own]}),
            id="b",
            title=name,
            y_label="error of |q||ν| in %, median word",
            log_y=True,
            lines={"1 %": 1.0, "5 %": 5.0},
            singles=0,
        )
        for name in [*names[1:], own]
    }
    return [
        heat_table(
            names,
            ["median error", "95 %", "largest", "final test accuracy", "final loss"],
            cells,
            id="beyond_table",
            title="Where the relation survives",
            tones=tones,
            caption="Relative error of the predicted |q||ν| over words with s > 0.05, all steps "
            "and seeds; accuracy "
            "and loss are medians over seeds. Kept: at most 1 %, in part: at most 5 %, else "
            "broken.",
        ),
        chosen(
            drawn,
            id="beyond_error",
            title="Error along training, beside the paper's setting",
            choice_label="Setting",
            caption="Line: median over seeds; band: 10–90 % of seeds.",
            alt="Error of the relation in percent against step, on a logarithmic axis.",
        ),
    ]


RELATION: dict[str, Callable[[Data], list[Figure]]] = {
    "lu2021.beyond_sen": _beyond_sen,
}
