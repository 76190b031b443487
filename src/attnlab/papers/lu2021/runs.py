"""The work functions of this paper: training on the topic task, and the reduced model alone."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jaxtyping import Array

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, TopicTask
from attnlab.dynamics import (
    Balance,
    InContext,
    QueryBalance,
    ReducedModel,
    ScoreSum,
    SenTerms,
    Separation,
    Surroundings,
    alignment,
    area_under_curve,
    reduced_descent,
    reduced_flow,
)
from attnlab.models import (
    ContextualAttention,
    ContextualConfig,
    WordAttention,
    WordAttentionConfig,
    contextual_logits,
)
from attnlab.papers.lu2021.settings import FarSettings, TopicSettings
from attnlab.sweeps import RunContext
from attnlab.training import (
    AbstractProbe,
    Accuracy,
    Adam,
    At,
    Attention,
    Elapsed,
    Every,
    GradientDescent,
    InstantProbe,
    Logarithmic,
    Loss,
    Moment,
    Norms,
    Scores,
    Trajectory,
    run_keys,
    train,
    train_model,
)


def topic_task(s: TopicSettings) -> TopicTask:
    """Where the sentences come from."""
    return TopicTask(
        topics=s.topics,
        topic_words=s.topic_words,
        topic_probabilities=s.topic_probabilities,
        dictionary=s.dictionary,
        noise_words=s.noise_words,
        topic_words_in_sentence=s.topic_words_in_sentence,
        topic_noise=s.topic_noise,
        label_noise=s.label_noise,
    )


def word_config(s: TopicSettings) -> WordAttentionConfig:
    """How the model starts."""
    task = topic_task(s)
    return WordAttentionConfig(
        words=len(task.topic_word_ids) + task.dictionary,
        classes=task.topics,
        head=deep_head if s.head == "deep" else s.head,
        embedding_std=s.embedding_std,
        query_norm=s.query_norm,
        head_scale=s.head_scale,
        trained=s.trained,
    )


def deep_head(key, d: int, classes: int):
    """Three layers with tanh between, ten units wide: a head that the theory has not seen."""
    return eqx.nn.MLP(d, classes, 10, 2, activation=jax.numpy.tanh, key=key)


def task_keys(root_seed: int, seed: int):
    """Keys of a seed's training and test sentences.

    Far from the keys that ``train`` folds from the same root, so that data and start are
    independent.
    """
    return jax.random.split(
        jax.random.fold_in(jax.random.fold_in(jax.random.key(root_seed), 2**31 - 1), seed)
    )


@lru_cache(maxsize=4)
def _data(root_seed: int, seed: int, task: TopicTask, sentences: int, test_sentences: int):
    """Training and test corpus; kept for runs of the same seed."""
    keys = task_keys(root_seed, seed)
    return task.sample(sentences, key=keys[0]), task.sample(test_sentences, key=keys[1])


def train_topic(settings: TopicSettings, context: RunContext) -> xr.Dataset:
    """Train once; record losses, the topic words' scores and norms, and what ``settings.record``
    asks for.

    The data set has dimensions (step, word), the words being the topic words.
    """

    s, task = settings, topic_task(settings)
    if s.reach is not None:
        keys = task_keys(context.root_seed, s.seed)
        return finished_run(train_contextual(s, task, keys, _rule(s), context.root_seed))
    corpus, test = _data(context.root_seed, s.seed, task, s.sentences, s.test_sentences)
    config, starts = word_config(s), []

    def init(key):
        starts.append(config.init(key))
        return starts[-1]

    run = train(
        init,
        corpus,
        steps=s.steps,
        seeds=[s.seed],
        optimizer=_rule(s),
        record=_probes(s),
        when=Every(max(1, s.steps // s.rows)),
        words=task.topic_word_ids,
        splits={"test": test},
        batch_size=s.batch_size,
        root_seed=context.root_seed,
        dtype=s.dtype,
        progress=False,
    )
    data = finished_run(run)
    if s.predict:
        data = data.merge(predictions(s, task, corpus, starts[0], data))
    if s.head == "fixed" or s.head == "linear":
        ids = task.topic_word_ids
        data["alignment"] = ("word", alignment(starts[0], ids, task.topic_of_word[ids]))
    if s.ending:
        model = run.models[s.seed]
        data["final_score"] = ("any_word", np.asarray(model.keys) @ np.asarray(model.query))
        data["final_norm"] = ("any_word", np.linalg.norm(np.asarray(model.embeddings), axis=1))
    return data


def _rule(s: TopicSettings):
    if s.optimizer == "adam":
        return Adam(s.step_size, weight_decay=s.weight_decay)
    return GradientDescent(
        s.step_size,
        momentum=s.momentum,
        weight_decay=s.weight_decay,
        loss_floor=s.loss_floor,
    )


def _probes(s: TopicSettings) -> list[AbstractProbe]:
    probes: list[AbstractProbe] = [Loss(), Accuracy("test"), Scores(), Norms()]
    if s.record == "laws":
        probes += [SenTerms(), ScoreSum(), Balance(), QueryBalance()]
    elif s.record == "relation":
        probes += [SenTerms(second=False), Attention(), Separation()]
    else:
        probes += [Attention(), Separation()]
    if s.surroundings:
        probes.append(Surroundings())
    if s.context:
        probes.append(InContext())
    if s.loss_floor is not None:
        probes.append(Elapsed())
    return probes


def finished_run(run: Trajectory) -> xr.Dataset:
    """The only run's data; one that did not finish is an error."""
    data = run.data.isel(seed=0, drop=True)
    if str(data.status.values) == "interrupted":
        raise KeyboardInterrupt
    if str(data.status.values) != "finished":
        raise AttnlabError(f"the run did not finish: {data.reason.values}")
    return data.drop_vars(["status", "reason", "last_step"])


