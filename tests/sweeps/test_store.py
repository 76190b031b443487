"""The store: what is written comes back, what is damaged is noticed."""

import ctypes
import errno
import json
import os
import warnings
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab._json import seal
from attnlab._places import listed
from attnlab.sweeps import AbstractExecutor, Plan, Results, Store, StoreWarning, run_plan
from attnlab.sweeps._work import load_work
from attnlab.sweeps.executors._executor import Worker
from attnlab.sweeps.store._manifest import Block, Failure, read_block_label, write_block_label
from attnlab.sweeps.store._stack import Stack
from attnlab.sweeps.store._store import _batches, _is_small, save_failures, save_runs

pytestmark = pytest.mark.slow

SOURCES = {"current": "", "earlier": [], "keep": False}


@pytest.fixture
def plan(works):
    return Plan(f"{works}:numbers", name="p", grid={"seed": list(range(6))})


@pytest.fixture
def folder(plan, tmp_path):
    """A finished sweep."""
    folder = tmp_path / "sweep"
    run_plan(plan, folder, processes=0)
    return folder


@pytest.fixture
def small_blocks(plan, tmp_path, monkeypatch):
    """A finished sweep whose blocks were not merged, and its data."""
    monkeypatch.setattr(Store, "consolidate", lambda self: None)
    folder = tmp_path / "blocks"
    for part in (3, 6):
        run_plan(Plan(plan.work, name="p", grid={"seed": list(range(part))}), folder, processes=0)
    return folder, Results.read(folder).dataset()


def blocks(folder):
    return sorted((folder / "blocks").glob("*.zip"))


def test_one_run_comes_back_as_it_was(plan, folder):
    work = load_work(plan.work)
    for run in plan.runs:
        original = work.function(work.settings.build(run.settings), run.context(0))
        stored = Results.read(folder).run(run.index)
        xr.testing.assert_identical(stored, original)
        assert stored.value.attrs == {"units": "nats", "_FillValue": -1}
        for name in ("value", "count", "single", "flag"):
            assert stored[name].dtype == original[name].dtype
            assert stored[name].values.tobytes() == original[name].values.tobytes()


def test_every_storable_type_survives(tmp_path):
    data = xr.Dataset(
        {
            "complex": ("x", np.array([1j, np.nan])),
            "tiny": ("x", np.array([1, 2], np.uint8)),
            "half": ((), np.float16(0.1)),
            "nothing": ("empty", np.zeros(0)),
            "deep": (("x", "y"), np.eye(2, 3)),
            "words": ("x", np.array(["", "naïve <b>"])),
            "pandas": ("x", np.array(["a", "bc"], dtype=object)),
            "minus": ((), -0.0),
            "swapped": ("x", np.array([1.5, 2.5], ">f8")),
        },
        coords={"x": ["p", "q"], "place": ("y", [0.1, 0.2, np.nan]), "lonely": 3},
        attrs={"nan": 1.0, "nested": {"a": [1, None, "x"]}, "array": np.arange(2)},
    )
    (tmp_path / "blocks").mkdir()
    block = save_runs(
        tmp_path, [Stack.of_run("aa", data), Stack.of_run("bb", data.assign(minus=1.0))], ""
    )
    from attnlab.sweeps.store._block import unpack

    stored = next(
        s for s in unpack(tmp_path / "blocks" / f"{block.stem}.zip") if "aa" in s.hashes
    ).dataset("aa")
    assert stored.pandas.dtype.kind == "U"
    assert str(stored.minus.item()) == "-0.0"
    xr.testing.assert_equal(stored, data)
    assert stored.attrs == {"nan": 1.0, "nested": {"a": [1, None, "x"]}, "array": [0, 1]}


