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
from attnlab.studies._landscape import FLATNESS, MINIMA, SADDLES
from attnlab.studies._laws import HEAD_LAWS, OPTIMIZERS, STEP_SIZES
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
from attnlab.studies._own_text import TextStudy, study_texts
from attnlab.studies._points import PointSettings, find_points
from attnlab.studies._study import Data, Scale, Study, arm_plan, split_arms
from attnlab.studies._text import ROTTEN_TOMATOES, TextParts, TextSettings, text_parts, train_text
from attnlab.studies._text_claims import text_study
from attnlab.studies._text_prepare import TextSource, prepare_texts

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
    "ROTTEN_TOMATOES",
    "STEP_SIZES",
    "Scale",
    "Study",
    "TextParts",
    "TextSettings",
    "TextSource",
    "TextStudy",
    "TopicSettings",
    "arm_plan",
    "checked_folder",
    "explore",
    "flow_far",
    "foretell",
    "predict",
    "prepare_texts",
    "read_exploration",
    "asked_of",
    "split_arms",
    "study_texts",
    "text_parts",
    "text_study",
    "train_text",
    "train_topic",
]
