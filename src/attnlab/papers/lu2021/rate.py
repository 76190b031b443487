"""The rate of convergence: the loss falls like 1/τ, the score grows like 2 log log τ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

import attnlab as al
from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Grid,
    Measure,
    Provenance,
    Scale,
    Source,
    Sweep,
    Variable,
    every_run,
    mean,
    variable,
)
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.figures import BAND, SINGLES, far_figures
from attnlab.papers.lu2021.sweeps import WORK, Flow, more
from attnlab.report import Figure, band_figure, menu_figure

if TYPE_CHECKING:
    import xarray as xr

_WINDOW = (1e6, 1e9)  # times over which training itself is judged
_BEFORE = (1e3, 1e6)
_FAR = _WINDOW[1]
_AGREES = (0.98, 1.02)  # the score there, in training over the reduced model
_PILOT = Provenance("after", "2026-11-19", "seeds 0 and 1 at three sizes")
_EXPONENT, _RATE, _LINEAR = (-1.02, -0.98), (1.8, 2.2), (0.9, 1.1)


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


class Training(Flow, label="training"):
    """Training itself on the full data, at times up to 1e9, with what the reduced model predicts."""

    predicted_score = variable("score that the reduced model predicts")
    predicted_attention = variable("attention that it predicts")
    predicted_loss = variable("loss that it predicts")
    halved_score = variable("as predicted_score, m halved")
    loss_exponent = variable("exponent of the loss in τ, 1e6 to 1e9")
    score_rate = variable("ds / d log log τ, 1e6 to 1e9")
    score_slowdown = variable("ds / d log τ, 1e6 to 1e9 over 1e3 to 1e6")


def _training_grid(scale: Scale, seeds: int) -> Grid:
    # A step of 0.1 over the loss: τ grows by about a tenth a step once the loss falls like 1/τ. Near
    # 1e-9 the steps stop growing, before the loss is lost in rounding.
    del scale
    base = {"record": "curves", "predict": True, "loss_floor": 1e-9, "steps": 4000, "rows": 400}
    return Grid({"fixed": base}, seeds)


def _measure_training(arms: Data) -> Data:
    (run,) = arms.values()
    decades = round(math.log10(_FAR))
    times = 10.0 ** (np.arange(10 * decades + 1) / 10)
    found = al.lab.dataset(
        {
            name: al.dynamics.at_times(run[str(name)], run.elapsed, times)
            for name in (
                Training.score,
                Training.norm,
                Training.attention,
                Training.loss,
                Training.predicted_score,
                Training.predicted_attention,
                Training.predicted_loss,
                Training.halved_score,
            )
        }
    )
    d = al.dynamics
    found[Training.loss_exponent] = d.loss_exponent(found.loss, window=_WINDOW)
    found[Training.score_rate] = d.score_rate(found.score, window=_WINDOW)
    slowdown = d.score_slowdown(found.score, early=_BEFORE, late=_WINDOW)
    found[Training.score_slowdown] = slowdown
    return {Training.label: found}


training = Sweep("far training", WORK, _training_grid, _measure_training, (Training,))


def over_prediction(predicted: Variable) -> Measure:
    """The score of training over a predicted one, at the last time."""

    def measure(data: Data) -> xr.DataArray:
        return (Training.score(data) / predicted(data)).isel(time=-1, drop=True)

    return measure


def agrees(name: str, predicted: Variable) -> Criterion:
    """Whether the score of training is the predicted one, at the last time."""
    return Criterion(
        f"score at τ = 1e9, training over {name}",
        over_prediction(predicted),
        every_run.between(*_AGREES),
        provenance=_PILOT,
    )


def figures(data: Data) -> list[Figure]:
    """Loss, score and attention to far times, of the reduced model; and of training beside it."""
    titles = (
        "The loss falls like 1/τ",
        "The score grows like 2 log log τ",
        "Attention tends to 1, slowly",
    )
    return [*far_figures(Far.of(data), prefix="rate", titles=titles), _training(Training.of(data))]


def _training(runs: xr.Dataset) -> Figure:
    """What training does to time 1e9, and what the reduced model says."""
    quantities = {
        "score s": (Training.score, Training.predicted_score),
        "attention on the topic word": (Training.attention, Training.predicted_attention),
        "training loss": (Training.loss, Training.predicted_loss),
    }
    drawn = {}
    for label, names in quantities.items():
        series = {}
        for name, variable_ in zip(("training", "reduced model"), names, strict=True):
            values = runs[variable_]
            series[name] = values.mean("word") if "word" in values.dims else values
        drawn[label] = band_figure(
            runs["time"].values,
            series,
            id="t",
            title=label,
            x_label="time τ",
            y_label=label,
            log_x=True,
            log_y=label == "training loss",
            singles=SINGLES,
        )
    return menu_figure(
        drawn,
        id="rate_training",
        title="Training itself, to τ = 1e9",
        choice_label="Show",
        caption="All sentences, fixed head, steps in inverse proportion to the loss; mean over the "
        f"topic words. The reduced model starts alike and is read at the same times. {BAND}",
        alt="Score, attention or loss of training and of the reduced model against time.",
    )


claim = Claim(
    id="lu2021.rate",
    rank=6,
    title="The loss falls like 1/τ, the score grows like 2 log log τ",
    statement="Training converges to the topic word with certainty, and doubly logarithmically "
    "slowly.",
    why="The better a sentence is classified the weaker is its gradient, because the slope of "
    "cross-entropy is the probability that is still wrong. So the margin grows like log τ and "
    "the loss falls like 1/τ. The norm grows with the margin, and by the score–norm relation "
    "e^s grows like the norm squared: the score follows 2 log log τ, which is nearly standing "
    "still.",
    finding={
        "holds": "The loss falls like 1/τ, the score grows only like 2 log log τ",
        "fails": "Loss and score do not grow at the predicted rates",
        "inconclusive": "At which rates loss and score change is undecided",
    },
    source=Source("ours", note=f"the dynamics of {PAPER}, carried to their limit"),
    provenance=PROTOTYPE,
    sweeps=(asymptotics, training),
    criteria=(
        Criterion(
            "exponent of the loss, 1e9 to 1e12",
            Far.loss_exponent.at(head="fixed"),
            mean.between(*_EXPONENT),
        ),
        Criterion(
            "ds / d log log τ, 1e9 to 1e12",
            Far.score_rate.at(head="fixed"),
            mean.between(*_RATE),
        ),
        Criterion(
            "exponent of the loss in training, 1e6 to 1e9",
            Training.loss_exponent,
            mean.between(*_EXPONENT),
            provenance=_PILOT,
        ),
        Criterion(
            "ds / d log log τ in training, 1e6 to 1e9",
            Training.score_rate,
            mean.between(*_RATE),
            provenance=_PILOT,
        ),
        agrees("the reduced model", Training.predicted_score),
    ),
    controls=(
        Control(
            "singly logarithmic",
            "“ds / d log τ is constant” would make the early rate equal to the late one.",
            (
                Criterion(
                    "ds / d log τ, late over early",
                    Far.score_slowdown.at(head="fixed"),
                    mean.between(*_LINEAR),
                ),
                Criterion(
                    "ds / d log τ in training, late over early",
                    Training.score_slowdown,
                    mean.between(*_LINEAR),
                ),
            ),
        ),
        Control(
            "m halved",
            "With half of the other words the reduced model must miss the score of training.",
            (agrees("the reduced model, m halved", Training.halved_score),),
        ),
    ),
    how_measured="The reduced model's flow from random starts, integrated adaptively to time 1e12; "
    "slopes are least-squares fits over 1e9 to 1e12, the control compares 1e3 to 1e6 with 1e9 to "
    "1e12. Training itself, on the full data with steps in inverse proportion to the loss, reaches "
    "1e9 in some thousand steps; slopes over 1e6 to 1e9, the control against 1e3 to 1e6.",
    refuted_by="Another exponent, or a score that grows at a constant rate in log τ.",
    figures=figures,
)
