"""Figures that several claims about texts draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from attnlab.lab import Data
from attnlab.papers.lu2021.text_sweeps import Fixed
from attnlab.report import Figure, band_figure

if TYPE_CHECKING:
    from attnlab.lab import Variable

OVER_SEEDS = "Line: median over seeds. Band: 10–90 % of seeds."


def fixed_course(
    data: Data,
    curves: Mapping[str, Variable],
    *,
    id: str,
    title: str,
    label: str,
    caption: str,
    more: Mapping[str, Variable] | None = None,
) -> Figure:
    """Variables of the fixed head along training, by the words of the legend; and ``more``, of
    other tables.
    """
    table = Fixed.of(data)
    return band_figure(
        table["step"].values,
        {words: table[name] for words, name in curves.items()}
        | {words: variable(data) for words, variable in (more or {}).items()},
        id=id,
        title=title,
        y_label=label,
        caption=f"{caption} {OVER_SEEDS}",
        singles=0,
    )
