"""Statistics: intervals of means, medians and shares, crossings of curves, paired tests, groups."""

from attnlab.stats._answers import SCORES, Score, answer_scores
from attnlab.stats._crossing import Crossing, Crossings, crossing, crossings
from attnlab.stats._groups import Ranking, holm, rank_variants, signed_rank
from attnlab.stats._interval import CONFIDENCE, Interval, check_confidence
from attnlab.stats._location import LOCATIONS, MIN_RUNS, Location, interval_of
from attnlab.stats._power import more_runs
from attnlab.stats._share import may_violate, share_interval, trials_needed

__all__ = [
    "Interval",
    "interval_of",
    "rank_variants",
    "share_interval",
]
