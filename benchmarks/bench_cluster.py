"""What a Dask cluster on this machine gains and costs: ``python benchmarks/bench_cluster.py [RUNS
SECONDS MANY]``.

Two workers against one on work that computes a fixed amount; and what each run costs beyond its own
work, of many trivial ones. Wall times are judged only on an idle machine; CPU times are reported
beside them.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench_runs import HERE as WORKS
from bench_runs import Task, trajectory

from attnlab.sweeps import Cluster, Plan, Processes, RunContext, run_plan

_TRIAL_SPINS = 20_000_000


@contextmanager
def _cluster(workers: int) -> Iterator[Cluster]:
    """So many workers with one thread each, their processes started and the work function loaded."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
        ) as made,
        Client(made, set_as_default=False) as client,
        Cluster(client, quiet=True) as executor,
        tempfile.TemporaryDirectory() as folder,
    ):
        run_plan(_plan(2 * workers, "warm", seconds=0.2), folder, executor=executor, progress=False)
        yield executor


def _plan(runs: int, name: str, **base: float) -> Plan:
    return Plan(f"{WORKS}:trajectory", name=name, base=base, grid={"seed": list(range(runs))})


def _spins(seconds: float) -> int:
    """How much work takes so many CPU seconds here."""
    trajectory(
        Task(0, spins=_TRIAL_SPINS // 10), RunContext(0, 0, "0" * 64)
    )  # the first call also imports
    started = time.process_time()
    trajectory(Task(0, spins=_TRIAL_SPINS), RunContext(0, 0, "0" * 64))
    return round(_TRIAL_SPINS * seconds / (time.process_time() - started))


def _cpu() -> float:
    """CPU seconds of this process and of all that it started and that have ended."""
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def speed_up(runs: int = 64, seconds: float = 2.0) -> list[dict[str, object]]:
    """Two workers against one: the same plan, with the same amount of work."""
    load, spins = os.getloadavg()[0], _spins(seconds)
    walls, cpus = [], []
    for workers in (1, 2):
        before = _cpu()
        with _cluster(workers) as executor, tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            results = run_plan(
                _plan(runs, "speed", spins=spins), folder, executor=executor, progress=False
            )
            walls.append(time.perf_counter() - started)
            assert results.finished == runs
        cpus.append(_cpu() - before)
    own = runs * seconds
    return [
        {
            "name": f"two Dask workers, {runs} runs of {seconds:g} s",
            "against": "one Dask worker",
            "ratio": walls[0] / walls[1],
            "target": 1.75,
            "judged": load <= 0.5,
            "load": load,
            "walls": walls,
        },
        # With one core a worker, two can at best halve the time: what is lost is what two spend
        # beyond the runs.
        {
            "name": "the same by CPU time: twice what one spends",
            "against": "what two spend",
            "target": None,
            "ratio": 2 * cpus[0] / cpus[1],
            "cpus": cpus,
            "runs_own": own,
        },
    ]


def overhead(runs: int = 1000) -> list[dict[str, object]]:
    """Milliseconds for each of many trivial runs: wall time, and CPU time of all processes, beside
    two processes.
    """
    load, found = os.getloadavg()[0], {}
    for name in ("cluster", "processes"):
        before = _cpu()
        with tempfile.TemporaryDirectory() as folder:
            if name == "cluster":
                with _cluster(2) as executor:
                    started = time.perf_counter()
                    assert (
                        run_plan(
                            _plan(runs, "many"), folder, executor=executor, progress=False
                        ).finished
                        == runs
                    )
                    wall = time.perf_counter() - started
            else:
                with Processes(2) as executor:
                    started = time.perf_counter()
                    assert (
                        run_plan(
                            _plan(runs, "many"), folder, executor=executor, progress=False
                        ).finished
                        == runs
                    )
                    wall = time.perf_counter() - started
        found[name] = 1e3 * wall / runs, 1e3 * (_cpu() - before) / runs
    (wall, cpu), (_, cpu_here) = found["cluster"], found["processes"]
    return [
        {
            "name": f"a run of {runs} trivial ones on two Dask workers, wall",
            "against": "1 ms",
            "ratio": wall,
            "target": 20.0,
            "at_most": True,
            "judged": load <= 0.5,
            "load": load,
        },
        {
            "name": "the same, CPU time of all processes (start included)",
            "against": "1 ms",
            "ratio": cpu,
            "target": 20.0,
            "at_most": True,
        },
        {
            "name": "the same, CPU time",
            "against": "two processes without Dask",
            "ratio": cpu / cpu_here,
            "target": None,
        },
    ]


def measure() -> list[dict[str, object]]:
    """Both, as ``run.py`` takes them."""
    return [*speed_up(), *overhead()]


def main() -> None:
    """Run both, perhaps smaller, and print one record a line."""
    runs, seconds, many = sys.argv[1:] or ("64", "2", "1000")
    for record in [*speed_up(int(runs), float(seconds)), *overhead(int(many))]:
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    sys.exit(main())
