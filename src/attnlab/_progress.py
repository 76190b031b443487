"""Progress bars: on a terminal as rich draws them, in a notebook as one line that is updated."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn, TaskID

_PAUSE = 0.2  # seconds between two updates of a notebook's line


@contextmanager
def progress_bar(
    shown: bool | None, *columns: ProgressColumn, transient: bool = True
) -> Iterator[Progress]:
    """A bar with these columns on standard error; by default only on a terminal and in a notebook."""
    if shown is not False and in_notebook():
        bar: Progress = NotebookLine()
    else:
        disable = not (sys.stderr.isatty() if shown is None else shown)
        console = Console(stderr=True)
        bar = Progress(
            *columns, console=console, disable=disable, transient=transient or console.is_terminal
        )
    with bar:
        yield bar


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook; nothing is imported to find out."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and hasattr(found, "kernel")


class NotebookLine(Progress):
    """The first task as one line of text under the cell, which disappears at the end.

    Rich alone would ask for ipywidgets. What is drawn here is a display of IPython, which every
    notebook has.
    """

    def __init__(self):
        super().__init__(disable=True)
        self._display: Any = None
        self._next = 0.0

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """As rich's; draws the line, not more often than a reader can see."""
        super().update(task_id, **changes)
        if time.monotonic() >= self._next:
            self._draw(self.words())

    def words(self) -> str:
        """The line: title, share, and what the task's fields say."""
        if not self.tasks:
            return ""
        task = self.tasks[0]
        said = "  ".join(str(text) for text in task.fields.values() if text)
        left = "" if task.time_remaining is None else f"  {task.time_remaining:.0f} s left"
        return f"{task.description}  {task.percentage:.0f} %  {said}{left}".rstrip()

    def stop(self) -> None:
        """Empty the line."""
        if self._display is not None:
            self._draw("")
        super().stop()

    def _draw(self, words: str) -> None:
        from IPython.display import display  # pyright: ignore[reportMissingImports]

        # As HTML, an empty line takes no place.
        shown = f"<pre>{html.escape(words)}</pre>" if words else ""
        content = {"text/html": shown, "text/plain": words}
        if self._display is None:
            self._display = display(content, raw=True, display_id=True)
        else:
            self._display.update(content, raw=True)
        self._next = time.monotonic() + _PAUSE
