"""A worker process: ``python -m attnlab.sweeps.executors._worker_main``. Started by ``Processes``, never by hand.

Messages arrive on standard input, answers leave on what was standard output; whatever a work
function prints goes to standard error. When the parent dies, the input ends and the worker ends
with it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from attnlab._errors import AttnlabError
from attnlab.sweeps._plan import Run
from attnlab.sweeps._source import CodeChanged
from attnlab.sweeps._work import load_work
from attnlab.sweeps.executors import _wire
from attnlab.sweeps.executors._executor import Worker


def main() -> None:
    """Serve until the parent says stop, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    first = json.loads(sys.stdin.buffer.readline() or b"null")
    if first is None:
        return
    # From here on the input is watched: loading the work function may take long, and the parent may
    # die meanwhile.
    listener = _Listener(sys.stdin.buffer, answers)
    listener.start()
    code = 1
    try:
        code = _serve(first, listener)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)  # the listener still waits for input; an orderly shutdown would wait for it


def _serve(message: dict[str, Any], listener: _Listener) -> int:
    """Compute chunk after chunk; a new job may begin between two of them, and finds what is
    compiled.
    """
    worker: Worker | None = None
    tells = False
    while True:
        if message["do"] == "begin":
            tells = message.get("tell", False)
            sys.path[:] = message["path"]
            job = _wire.read_job(message)
            try:
                listener.worker = worker = Worker(job, load_work(job.work))
            except CodeChanged as error:
                listener.say(_wire.line({"say": "changed", "cause": str(error)}))
                return 2
            except BaseException as error:
                cause = (
                    str(error)
                    if isinstance(error, AttnlabError)
                    else "".join(traceback.format_exception(error))
                )
                listener.say(_wire.line({"say": "broken", "cause": cause}))
                return 2
            listener.say(_wire.line({"say": "ready"}))
        else:
            assert worker is not None, "the first message begins a job"
            runs = _wire.read_chunk(message)
            try:
                outcome = worker.compute(
                    listener.announced(runs, worker) if tells else runs, lambda: False
                )
            except CodeChanged as error:
                listener.say(_wire.line({"say": "changed", "cause": str(error)}))
                return 2
            with worker.lock:  # no two answers at once
                listener.say(_wire.outcome_message(outcome))
        message = listener.orders.get()


class _Listener(threading.Thread):
    """Reads messages beside the computation, so that stop and the parent's death are noticed at
    once.
    """

    def __init__(self, messages: BinaryIO, answers: BinaryIO):
        super().__init__(daemon=True)
        self._messages, self._answers = messages, answers
        self.orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.worker: Worker | None = None

    def say(self, message: bytes) -> None:
        """Answer the parent."""
        self._answers.write(message)
        self._answers.flush()

    def announced(self, runs: Iterable[Run], worker: Worker) -> Iterator[Run]:
        """The runs; the parent is told when each begins, and when what is left is to store them."""
        for run in runs:
            with worker.lock:
                self.say(_wire.line({"say": "run"}))
            yield run
        with worker.lock:
            self.say(_wire.line({"say": "storing"}))

    def run(self) -> None:
        """Hand jobs and chunks on; on stop store what is finished and leave; on the end of input
        just leave.
        """
        for text in iter(self._messages.readline, b""):
            message = json.loads(text)
            if message["do"] != "stop":
                self.orders.put(message)
            elif self.worker is None:
                os._exit(0)
            else:
                with self.worker.lock:
                    with suppress(CodeChanged):  # then nothing of this process is stored
                        self.say(_wire.outcome_message(self.worker.flush()))
                    os._exit(0)
        os._exit(1)


if __name__ == "__main__":
    main()
