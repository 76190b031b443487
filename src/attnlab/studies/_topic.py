"""The work function behind every study of training dynamics: one run of word attention on the topic task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.runs import RunContext


@dataclass(frozen=True)
class TopicSettings:
    """One training run on the topic task (THEORY A1); the defaults are the reference setting.

    ``seed`` draws data and initial parameters alike, so that runs of equal seed are paired across other settings;
    ``arm`` is a label and nothing else; ``query_length`` fixes |q|. ``optimizer`` is ``"descent"`` (with ``momentum``,
    ``weight_decay``, ``batch_size``) or ``"adam"``.
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
    dictionary: int = 5000
    noise_words: int = 20
    sentences: int = 4000
    test_sentences: int = 1000
    dtype: str = "float64"
    surroundings: bool = False


@lru_cache(maxsize=4)
def _data(root_seed: int, seed: int, sizes: tuple[int, ...]):
    """Task, training and test corpus; kept for runs of the same seed."""
    import jax

    from attnlab.tasks import TopicTask

    topics, topic_words, dictionary, noise_words, sentences, test_sentences = sizes
    task = TopicTask(topics=topics, topic_words=topic_words, dictionary=dictionary, noise_words=noise_words)
    # Far from the keys that `train` folds from the same root, so that data and start are independent.
    keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(jax.random.key(root_seed), 2**31 - 1), seed))
    return task, task.sample(sentences, key=keys[0]), task.sample(test_sentences, key=keys[1])


def train_topic(settings: TopicSettings, context: RunContext) -> xr.Dataset:
    """Train once; record losses, the topic words' scores and norms, and every law's quantities.

    The data set has dimensions (step, word), the words being the topic words.
    """
    from attnlab.dynamics import Balance, QueryBalance, ScoreSum, SenTerms, Surroundings
    from attnlab.models import WordAttentionConfig
    from attnlab.training import Accuracy, Adam, Every, GradientDescent, Loss, Norms, Scores, train

    s = settings
    sizes = (s.topics, s.topic_words, s.dictionary, s.noise_words, s.sentences, s.test_sentences)
    task, corpus, test = _data(context.root_seed, s.seed, sizes)
    config = WordAttentionConfig.for_corpus(
        corpus, head=s.head, embedding_std=s.embedding_std, query_norm=s.query_length, head_scale=s.head_scale,
        trained=s.trained,
    )  # fmt: skip
    if s.optimizer == "adam":
        rule = Adam(s.step_size, weight_decay=s.weight_decay)
    elif s.optimizer == "descent":
        rule = GradientDescent(s.step_size, momentum=s.momentum, weight_decay=s.weight_decay)
    else:
        raise AttnlabError(f"optimizer={s.optimizer!r}: expected 'descent' or 'adam'")
    probes = [Loss(), Accuracy("test"), Scores(), Norms(), SenTerms(), ScoreSum(), Balance(), QueryBalance()]
    if s.surroundings:
        probes.append(Surroundings())
    run = train(
        config, corpus, steps=s.steps, seeds=[s.seed], optimizer=rule, record=probes,
        when=Every(max(1, s.steps // s.rows)), words=task.topic_word_ids, splits={"test": test},
        batch_size=s.batch_size, root_seed=context.root_seed, dtype=s.dtype, progress=False,
    )  # fmt: skip
    data = run.data.isel(seed=0, drop=True)
    if str(data.status.values) == "interrupted":
        raise KeyboardInterrupt
    if str(data.status.values) != "finished":
        raise AttnlabError(f"the run did not finish: {data.reason.values}")
    return data.drop_vars(["status", "reason", "last_step"])


train_topic.version = 1  # pyright: ignore[reportFunctionMemberAccess]
