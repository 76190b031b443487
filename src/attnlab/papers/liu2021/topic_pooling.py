"""Pooling on the topic task: under Adam, attention needs far fewer sentences than the mean."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, Source, given_interval
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.curve_sweeps import end
from attnlab.papers.liu2021.pooling_sweeps import (
    LEVEL,
    TASK,
    AgainstCounts,
    TopicPooling,
    UnderDescent,
    topic_pooling,
)
from attnlab.papers.liu2021.sample_figures import tuning_table
from attnlab.report import Figure, learning_curves, needed_figure, ratio_figure

_RATIO = 10.0


def figures(data: Data) -> list[Figure]:
    """Learning curves, needed sentences, what was tuned; at paper scale the same under descent."""
    table = TopicPooling.of(data)
    tuned = tuning_table(table, id="pooling_tuning", title="What validation data chose")
    found = [
        learning_curves(
            table,
            id="pooling_curves",
            title="Accuracy on the topic task against training sentences",
        ),
        needed_figure(
            table, id="pooling_needed", title=f"Sentences needed for an accuracy of {LEVEL:g}"
        ),
        *([] if tuned is None else [tuned]),
    ]
    if UnderDescent.label in data:
        plain = UnderDescent.of(data)
        found += [
            learning_curves(
                plain, id="pooling_descent", title="The same, trained by plain gradient descent"
            ),
            ratio_figure(
                plain,
                id="pooling_descent_ratio",
                title="Sentences saved under plain gradient descent",
            ),
        ]
    return found


claim = Claim(
    id="liu2021.topic_pooling",
    rank=8,
    title="Attention pooling needs fewer sentences than mean pooling, under Adam",
    statement="On the topic task, trained by Adam, mean pooling needs at least ten times the "
    "sentences of attention pooling for an accuracy of 0.9.",
    source=Source("ours", note=f"the question of {PAPER}, on the task of Lu et al. (2021)"),
    provenance=PROTOTYPE,
    sweeps=(topic_pooling,),
    criteria=(
        Criterion(
            "mean over attention pooling at accuracy 0.9 (ratio)",
            end(TopicPooling, TopicPooling.ratio, student="attention-pooling", task=TASK),
            given_interval >= _RATIO,
        ),
    ),
    controls=(
        Control(
            "counts of the topic words",
            "A network that is told the topic words needs no attention.",
            (
                Criterion(
                    "topic-word counts over attention pooling (ratio)",
                    end(AgainstCounts, AgainstCounts.ratio, student="attention-pooling", task=TASK),
                    given_interval >= _RATIO,
                ),
            ),
        ),
    ),
    how_measured="n is the number of training sentences at which the seed-mean test accuracy first "
    "crosses 0.9, interpolated in log n; the ratio is from paired seeds with a bootstrap interval. "
    "Step size and weight decay are chosen on validation sentences, from the same grid for every "
    "student.",
    refuted_by="A ratio below ten.",
    notes=(
        "The saving is not attention's alone: trained by plain gradient descent, mean pooling "
        "needs far fewer sentences too, and the ratio is a small one. Adam gives the rare words of "
        "the dictionary steps as large as those of topic words, which only attention can undo. The "
        "ratio under descent is measured at paper scale and shown.",
    ),
    figures=figures,
)
