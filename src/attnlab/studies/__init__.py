"""One file per question that a user can ask: its plan, its work function, its measurement."""

from attnlab.studies._laws import OPTIMIZERS, REFERENCE, STEP_SIZES
from attnlab.studies._study import Data, Scale, Study, arm_plan, split_arms
from attnlab.studies._topic import TopicSettings, train_topic

__all__ = [
    "Data",
    "OPTIMIZERS",
    "REFERENCE",
    "STEP_SIZES",
    "Scale",
    "Study",
    "TopicSettings",
    "arm_plan",
    "split_arms",
    "train_topic",
]
