"""Sweeps on a Dask cluster: the same bits as on one machine, and survivors of every accident."""

import os
import random
import signal
import subprocess
import sys
import time
import types
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dask import config
from distributed import Client, LocalCluster

from attnlab._errors import AttnlabError
from attnlab.sweeps import Cluster, Event, InProcess, Plan, Processes, Results, run_plan
from attnlab.sweeps.executors import _chunks, _dask, _dask_client
from attnlab.sweeps.executors._environment import versions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """Workers choose their cache as they do for a user, in a folder of these tests; they keep all
    that they compile, so that one compiles for all.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        patch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
        yield


@contextmanager
def local_cluster(workers: int, **settings: object) -> Iterator[Any]:
    """So many workers on this machine; nannies start them again when they are killed, however long
    that takes.
    """
    patience = {"distributed.deploy.lost-worker-timeout": "10 minutes"}
    quick = {"distributed.worker.multiprocessing-method": "forkserver"}
    with (
        config.set(patience | quick | settings),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0"
        ) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def cluster(own_cache):
    """Two workers."""
    with local_cluster(2) as found:
        yield found


@pytest.fixture
def client(cluster):
    with Client(cluster, set_as_default=False) as found:
        found.wait_for_workers(2, timeout=30)
        yield found


@pytest.fixture
def diary(tmp_path) -> Path:
    """Where work functions leave a trace of every call."""
    folder = tmp_path / "diary"
    folder.mkdir()
    return folder


@pytest.fixture
def start_dask(tmp_path):
    """Start a scheduler or a worker in a process of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def start(what: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words]
        with open(tmp_path / f"{what}.log", "ab") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def plan_of(works: str, work: str, runs: int, **base: object) -> Plan:
    return Plan(f"{works}:{work}", name="p", base=base, grid={"seed": list(range(runs))})


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def count_workers(client: Client) -> int:
    threads: Any = client.nthreads()
    return len(threads)


SCRIPT = """
from attnlab.sweeps import Cluster, Plan, run_plan
plan = Plan({work!r}, name="p", base={base!r}, grid={{"seed": list(range({runs}))}})
results = run_plan(plan, {folder!r}, executor=Cluster({address!r}))
print("interrupted", results.interrupted, results.finished)
"""


def test_this_process_one_two_and_a_cluster_agree_bit_for_bit(works, tmp_path, same_bits, client):
    plan = Plan(f"{works}:descent", name="p", grid={"width": [4, 8], "seed": [0, 1, 2, 3]})
    here = run_plan(plan, tmp_path / "here", executor=InProcess()).dataset()
    assert here.loss.shape == (2, 4, 20)
    places = {"one": Processes(1), "two": Processes(2), "cluster": Cluster(client)}
    for name, executor in places.items():
        same_bits(run_plan(plan, tmp_path / name, executor=executor).dataset(), here)


def test_workers_need_not_see_the_store(works, tmp_path, same_bits, client):
    url = f"memory://{uuid.uuid4().hex}/sweep"
    results = run_plan(plan_of(works, "fragile", 12), url, executor=Cluster(client))
    assert (results.finished, results.failed) == (6, 6)
    near = run_plan(plan_of(works, "fragile", 12), tmp_path / "near", processes=0)
    same_bits(results.dataset(), near.dataset())
    assert {group.cause for group in results.failures} == {group.cause for group in near.failures}


def test_bytes_that_do_not_arrive_as_they_were_written_are_refused(
    works, tmp_path, client, monkeypatch
):
    another = types.SimpleNamespace(
        sha256=lambda data: types.SimpleNamespace(hexdigest=lambda: "another")
    )
    monkeypatch.setattr(_dask, "hashlib", another)
    with pytest.raises(AttnlabError, match="did not arrive as it was written"):
        run_plan(plan_of(works, "numbers", 2), tmp_path / "far", executor=Cluster(client))


def test_a_cluster_that_adapts_grows_for_a_sweep_and_shrinks_after_it(works, tmp_path, wait_for):
    most = 0
    with local_cluster(0) as cluster, Client(cluster, set_as_default=False) as client:
        cluster.adapt(minimum=0, maximum=2, interval="100ms", wait_count=2)

        def count(event: Event) -> None:
            nonlocal most
            most = max(most, count_workers(client))

        plan = plan_of(works, "numbers", 20, seconds=0.2)
        results = run_plan(plan, tmp_path / "a", executor=Cluster(client), on_event=count)
        assert (results.finished, results.failed) == (20, 0)
        assert most == 2
        wait_for(lambda: not count_workers(client))


