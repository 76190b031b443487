"""Timing on a noisy machine: CPU time, interleaved repeats, medians, one thread."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def use_one_thread() -> None:
    """Set before JAX or PyTorch is imported."""
    os.environ.update(ONE_THREAD)


def interleaved(subjects: dict[str, Callable[[], None]], repeats: int = 7) -> dict[str, float]:
    """Median CPU seconds of a call of each subject, in turns, so that a slow minute slows all of
    them.
    """
    for call in subjects.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(repeats):
        for name, call in subjects.items():
            begun = time.process_time()
            call()
            times[name].append(time.process_time() - begun)
    return {name: sorted(values)[len(values) // 2] for name, values in times.items()}


def result(
    name: str, against: str, ratio: float, target: float | None, **more: object
) -> dict[str, object]:
    """One line of ``build/bench.json``."""
    return {"name": name, "against": against, "ratio": ratio, "target": target, **more}
