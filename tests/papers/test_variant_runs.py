"""Variants of attention on teachers and sentences: against equations written out, and paired from
seed to seed.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.data import Corpus
from attnlab.data.thinning import shortened
from attnlab.models import WordAttentionConfig, literal_logits, make_normaliser
from attnlab.papers.liu2021 import variant_runs
from attnlab.papers.liu2021.variant_runs import (
    AttendingTeacher,
    StudentStart,
    VariantLoss,
    VariantMeasure,
    answer_words,
    fit_variant,
    onset_step,
    weigh_words,
    word_source,
)
from attnlab.papers.liu2021.variant_settings import Variant, VariantSettings, WordSettings
from attnlab.papers.liu2021.variant_word_runs import (
    WordAnswer,
    WordWeights,
    fit_words,
    word_samples,
)
from attnlab.runs import RunContext

CONTEXT = RunContext(0, 0, "0" * 16)
SMALL = VariantSettings(
    sizes=(32, 128), steps=150, words=6, embedding_dim=4, hidden=6, test_points=200, valid_points=60
)
WORDS = WordSettings(
    sizes=(8, 64),
    steps=120,
    batch_size=16,
    step_sizes=(0.1,),
    weight_decays=(0.0,),
    embedding_dim=3,
    topics=2,
    topic_words=1,
    dictionary=100,
    noise_words=6,
)
_TOKENS = [["a", "b", "b"], ["c"], ["d", "a", "e", "e", "e"], ["b", "c", "d"]]
_CORPUS = Corpus.from_tokens(_TOKENS, labels=[0, 1, 2, 1])


@pytest.mark.parametrize(
    "name", ["softmax+entropy", "softmax+l2:1", "softmax+entropy:-1", "softmax+prior:x", "hardmax"]
)
def test_a_wrong_variant_is_refused(name):
    with pytest.raises(AttnlabError, match="expected"):
        Variant.of(name)
    with pytest.raises(AttnlabError, match="expected"):
        VariantSettings(variant=name)


@pytest.mark.parametrize("relevant", [1, 3, 6])
def test_the_teacher_attends_to_the_words_that_its_direction_ranks_first(relevant):
    source = word_source(0, replace(SMALL, relevant=relevant))
    drawn = source.draw(50, jax.random.key(1), False, "float64")
    direction, head = np.asarray(source.model.direction), source.model.head
    assert np.count_nonzero(direction) == 2
    assert np.linalg.norm(direction) == pytest.approx(1)
    for x, given, y in zip(
        *map(np.asarray, (drawn["x"]["words"], drawn["x"]["given"], drawn["y"])), strict=True
    ):
        chosen = sorted(range(6), key=lambda z: -float(direction @ x[:, z]))[:relevant]
        expected = [1 / relevant if z in chosen else 0.0 for z in range(6)]
        np.testing.assert_allclose(given, expected, rtol=1e-12)
        mean = np.mean([x[:, z] for z in chosen], axis=0)
        assert y * float(source.teacher.deviation) == pytest.approx(
            float(head(jnp.asarray(mean))), rel=1e-9
        )
    large = source.draw(20_000, jax.random.key(2), False, "float64")["y"]
    assert float(np.std(large)) == pytest.approx(1, abs=0.03)


def test_noise_is_added_to_the_same_samples_and_smaller_samples_are_the_start_of_larger_ones():
    source = word_source(0, replace(SMALL, noise_std=0.5))
    quiet, noisy = (source.draw(4000, jax.random.key(1), each, "float64") for each in (False, True))
    np.testing.assert_array_equal(quiet["x"]["words"], noisy["x"]["words"])
    assert float(np.std(noisy["y"] - quiet["y"])) == pytest.approx(0.5, rel=0.05)
    few = source.draw(30, jax.random.key(1), True, "float64")
    np.testing.assert_array_equal(few["y"], noisy["y"][:30])


@pytest.mark.parametrize("normaliser", ["softmax:0.5", "sparsemax", "top2", "uniform"])
def test_the_student_is_the_equation_word_by_word(normaliser):
    student = StudentStart(normaliser, 4, 6, query_std=1.0)(jax.random.key(3))
    x = np.random.default_rng(0).normal(size=(4, 5))
    logits = [sum(float(student.query[i]) * x[i, z] for i in range(4)) for z in range(5)]
    weights = np.asarray(make_normaliser(normaliser)(jnp.asarray(logits)))
    context = sum(weights[z] * x[:, z] for z in range(5))
    hidden = np.log1p(np.exp(4 * (context @ np.asarray(student.head.w1)))) / 4
    assert float(student(jnp.asarray(x))) == pytest.approx(
        float((hidden @ np.asarray(student.head.w2))[0]), rel=1e-9
    )


def test_penalties_are_those_of_their_names():
    student = StudentStart("softmax", 4, 6, query_std=1.0)(jax.random.key(3))
    batch = word_source(0, SMALL).draw(8, jax.random.key(1), True, "float64")
    plain = float(VariantLoss(answer_words, weigh_words)(student, batch))
    residual = np.asarray(jax.vmap(student)(batch["x"]["words"]) - batch["y"])
    assert plain == pytest.approx(np.mean(residual**2))
    weights = np.asarray(jax.vmap(student.attention)(batch["x"]["words"]))
    given = np.asarray(batch["x"]["given"])
    expected = {
        "entropy": np.mean(-np.sum(weights * np.log(weights), axis=1)),
        "l1": np.abs(np.asarray(student.query)).sum(),
        "prior": np.mean(np.sum((weights - given) ** 2, axis=1)),
        "wrong-prior": np.mean(np.sum((weights - given[:, [5, 0, 1, 2, 3, 4]]) ** 2, axis=1)),
    }
    for penalty, value in expected.items():
        found = float(VariantLoss(answer_words, weigh_words, penalty, 0.3)(student, batch))
        assert found - plain == pytest.approx(0.3 * value, rel=1e-9), penalty


def test_what_is_measured_of_attention():
    student = StudentStart("sparsemax", 4, 6, query_std=1.0)(jax.random.key(3))
    batch = word_source(0, SMALL).draw(40, jax.random.key(1), False, "float64")
    found = VariantMeasure(answer_words, weigh_words, "error")(
        student, {"valid": batch, "test": batch}
    )
    weights = np.asarray(jax.vmap(student.attention)(batch["x"]["words"]))
    logs = np.log(np.where(weights > 0, weights, 1))
    assert float(found["entropy"]) == pytest.approx(float(np.mean(-np.sum(weights * logs, axis=1))))
    right = np.asarray(batch["x"]["given"]) > 0
    assert float(found["attention"]) == pytest.approx(float(weights[right].sum() / 40))
    wrong = np.mean(
        (np.asarray(jax.vmap(student)(batch["x"]["words"])) - np.asarray(batch["y"])) ** 2
    )
    assert float(found["error"]) == pytest.approx(float(wrong / np.var(batch["y"])))


def test_variants_of_a_seed_see_the_same_samples_and_starts(monkeypatch):
    seen = {}

    def look(learner, data, checks, s, *, key):
        seen[name] = data, checks, key, learner.start(key)
        raise InterruptedError

    monkeypatch.setattr(variant_runs, "learning_curve", look)
    for name in ("softmax", "sparsemax", "softmax+prior:1"):
        with pytest.raises(InterruptedError):
            fit_variant(replace(SMALL, variant=name, seed=3), CONTEXT)
    name = "longer"
    with pytest.raises(InterruptedError):
        fit_variant(replace(SMALL, seed=3, sizes=(8, 300)), CONTEXT)
    data, checks, key, start = seen["softmax"]
    for other, other_checks, other_key, other_start in seen.values():
        np.testing.assert_array_equal(other["y"][:128], data["y"])
        np.testing.assert_array_equal(other_checks["test"]["y"], checks["test"]["y"])
        np.testing.assert_array_equal(jax.random.key_data(other_key), jax.random.key_data(key))
        np.testing.assert_array_equal(other_start.query, start.query)
        np.testing.assert_array_equal(other_start.head.w1, start.head.w1)


def test_a_variant_learns_and_its_course_is_told():
    found = fit_variant(replace(SMALL, course=True, sizes=(32, 512), steps=600), CONTEXT)
    assert float(found.error[1]) < float(found.error[0])
    assert float(found.attention[1]) > 0.4  # of six words one matters
    assert found.course_error.dims == ("step",)
    assert found.step.values[[0, -1]].tolist() == [0, 600]
    assert 0 < float(found.onset) < 600
    assert float(found.sharpness) > 0
    again = fit_variant(replace(SMALL, sizes=(32, 512), steps=600), CONTEXT)
    np.testing.assert_array_equal(again.error, found.error)


def test_onset_is_where_half_of_the_way_is_gone_whichever_way():
    steps = np.array([0, 10, 20, 40])
    assert onset_step(steps, np.array([0.0, 0.0, 0.8, 0.8]), rising=True) == pytest.approx(15)
    assert onset_step(steps, np.array([1.0, 0.5, 0.2, 0.0]), rising=False) == pytest.approx(10)
    assert np.isnan(onset_step(steps, np.array([1.0, np.nan, 0.2, np.nan]), rising=False))
    assert np.isnan(onset_step(steps, np.array([1.0, 3.0, 1.0, 1.01]), rising=True))
    assert np.isnan(onset_step(steps, np.array([1.0, 0.5, 0.2, 0.0]), rising=True))


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax", "top1", "uniform"])
def test_sentences_are_the_equation_and_padding_is_no_word(normaliser):
    config = WordAttentionConfig.for_corpus(
        _CORPUS,
        head="linear",
        embedding_dim=3,
        embedding_std=1.0,
        key_std=1.0,
        key_dim=1,
        query_norm=1.0,
        trained=("embeddings", "keys", "head"),
    )
    model = config.init(jax.random.key(0))
    for length in (5, 9):
        given = word_samples(_CORPUS, length, np.array([1, 3]), "float64")
        logits = jax.vmap(WordAnswer(normaliser), (None, 0))(model, given["x"])
        expected = literal_logits(model, _CORPUS, normaliser=make_normaliser(normaliser))
        np.testing.assert_allclose(logits, expected, rtol=1e-9, atol=1e-12)
        weights = np.asarray(jax.vmap(WordWeights(normaliser), (None, 0))(model, given["x"]))
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
        assert not weights[~np.asarray(given["x"]["there"])].any()
    matter = np.asarray(given["x"]["given"])
    assert matter.sum(axis=1).tolist() == [1, 0, 1, 1]
    assert matter[0].max() == 0.5  # "b" twice


def test_long_texts_keep_some_of_their_words():
    short = shortened(_CORPUS, 2, np.random.default_rng(0))
    assert short.lengths.tolist() == [2, 1, 2, 2]
    assert (short.labels == _CORPUS.labels).all()
    for n in range(len(_CORPUS)):
        whole = _CORPUS.sentence(n)
        assert all(count <= whole[word] for word, count in short.sentence(n).items())
    assert shortened(_CORPUS, 5, np.random.default_rng(0)) is _CORPUS


def test_attention_pooling_learns_topic_words_and_mean_pooling_is_even():
    found = fit_words(replace(WORDS, course=True), CONTEXT)
    assert float(found.accuracy[1]) > 0.9
    assert 0 < float(found.onset) < 120
    assert {"course_accuracy", "course_attention", "course_entropy"} <= set(found.data_vars)
    mean = fit_words(replace(WORDS, variant="uniform"), CONTEXT)
    np.testing.assert_allclose(mean.entropy, np.log(7), rtol=1e-5)
    np.testing.assert_allclose(mean.attention, 1 / 7, rtol=1e-5)
    assert float(found.attention[1]) > 2 / 7


def test_penalties_without_meaning_and_sizes_beyond_the_data_are_refused():
    with pytest.raises(AttnlabError, match="every word has its own score"):
        WordSettings(variant="softmax+l1:1")
    with pytest.raises(AttnlabError, match="nobody knows which words"):
        WordSettings(variant="softmax+prior:1", folder="somewhere")
    with pytest.raises(AttnlabError, match=r"expected 1 \(hard\) to 6"):
        replace(SMALL, relevant=7)
    with pytest.raises(AttnlabError, match="increasing"):
        replace(SMALL, sizes=(64, 64))
    with pytest.raises(AttnlabError, match="expected 1 to 4"):
        replace(SMALL, informative=5)


def test_a_teacher_breaks_ties_as_top_k_does():
    teacher = AttendingTeacher(
        jnp.array([1.0]),
        word_source(0, replace(SMALL, embedding_dim=1, informative=1)).model.head,
        2,
    )
    assert teacher.attention(jnp.array([[2.0, 1.0, 1.0]])).tolist() == [0.5, 0.5, 0.0]
