"""The connection to a Dask scheduler, which may be lost and return, and the requests sent over it.

Requests are coroutines, so that the caller never waits for the network; answers go to an inbox.
"""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future as Promise
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab._errors import AttnlabError
from attnlab.sweeps.executors import _dask_worker

if TYPE_CHECKING:
    from distributed import Client, Future

_FIRST_SECONDS = 10.0
_FIRST_FILE_SECONDS = 60.0  # a scheduler file often belongs to a scheduler that is just starting
_PROBE_SECONDS = 0.5
_CONNECT_SECONDS = 1.5  # Ctrl-C must end a command within two seconds
_PAUSE_SECONDS = 0.2
_WATCH_SECONDS = 0.5
_SILENT_SECONDS = 30.0

Inbox = queue.SimpleQueue[tuple[str, Any, Any]]


def notify(text: str) -> None:
    """Print a message for the user of a command."""
    print(f"attnlab: {text}", file=sys.stderr, flush=True)


class SchedulerConnection:
    """A client of a scheduler, given by its address, its scheduler file, or a client that is
    connected already.

    A client that was given is never closed; if its scheduler is lost, a client of attnlab's own
    connects to the same address.
    """

    def __init__(self, scheduler: Any, security: Any):
        self._distributed = _distributed()
        self._given: Client | None = None
        self._security, self._scheduler = security, str(scheduler)
        if isinstance(scheduler, self._distributed.Client):
            if scheduler.asynchronous:
                raise AttnlabError(
                    "the Dask client is asynchronous; expected Client(…) without asynchronous=True"
                )
            self._given = scheduler
            self._security, self._scheduler = scheduler.security, str(scheduler.scheduler.address)
        elif not isinstance(scheduler, str | Path):
            raise AttnlabError(
                f"scheduler={scheduler!r}: expected an address such as tcp://host:8786, a file or "
                "a Dask client"
            )
        self._current: Client | None = None

    @property
    def client(self) -> Client:
        """The client in use; connects if there is none."""
        patience = _FIRST_SECONDS if is_address(self._scheduler) else _FIRST_FILE_SECONDS
        deadline = time.monotonic() + patience
        while self._current is None:
            self._current = self._connected()
            if self._current is None and time.monotonic() > deadline:
                raise AttnlabError(
                    f"no Dask scheduler answers at {self._scheduler} (waited {patience:g} s): "
                    "expected an address such as tcp://host:8786, or the scheduler file of a "
                    "scheduler that is running"
                )
            if self._current is None:
                time.sleep(_PAUSE_SECONDS)
        return self._current

    @property
    def is_open(self) -> bool:
        """Whether a scheduler is connected, as far as the client knows."""
        return self._current is not None and self._current.status == "running"

    def reconnect(self, stopped: Callable[[], bool]) -> None:
        """Notify the user, and wait until a scheduler answers again, or ``stopped``."""
        notify(
            f"lost the scheduler {self._scheduler}; waiting for it (Ctrl-C stops, finished runs "
            "are stored)"
        )
        self.close()
        while not stopped():
            self._current = self._connected()
            if self._current is not None:
                notify("the scheduler is back, the sweep resumes")
                return
            time.sleep(_PAUSE_SECONDS)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> Promise[Any]:
        """Run a coroutine in the background: the caller must never wait for the network."""
        return asyncio.run_coroutine_threadsafe(work, self.client.loop.asyncio_loop)  # type: ignore[attr-defined]

    def dashboard(self) -> str | None:
        """The address of the scheduler's dashboard, if it has one."""
        with suppress(Exception):  # nothing depends on it
            if self.client.scheduler_info(n_workers=0)["services"].get("dashboard"):
                return self.client.dashboard_link
        return None

    def close(self) -> None:
        """Close the connection; a client that was given stays open."""
        client, self._current = self._current, None
        if client is not None and client is not self._given:
            with suppress(Exception):  # the scheduler may be lost already
                client.close(timeout=1)

    def _connected(self) -> Client | None:
        """A connected client, or ``None`` where no scheduler answers now."""
        if self._given is not None and self._given.status == "running":
            return self._given
        address = self._address()
        if address is None or not _answers(address):
            return None
        try:
            return self._distributed.Client(
                address, security=self._security, timeout=_CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, TimeoutError):
            return None
        except (TypeError, ValueError, RuntimeError) as error:
            raise AttnlabError(
                f"cannot connect to the Dask scheduler at {address}: {error}"
            ) from error

    def _address(self) -> str | None:
        """The address of the scheduler; a restarted one may have written another into its file."""
        if is_address(self._scheduler):
            return self._scheduler if "://" in self._scheduler else f"tcp://{self._scheduler}"
        try:
            return str(json.loads(Path(self._scheduler).read_text(encoding="utf-8"))["address"])
        except OSError:
            return None
        except (ValueError, KeyError, TypeError):
            if Path(self._scheduler).stat().st_size == 0:
                return None  # it is being written
            raise AttnlabError(
                f"{self._scheduler} is not a scheduler file: expected what `dask scheduler "
                "--scheduler-file` writes"
            ) from None


