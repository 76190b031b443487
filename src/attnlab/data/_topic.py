"""The topic task of Lu, Mao and Nayak (2021), section 3."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float, Int, Key
from numpy import ndarray

import attnlab._precision  # noqa: F401  (turns float64 on)
from attnlab._errors import AttnlabError
from attnlab.data._corpus import Corpus


@dataclass(frozen=True)
class TopicTask:
    """Sentences of a topic word of their label and ``noise_words`` uniform words of a dictionary.

    ``topic_words`` is the number of topic words of each topic, or one number per topic;
    ``topic_probabilities`` are the label frequencies (equal when ``None``); ``dictionary`` is the
    number of words without a topic. Topic words come first in the vocabulary. The defaults are the
    reference setting.

    Beyond the paper:

    - ``topic_words_in_sentence``: the number of topic words of its label in a sentence, drawn
      independently;
    - ``topic_noise``: the probability that a noise word is a random topic word of any topic;
    - ``label_noise``: the probability that a label is drawn again, independently of the words; 1
      leaves nothing to learn.

    >>> task = TopicTask(topics=2, topic_words=1, dictionary=50, noise_words=3)
    >>> corpus = task.sample(100, key=jax.random.key(0))
    >>> corpus
    Corpus(100 sentences, 400 words in all, vocabulary 52, 2 classes)
    >>> task.topic_word_ids, [corpus.vocabulary[w] for w in task.topic_word_ids]
    (array([0, 1]), ['topic0.word0', 'topic1.word0'])
    """

    topics: int = 4
    topic_words: int | tuple[int, ...] = 2
    topic_probabilities: tuple[float, ...] | None = None
    dictionary: int = 5000
    noise_words: int = 20
    topic_words_in_sentence: int = 1
    topic_noise: float = 0.0
    label_noise: float = 0.0

    def __post_init__(self):
        if self.topics < 2:
            raise AttnlabError(f"topics={self.topics}: expected at least 2")
        if len(self.words_per_topic) != self.topics or self.words_per_topic.min() < 1:
            raise AttnlabError(
                f"topic_words={self.topic_words}: expected one number ≥ 1, or {self.topics} of "
                "them, one per topic"
            )
        p = self.label_probabilities
        if len(p) != self.topics or p.min() <= 0 or abs(p.sum() - 1) > 1e-9:
            raise AttnlabError(
                f"topic_probabilities={self.topic_probabilities}: expected {self.topics} positive "
                "numbers that sum to 1"
            )
        if self.noise_words < 0 or self.dictionary < 1:
            raise AttnlabError(
                f"noise_words={self.noise_words} must be ≥ 0 and dictionary={self.dictionary} "
                "must be ≥ 1"
            )
        if self.topic_words_in_sentence < 1:
            raise AttnlabError(
                f"topic_words_in_sentence={self.topic_words_in_sentence}: expected at least 1"
            )
        for name in ("topic_noise", "label_noise"):
            if not 0 <= getattr(self, name) <= 1:
                raise AttnlabError(
                    f"{name}={getattr(self, name)}: expected a probability from 0 to 1"
                )

    @property
    def words_per_topic(self) -> Int[ndarray, "topics"]:
        """The number of topic words of each topic."""
        given = self.topic_words
        return (
            np.full(self.topics, given) if isinstance(given, int) else np.asarray(given, np.int64)
        )

    @property
    def label_probabilities(self) -> Float[ndarray, "topics"]:
        """The probability of each label."""
        given = self.topic_probabilities
        return (
            np.full(self.topics, 1 / self.topics)
            if given is None
            else np.asarray(given, np.float64)
        )

    @property
    def topic_word_ids(self) -> Int[ndarray, "topic_words"]:
        """Numbers of the topic words."""
        return np.arange(self.words_per_topic.sum())

    @property
    def topic_of_word(self) -> Int[ndarray, "words"]:
        """The topic of each word, −1 for a word without one."""
        topics = np.repeat(np.arange(self.topics), self.words_per_topic)
        return np.concatenate([topics, np.full(self.dictionary, -1)])

    @property
    def word_frequency(self) -> Float[ndarray, "topic_words"]:
        """Population share of sentences with each topic word: P_t of docs/theory.md#a5."""
        p = np.repeat(self.label_probabilities, self.words_per_topic)
        absent_as_topic = (
            1 - 1 / np.repeat(self.words_per_topic, self.words_per_topic)
        ) ** self.topic_words_in_sentence
        absent_as_noise = (1 - self.topic_noise / len(p)) ** self.noise_words
        return 1 - absent_as_noise * (1 - p + p * absent_as_topic)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Names of the words, topic words first."""
        topical = [
            f"topic{t}.word{i}" for t, n in enumerate(self.words_per_topic) for i in range(n)
        ]
        return (*topical, *(f"noise{i}" for i in range(self.dictionary)))

    def sample(self, sentences: int, *, key: Key[jax.Array, ""]) -> Corpus:
        """Draw sentences."""
        words, labels = self._draw(sentences, key)
        rows = np.repeat(np.arange(sentences), words.shape[1])
        classes = tuple(f"topic{t}" for t in range(self.topics))
        return Corpus.from_pairs(
            rows, words.ravel(), labels, vocabulary=self.vocabulary, classes=classes
        )

    def sample_sequences(
        self, sentences: int, *, key: Key[jax.Array, ""]
    ) -> tuple[Int[ndarray, "sentences length"], Int[ndarray, "sentences"]]:
        """The sentences of ``sample`` with their words in random order: word numbers and labels.

        >>> task = TopicTask(topics=2, topic_words=1, dictionary=50, noise_words=3)
        >>> words, labels = task.sample_sequences(100, key=jax.random.key(0))
        >>> words.shape, bool((words.min(axis=1) == labels).all())
        ((100, 4), True)
        """
        words, labels = self._draw(sentences, key)
        places = _generator(jax.random.fold_in(key, 1)).random(words.shape)
        return np.take_along_axis(words, np.argsort(places, axis=1), axis=1), labels

    def _draw(self, sentences: int, key: Key[jax.Array, ""]) -> tuple[ndarray, ndarray]:
        """Words, topic words first, and labels."""
        if sentences < 1:
            raise AttnlabError(f"sentences={sentences}: expected at least 1")
        # A separate generator for each part: options beyond the paper do not change the rest of a
        # sentence.
        label, topic, noise, foreign, anew = _generator(key).spawn(5)

        def draw_labels(generator: np.random.Generator) -> ndarray:
            return np.searchsorted(
                np.cumsum(self.label_probabilities)[:-1], generator.random(sentences), side="right"
            )

        labels = draw_labels(label)
        first = np.concatenate([[0], np.cumsum(self.words_per_topic)])[labels]
        within = topic.random((sentences, self.topic_words_in_sentence))
        topical = first[:, None] + np.floor(within * self.words_per_topic[labels][:, None]).astype(
            np.int64
        )
        count = len(self.topic_word_ids)
        others = count + noise.integers(0, self.dictionary, (sentences, self.noise_words))
        if self.topic_noise > 0:
            chosen = foreign.random(others.shape) < self.topic_noise
            others = np.where(chosen, foreign.integers(0, count, others.shape), others)
        if self.label_noise > 0:
            redrawn = anew.random(sentences) < self.label_noise
            labels = np.where(redrawn, draw_labels(anew), labels)
        return np.concatenate([topical, others], axis=1), labels


def _generator(key: Key[jax.Array, ""]) -> np.random.Generator:
    """A NumPy generator seeded by a JAX key: nothing is compiled."""
    return np.random.Generator(
        np.random.Philox(np.random.SeedSequence(np.asarray(jax.random.key_data(key)).tolist()))
    )
