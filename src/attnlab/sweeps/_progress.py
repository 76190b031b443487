"""How far a sweep is."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from attnlab.sweeps.executors._executor import Interrupt


@dataclass(frozen=True)
class Event:
    """How far a sweep is: runs asked for, finished, failed and being computed; runs per second;
    seconds left.

    ``rate`` counts what this call computed. Both are ``None`` while nothing is known.
    """

    asked: int
    finished: int
    failed: int
    running: int
    rate: float | None
    seconds_left: float | None


class Reporter:
    """Tells a callback and a bar about progress."""

    def __init__(
        self,
        title: str,
        asked: int,
        finished: int,
        bar: Progress,
        on_event: Callable[[Event], None] | None,
    ):
        self._asked, self._finished, self._failed = asked, finished, 0
        self._computed, self._started = 0, time.monotonic()
        self._bar, self._on_event = bar, on_event
        self._task = bar.add_task(title, total=asked, text="")

    def tell(self, finished: int, failed: int, running: int) -> None:
        """More runs have finished or failed."""
        self._finished += finished
        self._failed += failed
        self._computed += finished + failed
        left = self._asked - self._finished - self._failed
        rate = (
            self._computed / max(time.monotonic() - self._started, 1e-9) if self._computed else None
        )
        event = Event(
            self._asked, self._finished, self._failed, running, rate, left / rate if rate else None
        )
        self._bar.update(self._task, completed=self._finished + self._failed, text=_words(event))
        if self._on_event is not None:
            self._on_event(event)


@contextmanager
def progress_bar(shown: bool | None) -> Iterator[Progress]:
    """A bar on standard error, by default only where someone is looking; in a log only its last
    state.
    """
    disable = not (sys.stderr.isatty() if shown is None else shown)
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[text]}", markup=False),
    )
    with Progress(*columns, console=console, disable=disable, transient=console.is_terminal) as bar:
        yield bar


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into an orderly end; a second one raises at once. Only in the main
    thread.
    """
    state = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield state
        return
    before = signal.getsignal(signal.SIGINT)

    def handler(number: int, frame: object) -> None:
        del number, frame
        again, state.pressed = state.pressed, True
        if again or state.may_break:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handler)
    try:
        yield state
    finally:
        signal.signal(signal.SIGINT, before)


def _words(event: Event) -> str:
    """One line.

    >>> _words(Event(asked=200, finished=50, failed=1, running=2, rate=3.0, seconds_left=75.4))
    '50/200 runs, 1 failed, 3.0 runs/s, 1:15 left'
    """
    text = f"{event.finished}/{event.asked} runs, {event.failed} failed"
    if event.rate is None or event.seconds_left is None:
        return text
    minutes, seconds = divmod(round(event.seconds_left), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
    return f"{text}, {event.rate:.1f} runs/s, {clock} left"
