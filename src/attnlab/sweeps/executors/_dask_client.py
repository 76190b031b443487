"""A client of the Dask scheduler that the user named."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab._errors import AttnlabError

if TYPE_CHECKING:
    from distributed import Client, Security

_CONNECT_SECONDS = 10.0
_FILE_SECONDS = 60.0  # a scheduler file often belongs to a scheduler that is just starting


def connect(scheduler: str | Path | Client, security: Security | None) -> Client:
    """A client of the scheduler at an address, or in a scheduler file; or the one that is given."""
    try:
        from distributed import Client
    except ImportError as error:
        raise AttnlabError(
            f"computing on a cluster needs `pip install 'attnlab[cluster]'` ({error})"
        ) from None
    if isinstance(scheduler, Client):
        if scheduler.asynchronous:
            raise AttnlabError(
                "the Dask client is asynchronous; expected Client(…) without asynchronous=True"
            )
        return scheduler
    if not isinstance(scheduler, str | Path):
        raise AttnlabError(
            f"scheduler={scheduler!r}: expected an address such as tcp://host:8786, a file or "
            "a Dask client"
        )
    name = str(scheduler)
    address = name if is_address(name) else _address_in(Path(name))
    try:
        # For so long Dask also tries to connect again if the connection is lost later.
        return Client(address, security=security, timeout=_CONNECT_SECONDS, set_as_default=False)
    except OSError:
        raise _no_answer(name) from None
    except (TypeError, ValueError, RuntimeError) as error:
        raise AttnlabError(f"cannot connect to the Dask scheduler at {name}: {error}") from error


def is_address(text: str) -> bool:
    """Whether a text is an address rather than the name of a file.

    >>> is_address("tcp://127.0.0.1:8786"), is_address("node7:8786"), is_address("runs/scheduler.json")
    (True, True, False)
    """
    host, _, port = text.rpartition(":")
    return "://" in text or (bool(host) and port.isdigit())


def _address_in(file: Path) -> str:
    """The address in a scheduler file, once it is written."""
    deadline = time.monotonic() + _FILE_SECONDS
    while not (file.is_file() and file.stat().st_size):
        if time.monotonic() > deadline:
            raise _no_answer(str(file))
        time.sleep(0.2)
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError):
        raise AttnlabError(
            f"{file} is not a scheduler file: expected what `dask scheduler --scheduler-file` "
            "writes"
        ) from None


def _no_answer(name: str) -> AttnlabError:
    return AttnlabError(
        f"no Dask scheduler answers at {name}: expected an address such as tcp://host:8786, or the "
        "scheduler file of a scheduler that is running"
    )
