"""The topic task under each normaliser and penalty: what is conserved, does SEN survive, when is
the onset?
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import xarray as xr
from jaxtyping import Array, Float

from attnlab._errors import AttnlabError
from attnlab.data import TopicTask
from attnlab.dynamics._laws import score_sum_error
from attnlab.dynamics._normalised import AttentionEntropy, sen_norm_under
from attnlab.dynamics._rates import onset_time
from attnlab.models import (
    AbstractNormaliser,
    Bags,
    Softmax,
    WordAttention,
    WordAttentionConfig,
    bag_logits,
    bag_weights,
    entropy_penalty,
    make_normaliser,
    moving_parts,
    query_l1,
    toward,
)
from attnlab.training import (
    GradientDescent,
    InstantProbe,
    Logarithmic,
    Loss,
    ModelObjective,
    Moment,
    train_model,
)

PENALTIES = ("none", "entropy", "query-l1", "toward")
_LEARNED = 0.05  # a score above which a topic word counts as learned, and SEN is asked about it
_ATTENDED = 0.9  # of a sentence's attention: a word that has more is saturated, and its score stops under sparsemax
_NAMES = ("softmax", "softmax:0.25", "sparsemax", "entmax15", "top2", "uniform")


@dataclass(frozen=True)
class BagLoss:
    """Mean cross-entropy of word attention on padded bags, plus ``strength`` times a penalty.

    - ``"entropy"``: the mean entropy of attention;
    - ``"query-l1"``: Σ|q_i|;
    - ``"toward"``: the squared distance from the attention ``data["given"]``.
    """

    normaliser: AbstractNormaliser = Softmax()  # noqa: RUF009  (frozen)
    penalty: str = "none"
    strength: float = 0.0

    def __post_init__(self):
        if self.penalty not in PENALTIES:
            raise AttnlabError(f"penalty={self.penalty!r}: expected one of {', '.join(PENALTIES)}")

    def __call__(self, model: WordAttention, data: dict[str, Any]) -> Float[Array, ""]:
        """Loss on a batch ``{"bags": Bags, "given": (sentences, length)}``."""
        bags = data["bags"]
        chances = jax.nn.log_softmax(bag_logits(model, bags, normaliser=self.normaliser), axis=1)
        loss = -jnp.mean(jnp.take_along_axis(chances, bags.labels[:, None], axis=1))
        if self.penalty == "none":
            return loss
        if self.penalty == "query-l1":
            return loss + self.strength * query_l1(model.query)
        weights = bag_weights(model, bags, normaliser=self.normaliser)
        asked = (
            entropy_penalty(weights)
            if self.penalty == "entropy"
            else toward(weights, data["given"])
        )
        return loss + self.strength * asked


def normalised_training(
    normaliser: str | AbstractNormaliser,
    *,
    task: TopicTask = TopicTask(dictionary=1000),  # noqa: B008  (frozen)
    sentences: int = 500,
    steps: int = 3000,
    step_size: float = 0.1,
    rows: int = 100,
    seeds: int | Iterable[int] = 1,
    penalty: str = "none",
    strength: float = 0.0,
    root_seed: int = 0,
) -> xr.Dataset:
    """Descent on the topic task under one normaliser, with a fixed head and |q| = 1; dimensions
    (seed, step, word).

    Recorded at ``rows`` steps: ``loss`` (penalty included), ``score`` and ``norm`` of the topic
    words and the mean ``attention`` that each gets, ``query_norm``, ``score_sum`` and
    ``score_total`` over all words, ``entropy`` and its bound. The query is frozen unless the
    penalty is on it. Sentences are those of ``root_seed``; a seed draws the start.
    """
    norm = make_normaliser(normaliser) if isinstance(normaliser, str) else normaliser
    corpus = task.sample(sentences, key=jax.random.key(root_seed))
    words = tuple(task.topic_word_ids.tolist())
    bags = Bags.of(corpus)
    known = (jnp.isin(bags.words, jnp.asarray(words, jnp.int32)) & bags.there).astype(jnp.float64)
    config = WordAttentionConfig.for_corpus(
        corpus,
        query_norm=1.0,
        trained=("embeddings", "keys", "query") if penalty == "query-l1" else None,
    )
    run = train_model(
        _Start(config),
        BagLoss(norm, penalty, strength),
        {"bags": bags, "given": known / jnp.sum(known, axis=1, keepdims=True)},
        steps=steps,
        seeds=seeds,
        optimizer=GradientDescent(step_size),
        when=Logarithmic(rows),
        trained=moving_parts,
        record=(Loss(), _Words(words, norm), AttentionEntropy(_bag_scores, norm)),
        root_seed=root_seed,
        progress=False,
    )
    return run.data.assign_coords(word=[task.vocabulary[w] for w in words])


def normaliser_table(
    normalisers: Sequence[str | AbstractNormaliser] = _NAMES,
    *,
    task: TopicTask = TopicTask(dictionary=1000),  # noqa: B008  (frozen)
    penalty: str = "none",
    strength: float = 0.0,
    **training: Any,
) -> xr.Dataset:
    """What theory says of training, asked of each normaliser; dimensions (normaliser, seed).

    - ``score_sum_drift``: the largest ``|Σ_w s_w − its start| / Σ_w |s_w|``; 0 where scores do not
      move;
    - ``learned``: the share of topic words whose last score is above 0.05, and ``last_score``, the
      mean of theirs;
    - ``sen_error``: median relative error of |q||ν| predicted from the score by the normaliser's
      own relation, and ``softmax_sen_error`` by softmax's; over topic words while their score is
      above 0.05, their attention below 0.9;
    - ``onset``: the step at which a learned word's score has half of its last value, median over
      words;
    - ``loss_onset``: the step at which the loss has half of its first value; ``last_loss``;
    - ``last_attention``, mean over the topic words, and ``last_entropy`` of attention.

    nan stands for what there is not: the onset of what does not learn. ``training`` is that of
    ``normalised_training``.

    >>> small = TopicTask(topics=2, topic_words=1, dictionary=60, noise_words=6)
    >>> table = normaliser_table(["sparsemax", "uniform"], task=small, sentences=60, steps=300, seeds=2)
    >>> bool((table.score_sum_drift < 1e-13).all()), table.learned.values.tolist()
    (True, [[1.0, 1.0], [0.0, 0.0]])
    """
    made = [make_normaliser(given) if isinstance(given, str) else given for given in normalisers]
    rows = []
    for norm in made:
        data = normalised_training(norm, task=task, penalty=penalty, strength=strength, **training)
        lost = data.status.values[data.status.values != "finished"]
        if len(lost):
            raise AttnlabError(
                f"training under {norm.name} did not finish: {lost[0]}; take a smaller step_size"
            )
        rows.append(summarise(data, norm, others=task.noise_words))
    table = xr.concat(
        rows, xr.DataArray([norm.name for norm in made], dims="normaliser", name="normaliser")
    )
    return table.assign_coords(penalty=penalty, strength=strength)


def summarise(data: xr.Dataset, normaliser: AbstractNormaliser, *, others: int) -> xr.Dataset:
    """The row of ``normaliser_table`` of what ``normalised_training`` recorded."""
    data = data.drop_vars("time")  # onsets are counted in steps
    last = data.isel(step=-1, drop=True)
    learned = last.score > _LEARNED
    # Where scores do not move their sum stands still, and there is nothing to divide by.
    drift = score_sum_error(
        data.assign(score_total=data.score_total.where(data.score_total > 0))
    ).max("step")
    score = data.score.where(learned)
    first = data.loss.isel(step=0, drop=True)
    return xr.Dataset(
        {
            "score_sum_drift": drift.where(last.score_total > 0, 0.0),
            "learned": learned.mean("word"),
            "last_score": score.isel(step=-1, drop=True).mean("word"),
            "sen_error": _sen_error(data, normaliser, others),
            "softmax_sen_error": _sen_error(data, Softmax(), others),
            "onset": onset_time(score).median("word"),
            "loss_onset": onset_time(first - data.loss, level=first / 2),
            "last_loss": last.loss,
            "last_attention": last.attention.mean("word"),
            "last_entropy": last.entropy,
        }
    )


def _sen_error(data: xr.Dataset, normaliser: AbstractNormaliser, others: int) -> xr.DataArray:
    start = data.norm.sel(step=0, drop=True)
    score = data.score.where((data.score > _LEARNED) & (data.attention < _ATTENDED))
    predicted = sen_norm_under(
        score, normaliser=normaliser, others=others, query_norm=data.query_norm, initial_norm=start
    )
    measured = data.query_norm * data.norm
    return (abs(predicted - measured) / measured).median(("word", "step"))


@dataclass(frozen=True)
class _Start:
    """``config.init``; equal for equal configurations, so that nothing is compiled twice."""

    config: WordAttentionConfig

    def __call__(self, key: Array) -> WordAttention:
        return self.config.init(key)


@dataclass(frozen=True)
class _Words(InstantProbe):
    """Scores, norms and attention of some words, and sums of all scores."""

    ids: tuple[int, ...]
    normaliser: AbstractNormaliser

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number a word, or one."""
        each = {"score": ("word",), "norm": ("word",), "attention": ("word",)}
        return each | {"query_norm": (), "score_sum": (), "score_total": ()}

    def look(self, moment: Moment) -> dict[str, Array]:
        """All of them."""
        assert isinstance(moment.data, ModelObjective)
        model, data, chosen = moment.model(), moment.data.data, jnp.asarray(self.ids, jnp.int32)
        scores, bags = model.scores(), data["bags"]
        here = ((bags.words[..., None] == chosen[None, None, :]) & bags.there[..., None]).astype(
            scores.dtype
        )
        weights = bag_weights(model, bags, normaliser=self.normaliser)
        return {
            "score": scores[chosen],
            "norm": jnp.sqrt(jnp.sum(model.embeddings[chosen] ** 2, axis=1)),
            "query_norm": jnp.sqrt(jnp.sum(model.query**2)),
            "score_sum": jnp.sum(scores),
            "score_total": jnp.sum(jnp.abs(scores)),
            "attention": jnp.einsum("nl,nlw->w", weights, here) / jnp.sum(here, axis=(0, 1)),
        }


def _bag_scores(model: WordAttention, data: dict[str, Any]) -> Float[Array, "sentences length"]:
    """Scores of every place, −∞ where there is no word."""
    bags = data["bags"]
    return jnp.where(bags.there, model.scores()[bags.words], -jnp.inf)
