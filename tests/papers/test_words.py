"""Students on sentences: padded models against the equation, nested and paired sentences, small
curves of the topic task and of texts.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.data import Corpus, text_parts, thinning
from attnlab.data.thinning import shortened
from attnlab.lab import along
from attnlab.models import (
    LinearHead,
    WordAttentionConfig,
    attention_weights,
    literal_logits,
    make_normaliser,
)
from attnlab.papers.liu2021 import word_runs
from attnlab.papers.liu2021.pooling_sweeps import UnderDescent, topic_pooling
from attnlab.papers.liu2021.topic_pooling import claim
from attnlab.papers.liu2021.variant_runs import VariantMeasure
from attnlab.papers.liu2021.word_runs import (
    answer_bag,
    bag_samples,
    count_samples,
    fit_words,
    weigh_bag,
)
from attnlab.papers.liu2021.word_settings import POOLING, TF_IDF, WordSettings, on_texts
from attnlab.sweeps import RunContext
from tests.conftest import OPTIMISED

pytestmark = pytest.mark.slow

CONTEXT = RunContext(7, 0, "0" * 16)
SMALL = WordSettings(
    sizes=(8, 64),
    steps=150,
    batch_size=16,
    step_sizes=(0.1,),
    valid_points=60,
    test_points=200,
    topics=2,
    topic_words=1,
    dictionary=200,
    noise_words=8,
    embedding_dim=3,
)
_TOKENS = [["a", "b", "b"], ["c"], ["d", "a", "e", "e", "e"], ["b", "c", "d"]]
_CORPUS = Corpus.from_tokens(_TOKENS, labels=[0, 1, 2, 1])


def _model(normaliser: str, key_std: float = 1.0):
    config = WordAttentionConfig.for_corpus(
        _CORPUS,
        head="linear",
        embedding_dim=3,
        embedding_std=1.0,
        key_std=key_std,
        key_dim=1,
        query_norm=1.0,
        normaliser=normaliser,
    )
    return config.init(jax.random.key(0))


def _logits(model, length: int = 6):
    given = bag_samples(_CORPUS, length, np.array([1, 3]), "float64")
    return given, jax.vmap(answer_bag, (None, 0))(model, given["x"])


def test_mean_pooling_is_the_mean_word_by_word():
    model = _model(POOLING["mean-pooling"])
    assert isinstance(model.head, LinearHead)
    embeddings, weight = np.asarray(model.embeddings), np.asarray(model.head.weight)
    expected = []
    for tokens in _TOKENS:
        total = np.zeros(3)
        for token in tokens:
            total += embeddings[_CORPUS.vocabulary.index(token)]
        expected.append(total / len(tokens) @ weight)
    np.testing.assert_allclose(_logits(model)[1], np.stack(expected), rtol=1e-12)


@pytest.mark.parametrize("normaliser", ["softmax", "softmax:0.25", "sparsemax", "top1", "uniform"])
def test_pooling_is_the_equation_and_padding_is_no_word(normaliser):
    model = _model(normaliser)
    for length in (5, 9):
        given, logits = _logits(model, length)
        expected = literal_logits(model, _CORPUS, normaliser=make_normaliser(normaliser))
        np.testing.assert_allclose(logits, expected, rtol=1e-9, atol=1e-12)
        weights = np.asarray(jax.vmap(weigh_bag, (None, 0))(model, given["x"]))
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
        assert not weights[~np.asarray(given["x"]["bag"].present)].any()
    matter = np.asarray(given["x"]["given"])
    assert matter.sum(axis=1).tolist() == [1, 0, 1, 1]
    assert matter[0].max() == 0.5  # "b" twice


def test_what_is_measured_of_pooling():
    model = _model("softmax")
    given, _ = _logits(model)
    measure = VariantMeasure(answer_bag, weigh_bag, "accuracy")
    found = measure(model, {"valid": given, "test": given})
    entries = attention_weights(model, _CORPUS)
    assert float(found["attention"]) == pytest.approx(
        entries[np.isin(_CORPUS.words, [1, 3])].sum() / len(_CORPUS)
    )
    right = np.asarray(literal_logits(model, _CORPUS)).argmax(1) == _CORPUS.labels
    assert float(found["accuracy"]) == pytest.approx(right.mean())


def test_counts_are_those_of_the_given_words():
    given = count_samples(_CORPUS, np.array([4, 1]), "float64")
    assert given["x"].tolist() == [[tokens.count("e"), tokens.count("b")] for tokens in _TOKENS]


def test_long_texts_keep_some_of_their_words():
    short = shortened(_CORPUS, 2, np.random.default_rng(0))
    assert short.lengths.tolist() == [2, 1, 2, 2]
    assert (short.labels == _CORPUS.labels).all()
    for n in range(len(_CORPUS)):
        whole = _CORPUS.sentence(n)
        assert all(count <= whole[word] for word, count in short.sentence(n).items())
    assert shortened(_CORPUS, 5, np.random.default_rng(0)) is _CORPUS


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory):
    """Settings of students on a small file of texts, in which one word of six tells the label."""
    draw = np.random.default_rng(0)
    lines = []
    for k in range(200):
        noise = " ".join(f"w{word}" for word in draw.integers(40, size=5))
        lines.append(f"{k % 2} {noise} {('good', 'bad')[k % 2]}")
    file = tmp_path_factory.mktemp("texts") / "lines.txt"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    common = on_texts(str(file), text_parts(str(file)).hash)
    return WordSettings(
        **(common | {"sizes": (20, 80), "steps": 60, "step_sizes": (0.03, 0.1), "widen": 0})
    )


def _seen(monkeypatch: pytest.MonkeyPatch, s: WordSettings):
    """What a student is fitted to."""
    seen = []

    def look(learner, data, checks, settings, *, key):
        seen.append((data, checks, key))
        raise InterruptedError

    monkeypatch.setattr(word_runs, "learning_curve", look)
    with pytest.raises(InterruptedError):
        fit_words(s, CONTEXT)
    return seen[0]


@pytest.mark.parametrize("on", ["topics", "texts"])
def test_students_of_a_seed_see_the_same_nested_sentences(monkeypatch, texts, on):
    s = replace(SMALL if on == "topics" else texts, seed=3)
    data, checks, key = _seen(monkeypatch, s)
    changes = [
        {"student": "mean-pooling"},
        {"student": "sparsemax"},
        {"sizes": (64,)},
        {"sizes": (4, 8), "drawn": 64},
    ]
    for change in changes:
        other, other_checks, other_key = _seen(monkeypatch, replace(s, **change))
        few = min(len(other["y"]), len(data["y"]))
        assert np.array_equal(other["y"][:few], data["y"][:few])
        assert np.array_equal(other["x"]["bag"].words[:few], data["x"]["bag"].words[:few])
        assert np.array_equal(other_checks["test"]["y"], checks["test"]["y"])
        assert jnp.array_equal(jax.random.key_data(other_key), jax.random.key_data(key))
    if on == "topics":
        counted, _, counted_key = _seen(monkeypatch, replace(s, student="topic-counts"))
        assert np.array_equal(counted["y"], data["y"])
        assert jnp.array_equal(jax.random.key_data(counted_key), jax.random.key_data(key))


def test_attention_needs_fewer_sentences_but_not_fewer_than_counts_of_the_topic_words():
    students = ("mean-pooling", "attention-pooling", "topic-counts", TF_IDF)
    found = {student: fit_words(replace(SMALL, student=student), CONTEXT) for student in students}
    for student in students[:3]:
        for name in ("valid_loss", "train_loss", "settling", "step_size", "weight_decay"):
            assert found[student][name].dims == ("size",)
    mean, attention, counts, tf_idf = (float(found[name].accuracy[1]) for name in students)
    assert mean < tf_idf < attention
    assert mean < 0.9 < attention
    assert counts == 1.0
    assert float(found["attention-pooling"].attention[1]) > 2 / 9
    np.testing.assert_allclose(found["mean-pooling"].entropy, np.log(9), rtol=1e-5)
    np.testing.assert_allclose(found["mean-pooling"].attention, 1 / 9, rtol=1e-5)


@pytest.mark.parametrize("on", ["topics", "texts"])
@pytest.mark.parametrize(("student", "variant"), POOLING.items())
def test_a_student_is_the_variant_that_it_is_named_after(texts, on, student, variant):
    """To the last bit, whatever other sizes there are: a page shows one number for one model.

    Programs that are not optimised may differ in their last digit.
    """
    s = SMALL if on == "topics" else texts
    curve = fit_words(replace(s, student=student), CONTEXT)
    alone = fit_words(replace(s, student=variant, sizes=s.sizes[-1:]), CONTEXT)
    for name in ("accuracy", "entropy", "step_size"):
        expected = pytest.approx(float(alone[name][0]), rel=0 if OPTIMISED else 1e-6, abs=0)
        assert float(curve[name][-1]) == expected


def test_a_course_is_told():
    found = fit_words(replace(SMALL, student="softmax", course=True), CONTEXT)
    assert 0 < float(found.onset) < 150
    assert {"course_accuracy", "course_attention", "course_entropy"} <= set(found.data_vars)


def test_of_long_and_many_texts_some_are_read(monkeypatch, texts):
    monkeypatch.setattr(thinning, "LONGEST", 4)
    monkeypatch.setattr(thinning, "LOOKED_AT", 10)
    word_runs._some_texts.cache_clear()
    data, checks, _ = _seen(monkeypatch, texts)
    assert data["x"]["bag"].words.shape == (80, 4)
    assert checks["test"]["x"]["bag"].words.shape == (10, 4)
    word_runs._some_texts.cache_clear()


def test_what_cannot_be_measured_is_refused(texts):
    with pytest.raises(AttnlabError, match="there are 160 training sentences"):
        fit_words(replace(texts, sizes=(20, 500)), CONTEXT)
    with pytest.raises(AttnlabError, match="not those that the plan was made for"):
        fit_words(replace(texts, data="0" * 16), CONTEXT)
    with pytest.raises(AttnlabError, match="expected one of mean-pooling"):
        WordSettings(student="max-pooling")
    with pytest.raises(AttnlabError, match="every word has its own score"):
        WordSettings(student="softmax+l1:1")
    with pytest.raises(AttnlabError, match="nobody knows which words"):
        WordSettings(student="softmax+prior:1", folder="somewhere")
    with pytest.raises(AttnlabError, match="nobody knows which words"):
        WordSettings(student="topic-counts", folder="somewhere")
    with pytest.raises(AttnlabError, match="only pooling has a course"):
        WordSettings(student=TF_IDF, course=True)
    with pytest.raises(AttnlabError, match="increasing positive numbers of sentences"):
        WordSettings(sizes=(8, 8))


def test_paper_scale_shows_plain_descent_too():
    grid = topic_pooling.grid("paper", 2)
    sizes = {"mean-pooling": (16, 64), "attention-pooling": (8, 16), "topic-counts": (8, 16)}
    small = {"drawn": 64, "steps": 5, "step_sizes": (0.1,), "weight_decays": (0.0,)}
    small |= {"dictionary": 30, "valid_points": 20, "test_points": 20, "batch_size": 8}
    arms = {}
    for label, arm in grid.arms.items():
        changed = {**arm, **small, "sizes": sizes[arm["student"]]}
        runs = [fit_words(WordSettings(seed=k, **changed), CONTEXT) for k in range(2)]
        arms[label] = along(runs, "seed", range(2))
    data = topic_pooling.measured(arms)
    assert UnderDescent.of(data).student.values.tolist() == ["mean-pooling", "attention-pooling"]
    assert claim.figures is not None
    drawn = {figure.id for figure in claim.figures(data)}
    assert {"pooling_curves", "pooling_descent", "pooling_ratio"} <= drawn
