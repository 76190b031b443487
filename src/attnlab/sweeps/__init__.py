"""Crash-safe sweeps of any work function: a plan is a grid of settings for it.

``Plan`` says which runs are asked for, ``run_plan`` computes those that are missing in a folder or
at a URL, by any executor (``InProcess``, ``Processes``, ``Cluster``), and ``Results`` reads them.
"""

from attnlab.sweeps._batched import batched, keys_of
from attnlab.sweeps._context import RunContext
from attnlab.sweeps._load import load_function
from attnlab.sweeps._plan import Plan
from attnlab.sweeps._results import FailureGroup, Results, stale_message
from attnlab.sweeps._run import Event, run_plan
from attnlab.sweeps.executors._dask import Cluster
from attnlab.sweeps.executors._executor import AbstractExecutor, InProcess
from attnlab.sweeps.executors._processes import Processes, executor_for
from attnlab.sweeps.store._lock import unlock
from attnlab.sweeps.store._records import load_record, provenance, read_record, save_record, slug
from attnlab.sweeps.store._store import Store, StoreWarning

__all__ = [
    "Cluster",
    "InProcess",
    "Plan",
    "Processes",
    "Results",
    "RunContext",
    "batched",
    "keys_of",
    "run_plan",
    "unlock",
]
