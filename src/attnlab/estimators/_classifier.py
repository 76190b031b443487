"""Attention over words as a scikit-learn classifier of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, Tokenizer, Vocabulary, index_texts
from attnlab.estimators._files import read_model, write_model
from attnlab.estimators._inputs import (
    as_labels,
    as_seed,
    as_texts,
    as_tokenizer,
    as_weights,
    hold_out,
)
from attnlab.estimators._pool import Pooled, encoded_parts, log_softmax
from attnlab.models import WordAttention


class AttentionClassifier(ClassifierMixin, BaseEstimator):
    """Classify texts by attention over words: logits = head(Σ_w a_w ν_w) with ``a = norm(s)``.

    Texts are strings, ``fit(["a fine film", …], y)``. Works with scikit-learn's tools
    (``Pipeline``, ``GridSearchCV``, ``cross_val_score``, ``learning_curve``, ``clone``).

    - ``embedding_dim``: size of the embeddings ν. ``pooling``: ``"attention"``, or ``"mean"`` with
      equal weights for all words.
    - ``normaliser``: ``"softmax"``, ``"softmax:T"``, ``"sparsemax"``, ``"entmax15"`` or ``"topK"``;
      ``attnlab advise`` recommends which to try. Normalisers other than softmax are slower,
      especially with long texts.
    - ``head``: ``"linear"``, ``"fixed"`` (drawn, not trained) or ``"two_layer"`` with ``hidden``
      units.
    - ``optimizer``: ``"adam"`` or ``"descent"``, with ``step_size`` (``None``: 0.01 and 1) and
      ``weight_decay``.
    - ``steps``: the largest number of steps; ``batch_size``: texts per step, ``None`` for all.
    - ``early_stopping``: a share ``validation_fraction`` of the texts is held out (stratified,
      equal texts on one side), and the step of the lowest validation loss is kept; training ends
      after ``patience`` fiftieths of the steps without a lower one. Nothing is held out if that
      would be fewer than 50 texts, or if a class has a single text.
    - ``class_weight``: ``None``, ``"balanced"`` or a dictionary from class to weight in the loss.
    - ``lower``, ``punctuation``, or your own ``tokenizer`` (a function text → words, or
      ``"module:function"``).
    - ``min_count``, ``max_words``: rarer words, and all but the most frequent ones, are unknown.
      Unknown words are dropped; for a text without a known word, the prediction is the classes'
      shares in training.

    After ``fit``: ``classes_``, ``vocabulary_`` (of the training texts only), ``n_iter_`` (the step
    that was kept), ``stop_reason_``, ``class_prior_``, ``model_`` (a ``WordAttention``).

    >>> texts = ["a good film", "good fun", "so good", "a bad film", "bad fun", "so bad"] * 5
    >>> classifier = AttentionClassifier(steps=200).fit(texts, (["pos"] * 3 + ["neg"] * 3) * 5)
    >>> classifier.predict(["what a good day", "bad weather"]).tolist()
    ['pos', 'neg']
    >>> [word for word, weight in classifier.attention(["such a good one"])[0] if weight > 0.5]
    ['good']
    """

    def __init__(
        self,
        *,
        embedding_dim: int = 10,
        pooling: str = "attention",
        normaliser: str = "softmax",
        head: str = "linear",
        hidden: int = 10,
        optimizer: str = "adam",
        step_size: float | None = None,
        weight_decay: float = 0.0,
        steps: int = 1000,
        batch_size: int | None = 64,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        patience: int = 10,
        class_weight: str | Mapping[Any, float] | None = None,
        lower: bool = True,
        punctuation: bool = False,
        tokenizer: str | Callable[[str], Iterable[str]] | None = None,
        min_count: int = 1,
        max_words: int | None = None,
        embedding_std: float = 1e-6,
        random_state: Any = 0,
        dtype: str = "float32",
    ):
        self.embedding_dim = embedding_dim
        self.pooling = pooling
        self.normaliser = normaliser
        self.head = head
        self.hidden = hidden
        self.optimizer = optimizer
        self.step_size = step_size
        self.weight_decay = weight_decay
        self.steps = steps
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.class_weight = class_weight
        self.lower = lower
        self.punctuation = punctuation
        self.tokenizer = tokenizer
        self.min_count = min_count
        self.max_words = max_words
        self.embedding_std = embedding_std
        self.random_state = random_state
        self.dtype = dtype

    def fit(self, X: Any, y: Any) -> AttentionClassifier:
        """Train on texts and their labels."""
        # Predicting needs neither Optax nor xarray, which take longer to import than it takes.
        from attnlab.estimators._train import fit_words, training_of

        texts = as_texts(X)
        classes, numbers = as_labels(y, len(texts))
        tokenizer, seed = (
            as_tokenizer(self.tokenizer, self.lower, self.punctuation),
            as_seed(self.random_state),
        )
        kept, held = np.arange(len(texts)), np.zeros(0, np.int64)
        if self.early_stopping:
            kept, held = hold_out(texts, numbers, self.validation_fraction, seed)
        own = [texts[i] for i in kept.tolist()]
        vocabulary = Vocabulary.of(
            own, tokenizer=tokenizer, min_count=self.min_count, max_size=self.max_words
        )
        counts = np.bincount(numbers[kept], minlength=len(classes))
        weights = as_weights(self.class_weight, classes, counts)
        names = tuple(map(str, range(len(classes))))

        def indexed(chosen: list[str], places: ndarray) -> Corpus:
            labels = [names[number] for number in numbers[places]]
            return index_texts(
                chosen, labels, vocabulary, classes=names, tokenizer=tokenizer
            ).corpus

        corpus = indexed(own, kept)
        valid = (
            _unless_wordless(lambda: indexed([texts[i] for i in held.tolist()], held))
            if len(held)
            else None
        )
        outcome = fit_words(training_of(self, corpus, seed), corpus, valid, weights)
        prior = counts * (1.0 if weights is None else weights)
        self.classes_, self.vocabulary_, self.class_prior_ = (
            classes,
            vocabulary,
            prior / prior.sum(),
        )
        self.model_, self.n_iter_, self.stop_reason_ = outcome.model, outcome.steps, outcome.reason
        return self

    def predict(self, X: Any) -> ndarray:
        """The most probable class of each text."""
        best = np.argmax(self._log_probabilities(X), axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Float[ndarray, "texts classes"]:
        """The probability of each class, in the order of ``classes_``; rows sum to one."""
        return np.exp(self._log_probabilities(X))

    def predict_log_proba(self, X: Any) -> Float[ndarray, "texts classes"]:
        """The logarithm of ``predict_proba``."""
        return self._log_probabilities(X)

    def decision_function(self, X: Any) -> Float[ndarray, "texts *classes"]:
        """Log-odds of the second class for two classes, log-probabilities otherwise."""
        logs = self._log_probabilities(X)
        return logs[:, 1] - logs[:, 0] if len(self.classes_) == 2 else logs

    def attention(self, X: Any) -> list[list[tuple[str, float]]]:
        """The known words of each text with their attention, in the order of the text.

        The weights of a text sum to one; a word that occurs twice is listed twice. A text without a
        known word gives an empty list.
        """
        texts, pooled = self._texts(X), Pooled(self.model_)
        found: list[list[tuple[str, float]]] = []
        for _, encoded in encoded_parts(texts, self.vocabulary_, self._words()):
            weights = pooled.attention(encoded).tolist()
            words = [self.vocabulary_.words[w] for w in encoded.words.tolist()]
            ends = encoded.offsets.tolist()
            found += [list(zip(words[a:b], weights[a:b], strict=True)) for a, b in pairwise(ends)]
        return found

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``model.safetensors`` and ``model.json`` to a folder.

        An existing model is an error unless ``overwrite``.
        """
        check_is_fitted(self)
        return write_model(self, folder, overwrite=overwrite)

    @classmethod
    def from_model(
        cls,
        model: WordAttention,
        vocabulary: Vocabulary,
        classes: Iterable[Any],
        *,
        prior: Any,
        **settings: Any,
    ) -> AttentionClassifier:
        """A fitted classifier from a trained word attention with this vocabulary and these classes.

        ``prior``: the share of each class in training. ``settings`` must include the tokeniser's
        options that the vocabulary was built with.
        """
        settings = {"normaliser": model.normaliser.name} | settings
        classifier, shares = cls(**settings), np.asarray(prior, np.float64)
        classifier.classes_, classifier.vocabulary_ = np.asarray(list(classes)), vocabulary
        classifier.class_prior_, classifier.model_ = shares / shares.sum(), model
        classifier.n_iter_, classifier.stop_reason_ = 0, "trained elsewhere"
        return classifier

    @classmethod
    def load(
        cls, folder: str | Path, *, tokenizer: str | Callable[[str], Iterable[str]] | None = None
    ) -> Any:
        """The classifier of a folder; see ``load_classifier``."""
        return load_classifier(folder, tokenizer=tokenizer)

    def _texts(self, given: Any) -> list[str]:
        check_is_fitted(self)
        return as_texts(given)

    def _words(self) -> Tokenizer:
        return as_tokenizer(self.tokenizer, self.lower, self.punctuation)

    def _log_probabilities(self, given: Any) -> Float[ndarray, "texts classes"]:
        texts, pooled = self._texts(given), Pooled(self.model_)
        logs = np.tile(np.log(self.class_prior_), (len(texts), 1))
        for place, encoded in encoded_parts(texts, self.vocabulary_, self._words()):
            there, logits = pooled.logits(encoded)
            if len(there):
                logs[place][there] = log_softmax(logits)
        return logs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def _unless_wordless(make: Callable[[], Corpus]) -> Corpus | None:
    """The validation sentences, or ``None`` if none of them has a word of the training texts."""
    try:
        return make()
    except AttnlabError:
        return None


def load_classifier(
    folder: str | Path, *, tokenizer: str | Callable[[str], Iterable[str]] | None = None
) -> AttentionClassifier:
    """The classifier written by ``save``; its predictions are bit for bit equal.

    No code in the files is executed. A model that was trained with a user-defined tokeniser stores
    its name, but needs it to be passed here again: a file must not choose which function is called.
    """
    stored = read_model(folder, tokenizer)
    settings, known = stored.pop("settings"), set(AttentionClassifier().get_params())
    if set(settings) != known:
        raise AttnlabError(
            f"{folder}: the settings {sorted(set(settings) ^ known)} are missing or unknown"
        )
    classifier = AttentionClassifier(**settings)
    for name, value in stored.items():
        setattr(classifier, name, value)
    return classifier
