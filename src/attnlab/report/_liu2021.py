"""Figures of the claims of Liu et al. (2021) about needed samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attnlab.report._chosen import chosen
from attnlab.report._curves import learning_curves
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._heat import heat_table
from attnlab.report._marks import (
    Mark,
    edges_of,
    mark_trace,
    marks_table,
    off_grid,
    place,
    ratio_mark,
    rows_figure,
)
from attnlab.report._needed import PREDICTED, PREDICTORS, needed_figure, ratio_figure
from attnlab.report._page import Figure
from attnlab.report._prepare import axis, layout
from attnlab.report._sample_tables import tuning_table
from attnlab.report._text import interval

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]


def _known_attention(data: Data) -> list[Figure]:
    table = data["static mask"]
    pair = ["baseline", "known-attention"]
    return [
        needed_figure(
            table,
            id="mask_needed",
            title="Needed samples against the number of features",
            students=pair,
        ),
        ratio_figure(
            table,
            id="mask_ratio",
            title="Samples saved by knowing the mask, and what is predicted",
            students=["known-attention", "vacuous-mask"],
        ),
        learning_curves(table, id="mask_curves", title="Learning curves on a static mask"),
        *_tuning(table, "mask"),
    ]


def _gated(data: Data) -> list[Figure]:
    return [
        needed_figure(
            data["gate"],
            id="gate_needed",
            title="Needed samples for 0.1, gate known",
            students=["known-attention"],
        ),
        needed_figure(
            data["gate at 0.5"], id="gate_rough", title="Needed samples for 0.5, both students"
        ),
        learning_curves(
            data["gate"],
            id="gate_curves",
            title="Learning curves on a gate that depends on the input",
        ),
        *_tuning(data["gate"], "gate"),
    ]


def _moving(data: Data) -> list[Figure]:
    table = data["moving block"]
    return [
        needed_figure(table, id="block_needed", title="Needed samples where the block moves"),
        needed_figure(
            data["static mask"],
            id="block_static",
            title="The control: needed samples where the block stays",
            students=["known-attention"],
        ),
        learning_curves(table, id="block_curves", title="Learning curves on a moving block"),
        *_tuning(table, "block"),
    ]


def _self_attention(data: Data) -> list[Figure]:
    own, rough = data["self-attention"], data["self-attention at 0.5"]
    return [
        learning_curves(
            own, id="attention_curves", title="Learning curves on a self-attention teacher"
        ),
        needed_figure(own, id="attention_needed", title="Samples needed for 0.1"),
        ratio_figure(
            rough, id="attention_ratio", title="How many times fewer samples than the MLP for 0.5"
        ),
        learning_curves(
            data["MLP teacher"], id="mlp_curves", title="The control: an MLP as the teacher"
        ),
        *_tuning(own, "attention"),
    ]


def _depth(data: Data) -> list[Figure]:
    learned = (
        data["learned depth"]["error"]
        .sel(student="multi-layer")
        .dropna("size", how="all")
        .isel(size=-1)
    )
    size = int(learned["size"])
    rows = [
        DotRow(
            f"{depth} learned {'layer' if depth == 1 else 'layers'}",
            learned.sel(depth=depth).dropna("seed"),
            0.1,
        )
        for depth in learned["depth"].values.tolist()
    ]
    return [
        needed_figure(
            data["depth"], id="depth_needed", title="Samples needed with known weights, by depth"
        ),
        learning_curves(
            data["depth"], id="depth_curves", title="Learning curves with known weights"
        ),
        dots_figure(
            rows,
            id="depth_learned",
            title=f"Learned weights: the error with {size} samples, seed by seed",
            x_label="error, E(ŷ − g)² / Var g",
            caption="One dot per seed, the bar is the median. On the shaded side a seed has "
            "reached 0.1.",
        ),
    ]


def _no_advantage(data: Data) -> list[Figure]:
    masks, other = data["static mask"], data["MLP teacher"]
    p = int(masks["features"].values.min())
    asked = {
        f"vacuous mask, p = {p}": place(masks, "vacuous-mask", p),
        f"wrong mask, p = {p}": place(masks, "wrong-mask", p),
        "self-attention on an MLP teacher": place(other, "self-attention", "mlp"),
        f"control: the true mask, p = {p}": place(masks, "known-attention", p),
    }
    marks = [mark for label, one in asked.items() if (mark := ratio_mark(one, label)) is not None]
    return [
        rows_figure(
            marks,
            id="none_ratio",
            title="Samples saved where nothing can be saved",
            x_label="ratio of needed samples",
            lines={"": 1.0, "1.25": 1.25},
            caption="Left of the line at 1 samples are lost, right of 1.25 a saving is worth "
            "having. Bars: 95 % "
            f"intervals over paired seeds. {off_grid(marks)}",
        ),
        learning_curves(
            masks.sel(features=[p]),
            id="none_curves",
            title="Masks that cannot help, beside the one that does",
        ),
        learning_curves(other, id="none_mlp", title="Self-attention on an MLP teacher"),
    ]


def _bounds(data: Data) -> list[Figure]:
    family = data["mask family"]
    names = [str(name) for name in family["predictor"].values]
    drawn = {PREDICTORS.get(name, name): _order(family, name) for name in names}
    cells = []
    for name in names:
        one = family.sel(predictor=name)
        bounds = (float(one["agreement_low"]), float(one["agreement_high"]))
        cells.append([float(one["agreement"]), interval(bounds), float(one["shifted"])])
    columns = [
        "rank agreement",
        "95 % interval over settings",
        "control: predictions of other settings",
    ]
    return [
        chosen(
            drawn,
            id="bounds_order",
            title="Measured ratio against each candidate's prediction",
            choice_label="Candidate",
            caption="One point per setting: s relevant of p features. Bars: 95 % intervals over "
            "seeds, if "
            f"there are 8 or more. {off_grid(_family_marks(family))} {PREDICTED}",
        ),
        heat_table(
            [PREDICTORS.get(name, name) for name in names],
            columns,
            cells,
            id="bounds_agreement",
            title="Do they put the settings in the measured order?",
            tones=[["", "", ""] for _ in names],
            caption="Spearman's rank correlation of predicted and measured ratios over all "
            "settings.",
        ),
    ]


def _order(family: xr.Dataset, predictor: str) -> Figure:
    """Measured ratios over one predictor's, a colour for each number of relevant features."""
    relevant, predicted = (
        family["relevant"].values.tolist(),
        family["predicted"].sel(predictor=predictor).values,
    )
    marks = [
        (s, float(x), _told(m, x))
        for s, x, m in zip(relevant, predicted, _family_marks(family), strict=True)
    ]
    edges = edges_of([mark for _, _, mark in marks])
    traces = []
    for k, count in enumerate(sorted(set(relevant))):
        own = [(x, mark) for s, x, mark in marks if s == count]
        traces.append(
            mark_trace([m for _, m in own], [x for x, _ in own], edges, k, name=f"{count} relevant")
        )
    x = np.array([x for _, x, _ in marks])
    label = f"ratio of {PREDICTORS.get(predictor, predictor)}, raw over attended"
    style = layout(
        440,
        xaxis=axis(label, True, [x]),
        yaxis=axis(
            "measured ratio of needed samples",
            True,
            [np.array(edges)],
            range=np.log10(edges).tolist(),
        ),
    )
    columns = marks_table(
        [((mark.label, x), mark) for _, x, mark in marks], ("relevant of features", "predicted")
    )
    return Figure("order", predictor, "", predictor, {"data": traces, "layout": style}, columns)


def _family_marks(family: xr.Dataset) -> list[Mark]:
    found = [
        ratio_mark(family.isel(setting=k), str(family["setting"].values[k]))
        for k in range(family.sizes["setting"])
    ]
    return [mark for mark in found if mark is not None]


def _told(mark: Mark, predicted: float) -> Mark:
    return replace(
        mark, text=f"{mark.text} {interval((mark.low, mark.high))}<br>predicted {predicted:.3g}"
    )


def _tuning(table: xr.Dataset, prefix: str) -> list[Figure]:
    figure = tuning_table(table, id=f"{prefix}_tuning", title="What validation data chose")
    return [] if figure is None else [figure]


SAMPLES: dict[str, Callable[[Data], list[Figure]]] = {
    "liu2021.known_attention_samples": _known_attention,
    "liu2021.gated_attention": _gated,
    "liu2021.moving_block": _moving,
    "liu2021.self_attention_samples": _self_attention,
    "liu2021.depth": _depth,
    "liu2021.no_advantage": _no_advantage,
    "liu2021.bounds": _bounds,
}
