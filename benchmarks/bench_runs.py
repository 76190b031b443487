"""What plan, store and processes cost: ``python benchmarks/bench_runs.py``.

Each function returns records ``{"name", "against", "ratio", "target"}``: the ratio of what was
measured to what it is measured against, which must not exceed the target (or reach it, for the
speed-up).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from attnlab._places import listed
from attnlab.sweeps import Plan, Results, RunContext, Store, run_plan
from attnlab.sweeps.store._stack import Stack
from attnlab.sweeps.store._store import save_runs

HERE = Path(__file__).resolve()


@dataclass(frozen=True)
class Task:
    seed: int
    seconds: float = 0.0
    spins: int = 0


def trajectory(settings: Task, context: RunContext) -> xr.Dataset:
    """A run as studies return them: ten recorded quantities of 100 steps. Waits, or computes."""
    del context
    time.sleep(settings.seconds)
    total = 0
    for number in range(settings.spins):
        total += number & 1
    values = np.random.default_rng(settings.seed).normal(size=(10, 100))
    data = {f"quantity{k}": ("step", row) for k, row in enumerate(values)}
    return xr.Dataset({**data, "total": total}, {"step": np.arange(100)}, {"seed": settings.seed})


def _plan(runs: int, **base: float) -> Plan:
    return Plan(f"{HERE}:trajectory", name="bench", base=base, grid={"seed": list(range(runs))})


def _record(
    name: str, against: str, ratio: float, target: float, **more: object
) -> dict[str, object]:
    return {
        "name": name,
        "against": against,
        "ratio": round(ratio, 4),
        "target": target,
        "at_most": True,
        **more,
    }


def overhead(runs: int = 256, seconds: float = 1.0) -> list[dict[str, object]]:
    """Time beyond the runs' own of a sweep on two processes: starting them, storing, merging, the
    uneven end.

    The runs only wait, so that what is measured is overhead even on a busy machine; the whole takes
    two minutes.
    """
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run_plan(_plan(runs, seconds=seconds), Path(folder) / "sweep", processes=2)
        taken = time.perf_counter() - started
    own = runs * seconds / 2
    name = f"plan and store beyond {runs} runs of {seconds:g} s on two processes"
    return [_record(name, "the runs' own time", taken / own - 1, 0.05)]


def _stored(folder: Path, runs: int) -> Plan:
    """A finished sweep of many runs, written as workers write them and merged as a sweep ends."""
    plan = _plan(runs)
    with Store.open(folder, plan) as store:
        for first in range(0, runs, 64):
            chunk = plan.runs[first : first + 64]
            made = [
                Stack.of_run(r.hash, trajectory(Task(r.settings["seed"]), r.context(0)))
                for r in chunk
            ]
            save_runs(folder, made, store.sources.current)
    with Store.open(folder, plan) as store:
        store.consolidate()
    return plan


def many(runs: int = 10_000) -> list[dict[str, object]]:
    """Seconds to list and to load one variable of many stored runs; files needed for them."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "sweep"
        _stored(folder, runs)
        started = time.perf_counter()
        results = Results.read(folder)
        assert results.finished == runs
        listed = time.perf_counter() - started
        started = time.perf_counter()
        data = results.select(["quantity3"])
        loaded = time.perf_counter() - started
        assert data.quantity3.shape == (runs, 100)
        assert not np.isnan(data.quantity3.values).any()
        files = sum(path.is_file() for path in folder.rglob("*"))
        started = time.perf_counter()
        run_plan(_plan(runs), folder, processes=0)
        again = time.perf_counter() - started
    return [
        _record(f"list {runs} stored runs", "1 s", listed, 2.0),
        _record(f"load one variable of {runs} stored runs", "1 s", loaded, 5.0),
        _record(f"files of {runs} stored runs", "1 file", files, 1000.0),
        _record(
            f"start a finished sweep of {runs} runs again (checksums verified)", "1 s", again, 10.0
        ),
    ]


def in_flight(runs: int = 10_000) -> list[dict[str, object]]:
    """Files at any moment of a sweep of slow runs, each a block of its own, and what merging them
    meanwhile costs.
    """
    values = np.random.default_rng(0).normal(size=(runs, 100))
    writing = merging = 0.0
    most = 0
    with tempfile.TemporaryDirectory() as place:
        folder, plan = Path(place) / "sweep", _plan(runs)
        with Store.open(folder, plan) as store:
            for run, row in zip(plan.runs, values, strict=True):
                started = time.process_time()
                stack = Stack.of_run(run.hash, xr.Dataset({"quantity": ("step", row)}))
                block = save_runs(folder, [stack], store.sources.current)
                written = time.process_time()
                store.note([block], [])
                most = max(
                    most, sum(len(listed(folder / part)) for part in ("", "blocks", "failures"))
                )
                started = time.process_time()
                store.keep_few_files()
                merging += time.process_time() - started
                writing += written - started
            store.consolidate()
        started = time.perf_counter()
        results = Results.read(folder)
        data = results.select(["quantity"])
        loaded = time.perf_counter() - started
        assert np.array_equal(data.quantity.values, values)
    return [
        _record(f"files at any moment of {runs} blocks of one run", "1 file", most, 1000.0),
        _record(
            f"merging {runs} blocks of one run in flight",
            "writing them (CPU)",
            merging / writing,
            1.0,
            merging_ms_a_run=round(1e3 * merging / runs, 2),
        ),
        _record(
            f"list and load the one variable of {runs} runs merged in flight", "1 s", loaded, 5.0
        ),
    ]


def speed_up(runs: int = 128, spins: int = 6_000_000) -> list[dict[str, object]]:
    """Two processes against one, on work that computes; judged only on an idle machine."""
    idle = os.getloadavg()[0] <= 0.5
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for processes in (1, 2):
            started = time.perf_counter()
            run_plan(_plan(runs, spins=spins), Path(folder) / str(processes), processes=processes)
            times.append(time.perf_counter() - started)
    return [
        _record(
            "two processes", "one process", times[0] / times[1], 1.8, at_most=False, judged=idle
        )
    ]


def measure() -> list[dict[str, object]]:
    """All of them, as ``run.py`` takes them."""
    return [record for bench in (speed_up, overhead, many, in_flight) for record in bench()]


def main() -> None:
    """Run all and print one record a line."""
    for record in measure():
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    sys.exit(main())