def test_workers_that_are_retired_lose_nothing(works, tmp_path, same_bits):
    with local_cluster(2) as cluster, Client(cluster, set_as_default=False) as client:

        def shrink(event: Event) -> None:
            if event.finished == 5:
                cluster.scale(1)

        plan = plan_of(works, "numbers", 20, seconds=0.1)
        results = run_plan(plan, tmp_path / "a", executor=Cluster(client), on_event=shrink)
        assert count_workers(client) == 1
    assert (results.finished, results.failed) == (20, 0)
    same_bits(
        results.dataset(),
        run_plan(plan_of(works, "numbers", 20), tmp_path / "b", processes=0).dataset(),
    )


def test_twenty_random_kills_leave_the_results_as_they_were(
    works, tmp_path, same_bits, client, monkeypatch
):
    monkeypatch.setattr(
        _chunks, "_MOST_CALLS", 2
    )  # small chunks: 90 runs then have at least 45 outcomes
    runs, draw, heard = 90, random.Random(7), 0
    moments, killed = set(draw.sample(range(1, 45), 20)), []

    def kill(event: Event) -> None:
        nonlocal heard
        heard += 1
        alive: list[int] = []
        while (
            heard in moments and not alive
        ):  # those that have registered: a nanny gives up on one that dies before
            alive = list(client.run(os.getpid, on_error="ignore").values())
        if alive:
            killed.append(draw.choice(alive))
            os.kill(killed[-1], signal.SIGKILL)

    plan = plan_of(works, "numbers", runs, seconds=0.02)
    disturbed = run_plan(plan, tmp_path / "a", executor=Cluster(client), on_event=kill)
    assert len(killed) == 20
    assert (disturbed.finished, disturbed.failed) == (runs, 0)
    same_bits(
        disturbed.dataset(),
        run_plan(plan_of(works, "numbers", runs), tmp_path / "b", processes=0).dataset(),
    )


def test_a_killed_worker_loses_only_its_chunk(works, tmp_path, diary, same_bits, client):
    results = run_plan(
        plan_of(works, "deadly_to_parents", 6, diary=str(diary)),
        tmp_path / "a",
        executor=Cluster(client),
    )
    assert (results.finished, results.failed) == (6, 0)
    assert len(list(diary.glob("2-*"))) > 1
    whole = run_plan(plan_of(works, "numbers", 6), tmp_path / "b", processes=0)
    same_bits(results.dataset(), whole.dataset())


def test_a_run_that_always_kills_its_process_fails_alone(works, tmp_path, diary, client):
    results = run_plan(
        plan_of(works, "deadly", 4, diary=str(diary)), tmp_path / "a", executor=Cluster(client)
    )
    assert (results.finished, results.failed) == (3, 1)
    assert [(group.cause, group.runs) for group in results.failures] == [
        ("process died with signal 9", (2,))
    ]
    assert len(list(diary.glob("2-*"))) == 3


def test_a_run_whose_workers_always_die_fails_alone(works, tmp_path, diary):
    # A worker that dies takes along what it was given in advance, here as little as possible.
    alone = {"allowed-failures": 1, "worker-saturation": 1.0}
    settings = {f"distributed.scheduler.{name}": value for name, value in alone.items()}
    with local_cluster(1, **settings) as cluster:
        results = run_plan(
            plan_of(works, "deadly_to_parents", 4, diary=str(diary), label="always"),
            tmp_path / "a",
            executor=Cluster(cluster.scheduler_address),
        )
    assert (results.finished, results.failed) == (3, 1)
    assert [(group.cause, group.runs) for group in results.failures] == [
        ("the Dask workers that computed it died", (2,))
    ]


LIMIT = 15  # seconds: on a busy machine a worker's first run takes a while


@pytest.mark.parametrize("place", ["process", "cluster"])
def test_a_run_that_hangs_is_stopped_and_the_others_of_its_chunk_are_kept(
    works, tmp_path, diary, client, place
):
    executor = (
        Processes(1, time_limit=LIMIT) if place == "process" else Cluster(client, time_limit=LIMIT)
    )
    results = run_plan(
        plan_of(works, "hanging", 12, diary=str(diary)), tmp_path / "a", executor=executor
    )
    assert (results.finished, results.failed) == (11, 1)
    (group,) = results.failures
    assert group.cause == f"took longer than the time limit of {LIMIT} s"
    assert [dict(results.plan.runs[run].settings)["seed"] for run in group.runs] == [2]
    started = sorted(int(path.name.split("-")[0]) for path in diary.iterdir())
    assert started == list(range(12)), "every run was started once"


