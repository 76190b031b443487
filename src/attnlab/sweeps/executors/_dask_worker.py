"""What a task of a sweep does on a Dask worker: it computes a chunk as ``Processes`` does, and returns
the outcomes with all that they wrote.

Results have the same bits as on one machine, a process that hangs can be killed while the Dask
worker stays responsive, and when the Dask worker dies, the input of its processes ends, and they end
with it. Everything here is called by Dask, with JSON, and returns JSON and bytes.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from attnlab._errors import AttnlabError
from attnlab.sweeps._source import CodeChanged
from attnlab.sweeps.executors import _messages
from attnlab.sweeps.executors._chunks import Chunks
from attnlab.sweeps.executors._environment import differences, versions
from attnlab.sweeps.executors._executor import Interrupt
from attnlab.sweeps.executors._processes import Processes

_IDLE_SECONDS = 120.0  # a command that is killed does not end its processes

_executors: dict[str, Processes] = {}
_last_tasks: dict[str, str] = {}
_ended: set[str] = set()


def compute(request: bytes) -> dict[str, Any]:
    """Compute a chunk, unless the versions here are not the client's.

    The answer holds the ``outcomes``, the bytes of their blocks in ``files``, and the ``error`` that
    ended the work before all runs were done.
    """
    from distributed import get_worker

    task, worker, here = json.loads(request), get_worker(), versions()
    owner, key = task["owner"], task["key"]
    answer = {"worker": worker.address, "versions": here, "outcomes": [], "files": {}}
    interrupt = Interrupt(lambda: owner in _ended or _is_unwanted(worker, key))
    if differences(task["versions"], here) or interrupt.pressed:
        return answer
    _last_tasks[owner] = key
    executor = _executors.setdefault(owner, Processes(1, time_limit=task["limit"])).__enter__()
    # Dask clears its own folder even after a kill.
    with tempfile.TemporaryDirectory(prefix="attnlab-", dir=worker.local_directory) as spool:
        for part in ("blocks", "failures"):
            (Path(spool) / part).mkdir()
        job, runs = _messages.read_job(task["job"]), _messages.read_chunk(task["chunk"])
        chunks = Chunks(runs, 1, job.batch or 1, size=len(runs))
        try:
            for outcome in executor.outcomes(replace(job, folder=Path(spool)), chunks, interrupt):
                answer["outcomes"].append(_messages.outcome_message(outcome).decode())
        except AttnlabError as error:
            answer |= {"error": str(error), "changed": isinstance(error, CodeChanged)}
        blocks = Path(spool).glob("blocks/*.zip")
        answer["files"] = {path.stem: path.read_bytes() for path in blocks}
    worker.loop.add_callback(worker.loop.call_later, _IDLE_SECONDS, _end_if_idle, owner, key)
    return answer


def end(owner: str) -> None:
    """End all that is done here for a client: its tasks return what is finished."""
    _ended.add(owner)
    if owner in _executors:
        _executors.pop(owner).__exit__()


async def restart_silent(owner: str, seconds: float, dask_scheduler: Any) -> None:
    """On the scheduler: restart workers that have tasks of a client and were silent for so long.

    Dask does the same after its own ``worker-ttl``.
    """
    silent = [
        worker.address
        for worker in dask_scheduler.workers.values()
        if time.time() - worker.last_seen > seconds
        and any(owner in str(task.key) for task in worker.processing)
    ]
    await dask_scheduler.restart_workers(
        silent, wait_for_workers=False, on_error="return", stimulus_id=f"attnlab-silent-{owner}"
    )


def _is_unwanted(worker: Any, key: str) -> bool:
    """Whether the client of a task has left, or this worker is about to close."""
    task = worker.state.tasks.get(key)
    leaving = worker.status.name in ("closing", "closed", "failed")
    return leaving or task is None or task.state == "cancelled"


def _end_if_idle(owner: str, last_task: str) -> None:
    """End the idle processes for a client that has sent no task since."""
    if _last_tasks[owner] == last_task and owner in _executors:
        _executors[owner].rest()
