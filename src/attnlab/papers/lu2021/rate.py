"""The rate of convergence: the loss falls like 1/τ, the score grows like 2 log log τ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attnlab as al
from attnlab.lab import Claim, Control, Criterion, Data, Grid, Scale, Source, Sweep, mean, variable
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.figures import far_figures
from attnlab.papers.lu2021.sweeps import Flow, more
from attnlab.report import Figure

if TYPE_CHECKING:
    import xarray as xr


class Far(Flow, label="asymptotics"):
    """The flow to times that no training reaches, under each head."""

    loss_exponent = variable("exponent of the loss in τ, 1e9 to 1e12")
    score_rate = variable("ds / d log log τ, 1e9 to 1e12")
    score_slowdown = variable("ds / d log τ, 1e9 to 1e12 over 1e3 to 1e6")


def _grid(scale: Scale, seeds: int) -> Grid:
    heads = ("fixed",) if scale == "quick" else ("fixed", "linear")
    return Grid({head: {"head": head} for head in heads}, more(scale, seeds))


def _measure(arms: Data) -> Data:
    heads = [_rates(run) for run in arms.values()]
    return {Far.label: al.lab.side_by_side(heads, "head", arms)}


def _rates(run: xr.Dataset) -> xr.Dataset:
    found = run[list(Flow.variables)]
    found[Far.loss_exponent] = al.dynamics.loss_exponent(run.loss)
    found[Far.score_rate] = al.dynamics.score_rate(run.score)
    found[Far.score_slowdown] = al.dynamics.score_slowdown(run.score)
    return found


asymptotics = Sweep("asymptotics", "attnlab.papers.lu2021.runs:flow_far", _grid, _measure, (Far,))


def figures(data: Data) -> list[Figure]:
    """Loss, score and attention to far times."""
    titles = (
        "The loss falls like 1/τ",
        "The score grows like 2 log log τ",
        "Attention tends to 1, slowly",
    )
    return far_figures(Far.of(data), prefix="rate", titles=titles)


claim = Claim(
    id="lu2021.rate",
    rank=6,
    title="The loss falls like 1/τ, the score grows like 2 log log τ",
    statement="Training converges to the topic word with certainty, and doubly logarithmically "
    "slowly.",
    source=Source("ours", note=f"the dynamics of {PAPER}, carried to their limit"),
    provenance=PROTOTYPE,
    sweeps=(asymptotics,),
    criteria=(
        Criterion(
            "exponent of the loss, 1e9 to 1e12",
            Far.loss_exponent.at(head="fixed"),
            mean.between(-1.02, -0.98),
        ),
        Criterion(
            "ds / d log log τ, 1e9 to 1e12",
            Far.score_rate.at(head="fixed"),
            mean.between(1.8, 2.2),
        ),
    ),
    controls=(
        Control(
            "singly logarithmic",
            "“ds / d log τ is constant” would make the early rate equal to the late one.",
            (
                Criterion(
                    "ds / d log τ, late over early",
                    Far.score_slowdown.at(head="fixed"),
                    mean.between(0.9, 1.1),
                ),
            ),
        ),
    ),
    how_measured="The reduced model's flow from random starts, integrated adaptively to time 1e12; "
    "slopes are least-squares fits over 1e9 to 1e12, the control compares 1e3 to 1e6 with 1e9 to "
    "1e12.",
    refuted_by="Another exponent, or a score that grows at a constant rate in log τ.",
    figures=figures,
)
