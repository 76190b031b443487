"""Texts in a stream against the same texts in memory; splits, interruptions, damage."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import (
    Corpus,
    StoredTexts,
    Streamed,
    Tokenizer,
    Vocabulary,
    drop_duplicates,
    index_stream,
    index_texts,
    leaks,
    read_texts,
)
from attnlab.data import _corpus_files as corpus_files
from attnlab.data import _stream as stream
from attnlab.data._stream_parts import first_equal
from attnlab.data._stream_spool import Spool
from attnlab.data._texts import text_key

ODD = ("Ärger im Kino", "👍🏽 fine", "don't  go", "3.5 stars, so-so", "!!!")
THREE = {"train": 0.8, "valid": 0.1, "test": 0.1}
cut_texts: list[str] = []


def counting_words(text: str) -> list[str]:
    """A tokeniser that remembers what it was given."""
    cut_texts.append(text)
    return text.lower().split()


def table(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Texts of some words, a few of them twice, a few of them twice with different labels, a few of
    no use.
    """
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        words = [f"w{w}" for w in (rng.pareto(1.0, rng.integers(1, 9)) * 5).astype(int)]
        found.append(
            (
                " ".join([*words, ODD[k % 50]] if k % 50 < len(ODD) else words),
                ("pos", "neg", "1.0")[k % 3],
            )
        )
    found += [
        (found[3][0] + " ", found[3][1]),
        (f" {found[4][0]}", "another"),
        ("", "pos"),
        ("unlabelled", " "),
    ]
    return found


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    """The rows in the format of the file's ending."""
    name = path.name.removesuffix(".gz")
    if name.endswith("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts, labels = zip(*rows, strict=True)
        pq.write_table(pa.table({"text": texts, "label": labels}), path)
        return path
    with (
        gzip.open(path, "wt", encoding="utf-8")
        if path.suffix == ".gz"
        else open(path, "w", encoding="utf-8") as file
    ):
        if name.endswith("jsonl"):
            file.writelines(
                json.dumps({"text": text, "label": label}) + "\n" for text, label in rows
            )
        elif name.endswith(".txt"):
            file.writelines(f"{label or '?'} {text}\n" for text, label in rows)
        else:
            csv.writer(file, delimiter="\t" if name.endswith("tsv") else ",").writerows(
                [("text", "label"), *rows]
            )
    return path


def without_strange(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(text, label) for text, label in rows if label != "another"]


def same(one: Corpus, other: Corpus) -> None:
    for name in ("offsets", "words", "counts", "labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.vocabulary == other.vocabulary
    assert one.classes == other.classes
    assert one.content_hash == other.content_hash


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "csv.gz"])
@pytest.mark.parametrize("limits", [{}, {"min_count": 2, "max_size": 30}])
def test_a_stream_gives_what_reading_at_once_gives(tmp_path, ending, limits, monkeypatch):
    monkeypatch.setattr(stream, "_INDEXED", 37)
    files = {
        "train": [
            write(tmp_path / f"a.{ending}", table(200)),
            write(tmp_path / f"b.{ending}", table(90, seed=1)),
        ],
        "valid": [write(tmp_path / f"v.{ending}", without_strange(table(40, seed=2)))],
        "test": [write(tmp_path / f"t.{ending}", without_strange(table(60)))],
    }
    made = index_stream(files, tmp_path / "made", block=50, **limits)

    whole = drop_duplicates(read_texts(files["train"]))
    texts = {
        "train": whole,
        **{part: read_texts(files[part], classes=whole.classes) for part in ("valid", "test")},
    }
    vocabulary = Vocabulary.of(whole.texts, **limits)
    assert made.vocabulary.words == vocabulary.words
    assert made.vocabulary.counts.tolist() == vocabulary.counts.tolist()
    assert made.vocabulary.left_out == vocabulary.left_out
    place = made.move(tmp_path / "moved")
    for name, part in made.parts.items():
        indexed = index_texts(
            texts[name].texts, texts[name].labels, vocabulary, classes=whole.classes
        )
        same(part.corpus, indexed.corpus)
        same(Corpus.open(place / name), indexed.corpus)
        assert part.dropped == texts[name].dropped
        assert part.label_values == texts[name].label_values
        assert (part.names, part.formats) == (texts[name].names, texts[name].formats)
        assert part.file_counts == texts[name].file_counts
        assert (part.known, part.unknown, part.unknown_share) == (
            indexed.known,
            indexed.unknown,
            indexed.unknown_share,
        )
        assert part.wordless.count == len(indexed.wordless)
        assert part.wordless.examples == tuple(
            texts[name].example(int(i)) for i in indexed.wordless[:3]
        )
        assert list(StoredTexts(place, name)) == [texts[name].texts[i] for i in indexed.kept]
        if name != "train":
            found = leaks(whole, texts[name])
            assert part.leaks is not None
            assert (part.leaks.count, part.leaks.share, part.leaks.examples) == (
                found.count,
                found.share,
                found.examples,
            )
    assert made.parts["test"].leaks.count > 0  # pyright: ignore[reportOptionalMemberAccess]
    assert sorted(path.name for path in place.iterdir()) == ["test", "texts.bin", "train", "valid"]


