"""Training of one classifier."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.data import Corpus
from attnlab.models import (
    Bags,
    Incidence,
    Softmax,
    Tokens,
    WordAttention,
    WordAttentionConfig,
    bag_logits,
    moving_parts,
    pool_tokens,
    word_normaliser,
)
from attnlab.training import (
    Adam,
    EarlyStopping,
    Every,
    GradientDescent,
    Trajectory,
    train,
    train_model,
)

if TYPE_CHECKING:
    from attnlab.estimators._classifier import AttentionClassifier

_STEP_SIZES = {"adam": 0.01, "descent": 1.0}
_ROWS = 50  # how often the validation loss is looked at


@dataclass(frozen=True)
class Training:
    """How a classifier is trained; see ``AttentionClassifier``."""

    config: WordAttentionConfig
    optimizer: GradientDescent | Adam
    steps: int
    batch_size: int | None
    patience: int
    seed: int
    dtype: str


@dataclass(frozen=True)
class Outcome:
    """The trained model, its step, and how its run ended."""

    model: WordAttention
    steps: int
    reason: str


def training_of(classifier: AttentionClassifier, corpus: Corpus, seed: int) -> Training:
    """The settings of a classifier, checked."""
    c = classifier
    if c.pooling not in ("attention", "mean"):
        raise AttnlabError(f"pooling={c.pooling!r}: expected 'attention' or 'mean'")
    if c.optimizer not in _STEP_SIZES:
        raise AttnlabError(f"optimizer={c.optimizer!r}: expected 'adam' or 'descent'")
    if c.head not in ("linear", "fixed", "two_layer"):
        raise AttnlabError(f"head={c.head!r}: expected 'linear', 'fixed' or 'two_layer'")
    parts = ["embeddings", *(["keys"] if c.pooling == "attention" else [])]
    # With one key coordinate and |q| = 1, the key is the score up to its sign.
    config = WordAttentionConfig.for_corpus(
        corpus,
        head=c.head,
        embedding_dim=c.embedding_dim,
        hidden=c.hidden,
        embedding_std=c.embedding_std,
        key_dim=1,
        query_norm=1.0,
        trained=tuple(parts if c.head == "fixed" else [*parts, "head"]),
        normaliser=c.normaliser if c.pooling == "attention" else "softmax",
    )
    step_size = _STEP_SIZES[c.optimizer] if c.step_size is None else c.step_size
    kind = Adam if c.optimizer == "adam" else GradientDescent
    rule = kind(float(step_size), weight_decay=float(c.weight_decay))
    return Training(config, rule, c.steps, c.batch_size, c.patience, seed, c.dtype)


def fit_words(
    training: Training,
    corpus: Corpus,
    valid: Corpus | None,
    class_weights: Float[ndarray, "classes"] | None,
) -> Outcome:
    """Train on a corpus; with validation sentences, the model of the lowest validation loss is kept.

    Weighted classes use ``train_model`` with the loss ``Σ_n v(y_n)·CE_n / N``, with weights v whose
    mean over the training sentences is one; otherwise ``train`` is used, which is faster.
    """
    batch = training.batch_size
    common: dict[str, Any] = {
        "steps": training.steps,
        "seeds": [0],
        "optimizer": training.optimizer,
        "record": (),
        "when": Every(max(1, training.steps // _ROWS)),
        "batch_size": None if batch is None or batch >= len(corpus) else batch,
        "stop": None if valid is None else EarlyStopping("valid", training.patience),
        "root_seed": training.seed,
        "dtype": training.dtype,
        "progress": False,
    }
    if class_weights is None:
        run = train(
            training.config,
            corpus,
            splits={} if valid is None else {"valid": valid},
            words=(),
            **common,
        )
        return _outcome(run, run.model(0) if 0 in run.models else None)
    if word_normaliser(training.config.normaliser) != Softmax():
        run = _train_weighted_bags(training, corpus, valid, class_weights, common)
        return _outcome(run, run.model(0) if 0 in run.models else None)
    run = _train_weighted(training, corpus, valid, class_weights, common)
    return _outcome(run, run.model(0).words if 0 in run.models else None)


def _outcome(run: Trajectory[Any], model: WordAttention | None) -> Outcome:
    status, reason = str(run.data.status.values[0]), str(run.data.reason.values[0])
    if status == "non-finite":
        raise AttnlabError(f"training failed: {reason}; give a smaller step_size")
    if model is None or status in ("interrupted", "not started"):
        raise KeyboardInterrupt
    best = run.data.get("best_step")
    return Outcome(
        jax.tree.map(jnp.asarray, model),
        int(run.data.last_step[0] if best is None else best[0]),
        reason,
    )


class _InCorpus(eqx.Module):
    """Word attention together with the sentences it is trained on, which are not trained."""

    words: WordAttention
    incidence: Incidence


@dataclass(frozen=True)
class _WeightedLoss:
    """Weighted mean cross-entropy of a batch of sentence numbers.

    ``capacities``: the capacity in entries, by number of sentences.
    """

    capacities: tuple[tuple[int, int], ...]

    def __call__(self, model: _InCorpus, batch: dict[str, Array]) -> Float[Array, ""]:
        room = max(
            entries
            for sentences, entries in self.capacities
            if sentences == batch["sentence"].shape[0]
        )
        tokens = Tokens.gather(model.incidence, batch["sentence"], room)
        pooled = pool_tokens(model.words.scores(), model.words.table(), tokens)
        logits = jax.vmap(model.words.head.finish)(pooled)
        each = optax.softmax_cross_entropy_with_integer_labels(logits, tokens.labels)
        return jnp.mean(batch["weight"] * each)


def _train_weighted(
    training: Training,
    corpus: Corpus,
    valid: Corpus | None,
    class_weights: ndarray,
    common: dict[str, Any],
) -> Trajectory[_InCorpus]:
    together = corpus if valid is None else _joined(corpus, valid)
    sizes = np.diff(together.offsets)
    weights = class_weights[together.labels]
    weights = weights / weights[: len(corpus)].mean()
    numbers = np.arange(len(together), dtype=np.int32)

    def part(chosen: slice) -> dict[str, Array]:
        return {
            "sentence": jnp.asarray(numbers[chosen]),
            "weight": jnp.asarray(weights[chosen], training.dtype),
        }

    parts = {"train": slice(0, len(corpus))} | (
        {} if valid is None else {"valid": slice(len(corpus), None)}
    )
    batch = common["batch_size"]
    capacities = [(len(numbers[chosen]), int(sizes[chosen].sum())) for chosen in parts.values()]
    if batch is not None:
        capacities.append(
            (batch, int(np.sort(sizes)[-batch:].sum()))
        )  # for the longest sentences there are
    data = {name: part(chosen) for name, chosen in parts.items()}
    return train_model(
        functools.partial(_start, training.config, Incidence.of(together, training.dtype)),
        _WeightedLoss(tuple(sorted(capacities))),
        data.pop("train"),
        splits=data,
        trained=_moving,
        **common,
    )


def _weighted_bag_loss(model: WordAttention, batch: dict[str, Any]) -> Float[Array, ""]:
    """Weighted mean cross-entropy of padded sentences, with the model's normaliser."""
    logits = bag_logits(model, batch["bags"])
    return jnp.mean(
        batch["weight"]
        * optax.softmax_cross_entropy_with_integer_labels(logits, batch["bags"].labels)
    )


