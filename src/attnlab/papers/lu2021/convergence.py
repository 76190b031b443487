"""Attention finds the words that matter: at the end, topic words stand apart from all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.lab import Claim, Control, Criterion, Data, Measure, Source, Variable, every_run
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.figures import BAND, SINGLES, endings_figure
from attnlab.papers.lu2021.sweeps import (
    Endings,
    RandomLabels,
    Reference,
    head_name,
    reference,
    starts,
)
from attnlab.report import Figure, band_figure, menu_figure

if TYPE_CHECKING:
    import xarray as xr

_LOSS = 0.04
_CONTROL = "control: labels at random"


def _final(variable: Variable, **chosen: str) -> Measure:
    """A variable at the last step."""
    return lambda data: variable(data, **chosen).isel(step=-1)


def found(
    table: type[Reference] | type[RandomLabels], note: str = "", **where: str
) -> tuple[Criterion, ...]:
    """What is asked of the last step of every run."""
    auc = "topic against other words"
    score, norm = _final(table.separation_score, **where), _final(table.separation_norm, **where)
    return (
        Criterion(f"test accuracy{note}", _final(table.accuracy_test, **where), every_run >= 0.99),
        Criterion(f"AUC of scores, {auc}{note}", score, every_run >= 0.999),
        Criterion(f"AUC of norms, {auc}{note}", norm, every_run >= 0.999),
        Criterion(f"training loss{note}", _final(table.loss, **where), every_run <= _LOSS),
    )


def figures(data: Data) -> list[Figure]:
    """The loss, what is learned along training, and all words at the end."""
    runs, random = Reference.of(data), RandomLabels.of(data)
    steps = np.intersect1d(runs["step"].values, random["step"].values)

    def curves(of_runs: Variable, of_random: Variable) -> dict[str, xr.DataArray]:
        measured = _word_mean(runs[of_runs])
        series = {
            head_name(head): measured.sel(head=head, step=steps)
            for head in runs["head"].values.tolist()
        }
        return series | {_CONTROL: _word_mean(random[of_random]).sel(step=steps)}

    quantities = {
        "test accuracy": (Reference.accuracy_test, RandomLabels.accuracy_test),
        "attention on the topic word": (Reference.attention, RandomLabels.attention),
        "AUC of scores, topic against other words": (
            Reference.separation_score,
            RandomLabels.separation_score,
        ),
        "AUC of norms, topic against other words": (
            Reference.separation_norm,
            RandomLabels.separation_norm,
        ),
    }
    drawn = {
        word: band_figure(
            steps, curves(*names), id="c", title=word, y_label=word, lines={"": 1.0}, singles=0
        )
        for word, names in quantities.items()
    }
    return [
        band_figure(
            steps,
            curves(Reference.loss, RandomLabels.loss),
            id="convergence_loss",
            title="The training loss vanishes",
            y_label="training loss",
            log_y=True,
            lines={"": _LOSS},
            singles=SINGLES,
            caption=f"{BAND} The dotted line, {_LOSS:g}, is the bound for the fixed head's last "
            "step.",
        ),
        menu_figure(
            drawn,
            id="convergence_curves",
            title="What is learned on the way",
            choice_label="Show",
            caption=f"{BAND} Attention is the mean over topic words in their own sentences: it "
            "does not reach 1.",
            alt="Accuracy, attention or separation against step.",
        ),
        endings_figure(
            Endings.of(data), id="convergence_endings", title="Topic words stand apart at the end"
        ),
    ]


def _word_mean(values: xr.DataArray) -> xr.DataArray:
    return values.mean("word") if "word" in values.dims else values


claim = Claim(
    id="lu2021.convergence",
    rank=5,
    title="Attention finds the words that matter",
    statement="After 5000 steps scores and norms tell topic words from all others, and the loss "
    "is near zero.",
    why="Only topic words tell the label: the gradients of all their sentences add up, while those "
    "of other words cancel because these occur with every label. What adds up grows, and since "
    "score and norm promote each other, the topic words leave all others behind.",
    finding={
        "holds": "Attention finds the words that matter",
        "fails": "Attention does not single out the words that matter",
        "inconclusive": "Whether attention finds the words that matter is undecided",
    },
    source=Source("stated", PAPER, "section 4, convergence to the topic words"),
    provenance=PROTOTYPE,
    sweeps=(reference, starts),
    criteria=found(Reference, head="fixed"),
    controls=(
        Control(
            "labels at random",
            "With labels drawn independently of the words there is nothing to find.",
            found(RandomLabels, ", labels at random"),
        ),
    ),
    how_measured="Fixed head, every seed's last step; the worst seed counts.",
    refuted_by="One seed in which a topic word is not told apart, or a loss that stays high.",
    notes=(
        "The attention on the topic word is then about 0.6, not 1: it tends to 1 doubly "
        "logarithmically slowly (lu2021.rate).",
    ),
    figures=figures,
)
