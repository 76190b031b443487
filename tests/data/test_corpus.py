import jax
import numpy as np
import pytest
import scipy.sparse

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, TopicTask


def random_corpus(seed: int = 0, sentences: int = 40, words: int = 25) -> Corpus:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, sentences)
    rows = np.repeat(np.arange(sentences), lengths)
    tokens = rng.integers(0, words, lengths.sum())
    names = [f"w{i}" for i in range(words)]
    return Corpus.from_pairs(
        rows, tokens, rng.integers(0, 3, sentences), vocabulary=names, classes=list("abc")
    )


def matrix(corpus: Corpus) -> np.ndarray:
    shape = (len(corpus), len(corpus.vocabulary))
    return scipy.sparse.csr_matrix(
        (corpus.counts, corpus.words, corpus.offsets), shape=shape
    ).toarray()


def test_both_directions_are_one_matrix():
    corpus = random_corpus()
    other = corpus.by_word
    transposed = scipy.sparse.csr_matrix(
        (other.counts, other.sentences, other.offsets), shape=(len(corpus.vocabulary), len(corpus))
    )
    assert np.array_equal(matrix(corpus).T, transposed.toarray())
    assert np.array_equal(corpus.lengths, matrix(corpus).sum(1))
    assert np.array_equal(corpus.sentence_frequency, (matrix(corpus) > 0).sum(0))


def test_mean_others_is_the_mean_length_minus_one():
    corpus = Corpus.from_tokens([["a", "b", "b"], ["a"], ["c", "d"]], labels=[0, 1, 0])
    assert corpus.mean_others.tolist() == [(3 + 1) / 2 - 1, 2, 1, 1]


def test_subset_keeps_order_vocabulary_and_counts():
    corpus = random_corpus()
    chosen = [7, 3, 3, 30]
    part = corpus.subset(chosen)
    assert np.array_equal(matrix(part), matrix(corpus)[chosen])
    assert part.labels.tolist() == corpus.labels[chosen].tolist()
    assert part.vocabulary == corpus.vocabulary
    assert corpus.subset(corpus.labels == 1) == corpus.subset(np.flatnonzero(corpus.labels == 1))
    with pytest.raises(AttnlabError, match="mask of 3 booleans"):
        corpus.subset([True, False, True])


def test_split_is_a_stratified_partition():
    corpus = random_corpus(sentences=300)
    parts = corpus.split(0.6, 0.2, 0.2, seed=3)
    assert [len(p) for p in parts] == [180, 60, 60]
    together = np.concatenate([matrix(p) for p in parts])
    assert sorted(map(tuple, together)) == sorted(map(tuple, matrix(corpus)))
    for label in range(3):
        whole = (corpus.labels == label).mean()
        assert all(abs((p.labels == label).mean() - whole) < 0.02 for p in parts)
    again = corpus.split(0.6, 0.2, 0.2, seed=3)
    assert all(a == b for a, b in zip(parts, again, strict=True))
    assert corpus.split(0.6, 0.2, 0.2, seed=4)[0] != parts[0]


def test_content_hash_is_stable_and_sees_every_part():
    corpus = Corpus.from_tokens([["a", "b"], ["b", "b"]], labels=["x", "y"])
    assert corpus.content_hash == "79a0fa3de36e51f57027ab03fa79755d95dfa1795cc63ef0ac4385efec39b5cd"
    variants = [
        Corpus.from_tokens([["a", "b"], ["b"]], labels=["x", "y"]),
        Corpus.from_tokens([["a", "b"], ["b", "b"]], labels=["y", "x"]),
        Corpus.from_tokens([["a", "c"], ["c", "c"]], labels=["x", "y"]),
        Corpus.from_tokens([["a", "b"], ["b", "b"]], labels=["x", "z"]),
    ]
    hashes = {corpus.content_hash, *(v.content_hash for v in variants)}
    assert len(hashes) == 5
    assert (
        Corpus.from_tokens([["b", "a"], ["b", "b"]], labels=["x", "y"]) == corpus
    )  # order in a bag is nothing


def test_arrays_cannot_be_written():
    corpus = random_corpus()
    with pytest.raises(ValueError, match="read-only"):
        corpus.words[0] = 1


