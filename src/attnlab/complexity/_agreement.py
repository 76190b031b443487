"""Rank agreement of predicted and measured ratios, some of which are only bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from attnlab._errors import AttnlabError
from attnlab.complexity._curves import RESAMPLES, percentiles, picks_of
from attnlab.complexity._ratio import SampleRatio
from attnlab.stats import MIN_RUNS, Interval


@dataclass(frozen=True, eq=False)
class RankAgreement:
    """Spearman's ρ between predicted and measured ratios over settings.

    - ``value``: the *lowest* ρ found that the bounded measurements allow; ``highest``: the highest;
      equal if no measurement is only bounded;
    - ``interval``: over resampled settings; its low end is for the lowest ρ, its high end for the
      highest; [−1, 1] for fewer than 8 settings;
    - ``predicted``, ``measured``: the values used; ``bounded``: +1 for "at least", −1 for "at most",
      0 for exact; ``left_out``: the number of settings without a measured ratio.
    """

    value: float
    highest: float
    interval: Interval
    predicted: np.ndarray
    measured: np.ndarray
    bounded: np.ndarray
    left_out: int

    def __str__(self) -> str:
        low, high = self.interval.low, self.interval.high
        confidence = f"{self.interval.confidence:.0%}".replace("%", " %")
        sentence = f"rank agreement {self.value:.2f} over {self.measured.size} settings"
        sentence += f" ({confidence} interval {low:.2f} to {high:.2f}"
        bounds = int(np.count_nonzero(self.bounded))
        if bounds:
            sentence += f"; {bounds} known only as bounds, taken at their worst"
            sentence += f"; {self.highest:.2f} at their best"
        return sentence + (f"; {self.left_out} left out)" if self.left_out else ")")


def rank_agreement_with(
    predicted: Any,
    measured: Sequence[SampleRatio] | Any,
    *,
    at_least: Any = None,
    at_most: Any = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RankAgreement:
    """Spearman's ρ of predictions and measured ratios, one of each per setting.

    The interval is over resampled settings. ``measured`` are ``SampleRatio`` records, or numbers
    with masks ``at_least`` and ``at_most`` for bounds; nan (an unknown ratio) is left out. A bounded
    value may lie anywhere beyond its bound: each in turn is moved to every place among the others,
    from two starts, until no move lowers (raises) ρ. Only the low end may be claimed.

    >>> rank_agreement_with([1, 2, 3, 4], [1.0, 2.0, 3.0, 9.0]).value
    1.0
    >>> round(rank_agreement_with([1, 2, 3, 4], [1.0, 2.0, 3.0, 9.0], at_least=[True, False, False, False]).value, 6)
    -0.2
    """
    x, y, side, left_out = _settings(predicted, measured, at_least, at_most)
    picks = picks_of(len(x), resamples, seed)
    ends, many = [], []
    for sign in (-1, 1):
        placed = _place(x, y, side, sign)
        ends.append(float(_spearman(x, placed)[0]))
        drawn = _spearman(x[picks], placed[picks])
        many.append(drawn[~np.isnan(drawn)])
    interval = Interval(low=-1.0, high=1.0, estimate=ends[0], confidence=confidence)
    if len(x) >= MIN_RUNS and min(len(each) for each in many):
        interval = percentiles(many[0], many[1], ends[0], confidence)
    return RankAgreement(ends[0], ends[1], interval, x, y, side, left_out)


def _settings(
    predicted: Any, measured: Any, at_least: Any, at_most: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Predictions, measurements and their open sides, without unknown ratios, and their number."""
    x = np.asarray(predicted, np.float64)
    if len(measured) and all(isinstance(one, SampleRatio) for one in measured):
        y = np.array([one.value for one in measured])
        side = np.array([{"at least": 1, "at most": -1}.get(one.kind, 0) for one in measured])
    else:
        y = np.asarray(measured, np.float64)
        masks = [
            np.zeros(y.shape, bool) if mask is None else np.asarray(mask, bool)
            for mask in (at_least, at_most)
        ]
        if masks[0].shape != y.shape or masks[1].shape != y.shape or (masks[0] & masks[1]).any():
            raise AttnlabError(
                "at_least and at_most: expected one mask per setting, no setting in both"
            )
        side = masks[0].astype(int) - masks[1].astype(int)
    if x.ndim != 1 or x.shape != y.shape:
        raise AttnlabError(
            f"{x.shape} predictions for {y.shape} measurements: expected one of each per setting"
        )
    keep = np.isfinite(x) & np.isfinite(y)
    if keep.sum() < 3:
        raise AttnlabError(
            f"{int(keep.sum())} settings with a measured ratio: expected at least 3; measure more"
        )
    return x[keep], y[keep], side[keep], int((~keep).sum())


def _spearman(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Correlation of the ranks of each row; nan if one of the two is constant."""
    a, b = (rankdata(np.atleast_2d(each), axis=1) for each in (x, y))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    spread = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    varied = spread > 0
    return np.where(
        varied, np.clip((a * b).sum(axis=1) / np.where(varied, spread, 1.0), -1.0, 1.0), np.nan
    )


def _place(x: np.ndarray, y: np.ndarray, side: np.ndarray, sign: int) -> np.ndarray:
    """Measurements with the open ones moved beyond their bounds to maximise sign · ρ.

    A local search from two starts: the bounds themselves, and all open values farthest out, in the
    order that suits ``sign``.
    """
    far = y.copy()
    rank = rankdata(x) * sign
    span = np.ptp(y) + 1.0
    far[side > 0] = y.max() + span + rank[side > 0]
    far[side < 0] = y.min() - 2 * span - len(y) + rank[side < 0]
    ends = [_climb(x, start, y, side, sign) for start in (y, far)]
    return max(
        ends, key=lambda placed: float(np.nan_to_num(sign * _spearman(x, placed)[0], nan=-2.0))
    )


def _climb(
    x: np.ndarray, start: np.ndarray, y: np.ndarray, side: np.ndarray, sign: int
) -> np.ndarray:
    """Move one open value at a time to its best place among the others."""
    placed, moved = start.copy(), True
    while moved:
        moved = False
        for k in np.flatnonzero(side):
            others = np.unique(np.delete(placed, k))
            gaps = np.concatenate(
                [[others[0] - 1], (others[1:] + others[:-1]) / 2, [others[-1] + 1], others, [y[k]]]
            )
            gaps = gaps[(gaps - y[k]) * side[k] >= 0]
            trials = np.tile(placed, (len(gaps), 1))
            trials[:, k] = gaps
            scores = np.nan_to_num(
                sign * _spearman(np.broadcast_to(x, trials.shape), trials), nan=-2.0
            )
            best = int(np.argmax(scores))
            if scores[best] > np.nan_to_num(sign * _spearman(x, placed)[0], nan=-2.0) + 1e-12:
                placed, moved = trials[best], True
    return placed
