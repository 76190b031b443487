"""Where the CPU time of ``attnlab reproduce`` goes: ``make profile`` writes build/profile.json.

    python tools/profile.py                 every claim at quick scale, on the corpus of the data extra
    python tools/profile.py laws lu2021.sen the sweeps of some claims

Each sweep runs in a fresh process of one thread, without compiled programs of an earlier run. Its
CPU-seconds are split into start-up (imports), compile (tracing, lowering and XLA), run, store and
measure; compiled programs are counted, and the peak of memory is noted. Last, all claims are judged
and the page is drawn from what the sweeps left, as ``attnlab reproduce`` does on a finished folder.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BUILD = Path(__file__).resolve().parent.parent / "build"
RESULTS = BUILD / "profile"
PARTS = ("start-up", "compile", "run", "store", "measure", "report")
# What JAX reports around a compilation; the last one is reported for every program.
_COMPILING = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


def main() -> None:
    """Profile sweep after sweep and the page, print a table and write the numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="groups or claims; all by default")
    parser.add_argument("--corpus", default="rotten-tomatoes")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(_profiled(given.one, given.names, given.corpus)))
        return
    from attnlab.papers import resolve

    claims = resolve(given.names, corpus=given.corpus)
    shutil.rmtree(RESULTS, ignore_errors=True)
    rows = {
        name: _in_fresh_process(name, given)
        for name in dict.fromkeys(sweep.name for claim in claims for sweep in claim.sweeps)
    }
    rows["judge and draw"] = _page(given)
    print(_line("judge and draw", rows["judge and draw"]))
    numbers = (*PARTS, "programs", "runs")
    rows["all"] = {key: sum(row.get(key, 0) for row in rows.values()) for key in numbers}
    print(_line("all", rows["all"]))
    (BUILD / "profile.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    print(f"written to {BUILD / 'profile.json'}")


def _environment() -> dict[str, str]:
    """That of a worker, without a cache of compiled programs."""
    from attnlab.sweeps.executors._environment import worker_environment

    environment = {**worker_environment(), "ATTNLAB_CACHE": ""}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    return environment


def _in_fresh_process(name: str, given: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, *given.names, "--corpus", given.corpus, "--one", name]
    done = subprocess.run(
        command, env=_environment(), stdout=subprocess.PIPE, check=True, text=True
    )
    row = json.loads(done.stdout.splitlines()[-1])
    print(_line(name, row), flush=True)
    return row


def _page(given: argparse.Namespace) -> dict[str, Any]:
    """Judging and drawing everything, with measuring once more."""
    command = [sys.executable, "-m", "attnlab", "reproduce", *given.names, "--quiet"]
    command += ["--corpus", given.corpus, "--out", str(RESULTS)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=_environment(), check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"report": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def _line(name: str, row: dict[str, Any]) -> str:
    parts = "".join(f"{part} {row.get(part, 0):6.1f}  " for part in PARTS)
    memory = f"  {row['peak MB']:5.0f} MB" if "peak MB" in row else ""
    return f"{name:24.24} {parts}{row.get('programs', 0):4d} programs{memory}"


def _profiled(name: str, names: list[str], corpus: str) -> dict[str, Any]:
    """The parts of one sweep's CPU time, in this process."""
    import jax.monitoring

    import attnlab as al
    from attnlab.lab import split_arms
    from attnlab.papers import resolve
    from attnlab.sweeps.executors import _executor

    claims = resolve(names, corpus=corpus)
    sweep = next(s for claim in claims for s in claim.sweeps if s.name == name)
    plan = sweep.plan("quick", 8)
    spent = dict.fromkeys(PARTS, 0.0)
    compiling: list[tuple[float, float]] = []
    programs = 0

    def on_duration(event: str, seconds: float, **_: Any) -> None:
        nonlocal programs
        if event in _COMPILING:
            ended = time.perf_counter()
            # A function that is traced within another one is part of the other's time.
            while compiling and compiling[-1][0] >= ended - seconds:
                compiling.pop()
            compiling.append((ended - seconds, ended))
            programs += event == _COMPILING[-1]

    jax.monitoring.register_event_duration_secs_listener(on_duration)
    _executor.save_runs = _timed(_executor.save_runs, "store", spent)
    spent["start-up"], started = time.process_time(), time.perf_counter()
    folder = RESULTS / "runs" / f"{al.sweeps.slug(sweep.name)}-quick"
    results = al.sweeps.run_plan(plan, folder, processes=0)
    computed = time.process_time()
    # JAX reports wall time, of which a busy machine gives this process only a share.
    share = (computed - spent["start-up"]) / (time.perf_counter() - started)
    spent["compile"] = min(1.0, share) * sum(end - begin for begin, end in compiling)
    sweep.measured(split_arms(results.dataset(), keep_failed=True), al.stats.CONFIDENCE)
    spent["measure"] = time.process_time() - computed
    spent["run"] = computed - spent["start-up"] - spent["compile"] - spent["store"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**spent, "programs": programs, "peak MB": peak, "runs": len(plan.runs)}


def _timed(function: Callable[..., Any], part: str, spent: dict[str, float]) -> Callable[..., Any]:
    def timed(*given: Any) -> Any:
        started = time.process_time()
        try:
            return function(*given)
        finally:
            spent[part] += time.process_time() - started

    return timed


if __name__ == "__main__":
    main()
