"""What is said over the network, in coroutines beside the caller; what is heard goes into an inbox."""

from __future__ import annotations

import asyncio
import queue
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from attnlab.sweeps.executors import _dask_worker

if TYPE_CHECKING:
    from distributed import Future

_LOOK_SECONDS = 0.5
_SILENT_SECONDS = 30.0

Inbox = queue.SimpleQueue[tuple[str, Any, Any]]


async def look(client: Any, inbox: Inbox) -> None:
    """Tell who is there, ``("workers", None, {address: threads})``, until cancelled."""
    while True:
        try:
            inbox.put(("workers", None, await asyncio.wait_for(client.nthreads(), _SILENT_SECONDS)))
        except TimeoutError:
            inbox.put(("silent", None, None))
        except Exception:  # the client's status says whether the scheduler is lost; Dask has many ways to fail then
            await asyncio.sleep(_LOOK_SECONDS)
        await asyncio.sleep(_LOOK_SECONDS)


async def count_threads(client: Any) -> int:
    """How many threads all workers have together."""
    return sum((await client.nthreads()).values())


async def ask_scheduler(client: Any, asked: tuple[str, str], inbox: Inbox) -> None:
    """Ask the scheduler, which loads tasks on their way: ``("scheduler", None, answer)``."""
    try:
        answer = await client.run_on_scheduler(_dask_worker.hello, *asked)
    except Exception as error:
        answer = error
    inbox.put(("scheduler", None, answer))


async def ask(client: Any, address: str, asked: tuple[str, str], inbox: Inbox) -> None:
    """Ask a worker, ``("hello", address, answer)``, beside its tasks: it must answer even if it
    cannot load them.
    """
    try:
        answers = await client.run(_dask_worker.hello, *asked, workers=[address], on_error="return")
        answer = answers.get(address)
    except Exception as error:
        answer = error
    inbox.put(("hello", address, answer))


async def deliver(key: str, future: Future, inbox: Inbox) -> None:
    """Wait for a chunk: ``("answer", key, answer)``."""
    try:
        answer = await future.result()
    except BaseException as error:  # also when it was cancelled
        answer = error
    inbox.put(("answer", key, answer))


async def stop(client: Any, addresses: list[str], sweep: str) -> None:
    """Have workers stop a sweep."""
    with suppress(Exception):  # who is gone need not be told
        await client.run(_dask_worker.stop, sweep, workers=addresses, on_error="ignore")


async def dismiss(client: Any, owner: str) -> None:
    """Have all workers end the idle processes that they started for a client."""
    with suppress(Exception):
        await client.run(_dask_worker.dismiss, owner, on_error="ignore")