def _train_weighted_bags(
    training: Training,
    corpus: Corpus,
    valid: Corpus | None,
    class_weights: ndarray,
    common: dict[str, Any],
) -> Trajectory[WordAttention]:
    mean = class_weights[corpus.labels].mean()
    parts = {"train": corpus} | ({} if valid is None else {"valid": valid})
    length = max(int(part.lengths.max()) for part in parts.values())
    data = {
        name: {
            "bags": Bags.of(part, length),
            "weight": jnp.asarray(class_weights[part.labels] / mean, training.dtype),
        }
        for name, part in parts.items()
    }
    return train_model(
        training.config.init,
        _weighted_bag_loss,
        data.pop("train"),
        splits=data,
        trained=moving_parts,
        **common,
    )


def _start(config: WordAttentionConfig, incidence: Incidence, key: Array) -> _InCorpus:
    return _InCorpus(config.init(key), incidence)


def _moving(model: _InCorpus) -> Any:
    """The filter of the trained parts."""
    still = jax.tree.map(lambda _: False, model)
    return eqx.tree_at(lambda tree: tree.words, still, moving_parts(model.words))


def _joined(first: Corpus, second: Corpus) -> Corpus:
    return Corpus(
        np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]]),
        np.concatenate([first.words, second.words]),
        np.concatenate([first.counts, second.counts]),
        np.concatenate([first.labels, second.labels]),
        first.vocabulary,
        first.classes,
    )
