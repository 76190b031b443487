"""What figures of needed samples share: the candidate predictors in words, and the tuning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlab.report import Figure, ratio_figure, tuning_table

if TYPE_CHECKING:
    import xarray as xr

PREDICTORS = {
    "mean_square": "E‖x‖²",
    "largest_square": "max ‖x‖²",
    "fourth_moment": "√E‖x‖⁴",
    "participation": "(tr Σ)²/‖Σ‖²",
    "intrinsic_dimension": "tr Σ/λ_max",
}
PREDICTED = (
    "What is predicted: five quantities of the inputs, each of x over that of the attended x ⊙ "
    "f(x). They are candidate predictors of an order, not of a level, and not the theorems of Liu "
    "et al. (2021)."
)


def ratio_and_predictors(
    table: xr.Dataset, *, id: str, title: str, students: Sequence[str] | None = None
) -> Figure:
    """Ratios of needed samples, with the candidate predictors where a student attends by a rule."""
    return ratio_figure(
        table, id=id, title=title, students=students, predictors=PREDICTORS, note=PREDICTED
    )


def tuning(table: xr.Dataset, *, id: str) -> list[Figure]:
    """What was chosen on validation data."""
    figure = tuning_table(table, id=id, title="What validation data chose")
    return [] if figure is None else [figure]
