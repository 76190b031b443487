"""Sweeps: a plan is a grid of settings for a work function; where its results lie; where it is
computed.
"""

from attnlab.runs._chunks import Chunks
from attnlab.runs._context import RunContext
from attnlab.runs._dask import Cluster
from attnlab.runs._datasets import load_record, provenance, read_record, save_record, slug
from attnlab.runs._execute import AbstractExecutor, InProcess, Interrupt, Job, Outcome, Worker
from attnlab.runs._load import load_function
from attnlab.runs._lock import unlock
from attnlab.runs._plan import Plan, Run
from attnlab.runs._processes import Processes, executor_for
from attnlab.runs._progress import Event
from attnlab.runs._record import Failure
from attnlab.runs._results import FailureGroup, Results, told_stale
from attnlab.runs._run import run_plan
from attnlab.runs._store import Store, StoreWarning

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
