"""Where runs are computed: the same bits everywhere, and survivors of every accident."""

import os
import signal
from pathlib import Path

import pytest

from attnlab._errors import AttnlabError
from attnlab.sweeps import Event, InProcess, Plan, Processes, Results, run_plan
from attnlab.sweeps.executors._chunks import Chunks

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path_factory):
    """Workers choose their cache as they do for a user, in a folder of these tests."""
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    for name in ("COMPILATION_CACHE_DIR", "PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.delenv(f"JAX_{name}", raising=False)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def pids(diary: Path) -> set[int]:
    return {int(path.name.split("-")[1]) for path in diary.iterdir()}


SCRIPT = """
import sys
from attnlab.sweeps import Plan, run_plan
plan = Plan({work!r}, name="p", base={base!r}, grid={{"seed": list(range({runs}))}})
results = run_plan(plan, {folder!r}, processes={processes})
print("interrupted", results.interrupted, results.finished)
"""


def test_one_process_two_processes_and_this_one_agree_bit_for_bit(
    works, tmp_path, same_bits, monkeypatch
):
    # Keep all compiled code: one process compiles, the two that follow use what it compiled.
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    plan = Plan(f"{works}:descent", name="p", grid={"width": [4, 8], "seed": [0, 1, 2, 3]})
    here = run_plan(plan, tmp_path / "0", processes=0).dataset()
    assert here.loss.shape == (2, 4, 20)
    for processes in (1, 2):
        same_bits(run_plan(plan, tmp_path / str(processes), processes=processes).dataset(), here)
        assert list((tmp_path / "cache").rglob("jit_train*"))


def test_a_finished_plan_computes_nothing_and_a_larger_one_only_what_is_new(works, tmp_path):
    diary = tmp_path / "diary"
    diary.mkdir()
    base = {"diary": str(diary)}
    for seeds, computed in (([0, 1], 2), ([0, 1], 2), ([2, 0, 1, 3], 4)):
        results = run_plan(
            Plan(f"{works}:numbers", name="p", base=base, grid={"seed": seeds}),
            tmp_path,
            processes=0,
        )
        assert results.finished == len(seeds)
        assert len(list(diary.iterdir())) == computed
    assert results.dataset()["count"].values.tolist() == [2**60 + seed for seed in (2, 0, 1, 3)]


def test_workers_have_one_thread_and_a_cache(works, tmp_path):
    data = run_plan(
        Plan(f"{works}:environment", name="p", grid={"seed": [0]}), tmp_path, processes=1
    ).dataset()
    environment = dict(zip(data.name.values.tolist(), data.setting.values[0].tolist(), strict=True))
    assert "--xla_cpu_multi_thread_eigen=false" in environment["XLA_FLAGS"]
    assert (environment["OMP_NUM_THREADS"], environment["NPROC"], environment["JAX_PLATFORMS"]) == (
        "1",
        "1",
        "cpu",
    )
    assert Path(environment["JAX_COMPILATION_CACHE_DIR"]).is_dir()


def test_a_parent_killed_in_the_middle_goes_on_bit_for_bit(
    works, tmp_path, start_script, wait_for, same_bits
):
    diary = tmp_path / "diary"
    diary.mkdir()
    base = {"seconds": 0.1, "diary": str(diary)}
    work, folder = f"{works}:numbers", tmp_path / "sweep"
    parent = start_script(
        SCRIPT.format(work=work, base=base, runs=24, folder=str(folder), processes=2)
    )
    wait_for(lambda: len(list(folder.glob("blocks/*.zip"))) >= 2)
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(alive(pid) for pid in pids(diary)), 3.0)
    kept = Results.read(folder).finished
    assert 0 < kept < 24
    before = len(list(diary.iterdir()))
    plan = Plan(work, name="p", base=base, grid={"seed": list(range(24))})
    resumed = run_plan(plan, folder, processes=2)
    assert len(list(diary.iterdir())) - before == 24 - kept
    quick = Plan(work, name="p", grid={"seed": list(range(24))})
    same_bits(resumed.dataset(), run_plan(quick, tmp_path / "whole", processes=0).dataset())


