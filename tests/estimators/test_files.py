import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from attnlab._errors import AttnlabError
from attnlab._json import checksum_of
from attnlab.data import Tokenizer
from attnlab.estimators import AttentionClassifier, load_classifier
from tests.estimators.cases import topic_texts

TEXTS, LABELS = topic_texts(60)
QUICK: dict[str, Any] = {"steps": 20, "step_size": 0.1, "batch_size": None, "early_stopping": False}


def split_words(text: str) -> list[str]:
    return text.split()


def hidden_split() -> Callable[[str], list[str]]:
    return lambda text: text.split()


@pytest.fixture(scope="module")
def fitted() -> AttentionClassifier:
    settings = {"head": "two_layer", "class_weight": {"film": 2.0}, "punctuation": True}
    return AttentionClassifier(**QUICK, **settings).fit(TEXTS, LABELS)


@pytest.fixture
def folder(fitted, tmp_path) -> Path:
    return fitted.save(tmp_path / "deep" / "model")


def test_a_model_comes_back_bit_for_bit(fitted, folder):
    loaded = load_classifier(folder)
    texts, _ = topic_texts(40, seed=3)
    assert (loaded.predict_proba([*texts, ""]) == fitted.predict_proba([*texts, ""])).all()
    assert loaded.attention(texts) == fitted.attention(texts)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.predict(texts).dtype == fitted.predict(texts).dtype
    assert (loaded.n_iter_, loaded.stop_reason_) == (fitted.n_iter_, fitted.stop_reason_)
    assert loaded.vocabulary_.counts.tolist() == fitted.vocabulary_.counts.tolist()
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]
    assert isinstance(AttentionClassifier.load(folder), AttentionClassifier)


def test_a_normaliser_comes_back(tmp_path):
    texts, labels = ["a good film", "a bad film"] * 6, ["pos", "neg"] * 6
    sparse = AttentionClassifier(steps=30, normaliser="sparsemax").fit(texts, labels)
    again = load_classifier(sparse.save(tmp_path / "sparse"))
    assert again.model_.normaliser.name == "sparsemax"
    assert (again.predict_proba(texts) == sparse.predict_proba(texts)).all()


def test_a_model_is_not_overwritten_silently(fitted, folder):
    with pytest.raises(AttnlabError, match="already holds a model"):
        fitted.save(folder)
    assert fitted.save(folder, overwrite=True) == folder


@pytest.mark.parametrize("names", [(3, 1, 2), (True, False, True)])
def test_classes_keep_their_type(tmp_path, names):
    labels = [names[("film", "music", "sport").index(label)] for label in LABELS]
    classifier = AttentionClassifier(**QUICK, class_weight={names[0]: 2.0}).fit(TEXTS, labels)
    loaded = load_classifier(classifier.save(tmp_path / "model"))
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert loaded.classes_.tolist() == classifier.classes_.tolist()
    assert loaded.get_params() == classifier.get_params()


def test_a_tokeniser_of_ones_own_is_named_and_must_be_given_again(tmp_path):
    classifier = AttentionClassifier(**QUICK, tokenizer=split_words).fit(TEXTS, LABELS)
    folder = classifier.save(tmp_path / "model")
    name = f"{__name__}:split_words"
    assert json.loads((folder / "model.json").read_text())["tokenizer"] == {"function": name}
    with pytest.raises(AttnlabError, match=f"if you trust it, give tokenizer='{name}'"):
        load_classifier(folder)
    with pytest.raises(AttnlabError, match=r"not with 'builtins:str\.split'"):
        load_classifier(folder, tokenizer="builtins:str.split")
    for given in (name, split_words):
        loaded = load_classifier(folder, tokenizer=given)
        assert (loaded.predict_proba(TEXTS) == classifier.predict_proba(TEXTS)).all()
    # These change which words there are, not the model that was trained.
    classifier.tokenizer = hidden_split()
    with pytest.raises(AttnlabError, match="has no name 'module:function'"):
        classifier.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()
    classifier.tokenizer = Tokenizer(lower=False)
    loaded = load_classifier(classifier.save(tmp_path / "third"))
    assert loaded.tokenizer == Tokenizer(lower=False)


