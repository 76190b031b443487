"""A progress bar, and a clean end on Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} steps/s" if speed else "")


@contextmanager
def progress_bar(shown: bool | None, title: str, total: int) -> Iterator[Progress]:
    """A bar on standard error with rate and remaining time; by default only on a terminal."""
    disable = not (sys.stderr.isatty() if shown is None else shown)
    texts = TextColumn("{task.description}"), TextColumn("{task.fields[runs]}")
    columns = (texts[0], BarColumn(), texts[1], _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=disable, transient=True) as bar:
        bar.add_task(title, total=total, runs="")
        yield bar


class Interrupt:
    """Whether Ctrl-C was pressed."""

    pressed = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Turn the first Ctrl-C into a flag that the loop reads between compiled calls; a second raises.

    Signals are left alone outside the main thread, and where another handler is installed (a sweep,
    or a worker that must survive its parent's Ctrl-C).
    """
    state = Interrupt()
    foreign = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    if foreign or threading.current_thread() is not threading.main_thread():
        yield state
        return
    before = signal.getsignal(signal.SIGINT)

    def handler(number: int, frame: object) -> None:
        if state.pressed:
            signal.signal(signal.SIGINT, before)
            raise KeyboardInterrupt
        state.pressed = True

    signal.signal(signal.SIGINT, handler)
    try:
        yield state
    finally:
        signal.signal(signal.SIGINT, before)
