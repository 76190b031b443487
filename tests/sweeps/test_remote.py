"""Stores at URLs: the same bits as in a folder, one owner at a time, and nothing lost when writing
is refused.
"""

import json
import os
import sys
import threading
import time
import uuid

import pytest
from typer.testing import CliRunner

from attnlab._errors import AttnlabError
from attnlab._places import (
    is_file,
    listed,
    local_copy,
    place,
    put_bytes,
    read_bytes,
    share,
    working_copy,
)
from attnlab.cli._main import app
from attnlab.lab import reproduce
from attnlab.sweeps import Plan, Results, Store, StoreWarning, run_plan, unlock
from attnlab.sweeps.store import _lock as locks
from attnlab.sweeps.store._lock import UrlLock

pytestmark = pytest.mark.slow


@pytest.fixture
def url():
    """A place in memory that no other test knows."""
    return f"memory://{uuid.uuid4().hex}/sweep"


@pytest.fixture
def plan(works):
    return Plan(f"{works}:numbers", name="p", grid={"seed": list(range(6))})


def flags(url):
    return [name for name in listed(place(url) / "locks") if name.endswith(".json")]


def put_flag(url, name="0" * 32, **changed):
    """The flag of a command on another machine."""
    now = time.time()
    flag = {
        "pid": 7,
        "host": "elsewhere",
        "machine": "other",
        "since": now - 60,
        "beat": now,
        "held": True,
    }
    put_bytes(place(url) / "locks" / f"{name}.json", json.dumps(flag | changed).encode())


@pytest.mark.parametrize("processes", [0, 2])
def test_a_url_holds_the_same_bits_as_a_folder(plan, tmp_path, url, processes, same_bits):
    here = run_plan(plan, tmp_path, processes=0)
    there = run_plan(plan, url, processes=processes)
    assert (there.finished, there.failed) == (6, 0)
    same_bits(there.dataset(), here.dataset())
    same_bits(Results.read(url).select(["value", "word"]), here.select(["value", "word"]))
    same_bits(Results.read(url).run(3), here.run(3))
    assert set(listed(place(url))) >= {"plan.json", "blocks"}
    assert len(listed(place(url) / "blocks")) == 2
    assert not flags(url)


def test_a_sweep_at_a_url_goes_on_where_it_was(works, tmp_path, url):
    diary = tmp_path / "diary"
    diary.mkdir()
    for seeds, computed in (([0, 1], 2), ([0, 1], 2), ([2, 0, 1, 3], 4)):
        plan = Plan(f"{works}:numbers", name="p", base={"diary": str(diary)}, grid={"seed": seeds})
        assert run_plan(plan, url, processes=0).finished == len(seeds)
        assert len(list(diary.iterdir())) == computed


@pytest.mark.parametrize("processes", [0, 1])
def test_failures_are_kept_at_a_url(works, url, processes):
    results = run_plan(
        Plan(f"{works}:fragile", name="p", grid={"seed": [0, 1, 2, 3]}), url, processes=processes
    )
    assert (results.finished, results.failed) == (2, 2)
    assert {group.cause for group in Results.read(url).failures} == {
        "RuntimeError: the model diverged",
        "SystemExit: leaving",
    }