def test_a_tokeniser_must_not_be_given_to_a_model_without(folder):
    with pytest.raises(AttnlabError, match="attnlab's own tokeniser"):
        load_classifier(folder, tokenizer="builtins:str.split")


def edit(change: Callable[[dict[str, Any]], Any], *, seals: bool = True) -> Callable[[Path], None]:
    """Change the record, and the checksum with it unless told not to."""

    def apply(folder: Path) -> None:
        record = json.loads((folder / "model.json").read_text())
        change(record)
        if seals:
            record["sha256"] = checksum_of(record)
        (folder / "model.json").write_text(json.dumps(record))

    return apply


def rewrite(change: Callable[[dict[str, np.ndarray]], Any]) -> Callable[[Path], None]:
    """Change arrays, and the checksum with them."""

    def apply(folder: Path) -> None:
        arrays = {
            name: array.copy() for name, array in load_file(folder / "model.safetensors").items()
        }
        change(arrays)
        data = save(arrays)
        (folder / "model.safetensors").write_bytes(data)
        said = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        edit(lambda record: record.update(arrays=said))(folder)

    return apply


def flip(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(bytes(content))


def cut(name: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:-3])

    return apply


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (flip, "model.safetensors was changed after it was written"),
        (cut("model.safetensors"), r"has \d+ bytes, expected \d+: it was truncated"),
        (cut("model.json"), "not valid JSON"),
        (
            edit(lambda r: r.update(n_iter=3), seals=False),
            r"model.json was changed .* edited by hand; save the model",
        ),
        (edit(lambda r: r.pop("sha256"), seals=False), "has no checksum .* older attnlab"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda folder: (folder / "model.json").unlink(), "holds no model: model.json is missing"),
        (lambda folder: (folder / "model.json").write_text("[]"), "is not a stored model"),
        (edit(lambda r: r.update(schema=99)), "has schema 99, this attnlab .* reads 1"),
        (edit(lambda r: r.update(kind="other")), "is not a stored model"),
        (edit(lambda r: r.pop("classes")), "it has no 'classes'"),
        (edit(lambda r: r["settings"].pop("head")), "settings has no 'head'"),
        (
            edit(lambda r: r["settings"].update(head=["linear"])),
            "settings.head is a list: expected fixed or linear",
        ),
        (
            edit(lambda r: r["settings"].update(class_weight=[["film"]])),
            "settings.class_weight is a list",
        ),
        (edit(lambda r: r["classes"].update(dtype="U1000000000")), "not names or numbers"),
        (edit(lambda r: r["classes"].update(dtype="f8,")), "not names or numbers"),
        (
            edit(lambda r: r["vocabulary"].update(counts=[10**30])),
            r"counts\[0\] is 10+: expected a whole number",
        ),
        (
            edit(lambda r: r["settings"].update(extra=1)),
            r"settings \['extra'\] are missing or unknown",
        ),
        (
            edit(lambda r: r["settings"].update(embedding_dim=11)),
            "the stored arrays have the shapes",
        ),
        (edit(lambda r: r["settings"].update(dtype="float64")), "of float64"),
        (edit(lambda r: r["settings"].update(head="linear")), "the stored arrays have the shapes"),
        (edit(lambda r: r["classes"]["names"].append("more")), "4 classes with 3 shares"),
        (edit(lambda r: r["classes"].update(dtype="M8[s]")), "not names or numbers"),
        (
            edit(lambda r: r["vocabulary"]["words"].reverse()),
            "not a sorted list of different words",
        ),
        (edit(lambda r: r["vocabulary"]["counts"].pop()), "words with .* counts"),
        (edit(lambda r: r.update(class_prior=[0.5, 0.5, 0.5])), "numbers that sum to one"),
        (edit(lambda r: r.update(tokenizer={"function": "os:system"})), "if you trust it"),
        (rewrite(lambda a: a["keys"].fill(np.nan)), "keys has numbers that are not finite"),
        (
            rewrite(lambda a: a.update(query=np.ones(2, np.float32))),
            "the stored arrays have the shapes",
        ),
        (rewrite(lambda a: a.pop("head.bias2")), "the stored arrays have the shapes"),
    ],
)
def test_changed_files_are_refused_in_words(folder, damage, message):
    damage(folder)
    with pytest.raises(AttnlabError, match=message):
        load_classifier(folder)
