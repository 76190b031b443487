"""A trained classifier on disk: arrays as safetensors, everything else as JSON; never pickle."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from numpy import ndarray
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

import attnlab
from attnlab._errors import AttnlabError
from attnlab._json import seal, unseal
from attnlab._places import is_file, make_folder, place, read_bytes, write_atomically
from attnlab.data import Tokenizer, Vocabulary
from attnlab.estimators._inputs import as_tokenizer
from attnlab.models import AbstractHead, LinearHead, TwoLayerHead, WordAttention, make_normaliser

if TYPE_CHECKING:
    from attnlab.estimators._classifier import AttentionClassifier

SCHEMA = 1
KIND = "attnlab.AttentionClassifier"
_AGAIN = "save the model again, or run `attnlab study` again"
_MOST_BYTES = 2**28  # of the names of all classes
_RECORD, _ARRAYS = "model.json", "model.safetensors"
_HEADS: dict[str, type[AbstractHead]] = {
    "linear": LinearHead,
    "fixed": LinearHead,
    "two_layer": TwoLayerHead,
}
_HEAD_ARRAYS = {LinearHead: ("weight",), TwoLayerHead: ("weight1", "bias1", "weight2", "bias2")}

_NAME = (str, bool, int, float)
_SIZE = range(1, 2**31)
_SETTINGS = {
    "embedding_dim": _SIZE,
    "pooling": frozenset({"attention", "mean"}),
    "normaliser": str,
    "head": frozenset(_HEADS),
    "hidden": _SIZE,
    "class_weight": (None, str, [[_NAME, float]]),
    "lower": bool,
    "punctuation": bool,
    "dtype": frozenset({"float32", "float64"}),
}
_SHAPE = {
    "arrays": {"bytes": int, "sha256": str},
    "settings": _SETTINGS,
    "tokenizer": {str: (bool, str)},
    "classes": {"dtype": str, "names": [_NAME]},
    "class_prior": [float],
    "n_iter": range(2**63),
    "stop_reason": str,
    "trained": [frozenset({"embeddings", "keys", "query", "head"})],
    "vocabulary": {"words": [str], "counts": [range(2**63)], "left_out": range(2**63)},
}


def write_model(classifier: AttentionClassifier, folder: str | Path, *, overwrite: bool) -> Path:
    """Write the arrays first and the record last, each atomically."""
    folder = place(folder)
    if is_file(folder / _RECORD) and not overwrite:
        raise AttnlabError(
            f"{folder} already holds a model: choose another folder, or give overwrite=True"
        )
    model = classifier.model_
    arrays = {name: getattr(model, name) for name in ("embeddings", "keys", "query")}
    arrays |= {f"head.{name}": getattr(model.head, name) for name in _HEAD_ARRAYS[type(model.head)]}
    data = save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    record = {
        "package": attnlab.__version__,
        "arrays": {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()},
        "settings": _settings(classifier),
        "tokenizer": as_tokenizer(
            classifier.tokenizer, classifier.lower, classifier.punctuation
        ).record(),
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
    make_folder(folder)
    write_atomically(folder / _ARRAYS, data)
    write_atomically(folder / _RECORD, seal(KIND, SCHEMA, record))
    return folder


def _settings(classifier: AttentionClassifier) -> dict[str, Any]:
    """The constructor's arguments for JSON; the tokeniser is stored separately."""
    settings = classifier.get_params(deep=False)
    del settings["tokenizer"]
    weights = settings["class_weight"]
    if isinstance(weights, Mapping):
        settings["class_weight"] = [
            [_plain(name), float(weight)] for name, weight in weights.items()
        ]
    if not isinstance(settings["random_state"], int | np.integer):
        settings["random_state"] = None  # a generator is not the same after use
    return {name: _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def read_model(
    folder: str | Path, tokenizer: str | Callable[[str], Iterable[str]] | None
) -> dict[str, Any]:
    """The attributes of a stored classifier, and its ``settings``, all checked."""
    folder = place(folder)
    path = folder / _RECORD
    if not is_file(path):
        raise AttnlabError(f"{folder} holds no model: {path.name} is missing")
    what = "a stored model"
    record = unseal(
        read_bytes(path), path, kind=KIND, schema=SCHEMA, what=what, again=_AGAIN, shape=_SHAPE
    )
    settings = dict(record["settings"])
    if isinstance(settings["class_weight"], list):
        settings["class_weight"] = dict(settings["class_weight"])
    settings["tokenizer"] = _tokenizer(folder, record["tokenizer"], settings, tokenizer)
    words = record["vocabulary"]
    vocabulary = Vocabulary(
        tuple(words["words"]), np.array(words["counts"], np.int64), words["left_out"]
    )
    classes = _classes(record["classes"])
    prior = np.array(record["class_prior"], np.float64)
    _check_names(vocabulary, classes, prior)
    arrays = _arrays(folder / _ARRAYS, record["arrays"])
    return {
        "settings": settings,
        "classes_": classes,
        "vocabulary_": vocabulary,
        "class_prior_": prior,
        "n_iter_": record["n_iter"],
        "stop_reason_": record["stop_reason"],
        "model_": _model(arrays, settings, len(vocabulary), len(classes), tuple(record["trained"])),
    }


def _classes(stored: Mapping[str, Any]) -> ndarray:
    """The classes in their original type: strings, numbers or booleans."""
    names = stored["names"]
    try:
        kind = np.dtype(stored["dtype"])
        if kind.kind not in "OUbiuf" or kind.itemsize * len(names) > _MOST_BYTES:
            raise TypeError(f"{kind} for {len(names)} classes")
        return np.array(names, kind)
    except (TypeError, ValueError, OverflowError, SyntaxError) as error:
        raise AttnlabError(
            f"the stored classes are not names or numbers ({error}): model.json was changed"
        ) from None


def _tokenizer(
    folder: Path, stored: Mapping[str, Any], settings: Mapping[str, Any], given: Any
) -> Any:
    """The tokeniser; a user-defined one must be given: a file must not choose what is called."""
    name = stored.get("function")
    if name is None:
        if given is not None:
            raise AttnlabError(
                f"{folder}: the model was trained with attnlab's own tokeniser; give no other"
            )
        plain = {name: settings[name] for name in ("lower", "punctuation")}
        return None if dict(stored) == plain else Tokenizer.from_record(stored)
    if given is None:
        raise AttnlabError(
            f"{folder}: the model was trained with the tokeniser {name!r}; if you trust it, give "
            f"tokenizer={name!r} (--tokenizer)"
        )
    if as_tokenizer(given, True, False).name != name:
        raise AttnlabError(
            f"{folder}: the model was trained with the tokeniser {name!r}, not with {given!r}"
        )
    return given


def _arrays(path: Path, written: Mapping[str, Any]) -> dict[str, ndarray]:
    if not is_file(path):
        raise AttnlabError(f"{path} is missing: the stored model is incomplete; {_AGAIN}")
    data = read_bytes(path)
    if len(data) != written["bytes"]:
        raise AttnlabError(
            f"{path} has {len(data)} bytes, expected {written['bytes']}: it was truncated or "
            f"changed; {_AGAIN}"
        )
    if hashlib.sha256(data).hexdigest() != written["sha256"]:
        raise AttnlabError(
            f"{path} was changed after it was written: its checksum differs; {_AGAIN}"
        )
    try:
        arrays = load_arrays(data)
    except Exception as error:  # of safetensors, or of NumPy where a type is not one of NumPy's
        raise AttnlabError(f"{path} is not a safetensors file ({error}); {_AGAIN}") from error
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise AttnlabError(f"{path}: {name} has numbers that are not finite")
    return arrays


def _model(
    arrays: dict[str, ndarray],
    settings: Mapping[str, Any],
    words: int,
    classes: int,
    trained: tuple[Any, ...],
) -> WordAttention:
    kind = _HEADS[settings["head"]]
    embedding_dim, hidden = settings["embedding_dim"], settings["hidden"]
    shapes = {"embeddings": (words, embedding_dim), "keys": (words, 1), "query": (1,)}
    if kind is LinearHead:
        shapes |= {"head.weight": (embedding_dim, classes)}
    else:
        shapes |= {
            "head.weight1": (embedding_dim, hidden),
            "head.bias1": (hidden,),
            "head.weight2": (hidden, classes),
        }
        shapes |= {"head.bias2": (classes,)}
    found = {name: array.shape for name, array in arrays.items()}
    if found != shapes or {array.dtype for array in arrays.values()} != {
        np.dtype(settings["dtype"])
    }:
        raise AttnlabError(
            f"the stored arrays have the shapes {found}; expected {shapes} of {settings['dtype']}"
        )
    # With its type given, an array is copied; without, JAX compiles a program for each shape.
    on_device = {name: jnp.asarray(array, array.dtype) for name, array in arrays.items()}
    head = kind(*(on_device[f"head.{name}"] for name in _HEAD_ARRAYS[kind]))
    normaliser = settings["normaliser"] if settings["pooling"] == "attention" else "softmax"
    embeddings, keys, query = (on_device[name] for name in ("embeddings", "keys", "query"))
    return WordAttention(embeddings, keys, query, head, trained, make_normaliser(normaliser))


def _check_names(vocabulary: Vocabulary, classes: ndarray, prior: ndarray) -> None:
    words = vocabulary.words
    if not all(isinstance(word, str) for word in words) or list(words) != sorted(set(words)):
        raise AttnlabError(
            "the stored vocabulary is not a sorted list of different words: model.json was changed"
        )
    if len(vocabulary.counts) != len(words) or len(classes) < 2 or prior.shape != classes.shape:
        raise AttnlabError(
            f"model.json has {len(words)} words with {len(vocabulary.counts)} counts, and "
            f"{len(classes)} classes with {len(prior)} shares: it was changed"
        )
    if not (np.isfinite(prior).all() and (prior >= 0).all() and abs(prior.sum() - 1) < 1e-6):
        raise AttnlabError(
            f"the stored shares of the classes are {prior.tolist()}: expected numbers that sum to "
            "one"
        )