def test_lines_are_streamed_too(tmp_path):
    file = write(tmp_path / "lines.txt", [(f"film w{i} w{i % 7}", str(i % 2)) for i in range(40)])
    made = index_stream({"train": [file]}, tmp_path / "made", format="lines")
    whole = drop_duplicates(read_texts(file, format="lines"))
    same(
        made.parts["train"].corpus,
        index_texts(whole.texts, whole.labels, Vocabulary.of(whole.texts)).corpus,
    )


def parts_of(made: Streamed, folder: Path) -> dict[str, list[str]]:
    place = made.move(folder)
    return {name: list(StoredTexts(place, name)) for name in made.parts}


def test_the_split_is_even_in_every_class_and_a_matter_of_the_text_alone(tmp_path):
    rows = [(f"w{i} w{i // 2} film", "ab"[i % 2]) for i in range(400)] + [
        (f"rare {i}", "c") for i in range(3)
    ]
    one = index_stream(
        {"train": [write(tmp_path / "a.csv", rows)]}, tmp_path / "one", fractions=THREE
    )
    counts = {name: Counter(part.corpus.labels.tolist()) for name, part in one.parts.items()}
    assert counts == {
        "train": {0: 160, 1: 160, 2: 1},
        "valid": {0: 20, 1: 20, 2: 1},
        "test": {0: 20, 1: 20, 2: 1},
    }
    turned = [(f"  {text} ", label) for text, label in rows[::-1]]
    other = index_stream(
        {"train": [write(tmp_path / "b.jsonl", turned)]}, tmp_path / "two", fractions=THREE, block=7
    )
    drawn = index_stream(
        {"train": [tmp_path / "a.csv"]}, tmp_path / "three", fractions=THREE, seed=1
    )
    sets = [
        {
            name: {text.strip() for text in texts}
            for name, texts in parts_of(made, tmp_path / f"moved{k}").items()
        }
        for k, made in enumerate((one, other, drawn))
    ]
    assert sets[0] == sets[1]
    assert sets[0] != sets[2]
    assert len(set.union(*sets[0].values())) == len(rows)


def test_first_equal_is_a_dictionarys():
    texts = [f"t{i}" for i in np.random.default_rng(0).integers(0, 300, 1000)]
    keys = np.frombuffer(b"".join(map(text_key, texts)), np.uint64).reshape(-1, 2)
    first: dict[str, int] = {}
    expected = [first.setdefault(text, i) for i, text in enumerate(texts)]
    for at_once in (50, 10_000):
        assert first_equal(keys, at_once).tolist() == expected


class Stop(Exception):
    """Instead of a kill."""


def interrupted(files, folder, after: int, monkeypatch) -> bool:
    """Index until so many entries of the journals; whether that was before the end."""
    left = [after]
    commit = Spool.commit

    def counted(self, state):
        commit(self, state)
        left[0] -= 1
        if not left[0]:
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(Spool, "commit", counted)
        try:
            index_stream(files, folder, fractions=THREE, block=64, tokenizer=tokenizer())
        except Stop:
            return True
    return False


def tokenizer() -> Tokenizer:
    return Tokenizer.from_function(counting_words)


def test_an_interrupted_stream_goes_on_at_its_last_whole_block(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "_INDEXED", 100)
    files = {
        "train": [
            write(tmp_path / "a.csv", table(300)),
            write(tmp_path / "b.parquet", table(150, seed=3)),
        ]
    }
    undisturbed = index_stream(files, tmp_path / "whole", fractions=THREE, tokenizer=tokenizer())
    for after in range(1, 20):
        folder = tmp_path / f"stopped{after}"
        cut_texts.clear()
        if not interrupted(files, folder, after, monkeypatch):
            break
        for name in ("tokens", "texts"):
            with open(folder / "spool" / name, "ab") as file:
                file.write(b"half a block that was never entered")
        again = index_stream(files, folder, fractions=THREE, block=64, tokenizer=tokenizer())
        taken = sum(value.count for value in again.parts["train"].label_values)
        assert len(cut_texts) == taken  # every row was cut into words once
        for name, part in again.parts.items():
            same(part.corpus, undisturbed.parts[name].corpus)
            assert part.dropped == undisturbed.parts[name].dropped
            assert part.label_values == undisturbed.parts[name].label_values
            assert part.file_counts == undisturbed.parts[name].file_counts
    else:
        pytest.fail("the stream has more journal entries than expected")
    assert after > 10


