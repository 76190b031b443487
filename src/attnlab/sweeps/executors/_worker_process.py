"""One worker process, seen from its parent."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, Any

from attnlab._errors import AttnlabError
from attnlab.sweeps.executors import _wire
from attnlab.sweeps.executors._chunks import Chunk
from attnlab.sweeps.executors._executor import Job, Outcome

PATIENCE_SECONDS = 1.2
TICK_SECONDS = 0.1


def checked_limit(seconds: float | None) -> float | None:
    """A time limit for each run, or ``None`` for none."""
    if seconds is not None and (
        isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0
    ):
        raise AttnlabError(
            f"time_limit={seconds!r}: expected seconds for each run, more than 0, or None for no "
            "limit"
        )
    return seconds


class Child:
    """A fresh interpreter that computes chunks: ``python -m attnlab.sweeps.executors._worker_main``.

    ``chunk`` is what it is at, ``last`` what it was given last; ``ready`` whether it has loaded the
    work function.
    """

    def __init__(self, environment: dict[str, str]):
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed in end)
        # A process group of its own: Ctrl-C reaches the parent alone, which then decides. Safe
        # path: the caller's folder is not searched before the standard library.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "attnlab.sweeps.executors._worker_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=environment,
            bufsize=0,
            process_group=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self.answers = self._process.stdin, self._process.stdout
        os.set_blocking(self.answers.fileno(), False)
        self._rest = b""
        self._limit: float | None = None
        self._since: float | None = None
        self._begun = 0
        self._ending: tuple[str, str] | None = None
        self.ready = False
        self.chunk: Chunk | None = None
        self.last: Chunk | None = None

    def begin(
        self, job: Job, *, path: Iterable[str] | None = None, limit: float | None = None
    ) -> None:
        """Begin a job; runs that take longer than ``limit`` seconds are ``overdue``."""
        self.ready, self.last, self._limit = False, None, limit
        self.say(_wire.job_message(job, sys.path if path is None else path, tell=limit is not None))

    def say(self, message: bytes) -> None:
        """Send a message."""
        with suppress(OSError):  # of a process that has just died; reading from it will tell
            while message:
                message = message[self._orders.write(message) :]

    def give(self, chunk: Chunk) -> None:
        """Have a chunk computed."""
        self.chunk, self.last, self._begun = chunk, chunk, 0
        self.say(_wire.chunk_message(chunk))

    @property
    def has_died(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    @property
    def at(self) -> str | None:
        """The hash of the run that is being computed, if runs are told of."""
        return self.chunk[self._begun - 1].hash if self.chunk and self._begun else None

    @property
    def overdue(self) -> bool:
        """Whether the run that is being computed takes longer than the time limit; loading and
        storing do not count.
        """
        return (
            self._limit is not None
            and self._since is not None
            and time.monotonic() - self._since > self._limit
        )

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """The messages that have arrived, and whether they were the last."""
        died = self.has_died  # asked before reading: what a dead process has said is then all there
        try:
            data = os.read(self.answers.fileno(), 1 << 20)
            ended = not data
        except BlockingIOError:
            data, ended = b"", died
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages = [json.loads(text) for text in lines]
        for message in messages:
            self._since = time.monotonic() if message["say"] == "run" else None
            self._begun += message["say"] == "run"
        return messages, ended

    def listen(self, seconds: float) -> tuple[list[dict[str, Any]], bool]:
        """The same, but wait for a while if nothing has arrived."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.answers, selectors.EVENT_READ)
            selector.select(seconds)
        return self.read()

    def settle(self, patience: float = PATIENCE_SECONDS) -> list[Outcome]:
        """Ask the process to store what is finished and to leave, and wait a little: what it had to
        say.
        """
        self.say(_wire.line({"do": "stop"}))
        deadline, ended, found = time.monotonic() + patience, False, []
        while not ended and time.monotonic() < deadline:
            messages, ended = self.listen(TICK_SECONDS)
            found += [
                _wire.read_outcome(message) for message in messages if message["say"] == "outcome"
            ]
        return found

    def end(self, patience: float = 0.0) -> tuple[str, str]:
        """End the process; how it ended, and the last that it wrote to standard error. May be
        called again.
        """
        if self._ending is not None:
            return self._ending
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._process.kill()
        code = self._process.wait()
        for pipe in (self._orders, self.answers):
            with suppress(OSError):
                pipe.close()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - 2000))
        last_words = self._stderr.read().decode(errors="replace").strip()
        self._stderr.close()
        told = (
            f"process died with signal {-code}" if code < 0 else f"process ended with code {code}"
        )
        self._ending = told, last_words
        return self._ending
