"""Learning curves: the variables that `attnlab.complexity.tabulate` finds in them, declared once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import Data, Measure, Table, variable

if TYPE_CHECKING:
    import xarray as xr

_NOTEWORTHY = 0.05  # share of a student's fits from which on a caution speaks of them


class Curves(Table):
    """Learning curves of students in several settings, and what they say about needed samples.

    A table of curves is a subclass with a label; its dimensions are student, setting, seed, size.
    """

    error = variable("test error: E(ŷ − g)²/Var g, or the share of wrong labels", optional=True)
    accuracy = variable("test accuracy", optional=True)
    valid_loss = variable("loss on validation samples, by which the tuning is chosen")
    valid_error = variable(
        "share of wrong validation labels: where it is measured the tuning is chosen by it, and "
        "among equals by the loss",
        optional=True,
    )
    train_loss = variable("training loss at the end", optional=True)
    settling = variable("relative fall of the loss over the last fifth of the steps", optional=True)
    unsettled = variable("share of chosen fits whose loss was still falling", optional=True)
    step_size = variable("step size that validation chose", optional=True)
    weight_decay = variable("weight decay that validation chose", optional=True)
    at_end = variable("whether a value that validation chose is an end of its grid", optional=True)
    needed = variable("samples at which the seeds' curve first meets the level")
    needed_low = variable("low end of its interval")
    needed_high = variable("high end of its interval")
    needed_kind = variable("crossed, not reached, already met")
    needed_seeds = variable("seeds that it comes from")
    needed_asked = variable("seeds that were asked for")
    needed_own = variable("needed samples of each seed by itself")
    needed_said = variable("needed samples in a sentence")
    reached = variable("share of seeds that reach the level by themselves")
    ratio = variable("needed samples of the student compared with, over this student's")
    ratio_low = variable("low end of its interval")
    ratio_high = variable("high end of its interval")
    ratio_kind = variable("exact, or on which side it is a bound")
    ratio_seeds = variable("seeds that it comes from")
    ratio_asked = variable("seeds that were asked for")
    ratio_own = variable("ratio of each seed by itself")
    verdict = variable("saves, no advantage, costs, inconclusive")
    said = variable("the ratio in a sentence")
    exponent = variable("exponent of needed samples in the setting", optional=True)
    exponent_low = variable("low end of its interval", optional=True)
    exponent_high = variable("high end of its interval", optional=True)
    exponent_kind = variable("exact, or on which side it is a bound", optional=True)
    exponent_seeds = variable("seeds that it comes from", optional=True)
    exponent_asked = variable("seeds that were asked for", optional=True)
    exponent_own = variable("exponent of each seed by itself", optional=True)
    extrapolated = variable("samples that a power law expects for the level", optional=True)
    extrapolated_low = variable("low end of its interval", optional=True)
    extrapolated_high = variable("high end of its interval", optional=True)
    extrapolated_said = variable("the back-test in a sentence", optional=True)


def end(table: type[Curves], name: str, **where: Any) -> Measure:
    """Estimate and interval of ``needed``, ``ratio`` or ``exponent`` at one place of a table."""

    def measure(data: Data) -> Any:
        return al.complexity.end_values(table.of(data), str(name), **where)

    return measure


def best_of(students: Sequence[xr.Dataset], name: str, values: Sequence[Any]) -> xr.Dataset:
    """Of several students, seed by seed and size by size, the one that validation chose: a setting
    of theirs is tuned, too. ``name`` becomes its chosen value, the last of which is an end.
    """
    every = al.lab.along(students, "choice", values)
    best = every[Curves.valid_loss].fillna(np.inf).argmin("choice")
    chosen = every.isel(choice=best)
    value = every["choice"].isel(choice=best).where(chosen[Curves.valid_loss].notnull())
    chosen = chosen.drop_vars("choice").assign({name: value.drop_vars("choice")})
    at_end = chosen[Curves.at_end].astype(bool) | (best == len(values) - 1)
    return chosen.assign({Curves.at_end: at_end})


def tuning_cautions(tables: Mapping[str, type[Curves]]) -> Callable[[Data], list[str]]:
    """The cautions of a claim about learning curves: fits of which a tuned value lies at an end of
    its grid, and fits whose loss was still falling. ``tables`` by what they are of.
    """

    def cautions(data: Data) -> list[str]:
        kinds = (
            ("tuning ended at an end of its grid", _at_end),
            ("the loss was still falling in the last fifth of the steps", _still_falling),
        )
        found = []
        for words, count in kinds:
            named = [
                f"{student} {concerned} of {ran}{where}"
                for name, table in tables.items()
                if table.label in data
                for student, concerned, ran in count(table.of(data))
                if concerned > _NOTEWORTHY * ran
                for where in ([f" ({name})"] if name else [""])
            ]
            if named:
                found.append(f"{words} in these fits: {', '.join(named)}")
        return found

    return cautions


def _at_end(table: xr.Dataset) -> list[tuple[str, int, int]]:
    """Of each student, how many fits have a tuned value at an end, and how many there are."""
    if Curves.at_end not in table:
        return []
    ran = table[Curves.valid_loss].notnull()
    return _counted(table[Curves.at_end].where(ran, 0).astype(bool) & ran, ran)


def _still_falling(table: xr.Dataset) -> list[tuple[str, int, int]]:
    if Curves.settling not in table:
        return []
    ran = table[Curves.valid_loss].notnull()
    return _counted(al.complexity.still_falling(table) & ran, ran)


def _counted(concerned: xr.DataArray, ran: xr.DataArray) -> list[tuple[str, int, int]]:
    return [
        (name, int(concerned.sel(student=name).sum()), int(ran.sel(student=name).sum()))
        for name in concerned["student"].values.tolist()
    ]
