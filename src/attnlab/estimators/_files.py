"""A trained classifier on disk: arrays as safetensors, everything else as JSON; never pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from numpy import ndarray
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import attnlab
from attnlab._errors import AttnlabError
from attnlab._places import is_file, make_folder, place, read_bytes
from attnlab._whole import write_whole
from attnlab.estimators._inputs import as_tokenizer
from attnlab.models import AbstractHead, LinearHead, TwoLayerHead, WordAttention, make_normaliser
from attnlab.tasks import Tokenizer, Vocabulary

if TYPE_CHECKING:
    from attnlab.estimators._classifier import AttentionClassifier

SCHEMA = 1
KIND = "attnlab.AttentionClassifier"
_RECORD, _ARRAYS = "model.json", "model.safetensors"
_HEADS: dict[str, type[AbstractHead]] = {"linear": LinearHead, "fixed": LinearHead, "two_layer": TwoLayerHead}
_HEAD_ARRAYS = {LinearHead: ("weight",), TwoLayerHead: ("weight1", "bias1", "weight2", "bias2")}


def write_model(classifier: AttentionClassifier, folder: str | Path, *, overwrite: bool) -> Path:
    """Write arrays first and the record last, each under another name until it is whole."""
    folder = place(folder)
    if is_file(folder / _RECORD) and not overwrite:
        raise AttnlabError(f"{folder} holds a model already: choose another folder, or say overwrite=True")
    model = classifier.model_
    arrays = {name: getattr(model, name) for name in ("embeddings", "keys", "query")}
    arrays |= {f"head.{name}": getattr(model.head, name) for name in _HEAD_ARRAYS[type(model.head)]}
    data = save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    record = {
        "kind": KIND,
        "schema": SCHEMA,
        "attnlab": attnlab.__version__,
        "arrays": {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()},
        "settings": _settings(classifier),
        "tokenizer": as_tokenizer(classifier.tokenizer, classifier.lower, classifier.punctuation).record(),
        "classes": {"dtype": classifier.classes_.dtype.str, "names": classifier.classes_.tolist()},
        "class_prior": classifier.class_prior_.tolist(),
        "n_iter": classifier.n_iter_,
        "stop_reason": classifier.stop_reason_,
        "trained": list(model.trained),
        "vocabulary": {
            "words": list(classifier.vocabulary_.words),
            "counts": classifier.vocabulary_.counts.tolist(),
            "left_out": classifier.vocabulary_.left_out,
        },
    }
    text = json.dumps(record, indent=1)
    make_folder(folder)
    write_whole(folder / _ARRAYS, data)
    write_whole(folder / _RECORD, text.encode())
    return folder


def _settings(classifier: AttentionClassifier) -> dict[str, Any]:
    """The constructor's arguments as JSON has them; the tokeniser is stored apart."""
    settings = classifier.get_params(deep=False)
    del settings["tokenizer"]
    weights = settings["class_weight"]
    if isinstance(weights, Mapping):
        settings["class_weight"] = [[_plain(name), float(weight)] for name, weight in weights.items()]
    if not isinstance(settings["random_state"], int | np.integer):
        settings["random_state"] = None  # a generator is not the same after use
    return {name: _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def read_model(folder: str | Path, tokenizer: str | Callable[[str], Iterable[str]] | None) -> dict[str, Any]:
    """The attributes of a stored classifier, and its ``settings``; whatever does not fit is refused in words."""
    folder = place(folder)
    record = _record(folder / _RECORD)
    try:
        settings = {"normaliser": "softmax"} | dict(record["settings"])  # the only one, before it had a name
        if isinstance(settings["class_weight"], list):
            settings["class_weight"] = dict(settings["class_weight"])
        settings["tokenizer"] = _tokenizer(folder, record["tokenizer"], settings, tokenizer)
        words = record["vocabulary"]
        vocabulary = Vocabulary(tuple(words["words"]), np.array(words["counts"], np.int64), int(words["left_out"]))
        classes = _classes(record["classes"])
        prior = np.array(record["class_prior"], np.float64)
        trained = tuple(record["trained"])
        _check_names(vocabulary, classes, prior)
        model = _model(_arrays(folder / _ARRAYS, record["arrays"]), settings, len(vocabulary), len(classes), trained)
        return {
            "settings": settings,
            "classes_": classes,
            "vocabulary_": vocabulary,
            "class_prior_": prior,
            "n_iter_": int(record["n_iter"]),
            "stop_reason_": str(record["stop_reason"]),
            "model_": model,
        }
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, AttnlabError):
            raise
        raise AttnlabError(f"{folder / _RECORD} was changed: {type(error).__name__} {error}; save it anew") from error


