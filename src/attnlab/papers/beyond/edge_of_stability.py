"""Plain descent on word attention trains at the edge of stability (docs/theory.md#c5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attnlab as al
from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Grid,
    Provenance,
    Scale,
    Source,
    Sweep,
    Table,
    Variable,
    mean,
    variable,
)
from attnlab.report import Figure, band_figure, estimate, heat_table, interval, number, tone_of

if TYPE_CHECKING:
    import xarray as xr

WORK = "attnlab.papers.beyond.runs:train_edge"
_LARGE = (0.5, 1.0, 2.0)  # steps that reach the edge
_SMALL = 0.02  # a step so small that training does not get there
_BAND = (0.95, 1.15)  # λ_max·step/2 at the edge
_LAST = 0.2  # the share of training that is averaged
# Quick runs are looked at less often, not shorter: the smallest of the large steps is at the edge
# only late.
_ROWS: dict[Scale, int] = {"quick": 50, "paper": 100}


class Edge(Table, label="edge"):
    """Training with each step size, seed by seed."""

    loss = variable("training loss")
    sharpness = variable("λ_max of the training loss; nan where Lanczos has not converged")
    edge = variable("λ_max · step size / 2")
    last = variable("its mean over the last fifth of training")
    converged = variable("share of the looks in that fifth that have converged")


def _grid(scale: Scale, seeds: int) -> Grid:
    sizes = (*_LARGE, _SMALL)
    return Grid({str(s): {"step_size": s, "rows": _ROWS[scale]} for s in sizes}, seeds)


def _measure(arms: Data) -> Data:
    parts = []
    for run in arms.values():
        late = run[Edge.edge].sel(step=run.step > (1 - _LAST) * run.step.max())
        found = run[[str(Edge.loss), str(Edge.sharpness), str(Edge.edge)]]
        found[Edge.last] = late.mean("step")
        found[Edge.converged] = late.notnull().mean("step")
        parts.append(found)
    return {Edge.label: al.lab.side_by_side(parts, "step_size", [float(label) for label in arms])}


def at_the_edge(step_size: float) -> Criterion:
    """That training with this step ends at the edge."""
    return Criterion(
        f"λ_max · step / 2, step {step_size:g}",
        Edge.last.at(step_size=step_size),
        mean.between(*_BAND),
    )


def figures(data: Data) -> list[Figure]:
    """λ_max·step/2 and the loss along training, and where the former ends."""
    table = Edge.of(data)
    steps = table["step"].values
    low, high = _BAND
    return [
        band_figure(
            steps,
            _by_step_size(table, Edge.edge),
            id="edge_course",
            title="λ_max · step size / 2 along training",
            y_label="λ_max · step size / 2",
            lines={f"{low:g}": low, f"{high:g}": high},
            caption="Plain descent on a quadratic is stable only below 1. Line: median over seeds. "
            "Band: 10–90 % of seeds. An eigenvalue that had not converged is left out.",
        ),
        band_figure(
            steps,
            _by_step_size(table, Edge.loss),
            id="edge_loss",
            title="The training loss meanwhile",
            y_label="training loss",
            log_y=True,
            singles=0,
        ),
        _ends(table),
    ]


def _by_step_size(table: xr.Dataset, name: Variable) -> dict[str, xr.DataArray]:
    return {
        f"step size {number(size)}": table[name].sel(step_size=size).dropna("seed", how="all")
        for size in table["step_size"].values
    }


def _ends(table: xr.Dataset) -> Figure:
    low, high = _BAND
    cells, tones = [], []
    for size in table["step_size"].values:
        last = table[Edge.last].sel(step_size=size).dropna("seed").values
        found = al.stats.interval_of(last, "mean") if last.size else None
        spread = interval((last.min(), last.max())) if last.size else "–"
        converged = float(table[Edge.converged].sel(step_size=size).mean())
        cells.append([estimate(found), spread, converged])
        tones.append([tone_of(found, least=low, most=high), "", ""])
    return heat_table(
        [f"step size {number(size)}" for size in table["step_size"].values],
        ["mean over the last fifth", "from seed to seed", "looks that converged"],
        cells,
        id="edge_end",
        title="Where it ends",
        tones=tones,
        caption=f"Marked by whether the 95 % interval over seeds lies in {low:g} to {high:g}. The "
        "smallest step is the control.",
    )


claim = Claim(
    id="beyond.edge_of_stability",
    rank=1,
    title="Plain descent on word attention trains at the edge of stability",
    statement="Full-batch descent with the steps 0.5, 1 and 2 ends with λ_max·step/2 between 0.95 "
    "and 1.15.",
    source=Source(
        "stated",
        "Cohen, Kaur, Li, Kolter, Talwalkar (2021), arXiv 2103.00065",
        "on word attention it is ours",
    ),
    provenance=Provenance("after", "2026-11-16", "one seed of a prototype (docs/theory.md)"),
    sweeps=(Sweep("edge", WORK, _grid, _measure, (Edge,)),),
    criteria=tuple(at_the_edge(size) for size in _LARGE),
    controls=(
        Control(
            "a small step",
            "With a step of 0.02 training of equal length stays far below the edge.",
            (at_the_edge(_SMALL),),
        ),
    ),
    how_measured="Word attention (60 words, 8 a sentence, d = 8, 200 sentences, 10 % of labels "
    "flipped) with all parts trained on the squared error to one-hot labels; λ_max of the full "
    "training loss by Lanczos along training, averaged over the last fifth. An eigenvalue whose "
    "residual exceeds 1 % of it has not converged and does not count.",
    refuted_by="A mean over seeds that surely lies outside the band at any of the steps.",
    notes=("The band was set after one seed of a prototype: read the measured values first.",),
    figures=figures,
)
