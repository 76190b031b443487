"""The interval of a share."""

from __future__ import annotations

import math

from scipy.special import ndtri

from attnlab._errors import AttnlabError
from attnlab.stats._interval import Interval, check_level


def wilson_interval(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share (Wilson 1927).

    ``(p̂ + z²/2n ± z √(p̂(1−p̂)/n + z²/4n²)) / (1 + z²/n)`` with ``p̂ = successes / trials = s / n`` and the normal
    quantile z. Of use also where no run or every run succeeded.

    >>> share = wilson_interval(8, 10)
    >>> f"{share.estimate} in [{share.low:.3f}, {share.high:.3f}]"
    '0.8 in [0.490, 0.943]'
    """
    check_level(level)
    if trials < 1 or not 0 <= successes <= trials:
        raise AttnlabError(
            f"{successes} successes of {trials} trials: expected at least one trial and 0 ≤ successes ≤ trials"
        )
    z = float(ndtri(0.5 + level / 2))
    share = successes / trials
    centre = share + z**2 / (2 * trials)
    reach = z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    scale = 1 + z**2 / trials
    # At the ends the formula is exactly 0 or 1; rounding must not leave a trace of it.
    low = 0.0 if successes == 0 else (centre - reach) / scale
    high = 1.0 if successes == trials else (centre + reach) / scale
    return Interval(low=low, high=high, estimate=share, level=level)
