"""Sweeps: a plan is a grid of settings for a work function; where its results lie; where it is
computed.
"""

from attnlab.sweeps._context import RunContext
from attnlab.sweeps._load import load_function
from attnlab.sweeps._plan import Plan, Run
from attnlab.sweeps._progress import Event
from attnlab.sweeps._results import FailureGroup, Results, told_stale
from attnlab.sweeps._run import run_plan
from attnlab.sweeps.executors._chunks import Chunks
from attnlab.sweeps.executors._dask import Cluster
from attnlab.sweeps.executors._executor import (
    AbstractExecutor,
    InProcess,
    Interrupt,
    Job,
    Outcome,
    Worker,
)
from attnlab.sweeps.executors._processes import Processes, executor_for
from attnlab.sweeps.store._lock import unlock
from attnlab.sweeps.store._manifest import Failure
from attnlab.sweeps.store._records import load_record, provenance, read_record, save_record, slug
from attnlab.sweeps.store._store import Store, StoreWarning

__all__ = [
    "AbstractExecutor",
    "Chunks",
    "Cluster",
    "Event",
    "Failure",
    "FailureGroup",
    "InProcess",
    "Interrupt",
    "Job",
    "Outcome",
    "Plan",
    "Processes",
    "Results",
    "Run",
    "RunContext",
    "Store",
    "StoreWarning",
    "Worker",
    "executor_for",
    "load_function",
    "load_record",
    "provenance",
    "read_record",
    "run_plan",
    "save_record",
    "slug",
    "told_stale",
    "unlock",
]