def test_a_damaged_block_at_a_url_is_set_aside_and_computed_anew(plan, tmp_path, url, same_bits):
    before = run_plan(plan, url, processes=0).dataset()
    (name,) = (name for name in listed(place(url) / "blocks") if name.endswith(".zip"))
    path = place(url) / "blocks" / name
    data = bytearray(read_bytes(path))
    data[len(data) // 2] ^= 1
    put_bytes(path, bytes(data))
    with pytest.warns(StoreWarning, match="nothing was read from it"):
        assert not Results.read(url).dataset().data_vars
    with pytest.warns(StoreWarning, match=r"zip.bad is not what attnlab wrote"):
        again = run_plan(plan, url, processes=0)
    same_bits(again.dataset(), before)
    assert read_bytes(path.with_name(f"{name}.bad")) == bytes(data)


def test_a_url_that_cannot_be_reached_is_no_damage(plan, url, monkeypatch):
    run_plan(plan, url, processes=0)
    names = set(listed(place(url) / "blocks"))
    fs = type(place(url).fs)  # pyright: ignore[reportAttributeAccessIssue]
    read = fs.cat_file

    def lost(self, path, *args, **kwargs):
        if "/blocks/" in path:
            raise TimeoutError("no answer")
        return read(self, path, *args, **kwargs)

    monkeypatch.setattr(fs, "cat_file", lost)
    with pytest.raises(AttnlabError, match=r"cannot read memory://.*no answer"):
        Results.read(url)
    with pytest.raises(AttnlabError, match=r"cannot write to memory://.*no answer"):
        run_plan(plan, url, processes=0)
    monkeypatch.undo()
    assert set(listed(place(url) / "blocks")) == names
    assert run_plan(plan, url, processes=0).finished == 6


def test_a_file_systems_own_error_is_told_like_any_other(plan, url, monkeypatch):
    class ForeignError(Exception):
        pass

    def refuse(self, path, *args, **kwargs):
        raise ForeignError("no credentials")

    monkeypatch.setattr(type(place(url).fs), "pipe_file", refuse)  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(
        AttnlabError, match=r"cannot write to memory://.*ForeignError: no credentials"
    ):
        run_plan(plan, url, processes=0)


@pytest.mark.parametrize("processes", [0, 1])
def test_a_url_that_becomes_read_only_keeps_what_is_finished(
    works, tmp_path, url, monkeypatch, same_bits, processes
):
    plan = Plan(f"{works}:numbers", name="p", grid={"seed": list(range(8))})
    fs = type(place(url).fs)  # pyright: ignore[reportAttributeAccessIssue]
    write, written = fs.pipe_file, []

    def refuse(self, path, *args, **kwargs):
        if path.endswith(".zip"):
            written.append(path)
            if len(written) > 1:
                raise PermissionError("read-only")
        return write(self, path, *args, **kwargs)

    monkeypatch.setattr(fs, "pipe_file", refuse)
    with pytest.raises(AttnlabError, match=r"cannot write to memory://.*read-only.*are kept"):
        run_plan(plan, url, processes=processes)
    monkeypatch.undo()
    assert 1 <= Results.read(url).finished < 8
    same_bits(
        run_plan(plan, url, processes=0).dataset(), run_plan(plan, tmp_path, processes=0).dataset()
    )


def test_a_second_command_at_a_url_is_refused_in_words(plan, url):
    with Store.open(url, plan):
        words = rf"memory://.* is in use by process {os.getpid()} on .* since 20.*attnlab runs memory://.* --unlock"
        with pytest.raises(AttnlabError, match=words):
            run_plan(plan, url, processes=0)
        assert len(flags(url)) == 1
    assert run_plan(plan, url, processes=0).finished == 6


def test_the_flag_of_the_dead_is_taken_over_and_that_of_the_living_is_not(plan, url):
    put_flag(url)
    with pytest.raises(AttnlabError, match="process 7 on elsewhere since"):
        run_plan(plan, url, processes=0)
    put_flag(url, beat=time.time() - 121)
    with Store.open(url, plan):
        assert "0" * 32 + ".json" not in flags(url)
    put_flag(url, pid=2**22 + 1, machine=locks._machine())
    assert run_plan(plan, url, processes=0).finished == 6


def test_a_flag_that_cannot_be_read_is_somebodys(plan, url):
    put_bytes(place(url) / "locks" / "x.json", b"{")
    with pytest.raises(AttnlabError, match=r"in use by process \? on \?"):
        run_plan(plan, url, processes=0)
    assert len(unlock(place(url))) == 1
    assert run_plan(plan, url, processes=0).finished == 6


def test_of_two_that_ask_at_once_the_lower_id_wins(url, monkeypatch):
    """Both flags are up before either looks: the higher takes its own back, the lower waits for
    that and holds.
    """
    monkeypatch.setattr(locks, "_MOMENT_SECONDS", 0.01)
    one, other = sorted((UrlLock(place(url)) for _ in range(2)), key=lambda lock: lock._id)
    both_up, refused = threading.Barrier(2), []
    look = UrlLock._decide

    def together(self):
        both_up.wait(10)
        look(self)

    monkeypatch.setattr(UrlLock, "_decide", together)

    def ask():
        try:
            other.acquire()
        except AttnlabError as error:
            refused.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    one.acquire()
    thread.join()
    assert len(refused) == 1
    assert flags(url) == [f"{one._id}.json"]
    one.release()
    assert not flags(url)


def test_an_asker_that_never_leaves_is_not_waited_for_in_vain(url, monkeypatch):
    monkeypatch.setattr(locks, "_MOMENT_SECONDS", 0.001)
    put_flag(url, name="f" * 32, held=False)
    with pytest.raises(AttnlabError, match="process 7 on elsewhere"):
        UrlLock(place(url)).acquire()
    assert len(flags(url)) == 1


def test_a_holder_gives_signs_of_life_and_notices_that_it_lost_the_lock(
    plan, url, monkeypatch, wait_for
):
    monkeypatch.setattr(locks, "_BEAT_SECONDS", 0.02)
    with Store.open(url, plan) as store:
        (name,) = flags(url)
        first = json.loads(read_bytes(place(url) / "locks" / name))["beat"]
        wait_for(lambda: json.loads(read_bytes(place(url) / "locks" / name))["beat"] > first)
        store.note([], [])
        assert len(unlock(place(url))) == 1
        wait_for(lambda: store._lock is not None and store._lock.lost is not None)
        with pytest.raises(
            AttnlabError,
            match="was taken away from this command by a command that removed its lock",
        ):
            store.note([], [])
        assert not flags(url)  # what was taken away is not taken back


def test_a_holder_that_slept_yields_to_the_one_that_took_over(url):
    lock = UrlLock(place(url))
    lock.acquire()
    put_flag(url, since=time.time() + 5)
    lock.renew()
    assert lock.lost is not None
    assert lock.lost.startswith("process 7 on elsewhere")
    lock.release()


def test_a_local_lock_of_another_machine_can_be_taken_away(plan, tmp_path):
    folder = tmp_path / "sweep"
    run_plan(plan, folder, processes=0)
    assert unlock(folder) == []
    (folder / "lock").write_text(json.dumps({"pid": 1, "host": "elsewhere"}))
    assert unlock(folder) == ["process 1 on elsewhere"]
    with (
        Store.open(folder, plan),
        pytest.raises(AttnlabError, match="which is running: stop it instead"),
    ):
        unlock(folder)


def command(*words):
    """What a command prints; it must succeed."""
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.output


def test_a_command_writes_its_record_and_page_to_a_url(tmp_path, url):
    from attnlab.lab import page, read_record
    from attnlab.questions import ask, questions
    from attnlab.report import write_folder

    sizes = [
        "--sentences",
        "100",
        "--dictionary",
        "50",
        "--steps",
        "20",
        "--reach",
        "1",
        "--seeds",
        "2",
    ]
    assert f"page: {url}/report.html" in command(
        "dynamics", *sizes, "--out", url, "--processes", "0"
    )
    stored = read_record(url)
    assert stored.data["dynamics"].sizes["seed"] == 2
    shown = read_bytes(place(url) / "report.html")
    drawn = page(questions()["dynamics"], stored)
    assert shown == write_folder(drawn, tmp_path).read_bytes()
    figures = {path.name: path.read_bytes() for path in (tmp_path / "figures").iterdir()}
    assert {
        name: read_bytes(place(url) / "figures" / name) for name in listed(place(url) / "figures")
    } == figures
    put_bytes(place(url) / "report.html", b"")
    assert f"page: {url}/report.html" in command("report", url)
    assert read_bytes(place(url) / "report.html") == shown
    assert json.loads(command("runs", url, "--json"))[0]["finished"] == 2
    with pytest.raises(AttnlabError, match="holds what `attnlab dynamics` wrote"):
        ask("landscape", url)


def test_verdicts_at_a_url_are_drawn_again(url):
    reproduce([], url, processes=0, progress=False)
    (place(url) / "report.html").unlink()
    assert f"page: {url}/report.html" in command("report", url)
    assert is_file(place(url) / "report.html")


def test_the_command_line_takes_a_lock_away(plan, url):
    run_plan(plan, url, processes=0)
    assert "none of these sweeps was locked" in command("runs", url, "--unlock")
    put_flag(url)
    assert "was taken from process 7 on elsewhere since" in command("runs", url, "--unlock")
    assert run_plan(plan, url, processes=0).finished == 6


def test_a_model_at_a_url(url, tmp_path):
    from attnlab.estimators import AttentionClassifier, load_classifier

    texts, labels = ["good film", "bad film", "good plot", "bad plot"] * 4, [1, 0, 1, 0] * 4
    model = AttentionClassifier(embedding_dim=2, steps=20).fit(texts, labels)
    model.save(url)
    with pytest.raises(AttnlabError, match="already holds a model"):
        model.save(url)
    assert (load_classifier(url).predict_proba(texts) == model.predict_proba(texts)).all()


def test_a_folder_that_is_mapped_into_memory_has_a_copy_here(url, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "first"))
    there = place(url) / "corpus" / "0123"
    written = working_copy(there)
    (written / "train").mkdir(parents=True)
    (written / "train" / "words.npy").write_bytes(b"words")
    (written / "whole.json").write_bytes(b"{}")
    assert share(written, there, "whole.json") is there
    assert local_copy(there, "whole.json") == written
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "second"))
    copied = local_copy(str(there), "whole.json")
    assert copied.is_relative_to(tmp_path / "second")
    assert (copied / "train" / "words.npy").read_bytes() == b"words"
    assert (
        local_copy(tmp_path, "whole.json")
        == working_copy(tmp_path)
        == share(tmp_path, tmp_path, "x")
        == tmp_path
    )


