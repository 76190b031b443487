"""Known attention helps as a prior too, if it is right."""

from __future__ import annotations

import attnlab as al
from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Grid,
    Scale,
    Sweep,
    given_interval,
    variable,
)
from attnlab.papers.liu2021 import EARLY_SEEDS
from attnlab.papers.liu2021.curve_sweeps import Curves, end
from attnlab.papers.liu2021.variant_settings import TEACHER_WORK
from attnlab.papers.liu2021.variant_sweeps import (
    FIRST_SEED,
    HOW,
    SAMPLES,
    SEEDS,
    SOURCE,
    WORTHWHILE,
)
from attnlab.report import Figure, learning_curves, needed_figure, ratio_figure

_LEVEL = 0.5
_RIGHT, _WRONG = "softmax+prior:1", "softmax+wrong-prior:1"
_TIMES_SEEDS = 2  # with 8 seeds the interval of the ratio is as wide as what is asked
_TASK = "hard"
_SAVES = given_interval >= WORTHWHILE


class Prior(Curves, label="prior"):
    """Learning curves on the hard teacher, without a prior, with the right and with a wrong one."""

    entropy = variable("mean entropy of attention", optional=True)
    attention = variable("attention on the words that matter", optional=True)


def _grid(scale: Scale, seeds: int) -> Grid:
    """Softmax by itself, and with a penalty toward the teacher's weights and toward those of other
    words.
    """
    sizes = (64, 128, 256) if scale == "quick" else (64, 91, 128, 181, 256, 362, 512, 1024)
    arms = {
        variant: {"variant": variant, "sizes": sizes, "drawn": SAMPLES}
        for variant in ("softmax", _RIGHT, _WRONG)
    }
    return Grid(arms, _TIMES_SEEDS * seeds, FIRST_SEED)


def _measure(arms: Data, confidence: float | None = None) -> Data:
    table = al.complexity.tabulate(
        {(variant, _TASK): data for variant, data in arms.items()},
        al.complexity.Question(_LEVEL, against="softmax"),
        dim="task",
        confidence=confidence or al.stats.CONFIDENCE,
    )
    return {Prior.label: table}


prior = Sweep("known attention as a prior", TEACHER_WORK, _grid, _measure, (Prior,))


def figures(data: Data) -> list[Figure]:
    """Learning curves, needed samples and what a prior saves."""
    table = Prior.of(data)
    return [
        learning_curves(
            table, id="prior_curves", title="Learning curves with known attention as a prior"
        ),
        needed_figure(table, id="prior_needed", title="Samples needed with and without a prior"),
        ratio_figure(
            table, id="prior_ratio", title="How many times fewer samples than without a prior"
        ),
    ]


claim = Claim(
    id="liu2021.prior_helps",
    rank=19,
    title="Known attention helps as a prior too, if it is right",
    statement="A penalty |a − given|² toward the teacher's weights makes softmax need at least "
    f"{WORTHWHILE} times fewer samples for an error of {_LEVEL}; toward weights of other words it "
    "does not.",
    why="A penalty toward the right weights tells the query where to look, and fewer labels have "
    "to. Toward the weights of other words it works against the labels, because it pulls "
    "attention off the word that matters.",
    finding={
        "holds": "A prior on attention saves samples, if it is right",
        "fails": "Even a right prior on attention saves few samples",
        "inconclusive": "Whether a right prior on attention saves samples is undecided",
    },
    source=SOURCE,
    provenance=EARLY_SEEDS,
    sweeps=(prior,),
    criteria=(
        Criterion(
            "samples saved by the right prior (ratio)",
            end(Prior, Prior.ratio, student=_RIGHT, task=_TASK),
            _SAVES,
        ),
    ),
    controls=(
        Control(
            "wrong prior",
            "A penalty toward the weights of other words saves nothing.",
            (
                Criterion(
                    "samples saved by the wrong prior (ratio)",
                    end(Prior, Prior.ratio, student=_WRONG, task=_TASK),
                    _SAVES,
                ),
            ),
        ),
    ),
    how_measured=f"{HOW} n is where the seed-median error first crosses {_LEVEL}, interpolated in "
    "log n; the ratio is from paired seeds with a bootstrap interval. The penalty has the strength "
    "1 and is not in the validation loss.",
    refuted_by=f"A ratio that is surely below {WORTHWHILE}.",
    notes=(SEEDS,),
    figures=figures,
)
