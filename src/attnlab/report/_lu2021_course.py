"""Figures of the claims of Lu, Mao and Nayak (2021) about the course of training: its end, its
rate, its theory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._bands import band_figure
from attnlab.report._chosen import chosen
from attnlab.report._heat import heat_table
from attnlab.report._histogram import histogram_figure
from attnlab.report._overlay import overlay_figure
from attnlab.report._page import Figure
from attnlab.report._paths import paths_figure
from attnlab.report._scatter import scatter_figure
from attnlab.report._text import head_name, number

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_LEAST = 0.05  # scores from which a relative error is spoken of
_SINGLES = 8
_BAND = "Line: median over seeds; band: 10–90 % of seeds."


def _convergence(data: Data) -> list[Figure]:
    reference, random = data["reference"], data["labels at random"]
    steps = np.intersect1d(reference["step"].values, random["step"].values)
    heads = reference["head"].values.tolist()

    def curves(name: str) -> dict[str, Any]:
        values = reference[name].mean("word") if "word" in reference[name].dims else reference[name]
        found = {head_name(h): values.sel(head=h, step=steps) for h in heads}
        control = random[name].mean("word") if "word" in random[name].dims else random[name]
        return found | {"control: labels at random": control.sel(step=steps)}

    quantities = {
        "test accuracy": "accuracy_test",
        "attention on the topic word": "attention",
        "AUC of scores, topic against other words": "separation_score",
        "AUC of norms, topic against other words": "separation_norm",
    }
    drawn = {
        word: band_figure(
            steps, curves(name), id="c", title=word, y_label=word, lines={"": 1.0}, singles=0
        )
        for word, name in quantities.items()
        if name in reference and name in random
    }
    return [
        band_figure(
            steps,
            curves("loss"),
            id="convergence_loss",
            title="The training loss goes",
            y_label="training loss",
            log_y=True,
            lines={"": 0.04},
            singles=_SINGLES,
            caption=f"{_BAND} The dotted line, 0.04, is the bound for the fixed head's last step.",
        ),
        chosen(
            drawn,
            id="convergence_curves",
            title="What is learned on the way",
            choice_label="Show",
            caption=f"{_BAND} Attention is the mean over topic words in their own sentences: it "
            "does not reach 1.",
            alt="Accuracy, attention or separation against step.",
        ),
        *endings_figures(
            data["endings"], prefix="convergence", title="Topic words stand apart at the end"
        ),
    ]


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


def _rate(data: Data) -> list[Figure]:
    titles = (
        "The loss falls like 1/τ",
        "The score grows like 2 log log τ",
        "Attention tends to 1, slowly",
    )
    return far_figures(data["asymptotics"], prefix="rate", titles=titles)


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


def _reduced(head: str, data: Data) -> list[Figure]:
    names = {"fixed": "fc", "linear": "tc", "two_layer": "tl"}
    return reduced_figures(data["reference"].sel(head=head), prefix=f"reduced_{names[head]}")


def _ablation(head: str, data: Data) -> list[Figure]:
    ablation = data["ablation"].sel(head=head)
    short = {"fixed": "fc", "linear": "tc"}[head]
    settings = ablation["setting"].values.tolist()

    def curves(name: str) -> dict[str, Any]:
        return {s: ablation[name].sel(setting=s) for s in settings}

    x = ablation["step"].values
    quantities = {
        "mean score of topic words": "mean_score",
        "mean norm of topic words": "mean_norm",
        "mean attention on topic words": "mean_attention",
        "test accuracy": "accuracy_test",
    }
    drawn = {
        word: band_figure(x, curves(name), id="a", title=word, y_label=word, singles=0)
        for word, name in quantities.items()
        if name in ablation
    }
    figures = [
        band_figure(
            x,
            curves("loss"),
            id=f"ablation_{short}_loss",
            title="Both together are fastest",
            y_label="training loss",
            log_y=True,
            singles=_SINGLES,
            marks={"": 3000.0, " ": 6000.0},
            caption=f"{_BAND} The upright lines are where the losses are compared.",
        ),
        chosen(
            drawn,
            id=f"ablation_{short}_curves",
            title="Scores, norms and accuracy with parts frozen",
            choice_label="Show",
            caption=_BAND,
            alt="Scores, norms, attention or accuracy against step.",
        ),
    ]
    if "combinations" in data and head == "fixed":
        figures.append(_combinations(data["combinations"]))
    return figures


def _combinations(ends: xr.Dataset) -> Figure:
    """All choices of trained parts at the last step, the lowest loss first."""
    loss = ends["loss"].median("seed")
    order = ends["setting"].values[np.argsort(np.nan_to_num(loss.values, nan=np.inf))].tolist()
    columns = {
        "training loss": "loss",
        "test accuracy": "accuracy_test",
        "mean score": "mean_score",
        "mean norm": "mean_norm",
        "mean attention": "mean_attention",
    }
    cells = [
        [number(float(ends[v].sel(setting=name).median())) for v in columns.values()]
        for name in order
    ]
    best = [float(loss.sel(setting=name)) for name in order]
    tones = [
        ["good" if v <= 0.04 else "mixed" if v <= 0.5 else "bad", "", "", "", ""] for v in best
    ]
    return heat_table(
        order,
        list(columns),
        cells,
        id="ablation_combinations",
        title="Which parts must be trained",
        tones=tones,
        caption="Medians over seeds at the last step, lowest loss first. Of the loss: at most "
        "0.04, at most 0.5, more.",
    )


_COMPARISONS = (
    ("authors' settings, equal steps", "fixed", "linear", "final_score"),
    ("fixed W × 0.18, equal steps", "fixed, W × 0.18", "linear", "final_score"),
    ("same W at the start, equal steps", "fixed", "linear from fixed W", "final_score"),
    ("at loss 0.1", "fixed", "linear", "score_at_0.1"),
    ("at loss 0.5", "fixed", "linear", "score_at_0.5"),
    ("authors' settings, equal steps", "linear", "two-layer", "final_score"),
    ("at loss 0.1", "linear", "two-layer", "score_at_0.1"),
    ("at loss 0.5", "linear", "two-layer", "score_at_0.5"),
)


def _capacity(data: Data) -> list[Figure]:
    capacity = data["capacity"]
    names = capacity["setting"].values.tolist()
    mean, loss = capacity["mean_score"], capacity["loss"]
    return [
        _shares(capacity),
        band_figure(
            capacity["step"].values,
            {n: mean.sel(setting=n) for n in names},
            id="capacity_steps",
            title="Scores at equal steps",
            y_label="mean score of topic words",
            singles=4,
            caption=_BAND,
        ),
        paths_figure(
            {n: (loss.sel(setting=n), mean.sel(setting=n)) for n in names},
            id="capacity_loss",
            title="Scores at equal loss",
            x_label="training loss",
            y_label="mean score of topic words",
            log_x=True,
            reverse_x=True,
            most=6,
            caption="One thin line per seed; training goes from left to right as the loss falls.",
        ),
    ]


def _shares(capacity: xr.Dataset) -> Figure:
    """In how many seeds one head's mean score is above another's, under each comparison."""
    names = set(capacity["setting"].values.tolist())
    rows, cells, tones = [], [], []
    for how, above, below, variable in _COMPARISONS:
        if variable not in capacity or not {above, below} <= names:
            continue
        high, low = (capacity[variable].sel(setting=s).values for s in (above, below))
        known = np.isfinite(high) & np.isfinite(low)
        won, count = int(np.sum(high[known] > low[known])), int(known.sum())
        medians = [number(float(np.median(v[known]))) if count else "–" for v in (high, low)]
        rows.append(f"{above} > {below}: {how}")
        cells.append([f"{won} of {count}", *medians])
        share = won / count if count else np.nan
        tones.append(
            [
                "" if not count else "good" if share >= 0.75 else "mixed" if share > 0.5 else "bad",
                "",
                "",
            ]
        )
    return heat_table(
        rows,
        ["seeds in which it is so", "median score of the first", "of the second"],
        cells,
        id="capacity_shares",
        tones=tones,
        title="The order depends on what is held equal",
        caption="Mean score of the topic words, compared seed by seed. Kept: in at least three "
        "quarters of the seeds; "
        "in part: in more than half. Seeds that never reach the loss are not counted.",
    )


COURSE: dict[str, Callable[[Data], list[Figure]]] = {
    "lu2021.convergence": _convergence,
    "lu2021.rate": _rate,
    "lu2021.reduced_fc": partial(_reduced, "fixed"),
    "lu2021.reduced_tc": partial(_reduced, "linear"),
    "lu2021.reduced_tl": partial(_reduced, "two_layer"),
    "lu2021.ablation_fc": partial(_ablation, "fixed"),
    "lu2021.ablation_tc": partial(_ablation, "linear"),
    "lu2021.capacity": _capacity,
}