def test_a_block_is_plain_zarr_for_others(folder):
    import zarr.storage

    with zipfile.ZipFile(blocks(folder)[0]) as archive:
        assert not any(name.endswith(".pkl") for name in archive.namelist())
    store = zarr.storage.ZipStore(blocks(folder)[0], mode="r", read_only=True)
    data = xr.open_zarr(store, group="stack0", consolidated=False, chunks=None)
    assert data.value.shape == (6, 3)
    store.close()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            xr.Dataset({"a": ("x", np.array([object()], dtype=object))}),
            "'a' has type object.*without pickle",
        ),
        (xr.Dataset({"a": ("x", np.array(["2020"], dtype="M8[s]"))}), "'a' has type datetime64"),
        (xr.Dataset({"a/b": 1}), "without '/'"),
        (xr.Dataset({"a": 1}, attrs={"f": len}), "builtin_function_or_method"),
        (3, "returned int: expected an xarray.Dataset"),
    ],
)
def test_what_cannot_be_stored_is_refused_in_words(data, words):
    with pytest.raises(AttnlabError, match=words):
        Stack.of_run("aa", data)


def test_an_object_fails_its_run_and_no_other(works, tmp_path):
    results = run_plan(
        Plan(f"{works}:opaque", name="p", grid={"seed": [0, 1]}), tmp_path, processes=0
    )
    assert (results.finished, results.failed) == (1, 1)
    assert "'thing' has type object" in results.failures[0].cause


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def replace(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("holiday.txt", "a file of someone else")


def unlabel(path):
    path.with_suffix(".json").write_text("{")


@pytest.mark.parametrize("damage", [flip, truncate, replace, unlabel])
def test_a_damaged_block_is_set_aside_and_computed_anew(plan, small_blocks, damage, same_bits):
    folder, before = small_blocks
    damage(blocks(folder)[0])
    damaged = blocks(folder)[0].read_bytes()
    with pytest.warns(StoreWarning, match=r"zip.bad is not what attnlab wrote"):
        results = run_plan(plan, folder, processes=0)
    assert results.finished == 6
    same_bits(results.dataset(), before)
    assert [path.read_bytes() for path in (folder / "blocks").glob("*.zip.bad")] == [damaged]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_plan(plan, folder, processes=0).finished == 6


def test_a_reader_changes_nothing_and_never_reads_damage(small_blocks):
    folder, _ = small_blocks
    flip(blocks(folder)[0])
    names = sorted(path.name for path in folder.rglob("*"))
    with pytest.warns(StoreWarning, match="nothing was read from it"):
        results = Results.read(folder)
    data = results.dataset()
    assert 1 <= np.isnan(data.value.values).all(axis=1).sum() == results.missing < 6
    assert sorted(path.name for path in folder.rglob("*")) == names


def test_foreign_files_stay(plan, small_blocks):
    folder, _ = small_blocks
    foreign = folder / "blocks" / "mine.zip"
    foreign.write_text("not a block")
    (folder / "blocks" / "notes.txt").write_text("keep me")
    with pytest.warns(StoreWarning, match=r"mine\.zip\.bad"), Store.open(folder, plan) as store:
        assert len(store.finished) == 6
    assert (folder / "blocks" / "mine.zip.bad").read_text() == "not a block"
    assert (folder / "blocks" / "notes.txt").read_text() == "keep me"


def test_half_written_files_are_nothing(plan, small_blocks):
    folder, _ = small_blocks
    half = folder / "blocks" / ".tmp-0123"
    half.write_bytes(b"half")
    lonely = folder / "blocks" / f"{'0' * 24}.json"
    write_block_label(lonely.parent, Block("0" * 24, "x", 3, ("aa",)))
    with Store.open(folder, plan) as store:
        assert "aa" not in store.finished
    assert half.exists()  # it may belong to a process that is still dying
    for path in (half, lonely):
        os.utime(path, (0, 0))
    with Store.open(folder, plan):
        assert not half.exists()
        assert not lonely.exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("hello", "is not the plan of a sweep"),
        ('{"name": "package.json"}', "is not the plan of a sweep"),
        ('{"kind": "attnlab sweep", "schema": 99, "package": "9.0"}', "has schema 99.*9.0"),
        ('{"kind": "attnlab sweep", "schema": 1, "plan": {}}', "has no checksum.*older attnlab"),
        (seal("attnlab sweep", 1, {"created": "", "plan": {}}).decode(), "it has no 'sources'"),
        (
            seal("attnlab sweep", 1, {"created": "", "plan": {}, "sources": SOURCES}).decode(),
            "not a stored plan",
        ),
        (
            seal("attnlab sweep", 1, {"created": "", "plan": {}}).decode().replace('""', '"x"'),
            "edited by hand",
        ),
    ],
)
def test_a_foreign_plan_is_refused_and_kept(plan, folder, content, words):
    (folder / "plan.json").write_text(content)
    for look in (lambda: Store.open(folder, plan), lambda: Store.read(folder)):
        with pytest.raises(AttnlabError, match=words):
            look()
    assert (folder / "plan.json").read_text() == content