def _raw_corpus(words=(0,), labels=(1,)) -> Corpus:
    offsets, counts = np.array([0, 1]), np.array([1])
    return Corpus(offsets, np.array(words), counts, np.array(labels), ("a", "b"), ("x", "y"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Corpus.from_tokens([["a", "b"], []], [0, 1]),
            r"1 sentence\(s\) have no word, the first is number 1",
        ),
        (lambda: Corpus.from_tokens([["a"], ["a"]], [0, 1]), "vocabulary has 1 word"),
        (lambda: Corpus.from_tokens([["a"], ["b"]], [1, 1]), "needs at least 2 classes"),
        (
            lambda: Corpus.from_tokens([["a"], ["b"]], [0, 2], classes=[0, 1]),
            "sentence 1: unknown label 2",
        ),
        (lambda: Corpus.from_tokens([["a"], ["b"]], [0]), "2 sentences but 1 labels"),
        (
            lambda: Corpus.from_tokens([["a"], ["z"]], [0, 1], vocabulary=["a", "b"]),
            "'z' is not in the vocabulary",
        ),
        (lambda: Corpus.from_tokens([], []), "no sentence"),
        (lambda: random_corpus().subset([99]), "must lie in 0..39"),
        (lambda: random_corpus().split(0.9, 0.2, seed=0), "sum to at most 1"),
        (lambda: random_corpus().word_ids(["nothing"]), "'nothing' is not in the vocabulary"),
        (lambda: _raw_corpus(labels=[5]), "unknown label number 5"),
        (lambda: _raw_corpus(words=[7]), "word numbers lie in 7..7, expected 0..1"),
    ],
)
def test_bad_input_is_refused_in_words(make, message):
    with pytest.raises(AttnlabError, match=message):
        make()


def test_topic_task_draws_what_it_says():
    task = TopicTask(
        topics=3,
        topic_words=(1, 2, 3),
        topic_probabilities=(0.5, 0.3, 0.2),
        dictionary=40,
        noise_words=6,
    )
    corpus = task.sample(20_000, key=jax.random.key(5))
    assert (corpus.lengths == 7).all()
    shares = np.bincount(corpus.labels) / len(corpus)
    assert np.abs(shares - [0.5, 0.3, 0.2]).max() < 4 * np.sqrt(0.25 / 20_000)
    truth = task.topic_of_word[corpus.words]
    topical = truth >= 0
    assert np.bincount(corpus.rows[topical], minlength=len(corpus)).tolist() == [1] * len(corpus)
    assert (truth[topical] == corpus.labels[corpus.rows[topical]]).all()
    measured = corpus.sentence_frequency[task.topic_word_ids] / len(corpus)
    assert np.abs(measured - task.word_frequency).max() < 4 * np.sqrt(0.25 / 20_000)
    noise = np.bincount(corpus.words[~topical], weights=corpus.counts[~topical], minlength=46)[6:]
    assert np.abs(noise / noise.sum() - 1 / 40).max() < 5 * np.sqrt(1 / 40 / noise.sum())


def test_topic_task_is_a_function_of_its_key():
    task = TopicTask(dictionary=100)
    one, same, other = (task.sample(50, key=jax.random.key(k)) for k in (1, 1, 2))
    assert one == same
    assert one != other


@pytest.mark.parametrize(
    "settings",
    [
        {"topics": 1},
        {"topic_words": (1, 2)},
        {"topic_probabilities": (0.5, 0.6, 0.1, 0.1)},
        {"dictionary": 0},
    ],
)
def test_topic_task_refuses_nonsense(settings):
    with pytest.raises(AttnlabError):
        TopicTask(**settings)


def test_sentences_beyond_the_paper_are_drawn_as_they_say():
    task = TopicTask(
        topics=3,
        topic_words=2,
        dictionary=30,
        noise_words=5,
        topic_words_in_sentence=2,
        topic_noise=0.3,
        label_noise=0.4,
    )
    n = 20_000
    words, labels = task.sample_sequences(n, key=jax.random.key(1))
    assert words.shape == (n, 7)
    corpus = task.sample(n, key=jax.random.key(1))
    assert (corpus.lengths == 7).all()
    assert (corpus.labels == labels).all()
    assert (
        np.sort(words[5])
        == np.repeat(
            *(a[corpus.offsets[5] : corpus.offsets[6]] for a in (corpus.words, corpus.counts))
        )
    ).all()
    measured = corpus.sentence_frequency[task.topic_word_ids] / n
    assert np.abs(measured - task.word_frequency).max() < 4 * np.sqrt(0.25 / n)
    # Of two topic words of the label and 5·.3 of any: share of topic words that belong to the
    # label, by counting.
    truth = task.topic_of_word[words]
    kept = 0.6 + 0.4 / 3
    expected = (2 * kept + 5 * 0.3 / 3) / (2 + 5 * 0.3)
    assert abs((truth == labels[:, None]).sum() / (truth >= 0).sum() - expected) < 0.01


def test_labels_drawn_anew_leave_nothing_to_learn():
    task = TopicTask(topics=2, topic_words=1, dictionary=10, noise_words=1, label_noise=1.0)
    words, labels = task.sample_sequences(20_000, key=jax.random.key(2))
    assert abs(np.corrcoef((words == 0).any(axis=1), labels)[0, 1]) < 0.03


@pytest.mark.parametrize(
    "settings", [{"topic_noise": 1.5}, {"label_noise": -0.1}, {"topic_words_in_sentence": 0}]
)
def test_sentences_beyond_the_paper_need_sense(settings):
    with pytest.raises(AttnlabError, match=next(iter(settings))):
        TopicTask(**settings)
