"""The landscape lens: certified stationary points, curvature with bounds, flatness, surfaces."""

from attnlab.landscape._align import aligned, group_points, same_point
from attnlab.landscape._certify import Bounded, Certificate, certify
from attnlab.landscape._connect import Connection, align, curved_path, straight_path
from attnlab.landscape._density import Density, density
from attnlab.landscape._flatness import Flatness, flatness
from attnlab.landscape._operator import groups
from attnlab.landscape._probe import Curvature, Parameters
from attnlab.landscape._problem import MeanSquare, Problem, cross_entropy, squared_error
from attnlab.landscape._reduced_words import ReducedWords, reduced_problem
from attnlab.landscape._spaces import Space, hidden_spaces
from attnlab.landscape._spectrum import (
    Eigenvalue,
    Extremes,
    Spectrum,
    exact_spectrum,
    extremes,
    quadratic,
)
from attnlab.landscape._stationary import find_saddles, minimise
from attnlab.landscape._surface import (
    Surface,
    eigen_directions,
    filter_directions,
    path_directions,
    surface,
)
from attnlab.landscape._symmetry import tangents, zero_modes
from attnlab.landscape._trace import Trace, trace
from attnlab.landscape._words import word_loss, word_problem

__all__ = [
    "Certificate",
    "Curvature",
    "Problem",
    "certify",
    "curved_path",
    "density",
    "exact_spectrum",
    "extremes",
    "filter_directions",
    "find_saddles",
    "flatness",
    "group_points",
    "minimise",
    "reduced_problem",
    "straight_path",
    "surface",
    "trace",
    "zero_modes",
]
