"""Stored results that somebody crafted: refused in words, before anything is decoded or made room
for.
"""

import hashlib
import io
import json
import os
import pickle
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab._json import checksum_of, mismatch, parse_json, seal
from attnlab.sweeps import (
    Plan,
    Results,
    Store,
    StoreWarning,
    load_record,
    run_plan,
    save_record,
    unlock,
)
from attnlab.sweeps._work import load_work
from attnlab.sweeps.store import _zarr as zarr_module
from attnlab.sweeps.store._block import pack
from attnlab.sweeps.store._manifest import Block, Sources, write_block_label
from attnlab.sweeps.store._stack import Stack
from attnlab.sweeps.store._zarr import Damaged, open_zarr, pack_zarr

DATA = xr.Dataset(
    {
        "value": ("x", np.arange(4.0)),
        "word": ("x", np.array(["a", "b", "c", "d"], dtype=object)),
        "one": ((), 1j),
    },
    {"x": ["p", "q", "r", "s"]},
)


class Payload:
    """Unpickled, it leaves a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def rewritten(packed: bytes, change, compression=zipfile.ZIP_STORED) -> bytes:
    """A ZIP file with other members: ``change`` gets them by name."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def metadata(name, change):
    """Change the metadata of an array."""

    def apply(members):
        about = json.loads(members[f"{name}/zarr.json"])
        change(about)
        members[f"{name}/zarr.json"] = json.dumps(about).encode()

    return apply


def old_pickle(members, payload=b""):
    """The same array as Zarr 2 stores objects."""
    for name in [name for name in members if name.startswith("word/") or name == "zarr.json"]:
        del members[name]
    array = {
        "zarr_format": 2,
        "shape": [4],
        "chunks": [4],
        "dtype": "|O",
        "fill_value": None,
        "order": "C",
    }
    members[".zgroup"] = b'{"zarr_format": 2}'
    members["word/.zarray"] = json.dumps(
        {**array, "compressor": None, "filters": [{"id": "pickle"}]}
    ).encode()
    members["word/.zattrs"] = b'{"_ARRAY_DIMENSIONS": ["x"]}'
    members["word/0"] = payload


def new_pickle(members, payload=b""):
    """The array by Zarr 3, with a codec that unpickles."""
    metadata(
        "word", lambda m: m.update(codecs=[{"name": "numcodecs.pickle", "configuration": {}}])
    )(members)
    members["word/c/0"] = payload


def store_data(folder, change):
    """A record whose data file was changed, with right checksums."""
    save_record(folder, "study.json", 1, {"about": {}}, {"d": DATA})
    record = json.loads((folder / "study.json").read_text())
    path = folder / record["data"]["d"]["file"]
    packed = rewritten(path.read_bytes(), change)
    path.write_bytes(packed)
    record["data"]["d"] |= {"sha256": hashlib.sha256(packed).hexdigest(), "bytes": len(packed)}
    record["sha256"] = checksum_of(record)
    (folder / "study.json").write_text(json.dumps(record))


def load(folder):
    return load_record(folder, "study.json", 1, {"about": {str: object}}, "attnlab study")


@pytest.mark.parametrize("craft", [old_pickle, new_pickle])
def test_nothing_is_unpickled(tmp_path, craft, works):
    touched = tmp_path / "touched"
    payload = pickle.dumps(np.array([Payload(touched)] * 4, dtype=object))
    pickle.loads(payload)
    assert touched.exists()  # the payload works
    touched.unlink()
    store_data(tmp_path, lambda members: craft(members, payload))
    with pytest.raises(
        AttnlabError,
        match=r"cannot be read .*(Zarr 3|codecs numcodecs\.pickle).*run `attnlab study` ag",
    ):
        load(tmp_path)
    plan = Plan(f"{works}:numbers", name="p", grid={"seed": [0]})
    run_plan(plan, tmp_path / "sweep", processes=0)
    (old,) = (tmp_path / "sweep" / "blocks").glob("*.zip")
    stacks = pack([Stack.of_run(plan.runs[0].hash, DATA)])

    def in_stack(members):
        inner = {
            name.removeprefix("stack0/"): data
            for name, data in members.items()
            if name.startswith("stack0/")
        }
        craft(inner, payload)
        members.clear()
        members.update({f"stack0/{name}": data for name, data in inner.items()})

    crafted = rewritten(stacks, in_stack)
    digest = hashlib.sha256(crafted).hexdigest()
    old.with_name(f"{digest[:24]}.zip").write_bytes(crafted)
    source = load_work(plan.work).source.hash
    write_block_label(
        old.parent, Block(digest[:24], digest, len(crafted), (plan.runs[0].hash,), source)
    )
    old.unlink()
    results = Results.read(tmp_path / "sweep")
    with pytest.warns(StoreWarning, match="nothing was read from it"):
        results.dataset()
    assert (results.finished, results.missing) == (0, 1)
    assert not touched.exists()