def test_a_run_that_hangs_with_its_whole_process_fails_alone(works, tmp_path, diary):
    plan = plan_of(works, "hanging", 8, diary=str(diary), label="stubborn")
    results = run_plan(plan, tmp_path / "a", executor=Processes(1, time_limit=LIMIT))
    assert (results.finished, results.failed) == (7, 1)
    assert [group.runs for group in results.failures] == [(2,)]
    assert len(list(diary.glob("2-*"))) == 1


def test_a_stopped_worker_does_not_hold_a_sweep_with_a_time_limit(
    works, tmp_path, client, monkeypatch
):
    monkeypatch.setattr(_dask, "_GRACE_SECONDS", 1.0)
    stopped: list[int] = []

    def stop(event: Event) -> None:
        if event.finished >= 4 and not stopped:
            stopped.append(next(iter(client.run(os.getpid).values())))
            os.kill(stopped[0], signal.SIGSTOP)

    results = run_plan(
        plan_of(works, "numbers", 20, seconds=0.1),
        tmp_path / "a",
        executor=Cluster(client, time_limit=5),
        on_event=stop,
    )
    assert stopped
    assert (results.finished, results.failed) == (20, 0)


def test_other_versions_are_refused_before_any_work(works, tmp_path, diary, client, monkeypatch):
    monkeypatch.setattr(_dask, "versions", lambda: {**versions(), "jax": "0.0.1"})
    with pytest.raises(AttnlabError, match=r"worker tcp://127.* has jax .* \(needed: 0.0.1\)"):
        run_plan(
            plan_of(works, "numbers", 4, diary=str(diary)), tmp_path / "a", executor=Cluster(client)
        )
    assert not list(diary.iterdir())


OLDER = """
from attnlab.sweeps.executors import _dask_worker
found = {**_dask_worker.versions(), "numpy": "0.0.1"}
_dask_worker.versions = lambda: found
"""
MISSING = "import sys; sys.modules['attnlab'] = None"


@pytest.mark.parametrize(
    ("preload", "words"),
    [
        (OLDER, r"worker tcp://127.* has numpy 0.0.1 \(needed: "),
        (MISSING, r"worker tcp://127.* has attnlab not installed.* \(needed: "),
    ],
    ids=["another version", "no attnlab"],
)
def test_a_worker_that_joins_later_is_checked_too(
    works, tmp_path, cluster, client, start_dask, preload, words
):
    (tmp_path / "preload.py").write_text(preload)
    options = ("--nthreads", "1", "--no-nanny", "--preload", str(tmp_path / "preload.py"))
    joined: list[subprocess.Popen[bytes]] = []

    def join(event: Event) -> None:
        if event.finished >= 2 and not joined:
            joined.append(start_dask("worker", cluster.scheduler_address, *options))

    plan = plan_of(works, "numbers", 300, seconds=0.2)
    with pytest.raises(AttnlabError, match=words):
        run_plan(plan, tmp_path / "a", executor=Cluster(client), on_event=join)
    assert 2 <= Results.read(tmp_path / "a").finished < 300


def test_code_that_is_edited_before_workers_load_it_is_refused(works, tmp_path, client):
    file = tmp_path / "edited.py"
    file.write_bytes(Path(works).read_bytes())
    plan = plan_of(str(file), "single", 2)

    def edit(event):
        file.write_text(file.read_text().replace("0.5 * settings.seed", "0.25 * settings.seed"))

    with pytest.raises(
        AttnlabError,
        match=r"worker tcp://127.* has other code than this command .*edited.py:single",
    ):
        run_plan(plan, tmp_path / "a", executor=Cluster(client), on_event=edit)
    assert Results.read(tmp_path / "a").finished == 0


def test_a_work_function_that_workers_cannot_load(works, tmp_path, client):
    moved = tmp_path / "fleeting.py"
    moved.write_bytes(Path(works).read_bytes())
    plan = plan_of(str(moved), "numbers", 1)

    def spoil(event):
        moved.write_text("raise ImportError('no longer')")

    with pytest.raises(
        AttnlabError, match=r"worker tcp://.*cannot load the work function(.|\n)*no longer"
    ):
        run_plan(plan, tmp_path / "sweep", executor=Cluster(client), on_event=spoil)


def test_processes_stay_between_sweeps_in_a_context_and_end_with_it(
    works, tmp_path, diary, client, wait_for
):
    def pids() -> set[int]:
        return {int(path.name.split("-")[1]) for path in diary.iterdir()}

    with Cluster(client) as executor:
        assert executor.width == 2
        run_plan(plan_of(works, "numbers", 4, diary=str(diary)), tmp_path / "a", executor=executor)
        first = pids()
        run_plan(
            plan_of(works, "numbers", 4, diary=str(diary), size=4),
            tmp_path / "b",
            executor=executor,
        )
        assert pids() == first
    wait_for(lambda: all(has_ended(pid) for pid in first))
    assert client.status == "running"


