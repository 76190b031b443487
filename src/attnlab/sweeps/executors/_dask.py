"""A Dask cluster as the place where runs are computed."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab.sweeps.executors._chunks import Chunks
from attnlab.sweeps.executors._dask_client import Link, tell
from attnlab.sweeps.executors._dask_pool import Crew
from attnlab.sweeps.executors._dask_talk import count_threads, dismiss
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

    Workers are sent settings, never models, and compute them in the same single-threaded processes
    as ``Processes`` does: results have the same bits, if the processors are of one kind. Workers
    that see the store write to it, others send what they have computed. All versions on which
    results depend are compared first. A worker that dies loses only its chunk, as in ``Processes``;
    a scheduler that goes away is waited for. A run that is computed twice, because what became of
    it was not heard, has the same hash and the same bits: it is stored once, or found twice and
    read once.

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
        self._link = Link(scheduler, security)
        self._owner = uuid.uuid4().hex
        self._keeps, self._width = False, 1

    def __enter__(self) -> Cluster:
        self._keeps = True
        self._greet()
        return self

    def __exit__(self, *error: object) -> None:
        self._keeps = False
        self._leave()

    @property
    def width(self) -> int:
        """The number of all workers' threads now, at least one; others may join later."""
        self._greet()
        with suppress(Exception):  # of a scheduler that has just gone; it will be waited for
            self._width = self._link.spawn(count_threads(self._link.client)).result(timeout=2)
        return max(1, self._width)

    def outcomes(self, job: Job, chunks: Chunks, interrupt: Interrupt) -> Generator[Outcome]:
        """Keep every worker busy until all chunks are computed."""
        self._greet()
        crew = Crew(job, self._link, owner=self._owner, limit=self._limit)
        try:
            while not interrupt.pressed:
                if crew.is_silent or not self._link.is_open:
                    yield from crew.listen(0)
                    crew.scatter()
                    self._link.reconnect(lambda: interrupt.pressed)
                    continue
                if not crew.is_started:
                    crew.start()
                yield from crew.listen(TICK_SECONDS)
                crew.hand_out(chunks)
                if crew.is_idle and not len(chunks):
                    return
            yield from crew.stop()
        finally:
            crew.close()
            if not self._keeps:
                self._leave()

    def _greet(self) -> None:
        """Connect, and say once where the cluster can be watched."""
        self._link.client  # noqa: B018  (connects)
        address = None if self._quiet else self._link.dashboard()
        if address:
            tell(f"dashboard: {address}")
        self._quiet = True

    def _leave(self) -> None:
        """End the workers' idle processes and the connection."""
        if self._link.is_open:
            with suppress(NotYet, OSError):
                self._link.spawn(dismiss(self._link.client, self._owner)).result(timeout=0.5)
        self._link.close()