def test_what_is_packed_comes_back():
    with open_zarr(pack_zarr({"": DATA, "inner": DATA})) as (store, groups):
        assert groups == ["", "inner"]
        xr.testing.assert_identical(
            xr.open_zarr(store, consolidated=False, chunks=None).load(), DATA
        )
    chunks = {
        name: {"chunks": (3,)} for name in ("value", "word", "x")
    }  # the last of each is not full
    with open_zarr(pack_zarr({"": DATA}, {"": chunks})) as (store, _):
        xr.testing.assert_identical(
            xr.open_zarr(store, consolidated=False, chunks=None).load(), DATA
        )


def huge(about):
    about["shape"] = about["chunk_grid"]["configuration"]["chunk_shape"] = [10**12]


def frame(name, size):
    """A Zstandard frame that says it holds much."""

    def apply(members):
        members[name] = b"\x28\xb5\x2f\xfd\xe0" + size.to_bytes(8, "little") + b"\x01\x00\x00"

    return apply


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            metadata("value", lambda m: m.update(shape=[10**12])),
            "declares 250000000000 chunks, there are 1",
        ),
        (metadata("value", huge), "other values than its chunks hold"),
        (
            lambda m: (metadata("value", huge)(m), frame("value/c/0", 8 * 10**12)(m)),
            "more values than its 16 bytes",
        ),
        (frame("value/c/0", 33), "other values than its chunks"),
        (frame("value/c/0", 2**40), "more values than its 16 bytes can hold"),
        (
            lambda m: m.update({"value/c/0": b"\x28\xb5\x2f\xfd\x00\x00\x00"}),
            "does not declare its size",
        ),
        (
            metadata("word", lambda m: m["chunk_grid"]["configuration"].update(chunk_shape=[5])),
            "5 strings in a chunk",
        ),
        (metadata("value", lambda m: m.update(data_type="|O")), r"type \|O"),
        (
            metadata("value", lambda m: m.update(data_type={"name": "struct"})),
            "data_type is a dict: expected text or",
        ),
        (
            metadata("value", lambda m: m.update(data_type="string")),
            "'string' with the codec bytes",
        ),
        (metadata("value", lambda m: m.update(zarr_format=2)), "zarr_format is 2"),
        (
            metadata("value", lambda m: m["codecs"].append({"name": "gzip"})),
            "codecs bytes, zstd, gzip",
        ),
        (metadata("value", lambda m: m.update(shape="4")), 'shape is "4": expected a list'),
        (
            metadata("value", lambda m: m.update(node_type="group")),
            "neither a plain group nor an array",
        ),
        (lambda m: m.pop("value/zarr.json"), "belongs to no Zarr 3 array"),
        (lambda m: m.update({"value/.zarray": b"{}"}), "belongs to no Zarr 3 array"),
        (lambda m: m.update({"../x": b"{}"}), "belongs to no Zarr 3 array"),
        (lambda m: m.update({"value/zarr.json": b"[" * 10_000}), "nested more than 64 deep"),
    ],
)
def test_false_metadata_are_refused_before_anything_is_decoded(change, words, monkeypatch):
    packed = rewritten(pack_zarr({"": DATA}), change)
    with pytest.raises(Damaged, match=words), open_zarr(packed):
        raise AssertionError("opened")


def test_a_data_file_without_its_root_is_refused(tmp_path):
    store_data(tmp_path, lambda members: members.pop("zarr.json"))
    with pytest.raises(
        AttnlabError, match=r"cannot be read .*No group found.*run `attnlab study` again"
    ):
        load(tmp_path)


def test_a_zip_bomb_is_refused():
    packed = rewritten(
        pack_zarr({"": DATA}), lambda m: m.update(big=bytes(10**7)), zipfile.ZIP_DEFLATED
    )
    with pytest.raises(Damaged, match="members are compressed"), open_zarr(packed):
        raise AssertionError("opened")