def is_address(text: str) -> bool:
    """Whether a text is an address rather than the name of a file.

    >>> is_address("tcp://127.0.0.1:8786"), is_address("node7:8786"), is_address("runs/scheduler.json")
    (True, True, False)
    """
    host, _, port = text.rpartition(":")
    return "://" in text or (bool(host) and port.isdigit())


def _answers(address: str) -> bool:
    """Whether anything listens at an address; much quicker than a failing Dask client."""
    scheme, _, rest = address.partition("://")
    host, _, port = rest.rpartition(":")
    if scheme not in ("tcp", "tls") or not port.isdigit():
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PROBE_SECONDS).close()
    except OSError:
        return False
    return True


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise AttnlabError(
            f"computing on a cluster needs `pip install 'attnlab[cluster]'` ({error})"
        ) from None
    return distributed


async def watch_workers(client: Any, inbox: Inbox) -> None:
    """Report the workers again and again, ``("workers", None, {address: threads})``, until
    cancelled.
    """
    while True:
        try:
            inbox.put(("workers", None, await asyncio.wait_for(client.nthreads(), _SILENT_SECONDS)))
        except TimeoutError:
            inbox.put(("silent", None, None))
        except Exception:  # of any kind where the scheduler is lost, which the client's status says
            await asyncio.sleep(_WATCH_SECONDS)
        await asyncio.sleep(_WATCH_SECONDS)


async def count_threads(client: Any) -> int:
    """How many threads all workers have together."""
    return sum((await client.nthreads()).values())


async def ask_scheduler(client: Any, probe: tuple[str, str], inbox: Inbox) -> None:
    """Ask the scheduler, which also has to load tasks: ``("scheduler", None, answer)``."""
    try:
        answer = await client.run_on_scheduler(_dask_worker.describe, *probe)
    except Exception as error:
        answer = error
    inbox.put(("scheduler", None, answer))


async def ask_worker(client: Any, address: str, probe: tuple[str, str], inbox: Inbox) -> None:
    """Ask a worker: ``("description", address, answer)``. Not by a task, since it must answer even
    if it cannot load tasks.
    """
    try:
        answers = await client.run(
            _dask_worker.describe, *probe, workers=[address], on_error="return"
        )
        answer = answers.get(address)
    except Exception as error:
        answer = error
    inbox.put(("description", address, answer))


async def await_answer(key: str, future: Future, inbox: Inbox) -> None:
    """Wait for a chunk: ``("answer", key, answer)``."""
    try:
        answer = await future.result()
    except BaseException as error:  # also when it was cancelled
        answer = error
    inbox.put(("answer", key, answer))


async def stop_sweep(client: Any, addresses: list[str], sweep: str) -> None:
    """Have workers stop a sweep."""
    with suppress(Exception):  # workers that were lost need not stop
        await client.run(_dask_worker.stop, sweep, workers=addresses, on_error="ignore")


async def end_idle_processes(client: Any, owner: str) -> None:
    """Have all workers end the idle processes that they started for a client."""
    with suppress(Exception):
        await client.run(_dask_worker.end_idle, owner, on_error="ignore")