def test_another_sweep_is_refused(works, folder):
    for other, words in (
        (Plan(f"{works}:numbers", name="q", grid={"seed": [0]}), "its name is 'p'"),
        (Plan(f"{works}:fragile", name="p", grid={"seed": [0]}), "its work is"),
        (Plan(f"{works}:numbers", name="p", grid={"seed": [0]}, root_seed=1), "its root_seed is 0"),
    ):
        with pytest.raises(AttnlabError, match=words):
            Store.open(folder, other)


def test_no_sweep_at_all(tmp_path):
    with pytest.raises(AttnlabError, match="holds no sweep"):
        Store.read(tmp_path)


def test_the_plan_is_stored_with_its_origin(plan, folder):
    record = json.loads((folder / "plan.json").read_text())
    assert record["schema"] == 1
    assert {"package", "commit", "machine", "created"} <= set(record)
    assert Store.read(folder).plan == plan


def test_merging_keeps_every_bit_and_needs_few_files(plan, small_blocks, monkeypatch, same_bits):
    folder, before = small_blocks
    assert len(blocks(folder)) > 1
    monkeypatch.undo()
    assert run_plan(plan, folder, processes=0).finished == 6
    assert len(blocks(folder)) == 1
    same_bits(Results.read(folder).dataset(), before)


def test_a_crash_while_merging_leaves_harmless_duplicates(
    plan, small_blocks, monkeypatch, same_bits
):
    folder, before = small_blocks
    monkeypatch.undo()
    many = len(blocks(folder))

    def crash(self, missing_ok=False):
        raise MemoryError

    monkeypatch.setattr("pathlib.Path.unlink", crash)
    with pytest.raises(MemoryError):
        run_plan(plan, folder, processes=0)
    monkeypatch.undo()
    assert len(blocks(folder)) == many + 1
    same_bits(Results.read(folder).dataset(), before)
    same_bits(run_plan(plan, folder, processes=0).dataset(), before)
    assert len(blocks(folder)) == 1


def test_a_reader_follows_a_merge(plan, small_blocks, monkeypatch, same_bits):
    folder, before = small_blocks
    results = Results.read(folder)
    monkeypatch.undo()
    run_plan(plan, folder, processes=0)
    same_bits(results.dataset(), before)


def test_a_second_command_is_refused(plan, folder):
    with (
        Store.open(folder, plan),
        pytest.raises(AttnlabError, match=f"in use by process {os.getpid()} on"),
    ):
        run_plan(plan, folder, processes=0)
    assert run_plan(plan, folder, processes=0).finished == 6


