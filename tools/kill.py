"""Kill sweeps at random moments and go on: python tools/kill.py 100 --seed 0

A sweep of 60 short runs is started in a process of its own. After a random time the process, or one
of its workers, is killed (SIGKILL). Whatever was stored before must be there afterwards, bit for
bit, and the next process goes on with it; a sweep that is finished must equal one that nobody
disturbed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from attnlab._errors import AttnlabError
from attnlab.sweeps import Plan, Results, run_plan

WORK = Path(__file__).parents[1] / "tests" / "sweeps" / "_works.py"
RUNS = 60


def plan(diary: Path | str, seconds: float) -> Plan:
    """The sweep; its runs take some time and note the process that computes them."""
    base = {"diary": str(diary), "seconds": seconds}
    return Plan(f"{WORK}:numbers", name="killed", base=base, grid={"seed": list(range(RUNS))})


def kill_often(count: int, seed: int, folder: Path) -> dict[str, int]:
    """Kill ``count`` times; how many runs were lost or changed, and what else there is to count."""
    rng, sweep = random.Random(seed), 0
    reference = _bits(run_plan(plan("", 0.0), folder / "undisturbed", processes=0, progress=False))
    found = {
        "kills of the owner": 0,
        "kills of a worker": 0,
        "sweeps finished": 0,
        "lost": 0,
        "changed": 0,
    }

    def compare(place: Path, expected: set[int]) -> set[int]:
        """Look for lost and changed runs; those that are stored."""
        now = _bits(Results.read(place)) if (place / "plan.json").is_file() else {}
        found["lost"] += len(expected - set(now))
        found["changed"] += sum(bits != reference[index] for index, bits in now.items())
        return set(now)

    while found["kills of the owner"] + found["kills of a worker"] < count:
        place, diary = folder / f"sweep{sweep}", folder / f"diary{sweep}"
        diary.mkdir(exist_ok=True)
        there = _blocks(place)
        owner = _start(place, diary)
        _wait_for_a_run(owner, diary)
        # Most kills come when the owner has stored something, the others perhaps before.
        waits = rng.random() < 0.8
        while waits and owner.poll() is None and _blocks(place) <= there:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 2.0))
        before = compare(place, set())
        workers = [pid for pid in _pids(diary) if _parent(pid) == owner.pid]
        if rng.random() < 0.5 and workers:
            with suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
                found["kills of a worker"] += 1
            before = compare(place, before)
            time.sleep(rng.uniform(0.0, 2.0))
            before = compare(place, before)
        if owner.poll() is None:
            owner.kill()
            found["kills of the owner"] += 1
        owner.wait()
        _wait_for_orphans(diary)
        if len(compare(place, before)) >= RUNS * 3 // 4:
            run_plan(plan(diary, 0.1), place, processes=2, progress=False)
            compare(place, set(range(RUNS)))
            found["sweeps finished"] += 1
            sweep += 1
    return found


def _start(place: Path, diary: Path) -> subprocess.Popen[bytes]:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from kill import plan, "
        "run_plan; "
        f"run_plan(plan({str(diary)!r}, 0.1), {str(place)!r}, processes=2, progress=False)"
    )
    return subprocess.Popen([sys.executable, "-c", code])


def _bits(results: Results) -> dict[int, str]:
    """The bits of the stored runs by index."""
    found = {}
    for index in range(results.asked):
        with suppress(AttnlabError):
            data = results.run(index)
            found[index] = repr(
                {name: (v.dims, v.dtype, v.values.tobytes()) for name, v in data.variables.items()}
            )
    return found


def _blocks(place: Path) -> set[str]:
    return {path.name for path in place.glob("blocks/*.zip")}


def _pids(diary: Path) -> set[int]:
    return {int(path.name.split("-")[1]) for path in diary.iterdir()}


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


def _wait_for_a_run(owner: subprocess.Popen[bytes], diary: Path) -> None:
    """Until the owner's workers compute, or it has ended."""
    while owner.poll() is None and not any(_parent(pid) == owner.pid for pid in _pids(diary)):
        time.sleep(0.02)


def _wait_for_orphans(diary: Path) -> None:
    """Workers end by themselves when their owner is gone."""
    deadline = time.monotonic() + 30
    while any(_parent(pid) is not None for pid in _pids(diary)):
        if time.monotonic() > deadline:
            raise TimeoutError("workers outlive their owner")
        time.sleep(0.05)


def main() -> int:
    """Print what was counted; 1 if a run was lost or changed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attnlab-") as folder:
        found = kill_often(asked.count, asked.seed, Path(folder))
    print(", ".join(f"{name}: {number}" for name, number in found.items()))
    return 1 if found["lost"] or found["changed"] else 0


if __name__ == "__main__":
    sys.exit(main())
