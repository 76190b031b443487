"""Learning curves: the variables that `attnlab.complexity.tabulate` finds in them, declared once."""

from __future__ import annotations

from typing import Any

import attnlab as al
from attnlab.lab import Data, Measure, Table, variable


class Curves(Table):
    """Learning curves of students in several settings, and what they say about needed samples.

    A table of curves is a subclass with a label; its dimensions are student, setting, seed, size.
    """

    error = variable("test error: E(ŷ − g)²/Var g, or the share of wrong labels", optional=True)
    accuracy = variable("test accuracy", optional=True)
    valid_loss = variable("loss on validation samples, by which the tuning is chosen")
    train_loss = variable("training loss at the end", optional=True)
    settling = variable("relative fall of the loss over the last fifth of the steps", optional=True)
    unsettled = variable("share of chosen fits whose loss was still falling", optional=True)
    step_size = variable("step size that validation chose", optional=True)
    weight_decay = variable("weight decay that validation chose", optional=True)
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
