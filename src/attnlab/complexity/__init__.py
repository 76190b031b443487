"""Sample complexity: how many samples a model needs, from scores with dims (seed, size)."""

from attnlab.complexity._agreement import RankAgreement, rank_agreement_with
from attnlab.complexity._back_test import BackTest
from attnlab.complexity._bounds import (
    BoundRatios,
    Bounds,
    bound_ratios,
    expected_largest,
    population_ratios,
)
from attnlab.complexity._exponent import Exponent, exponent
from attnlab.complexity._extrapolate import Extrapolation, back_test, extrapolate
from attnlab.complexity._needed import NeededSamples, needed_samples
from attnlab.complexity._ratio import WORTHWHILE, SampleRatio, sample_ratio
from attnlab.complexity._tabulate import Question, choices, end_values, still_falling, tabulate

__all__ = [
    "NeededSamples",
    "SampleRatio",
    "bound_ratios",
    "exponent",
    "extrapolate",
    "needed_samples",
    "sample_ratio",
    "tabulate",
]
