"""Paired comparisons of many variants on the same seeds, corrected for multiple testing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from attnlab._errors import AttnlabError

LEAST_PAIRS = 6  # with fewer, the two-sided p-value cannot fall below 0.05


def signed_rank(a: Any, b: Any) -> float:
    """The exact two-sided p-value of Wilcoxon's signed-rank test of paired runs.

    ``W = Σ_k sign(a_k − b_k) · rank|a_k − b_k|``; under the null hypothesis every sign is a fair
    coin (Wilcoxon 1945; zeros: Pratt 1959). Pairs with a nan are ignored. Fewer than 6 pairs give 1,
    since they cannot be significant.

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
    from scipy.stats import rankdata  # late: it takes .7 s, and few pages need it

    # Tied ranks are multiples of ½. Doubled, they are integers, so the distribution of W is a
    # convolution on a grid.
    ranks = np.where(difference == 0, 0, np.rint(2 * rankdata(np.abs(difference)))).astype(int)
    observed = abs(int(np.sum(np.sign(difference) * ranks)))
    total = int(ranks.sum())
    chances = np.zeros(2 * total + 1)  # P(W = −total), …, P(W = total)
    chances[total] = 1.0
    for rank in ranks:
        chances = 0.5 * (np.roll(chances, rank) + np.roll(chances, -rank))
    return min(1.0, float(chances[np.abs(np.arange(-total, total + 1)) >= observed].sum()))


def holm(p_values: Any) -> np.ndarray:
    """p-values corrected for multiple testing (Holm 1979).

    The k-th smallest of m is multiplied by m − k + 1, and the results are made monotone. If those
    below a level are rejected, the probability to reject *any* true null hypothesis is at most that
    level, for any dependence between them.

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
    """Variants from best to worst, and groups that cannot be told apart.

    - ``names``: sorted by ``centre``, the median or mean over runs, best first;
    - ``p``: (names × names), p-values of all pairs, corrected by Holm's method; 1 on the diagonal;
    - ``groups``: all maximal sets of names of which no two differ at ``level``; a name may be in
      several. The first contains the best;
    - ``pairs``: (names × names), the number of runs that each pair shares.
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
    """Rank variants by their median or mean over runs; find groups that cannot be told apart.

    Run k of all variants has the same seed. All pairs are compared by ``signed_rank`` on the runs
    they share (nan: not run), and all p-values are corrected together.

    >>> rng = np.random.default_rng(0)
    >>> base = rng.normal(size=16)
    >>> found = rank_variants({"a": base, "b": base + 0.01 * rng.normal(size=16), "c": base + 3})
    >>> [set(group) == {"a", "b"} for group in found.groups], found.apart("a", "c")
    ([True, False], True)
    """
    if not 0 < level < 1:
        raise AttnlabError(f"level={level}: expected a number between 0 and 1, such as 0.05")
    values = {name: np.asarray(each, np.float64) for name, each in runs.items()}
    shapes = {each.shape for each in values.values()}
    if len(values) < 1 or len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise AttnlabError(
            f"runs of the shapes {sorted(shapes)}: expected at least one variant, all of the same "
            "runs"
        )
    empty = [name for name, each in values.items() if np.isnan(each).all()]
    if empty:
        raise AttnlabError(f"{empty[0]!r} has no finished run: leave it out, and report that")
    sign = 1.0 if smaller_is_better else -1.0
    middle = np.nanmedian if statistic == "median" else np.nanmean
    centres = {name: float(middle(each)) for name, each in values.items()}
    names = sorted(values, key=lambda name: sign * centres[name])
    p = np.ones((len(names), len(names)))
    places = list(combinations(range(len(names)), 2))
    found = holm([signed_rank(values[names[i]], values[names[j]]) for i, j in places])
    for (i, j), each in zip(places, found, strict=True):
        p[i, j] = p[j, i] = each
    present = ~np.isnan(np.stack([values[name] for name in names]))
    pairs = present.astype(int) @ present.T.astype(int)
    centre = np.array([centres[name] for name in names])
    return Ranking(tuple(names), centre, p, _groups(names, p >= level), pairs, level)


def _groups(names: Sequence[str], alike: np.ndarray) -> tuple[tuple[str, ...], ...]:
    """All maximal cliques of the relation ``alike``, sorted (Bron and Kerbosch 1973)."""
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
