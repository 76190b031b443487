"""The work function behind every study of training dynamics: one run of word attention on the topic
task.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.runs import RunContext

if TYPE_CHECKING:
    from attnlab.models import WordAttention, WordAttentionConfig
    from attnlab.tasks import Corpus, TopicTask
    from attnlab.training import AbstractProbe, Trajectory

WORK = "attnlab.studies._topic:train_topic"
HEADS = ("fixed", "linear", "two_layer", "deep")
RECORDS = ("laws", "relation", "curves")


@dataclass(frozen=True)
class TopicSettings:
    """One training run on the topic task (THEORY A1); the defaults are the reference setting.

    - ``seed`` draws data and initial parameters alike, so that runs of equal seed are paired across
      other settings; ``arm`` is a label and nothing else.
    - ``head``: ``"fixed"``, ``"linear"``, ``"two_layer"``, or ``"deep"``, three trained layers with
      tanh between. ``trained`` names the parts that move (the head's own choice by default);
      ``query_length`` fixes |q|.
    - ``optimizer``: ``"descent"`` (with ``momentum``, ``weight_decay``, ``batch_size``) or
      ``"adam"``.
    - ``record``: ``"laws"`` every law's quantities, ``"relation"`` what the score–norm relation
      needs in all forms, ``"curves"`` scores, norms, attention and separation only. ``rows``: how
      many steps are recorded.
    - ``predict``: the reduced model's prediction beside what training did, with m halved too, as a
      control; ``ending``: final scores and norms of all words.
    - ``reach``: attention acts on a convolution over so many neighbours to each side, itself
      trained, instead of on single words.
    """

    arm: str = ""
    seed: int = 0
    head: str = "fixed"
    optimizer: str = "descent"
    step_size: float = 0.1
    momentum: float = 0.0
    weight_decay: float = 0.0
    batch_size: int | None = None
    steps: int = 5000
    rows: int = 100
    embedding_std: float = 1e-6
    query_length: float | None = None
    head_scale: float = 1.0
    trained: tuple[str, ...] | None = None
    topics: int = 4
    topic_words: int = 2
    topic_probabilities: tuple[float, ...] | None = None
    topic_words_in_sentence: int = 1
    topic_noise: float = 0.0
    label_noise: float = 0.0
    dictionary: int = 5000
    noise_words: int = 20
    sentences: int = 4000
    test_sentences: int = 1000
    dtype: str = "float64"
    record: str = "laws"
    surroundings: bool = False
    predict: bool = False
    ending: bool = False
    reach: int | None = None

    def __post_init__(self):
        for name, allowed in (
            ("head", HEADS),
            ("record", RECORDS),
            ("optimizer", ("descent", "adam")),
        ):
            if getattr(self, name) not in allowed:
                raise AttnlabError(
                    f"{name}={getattr(self, name)!r}: expected one of {', '.join(allowed)}"
                )
        for name in ("rows", "sentences", "test_sentences", "steps"):
            if getattr(self, name) < 1:
                raise AttnlabError(f"{name}={getattr(self, name)}: expected at least 1")
        if not self.step_size > 0 or not 0 <= self.momentum < 1 or not self.weight_decay >= 0:
            raise AttnlabError(
                f"step_size={self.step_size} must be positive, momentum={self.momentum} between 0 "
                "and 1, "
                f"weight_decay={self.weight_decay} ≥ 0"
            )
        if self.batch_size is not None and not 1 <= self.batch_size <= self.sentences:
            raise AttnlabError(
                f"batch_size={self.batch_size}: expected 1 to {self.sentences}, the number of "
                "sentences"
            )
        if self.optimizer == "adam" and self.momentum:
            raise AttnlabError(
                f"momentum={self.momentum}: Adam has its own; use optimizer='descent' with momentum"
            )
        if isinstance(self.trained, str):
            raise AttnlabError(
                f"trained={self.trained!r}: give a tuple of parts, as ('{self.trained}',)"
            )

    def task(self) -> TopicTask:
        """Where the sentences come from."""
        from attnlab.tasks import TopicTask

        return TopicTask(
            topics=self.topics,
            topic_words=self.topic_words,
            topic_probabilities=self.topic_probabilities,
            dictionary=self.dictionary,
            noise_words=self.noise_words,
            topic_words_in_sentence=self.topic_words_in_sentence,
            topic_noise=self.topic_noise,
            label_noise=self.label_noise,
        )

    def config(self) -> WordAttentionConfig:
        """How the model starts."""
        from attnlab.models import WordAttentionConfig

        task = self.task()
        return WordAttentionConfig(
            words=len(task.topic_word_ids) + task.dictionary,
            classes=task.topics,
            head=deep_head if self.head == "deep" else self.head,
            embedding_std=self.embedding_std,
            query_norm=self.query_length,
            head_scale=self.head_scale,
            trained=self.trained,
        )

    @property
    def others(self) -> int:
        """m: how many words stand beside a topic word in its sentence."""
        return self.noise_words + self.topic_words_in_sentence - 1


def deep_head(key, d: int, classes: int):
    """Three layers with tanh between, ten units wide: a head that the theory has not seen."""
    import equinox as eqx
    import jax

    return eqx.nn.MLP(d, classes, 10, 2, activation=jax.numpy.tanh, key=key)


def task_keys(root_seed: int, seed: int):
    """Keys of a seed's training and test sentences.

    Far from the keys that ``train`` folds from the same root, so that data and start are
    independent.
    """
    import jax

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
    from attnlab.training import Every, train

    s, task = settings, settings.task()
    if s.reach is not None:
        from attnlab.studies._contextual import train_contextual

        keys = task_keys(context.root_seed, s.seed)
        return _finished(train_contextual(s, task, keys, _rule(s), context.root_seed))
    corpus, test = _data(context.root_seed, s.seed, task, s.sentences, s.test_sentences)
    config, starts = s.config(), []

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
    data = _finished(run)
    if s.predict:
        data = data.merge(predictions(s, task, corpus, starts[0], data))
    if s.head == "fixed" or s.head == "linear":
        from attnlab.dynamics import alignment

        ids = task.topic_word_ids
        data["alignment"] = ("word", alignment(starts[0], ids, task.topic_of_word[ids]))
    if s.ending:
        model = run.models[s.seed]
        data["final_score"] = ("any_word", np.asarray(model.keys) @ np.asarray(model.query))
        data["final_norm"] = ("any_word", np.linalg.norm(np.asarray(model.embeddings), axis=1))
    return data


# A part of the random keys of its runs, which therefore stays as it is.
train_topic.version = 2  # pyright: ignore[reportFunctionMemberAccess]


def _rule(s: TopicSettings):
    from attnlab.training import Adam, GradientDescent

    if s.optimizer == "adam":
        return Adam(s.step_size, weight_decay=s.weight_decay)
    return GradientDescent(s.step_size, momentum=s.momentum, weight_decay=s.weight_decay)


def _probes(s: TopicSettings) -> list[AbstractProbe]:
    from attnlab.dynamics import Balance, QueryBalance, ScoreSum, SenTerms, Separation, Surroundings
    from attnlab.training import Accuracy, Attention, Loss, Norms, Scores

    probes: list[AbstractProbe] = [Loss(), Accuracy("test"), Scores(), Norms()]
    if s.record == "laws":
        probes += [SenTerms(), ScoreSum(), Balance(), QueryBalance()]
    elif s.record == "relation":
        probes += [SenTerms(second=False), Attention(), Separation()]
    else:
        probes += [Attention(), Separation()]
    if s.surroundings:
        probes.append(Surroundings())
    return probes


def _finished(run: Trajectory) -> xr.Dataset:
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
    from attnlab.dynamics import ReducedModel, reduced_descent, reduced_flow
    from attnlab.training import At

    ids = task.topic_word_ids
    steps = data.step.values
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
            theory = (
                reduced_flow(model, steps * s.step_size)
                .rename(time="step")
                .assign_coords(step=steps)
            )
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
