"""Figures that several claims of this paper draw, or the command ``dynamics`` too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.lab import Data, Variable
from attnlab.papers.lu2021.ablation_sweeps import EARLY, LATE, Ablation
from attnlab.papers.lu2021.sweeps import (
    LEAST_SCORE,
    Endings,
    Flow,
    Phases,
    Reference,
    Relation,
    head_name,
)
from attnlab.report import (
    Figure,
    band_figure,
    heat_table,
    histogram_figure,
    menu_figure,
    number,
    overlay_figure,
    relation_figure,
    scatter_figure,
    stages_figure,
)

if TYPE_CHECKING:
    import xarray as xr

BAND = "Line: median over seeds; band: 10–90 % of seeds."
SINGLES = 8  # runs that a figure of bands can show one by one
PHASES = ("suppressed", "waiting", "rising", "saturated")
_FORMS = {
    Relation.sen_error: "plain form",
    Relation.sen_error_corrected: "corrected for finite steps",
    Relation.sen_error_refined: "refined",
}
_FAR = 1e6  # times from which the limit's own rates are drawn
_ROWS = 16  # words that the table of phases shows


def sen_relation(
    run: xr.Dataset, *, title: str = "Every word moves along one curve", caption: str = ""
) -> Figure:
    """Norm against score with the relation's curve.

    Where each word has its own curve, measured against predicted norm instead.
    """
    predicted, measured = run[Relation.predicted_scaled_norm], run[Relation.scaled_norm]
    curve = _relation_curve(run[Relation.score], predicted)
    if curve is not None:
        return relation_figure(
            run[Relation.score],
            measured,
            curve,
            id="sen_relation",
            title=title,
            x_label="score s",
            y_label="|q||ν|",
            caption=f"{caption} One dot per word and seed, the dashed curve is the relation; move "
            "the slider through training.".strip(),
        )
    ends = np.array([np.nanmin(predicted.values), np.nanmax(predicted.values)])
    return relation_figure(
        predicted,
        measured,
        (ends, ends),
        id="sen_relation",
        title="The norm that the score predicts, and the norm it is",
        x_label="|q||ν| predicted from s and |ν₀|",
        y_label="|q||ν| measured",
        caption=f"{caption} One dot per word and seed; on the dashed line both are equal. "
        "Embeddings start large, so each word has a curve of its own and the prediction is drawn "
        "instead of the score.".strip(),
    )


def _relation_curve(
    score: xr.DataArray, predicted: xr.DataArray
) -> tuple[np.ndarray, np.ndarray] | None:
    """The one curve norm(score) that all predictions lie on; None if each word has its own.

    >>> import xarray as xr
    >>> s = xr.DataArray([[0.0, 2.0], [0.0, 4.0]], dims=("word", "step"))
    >>> _relation_curve(s, s**2)
    (array([0., 2., 4.]), array([ 0.,  4., 16.]))
    """
    start = predicted.isel(step=0).values
    x, y = score.values.ravel(), predicted.transpose(*score.dims).values.ravel()
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any() or np.nanmax(np.abs(start), initial=0.0) > 0.02 * np.max(y[known]):
        return None
    x, places = np.unique(x[known], return_index=True)
    even = np.searchsorted(x, np.linspace(x[0], x[-1], 200)).clip(0, len(x) - 1)
    kept = np.unique(even)
    return x[kept], y[known][places][kept]


def sen_error_figure(run: xr.Dataset, *, lines: Mapping[str, float], note: str = "") -> Figure:
    """The relation's error along training: each form, of the median and of the worst word, per
    head if there are several.
    """
    figures = {}
    for name, form in _FORMS.items():
        if name not in run:
            continue
        for which, of in (("median word", "median"), ("worst word", "max")):
            error = 100 * getattr(run[name], of)("word")
            series = {which: error}
            if "head" in error.dims:
                series = {head_name(h): error.sel(head=h) for h in run["head"].values.tolist()}
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
    return menu_figure(
        figures,
        id="sen_error",
        title="Error of the relation along training",
        choice_label="Form",
        caption=f"Relative error of the predicted |q||ν|, of words with s > {LEAST_SCORE}. Line: "
        f"median over seeds; band: 10–90 % of seeds. {note}Corrected: |q|²I₁ added, what descent "
        "misses of the flow. Refined: the other words' weight and context measured.",
        alt="Error of the predicted norm in percent against step, on a logarithmic axis.",
    )


def endings_figure(endings: xr.Dataset, *, id: str, title: str) -> Figure:
    """Final scores and norms of topic words and of all others, over each other; per head if there
    are several.
    """
    heads = endings["head"].values.tolist() if "head" in endings.dims else [None]
    topical = endings["topical"].values.astype(bool)
    quantities = {Endings.final_score: "final score s", Endings.final_norm: "final norm |ν|"}
    figures = {}
    for quantity, label in quantities.items():
        for head in heads:
            values = endings[quantity] if head is None else endings[quantity].sel(head=head)
            values = values.transpose(..., "any_word")
            groups = {
                "other words": values.isel(any_word=~topical),
                "topic words": values.isel(any_word=topical),
            }
            name = label if head is None else f"{label}, {head_name(head)}"
            figures[name] = histogram_figure(groups, id="h", title=name, x_label=label, log_y=True)
    return menu_figure(
        figures,
        id=id,
        title=title,
        choice_label="Show",
        caption="Share of topic words and of all other words, all seeds together, in common bins. "
        "The axis is logarithmic, so that a single word among many thousands is seen.",
        alt="Overlaid histograms of the final scores or norms of topic words and of other words.",
    )


def far_figures(far: xr.Dataset, *, prefix: str, titles: tuple[str, str, str]) -> list[Figure]:
    """Loss, scores and attention to far times, against what theory says of the limit; per head if
    there are several.
    """
    time = far["time"].values.astype(float)
    far, time = far.isel(time=time > 0), time[time > 0]
    to_the_limit = bool(time[-1] >= _FAR)
    loss, score, attention = (
        _by_head(far[name]) for name in (Flow.loss, Flow.score, Flow.attention)
    )
    label, end = "time τ (step × step size)", _power(float(time[-1]))
    late = time[time >= 1e3]
    slope = {"slope −1": (late, 0.2 * _last(loss) * time[-1] / late)}
    losses = band_figure(
        time,
        loss,
        id=f"{prefix}_loss",
        title=titles[0],
        x_label=label,
        y_label="loss",
        log_x=True,
        log_y=True,
        singles=SINGLES,
        guides=slope if to_the_limit else None,
        caption=f"The reduced model. {BAND}",
    )
    attentions = band_figure(
        time,
        attention,
        id=f"{prefix}_attention",
        title=titles[2],
        log_x=True,
        lines={"": 1.0},
        x_label=label,
        y_label="attention on the topic word",
        singles=SINGLES,
        caption=f"Mean over the topic words. Followed to τ = {end}. {BAND}",
    )
    if not to_the_limit:
        return [losses, attentions]
    return [losses, _doubly_logarithmic(time, score, f"{prefix}_score", titles[1]), attentions]


def _doubly_logarithmic(
    time: np.ndarray, score: dict[str, xr.DataArray], id: str, title: str
) -> Figure:
    """Scores against log log τ, with a guide of slope 2."""
    kept = time >= 10
    doubly = np.log(np.log(time[kept]))
    marks = {f"τ = {_power(t)}": float(np.log(np.log(t))) for t in (1e3, 1e9) if t < time[-1]}
    return band_figure(
        doubly,
        {name: values.isel(time=kept) for name, values in score.items()},
        id=id,
        marks=marks,
        title=title,
        x_label="log log τ (natural logarithms)",
        y_label="score s, mean of the topic words",
        singles=SINGLES,
        guides={"slope 2": (doubly, _last(score) + 2 * (doubly - doubly[-1]))},
        caption="A straight line is doubly logarithmic growth; the guide ends at the first median. "
        f"{BAND}",
    )


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
    """Theory's trajectory over training's, onset predicted against onset measured, and the error
    along training.
    """
    score, error = run[Reference.score], 100 * run[Reference.score_error]
    series = {"median word": error.median("word"), "worst word": error.max("word")}
    return [
        overlay_figure(
            score,
            run[Reference.predicted_score],
            id=f"{prefix}_overlay",
            y_label="score s",
            compared=score > LEAST_SCORE,
            title="Predicted before training, and what training did",
            caption="One run at a time: dots are the measured scores of its topic words, lines the "
            "reduced model's prediction from the start alone. Below, the difference in % of the "
            f"measured, if s > {LEAST_SCORE}.",
        ),
        scatter_figure(
            {"topic word": (run[Reference.onset], run[Reference.predicted_onset])},
            id=f"{prefix}_onset",
            log_x=True,
            log_y=True,
            title="The onset of each word",
            x_label="onset measured, step",
            y_label="onset predicted, step",
            identity=True,
            caption="One dot per topic word and seed: the step at which its score reaches half of "
            "its last value. On the dotted line theory is exact.",
        ),
        band_figure(
            run["step"].values,
            series,
            id=f"{prefix}_error",
            title="Error of the prediction along training",
            y_label="error of the score in %",
            log_y=True,
            singles=SINGLES,
            caption=f"Words with s > {LEAST_SCORE} only. {BAND}",
        ),
    ]


def ablation_figures(data: Data, head: str, *, prefix: str) -> list[Figure]:
    """Loss with parts frozen; then scores, norms, attention and accuracy to choose from."""
    runs = Ablation.of(data).sel(head=head)
    settings = runs["setting"].values.tolist()

    def curves(name: Variable) -> dict[str, xr.DataArray]:
        return {setting: runs[name].sel(setting=setting) for setting in settings}

    steps = runs["step"].values
    quantities = {
        "mean score of topic words": Ablation.mean_score,
        "mean norm of topic words": Ablation.mean_norm,
        "mean attention on topic words": Ablation.mean_attention,
        "test accuracy": Ablation.accuracy_test,
    }
    drawn = {
        word: band_figure(steps, curves(name), id="a", title=word, y_label=word, singles=0)
        for word, name in quantities.items()
    }
    return [
        band_figure(
            steps,
            curves(Ablation.loss),
            id=f"{prefix}_loss",
            title="Both together are fastest",
            y_label="training loss",
            log_y=True,
            singles=SINGLES,
            marks={"": float(EARLY), " ": float(LATE)},
            caption=f"{BAND} The upright lines are where the losses are compared.",
        ),
        menu_figure(
            drawn,
            id=f"{prefix}_curves",
            title="Scores, norms and accuracy with parts frozen",
            choice_label="Show",
            caption=BAND,
            alt="Scores, norms, attention or accuracy against step.",
        ),
    ]


def phase_figure(data: xr.Dataset, *, id: str, title: str, names: Sequence[str] = PHASES) -> Figure:
    """One word's score and norm with its phases shaded; the reader picks word and seed.

    ``data`` has the variables of `Phases` with the dimensions seed, step and word; ``names`` are
    those of the phases.
    """
    return stages_figure(
        data[Phases.phase],
        {
            "score": (data[Phases.score], "score s"),
            "norm": (data[Phases.norm], "norm |ν|"),
        },
        id=id,
        title=title,
        names=names,
        caption="Suppressed: the score falls first. Waiting: it is small still. Rising: it has "
        "reached the onset. Saturated: it grows at half of its fastest pace in log time, or "
        "slower. The axis begins at the first recorded step.",
        alt=f"{title}. Score and norm of one word against step, with its phases shaded.",
    )


def phase_table(data: xr.Dataset, *, id: str, title: str) -> Figure:
    """Every word's phases over the seeds: how often it is suppressed, its onset and when it
    saturates; ``data`` has the variables of `Phases`.
    """
    words = data["word"].values.tolist()
    cells = []
    for word in words[:_ROWS]:
        one = data.sel(word=word)
        dips = int(one[Phases.suppressed_until].notnull().sum())
        cells.append(
            [
                f"{dips} of {one.sizes['seed']}",
                number(float(one[Phases.depth].min())) if dips else "–",
                _middle(one[Phases.onset]),
                _middle(one[Phases.saturation]),
                _middle(one[Phases.score].isel(step=-1)),
            ]
        )
    saved = {
        "suppressed until step": Phases.suppressed_until,
        "lowest score, change from the start": Phases.depth,
        "onset, step": Phases.onset,
        "saturates at step": Phases.saturation,
    }
    columns = ["seeds in which it is first suppressed", *list(saved)[1:], "final score"]
    left = len(words) > _ROWS
    return heat_table(
        [str(word) for word in words[:_ROWS]],
        columns,
        cells,
        id=id,
        title=title,
        tones=[[""] * len(columns) for _ in cells],
        caption="Medians over seeds, in brackets the smallest and largest; a dash: it did not "
        "happen.",
        table=_every_word(data, saved),
        note=f"{_ROWS} of {len(words)} words are shown; all are saved." if left else "",
    )


def _middle(values: xr.DataArray) -> str:
    """The median over seeds, its range, and in how many seeds it is missing."""
    known = values.values[np.isfinite(values.values)]
    if not len(known):
        return "–"
    text = number(float(np.median(known)))
    if len(known) > 1:
        text += f" [{number(float(known.min()))}, {number(float(known.max()))}]"
    missing = values.size - len(known)
    return f"{text}, not in {missing}" if missing else text


def _every_word(data: xr.Dataset, columns: Mapping[str, Variable]) -> dict[str, Any]:
    """Some variables of all words of all seeds, by the name of their column."""
    seeds, words = data["seed"].values.tolist(), data["word"].values.tolist()
    table: dict[str, Any] = {
        "seed": [seed for seed in seeds for _ in words],
        "word": [str(word) for _ in seeds for word in words],
    }
    for column, name in columns.items():
        table[column] = data[name].transpose("seed", "word").values.ravel()
    return table