def _classes(stored: Mapping[str, Any]) -> ndarray:
    """The classes in the type that they were given in: names, numbers or truth values."""
    kind = np.dtype(stored["dtype"])
    if kind.kind not in "OUbiuf" or not all(isinstance(name, str | int | float) for name in stored["names"]):
        raise AttnlabError(f"the stored classes {stored} are no names or numbers: model.json was changed")
    return np.array(stored["names"], kind)


def _record(path: Path) -> dict[str, Any]:
    if not is_file(path):
        raise AttnlabError(f"{path.parent} holds no model: {path.name} is missing")
    try:
        record = json.loads(read_bytes(path))
    except ValueError as error:
        raise AttnlabError(f"{path} is no JSON ({error}): it is cut off or was changed") from error
    found = (record.get("kind"), record.get("schema")) if isinstance(record, dict) else (None, None)
    if found != (KIND, SCHEMA):
        raise AttnlabError(
            f"{path} has kind {found[0]!r} and schema {found[1]!r}; expected {KIND!r} and {SCHEMA}: it was written by "
            "another version of attnlab, or by something else"
        )
    return record


def _tokenizer(folder: Path, stored: Mapping[str, Any], settings: Mapping[str, Any], given: Any) -> Any:
    """The user's own where the model was trained with one: a file must not choose which function is called."""
    name = stored.get("function")
    if name is None:
        if given is not None:
            raise AttnlabError(f"{folder}: the model was trained with attnlab's own tokeniser; give no other")
        plain = {name: settings[name] for name in ("lower", "punctuation")}
        return None if dict(stored) == plain else Tokenizer.from_record(stored)
    if given is None:
        raise AttnlabError(
            f"{folder}: the model was trained with the tokeniser {name!r}; if you trust it, say tokenizer={name!r} "
            "(--tokenizer)"
        )
    if as_tokenizer(given, True, False).name != name:
        raise AttnlabError(f"{folder}: the model was trained with the tokeniser {name!r}, not with {given!r}")
    return given


def _arrays(path: Path, said: Mapping[str, Any]) -> dict[str, ndarray]:
    if not is_file(path):
        raise AttnlabError(f"{path} is missing: the stored model is not whole")
    data = read_bytes(path)
    if len(data) != said["bytes"]:
        raise AttnlabError(f"{path} has {len(data)} bytes, expected {said['bytes']}: it is cut off or was changed")
    if hashlib.sha256(data).hexdigest() != said["sha256"]:
        raise AttnlabError(f"{path} was changed after it was written: its checksum differs")
    try:
        arrays = load_arrays(data)
    except SafetensorError as error:
        raise AttnlabError(f"{path} is no safetensors file: {error}") from error
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise AttnlabError(f"{path}: {name} has numbers that are not finite")
    return arrays


def _model(
    arrays: dict[str, ndarray], settings: Mapping[str, Any], words: int, classes: int, trained: tuple[Any, ...]
) -> WordAttention:
    kind, dim, hidden = _HEADS[settings["head"]], settings["dim"], settings["hidden"]
    shapes = {"embeddings": (words, dim), "keys": (words, 1), "query": (1,)}
    if kind is LinearHead:
        shapes |= {"head.weight": (dim, classes)}
    else:
        shapes |= {"head.weight1": (dim, hidden), "head.bias1": (hidden,), "head.weight2": (hidden, classes)}
        shapes |= {"head.bias2": (classes,)}
    found = {name: array.shape for name, array in arrays.items()}
    if found != shapes or {array.dtype for array in arrays.values()} != {np.dtype(settings["dtype"])}:
        raise AttnlabError(f"the stored arrays have the shapes {found}; expected {shapes} of {settings['dtype']}")
    on_device = {name: jnp.asarray(array) for name, array in arrays.items()}
    head = kind(*(on_device[f"head.{name}"] for name in _HEAD_ARRAYS[kind]))
    normaliser = settings["normaliser"] if settings["pooling"] == "attention" else "softmax"
    embeddings, keys, query = (on_device[name] for name in ("embeddings", "keys", "query"))
    return WordAttention(embeddings, keys, query, head, trained, make_normaliser(normaliser))


def _check_names(vocabulary: Vocabulary, classes: ndarray, prior: ndarray) -> None:
    words = vocabulary.words
    if not all(isinstance(word, str) for word in words) or list(words) != sorted(set(words)):
        raise AttnlabError("the stored vocabulary is no sorted list of different words: model.json was changed")
    if len(vocabulary.counts) != len(words) or len(classes) < 2 or prior.shape != classes.shape:
        raise AttnlabError(
            f"model.json has {len(words)} words with {len(vocabulary.counts)} counts, and {len(classes)} classes with "
            f"{len(prior)} shares: it was changed"
        )
    if not (np.isfinite(prior).all() and (prior >= 0).all() and abs(prior.sum() - 1) < 1e-6):
        raise AttnlabError(f"the stored shares of the classes are {prior.tolist()}: expected numbers that sum to one")