def test_large_arrays_of_one_value_are_stored_as_they_are(monkeypatch):
    monkeypatch.setattr(zarr_module, "PACKED_BYTES", 10_000)
    data = xr.Dataset(
        {"zeros": ("x", np.zeros(2_000)), "words": ("y", np.array([""] * 200, dtype=object))}
    )
    packed = pack_zarr({"": data})
    assert len(packed) > data.zeros.nbytes
    with open_zarr(packed) as (store, _):
        xr.testing.assert_identical(
            xr.open_zarr(store, consolidated=False, chunks=None).load(), data
        )
    monkeypatch.setattr(zarr_module, "PACKED_BYTES", 2**30)
    packed = pack_zarr({"": data})
    monkeypatch.setattr(zarr_module, "PACKED_BYTES", 10_000)
    with pytest.raises(Damaged, match="more values than"), open_zarr(packed):
        raise AssertionError("opened")


@pytest.mark.parametrize(
    "file",
    [
        "/etc/passwd",
        "../other/data.zarr.zip",
        "s3://bucket/x",
        "data/../../x.zarr.zip",
        "data/other.zarr.zip",
    ],
)
def test_a_record_cannot_name_another_file(tmp_path, file):
    save_record(tmp_path, "study.json", 1, {"about": {}}, {"d": DATA})
    record = json.loads((tmp_path / "study.json").read_text())
    record["data"]["d"]["file"] = file
    record["sha256"] = checksum_of(record)
    (tmp_path / "study.json").write_text(json.dumps(record))
    with pytest.raises(
        AttnlabError, match=f"study.json names the file '{file}': expected 'data/d-"
    ):
        load(tmp_path)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    folder = tmp_path / "study"
    save_record(folder, "study.json", 1, {"about": {}}, {"d": DATA})
    assert load(folder)[1]["d"].identical(DATA)
    (folder / "data").rename(tmp_path / "elsewhere")
    (folder / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AttnlabError, match="a link that leads out of"):
        load(folder)
    (tmp_path / "linked").symlink_to(folder)
    (folder / "data").unlink()
    (tmp_path / "elsewhere").rename(folder / "data")
    assert load(tmp_path / "linked")[1]["d"].identical(DATA)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda r: r.update(about={"x": 1}),
            "study.json was changed .* edited by hand; run `attnlab study` again",
        ),
        (lambda r: r.pop("sha256"), "no checksum .* older attnlab"),
        (lambda r: r.update(kind="attnlab digits"), "is not a record of attnlab"),
    ],
)
def test_an_edited_record_is_refused(tmp_path, change, words):
    save_record(tmp_path, "study.json", 1, {"about": {}}, {})
    record = json.loads((tmp_path / "study.json").read_text())
    change(record)
    (tmp_path / "study.json").write_text(json.dumps(record))
    with pytest.raises(AttnlabError, match=words):
        load(tmp_path)


def test_a_record_may_be_indented_anew_and_holds_any_text(tmp_path):
    about = {"nan": float("nan"), "half": "\ud800", "tuple": (1, 2.5), "keys": {1: "–"}}
    save_record(tmp_path, "study.json", 1, {"about": about}, {})
    assert "–" in (tmp_path / "study.json").read_text()
    record = json.loads((tmp_path / "study.json").read_text())
    (tmp_path / "study.json").write_text(json.dumps(record, indent=8))
    found = load(tmp_path)[0]["about"]
    assert (found["half"], found["tuple"], found["keys"]) == ("\ud800", [1, 2.5], {"1": "–"})
    assert np.isnan(found["nan"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"\xff", "can't decode"),
        (b"[1e345]", "1e345 is too large"),
        (b'{"a": 1, "a": 1}', "'a' is given twice"),
        (b"[" * 65 + b"1" + b"]" * 65, "nested more than 64 deep"),
        (b"[" * 10**6, "nested more than 64 deep"),
        (b"1" * 5000, "limit"),
    ],
)
def test_odd_json_is_refused_in_words(text, words):
    with pytest.raises(ValueError, match=words):
        parse_json(text)
    assert parse_json(b"[" * 64 + b"1" + b"]" * 64)


