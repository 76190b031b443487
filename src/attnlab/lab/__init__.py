"""The machinery of asking: experiments, claims, criteria, verdicts, records.

Importing it loads neither JAX nor xarray; what runs or reads records is loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from attnlab.lab._claim import Claim, Control, contradicts
from attnlab.lab._claims import Claims, ClaimSettings, reproduce
from attnlab.lab._criterion import (
    Criterion,
    Measure,
    every_run,
    geometric_mean,
    given_interval,
    lognormal_mean,
    mean,
    median,
    median_ratio,
    pooled_max,
    pooled_mean,
    pooled_median,
    pooled_min,
    pooled_p90,
    pooled_p95,
    share,
)
from attnlab.lab._experiment import Answers, Bench, Experiment, Interrupted, TextTable, digest
from attnlab.lab._fill import fill, places
from attnlab.lab._settings import Field, Option, Settings, options
from attnlab.lab._source import Provenance, Source
from attnlab.lab._sweep import Grid, Scale, Sweep
from attnlab.lab._tables import Data, Table, Variable, variable

if TYPE_CHECKING:
    from attnlab.lab._arrays import (
        along,
        asked_of,
        axis,
        dataset,
        labelled,
        side_by_side,
        split_arms,
    )
    from attnlab.lab._diff import Comparison, compare_records
    from attnlab.lab._folder import take_folder
    from attnlab.lab._run import Record, page, read_record, run, write_page

_LATER = {
    **dict.fromkeys(
        ("along", "asked_of", "axis", "dataset", "labelled", "side_by_side", "split_arms"),
        "_arrays",
    ),
    **dict.fromkeys(("Comparison", "compare_records"), "_diff"),
    "take_folder": "_folder",
    **dict.fromkeys(("Record", "page", "read_record", "run", "write_page"), "_run"),
}

__all__ = [
    "Answers",
    "Bench",
    "Claim",
    "Control",
    "Criterion",
    "Experiment",
    "Grid",
    "Option",
    "Provenance",
    "Record",
    "Settings",
    "Source",
    "Sweep",
    "Table",
    "compare_records",
    "every_run",
    "geometric_mean",
    "given_interval",
    "lognormal_mean",
    "mean",
    "median",
    "median_ratio",
    "pooled_median",
    "pooled_p90",
    "pooled_p95",
    "read_record",
    "reproduce",
    "run",
    "share",
    "variable",
]


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(importlib.import_module(f"attnlab.lab.{_LATER[name]}"), name)
    raise AttributeError(f"module 'attnlab.lab' has no attribute {name!r}")
