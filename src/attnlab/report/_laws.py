"""Figures of the conservation laws' claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from attnlab.report._bands import band_figure
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._heat import heat_table
from attnlab.report._page import Figure
from attnlab.report._text import head_name, number

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]


def _per_seed(values: xr.DataArray, *, largest: bool = True) -> np.ndarray:
    others = [d for d in values.dims if d != "seed"]
    reduced = values.max(others) if largest else values.median(others)
    return reduced.values


def _score_sum(data: Data) -> list[Figure]:
    laws, single, adam = data["laws"], data["float32"], data["laws under Adam"]
    rows = [
        DotRow(head_name(h), _per_seed(laws.score_sum_error.sel(head=h)), 1e-13)
        for h in laws["head"].values.tolist()
    ]
    rows.append(DotRow("fixed head, float32", _per_seed(single.score_sum_error), 1e-5))
    rows.append(DotRow("control: Adam", _per_seed(adam.score_sum_error), 1e-13))
    return [
        dots_figure(
            rows,
            id="score_sum",
            title="The sum of scores stays where it was, to rounding error",
            x_label="largest |Σs| / Σ|s| of a run",
            caption="One dot per seed: the worst recorded step. Adam, the control, moves the sum "
            "as far as the scores.",
        )
    ]


def _balance(data: Data) -> list[Figure]:
    sizes = data["step sizes"].balance_error
    series = {
        head_name(h): sizes.sel(head=h).transpose("seed", "step_size").values
        for h in sizes["head"].values.tolist()
    }
    drift = data["laws"].balance_error
    limits = {"fixed": 0.5, "linear": 3e-4, "two_layer": 1e-3}
    rows = [
        DotRow(
            ("control: " if h == "fixed" else "") + head_name(h),
            drift.sel(head=h).values,
            limits[h],
        )
        for h in ("linear", "two_layer", "fixed")
    ]
    return [
        band_figure(
            sizes.step_size.values,
            series,
            id="balance_step",
            title="Half the step, half the drift",
            x_label="step size",
            y_label="drift / ‖WWᵀ‖",
            log_x=True,
            log_y=True,
            caption="Drift of EᵀE − WWᵀ after equal training time; a line of slope one is "
            "proportional to the step.",
        ),
        dots_figure(
            rows,
            id="balance_drift",
            title="Drift at the last step of the reference runs",
            x_label="drift / ‖WWᵀ‖",
            caption="With a fixed head nothing is conserved: the control.",
        ),
    ]


def _query_balance(data: Data) -> list[Figure]:
    query = data["trained query"]
    drift = query.query_balance_error
    rows = [
        DotRow("1 − cos(q, q₀)", _per_seed(query.query_turn), 1e-12),
        DotRow("largest |Σκ|", _per_seed(query.key_sum), 1e-13),
        DotRow("control: 1 − cos(q, q₀), Adam", query.query_turn_adam.values, 1e-12),
        DotRow("control: largest |Σκ|, Adam", query.key_sum_adam.values, 1e-13),
    ]
    return [
        band_figure(
            drift.step_size.values,
            {"trained query": drift.transpose("seed", "step_size").values},
            id="query_step",
            title="The drift of KᵀK − qqᵀ is proportional to the step",
            x_label="step size",
            y_label="drift / |q|²",
            log_x=True,
            log_y=True,
        ),
        dots_figure(
            rows,
            id="query_exact",
            title="Direction of the query, sum of the keys",
            x_label="largest value of a run",
            caption="Both are kept to rounding error by descent and lost by Adam.",
        ),
    ]


def _identity(data: Data) -> list[Figure]:
    laws, rules = data["laws"], data["optimizers"]
    rows = [
        DotRow(head_name(h), _per_seed(laws.identity_error.sel(head=h)), 1e-12)
        for h in laws["head"].values.tolist()
    ]
    rows.append(
        DotRow("control: momentum", _per_seed(rules.identity_error.sel(rule="momentum 0.9")), 1e-12)
    )
    return [
        dots_figure(
            rows,
            id="identity",
            title="Both sides of the identity agree to rounding error",
            x_label="largest relative difference of a run",
        )
    ]


def _optimizers(data: Data) -> list[Figure]:
    rules = data["optimizers"]
    quantities = [
        ("sum of scores, worst", rules.score_sum_error, True, 1e-13),
        ("exact identity, worst", rules.identity_error, True, 1e-12),
        ("score–norm relation, median", rules.sen_error, False, 0.004),
        ("EᵀE − WWᵀ, worst over time", rules.balance_error, True, 1e-3),
    ]
    names = rules.rule.values.tolist()
    cells, tones = [], []
    for name in names:
        row = [
            float(
                np.nanmax(v.sel(rule=name).values) if top else np.nanmedian(v.sel(rule=name).values)
            )
            for _, v, top, _ in quantities
        ]
        cells.append([number(value) for value in row])
        tones.append(
            [
                "good" if v <= q[3] else "mixed" if v <= 0.05 else "bad"
                for v, q in zip(row, quantities, strict=True)
            ]
        )
    loss = {name: rules.loss.sel(rule=name).transpose("seed", "step").values for name in names}
    return [
        heat_table(
            names,
            [q[0] for q in quantities],
            cells,
            id="who_keeps_what",
            title="Which optimiser keeps which law",
            tones=tones,
            caption="Relative errors over all seeds; kept (to the claim's bound), roughly kept, "
            "lost.",
        ),
        band_figure(
            rules.step.values,
            loss,
            id="optimizers_loss",
            title="Training loss under each rule",
            y_label="loss",
            log_y=True,
            caption="Keeping or breaking a law says nothing about how fast the loss falls.",
        ),
    ]


LAWS: dict[str, Callable[[Data], list[Figure]]] = {
    "laws.score_sum": _score_sum,
    "laws.balance": _balance,
    "laws.query_balance": _query_balance,
    "laws.identity": _identity,
    "laws.optimizers": _optimizers,
}
