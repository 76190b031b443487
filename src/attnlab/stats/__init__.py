"""Intervals, curves and groups of equals: bootstrap, Wilson interval, crossings, paired tests. Functions of numbers."""

from attnlab.stats._bootstrap import bootstrap_interval, paired_ratio
from attnlab.stats._crossing import Crossing, Crossings, crossing, crossings
from attnlab.stats._groups import Ranking, holm, rank_variants, signed_rank
from attnlab.stats._interval import Interval
from attnlab.stats._share import wilson_interval

__all__ = [
    "Crossing",
    "Crossings",
    "Interval",
    "Ranking",
    "bootstrap_interval",
    "crossing",
    "crossings",
    "holm",
    "paired_ratio",
    "rank_variants",
    "signed_rank",
    "wilson_interval",
]
