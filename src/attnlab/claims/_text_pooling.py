"""Liu et al. (2021) on text: mean against attention pooling of sentiment sentences
(docs/theory.md#b2).
"""

from __future__ import annotations

from attnlab.claims._claim import Claim, Control, Criterion, Measure
from attnlab.complexity import WORTHWHILE, end_values
from attnlab.papers.liu2021.pooling_sweeps import topic_pooling
from attnlab.studies import Study
from attnlab.studies._text import ROTTEN_TOMATOES
from attnlab.studies._text_pooling import text_pooling_study

TOPIC_POOLING = Study(topic_pooling.name, topic_pooling.plan, topic_pooling.measure)


def _ratio(name: str, task: str) -> Measure:
    return lambda data: end_values(data[name], "ratio", student="attention-pooling", task=task)


def text_pooling_claim(source: str = ROTTEN_TOMATOES) -> Claim:
    """The claim on one source, as ``text_claims`` takes it."""
    return Claim(
        id="liu2021.text",
        title="On sentiment text attention pooling saves no labels worth having",
        statement=(
            f"Mean pooling needs less than {WORTHWHILE:g} times the labels of attention pooling "
            "for the accuracy that "
            "both reach, less a point."
        ),
        source="Liu, Balaji, Xue, Min (2021), sample complexity of attention",
        studies=(text_pooling_study(source), TOPIC_POOLING),
        criteria=(
            Criterion(
                "mean over attention pooling (ratio)",
                "interval",
                _ratio("text pooling", "text"),
                WORTHWHILE,
                "<=",
            ),
        ),
        controls=(
            Control(
                "topic words",
                "On the topic task, where one word tells the label, the same must be rejected.",
                (
                    Criterion(
                        "mean over attention pooling, topic task (ratio)",
                        "interval",
                        _ratio("topic pooling", "topic task"),
                        WORTHWHILE,
                        "<=",
                    ),
                ),
            ),
        ),
        how_measured=(
            "Test accuracy, mean over seeds, against the number of labelled training texts; both "
            "students have the "
            "same dimension, start, minibatches and grid of step sizes, chosen on validation "
            "texts. "
            "Labels needed by interpolation in log n, the ratio from paired seeds with a "
            "bootstrap interval."
        ),
        refuted_by=f"A ratio that is surely above {WORTHWHILE:g}.",
        notes=(
            "The ratio depends on the tuning grid: with large steps only, mean pooling looks "
            "better than attention.",
        ),
    )
