"""Five quantities of the inputs predict the order of the savings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attnlab as al
from attnlab.lab import Claim, Control, Criterion, Data, Measure, Source, Variable, given_interval
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.sample_figures import PREDICTED, PREDICTORS
from attnlab.papers.liu2021.sample_sweeps import HOW, MaskFamily, static_mask
from attnlab.report import Figure, heat_table, interval, menu_figure, ratios_against

if TYPE_CHECKING:
    import xarray as xr

_LEAST = 0.8  # rank agreement that is called an order
_ORDERS = given_interval >= _LEAST


def _number(of: Variable, predictor: str) -> Measure:
    """A number without an interval."""

    def measure(data: Data) -> xr.DataArray:
        value = float(of(data, predictor=predictor))
        return al.lab.labelled([value] * 3, end=["estimate", "low", "high"]).assign_attrs(
            kind="number"
        )

    return measure


def _agreement(predictor: str) -> Measure:
    """Rank agreement with its interval over settings."""

    def measure(data: Data) -> xr.DataArray:
        family = MaskFamily.of(data)
        return al.complexity.end_values(family, str(MaskFamily.agreement), predictor=predictor)

    return measure


def _criteria() -> tuple[Criterion, ...]:
    """Two for each predictor: its rank agreement, and the interval's sign."""
    found = []
    for name, words in PREDICTORS.items():
        words = words.replace("max ", "max")  # criteria are named without the space
        found += [
            Criterion(f"rank agreement of {words}", _number(MaskFamily.agreement, name), _ORDERS),
            Criterion(
                f"its interval over settings, {words}", _agreement(name), given_interval >= 0
            ),
        ]
    return tuple(found)


def figures(data: Data) -> list[Figure]:
    """Measured ratios against each predictor, and the rank agreements in a table."""
    family = MaskFamily.of(data)
    drawn = {words: _order_figure(family, name) for name, words in PREDICTORS.items()}
    return [
        menu_figure(
            drawn,
            id="bounds_order",
            title="Measured ratio against each candidate's prediction",
            choice_label="Candidate",
        ),
        _agreement_table(family),
    ]


def _order_figure(family: xr.Dataset, predictor: str) -> Figure:
    return ratios_against(
        family,
        family[MaskFamily.predicted].sel(predictor=predictor).values.tolist(),
        family[MaskFamily.relevant].values.tolist(),
        id="order",
        title=predictor,
        x_label=f"ratio of {PREDICTORS[predictor]}, raw over attended",
        setting_label="relevant of features",
        group_label="relevant",
        caption="One point per setting: s relevant of p features. Bars: 95 % intervals over seeds, "
        "if there are 8 or more.",
        note=PREDICTED,
    )


def _agreement_table(family: xr.Dataset) -> Figure:
    cells = []
    for name in PREDICTORS:
        one = family.sel(predictor=name)
        ends = (float(one[MaskFamily.agreement_low]), float(one[MaskFamily.agreement_high]))
        agreement, shifted = (float(one[of]) for of in (MaskFamily.agreement, MaskFamily.shifted))
        cells.append([agreement, interval(ends), shifted])
    return heat_table(
        list(PREDICTORS.values()),
        [
            "rank agreement",
            "95 % interval over settings",
            "control: predictions of other settings",
        ],
        cells,
        id="bounds_agreement",
        title="Do they put the settings in the measured order?",
        tones=[["", "", ""] for _ in cells],
        caption="Spearman's rank correlation of predicted and measured ratios over all settings.",
    )


claim = Claim(
    id="liu2021.bounds",
    rank=9,
    title="Five quantities of the inputs predict the order of the savings",
    statement="Over masks of s of p features, the ratio of five quantities, each of x against "
    "x ⊙ f(x), puts the settings in the order of the measured sample ratios.",
    source=Source("ours", note=f"candidate predictors, not the theorems of {PAPER}"),
    provenance=PROTOTYPE,
    sweeps=(static_mask,),
    criteria=_criteria(),
    controls=(
        Control(
            "predictions of other settings",
            "Each setting gets the prediction of the one before it.",
            (
                Criterion(
                    "rank agreement of E‖x‖², shifted",
                    _number(MaskFamily.shifted, "mean_square"),
                    _ORDERS,
                ),
            ),
        ),
    ),
    how_measured=f"{HOW} Spearman's rank correlation over at least 12 settings; settings whose "
    "ratio is only bounded are put where they hurt most. The interval resamples settings.",
    refuted_by=f"A rank agreement below {_LEAST:g}.",
    notes=(
        "These are candidate predictors of an order, not of a level, and not the paper's theorems.",
    ),
    figures=figures,
)
