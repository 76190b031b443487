"""What the tests of sweeps share."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

WORKS = Path(__file__).parent / "_works.py"


@pytest.fixture
def works() -> str:
    """The path of the work functions."""
    return str(WORKS)


@pytest.fixture
def same_bits() -> Callable[[xr.Dataset, xr.Dataset], None]:
    """Equality of two data sets, bit for bit."""

    def check(one: xr.Dataset, other: xr.Dataset) -> None:
        assert set(one.variables) == set(other.variables)
        for name in one.variables:
            a, b = one[name], other[name]
            assert a.dims == b.dims
            if a.dtype.kind == "U":
                np.testing.assert_array_equal(a.values, b.values)
            else:
                assert a.dtype == b.dtype
                assert a.values.tobytes() == b.values.tobytes(), name

    return check


@pytest.fixture
def start_script(tmp_path):
    """Start Python code in a process of its own; whatever is left of it is killed in the end."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str) -> subprocess.Popen[str]:
        path = tmp_path / f"script{len(started)}.py"
        path.write_text(code)
        process = subprocess.Popen(
            [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    """Wait until something is so."""

    def wait(condition: Callable[[], bool], seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.02)

    return wait


@pytest.fixture
def interrupt(wait_for):
    """Ctrl-C for a script whose runs note their start; how many had started, and what the script printed
    when it ended.
    """

    def press(script: subprocess.Popen[str], diary: Path) -> tuple[int, str]:
        wait_for(lambda: len(list(diary.iterdir())) >= 6)
        started = len(list(diary.iterdir()))
        script.send_signal(signal.SIGINT)
        pressed = time.monotonic()
        output = script.communicate(timeout=10)[0]
        assert time.monotonic() - pressed < 2.5  # two seconds, and half a one for a busy machine
        assert "interrupted True" in output
        return started, output

    return press
