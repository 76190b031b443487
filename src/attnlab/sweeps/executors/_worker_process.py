"""One worker process, seen from its parent."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from typing import IO, Any

from attnlab._errors import AttnlabError
from attnlab.sweeps.executors import _messages
from attnlab.sweeps.executors._chunks import Chunk
from attnlab.sweeps.executors._executor import Job, Outcome

STOP_SECONDS = 1.2  # within which a process that is asked to stop must have stored its runs
TICK_SECONDS = 0.1
_STDERR_BYTES = 2000


def checked_limit(seconds: float | None) -> float | None:
    """A time limit for each run, or ``None`` for no limit."""
    if seconds is not None and (
        isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0
    ):
        raise AttnlabError(
            f"time_limit={seconds!r}: expected seconds for each run, more than 0, or None for no "
            "limit"
        )
    return seconds


class WorkerProcess:
    """A fresh interpreter that computes chunks: ``python -m attnlab.sweeps.executors._worker_main``.

    ``chunk`` is the one that it computes now, ``last_chunk`` the last one that it was given;
    ``is_ready`` says whether it has loaded the work function.
    """

    def __init__(self, environment: dict[str, str]):
        if sys.platform == "win32":  # where reading a pipe cannot but wait
            raise AttnlabError(
                "worker processes do not run on Windows: use attnlab in WSL, or compute in one "
                "process, which is untested there (--processes 0, in Python processes=0)"
            )
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed in end)
        # A process group of its own: Ctrl-C reaches only the parent, which decides what to do. Safe
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
        self._input, self.output = self._process.stdin, self._process.stdout
        os.set_blocking(self.output.fileno(), False)
        self._incomplete_line = b""
        self._limit: float | None = None
        self._in_groups = False
        self._run_started_at: float | None = None
        self._runs_started = 0
        self._ending: tuple[str, str] | None = None
        self.is_ready = False
        self.chunk: Chunk | None = None
        self.last_chunk: Chunk | None = None

    def start_job(self, job: Job, *, limit: float | None = None) -> None:
        """Start a job; a run that takes longer than ``limit`` seconds makes it ``is_overdue``."""
        self.is_ready, self.last_chunk, self._limit = False, None, limit
        self._in_groups = job.batch is not None
        path = (*sys.path, *(entry for entry in job.path if entry not in sys.path))
        self.send(_messages.job_message(replace(job, path=path), announce=limit is not None))

    def send(self, data: bytes) -> None:
        """Send a message."""
        with suppress(OSError):  # of a process that has just died, which is noticed when reading
            while data:
                data = data[self._input.write(data) :]

    def compute(self, chunk: Chunk) -> None:
        """Have a chunk computed."""
        self.chunk, self.last_chunk, self._runs_started = chunk, chunk, 0
        self.send(_messages.chunk_message(chunk))

    @property
    def has_died(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    @property
    def current_run(self) -> str | None:
        """The hash of the run that is being computed; known only where there is a time limit."""
        return (
            self.chunk[self._runs_started - 1].hash if self.chunk and self._runs_started else None
        )

    @property
    def is_overdue(self) -> bool:
        """Whether the current run, or group, takes longer than the time limit; loading does not count,
        and storing only after a group.
        """
        if self._limit is None or self._run_started_at is None:
            return False
        return time.monotonic() - self._run_started_at > self._limit

    def read(self) -> tuple[list[dict[str, Any]], bool]:
        """The messages that have arrived, and whether they were the last."""
        died = self.has_died  # asked before reading: then all that a dead process sent is read
        try:
            data = os.read(self.output.fileno(), 1 << 20)
            ended = not data
        except BlockingIOError:
            data, ended = b"", died
        *lines, self._incomplete_line = (self._incomplete_line + data).split(b"\n")
        messages = [json.loads(text) for text in lines]
        for message in messages:
            if message["type"] == "storing" and self._in_groups:
                continue  # said when the last group is complete, which is then only started
            starts_run = message["type"] == "run"
            self._run_started_at = time.monotonic() if starts_run else None
            self._runs_started += starts_run
        return messages, ended

    def wait_and_read(self, seconds: float) -> tuple[list[dict[str, Any]], bool]:
        """The same, but wait for so long if nothing has arrived."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            selector.select(seconds)
        return self.read()

    def stop(self, seconds: float = STOP_SECONDS) -> list[Outcome]:
        """Ask the process to store what is finished and to end, and wait so long for its answers."""
        self.send(_messages.message("stop"))
        deadline, ended, found = time.monotonic() + seconds, False, []
        while not ended and time.monotonic() < deadline:
            messages, ended = self.wait_and_read(TICK_SECONDS)
            for message in messages:
                if message["type"] == "outcome":
                    found.append(_messages.read_outcome(message))
        return found

    def end(self, patience: float = 0.0) -> tuple[str, str]:
        """End the process; returns how it ended, and the end of its standard error. May be called
        again.
        """
        if self._ending is not None:
            return self._ending
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self._process.kill()
        code = self._process.wait()
        for pipe in (self._input, self.output):
            with suppress(OSError):
                pipe.close()
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - _STDERR_BYTES))
        stderr_tail = self._stderr.read().decode(errors="replace").strip()
        self._stderr.close()
        cause = (
            f"process died with signal {-code}" if code < 0 else f"process ended with code {code}"
        )
        self._ending = cause, stderr_tail
        return self._ending
