"""The fourth section of a study's page: how good is what was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._page import Card, Figure, Section
from attnlab.report._scatter import scatter_figure
from attnlab.report._study_parts import missing, percent, plain_table, shortened
from attnlab.report._surface import path_figure

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_WANTED = {
    "ends": "Gradient and curvature where training stopped",
    "agreement": "Agreement of seeds",
    "path": "The line between two seeds",
    "polish": "Minima, from a polish with l2",
}
_ENDS = {
    "accuracy_test": "test accuracy",
    "gradient": "gradient norm",
    "sharpness": "largest curvature λ_max",
    "trace": "trace of the curvature",
}
_POLISH = {
    "kind": "kind",
    "l2": "l2",
    "loss": "training loss",
    "gradient": "gradient norm",
    "accuracy_test": "test accuracy",
}
_ROWS, _SEEDS = 24, 12


def good_section(data: Data, absent: Mapping[str, str], cards: tuple[Card, ...]) -> Section:
    """Where training stopped, seed by seed; how far seeds agree; the line between two; minima from
    a polish.
    """
    figures = []
    if "ends" in data:
        figures += ends_figures(data["ends"])
    if "agreement" in data:
        figures.append(agreement_table(data["agreement"], id="agreement"))
    if "path" in data:
        figures.append(
            path_figure(
                data["path"],
                id="between_seeds",
                title="The loss on the straight line between two seeds",
                caption="From where training stopped with one seed to where it stopped with "
                "another.",
                ends="where training stopped",
                x_label="t, from one seed (0) to the other (1)",
                y_label="training loss",
            )
        )
    if "polish" in data:
        figures.append(polish_table(data["polish"], id="polish"))
    return Section(
        "good",
        "Is what I trained good?",
        "Measured where training stopped, which need not be a point of rest.",
        body=missing(_WANTED, data, absent, section="good"),
        cards=cards,
        figures=tuple(figures),
    )


def ends_figures(ends: xr.Dataset) -> list[Figure]:
    """Test accuracy of each seed, gradient and curvature as dots, and all of it as a table."""
    names = [name for name in _ENDS if name in ends]
    figures = []
    if "accuracy_test" in names:
        accuracy = ends["accuracy_test"].values.astype(float)
        middle = {"median": float(np.nanmedian(accuracy))} if np.isfinite(accuracy).any() else {}
        figures.append(
            scatter_figure(
                {"seeds": (ends["seed"], ends["accuracy_test"])},
                id="ends_accuracy",
                title="Test accuracy, seed by seed",
                x_label="seed",
                y_label="test accuracy",
                lines=middle,
                caption="Dotted line: the median over seeds.",
            )
        )
    rows = [
        DotRow(_ENDS[name], ends[name])
        for name in names
        if name != "accuracy_test" and _positive(ends[name])
    ]
    if rows:
        figure = dots_figure(
            rows,
            id="ends_curvature",
            title="Gradient and curvature where training stopped",
            x_label="value",
            caption="Of the training loss; one dot per seed, the bar is the median. A gradient "
            "far from zero says that "
            "training would go on.",
        )
        traces = [
            t | ({"name": "one seed"} if t["name"] != "median" else {})
            for t in figure.plotly["data"]
        ]
        figures.append(replace(figure, plotly=figure.plotly | {"data": traces}))
    if names:
        figures.append(
            _by_seed(
                ends,
                {name: _ENDS[name] for name in names},
                id="ends",
                title="Where training stopped",
            )
        )
    return figures


def _positive(values: xr.DataArray) -> bool:
    """Whether a logarithmic axis can show it: curvature where training stopped may be negative."""
    array = values.values.astype(float)
    return bool(np.isfinite(array).any()) and not bool((array < 0).any())


def _by_seed(
    data: xr.Dataset, names: Mapping[str, str], *, id: str, title: str, caption: str = ""
) -> Figure:
    top = data.isel(seed=slice(_ROWS))
    columns: dict[str, list[Any]] = {
        title: [shortened(v) for v in top[name].values]
        if name == "kind"
        else top[name].values.astype(float).tolist()
        for name, title in names.items()
    }
    shown = {
        word: [percent(v) for v in columns[word]]
        for word in columns
        if word == _ENDS["accuracy_test"]
    }
    left = (
        f" The first {_ROWS} of {data.sizes['seed']} seeds." if data.sizes["seed"] > _ROWS else ""
    )
    rows = [f"seed {seed}" for seed in top["seed"].values.tolist()]
    return plain_table(
        rows, columns, id=id, title=title, shown=shown, caption=f"{caption}{left}".strip()
    )


def agreement_table(agreement: xr.Dataset, *, id: str) -> Figure:
    """In how many test texts each two seeds say the same, the stronger tinted the more they differ
    from the others.
    """
    share = (
        agreement["share"].isel(seed=slice(_SEEDS), other=slice(_SEEDS)).transpose("seed", "other")
    )
    values = share.values.astype(float)
    seeds, others = (
        [f"seed {seed}" for seed in share[dim].values.tolist()] for dim in ("seed", "other")
    )
    apart = np.array([[a != b for b in others] for a in seeds])
    known = values[apart & np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    level = np.clip(5 * (values - low) / ((high - low) or 1.0), 0, 4)
    tones = {
        name: [
            f"h{int(level[i, k])}" if apart[i, k] and np.isfinite(level[i, k]) else ""
            for i in range(len(seeds))
        ]
        for k, name in enumerate(others)
    }
    said = (
        f"From {percent(low)} to {percent(high)} of the test texts; the mean is "
        f"{percent(known.mean())}. "
        if (known.size)
        else ""
    )
    left = (
        f" The first {_SEEDS} of {agreement.sizes['seed']} seeds."
        if agreement.sizes["seed"] > _SEEDS
        else ""
    )
    return plain_table(
        seeds,
        {name: values[:, k].tolist() for k, name in enumerate(others)},
        id=id,
        title="How often two seeds say the same of a test text",
        tones=tones,
        shown={name: [percent(v) for v in values[:, k]] for k, name in enumerate(others)},
        caption=f"{said}Seeds of equal accuracy may still be right on different texts.{left}",
    )


def polish_table(polish: xr.Dataset, *, id: str) -> Figure:
    """What a polish with l2 ended in, seed by seed."""
    names = {name: title for name, title in _POLISH.items() if name in polish}
    return _by_seed(
        polish,
        names,
        id=id,
        title="Minima, from a polish with l2",
        caption="From where training stopped, the loss with a penalty ½ l2 ‖θ‖² was minimised "
        "further: with a penalty "
        "a point of rest exists. The kind is what was certified there.",
    )
