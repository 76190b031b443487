"""One file per question that a user can ask: its plan, its work function, its measurement."""

from attnlab.papers.lu2021.runs import flow_far, train_topic
from attnlab.papers.lu2021.settings import FarSettings, TopicSettings
from attnlab.studies._compare_answers import measure_comparison
from attnlab.studies._compare_explore import Comparison, explore_compare
from attnlab.studies._compare_teachers import CompareSettings, fit_variant
from attnlab.studies._compare_words import WordSettings, fit_words
from attnlab.studies._digits import DigitsSettings, fit_digits
from attnlab.studies._dynamics import explore, foretell, predict
from attnlab.studies._exploration import Exploration, checked_folder, read_exploration
from attnlab.studies._explore_digits import explore_digits
from attnlab.studies._explore_landscape import explore_landscape
from attnlab.studies._explore_samples import explore_samples, measure_samples
from attnlab.studies._landscape import FLATNESS, MINIMA, SADDLES
from attnlab.studies._laws import HEAD_LAWS, OPTIMIZERS, STEP_SIZES
from attnlab.studies._liu2021 import DEPTH, GATE, MOVING_BLOCK, SELF_ATTENTION, STATIC_MASK
from attnlab.studies._liu2021_accuracy import DIGITS, TOPIC_POOLING
from attnlab.studies._lu2021 import (
    ABLATION,
    ABLATIONS,
    ASYMPTOTICS,
    BEYOND,
    BEYOND_ARMS,
    CAPACITY,
    CAPACITY_ARMS,
    REFERENCE,
    STARTS,
)
from attnlab.studies._measure import asked_of
from attnlab.studies._points import PointSettings, find_points
from attnlab.studies._samples import SampleSettings, fit_curve, fit_samples
from attnlab.studies._study import Data, Scale, Study, arm_plan, split_arms

__all__ = [
    "CompareSettings",
    "Comparison",
    "WordSettings",
    "explore_compare",
    "fit_variant",
    "fit_words",
    "measure_comparison",
    "find_points",
    "explore_landscape",
    "PointSettings",
    "SADDLES",
    "MINIMA",
    "FLATNESS",
    "DigitsSettings",
    "explore_digits",
    "fit_digits",
    "DIGITS",
    "TOPIC_POOLING",
    "fit_samples",
    "fit_curve",
    "SampleSettings",
    "measure_samples",
    "explore_samples",
    "STATIC_MASK",
    "SELF_ATTENTION",
    "MOVING_BLOCK",
    "GATE",
    "DEPTH",
    "ABLATION",
    "ABLATIONS",
    "ASYMPTOTICS",
    "BEYOND",
    "BEYOND_ARMS",
    "CAPACITY",
    "CAPACITY_ARMS",
    "Data",
    "Exploration",
    "FarSettings",
    "HEAD_LAWS",
    "OPTIMIZERS",
    "REFERENCE",
    "STARTS",
    "STEP_SIZES",
    "Scale",
    "Study",
    "TopicSettings",
    "arm_plan",
    "checked_folder",
    "explore",
    "flow_far",
    "foretell",
    "predict",
    "read_exploration",
    "asked_of",
    "split_arms",
    "train_topic",
]