def predictions(
    s: TopicSettings, task: TopicTask, corpus: Corpus, start: WordAttention, data: xr.Dataset
) -> xr.Dataset:
    """What the reduced model says of this run from its start alone: flow for a linear head, descent
    otherwise.

    ``predicted_score``, ``_norm``, ``_attention``, ``_loss``; and ``halved_score``, the same with
    half of the words beside a topic word, which must be seen to be wrong.
    """
    ids = task.topic_word_ids
    steps = data.step.values
    times = steps * s.step_size if s.loss_floor is None else data.elapsed.values
    frequency = corpus.sentence_frequency[ids] / len(corpus)
    if frequency.min() == 0:
        missing = corpus.vocabulary[ids[int(np.argmin(frequency))]]
        raise AttnlabError(
            f"the topic word {missing!r} occurs in none of {len(corpus)} sentences: draw more"
        )
    found = {}
    for name, others in (("predicted", s.others), ("halved", s.others / 2)):
        model = ReducedModel.of(
            start,
            words=ids,
            labels=task.topic_of_word[ids],
            frequency=frequency,
            others=others,
        )
        if s.head in ("fixed", "linear"):
            theory = reduced_flow(model, times).rename(time="step").assign_coords(step=steps)
            if not bool(theory.success):
                raise AttnlabError(
                    "the reduced model's integrator gave up: no prediction to compare with"
                )
        else:
            when = At(tuple(int(k) for k in steps))
            theory = reduced_descent(model, int(steps[-1]), step_size=s.step_size, when=when)
        found[f"{name}_score"] = theory.score.drop_vars("time", errors="ignore")
        if name == "predicted":
            for quantity in ("norm", "attention", "loss"):
                found[f"predicted_{quantity}"] = theory[quantity].drop_vars("time", errors="ignore")
    return xr.Dataset(found)


def flow_far(settings: FarSettings, context: RunContext) -> xr.Dataset:
    """Integrate the reduced flow; the data set has dimensions (time, word)."""
    s = settings
    start = TopicSettings(
        seed=s.seed,
        head=s.head,
        embedding_std=s.embedding_std,
        query_norm=s.query_norm,
        topics=s.topics,
        topic_words=s.topic_words,
        noise_words=s.noise_words,
    )
    return predict_one(start, s.last, s.rows, context.root_seed)


def predict_one(s: TopicSettings, until: float, rows: int, root_seed: int) -> xr.Dataset:
    """The reduced model of one seed; data set (time, word)."""

    config, task = word_config(s), topic_task(s)
    drawn = {
        f.name: getattr(config, f.name)
        for f in fields(config)
        if f.name not in ("words", "classes")
    }
    key, _ = run_keys(root_seed, s.seed)
    model = ReducedModel.for_task(task, key=key, others=s.others, **drawn)
    if s.head == "two_layer":
        steps = min(s.steps, int(until / s.step_size))
        run = reduced_descent(model, steps, step_size=s.step_size, when=Logarithmic(rows))
        return run.swap_dims(step="time").drop_vars("step")
    run = reduced_flow(model, np.geomspace(s.step_size, until, rows))
    if not bool(run.success):
        raise AttnlabError(
            f"the integrator gave up after {int(run.gradient_evaluations)} gradient evaluations"
        )
    return run.drop_vars("success")


