"""Known weights of words: every local minimum is good, which a quarter of the problems refutes."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Data
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021.point_figures import minima_shares
from attnlab.papers.liu2021.point_sweeps import (
    CAVEAT,
    HOW,
    SOURCE,
    Minima,
    every_minimum_good,
    minima,
)
from attnlab.report import Figure

_MODEL, _SAMPLES = "known-weights-plain", 128


def figures(data: Data) -> list[Figure]:
    """In how many problems every minimum is good."""
    return [
        minima_shares(
            Minima.of(data),
            (_MODEL, _SAMPLES),
            id="minima_shares_weights",
            title="Problems in which every minimum is good: known weights of words",
        ),
    ]


claim = Claim(
    id="liu2021.local_minima_weights",
    rank=10,
    title="With known weights of words, every local minimum is good",
    statement="With known weights of words (the head on x a, without w_V) and 128 samples, every "
    "certified minimum is good in at least 90 % of the problems.",
    why="Known weights say how the words are mixed; the hidden units of the head must still find "
    "their places among the mixed words, and some starts leave them in the wrong ones. Most "
    "minima are good, and yet the statement fails because one bad minimum is enough to break "
    "“every” for a whole problem.",
    finding={
        "holds": "With known weights of words, every local minimum is good in nearly all problems",
        "fails": "Even with known weights of words, some problems have bad minima",
        "inconclusive": "Whether every minimum is good with known weights of words is undecided",
    },
    source=SOURCE,
    provenance=PROTOTYPE,
    sweeps=(minima,),
    criteria=(every_minimum_good(_MODEL, "known weights", _SAMPLES),),
    controls=(
        Control(
            "known gate",
            "The same question about a known gate must be answered yes.",
            (every_minimum_good("known-attention", "known gate", _SAMPLES),),
            should="accept",
        ),
    ),
    how_measured=HOW,
    refuted_by="A share of problems that is surely below 90 %.",
    expected="fails",
    notes=(
        "Most minima are good, and yet about a quarter of the problems have one that is not.",
        CAVEAT,
    ),
    figures=figures,
)