def test_a_changed_file_begins_anew(tmp_path, monkeypatch):
    file = write(tmp_path / "a.csv", table(300))
    assert interrupted({"train": [file]}, tmp_path / "made", 3, monkeypatch)
    write(file, table(260, seed=5))
    made = index_stream(
        {"train": [file]}, tmp_path / "made", fractions=THREE, block=64, tokenizer=tokenizer()
    )
    fresh = index_stream(
        {"train": [file]}, tmp_path / "fresh", fractions=THREE, tokenizer=tokenizer()
    )
    same(made.parts["train"].corpus, fresh.parts["train"].corpus)


def test_a_spool_that_lost_bytes_begins_anew(tmp_path, monkeypatch):
    file = write(tmp_path / "a.csv", table(300))
    assert interrupted({"train": [file]}, tmp_path / "made", 3, monkeypatch)
    spooled = tmp_path / "made" / "spool" / "tokens"
    spooled.write_bytes(spooled.read_bytes()[:-8])
    made = index_stream(
        {"train": [file]}, tmp_path / "made", fractions=THREE, block=64, tokenizer=tokenizer()
    )
    fresh = index_stream(
        {"train": [file]}, tmp_path / "fresh", fractions=THREE, tokenizer=tokenizer()
    )
    same(made.parts["train"].corpus, fresh.parts["train"].corpus)


@pytest.mark.parametrize("trusted", [0, 2**26])
def test_a_truncated_mapped_corpus_is_refused_in_words(tmp_path, monkeypatch, trusted):
    monkeypatch.setattr(corpus_files, "TRUSTED", trusted)
    made = index_stream(
        {"train": [write(tmp_path / "a.csv", table(300))]}, tmp_path / "made", fractions=THREE
    )
    place = made.move(tmp_path / "moved") / "train"
    same(Corpus.open(place), made.parts["train"].corpus)
    words = place / "words.npy"
    whole = words.read_bytes()
    words.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(
        AttnlabError, match=r"words.npy has \d+ bytes, expected \d+: it was truncated or changed"
    ):
        Corpus.open(place)
    words.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(AttnlabError, match=r"words.npy was changed after it was written"):
        Corpus.open(place)


def test_a_trusted_corpus_is_not_read_and_its_names_are_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_files, "TRUSTED", 0)
    made = index_stream({"train": [write(tmp_path / "a.csv", table(100))]}, tmp_path / "made")
    place = made.move(tmp_path / "moved") / "train"
    with monkeypatch.context() as patch:
        patch.setattr(
            corpus_files, "_checksum", lambda path: pytest.fail(f"{path} was read through")
        )
        opened = Corpus.open(place)
    assert (opened.content_hash, len(opened)) == (
        made.parts["train"].corpus.content_hash,
        len(opened.labels),
    )
    assert opened.subset([2, 0]) == made.parts["train"].corpus.subset([2, 0])
    record = json.loads((place / "corpus.json").read_text())
    record["classes"] = record["classes"][::-1]
    (place / "corpus.json").write_text(json.dumps(record))
    with pytest.raises(AttnlabError, match=r"names in corpus.json were changed"):
        Corpus.open(place)


def test_what_cannot_be_used_is_refused_in_words(tmp_path):
    rows = [(f"film {i}", "ab"[i % 2]) for i in range(20)]
    good = write(tmp_path / "good.csv", rows)
    cases = {
        "all 20 rows have the same label 'a'": {
            "train": [write(tmp_path / "one.csv", [(t, "a") for t, _ in rows])]
        },
        "different labels": {"train": [write(tmp_path / "many.csv", [(t, t) for t, _ in rows])]},
        "no row with text and label: 2 empty": {
            "train": [write(tmp_path / "none.csv", [("", "a"), ("", "b")])]
        },
        r"row 5: the label 'z' is not one of the classes 'a', 'b'": {
            "train": [good],
            "test": [write(tmp_path / "z.csv", [*rows[:3], ("what", "z")])],
        },
        "there is no such file": {"train": [good, tmp_path / "gone.csv"]},
        "occur with several labels": {
            "train": [write(tmp_path / "both.csv", [("x y", "a"), ("x y", "b")])]
        },
        "expected training files": {"test": [good]},
    }
    for message, files in cases.items():
        with pytest.raises(AttnlabError, match=message):
            index_stream(files, tmp_path / "made")
    with pytest.raises(
        AttnlabError, match=r"class 'c' has 2 different text\(s\), too few for 3 parts"
    ):
        index_stream(
            {"train": [write(tmp_path / "c.csv", [*rows, ("x", "c"), ("y", "c")])]},
            tmp_path / "made",
            fractions=THREE,
        )
    with pytest.raises(AttnlabError, match="has no stored texts"):
        StoredTexts(tmp_path, "train")


def test_a_wrong_column_is_found_before_all_of_it_is_read(tmp_path):
    file = write(tmp_path / "a.csv", [(f"film {i}", f"id{i}") for i in range(6000)])
    read: list[int] = []
    with pytest.raises(AttnlabError, match="2000 rows have 2000 different labels"):
        index_stream({"train": [file]}, tmp_path / "made", block=2000, on_rows=read.append)
    assert read == [2000]
