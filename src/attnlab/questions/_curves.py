"""Answers in words about learning curves, which several questions give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.papers.liu2021.curve_sweeps import Curves
from attnlab.papers.liu2021.sample_figures import tuning_table
from attnlab.report import Card, Section

if TYPE_CHECKING:
    import xarray as xr

SIGNS = {"at least": "≥ ", "at most": "≤ "}
_TUNED = {Curves.weight_decay: "weight decay", Curves.step_size: "step size"}


def ratio_card(table: xr.Dataset, student: str) -> Card:
    """A student against the one compared with: its verdict in the last setting, and whether it is
    another one elsewhere.

    ``table`` is what `attnlab.complexity.tabulate` gives; several settings are numbers p.
    """
    dim, against = table.attrs["dim"], table.attrs["against"]
    mine = table.sel(student=student)
    verdicts = [str(verdict) or "not run" for verdict in mine[Curves.verdict].values]
    last = mine.isel({dim: -1})
    where = f" at p = {int(last[dim])}" if len(verdicts) > 1 else ""
    text = str(last[Curves.said].values).split(" (ratio ")[0].removeprefix(f"{verdicts[-1]}: ")
    text = text.replace("the baseline", against).replace("the other model", student)
    text = f"{text[:1].upper()}{text[1:]}{where if verdicts[-1] in ('saves', 'costs') else ''}."
    others = [
        f"{verdict} at {int(p)}"
        for p, verdict in zip(mine[dim].values, verdicts, strict=True)
        if verdict != verdicts[-1]
    ]
    return Card(
        label=f"{student} against {against}",
        text=text,
        verdict=str(last[Curves.verdict].values) or None,
        headline=_ratio_headline(last),
        measure=f"times fewer samples{where}",
        note="; ".join(others) if others else "at every p" if where else "",
        link="ratio",
    )


def _ratio_headline(last: xr.Dataset) -> str:
    value = float(last[Curves.ratio])
    if np.isnan(value):
        return "unknown"
    sign = SIGNS.get(str(last[Curves.ratio_kind].values), "")
    low, high = float(last[Curves.ratio_low]), float(last[Curves.ratio_high])
    return f"{sign}{value:.3g} [{low:.3g}, {'∞' if np.isinf(high) else f'{high:.3g}'}]"


def fit_card(table: xr.Dataset) -> Card:
    """What was tuned, and how many fits were still falling."""
    offered = []
    for name, words in _TUNED.items():
        counts = al.complexity.choices(table, str(name))
        offered.append(f"{words} {_told(counts)}")
    text = f"Tuned alike for all students, chosen on validation data: {'; '.join(offered)}."
    if Curves.at_end in table:
        ran = table[Curves.valid_loss].notnull()
        ends, count = int(((table[Curves.at_end] == 1) & ran).sum()), int(ran.sum())
        if ends:
            text += f" In {ends} of {count} fits a chosen value is an end of its grid."
    return Card(
        label="fits",
        text=text,
        headline=f"{100 * float(table[Curves.unsettled].mean()):.0f} %",
        measure="of the fits were still falling at their last step",
        link="fits",
    )


def _told(counts: dict[float, int]) -> str:
    """The values that were chosen, with their counts if there are several."""
    return ", ".join(
        f"{value:.3g}" + (f" ({count}×)" if len(counts) > 1 else "")
        for value, count in counts.items()
    )


def tuning_section(
    table: xr.Dataset, facts: Mapping[str, Any], *, of: str = "Students", on: str = "data"
) -> list[Section]:
    """What validation chose of the values in ``facts``; nothing where there was no choice."""
    offered = {
        str(Curves.step_size): facts["step_sizes"],
        str(Curves.weight_decay): facts["weight_decays"],
    }
    title = f"Chosen on validation {on}"
    figure = tuning_table(table, id="tuning", title=title, offered=offered)
    if figure is None:
        return []
    statement = f"{of} are only comparable if all were tuned alike and their training had settled."
    return [Section(id="fits", title="What was tuned", statement=statement, figures=(figure,))]
