"""A headless Chromium driven over a pipe: enough of its protocol to look at a page as a reader
does.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)
# Chromium reads from descriptor 3 and writes to descriptor 4.
_START = "import os,sys; os.dup2(int(sys.argv[1]),3); os.dup2(int(sys.argv[2]),4); os.execvp(sys.argv[3],sys.argv[3:])"


class Browser:
    """One browser with one tab; ``events`` holds all it has told so far."""

    def __init__(self, program: str, profile: Path):
        (far_in, self._out), (self._in, far_out) = _pipe(), _pipe()
        command = [sys.executable, "-c", _START, str(far_in), str(far_out), program, *_FLAGS]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(far_in, far_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(far_in)
        os.close(far_out)
        self._buffer, self._number, self._session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read(30)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression: str) -> Any:
        """The value of a script's expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def open(
        self,
        path: Path,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        mark: str = "",
    ) -> None:
        """Show a file and wait until all its figures are drawn."""
        self.events.clear()
        mobile = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.as_uri() + mark)
        self.wait_for("(([a, b]) => b && a === b)((document.body?.dataset.drawn ?? '').split('/'))")

    def wait_for(self, expression: str, seconds: float = 30) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"not true after {seconds} s: {expression}"
            time.sleep(0.05)

    def told(self, *methods: str) -> list[dict[str, Any]]:
        """What the browser told under these names."""
        return [event["params"] for event in self.events if event.get("method") in methods]

    def problems(self) -> list[Any]:
        """Errors and warnings on the console, exceptions, dialogs."""
        logs = [
            e["entry"]
            for e in self.told("Log.entryAdded")
            if e["entry"]["level"] in ("error", "warning")
        ]
        said = [
            e
            for e in self.told("Runtime.consoleAPICalled")
            if e["type"] in ("error", "warning", "assert")
        ]
        return logs + said + self.told("Runtime.exceptionThrown", "Page.javascriptDialogOpening")

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self.call("Browser.close")
        self._process.wait(20)
        os.close(self._in)
        os.close(self._out)

    def _read(self, seconds: float) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"Chromium said nothing for {seconds} s"
            piece = os.read(self._in, 1 << 20)
            assert piece, "Chromium ended"
            self._buffer += piece
        line, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(line)


def _pipe() -> tuple[int, int]:
    """A pipe whose descriptors are clear of 3 and 4."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
