"""Training keys and embeddings together is what makes training fast: the fixed head."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from attnlab.lab import Claim, Control, Criterion, Data, Source, median_ratio
from attnlab.papers import PROTOTYPE, restated
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.ablation_sweeps import (
    LATE,
    Combinations,
    ablation,
    loss_ratio,
    order_is_kept,
    ratio_to_next_seed,
)
from attnlab.papers.lu2021.figures import ablation_figures
from attnlab.report import Figure, heat_table, number

if TYPE_CHECKING:
    import xarray as xr

_LEAST = 50  # times that frozen keys leave the loss higher
_LOW, _MIDDLE = 0.04, 0.5  # losses that the table of combinations tells apart


def figures(data: Data) -> list[Figure]:
    """Loss, scores, norms and accuracy with parts frozen; then each choice of trained parts."""
    courses = ablation_figures(data, "fixed", prefix="ablation_fc")
    return [*courses, _combinations(Combinations.of(data))]


def _combinations(ends: xr.Dataset) -> Figure:
    """All choices of trained parts at the last step, the lowest loss first."""
    loss = ends[Combinations.loss].median("seed")
    order = np.argsort(np.nan_to_num(loss.values, nan=np.inf))
    names = ends["setting"].values[order].tolist()
    columns = {
        "training loss": Combinations.loss,
        "test accuracy": Combinations.accuracy_test,
        "mean score": Combinations.mean_score,
        "mean norm": Combinations.mean_norm,
        "mean attention": Combinations.mean_attention,
    }
    cells, tones = [], []
    for name in names:
        medians = [float(ends[column].sel(setting=name).median()) for column in columns.values()]
        cells.append([number(value) for value in medians])
        lowest = float(loss.sel(setting=name))
        tone = "good" if lowest <= _LOW else "mixed" if lowest <= _MIDDLE else "bad"
        tones.append([tone, "", "", "", ""])
    return heat_table(
        names,
        list(columns),
        cells,
        id="ablation_combinations",
        title="Which parts must be trained",
        tones=tones,
        caption="Medians over seeds at the last step, lowest loss first. Of the loss: at most "
        f"{_LOW:g}, at most {_MIDDLE:g}, more.",
    )


claim = Claim(
    id="lu2021.ablation_fc",
    rank=10,
    title="Training keys and embeddings together is what makes it fast, fixed head",
    statement="The loss falls fastest when both are trained, slower with frozen keys, slowest with "
    "frozen embeddings.",
    why="With frozen keys attention never changes, and the topic word stays one of 21 in its "
    "context; with frozen embeddings attention can only choose among the vectors that chance "
    "has drawn. Together they are faster than either alone because each is a factor of the "
    "other's gradient.",
    finding={
        "holds": "Keys and embeddings learn fastest together, fixed head",
        "fails": "Training keys and embeddings together is not clearly fastest, fixed head",
        "inconclusive": "Whether keys and embeddings learn fastest together is undecided, fixed head",
    },
    source=Source("seen", PAPER, "section 5, ablations KF and EF"),
    provenance=PROTOTYPE,
    sweeps=(ablation,),
    criteria=(
        *order_is_kept("fixed"),
        Criterion(
            f"loss, keys frozen over full, step {LATE}",
            loss_ratio("fixed", "keys frozen", "full"),
            median_ratio >= _LEAST,
            provenance=restated(f"median, with an interval, ≥ {_LEAST}"),
        ),
    ),
    controls=(
        Control(
            "full against full",
            "Two full models of different seeds must not be told apart in this way.",
            (
                Criterion(
                    "loss, full of another seed over full",
                    ratio_to_next_seed("fixed"),
                    median_ratio >= _LEAST,
                ),
            ),
        ),
    ),
    how_measured="Initial embeddings N(0, 0.1²), 6000 steps; the three settings of a seed share "
    "data and start. Every seed must keep the order at steps 3000 and 6000.",
    refuted_by="One seed that breaks the order, or a gain of training the keys below the bound.",
    notes=(
        "With frozen keys the test accuracy still reaches 1: this is a statement about loss and "
        "speed.",
    ),
    figures=figures,
)
