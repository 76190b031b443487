"""Accuracy, balanced accuracy and macro-F1 of answers, with intervals over runs and over items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy.stats import t as student_t

from attnlab._errors import AttnlabError
from attnlab.stats._interval import CONFIDENCE, Interval, check_confidence

SCORES = ("accuracy", "balanced accuracy", "macro-F1")


@dataclass(frozen=True, eq=False)
class Score:
    """A score of some runs on common items: its value in each run, and how far each item moves it.

    ``influence`` is the derivative of the score by an item's weight, mean over runs, times the
    number of items; it sums to zero. Two scores of the same runs and items can be subtracted, which
    pairs them.
    """

    runs: Float[ndarray, "runs"]
    influence: Float[ndarray, "items"]

    def __sub__(self, other: Score) -> Score:
        return Score(self.runs - other.runs, self.influence - other.influence)

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Mean over runs, with an interval for other runs on other items of the same kind.

        The variance is the sum of that of the items, ``Σ influence² / (n (n − 1))``, and of that of
        the runs, ``s²/r``; Student's t with Satterthwaite's degrees of freedom. One run has no
        variance of its own: the interval is then over items alone.

        >>> truth = np.arange(200) % 2
        >>> said = np.where(np.arange(200) < 40, 1 - truth, truth)
        >>> print(answer_scores(said[None], truth, 2)["accuracy"].interval())
        0.8 [0.744, 0.856]
        """
        check_confidence(confidence)
        items, runs = len(self.influence), len(self.runs)
        parts = [(float(np.sum(self.influence**2)) / (items * (items - 1)), items - 1)]
        if runs > 1:
            parts.append((float(np.var(self.runs, ddof=1)) / runs, runs - 1))
        estimate, variance = float(np.mean(self.runs)), sum(part for part, _ in parts)
        if variance <= 0:
            return Interval(estimate, estimate, estimate, confidence)
        freedom = variance**2 / sum(part**2 / count for part, count in parts)
        reach = float(student_t.ppf((1 + confidence) / 2, freedom)) * variance**0.5
        return Interval(estimate - reach, estimate + reach, estimate, confidence)


def answer_scores(
    said: Int[ndarray, "runs items"], truth: Int[ndarray, "items"], classes: int
) -> Mapping[str, Score]:
    """The scores of some runs' answers to the same items, by name (``SCORES``).

    Classes that have no item count in none of the means. F1 of a class is ``2 TP / (items of it +
    answers that name it)``.
    """
    said, truth = np.atleast_2d(said), np.asarray(truth)
    if said.shape[1:] != truth.shape or len(truth) < 2:
        raise AttnlabError(
            f"answers of shape {said.shape} to {truth.shape} items: expected (runs, items), and at "
            "least 2 items"
        )
    present = np.unique(truth)
    if present[0] < 0 or present[-1] >= classes:
        raise AttnlabError(
            f"classes {present[0]} to {present[-1]}: expected numbers below {classes}"
        )
    items = len(truth)
    right = said == truth
    accuracy = right.mean(axis=1)
    found = {"accuracy": Score(accuracy, right.mean(axis=0) - accuracy.mean())}
    recalls, recall_influence = [], np.zeros(items)
    f1s, f1_influence = [], np.zeros(items)
    for label in present:
        own, named = truth == label, said == label
        recall = right[:, own].mean(axis=1)
        recalls.append(recall)
        recall_influence[own] += (right[:, own].mean(axis=0) - recall.mean()) * items / own.sum()
        both = own.sum() + named.sum(axis=1)
        f1 = 2 * (own & named).sum(axis=1) / both
        f1s.append(f1)
        moved = (2 * (own & named) - f1[:, None] * (own.astype(float) + named)) / both[:, None]
        f1_influence += items * moved.mean(axis=0)
    count = len(present)
    found["balanced accuracy"] = Score(np.mean(recalls, axis=0), recall_influence / count)
    found["macro-F1"] = Score(np.mean(f1s, axis=0), f1_influence / count)
    return found