@dataclass(frozen=True)
class Look(InstantProbe):
    """What is recorded of the first ``words`` words, as word attention records it.

    ``norm`` is that of the word's own part of the convolution's output, ``ν_w C_0``: what the
    attention acts on in place of an embedding; of a frozen convolution |ν_w|, since ``C_0`` then
    belongs to head and query. ``embedding_norm`` is |ν_w|.
    """

    words: int
    frozen: bool = False

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number a word, or one."""
        dims: dict[str, tuple[str, ...]] = {}
        for name in ("score", "norm", "embedding_norm", "attention"):
            dims[name] = ("word",)
        for name in ("accuracy_test", "separation_score", "separation_norm"):
            dims[name] = ()
        return dims

    def look(self, moment: Moment) -> dict[str, Array]:
        """Everything from the model and its sentences."""
        model: Any = moment.model()
        scores = model.scores()
        outputs = model.embeddings @ model.kernel[model.kernel.shape[0] // 2]
        norms = jnp.linalg.norm(model.embeddings if self.frozen else outputs, axis=1)
        data: Any = moment.data
        sentences = data.data["words"]
        weights = jax.nn.softmax(model.position_scores(sentences), axis=1)
        held = jnp.arange(self.words)[:, None, None] == sentences[None].astype(jnp.int64)
        present = jnp.sum(jnp.any(held, axis=2), axis=1, dtype=scores.dtype)
        attention = jnp.sum(jnp.where(held, weights[None], 0), axis=(1, 2)) / present
        test: Any = moment.parts["test"]
        found = jnp.argmax(contextual_logits(model, test.data["words"]), axis=1).astype(jnp.int32)
        right = found == test.data["labels"]

        chosen = jnp.arange(self.words)
        return {
            "score": scores[: self.words],
            "norm": norms[: self.words],
            "attention": attention,
            "embedding_norm": jnp.linalg.norm(model.embeddings[: self.words], axis=1),
            "accuracy_test": jnp.mean(right, dtype=scores.dtype),
            "separation_score": area_under_curve(scores, chosen),
            "separation_norm": area_under_curve(norms, chosen),
        }


def _contextual_loss(model: ContextualAttention, batch: dict[str, Array]) -> Array:
    logits = contextual_logits(model, batch["words"])
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()


def _moving(parts: tuple[str, ...]):
    """A filter for the parts that move."""

    def chosen(model: ContextualAttention) -> ContextualAttention:
        return jax.tree_util.tree_map_with_path(lambda path, _: path[0].name in parts, model)

    return chosen


def train_contextual(s: TopicSettings, task: TopicTask, keys: Any, rule: Any, root_seed: int):
    """The trajectory of one run, with the names of ``train``."""
    config = ContextualConfig(word_config(s), s.reach or 0, contextual_keys=s.frozen_context)
    parts = config.base.trained_parts

    def sentences(count: int, key: Any) -> dict[str, np.ndarray]:
        words, labels = task.sample_sequences(count, key=key)
        return {"words": words.astype(np.int32), "labels": labels.astype(np.int32)}

    count = len(task.topic_word_ids)
    run = train_model(
        config.init,
        _contextual_loss,
        sentences(s.sentences, keys[0]),
        steps=s.steps,
        seeds=[s.seed],
        optimizer=rule,
        record=[Loss(), Look(count, s.frozen_context)],
        when=Every(max(1, s.steps // s.rows)),
        batch_size=s.batch_size,
        splits={"test": sentences(s.test_sentences, keys[1])},
        trained=_moving(parts if s.frozen_context else (*parts, "kernel")),
        root_seed=root_seed,
        dtype=s.dtype,
        progress=False,
    )
    query = jax.tree.map(jnp.asarray, run.model(s.seed)).own_query()
    names = xr.DataArray(list(task.vocabulary[:count]), dims="word")
    run.data.coords["word"] = names
    run.data["query_norm"] = ("seed", [float(jnp.linalg.norm(query))])
    return run
