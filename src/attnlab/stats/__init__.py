"""Intervals and curves: bootstrap, paired ratio, Wilson interval, crossing of a curve. Pure functions of numbers."""

from attnlab.stats._bootstrap import bootstrap_interval, paired_ratio
from attnlab.stats._crossing import Crossing, Crossings, crossing, crossings
from attnlab.stats._interval import Interval
from attnlab.stats._share import wilson_interval

__all__ = [
    "Crossing",
    "Crossings",
    "Interval",
    "bootstrap_interval",
    "crossing",
    "crossings",
    "paired_ratio",
    "wilson_interval",
]
