"""Power: how many more runs would decide."""

from __future__ import annotations

import math

from scipy.special import ndtri, stdtrit

from attnlab._errors import AttnlabError
from attnlab.stats._interval import CONFIDENCE

POWER = 0.8
_MOST = 1_000_000


def more_runs(
    runs: int,
    reach: float,
    distance: float,
    *,
    least: float = 0.0,
    confidence: float = CONFIDENCE,
    power: float = POWER,
) -> int | None:
    """How many further runs clear a threshold with this power; ``None`` if more than a million.

    ``reach`` is the half-width of an interval from ``runs`` runs, ``distance`` that of its estimate
    from the threshold. The interval of N runs has the half-width ``t_N σ/√N`` with ``σ = reach
    √runs / t_runs``; it clears a threshold at distance d with probability ``power`` once ``(t_N +
    z_power) σ/√N ≤ d``. The true value may be closer to the threshold than the estimate, so d is
    ``distance`` minus half a standard error, but at least half of ``distance``, and at least
    ``least`` if the true value is known to be that far away.

    >>> more_runs(8, 0.4, 0.2)
    129
    """
    if runs < 2 or not reach > 0 or not distance >= 0:
        raise AttnlabError(
            f"runs={runs}, reach={reach}, distance={distance}: expected ≥ 2 runs and positive "
            "numbers"
        )
    error = reach / float(stdtrit(runs - 1, 0.5 + confidence / 2))
    sigma, extra = error * math.sqrt(runs), float(ndtri(power))
    away = max(distance - error / 2, distance / 2, least)

    def clears(count: int) -> bool:
        t = float(stdtrit(count - 1, 0.5 + confidence / 2))
        return (t + extra) * sigma / math.sqrt(count) <= away

    if not clears(_MOST):
        return None
    low, high = runs, _MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if clears(middle) else (middle, high)
    return high - runs