def test_ctrl_c_keeps_what_is_finished_and_ends_promptly(
    works, tmp_path, diary, client, start_script, wait_for, interrupt
):
    folder, base = tmp_path / "sweep", {"seconds": 0.3, "diary": str(diary)}
    script = SCRIPT.format(
        work=f"{works}:numbers",
        base=base,
        runs=60,
        folder=str(folder),
        address=client.scheduler.address,
    )
    parent = start_script(script)
    started, output = interrupt(parent, diary)
    assert "dashboard: http" in output
    assert Results.read(folder).finished >= started - 2
    wait_for(lambda: not client.processing() or not any(client.processing().values()))


def test_workers_stop_what_a_killed_command_had_given_them(
    works, tmp_path, diary, client, start_script, wait_for
):
    base = {"seconds": 1000.0, "diary": str(diary)}
    script = SCRIPT.format(
        work=f"{works}:numbers",
        base=base,
        runs=2,
        folder=str(tmp_path / "a"),
        address=client.scheduler.address,
    )
    parent = start_script(script)
    wait_for(lambda: len(list(diary.iterdir())) == 2)
    parent.kill()
    wait_for(lambda: all(has_ended(int(path.name.split("-")[1])) for path in diary.iterdir()))


def test_a_scheduler_that_is_lost_ends_the_sweep_which_another_one_resumes(
    works, tmp_path, same_bits, start_dask, wait_for, monkeypatch
):
    monkeypatch.setattr(_dask_client, "_CONNECT_SECONDS", 1.0)
    place = tmp_path / "scheduler.json"
    words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(place))

    def start() -> subprocess.Popen[bytes]:
        place.unlink(missing_ok=True)
        scheduler = start_dask("scheduler", *words)
        wait_for(place.exists)
        start_dask("worker", "--nthreads", "1", "--no-nanny", "--scheduler-file", str(place))
        return scheduler

    scheduler = start()

    def on_event(event: Event) -> None:
        if event.finished >= 5:
            scheduler.kill()

    plan = plan_of(works, "numbers", 40, seconds=0.02)
    with pytest.raises(AttnlabError, match=r"lost the Dask scheduler.*the same command again"):
        run_plan(plan, tmp_path / "a", executor=Cluster(place), on_event=on_event)
    assert 5 <= Results.read(tmp_path / "a").finished < 40
    start()
    results = run_plan(plan, tmp_path / "a", executor=Cluster(place))
    assert (results.finished, results.failed) == (40, 0)
    same_bits(
        results.dataset(),
        run_plan(plan_of(works, "numbers", 40), tmp_path / "b", processes=0).dataset(),
    )


def test_ctrl_c_while_the_scheduler_is_gone(works, tmp_path, start_dask, start_script, wait_for):
    place, folder = tmp_path / "scheduler.json", tmp_path / "sweep"
    words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(place))
    scheduler = start_dask("scheduler", *words)
    wait_for(place.exists)
    start_dask("worker", "--nthreads", "1", "--no-nanny", "--scheduler-file", str(place))
    script = SCRIPT.format(
        work=f"{works}:numbers",
        base={"seconds": 0.1},
        runs=200,
        folder=str(folder),
        address=str(place),
    )
    parent = start_script(script)
    wait_for(lambda: len(list(folder.glob("blocks/*.zip"))) >= 1)
    scheduler.kill()
    assert parent.stdout is not None
    while "lost the scheduler" not in (line := parent.stdout.readline()):
        assert line
    pressed = time.monotonic()
    parent.send_signal(signal.SIGINT)
    output = parent.communicate(timeout=10)[0]
    assert time.monotonic() - pressed < 2.5
    assert "interrupted True" in output
    assert Results.read(folder).finished >= 1


@pytest.mark.parametrize(
    ("scheduler", "options", "words"),
    [
        ("tcp://127.0.0.1:9", {}, "no Dask scheduler answers at tcp://127.0.0.1:9"),
        ("nowhere.json", {}, "no Dask scheduler answers at nowhere.json"),
        (__file__, {}, "is not a scheduler file"),
        (7, {}, "scheduler=7: expected an address"),
        ("tcp://127.0.0.1:9", {"time_limit": 0}, "time_limit=0"),
    ],
)
def test_mistakes_are_named(works, tmp_path, monkeypatch, scheduler, options, words):
    monkeypatch.setattr(_dask_client, "_CONNECT_SECONDS", 0.1)
    monkeypatch.setattr(_dask_client, "_FILE_SECONDS", 0.1)
    with pytest.raises(AttnlabError, match=words):
        run_plan(plan_of(works, "numbers", 1), tmp_path, executor=Cluster(scheduler, **options))