def test_a_killed_worker_loses_only_its_chunk(works, tmp_path, same_bits):
    diary = tmp_path / "diary"
    diary.mkdir()
    grid = {"seed": list(range(6))}
    results = run_plan(
        Plan(f"{works}:deadly_once", name="p", base={"diary": str(diary)}, grid=grid),
        tmp_path / "a",
        processes=2,
    )
    assert (results.finished, results.failed) == (6, 0)
    whole = run_plan(Plan(f"{works}:numbers", name="p", grid=grid), tmp_path / "b", processes=0)
    same_bits(results.dataset(), whole.dataset())


def test_a_run_that_always_kills_its_process_fails_alone(works, tmp_path):
    diary = tmp_path / "diary"
    diary.mkdir()
    plan = Plan(
        f"{works}:deadly", name="p", base={"diary": str(diary)}, grid={"seed": list(range(4))}
    )
    results = run_plan(plan, tmp_path / "a", processes=1)
    assert (results.finished, results.failed) == (3, 1)
    assert [(group.cause, group.runs) for group in results.failures] == [
        ("process died with signal 9", (2,))
    ]
    assert len(list(diary.glob("2-*"))) == 3


@pytest.mark.parametrize("processes", [0, 2])
def test_ctrl_c_keeps_what_is_finished_and_ends_promptly(
    works, tmp_path, start_script, interrupt, processes
):
    diary, folder = tmp_path / "diary", tmp_path / "sweep"
    diary.mkdir()
    base = {"seconds": 0.3, "diary": str(diary)}
    script = SCRIPT.format(
        work=f"{works}:numbers", base=base, runs=60, folder=str(folder), processes=processes
    )
    parent = start_script(script)
    started, _ = interrupt(parent, diary)
    # All but the runs that were being computed: also those that waited in memory for their chunk to
    # be written.
    assert Results.read(folder).finished >= started - max(processes, 1)
    assert not any(alive(pid) for pid in pids(diary) - {parent.pid})


def test_a_disk_that_refuses_a_workers_write(works, tmp_path, start_script):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    script = (
        limit
        + """
from attnlab.sweeps import Plan, run_plan
plan = Plan.of_list({work!r}, "p", [{{"seed": s, "size": 50_000 if s == 5 else 3}} for s in range(6)])
run_plan(plan, {folder!r}, processes=1)
""".format(work=f"{works}:numbers", folder=str(tmp_path / "sweep"))
    )
    output = start_script(script).communicate(timeout=30)[0]
    assert "AttnlabError: cannot write to" in output
    assert "File too large" in output
    results = Results.read(tmp_path / "sweep")
    assert 1 <= results.finished < 6
    results.dataset()


def test_a_work_function_that_workers_cannot_load(works, tmp_path, monkeypatch):
    moved = tmp_path / "fleeting.py"
    moved.write_bytes(Path(works).read_bytes())
    plan = Plan(f"{moved}:numbers", name="p", grid={"seed": [0]})

    def spoil(event):
        moved.write_text("raise ImportError('no longer')")

    with pytest.raises(AttnlabError, match=r"cannot load the work function(.|\n)*no longer"):
        run_plan(plan, tmp_path / "sweep", processes=1, on_event=spoil)


def test_processes_that_do_not_start_are_named(works, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "attnlab.sweeps.executors._processes.worker_environment",
        lambda: {"PYTHONPATH": "", "PYTHONHOME": "/no"},
    )
    plan = Plan(f"{works}:numbers", name="p", grid={"seed": [0]})
    with pytest.raises(AttnlabError, match="worker processes do not start"):
        run_plan(plan, tmp_path / "sweep", processes=1)


