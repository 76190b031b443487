"""Many variants on the same seeds: which can be told apart, after a correction for asking many
times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy.stats import rankdata

from attnlab._errors import AttnlabError
from attnlab.stats._interval import check_confidence

LEAST_PAIRS = 6  # with fewer, the two-sided test cannot come below 0.05 whatever the values


def signed_rank(a: Any, b: Any) -> float:
    """The exact p-value of Wilcoxon's signed-rank test of paired runs, two-sided (Wilcoxon 1945;
    zeros: Pratt 1959).

    ``W = Σ_k sign(a_k − b_k) · rank|a_k − b_k|``; under the null every sign is a fair coin. A pair
    with a nan does not count; fewer than 6 pairs give 1, for they cannot tell anything apart.

    >>> signed_rank(np.arange(8) + 1.0, np.zeros(8)) == 2 / 2**8
    True
    """
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise AttnlabError(
            f"a has shape {first.shape} and b {second.shape}: expected two lists of the same runs"
        )
    difference = (first - second)[~(np.isnan(first) | np.isnan(second))]
    if len(difference) < LEAST_PAIRS or not difference.any():
        return 1.0
    # Ranks are halves at worst: twice of them are whole numbers, whose sums can be counted.
    ranks = np.where(difference == 0, 0, np.rint(2 * rankdata(np.abs(difference)))).astype(int)
    observed = abs(int(np.sum(np.sign(difference) * ranks)))
    total = int(ranks.sum())
    chances = np.zeros(2 * total + 1)  # of W = −total … total, one pair after the other
    chances[total] = 1.0
    for rank in ranks:
        chances = 0.5 * (np.roll(chances, rank) + np.roll(chances, -rank))
    return min(1.0, float(chances[np.abs(np.arange(-total, total + 1)) >= observed].sum()))


def holm(p_values: Any) -> np.ndarray:
    """p-values corrected for their number (Holm 1979): the k-th smallest of m times m − k + 1, made
    to rise.

    Rejecting those below a level, the chance to reject *any* true null is at most that level,
    however they depend on each other.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or np.isnan(p).any() or (p < 0).any() or (p > 1).any():
        raise AttnlabError(f"p_values={p_values!r}: expected a list of numbers from 0 to 1")
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)) if len(p) else p
    found = np.empty_like(p)
    found[order] = np.minimum(raised, 1.0)
    return found


@dataclass(frozen=True, eq=False)
class Ranking:
    """Variants from the best to the worst, and which of them cannot be told apart.

    - ``names``: by ``centre``, the median or mean over runs, the best first;
    - ``p``: (names × names), p-values of all pairs, corrected by Holm's method; 1 on the diagonal;
    - ``groups``: all largest sets of names of which no two are told apart at ``level``; a name may
      be in several. The first holds the best;
    - ``pairs``: (names × names), how many runs each two share.
    """

    names: tuple[str, ...]
    centre: np.ndarray
    p: np.ndarray
    groups: tuple[tuple[str, ...], ...]
    pairs: np.ndarray
    level: float

    def apart(self, a: str, b: str) -> bool:
        """Whether two variants are told apart."""
        return bool(self.p[self.names.index(a), self.names.index(b)] < self.level)

    @property
    def best(self) -> tuple[str, ...]:
        """The best variant and all that cannot be told from it."""
        return tuple(name for name in self.names if not self.apart(self.names[0], name))


def rank_variants(
    runs: Mapping[str, Any],
    *,
    smaller_is_better: bool = True,
    level: float = 0.05,
    statistic: Literal["median", "mean"] = "median",
) -> Ranking:
    """Rank variants by their median or mean over runs and find groups of equals; run k of all has
    the same seed.

    Every two variants are compared by ``signed_rank`` on the runs they share (nan: not run), and
    all these p-values are corrected together.

    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=16)
    >>> found = rank_variants({"a": base, "b": base + 0.01 * rng.normal(size=16), "c": base + 3})
    >>> [set(group) == {"a", "b"} for group in found.groups], found.apart("a", "c")
    ([True, False], True)
    """
    check_confidence(level)
    values = {name: np.asarray(each, np.float64) for name, each in runs.items()}
    shapes = {each.shape for each in values.values()}
    if len(values) < 1 or len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise AttnlabError(
            f"runs of the shapes {sorted(shapes)}: expected at least one variant, all of the same "
            "runs"
        )
    empty = [name for name, each in values.items() if np.isnan(each).all()]
    if empty:
        raise AttnlabError(f"{empty[0]!r} has no run that finished: leave it out, and say so")
    sign = 1.0 if smaller_is_better else -1.0
    middle = np.nanmedian if statistic == "median" else np.nanmean
    centres = {name: float(middle(each)) for name, each in values.items()}
    names = sorted(values, key=lambda name: sign * centres[name])
    p, pairs = np.ones((len(names), len(names))), np.zeros((len(names), len(names)), int)
    places = list(combinations(range(len(names)), 2))
    found = holm([signed_rank(values[names[i]], values[names[j]]) for i, j in places])
    for (i, j), each in zip(places, found, strict=True):
        p[i, j] = p[j, i] = each
    there = ~np.isnan(np.stack([values[name] for name in names]))
    pairs = there.astype(int) @ there.T.astype(int)
    centre = np.array([centres[name] for name in names])
    return Ranking(tuple(names), centre, p, _groups(names, p >= level), pairs, level)


def _groups(names: Sequence[str], alike: np.ndarray) -> tuple[tuple[str, ...], ...]:
    """All largest sets in which every two are alike, in the order of their members (Bron and
    Kerbosch 1973).
    """
    found: list[tuple[int, ...]] = []

    def grow(chosen: tuple[int, ...], may: list[int], left_out: list[int]) -> None:
        if not may and not left_out:
            found.append(tuple(sorted(chosen)))
        for k in list(may):
            near = [i for i in range(len(names)) if i != k and alike[k, i]]
            grow((*chosen, k), [i for i in may if i in near], [i for i in left_out if i in near])
            may.remove(k)
            left_out.append(k)

    grow((), list(range(len(names))), [])
    return tuple(tuple(names[i] for i in group) for group in sorted(found))
