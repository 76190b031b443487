"""A progress bar, and a clean end on Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from attnlab._progress import progress_bar as any_progress_bar


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} steps/s" if speed else "")


@contextmanager
def progress_bar(shown: bool | None, title: str, total: int) -> Iterator[Progress]:
    """A bar on standard error with rate and remaining time; by default on a terminal or in a notebook."""
    texts = TextColumn("{task.description}"), TextColumn("{task.fields[runs]}")
    columns = (texts[0], BarColumn(), texts[1], _Rate(), TimeRemainingColumn())
    with any_progress_bar(shown, *columns) as bar:
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
