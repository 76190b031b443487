"""Texts in memory: lists and data frames, and the folder of their study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import attnlab as al
from attnlab import AttnlabError, study_texts
from attnlab.data import prepare_texts
from tests.data.reviews import rows


@pytest.fixture
def asked(monkeypatch) -> list[Any]:
    """The settings that studies would run with, which takes long."""
    found: list[Any] = []
    monkeypatch.setattr(al.lab, "run", lambda _, settings, *__, **___: found.append(settings))
    return found


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_study_takes_a_data_frame(kind, tmp_path, asked):
    frames = pytest.importorskip(kind)
    texts, labels = map(list, zip(*rows(60), strict=True))
    stars = [5 if label == "pos" else 1 for label in labels]
    frame = frames.DataFrame({"n": range(60), "review": [*texts[:-1], None], "stars": stars})
    study_texts(frame, tmp_path / "out", label="stars", processes=0)
    (settings,) = asked
    prepared = prepare_texts(settings.source())
    assert prepared.train.classes == ("1", "5")
    assert prepared.reading["dropped"][0]["count"] == 1
    assert prepared.reading["dropped"][0]["reason"] == "empty"
    study_texts(frame, tmp_path / "out", label="stars")  # the same again resumes
    with pytest.raises(AttnlabError, match="holds a study of other texts"):
        study_texts(frame[:50], tmp_path / "out", label="stars")
    study_texts(frame[:50], tmp_path / "out", label="stars", overwrite=True)
    with pytest.raises(AttnlabError, match=r"the data frame has no column 'reviw'.*'review'"):
        study_texts(frame, tmp_path / "new", text="reviw", label="stars")
    assert not (tmp_path / "new").exists()


def test_a_data_frame_that_is_not_in_memory(tmp_path, asked):
    polars = pytest.importorskip("polars")
    with pytest.raises(AttnlabError, match="a LazyFrame cannot be read as a data frame"):
        study_texts(polars.DataFrame({"text": ["a"]}).lazy(), tmp_path / "out")


def test_lists_with_missing_values(tmp_path, asked):
    pandas = pytest.importorskip("pandas")
    texts, labels = map(list, zip(*rows(60), strict=True))
    missing = [None, float("nan"), pandas.NA, *labels[3:]]
    study_texts(texts, tmp_path / "out", labels=missing)
    reading = prepare_texts(asked[0].source()).reading
    assert [(e["reason"], e["count"]) for e in reading["dropped"]] == [("unlabelled", 3)]
    with pytest.raises(AttnlabError, match="60 texts and 3 labels"):
        study_texts(texts, tmp_path / "other", labels=labels[:3])


def test_texts_in_memory_are_not_written_into_a_foreign_folder(tmp_path, asked):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(AttnlabError, match="holds files that attnlab did not write"):
        study_texts(["a", "b"], tmp_path, labels=["x", "y"])
    assert [path.name for path in Path(tmp_path).iterdir()] == ["thesis.tex"]