@pytest.mark.parametrize(
    ("value", "shape", "words"),
    [
        (True, int, "it is true: expected a whole number"),
        (10**400, float, "it is 1000.*: expected a finite number"),
        (float("nan"), float, "expected a finite number"),
        (["a"], str, "it is a list: expected text"),
        (
            {"a": [{"b": None}]},
            {"a": [{"b": (int, str)}]},
            r"a\[0\].b is null: expected a whole number or text",
        ),
        ([1, 2, 3], [int, int], "it is a list: expected a list of 2"),
        ("c", frozenset("ab"), 'it is "c": expected a or b'),
    ],
)
def test_a_value_of_another_shape_is_named(value, shape, words):
    import re

    found = mismatch(value, shape)
    assert found is not None
    assert re.search(words, found)


GRID = {f"g{i}": list(range(10)) for i in range(9)}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"grid": GRID}, "asks for 1,000,000,000 runs: expected 1 to 1,000,000"),
        ({"grid": {"seed": []}}, "asks for 0 runs"),
        ({"grid": {"seed": "0123"}}, 'grid.seed is "0123": expected a list'),
        ({"grid": [["seed", 1]]}, "grid is a list: expected an object"),
        ({"base": {"scale": float("nan")}}, "base.scale is NaN"),
        ({"work": ["x"]}, "work is a list: expected text"),
        ({"root_seed": 1e400}, "root_seed is Infinity"),
        ({"listed": []}, "asks for 0 runs"),
        ({"listed": [{"seed": 1}, {"size": 2}]}, "different settings"),
        ({"version": None}, "version is null"),
    ],
)
def test_a_false_plan_is_refused_at_once(works, tmp_path, changed, words):
    plan = Plan(f"{works}:numbers", name="p", grid={"seed": [0]}).to_json() | changed
    (tmp_path / "plan.json").write_bytes(
        seal("attnlab sweep", 1, {"created": "", "plan": plan, "sources": asdict(Sources())})
    )
    with pytest.raises(AttnlabError, match=words):
        Results.read(tmp_path)


def test_a_grid_that_nobody_can_run_is_refused_when_it_is_made(works):
    grid = {"seed": list(range(2000)), "size": list(range(1, 1001))}
    with pytest.raises(AttnlabError, match="asks for 2,000,000 runs"):
        Plan(f"{works}:numbers", name="p", grid=grid)


def test_a_data_set_that_would_be_empty_space_is_not_made(works, tmp_path, monkeypatch):
    run_plan(
        Plan(f"{works}:numbers", name="p", base={"size": 1000}, grid={"seed": [0]}),
        tmp_path,
        processes=0,
    )
    wide = Plan(f"{works}:numbers", name="p", base={"size": 1000}, grid={"seed": list(range(1100))})
    with Store.open(tmp_path, wide):
        pass
    assert Results.read(tmp_path).dataset().value.shape == (1100, 1000)
    monkeypatch.setattr("attnlab.sweeps._combine._MOST_BYTES", 10**6)
    with pytest.raises(AttnlabError, match=r"'value' of all runs would need .* not stored"):
        Results.read(tmp_path).dataset()


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b"{",
        b"[]",
        b'"x"',
        b"[" * 10_000,
        b'{"host": ["x"], "pid": "y", "since": "z"}',
        b'{"host": "elsewhere", "pid": -1, "since": 1e300}',
        b'{"host": "elsewhere", "since": 99999999999999}',
        b'{"host": "elsewhere", "since": NaN, "pid": 1e5}',
        b"x" * 10**6,
    ],
)
def test_any_lock_can_be_taken_away(works, tmp_path, content):
    plan = Plan(f"{works}:numbers", name="p", grid={"seed": [0]})
    run_plan(plan, tmp_path, processes=0)
    (tmp_path / "lock").write_bytes(content)
    if b"elsewhere" in content:
        with pytest.raises(AttnlabError, match="on elsewhere"):
            run_plan(plan, tmp_path, processes=0)
    unlock(tmp_path)
    assert run_plan(plan, tmp_path, processes=0).finished == 1


@pytest.mark.parametrize(
    "make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/nowhere/at/all", path)]
)
def test_what_is_no_lock_file_is_renamed(works, tmp_path, make):
    plan = Plan(f"{works}:numbers", name="p", grid={"seed": [0]})
    run_plan(plan, tmp_path, processes=0)
    (tmp_path / "lock").unlink()
    make(tmp_path / "lock")
    with pytest.raises(AttnlabError, match=r"lock is not a file.*--unlock"):
        run_plan(plan, tmp_path, processes=0)
    assert unlock(tmp_path) == [
        f"something that attnlab did not write; it is now {tmp_path / 'lock.bad'}"
    ]
    assert run_plan(plan, tmp_path, processes=0).finished == 1
