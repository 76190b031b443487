"""A question about powers of numbers, as small as an experiment can be."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import xarray as xr

from attnlab.lab import Answers, Bench, Data, Experiment, Option, Settings, Table, digest, variable
from attnlab.report import Card, Section, band_figure
from attnlab.sweeps import Plan, RunContext


class Powers(Table, label="powers"):
    """Powers (number)."""

    power = variable("number to the exponent")


@dataclass(frozen=True)
class PowerSettings:
    """One run."""

    number: float = 1.0
    exponent: int = 2


def power(settings: PowerSettings, context: RunContext) -> xr.Dataset:
    """The work function; a negative number fails, 13 is Ctrl-C."""
    if settings.number < 0:
        raise ValueError("negative")
    if settings.number == 13:
        signal.raise_signal(signal.SIGINT)
    return xr.Dataset({Powers.power: settings.number**settings.exponent})


@dataclass(frozen=True)
class ToySettings(Settings):
    """Numbers and an exponent."""

    numbers: Annotated[tuple[float, ...], Option("Numbers.", "Numbers", metavar="X…")] = (1, 2, 3)
    exponent: Annotated[int, Option("Exponent.", least=0, most=9)] = 2
    kind: Annotated[str, Option("Which mean.", choices=("mean", "median"))] = "mean"
    broken: Annotated[bool, Option("Draw a page that cannot be drawn.")] = False


class Toy(Experiment[ToySettings]):
    """How large are powers of numbers?

    Example:

        attnlab toy --numbers 1 2 3
    """

    name = "toy"
    title = "Powers"
    settings = ToySettings

    def measure(self, settings: ToySettings, bench: Bench) -> Data:
        """Every power."""
        bench.stage("powers")
        base = {"exponent": settings.exponent}
        plan = Plan("tests.lab.toy:power", "toy", base=base, grid={"number": settings.numbers})
        results = bench.sweep(plan, digest(base | {"numbers": settings.numbers}))
        bench.found["finished"] = results.finished
        return {Powers.label: results.dataset()}

    def answers(self, settings: ToySettings, data: Data, found: Mapping[str, Any]) -> Answers:
        """Their mean."""
        values = Powers.power(data).values
        mean = float(getattr(np, f"nan{settings.kind}")(values))
        text = f"The {settings.kind} of {found['finished']} powers is {mean:g}."
        card = Card(label="mean", text=text, headline=f"{mean:g}")
        facts = {"exponent": settings.exponent, "broken": settings.broken}
        return Answers("How large are powers?", cards=(card,), facts=facts)

    def sections(self, record: Any) -> list[Section]:
        """One curve."""
        if record.about["settings"]["broken"]:
            raise KeyError("power of nothing")
        table = Powers.of(record.data)
        series = {"power": table[Powers.power].expand_dims("seed")}
        figure = band_figure(table["number"].values, series, id="powers", title="Powers")
        return [Section(id="powers", title="Powers", figures=(figure,))]


question = Toy()