def test_events_count_to_the_end(works, tmp_path):
    events: list[Event] = []
    plan = Plan(f"{works}:fragile", name="p", grid={"seed": [0, 1, 2]})
    run_plan(plan, tmp_path, executor=InProcess(), on_event=events.append, progress=False)
    assert events[0] == Event(
        asked=3, finished=0, failed=0, running=0, rate=None, seconds_left=None
    )
    last = events[-1]
    assert (last.finished, last.failed, last.running, last.seconds_left) == (2, 1, 0, 0.0)
    assert last.rate is not None
    assert last.rate > 0


def test_a_bar_is_drawn_where_asked_for(works, tmp_path, capsys):
    run_plan(
        Plan(f"{works}:numbers", name="my {sweep} [b]", grid={"seed": [0]}),
        tmp_path,
        processes=0,
        progress=True,
    )
    assert "my {sweep} [b]" in capsys.readouterr().err


def test_chunks_grow_to_seconds_of_work_and_keep_kinds_together(works):
    plan = Plan(f"{works}:numbers", name="p", grid={"size": [1, 2], "seed": list(range(100))})
    chunks = Chunks(plan.runs, workers=2)
    first, second = chunks.take(), chunks.take()
    assert first is not None
    assert second is not None
    assert len(first) == len(second) == 1
    assert first[0].settings["size"] != second[0].settings["size"]
    sizes = []
    while chunk := chunks.take(after=first):
        assert len({run.settings["size"] for run in chunk}) == 1 or len(chunks) < 100
        first = chunk
        sizes.append(len(chunk))
        chunks.observe([0.1] * len(chunk))
    assert sizes[:4] == [1, 4, 16, 45]
    assert sum(sizes) == 198
    assert sizes[-1] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"processes": -1}, "processes=-1"),
        ({"processes": 1, "executor": InProcess()}, "give one of them"),
        ({"failure_limit": 5}, "failure_limit=5"),
    ],
)
def test_mistakes_are_named(works, tmp_path, options, words):
    with pytest.raises(AttnlabError, match=words):
        run_plan(Plan(f"{works}:numbers", name="p", grid={"seed": [0]}), tmp_path, **options)


def test_the_default_is_one_process_for_each_core():
    assert Processes().width == len(os.sched_getaffinity(0))


def _sweep(works, diary, seeds, folder, **how):
    diary.mkdir(exist_ok=True)
    plan = Plan(f"{works}:numbers", name="p", base={"diary": str(diary)}, grid={"seed": seeds})
    assert run_plan(plan, folder, progress=False, **how).ok
    return pids(diary)


def test_processes_stay_between_sweeps_when_asked(tmp_path, works):
    with Processes(2) as executor:
        one = _sweep(works, tmp_path / "d1", [1, 2, 3, 4], tmp_path / "a", executor=executor)
        two = _sweep(works, tmp_path / "d2", [5, 6, 7, 8], tmp_path / "b", executor=executor)
        assert two <= one
        assert all(alive(pid) for pid in two)
    assert not any(alive(pid) for pid in one)
    assert not _sweep(works, tmp_path / "d3", [5, 6], tmp_path / "c", processes=2) & one


def test_a_kept_process_that_dies_is_replaced(tmp_path, works):
    with Processes(1) as executor:
        (pid,) = _sweep(works, tmp_path / "d1", [1, 2], tmp_path / "a", executor=executor)
        os.kill(pid, signal.SIGKILL)
        assert pid not in _sweep(works, tmp_path / "d2", [3, 4], tmp_path / "b", executor=executor)


def test_a_rest_ends_the_processes_and_the_next_sweep_starts_new_ones(tmp_path, works):
    with Processes(2) as executor:
        one = _sweep(works, tmp_path / "d1", [1, 2, 3, 4], tmp_path / "a", executor=executor)
        executor.rest()
        assert not any(alive(pid) for pid in one)
        two = _sweep(works, tmp_path / "d2", [5, 6, 7, 8], tmp_path / "b", executor=executor)
        assert all(alive(pid) for pid in two)
    assert not one & two