def test_a_corpus_at_a_url_is_opened_from_a_copy(url, tmp_path, monkeypatch):
    from attnlab.data import TextSource, is_prepared, prepare_in, text_parts

    rows = [f"word{k} {'good' if k % 2 else 'bad'},{'pos' if k % 2 else 'neg'}" for k in range(60)]
    (tmp_path / "texts.csv").write_text("\n".join(["text,label", *rows]))
    source = TextSource((str(tmp_path / "texts.csv"),), text="text", label="label")
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "first"))
    prepared, stored = prepare_in(source, str(url))
    assert stored == f"{url}/corpus/{prepared.hash}"
    for cache in ("first", "second"):  # the machine that prepared it, and one that only computes
        monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / cache))
        assert is_prepared(stored)
        text_parts.cache_clear()
        parts = text_parts(stored)
        assert (parts.train, parts.valid, parts.test) == (
            prepared.train,
            prepared.valid,
            prepared.test,
        )
        assert parts.hash == prepared.hash
    assert not is_prepared(f"{url}/elsewhere")


def test_a_folder_may_hold_one_of_its_own_name(url):
    put_bytes(place(url) / "sweep" / "plan.json", b"{}")
    assert "sweep" in listed(place(url))
    assert place(place(url)) == place(url)


def test_places_of_this_machine_stay_plain_paths(tmp_path):
    for given in (tmp_path, str(tmp_path), f"file://{tmp_path}", f"file://localhost{tmp_path}"):
        assert place(given) == tmp_path
    assert str(place("memory://a/b/")) == "memory://a/b"
    assert not is_file(place("memory://nowhere/at/all"))
    assert listed(place("memory://nowhere/at/all")) == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nonsense://x", "unknown file system 'nonsense'"),
        ("file://other/x", "expected file:///absolute/path"),
        ("://x", "is not a URL"),
        ("sftp://me:secret@host/x", "holds a password"),
    ],
)
def test_what_is_no_place_is_refused_in_words(given, words):
    with pytest.raises(AttnlabError, match=words) as raised:
        place(given)
    assert "secret" not in str(raised.value)


def test_a_url_that_became_a_path_is_refused(tmp_path):
    from pathlib import Path

    with pytest.raises(AttnlabError, match="give URLs as strings"):
        place(Path("s3://bucket/x"))


def test_missing_packages_are_named(monkeypatch):
    import fsspec

    def missing(scheme):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec, "get_filesystem_class", missing)
    with pytest.raises(AttnlabError, match=r"s3://bucket: s3:// needs `pip install s3fs` as well"):
        place("s3://bucket")
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(AttnlabError, match=r"pip install 'attnlab\[remote\]'"):
        place("s3://bucket")
