"""A worker process: ``python -m attnlab.sweeps.executors._worker_main``. Never started by hand.

Messages arrive on standard input, answers leave on what was standard output; whatever a work
function prints goes to standard error. When the parent dies, the input ends, and the worker with
it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from attnlab._errors import AttnlabError
from attnlab.sweeps._plan import Run
from attnlab.sweeps._source import CodeChanged
from attnlab.sweeps._work import load_work
from attnlab.sweeps.executors import _messages
from attnlab.sweeps.executors._executor import Worker

_GROWTH = 128 * 2**20  # bytes by which a process may grow before it drops compiled programs


def main() -> None:
    """Serve until the parent sends stop, or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    first = json.loads(sys.stdin.buffer.readline() or b"null")
    if first is None:
        return
    # From here on a thread reads the input: loading the work function may take long, and the parent
    # may die in the meantime.
    listener = _Listener(sys.stdin.buffer, answers)
    listener.start()
    code = 1
    try:
        code = _serve(first, listener)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)  # an orderly shutdown would wait for the listener, which waits for input


def _serve(message: dict[str, Any], listener: _Listener) -> int:
    """Compute chunk after chunk; returns the exit code. A new job may start between two chunks, and
    reuses compiled code as far as memory allows.
    """
    worker: Worker | None = None
    announces = False
    memory = _Memory()
    while True:
        if message["type"] == "job":
            announces = message["announce"]
            job = _messages.read_job(message)
            sys.path[:] = job.path
            try:
                listener.worker = worker = Worker(job, load_work(job.work))
            except CodeChanged as error:
                listener.send(_messages.message("changed", cause=str(error)))
                return 2
            except BaseException as error:
                listener.send(_messages.message("broken", cause=_cause(error)))
                return 2
            listener.send(_messages.message("ready"))
        else:
            assert worker is not None, "the first message is a job"
            runs: Iterable[Run] = _messages.read_chunk(message)
            if announces:
                runs = listener.announced(runs, worker)
            try:
                outcome = worker.compute(runs, lambda: False)
            except CodeChanged as error:
                listener.send(_messages.message("changed", cause=str(error)))
                return 2
            with worker.lock:  # the listener may answer a stop at the same time
                listener.send(_messages.outcome_message(outcome))
            memory.limit()
        message = listener.inbox.get()


class _Memory:
    """Keeps compiled programs (2 to 3 MB each) from filling the memory of a long-lived process."""

    def __init__(self):
        self._most = _resident_bytes() + _GROWTH

    def limit(self) -> None:
        """Drop compiled programs, and give freed memory back to the system, when much has come since
        the last time. A program that is needed again is read from the compilation cache.
        """
        if _resident_bytes() < self._most:
            return
        if jax := sys.modules.get("jax"):
            jax.clear_caches()
        gc.collect()
        with suppress(OSError, AttributeError):  # glibc alone keeps freed memory and has this call
            ctypes.CDLL(None).malloc_trim(0)
        self._most = _resident_bytes() + _GROWTH


def _resident_bytes() -> int:
    """Memory that this process holds; 0 where the system does not say (then nothing is dropped)."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGESIZE")


def _cause(error: BaseException) -> str:
    if isinstance(error, AttnlabError):
        return str(error)
    return "".join(traceback.format_exception(error))


class _Listener(threading.Thread):
    """Reads messages during the computation, so that a stop and the parent's death are noticed at
    once.
    """

    def __init__(self, messages: BinaryIO, answers: BinaryIO):
        super().__init__(daemon=True)
        self._messages, self._answers = messages, answers
        self.inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.worker: Worker | None = None

    def send(self, data: bytes) -> None:
        """Send a message to the parent."""
        self._answers.write(data)
        self._answers.flush()

    def announced(self, runs: Iterable[Run], worker: Worker) -> Iterator[Run]:
        """The runs; a message is sent when each starts, and when only storing them is left."""
        for run in runs:
            with worker.lock:
                self.send(_messages.message("run"))
            yield run
        with worker.lock:
            self.send(_messages.message("storing"))

    def run(self) -> None:
        """Pass jobs and chunks on; on a stop store what is finished and exit; at the end of the
        input just exit.
        """
        for text in iter(self._messages.readline, b""):
            message = json.loads(text)
            if message["type"] != "stop":
                self.inbox.put(message)
            elif self.worker is None:
                os._exit(0)
            else:
                with self.worker.lock:
                    with suppress(CodeChanged):  # then this process stores nothing
                        self.send(_messages.outcome_message(self.worker.flush()))
                    os._exit(0)
        os._exit(1)


if __name__ == "__main__":
    main()
