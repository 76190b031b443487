import json

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import Corpus


@pytest.fixture
def corpus() -> Corpus:
    rng = np.random.default_rng(0)
    sentences = [[f"w{i}" for i in rng.integers(0, 40, rng.integers(1, 9))] for _ in range(60)]
    return Corpus.from_tokens([*sentences, ["é", "\ud800"]], [i % 3 for i in range(61)])


def test_a_corpus_comes_back_mapped_into_memory(tmp_path, corpus):
    folder = corpus.save(tmp_path / "new" / "folder")
    opened = Corpus.open(folder)
    assert opened == corpus
    assert opened.vocabulary == corpus.vocabulary
    assert opened.classes == corpus.classes
    for name in ("offsets", "words", "counts", "labels"):
        array, base = getattr(opened, name), getattr(opened, name)
        while base is not None and not isinstance(base, np.memmap):
            base = base.base
        assert isinstance(base, np.memmap)
        assert array.dtype == getattr(corpus, name).dtype
        assert not array.flags.writeable
    assert opened.subset([3, 1]) == corpus.subset([3, 1])
    assert sorted(path.name for path in folder.iterdir()) == [
        "corpus.json",
        "counts.npy",
        "labels.npy",
        "offsets.npy",
        "words.npy",
    ]


def test_saving_twice_is_allowed_and_overwriting_is_not(tmp_path, corpus):
    corpus.save(tmp_path)
    assert corpus.save(tmp_path) == tmp_path
    with pytest.raises(AttnlabError, match="holds another corpus"):
        corpus.subset([0, 1, 2]).save(tmp_path)
    assert Corpus.open(tmp_path) == corpus


def cut(path):
    path.write_bytes(path.read_bytes()[:-4])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-4] ^= 1
    path.write_bytes(bytes(content))


def edit(**changes):
    def change(path):
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return change


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("words.npy", cut, r"words.npy has \d+ bytes, expected \d+: it was truncated or changed"),
        ("words.npy", flip, r"words.npy was changed after it was written"),
        ("labels.npy", lambda path: path.unlink(), r"labels.npy is missing"),
        ("corpus.json", lambda path: path.unlink(), "holds no corpus"),
        ("corpus.json", cut, "is not valid JSON"),
        ("corpus.json", lambda path: path.write_text("[]"), "is not a JSON object"),
        ("corpus.json", edit(schema=99), "schema 99; expected 'attnlab.Corpus' and 1"),
        ("corpus.json", edit(kind="other"), "kind 'other'"),
        ("corpus.json", edit(classes=["a", "b", "c"]), "names in corpus.json were changed"),
        ("corpus.json", edit(vocabulary=None), "vocabulary is not a list of names"),
        ("corpus.json", edit(files={}), "expected None"),
    ],
)
def test_damage_is_refused_in_words(tmp_path, corpus, name, damage, message):
    damage(corpus.save(tmp_path) / name)
    with pytest.raises(AttnlabError, match=message):
        Corpus.open(tmp_path)


def test_an_array_of_another_kind_is_refused_even_with_its_checksum(tmp_path, corpus):
    import hashlib

    corpus.save(tmp_path)
    path = tmp_path / "words.npy"
    np.save(path, corpus.words.astype(np.float64))
    record = json.loads((tmp_path / "corpus.json").read_text())
    record["files"]["words.npy"] = {
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    (tmp_path / "corpus.json").write_text(json.dumps(record))
    with pytest.raises(AttnlabError, match="type float64; expected one axis of int32"):
        Corpus.open(tmp_path)
