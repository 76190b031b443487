"""Figures of the claims of Lu, Mao and Nayak (2021) about scores and norms: the relation, its
starts and its reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnlab.report._bands import band_figure, theory_figure
from attnlab.report._chosen import chosen
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._heat import heat_table
from attnlab.report._page import Figure
from attnlab.report._paths import paths_figure
from attnlab.report._relation import relation_curve, relation_figure
from attnlab.report._scatter import scatter_figure
from attnlab.report._text import head_name, number

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_FORMS = {
    "sen_error": "plain form",
    "sen_error_corrected": "corrected for finite steps",
    "sen_error_refined": "refined",
}
_SINGLES = 6  # runs that can be shown one by one where a figure has many drawings


def _sen(data: Data) -> list[Figure]:
    reference = data["reference"]
    fixed = reference.sel(head="fixed")
    words = fixed["word"].values.tolist()[:4]
    measured = {w: fixed["scaled_norm"].sel(word=w) for w in words}
    predicted = {w: fixed["predicted_scaled_norm"].sel(word=w) for w in words}
    left = (
        f" The first {len(words)} of {fixed.sizes['word']} words."
        if len(words) < fixed.sizes["word"]
        else ""
    )
    return [
        sen_relation(fixed, caption="Topic words of all seeds under the fixed head."),
        theory_figure(
            fixed["step"].values,
            measured,
            predicted,
            id="sen_theory",
            title="The norm predicted from the score alone",
            y_label="|q||ν|",
            singles=_SINGLES,
            caption="Fixed head. Lines are medians over seeds, the band holds 80 % of the "
            "measured runs, below is the "
            f"difference in % of the prediction.{left}",
        ),
        sen_error_figure(
            reference, note="The dotted lines are the claim's bounds on the plain form. "
        ),
        _worst_words(reference),
    ]


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


def _worst_words(reference: xr.Dataset) -> Figure:
    """Where each word is worst: how far, when, in which run."""
    heads, words = (reference[d].values.tolist() for d in ("head", "word"))
    cells, tones = [], []
    for word in words[:12]:
        row, tone = [], []
        for head in heads:
            error = reference["sen_error"].sel(head=head, word=word).transpose("seed", "step")
            values = np.nan_to_num(error.values, nan=-1.0)
            step = int(values.argmax()) % values.shape[1]
            worst = float(values.max())
            row.append(
                "–" if worst < 0 else f"{number(100 * worst)} %, step {error['step'].values[step]}"
            )
            tone.append("" if worst < 0 else _tone(worst, 0.015, 0.05))
        cells.append(row)
        tones.append(tone)
    return heat_table(
        [str(w) for w in words[:12]],
        [head_name(h) for h in heads],
        cells,
        id="sen_worst",
        tones=tones,
        title="Where each word is worst",
        caption="Largest error of the plain form over all steps and seeds, and where it is. Kept: "
        "at most 1.5 %, in "
        "part: at most 5 %, else broken.",
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


def _sen_init(data: Data) -> list[Figure]:
    start = data["std 0.1"]
    heads = start["head"].values.tolist()
    kinds = {"with |ν₀|²": "sen_error", "without |ν₀|²": "sen_error_without_start"}
    error = {
        f"{head_name(h)}, {word}": 100 * start[name].sel(head=h).median("word")
        for word, name in kinds.items()
        for h in heads
    }
    rows = [
        DotRow(
            ("" if name == "sen_error" else "control: ") + f"{head_name(h)}, {word}",
            100 * start[name].sel(head=h).median(["step", "word"]),
            0.6,
        )
        for word, name in kinds.items()
        for h in heads
    ]
    return [
        band_figure(
            start["step"].values,
            error,
            id="sen_init_error",
            title="The start must be kept in the relation",
            y_label="error of |q||ν| in %, median word",
            log_y=True,
            singles=_SINGLES,
            lines={"bound on the median": 0.6},
            caption="Initial embeddings of standard deviation 0.1. Line: median over seeds of the "
            "median word with "
            "s > 0.05; band: 10–90 % of seeds.",
        ),
        dots_figure(
            rows,
            id="sen_init_seeds",
            title="Median error of each run",
            x_label="error of |q||ν| in %",
            caption="One dot per seed, the bar is the median of the seeds; the shaded side is "
            "within the bound.",
        ),
    ]


def _promotion(data: Data) -> list[Figure]:
    reference, large = data["reference"], data["std 0.3"]
    heads = reference["head"].values.tolist()
    norm = reference["scaled_norm"] / reference["query_norm"]
    pairs = {
        f"std 1e-6, {head_name(h)}": (norm.sel(head=h), reference["score"].sel(head=h))
        for h in heads
    }
    pairs["std 0.3, fixed head (control)"] = (large["norm"], large["score"])
    if "std 1.0" in data:
        pairs["std 1.0, fixed head"] = (data["std 1.0"]["norm"], data["std 1.0"]["score"])
    drawn = {
        name: paths_figure(
            {"a word along training": pair},
            id="p",
            title=name,
            x_label="norm |ν|",
            y_label="score s",
            ends=True,
            most=16,
        )
        for name, pair in pairs.items()
    }
    agreement = {head_name(h): reference["rank_agreement"].sel(head=h) for h in heads}
    agreement["control: std 0.3"] = large["rank_agreement"]
    rows = [DotRow(name, _shortfall(values), 1e-3) for name, values in agreement.items()]
    return [
        chosen(
            drawn,
            id="promotion_paths",
            title="Score and norm rise together",
            choice_label="Start",
            caption="Each thin line is a topic word of one seed from start to end of training "
            "(the dot). From small "
            "embeddings every path goes up and to the right; from large ones it may first go back.",
            alt="Paths of topic words in the plane of norm and score.",
        ),
        dots_figure(
            rows,
            id="promotion_order",
            title="How far from one order",
            x_label="1 − Spearman(s, |ν|), worst word",
            caption="One dot per seed: the word whose score and norm agree least. Zero is perfect "
            "order.",
        ),
    ]


def _shortfall(agreement: xr.DataArray) -> xr.DataArray:
    """1 − the least agreement of each seed; rounding error counts as none."""
    short = 1 - agreement.min([d for d in agreement.dims if d != "seed"])
    return short.where(short > 1e-12, 0.0)


def _suppression(data: Data) -> list[Figure]:
    starts = {"std 0.3": data["std 0.3"]} | (
        {"std 1.0": data["std 1.0"]} if "std 1.0" in data else {}
    )
    early, clouds = {}, {}
    for name, run in starts.items():
        dip = run["dip"].astype(bool)
        for quantity in ("score", "norm"):
            change = _early(run[quantity], run["dip_step"])
            groups = {"suppressed first": change.where(dip), "rises at once": change.where(~dip)}
            early[f"{quantity}, {name}"] = paths_figure(
                {k: (v["step"], v) for k, v in groups.items()},
                id="e",
                title=name,
                x_label="step",
                y_label=f"change of the {quantity} since the start",
                lines={"": 0.0},
                most=20,
            )
        both = {
            "suppressed first": (run["alignment"].where(dip), run["depth"]),
            "rises at once": (run["alignment"].where(~dip), run["depth"]),
        }
        clouds[name] = scatter_figure(
            both,
            id="c",
            title=name,
            x_label="initial alignment ν₀·(W_y − mean W)",
            y_label="lowest score less the first",
            marks={"": 0.0},
            lines={"": -1e-3},
        )
        # Each word is in one of the groups: that it is absent from the other needs no note.
        clouds[name] = replace(clouds[name], note="")
    return [
        chosen(
            early,
            id="suppression_early",
            title="Some words are suppressed before they rise",
            choice_label="Show",
            caption="The first steps of training, fixed head: each line is a topic word of one "
            "seed, relative to its "
            "start, and is cut where it has risen by half of the deepest fall. Words whose score "
            "dips lose "
            "norm at the same time.",
            alt="Change of score or norm of single words against step, early in training.",
        ),
        chosen(
            clouds,
            id="suppression_alignment",
            title="Misalignment foretells the dip",
            choice_label="Start",
            caption="One dot per topic word and seed. Left of the upright line the initial "
            "embedding points away "
            "from the word's own label; below the level one, −0.001, counts as a dip.",
            alt="Depth of the dip against the initial alignment of each word.",
        ),
    ]


def _early(values: xr.DataArray, dip_step: xr.DataArray) -> xr.DataArray:
    """The change since the start, up to thrice the step at which most dips are deepest, and while
    it is small.
    """
    last = float(3 * dip_step.quantile(0.9)) if bool(dip_step.notnull().any()) else np.inf
    change = (values - values.isel(step=0, drop=True)).sel(step=slice(None, last))
    return change.where(change <= 0.5 * max(-float(change.min()), 1e-3))


RELATION: dict[str, Callable[[Data], list[Figure]]] = {
    "lu2021.sen": _sen,
    "lu2021.sen_init": _sen_init,
    "lu2021.promotion": _promotion,
    "lu2021.suppression": _suppression,
}
