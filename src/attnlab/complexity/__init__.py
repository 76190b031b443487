"""Sample complexity: how many samples a model needs, from scores with dims (seed, size)."""

from attnlab.complexity._agreement import RankAgreement, rank_agreement_with
from attnlab.complexity._back_test import BackTest
from attnlab.complexity._bounds import BoundRatios, Bounds, bound_ratios
from attnlab.complexity._exponent import Exponent, exponent
from attnlab.complexity._extrapolate import Extrapolation, back_test, extrapolate
from attnlab.complexity._needed import NeededSamples, needed_samples
from attnlab.complexity._ratio import WORTHWHILE, SampleRatio, sample_ratio
from attnlab.complexity._tabulate import Question, choices, end_values, tabulate

__all__ = [
    "WORTHWHILE",
    "BackTest",
    "BoundRatios",
    "Bounds",
    "Exponent",
    "Extrapolation",
    "NeededSamples",
    "Question",
    "RankAgreement",
    "SampleRatio",
    "back_test",
    "bound_ratios",
    "choices",
    "end_values",
    "exponent",
    "extrapolate",
    "needed_samples",
    "rank_agreement_with",
    "sample_ratio",
    "tabulate",
]
