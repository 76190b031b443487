"""The executor that computes on a Dask cluster."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.sweeps.executors._chunks import Chunks
from attnlab.sweeps.executors._dask_client import (
    SchedulerConnection,
    count_threads,
    end_idle_processes,
    notify,
)
from attnlab.sweeps.executors._dask_pool import DaskPool
from attnlab.sweeps.executors._executor import AbstractExecutor, Interrupt, Job, Outcome
from attnlab.sweeps.executors._worker_process import TICK_SECONDS, checked_limit

if TYPE_CHECKING:
    from distributed import Client, Security


class Cluster(AbstractExecutor):
    """The workers of a Dask cluster, with one process for each of their threads.

    - ``scheduler``: its address (``"tcp://host:8786"``), the file that ``dask scheduler
      --scheduler-file`` writes, or a Dask client;
    - ``time_limit``: a run that takes longer than so many seconds (compiling included) is stopped
      and counts as failed;
    - ``security``: a ``distributed.Security`` for TLS; by default what Dask's configuration says;
    - ``quiet``: do not print the dashboard's address.

    Workers receive settings, never models, and compute them in the same single-threaded processes
    as ``Processes`` does: results have the same bits if the processors are of one kind. Workers
    that see the store write to it, others send their results. All versions on which results depend
    are compared first. A worker that dies loses only its chunk, as in ``Processes``; if the
    scheduler is lost, the sweep waits for it to return. A run that is computed twice, because its
    result did not arrive, has the same hash and the same bits: it is stored once, or found twice
    and read once.

    Used as a context, connection and processes stay between sweeps:

        with Cluster("scheduler.json", time_limit=600) as executor:
            run_plan(first, "a", executor=executor)
            run_plan(second, "b", executor=executor)
    """

    def __init__(
        self,
        scheduler: str | Path | Client,
        *,
        time_limit: float | None = None,
        security: Security | None = None,
        quiet: bool = False,
    ):
        self._limit, self._quiet = checked_limit(time_limit), quiet
        self._connection = SchedulerConnection(scheduler, security)
        self._owner = uuid.uuid4().hex
        self._keeps, self._width = False, 1

    def __enter__(self) -> Cluster:
        self._keeps = True
        self._connect()
        return self

    def __exit__(self, *error: object) -> None:
        self._keeps = False
        self._disconnect()

    @property
    def width(self) -> int:
        """The number of all workers' threads now, at least one; others may join later."""
        self._connect()
        with suppress(Exception):  # the scheduler may have just been lost; outcomes waits for it
            counting = count_threads(self._connection.client)
            self._width = self._connection.spawn(counting).result(timeout=2)
        return max(1, self._width)

    def outcomes(self, job: Job, chunks: Chunks, interrupt: Interrupt) -> Generator[Outcome]:
        """Keep every worker busy until all chunks are computed."""
        self._connect()
        pool = DaskPool(job, self._connection, owner=self._owner, limit=self._limit)
        try:
            while not interrupt.pressed:
                if pool.is_silent or not self._connection.is_open:
                    yield from pool.wait(0)
                    pool.scheduler_lost()
                    self._connection.reconnect(lambda: interrupt.pressed)
                    continue
                if not pool.is_started:
                    pool.start()
                yield from pool.wait(TICK_SECONDS)
                pool.hand_out(chunks)
                if pool.is_idle and not len(chunks):
                    return
            yield from pool.stop()
        finally:
            pool.close()
            if not self._keeps:
                self._disconnect()

    def _connect(self) -> None:
        """Connect, and print the address of the dashboard once."""
        self._connection.client  # noqa: B018  (connects)
        address = None if self._quiet else self._connection.dashboard()
        if address:
            notify(f"dashboard: {address}")
        self._quiet = True

    def _disconnect(self) -> None:
        """End the workers' idle processes and the connection."""
        if self._connection.is_open:
            with suppress(NotYet, OSError):
                ending = end_idle_processes(self._connection.client, self._owner)
                self._connection.spawn(ending).result(timeout=0.5)
        self._connection.close()
