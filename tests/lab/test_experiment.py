"""What every experiment gets from ``run``: folder, resume, record, page, Ctrl-C, failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab import AttnlabError
from attnlab.lab import page, read_record, run, write_page
from tests.lab.toy import Powers, ToySettings, question


def ask(folder: Path, **settings):
    return run(question, ToySettings(**settings), folder, processes=0, command="attnlab toy")


def test_from_settings_to_record_and_page_and_again(tmp_path):
    stages = []
    record = run(question, ToySettings(), tmp_path, processes=0, on_stage=stages.append)
    assert stages == ["powers"]
    assert Powers.power(record.data).values.tolist() == [1.0, 4.0, 9.0]
    assert [card.text for card in record.cards] == ["The mean of 3 powers is 4.66667."]
    assert record.content == {"finished": 3}
    assert record.ok
    stored = json.loads((tmp_path / "record.json").read_text("utf-8"))
    assert stored["experiment"] == "toy"
    drawn = (tmp_path / "report.html").read_text("utf-8")
    assert "The mean of 3 powers is 4.66667." in drawn
    assert (tmp_path / "figures" / "powers.csv").is_file()
    again = read_record(tmp_path)
    assert again.about == record.about
    (tmp_path / "report.html").unlink()
    write_page(question, again)
    assert (tmp_path / "report.html").read_text("utf-8") == drawn


def test_runs_that_are_stored_are_not_computed_again(tmp_path):
    ask(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*.zip")}
    assert before
    ask(tmp_path, kind="median")
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").rglob("*.zip")} == before


def test_ctrl_c_keeps_what_is_finished_and_writes_no_record(tmp_path):
    record = ask(tmp_path, numbers=(1.0, 13.0, 2.0))
    assert record.interrupted
    assert not (tmp_path / "record.json").exists()


def test_failed_runs_are_counted_and_if_all_fail_the_cause_is_said(tmp_path):
    record = ask(tmp_path / "some", numbers=(1.0, -1.0))
    assert not record.ok
    assert record.content == {"finished": 1}
    with pytest.raises(AttnlabError, match="all 2 runs failed: ValueError: negative"):
        ask(tmp_path / "all", numbers=(-1.0, -2.0))


def test_a_folder_that_is_taken_is_refused(tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(AttnlabError, match="is a file; expected a folder"):
        ask(tmp_path / "file")
    ask(tmp_path / "toy")
    record = tmp_path / "toy" / "record.json"
    other = type("Other", (type(question),), {"name": "other"})()
    with pytest.raises(AttnlabError, match="holds what `attnlab toy` wrote"):
        run(other, ToySettings(), tmp_path / "toy", processes=0)
    record.write_text("{", "utf-8")  # damaged: it is written again
    assert ask(tmp_path / "toy").ok
    assert run(other, ToySettings(), tmp_path / "toy", processes=0, overwrite=True).ok
    with pytest.raises(AttnlabError, match="holds what `attnlab other` wrote"):
        ask(tmp_path / "toy")


def test_a_page_that_cannot_be_drawn_is_an_error_and_loses_nothing(tmp_path):
    with pytest.raises(AttnlabError, match=r"cannot be drawn \(KeyError: 'power of nothing'"):
        ask(tmp_path, broken=True)
    record = read_record(tmp_path)
    assert record.content == {"finished": 3}
    with pytest.raises(KeyError):
        page(question, record)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exponent": -1}, "--exponent -1: expected at least 0"),
        ({"exponent": 10}, "--exponent 10: expected at most 9"),
        ({"kind": "mode"}, "--kind mode: expected one of mean, median"),
    ],
)
def test_settings_are_checked_when_they_are_made(given, message):
    with pytest.raises(AttnlabError, match=message):
        ToySettings(**given)
