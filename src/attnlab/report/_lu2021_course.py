"""Figures of the claims of Lu, Mao and Nayak (2021) about the course of training: its end, its
rate, its theory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from attnlab.report._bands import band_figure
from attnlab.report._chosen import chosen
from attnlab.report._histogram import histogram_figure
from attnlab.report._overlay import overlay_figure
from attnlab.report._page import Figure
from attnlab.report._scatter import scatter_figure
from attnlab.report._text import head_name, number

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_LEAST = 0.05  # scores from which a relative error is spoken of
_SINGLES = 8
_BAND = "Line: median over seeds; band: 10–90 % of seeds."


def endings_figures(endings: xr.Dataset, *, prefix: str, title: str) -> list[Figure]:
    """Final scores and norms of topic words and of all others, over each other; per head if there
    are several.
    """
    heads = endings["head"].values.tolist() if "head" in endings.dims else [None]
    topical = endings["topical"].values.astype(bool)
    figures = {}
    for quantity, label in (("final_score", "final score s"), ("final_norm", "final norm |ν|")):
        for head in heads:
            values = endings[quantity] if head is None else endings[quantity].sel(head=head)
            values = values.transpose(..., "any_word")
            groups = {
                "other words": values.isel(any_word=~topical),
                "topic words": values.isel(any_word=topical),
            }
            name = label if head is None else f"{label}, {head_name(head)}"
            figures[name] = histogram_figure(groups, id="h", title=name, x_label=label, log_y=True)
    return [
        chosen(
            figures,
            id=f"{prefix}_endings",
            title=title,
            choice_label="Show",
            caption="Share of topic words and of all other words, all seeds together, in common "
            "bins. The axis is "
            "logarithmic, so that a single word among many thousands is seen.",
            alt="Overlaid histograms of the final scores or norms of topic words and of other "
            "words.",
        )
    ]


def far_figures(far: xr.Dataset, *, prefix: str, titles: tuple[str, str, str]) -> list[Figure]:
    """Loss, scores and attention to far times, against what theory says of the limit; per head if
    there are several.
    """
    time = far["time"].values.astype(float)
    far, time = far.isel(time=time > 0), time[time > 0]
    loss, score, attention = (_by_head(far[name]) for name in ("loss", "score", "attention"))
    label, end = "time τ (step × step size)", _power(float(time[-1]))
    late = time[time >= 1e3]
    slope = {"slope −1": (late, 0.2 * _last(loss) * time[-1] / late)} if time[-1] >= 1e6 else None
    figures = [
        band_figure(
            time,
            loss,
            id=f"{prefix}_loss",
            title=titles[0],
            x_label=label,
            y_label="loss",
            log_x=True,
            log_y=True,
            singles=_SINGLES,
            guides=slope,
            caption=f"The reduced model. {_BAND}",
        ),
        band_figure(
            time,
            attention,
            id=f"{prefix}_attention",
            title=titles[2],
            log_x=True,
            lines={"": 1.0},
            x_label=label,
            y_label="attention on the topic word",
            singles=_SINGLES,
            caption=f"Mean over the topic words. Followed to τ = {end}. {_BAND}",
        ),
    ]
    if time[-1] >= 1e6:
        far_on = time >= 10
        doubly = np.log(np.log(time[far_on]))
        marks = {f"τ = {_power(t)}": float(np.log(np.log(t))) for t in (1e3, 1e9) if t < time[-1]}
        figures.insert(
            1,
            band_figure(
                doubly,
                {k: v.isel(time=far_on) for k, v in score.items()},
                id=f"{prefix}_score",
                marks=marks,
                title=titles[1],
                x_label="log log τ (natural logarithms)",
                y_label="score s, mean of the topic words",
                singles=_SINGLES,
                guides={"slope 2": (doubly, _last(score) + 2 * (doubly - doubly[-1]))},
                caption="A straight line is doubly logarithmic growth; the guide ends at the "
                f"first median. {_BAND}",
            ),
        )
    return figures


def _power(value: float) -> str:
    return number(value).removeprefix("1 × ")


def _by_head(values: xr.DataArray) -> dict[str, xr.DataArray]:
    """The mean over words, of each head if there are several."""
    mean = values.mean("word") if "word" in values.dims else values
    if "head" not in mean.dims:
        return {"reduced model": mean}
    return {head_name(h): mean.sel(head=h, drop=True) for h in mean["head"].values.tolist()}


def _last(series: dict[str, xr.DataArray]) -> float:
    """The median over seeds at the last time, of the first series."""
    return float(next(iter(series.values())).isel(time=-1).median())


def reduced_figures(run: xr.Dataset, *, prefix: str) -> list[Figure]:
    """Theory's trajectory over training's, its error along training, and onset predicted against
    onset measured.
    """
    score, large = run["score"], run["score"] > _LEAST
    error = (
        run["score_error"]
        if "score_error" in run
        else abs(run["predicted_score"] - score) / score.where(large)
    )
    series = {"median word": 100 * error.median("word"), "worst word": 100 * error.max("word")}
    figures = [
        overlay_figure(
            score,
            run["predicted_score"],
            id=f"{prefix}_overlay",
            y_label="score s",
            compared=large,
            title="Predicted before training, and what training did",
            caption="One run at a time: dots are the measured scores of its topic words, lines "
            "the reduced model's "
            "prediction from the start alone. Below, the difference in % of the measured, if s > "
            f"{_LEAST}.",
        ),
        band_figure(
            run["step"].values,
            series,
            id=f"{prefix}_error",
            title="Error of the prediction along training",
            y_label="error of the score in %",
            log_y=True,
            singles=_SINGLES,
            caption=f"Words with s > {_LEAST} only. {_BAND}",
        ),
    ]
    if "predicted_onset" in run and "onset" in run:
        figures.insert(
            1,
            scatter_figure(
                {"topic word": (run["onset"], run["predicted_onset"])},
                id=f"{prefix}_onset",
                log_x=True,
                log_y=True,
                title="When a word sets off",
                x_label="onset measured, step",
                y_label="onset predicted, step",
                identity=True,
                caption="One dot per topic word and seed: the step at which its score reaches "
                "half of its last value. On "
                "the dotted line theory is exact.",
            ),
        )
    return figures
