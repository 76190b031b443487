"""What figures of needed samples share: the candidate predictors in words, and the tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlab.papers.liu2021.curve_sweeps import Curves
from attnlab.report import Figure, number, plain_table, ratio_figure

if TYPE_CHECKING:
    import xarray as xr

_TUNED = {Curves.step_size: "step size", Curves.weight_decay: "weight decay"}
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


def tuning_table(
    table: xr.Dataset, *, id: str, title: str, offered: Mapping[str, Sequence[float]] | None = None
) -> Figure | None:
    """How often validation chose each value, and the share of fits still falling; None if not
    stored.
    """
    names = [name for name in _TUNED if name in table]
    if not names:
        return None
    students = [table.sel(student=student) for student in table["student"].values]
    columns: dict[str, list[str]] = {}
    for name in names:
        for value in _values(table[name].values, (offered or {}).get(name, ())):
            columns[f"{_TUNED[name]} {number(value)}"] = [
                f"{int((one[name] == value).sum())} of {int(one[names[0]].notnull().sum())}"
                for one in students
            ]
    if Curves.at_end in table:
        fits = [one[names[0]].notnull() for one in students]
        ends = [
            float((one[Curves.at_end] == 1).where(ran).mean())
            for one, ran in zip(students, fits, strict=True)
        ]
        columns["an end of its grid"] = [f"{share:.1%}".replace("%", " %") for share in ends]
    if Curves.unsettled in table:
        shares = [float(one[Curves.unsettled].mean()) for one in students]
        columns["still falling"] = [f"{share:.1%}".replace("%", " %") for share in shares]
    return plain_table(
        [str(student) for student in table["student"].values],
        columns,
        id=id,
        title=title,
        caption="Every student was offered the same values, and each fit's were chosen on "
        "validation data that are not counted in n. Where the choice was an end of its grid the "
        "grid went on, a few times. Still falling: loss fell by over 5 % in the last fifth of the "
        "steps.",
    )


def _values(found: np.ndarray, offered: Sequence[float]) -> list[float]:
    """What was offered, and what was chosen at least once."""
    chosen = found[~np.isnan(found)]
    return np.unique(np.concatenate([np.asarray(offered, found.dtype), chosen])).tolist()
