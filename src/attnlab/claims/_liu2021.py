"""Liu et al. (2021), first half: how many samples attention saves (docs/theory.md#b2)."""

from __future__ import annotations

from typing import Any

import xarray as xr

from attnlab.claims._claim import Claim, Control, Criterion
from attnlab.complexity import end_values
from attnlab.studies import DIGITS, TOPIC_POOLING, Data

_SOURCE = "Liu, Balaji, Xue, Min (2021), sample complexity of attention"


def _end(name: str, variable: str, **where: Any):
    return lambda data: end_values(data[name], variable, **where)


def _ratio(name: str, student: str, **where: Any):
    return _end(name, "ratio", student=student, **where)


TOPIC = Claim(
    id="liu2021.topic_pooling",
    title="Attention pooling needs fewer sentences than mean pooling, under Adam",
    statement=(
        "On the topic task, trained by Adam, mean pooling needs at least ten times the sentences "
        "of attention pooling "
        "for an accuracy of 0.9."
    ),
    source=_SOURCE,
    studies=(TOPIC_POOLING,),
    criteria=(
        Criterion(
            "mean over attention pooling at accuracy 0.9 (ratio)",
            "interval",
            _ratio("topic pooling", "attention-pooling", task="topic task"),
            10.0,
            ">=",
        ),
    ),
    controls=(
        Control(
            "counts of the topic words",
            "A network that is told the topic words needs no attention.",
            (
                Criterion(
                    "topic-word counts over attention pooling (ratio)",
                    "interval",
                    _ratio("topic pooling, counts", "attention-pooling", task="topic task"),
                    10.0,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=(
        "n is the number of training sentences at which the seed-mean test accuracy first crosses "
        "0.9, interpolated in "
        "log n; the ratio is from paired seeds with a bootstrap interval. Step size and weight "
        "decay are chosen on "
        "validation sentences, from the same grid for every student."
    ),
    refuted_by="A ratio below ten.",
    notes=(
        "The saving is not attention's alone: trained by plain gradient descent, mean pooling "
        "needs far fewer "
        "sentences too, and the ratio is a small one. Adam gives the rare words of the dictionary "
        "steps as large as "
        "those of topic words, which only attention can undo. The ratio under descent is measured "
        "at paper scale and "
        "shown.",
    ),
)


def _patches(data: Data) -> xr.DataArray:
    return data["digits"].accuracy.sel(student="patch-attention", task="digits", size=1250)


NOISY_DIGITS = Claim(
    id="liu2021.digits",
    title="On noisy digits, knowing where to look saves images; patch attention finds it out",
    statement=(
        "In a cluttered canvas a network that is shown only the digit's square needs at most a "
        "fifth of the images for "
        "an accuracy of 0.30; patch self-attention, told nothing, is right in 85 % with 1250."
    ),
    source=_SOURCE,
    studies=(DIGITS,),
    criteria=(
        Criterion(
            "baseline over known mask at accuracy 0.30 (ratio)",
            "interval",
            _ratio("digits", "known-mask", task="digits"),
            5.0,
            ">=",
        ),
        Criterion(
            "accuracy of patch self-attention with 1250 images",
            "estimate",
            _patches,
            0.85,
            ">=",
            "mean",
        ),
    ),
    controls=(
        Control(
            "mask of another image",
            "A mask that shows another place is no help.",
            (
                Criterion(
                    "baseline over wrong mask at accuracy 0.30 (ratio)",
                    "interval",
                    _ratio("digits", "wrong-mask", task="digits"),
                    5.0,
                    ">=",
                ),
            ),
        ),
        Control(
            "no attention",
            "The network on all pixels is not right in 85 %.",
            (
                Criterion(
                    "accuracy of the baseline with 1250 images",
                    "estimate",
                    lambda d: d["digits"].accuracy.sel(
                        student="baseline", task="digits", size=1250
                    ),
                    0.85,
                    ">=",
                    "mean",
                ),
            ),
        ),
    ),
    how_measured=(
        "Scikit-learn's 8×8 digits in a 24×24 canvas with fragments of other digits and noise; "
        "digits of training, "
        "validation and test images are different ones. n is where the seed-mean accuracy first "
        "crosses 0.30; the "
        "ratio is from paired seeds with a bootstrap interval. All students choose from the same "
        "step sizes and weight "
        "decays by validation loss."
    ),
    refuted_by="A ratio below five, or patch attention below 85 %.",
    notes=(
        "The ratio belongs to this protocol: digits stand on a lattice of 8 pixels, which suits "
        "the patches too. With "
        "more clutter it is larger, and with digits at any pixel neither network reaches 0.30 "
        "with a few thousand "
        "images.",
        "The protocol was fixed while looking at seeds 0 to 7; the claim is judged on seeds from "
        "100 on.",
    ),
)

LIU2021 = (
    NOISY_DIGITS,
    TOPIC,
)
