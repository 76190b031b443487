"""The connection to a Dask scheduler, which may go away and come back."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future as Promise
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab._errors import AttnlabError

if TYPE_CHECKING:
    from distributed import Client

_FIRST_SECONDS, _FIRST_FILE_SECONDS = (
    10.0,
    60.0,
)  # a file is often of a scheduler that was started a moment ago
_PROBE_SECONDS = 0.5
_CONNECT_SECONDS = 1.5  # Ctrl-C must end a command within two seconds
_PAUSE_SECONDS = 0.2


def tell(text: str) -> None:
    """Say something to whoever watches a command."""
    print(f"attnlab: {text}", file=sys.stderr, flush=True)


class Link:
    """A client of a scheduler, given by its address, its scheduler file, or a client that is
    connected already.

    A client that was given is never closed; if its scheduler is lost, a client of our own goes on
    at its address.
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
        """The client that is in use; connects if none is."""
        patience = _FIRST_SECONDS if is_address(self._scheduler) else _FIRST_FILE_SECONDS
        deadline = time.monotonic() + patience
        while self._current is None:
            self._current = self._connected()
            if self._current is None and time.monotonic() > deadline:
                raise AttnlabError(
                    f"no Dask scheduler answers at {self._scheduler} (waited {patience:g} s): "
                    "expected an "
                    "address such as tcp://host:8786, or the scheduler file of a scheduler that "
                    "is running"
                )
            if self._current is None:
                time.sleep(_PAUSE_SECONDS)
        return self._current

    @property
    def is_open(self) -> bool:
        """Whether a scheduler is connected, as far as the client knows."""
        return self._current is not None and self._current.status == "running"

    def reconnect(self, stopped: Callable[[], bool]) -> None:
        """Say so, and wait until a scheduler answers again, or ``stopped``."""
        tell(
            f"the scheduler {self._scheduler} is gone; waiting for it (Ctrl-C stops, what is "
            "finished is stored)"
        )
        self.close()
        while not stopped():
            self._current = self._connected()
            if self._current is not None:
                tell("the scheduler is back, going on")
                return
            time.sleep(_PAUSE_SECONDS)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> Promise[Any]:
        """Run a coroutine beside the caller, who must never wait for the network."""
        return asyncio.run_coroutine_threadsafe(work, self.client.loop.asyncio_loop)  # type: ignore[attr-defined]

    def dashboard(self) -> str | None:
        """The address of the scheduler's pages, if it has any."""
        with suppress(Exception):  # it is good to know, and nothing depends on it
            if self.client.scheduler_info(n_workers=0)["services"].get("dashboard"):
                return self.client.dashboard_link
        return None

    def close(self) -> None:
        """Close the connection; a client that was given stays as it is."""
        client, self._current = self._current, None
        if client is not None and client is not self._given:
            with suppress(Exception):  # of a scheduler that is gone already
                client.close(timeout=1)

    def _connected(self) -> Client | None:
        """A client that is connected, or ``None`` where nobody answers now."""
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
        """Where the scheduler is; a scheduler that comes back may have written another address into
        its file.
        """
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
                f"{self._scheduler} is no scheduler file: expected what `dask scheduler "
                "--scheduler-file` writes"
            ) from None


def is_address(text: str) -> bool:
    """Whether a text is an address, and not the name of a file.

    >>> is_address("tcp://127.0.0.1:8786"), is_address("node7:8786"), is_address("runs/scheduler.json")
    (True, True, False)
    """
    host, _, port = text.rpartition(":")
    return "://" in text or (bool(host) and port.isdigit())


def _answers(address: str) -> bool:
    """Whether anybody listens at an address: quicker to find out than by Dask's own patience."""
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
