"""Which runs are handed out together."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attnlab.sweeps._plan import Run

_TARGET_SECONDS = 5.0
_MOST_RUNS = 64

Chunk = tuple[Run, ...]


class Chunks:
    """The runs still to do, handed out a few at a time.

    A chunk holds about five seconds of work, by the time that runs took so far, so that writing it
    costs little and a killed process loses little. Runs that differ only in their seed share their
    compiled code: ``take(after=…)`` goes on with the kind of the worker's last chunk, and gives
    different kinds to different workers.
    """

    def __init__(self, runs: Sequence[Run], workers: int):
        self._kinds: dict[str, deque[Run]] = {}
        for run in runs:
            self._kinds.setdefault(_kind(run.settings), deque()).append(run)
        self._claimed: set[str] = set()
        self._left, self._workers = len(runs), workers
        self._seconds: deque[float] = deque(maxlen=32)
        self._size = 1

    def __len__(self) -> int:
        return self._left

    def __iter__(self) -> Iterator[Chunk]:
        chunk = None
        while chunk := self.take(after=chunk):
            yield chunk

    def observe(self, seconds: Sequence[float]) -> None:
        """Learn how long runs take. Sizes grow step by step: the first run of a kind also compiles."""
        if seconds:
            self._seconds.extend(seconds)
            typical = sorted(self._seconds)[
                (len(self._seconds) - 1) // 2
            ]  # the lower median: compiling is no habit
            wanted = math.ceil(_TARGET_SECONDS / max(typical, 1e-6))
            self._size = max(1, min(wanted, 4 * self._size, _MOST_RUNS))

    def take(self, after: Chunk | None = None) -> Chunk | None:
        """The next chunk for a worker whose last one was ``after``; ``None`` when all are handed
        out.
        """
        # Towards the end chunks shrink, so that all workers end together.
        size = (
            self._size
            if self._workers == 1
            else min(self._size, math.ceil(self._left / (2 * self._workers)))
        )
        taken: list[Run] = []
        last = _kind(after[-1].settings) if after else None
        while len(taken) < size and self._kinds:
            last = last if last in self._kinds else self._fresh_kind()
            self._claimed.add(last)
            waiting = self._kinds[last]
            while waiting and len(taken) < size:
                taken.append(waiting.popleft())
            if not waiting:
                del self._kinds[last]
        self._left -= len(taken)
        return tuple(taken) or None

    def _fresh_kind(self) -> str:
        """A kind that no worker is at, or else the one with most runs left."""
        for kind in self._kinds:
            if kind not in self._claimed:
                return kind
        return max(self._kinds, key=lambda kind: len(self._kinds[kind]))


def _kind(settings: Mapping[str, Any]) -> str:
    """All settings but the seeds."""
    return json.dumps({k: v for k, v in settings.items() if not k.endswith("seed")}, sort_keys=True)