@pytest.mark.parametrize("left", [b"", b"{", b'{"pid": 4194305, "host": "HOST"}'])
def test_a_refusal_names_the_owner_that_has_not_written_its_name_yet(plan, folder, left):
    """The owner took the lock a moment ago, and what the one before it left is still there."""
    import fcntl
    import socket

    (folder / "lock").write_bytes(left.replace(b"HOST", socket.gethostname().encode()))
    with open(folder / "lock", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        message = f"in use by process {os.getpid()} on {socket.gethostname()}"
        with pytest.raises(AttnlabError, match=message):
            run_plan(plan, folder, processes=0)


def test_the_lock_of_the_dead_is_taken_over_that_of_another_machine_is_not(plan, folder):
    import socket

    (folder / "lock").write_text(json.dumps({"pid": 2**22 + 1, "host": socket.gethostname()}))
    assert run_plan(plan, folder, processes=0).finished == 6
    (folder / "lock").write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    with pytest.raises(AttnlabError, match="process 1 on elsewhere"):
        run_plan(plan, folder, processes=0)


def test_a_full_disk_is_one_clear_message_and_loses_nothing(
    works, tmp_path, monkeypatch, same_bits
):
    first = Plan(f"{works}:numbers", name="p", grid={"seed": [0, 1, 2]})
    run_plan(first, tmp_path / "a", processes=0)
    before = Results.read(tmp_path / "a").select(["value", "single"])
    whole = Plan(f"{works}:numbers", name="p", grid={"seed": list(range(8))})

    calls = []

    def full(handle):
        calls.append(handle)
        if len(calls) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(AttnlabError, match=r"No space left on device.*are kept"):
        run_plan(whole, tmp_path / "a", processes=0)
    monkeypatch.undo()
    assert 3 <= Results.read(tmp_path / "a").finished < 8
    same_bits(
        Results.read(tmp_path / "a").select(["value", "single"]).isel(seed=slice(0, 3)), before
    )
    again = run_plan(whole, tmp_path / "a", processes=0)
    same_bits(again.dataset(), run_plan(whole, tmp_path / "b", processes=0).dataset())
    assert not list((tmp_path / "a" / "blocks").glob(".tmp-*"))


def test_a_folder_that_cannot_be_made(plan, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(AttnlabError, match="cannot write to"):
        run_plan(plan, tmp_path / "file" / "sweep", processes=0)


class OneByOne(AbstractExecutor):
    """Workers whose chunks are single runs, as slow runs have them; counts the folder's files after
    each.
    """

    def __init__(self, folder):
        self._folder = folder
        self.most = 0

    @property
    def width(self):
        return 1

    def outcomes(self, job, chunks, interrupt):
        worker = Worker(job, load_work(job.work))
        for run in (run for chunk in chunks for run in chunk):
            yield worker.compute([run], lambda: False)
            self.most = max(self.most, count_files(self._folder))


def count_files(folder):
    return sum(path.is_file() for path in folder.rglob("*"))


@pytest.mark.parametrize("work", ["single", "failing"])
def test_a_long_sweep_never_needs_many_files(works, tmp_path, same_bits, work):
    """Of 200 blocks or failures at most 64 wait to be merged: two files a block, and lock, plan,
    the merged block.
    """
    plan = Plan(f"{works}:{work}", name="p", grid={"seed": list(range(200))})
    executor = OneByOne(tmp_path / "few")
    results = run_plan(plan, tmp_path / "few", executor=executor, progress=False)
    assert results.finished + results.failed == 200
    assert 64 < executor.most <= 2 * 64 + 6
    assert count_files(tmp_path / "few") <= 4
    whole = run_plan(plan, tmp_path / "whole", processes=0)
    if work == "single":
        same_bits(results.dataset(), whole.dataset())
    else:
        assert results.failures == whole.failures
        assert results.failures[0].count == 200


def test_ten_thousand_blocks_and_failures_are_bounded(plan, tmp_path, monkeypatch):
    """The books alone, without data: ten thousand one-run blocks and as many failures, each in a
    file of its own.
    """
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    monkeypatch.setattr(
        "attnlab.sweeps.store._store._block.pack",
        lambda stacks: repr([s.hashes for s in stacks]).encode(),
    )
    monkeypatch.setattr(
        "attnlab.sweeps.store._store._block.unpack",
        lambda path, chosen=None: [empty(*read_runs(path))],
    )
    most = 0
    with Store.open(tmp_path, plan) as store:
        for first in range(10_000):
            failed = [Failure(f"f{first}", {}, "cause", "traceback", store.sources.current)]
            save_failures(tmp_path, failed)
            store.note([save_runs(tmp_path, [empty(f"r{first}")], store.sources.current)], failed)
            if first % 16 == 15 or first > 9_900:
                most = max(
                    most, sum(len(listed(tmp_path / part)) for part in ("", "blocks", "failures"))
                )
            store.keep_few_files()
        assert len(store.finished) == len(store.failures) == 10_000
        assert 200 < most <= 300
        seen = Store.read(tmp_path)
        assert (seen.finished, seen.failures) == (store.finished, store.failures)


def test_a_file_among_the_failures_that_is_not_ours_stays(plan, tmp_path):
    with Store.open(tmp_path, plan) as store:
        (tmp_path / "failures" / "mine.json").write_text("{}")
        for name in ("a", "b"):
            save_failures(tmp_path, [Failure(name, {}, "cause", "traceback")])
        store.consolidate()
    assert (tmp_path / "failures" / "mine.json").read_text() == "{}"
    assert len(listed(tmp_path / "failures")) == 2


def empty(*hashes):
    return Stack(hashes, {}, tuple({} for _ in hashes))


def read_runs(path):
    return json.loads(path.with_suffix(".json").read_text())["runs"]


@pytest.mark.parametrize(("size", "runs"), [(1_000_000, 32), (10_000_000, 24), (300_000_000, 1)])
def test_large_runs_share_blocks_as_far_as_memory_allows(size, runs):
    blocks = [Block(f"{k:03d}", "", size, (f"r{k}",)) for k in range(96)]
    merged = list(_batches([block for block in blocks if _is_small(block)]))
    assert {len(batch) for batch in merged} == ({runs} if runs > 1 else set())


def test_a_reader_that_looks_while_blocks_are_merged_sees_them_all(
    plan, small_blocks, monkeypatch, same_bits
):
    folder, before = small_blocks
    monkeypatch.undo()
    read, calls = read_block_label, []

    def merging(path):
        calls.append(path)
        if len(calls) == 1:  # after the listing, before the first label is read
            with Store.open(folder, plan) as store:
                store.consolidate()
        return read(path)

    monkeypatch.setattr("attnlab.sweeps.store._store.read_block_label", merging)
    results = Results.read(folder)
    assert len(calls) > 1
    assert results.finished == 6
    same_bits(results.dataset(), before)


def test_a_block_that_goes_away_while_it_is_read_is_found_where_it_went(
    plan, small_blocks, monkeypatch, same_bits
):
    folder, before = small_blocks
    monkeypatch.undo()
    results = Results.read(folder)
    sound, calls = Store._is_sound, []

    def merging(self, block):
        calls.append(block)
        if len(calls) == 1:
            run_plan(plan, folder, processes=0)
        return sound(self, block)

    monkeypatch.setattr(Store, "_is_sound", merging)
    same_bits(results.dataset(), before)


@contextmanager
def mere_user():
    """Let permissions count for root too, as they do for everybody else."""
    if os.geteuid() != 0:
        yield
        return
    library = ctypes.CDLL(None, use_errno=True)
    header, powers = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert library.capget(header, powers) == 0
    before = powers[0]
    powers[0] = before & ~0b110  # effective: neither CAP_DAC_OVERRIDE nor CAP_DAC_READ_SEARCH
    assert library.capset(header, powers) == 0
    try:
        yield
    finally:
        powers[0] = before
        assert library.capset(header, powers) == 0


def test_a_folder_that_becomes_read_only_keeps_what_is_finished(works, tmp_path, same_bits):
    plan = Plan(f"{works}:numbers", name="p", grid={"seed": list(range(12))})
    folder = tmp_path / "a"

    def close(event):
        if event.finished >= 3:
            (folder / "blocks").chmod(0o555)

    with mere_user():
        with pytest.raises(
            AttnlabError, match=r"cannot write to .*Permission denied.*are kept.*make it writable"
        ):
            run_plan(plan, folder, processes=0, on_event=close)
        kept = Results.read(folder).finished
        assert 3 <= kept < 12
        (folder / "blocks").chmod(0o755)
        resumed = run_plan(plan, folder, processes=0)
    same_bits(resumed.dataset(), run_plan(plan, tmp_path / "b", processes=0).dataset())
