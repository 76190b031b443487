"""Whose folder it is, and disks that are full or cannot be written to."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from attnlab import AttnlabError, _places
from attnlab.lab import read_record, run, take_folder, write_page
from tests.lab.toy import ToySettings, question

A = {"files": ("a.csv",), "--label": ("stars",)}


def test_a_folder_belongs_to_one_experiment_and_subject(tmp_path):
    out = take_folder(tmp_path / "out", "study", A)
    assert take_folder(out, "study", A) == out
    other = A | {"files": ("b.csv",)}
    with pytest.raises(
        AttnlabError, match=r"wrote about files a\.csv; --label stars; you ask about"
    ):
        take_folder(out, "study", other)
    with pytest.raises(AttnlabError, match=r"holds what `attnlab study` wrote: .*--overwrite"):
        take_folder(out, "compare", A)
    assert take_folder(out, "study", other, overwrite=True) == out
    with pytest.raises(AttnlabError, match=r"about files b\.csv"):
        take_folder(out, "study", A)


def test_a_folder_that_was_moved_is_still_that_of_its_own_texts(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    take_folder(first, "study", {"files": (str(first / "texts.jsonl"),)})
    first.rename(second)
    take_folder(second, "study", {"files": (str(second / "texts.jsonl"),)})


def test_a_folder_with_files_of_others_is_refused_and_left_as_it_is(tmp_path):
    for name in ("thesis.tex", "b.png", "c", "d"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(AttnlabError, match=r"did not write \(b.png, c, d and 1 more\): .*--overw"):
        run(question, ToySettings(), tmp_path, processes=0)
    assert len(list(tmp_path.iterdir())) == 4
    run(question, ToySettings(), tmp_path, processes=0, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    run(question, ToySettings(), tmp_path, processes=0)  # it is marked now


def test_hidden_files_are_nobodys_and_a_damaged_mark_is_written_by_attnlab(tmp_path):
    (tmp_path / ".gitignore").write_text("*")
    take_folder(tmp_path, "study", A)
    (tmp_path / ".attnlab").write_text("{")
    take_folder(tmp_path, "study", A)


def test_folders_at_urls_are_checked_too():
    out = take_folder("memory://whose/folder", "study", A)
    with pytest.raises(AttnlabError, match="holds what `attnlab study` wrote"):
        take_folder(str(out), "compare", A)
    (out.parent / "foreign" / "file.txt").write_text("mine")
    with pytest.raises(AttnlabError, match=r"did not write \(file.txt\)"):
        take_folder("memory://whose/foreign", "study", A)


def fails(code: int):
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, "No space left on device", "somewhere")

    return fail


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_disk_that_cannot_be_written_to_is_one_message(tmp_path, monkeypatch, code):
    with monkeypatch.context() as patched:
        patched.setattr(_places, "make_folder", fails(code))
        patched.setattr("attnlab.lab._folder.make_folder", fails(code))
        with pytest.raises(AttnlabError, match=r"cannot write to .* \(.*No space.*free some space"):
            run(question, ToySettings(), tmp_path / "out", processes=0)
    run(question, ToySettings(), tmp_path / "out", processes=0)
    record = read_record(tmp_path / "out")
    monkeypatch.setattr(Path, "write_bytes", fails(code))
    with pytest.raises(AttnlabError, match=r"cannot write .*report.html .*`attnlab report`"):
        write_page(question, record)


def test_an_error_that_is_not_the_disks_is_not_called_one(tmp_path, monkeypatch):
    monkeypatch.setattr(type(question), "measure", fails(errno.ECONNREFUSED))
    with pytest.raises(ConnectionRefusedError):
        run(question, ToySettings(), tmp_path / "out", processes=0)
