"""Checks of the estimator's inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from attnlab._errors import AttnlabError
from attnlab.data import Texts, Tokenizer, is_missing, split_texts

FEWEST_HELD_OUT = 50


def as_texts(given: Any) -> list[str]:
    """A list, an array or a column of a data frame (pandas, Polars) of strings, as a list."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise AttnlabError(
            f"got {type(given).__name__} {str(given)[:40]!r}; expected a list of texts"
        )
    columns = getattr(given, "columns", None)
    if columns is not None:
        raise AttnlabError(
            f"got a table with the columns {list(columns)}; expected only its text column"
        )
    shape = getattr(given, "shape", None)
    if shape is not None and len(shape) != 1:
        raise AttnlabError(f"got an array of shape {tuple(shape)}; expected one axis of texts")
    texts = list(given)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise AttnlabError(
                f"text number {i} is {type(text).__name__} {str(text)[:40]!r}; expected a string: "
                "drop missing texts first, and give texts, not numbers"
            )
    return texts


def as_labels(given: Any, count: int) -> tuple[ndarray, Int[ndarray, "texts"]]:
    """The classes, sorted, and the class number of each text."""
    labels = np.asarray(given)
    if labels.ndim != 1:
        raise AttnlabError(f"y has shape {labels.shape}; expected one label per text")
    if len(labels) != count:
        raise AttnlabError(f"got {count} texts but {len(labels)} labels; give one label per text")
    missing = np.flatnonzero([is_missing(label) for label in labels.tolist()])
    if len(missing):
        raise AttnlabError(
            f"label number {missing[0]} is missing: drop what has no label first "
            f"({len(missing)} of {count})"
        )
    try:
        check_classification_targets(labels)
        classes, numbers = np.unique(labels, return_inverse=True)
    except (ValueError, TypeError) as error:
        raise AttnlabError(f"the labels are not classes: {error}") from error
    if len(classes) < 2:
        raise AttnlabError(
            f"all {count} texts have the same label {classes.tolist()}; classification needs at "
            "least 2 classes"
        )
    return classes, numbers


def as_tokenizer(
    given: str | Callable[[str], Iterable[str]] | None, lower: bool, punctuation: bool
) -> Tokenizer:
    """The user-defined tokeniser, or ours with its two options."""
    if isinstance(given, Tokenizer):
        return given
    return (
        Tokenizer(bool(lower), bool(punctuation))
        if given is None
        else Tokenizer.from_function(given)
    )


def as_seed(given: Any) -> int:
    """A seed from scikit-learn's ``random_state``."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool) and given >= 0:
        return int(given)
    try:
        return int(check_random_state(given).randint(2**31 - 1))
    except ValueError as error:
        raise AttnlabError(
            f"random_state={given!r}: expected a whole number ≥ 0, a RandomState or None"
        ) from error


def as_weights(
    given: str | Mapping[Any, float] | None, classes: ndarray, counts: Int[ndarray, "classes"]
) -> Float[ndarray, "classes"] | None:
    """A weight per class, 1 by default; ``"balanced"`` is texts / (classes · texts of the class)."""
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        return counts.sum() / (len(counts) * np.maximum(counts, 1))
    if not isinstance(given, Mapping):
        raise AttnlabError(
            f"class_weight={given!r}: expected None, 'balanced' or a dictionary from class to "
            "weight"
        )
    names = classes.tolist()
    strange = [name for name in given if name not in names]
    if strange:
        raise AttnlabError(
            f"class_weight names {strange[0]!r}, which is not one of the classes {names}"
        )
    weights = np.array([float(given.get(name, 1.0)) for name in names])
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise AttnlabError(f"class_weight={dict(given)!r}: expected positive weights")
    return weights


def hold_out(
    texts: list[str], numbers: Int[ndarray, "texts"], fraction: float, seed: int
) -> tuple[ndarray, ndarray]:
    """Places of training and validation texts: stratified, equal texts on one side.

    All texts are for training if fewer than 50 would be held out (the loss on a few texts is noise,
    which often ends training too early), or if a class has a single text.
    """
    if not 0 < fraction < 1:
        raise AttnlabError(f"validation_fraction={fraction}: expected a number between 0 and 1")
    nothing = np.arange(len(texts)), np.zeros(0, np.int64)
    try:
        parts = split_texts(
            Texts.of(texts, [str(number) for number in numbers]),
            fractions=(1 - fraction, fraction),
            seed=seed,
        )
    except AttnlabError:
        return nothing
    train, valid = (part.rows - 1 for part in parts)
    return (train, valid) if len(valid) >= FEWEST_HELD_OUT else nothing
