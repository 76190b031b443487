"""From files to corpora: what is prepared at once and in a stream, named sources, what is thinned."""

from __future__ import annotations

from functools import partial

import pytest

from attnlab import AttnlabError
from attnlab._errors import MissingData
from attnlab.data import (
    Corpus,
    Texts,
    TextSource,
    _movies,
    _prepare,
    index_stream,
    prepare_in,
    prepare_texts,
    text_parts,
)
from tests.data.reviews import rows, write
from tests.papers.texts import sentences, write_folder


@pytest.fixture
def folder(tmp_path):
    return str(write_folder(tmp_path / "made"))


def test_equal_texts_are_used_once_and_every_part_has_its_own(tmp_path):
    table = rows(60)
    file = write(
        tmp_path / "a.csv",
        [*table, table[0], (table[1][0], "pos" if table[1][1] == "neg" else "neg")],
    )
    prepared = prepare_texts(TextSource((file,)))
    told = {entry["reason"]: entry["count"] for entry in prepared.reading["dropped"]}
    assert told == {"duplicate": 1, "contradictory duplicate": 2}
    assert prepared.reading["rows"] == 62
    assert prepared.reading["kept"] == 59
    parts = [set(prepared.texts[name]) for name in ("train", "valid", "test")]
    assert sum(map(len, parts)) == len(set.union(*parts))
    seen = {word for text in parts[0] for word in text.lower().replace("<", " ").split()}
    assert {word for word in prepared.vocabulary.words if word.startswith("w")} <= seen


def test_leaks_between_given_files_are_reported_and_kept(tmp_path):
    table = rows(80)
    files = [
        write(tmp_path / name, part)
        for name, part in (("a", table[:60]), ("b", table[50:70]), ("c", table[66:]))
    ]
    prepared = prepare_texts(TextSource((files[0],), (files[1],), (files[2],), format="csv"))
    assert [
        (entry["count"], "valid" in entry["reason"]) for entry in prepared.reading["leaks"]
    ] == [(10, True)]
    assert len(prepared.valid) == 20


def test_stored_corpora_open_as_they_were(tmp_path):
    source = TextSource((write(tmp_path / "a.csv", rows(60)),))
    prepared = prepare_texts(source)
    place = prepared.save(tmp_path / "corpus")
    parts = text_parts(str(place))
    assert (parts.train, parts.test, parts.hash) == (prepared.train, prepared.test, prepared.hash)
    assert parts.sentences == prepared.texts["train"]
    assert prepared.save(tmp_path / "corpus") == place
    assert prepare_in(source, tmp_path)[1] == str(place)


def test_a_stream_prepares_what_reading_at_once_does(tmp_path):
    table = rows(150)
    twice = [*table[:90], table[3], (table[4][0], "pos"), ("", "neg")]
    files = [
        write(tmp_path / name, part)
        for name, part in (("a", twice), ("b", table[80:110]), ("c", table[110:]))
    ]
    source = TextSource((files[0],), (files[1],), (files[2],), format="csv", max_words=40)
    once, streamed = (
        prepare_texts(source),
        prepare_texts(source, folder=tmp_path / "corpus", stream_bytes=0),
    )
    assert (streamed.train, streamed.valid, streamed.test) == (once.train, once.valid, once.test)
    assert (streamed.hash, streamed.reading) == (once.hash, once.reading)
    assert streamed.vocabulary.counts.tolist() == once.vocabulary.counts.tolist()
    assert {name: tuple(texts) for name, texts in streamed.texts.items()} == once.texts
    parts = text_parts(str(streamed.save(tmp_path / "corpus")))
    assert (parts.train, tuple(parts.sentences)) == (once.train, once.texts["train"])
    assert (
        prepare_texts(source, folder=tmp_path / "corpus").place is None
    )  # small files are read at once


@pytest.mark.parametrize("given", [(), ("test",)])
@pytest.mark.parametrize("distinct", [True, False])
def test_a_file_is_split_alike_at_once_and_in_a_stream(tmp_path, monkeypatch, given, distinct):
    monkeypatch.setattr(_prepare, "index_stream", partial(index_stream, block=16))
    table = [(f"{text} {number}", label) for number, (text, label) in enumerate(rows(300))]
    # Equal texts, some of them with both labels.
    table += [(f" {text}  ", label) for text, label in table[:40]]
    table += [(text, {"pos": "neg", "neg": "pos"}[label]) for text, label in table[40:50]]
    file = write(tmp_path / "a.csv", table)
    test = (write(tmp_path / "t.csv", rows(30, seed=7)),) if given else ()
    hashes = set()
    for seed in (0, 1):
        source = TextSource((file,), test=test, split_seed=seed, distinct=distinct)
        once = prepare_texts(source)
        streamed = prepare_texts(source, folder=tmp_path / "corpus", stream_bytes=0)
        assert once.place is None
        assert streamed.place is not None
        assert (streamed.hash, streamed.reading) == (once.hash, once.reading)
        assert {name: tuple(texts) for name, texts in streamed.texts.items()} == once.texts
        assert once.reading["kept"] == (280 + 10 if distinct else 350) + 30 * len(test)
        hashes.add(once.hash)
        own = [{" ".join(text.split()) for text in once.texts[name]} for name in ("train", "valid")]
        assert not set.intersection(*own)
    assert len(hashes) == 2


def test_three_files_of_a_claim_are_taken_as_they_are(tmp_path):
    place = write_folder(tmp_path / "made")
    lines = sentences(120, 0)
    (place / "made.up.train").write_text("\n".join([*lines, lines[0], lines[1]]), "utf-8")
    (place / "made.up.test").write_text("\n".join([*sentences(60, 2), lines[0]]), "utf-8")
    text_parts.cache_clear()
    parts = text_parts(str(place))
    assert len(parts.train) == 122
    assert any("test texts that are training texts too" in leak for leak in parts.leaks)
    text_parts.cache_clear()


def test_a_split_made_in_a_stream_is_opened_again_and_made_anew_for_changed_files(tmp_path):
    file = write(tmp_path / "a.csv", rows(200))
    told: list[int] = []
    first = prepare_texts(
        TextSource((file,)), folder=tmp_path / "corpus", stream_bytes=0, on_rows=told.append
    )
    assert [len(part) for part in (first.train, first.valid, first.test)] == [160, 20, 20]
    assert "hash of each text" in first.reading["split"]
    again = prepare_texts(
        TextSource((file,)), folder=tmp_path / "corpus", stream_bytes=0, on_rows=told.append
    )
    assert (again.hash, again.reading, told) == (first.hash, first.reading, [200])
    write(tmp_path / "a.csv", rows(220, seed=1))
    changed = prepare_texts(
        TextSource((file,)), folder=tmp_path / "corpus", stream_bytes=0, on_rows=told.append
    )
    assert told == [200, 220]
    assert changed.hash != first.hash


def test_validation_files_need_test_files():
    with pytest.raises(AttnlabError, match="validation files without"):
        TextSource(("a.csv",), valid=("b.csv",))


def test_the_source_is_read_as_it_stands(folder):
    parts = text_parts(folder)
    lines = [line.split() for line in sentences(120, 0)]
    expected = Corpus.from_tokens([line[1:-1] for line in lines], [line[0] for line in lines])
    assert parts.train == expected
    assert parts.sentences[3] == " ".join(lines[3][1:])
    assert parts.test.vocabulary == parts.train.vocabulary
    assert not parts.is_sst2


def test_one_file_has_a_fixed_split(tmp_path):
    file = tmp_path / "all.txt"
    file.write_text("\n".join(sentences(200, 5)), "utf-8")
    parts = text_parts(str(file))
    assert [len(part) for part in (parts.train, parts.valid, parts.test)] == [160, 20, 20]
    text_parts.cache_clear()
    assert text_parts(str(file)).hash == parts.hash


def test_rotten_tomatoes_are_split_and_their_absence_is_told(monkeypatch):
    lines = [line.split(" ", 1) for line in sentences(100, 1)]
    made = Texts.of(
        [text for _, text in lines],
        ["negative" if label == "0" else "positive" for label, _ in lines],
    )
    monkeypatch.setattr(_prepare, "load_movie_reviews", lambda source: made)
    text_parts.cache_clear()
    assert [
        len(part)
        for part in (text_parts("rotten-tomatoes").train, text_parts("rotten-tomatoes").test)
    ] == [80, 10]
    monkeypatch.undo()
    monkeypatch.setattr(_movies, "_PACKAGE", "a-package-that-nobody-has")
    text_parts.cache_clear()
    with pytest.raises(MissingData, match=r"attnlab\[data\]"):
        text_parts("rotten-tomatoes")
    text_parts.cache_clear()


def test_a_folder_must_say_which_file_is_which(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "other.train").write_text("1 a\n0 b\n")
    with pytest.raises(
        AttnlabError,
        match=r"one file with 'train' in its name.* found 2: made.up.train, other.train",
    ):
        text_parts(str(tmp_path))
    (tmp_path / "other.train").unlink()
    (tmp_path / "made.up.dev").unlink()
    with pytest.raises(
        AttnlabError, match=r"'dev' or 'valid'.* found 0: made.up.test, made.up.train"
    ):
        text_parts(str(tmp_path))
