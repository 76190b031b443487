from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score, learning_curve
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from attnlab._errors import AttnlabError
from attnlab.data import index_texts
from attnlab.estimators import AttentionClassifier
from attnlab.estimators._inputs import as_seed, hold_out
from attnlab.models import attention_weights, literal_logits
from tests.estimators.cases import topic_texts, topic_words

pytestmark = pytest.mark.slow

TEXTS, LABELS = topic_texts(600)
QUICK: dict[str, Any] = {"steps": 150, "step_size": 0.03, "batch_size": None}
ONE_STEP: dict[str, Any] = QUICK | {"steps": 1}
RAISE: dict[str, Any] = {"error_score": "raise"}


@pytest.fixture(scope="module")
def fitted() -> AttentionClassifier:
    return AttentionClassifier(steps=400, step_size=0.03).fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def indexed(fitted):
    """New texts, over the classifier's words and class numbers."""
    texts, labels = topic_texts(60, seed=1)
    texts[3], texts[8] = texts[3] + " unknown words film film", "nothing known"
    numbers = [str(number) for number in np.searchsorted(fitted.classes_, labels)]
    return texts, index_texts(texts, numbers, fitted.vocabulary_, classes=["0", "1", "2"])


def test_topics_are_learned_and_attended_to(fitted):
    texts, labels = topic_texts(300, seed=5)
    assert fitted.score(texts, labels) >= 0.9
    assert fitted.classes_.tolist() == ["film", "music", "sport"]
    best = [max(words, key=lambda pair: pair[1])[0] for words in fitted.attention(texts)]
    assert np.mean([bool(topic_words([word])) for word in best]) >= 0.9
    assert 0 < fitted.n_iter_ <= 400


def test_attention_is_that_of_the_model(fitted, indexed):
    texts, (corpus, kept) = indexed[0], (indexed[1].corpus, indexed[1].kept)
    weights, found = attention_weights(fitted.model_, corpus), fitted.attention(texts)
    assert found[8] == []
    for n, i in enumerate(kept.tolist()):
        assert [word for word, _ in found[i]] == [
            w for w in texts[i].split() if w in fitted.vocabulary_.numbers
        ]
        assert sum(weight for _, weight in found[i]) == pytest.approx(1, abs=1e-12)
        span = slice(corpus.offsets[n], corpus.offsets[n + 1])
        expected = {
            corpus.vocabulary[w]: a for w, a in zip(corpus.words[span], weights[span], strict=True)
        }
        together: dict[str, float] = {}
        for word, weight in found[i]:
            together[word] = together.get(word, 0.0) + weight
        assert together == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"head": "two_layer"},
        {"head": "fixed"},
        {"pooling": "mean"},
        {"classes": ("film", "music")},
        {"normaliser": "sparsemax"},
        {"normaliser": "softmax:0.5", "class_weight": "balanced"},
        {"normaliser": "top2", "batch_size": 16},
    ],
)
def test_probabilities_are_those_of_the_literal_model(settings: Any):
    classes = settings.pop("classes", ("film", "music", "sport"))
    train, labels = topic_texts(80, classes=classes)
    classifier = AttentionClassifier(**QUICK | {"dtype": "float64", "steps": 40} | settings).fit(
        train, labels
    )
    texts, labels = topic_texts(12, classes=classes, seed=1)
    numbers = [str(number) for number in np.searchsorted(classifier.classes_, labels)]
    names = [str(i) for i in range(len(classes))]
    indexed = index_texts(texts, numbers, classifier.vocabulary_, classes=names)
    logits = np.asarray(literal_logits(classifier.model_, indexed.corpus))
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert np.allclose(classifier.predict_proba(texts), expected, rtol=1e-10, atol=0)
    assert np.allclose(np.exp(classifier.predict_log_proba(texts)), expected, rtol=1e-10, atol=0)
    assert (classifier.predict(texts) == classifier.classes_[expected.argmax(axis=1)]).all()
    decision = classifier.decision_function(texts)
    if len(classes) == 2:
        assert np.allclose(decision, logits[:, 1] - logits[:, 0])
    else:
        assert (decision.argmax(axis=1) == expected.argmax(axis=1)).all()
    if settings.get("pooling") == "mean":
        assert {
            round(weight, 12) for words in classifier.attention(texts) for _, weight in words
        } == {round(1 / 9, 12)}


def test_sparse_attention_is_sparse_and_texts_of_any_length_agree():
    train, labels = topic_texts(80)
    given: dict[str, Any] = QUICK | {"steps": 300, "normaliser": "sparsemax"}
    classifier = AttentionClassifier(**given).fit(train, labels)
    texts = [train[0], " ".join(train[:7]), "unknownword", train[1]]
    found = classifier.attention(texts)
    assert found == [classifier.attention([text])[0] for text in texts]
    assert found[2] == []
    assert min(weight for _, weight in found[1]) == 0.0
    assert [sum(weight for _, weight in words) for words in found[:2]] == pytest.approx([1, 1])


@pytest.mark.parametrize("normaliser", ["sparsemax", "softmax:0.5"])
def test_equal_weights_are_no_weights_under_any_normaliser(normaliser):
    train, labels = topic_texts(60)
    given: dict[str, Any] = QUICK | {"dtype": "float64", "steps": 40, "normaliser": normaliser}
    plain = AttentionClassifier(**given).fit(train, labels)
    even = AttentionClassifier(**given, class_weight=dict.fromkeys(set(labels), 2.0)).fit(
        train, labels
    )
    assert np.allclose(plain.predict_proba(train), even.predict_proba(train), rtol=1e-8)


def test_texts_without_a_known_word_get_the_prior(fitted):
    shares = fitted.predict_proba(["", "nothing known here", "\0"])
    assert (shares == fitted.class_prior_).all() or np.allclose(
        shares, fitted.class_prior_, rtol=1e-14
    )
    assert np.isfinite(shares).all()
    # Of the training texts alone: about nine tenths of all.
    assert np.allclose(
        fitted.class_prior_, np.unique(LABELS, return_counts=True)[1] / 600, atol=0.01
    )
    assert fitted.predict_proba([]).shape == (0, 3)


def test_many_texts_are_answered_as_one_by_one(fitted):
    texts = [*topic_texts(300, seed=7)[0], ""] * 15  # more than are pooled at once
    together = fitted.predict_proba(texts)
    assert np.allclose(
        together[:301], np.concatenate([fitted.predict_proba([text]) for text in texts[:301]])
    )
    assert (together.reshape(15, 301, 3) == together[:301]).all()


def test_the_same_seed_gives_the_same_model():
    one, same, other = (
        AttentionClassifier(**QUICK, random_state=s).fit(TEXTS, LABELS) for s in (1, 1, 2)
    )
    texts, _ = topic_texts(30, seed=3)
    assert (one.predict_proba(texts) == same.predict_proba(texts)).all()
    assert (one.predict_proba(texts) != other.predict_proba(texts)).any()
    assert (
        as_seed(np.random.RandomState(0))
        == as_seed(np.random.RandomState(0))
        != as_seed(np.random.RandomState(1))
    )


@pytest.mark.parametrize(
    "kind", [list, np.array, pd.Series, lambda texts: np.array(texts, object), tuple]
)
def test_texts_of_any_container(fitted, kind):
    texts, _ = topic_texts(20, seed=4)
    assert (fitted.predict(kind(texts)) == fitted.predict(texts)).all()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_of_data_frames(kind):
    frames = pytest.importorskip(kind)
    texts, labels = topic_texts(60)
    frame = frames.DataFrame({"text": texts, "label": labels})
    base: Any = AttentionClassifier(**QUICK, early_stopping=False)
    fresh: Any = clone(base)
    classifier = fresh.fit(frame["text"], frame["label"])
    expected = base.fit(texts, labels)
    assert classifier.classes_.tolist() == expected.classes_.tolist()
    assert (classifier.predict(frame["text"]) == expected.predict(texts)).all()
    assert classifier.score(frame["text"], frame["label"]) == expected.score(texts, labels)
    with pytest.raises(AttnlabError, match=r"columns \['text', 'label'\]; expected only its text"):
        classifier.predict(frame)
    missing = frames.Series([*texts[:-1], None])
    with pytest.raises(AttnlabError, match=r"text number 59 is .*: drop missing texts first"):
        classifier.predict(missing)
    unlabelled = frames.Series([*labels[:-1], None])
    with pytest.raises(AttnlabError, match="label number 59 is missing"):
        base.fit(frame["text"], unlabelled)


@pytest.mark.parametrize("names", [(2, 7, 5), (True, False)])
def test_labels_of_any_type_come_back(names: Any):
    texts, numbers = topic_texts(60, classes=("0", "1", "2")[: len(names)])
    labels = [names[int(number)] for number in numbers]
    classifier = AttentionClassifier(**QUICK, early_stopping=False).fit(texts, pd.Series(labels))
    assert classifier.classes_.tolist() == sorted(set(labels))
    answers = classifier.predict(texts)
    assert answers.dtype == classifier.classes_.dtype
    assert np.mean(answers == np.array(labels)) > 0.9


def test_scikit_learns_tools_take_it():
    texts, labels = topic_texts(150, classes=("film", "music"))
    base = AttentionClassifier(**QUICK, early_stopping=False)
    copied: Any = clone(base)
    assert copied.get_params() == base.get_params()
    assert not hasattr(copied, "classes_")
    assert (cross_val_score(base, texts, labels, cv=2, **RAISE) >= 0.9).all()
    search = GridSearchCV(base, {"random_state": [0, 1]}, cv=2, **RAISE).fit(texts, labels)
    assert search.best_score_ >= 0.9
    assert search.predict(texts[:3]).shape == (3,)
    found: Any = learning_curve(base, texts, labels, train_sizes=np.array([40]), cv=2, **RAISE)
    sizes, _, scores = found
    assert sizes.tolist() == [40]
    assert np.isfinite(scores).all()
    shouting = FunctionTransformer(lambda given: [text.upper() for text in given])
    pipeline = Pipeline([("shout", shouting), ("attend", base)]).fit(texts, labels)
    assert pipeline.score(texts, labels) >= 0.9
    assert "attend__embedding_dim" in pipeline.get_params()
    tags = get_tags(base)
    assert tags.estimator_type == "classifier"
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array


def test_words_are_those_of_the_settings():
    texts = ["Film, film! music", "MUSIC? one"] * 10

    def words(**settings: Any):
        classifier = AttentionClassifier(**ONE_STEP, early_stopping=False, **settings)
        return classifier.fit(texts, [0, 1] * 10).vocabulary_.words

    assert words(lower=False, punctuation=True) == (
        "!",
        ",",
        "?",
        "Film",
        "MUSIC",
        "film",
        "music",
        "one",
    )
    assert words(tokenizer=str.split, max_words=3) == ("Film,", "MUSIC?", "film!")
    assert words(tokenizer=TfidfVectorizer().build_analyzer(), min_count=11) == ("film", "music")


def test_the_vocabulary_and_the_prior_know_nothing_of_held_out_texts():
    texts = [f"{word} own{i}" for i, word in enumerate(["film", "music"] * 60)]
    classifier = AttentionClassifier(**ONE_STEP, validation_fraction=0.5).fit(texts, [0, 1] * 60)
    assert len([word for word in classifier.vocabulary_.words if word.startswith("own")]) == 60


def test_few_texts_are_not_held_out():
    texts, numbers = [f"text {i}" for i in range(120)], np.arange(120) % 2
    assert [len(part) for part in hold_out(texts, numbers, 0.5, 0)] == [60, 60]
    assert [len(part) for part in hold_out(texts, numbers, 0.4, 0)] == [120, 0]
    assert [len(part) for part in hold_out([*texts, "rare"], np.append(numbers, 2), 0.5, 0)] == [
        121,
        0,
    ]


@pytest.mark.parametrize(("batch_size", "early_stopping"), [(None, False), (32, True)])
def test_equal_class_weights_are_no_weights(batch_size, early_stopping):
    settings = QUICK | {
        "batch_size": batch_size,
        "early_stopping": early_stopping,
        "dtype": "float64",
        "steps": 30,
        "patience": 50,
    }
    plain = AttentionClassifier(**settings).fit(TEXTS, LABELS)
    weights: dict[str, float] = dict.fromkeys(plain.classes_, 3.0)
    weighted = AttentionClassifier(**settings, class_weight=weights).fit(TEXTS, LABELS)
    assert np.allclose(plain.predict_proba(TEXTS), weighted.predict_proba(TEXTS), rtol=1e-6)
    assert weighted.n_iter_ == plain.n_iter_


def test_a_weight_is_worth_as_many_copies():
    texts, labels = topic_texts(40, classes=("film", "music"))
    settings: dict[str, Any] = {
        "steps": 60,
        "batch_size": None,
        "early_stopping": False,
        "dtype": "float64",
    }
    heavy = AttentionClassifier(**settings, class_weight={"film": 3.0}).fit(texts, labels)
    copies = [i for i, label in enumerate(labels) for _ in range(3 if label == "film" else 1)]
    copied = AttentionClassifier(**settings).fit([texts[i] for i in copies], labels[copies])
    assert np.allclose(heavy.predict_proba(texts), copied.predict_proba(texts), rtol=1e-6)
    assert np.allclose(heavy.class_prior_, copied.class_prior_)


def test_balanced_weights_serve_a_rare_class():
    rng = np.random.default_rng(0)
    labels = (rng.random(600) < 0.08).astype(int)
    texts = [
        f"{'yes' if rng.random() < (0.7 if label else 0.2) else 'no'} noise{rng.integers(20)}"
        for label in labels
    ]
    recalls = []
    for weight in (None, "balanced"):
        answers = (
            AttentionClassifier(**QUICK, early_stopping=False, class_weight=weight)
            .fit(texts, labels)
            .predict(texts)
        )
        recalls.append(answers[labels == 1].mean())
    assert recalls[1] > recalls[0] + 0.3


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (TEXTS, ["one"] * 600, r"all 600 texts have the same label \['one'\]"),
        (TEXTS, LABELS[:-1], "got 600 texts but 599 labels"),
        ([1, 2], [0, 1], "text number 0 is int '1'; expected a string"),
        (["a b", None], [0, 1], "text number 1 is NoneType"),
        (["a b", float("nan")], [0, 1], "text number 1 is float 'nan'"),
        ("a text", [0], "got str 'a text'; expected a list of texts"),
        (np.array([["a", "b"]]), [0], r"an array of shape \(1, 2\)"),
        (pd.DataFrame({"t": ["a"], "u": ["b"]}), [0], r"a table with the columns \['t', 'u'\]"),
        (["a b", "c d"], [[0, 1], [1, 0]], r"y has shape \(2, 2\)"),
        (["a b", "c d", "e"], [0.1, 0.25, 0.3], "the labels are not classes"),
        (["word", "word"], [0, 1], "attention needs at least 2"),
    ],
)
def test_bad_data_is_refused_in_words(texts, labels, message):
    with pytest.raises(AttnlabError, match=message):
        AttentionClassifier(steps=1).fit(texts, labels)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "max"}, "pooling='max': expected 'attention' or 'mean'"),
        ({"head": "deep"}, "head='deep'"),
        ({"optimizer": "sgd"}, "optimizer='sgd': expected 'adam' or 'descent'"),
        ({"class_weight": "equal"}, "class_weight='equal'"),
        ({"class_weight": {"other": 1}}, "class_weight names 'other'"),
        ({"class_weight": {"film": -1}}, "expected positive weights"),
        ({"validation_fraction": 1.5}, "validation_fraction=1.5"),
        ({"random_state": "x"}, "random_state='x'"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"step_size": -1}, "step_size=-1.0"),
        ({"tokenizer": "nowhere_at_all:f"}, "cannot be imported"),
        (
            {"optimizer": "descent", "step_size": 1e30, "steps": 9, "batch_size": None},
            "no longer finite.*smaller step_size",
        ),
    ],
)
def test_bad_settings_are_refused_in_words(settings, message):
    with pytest.raises(AttnlabError, match=message):
        AttentionClassifier(**{"steps": 1} | settings).fit(TEXTS, LABELS)


def test_an_unfitted_classifier_says_so():
    for ask in ("predict", "predict_proba", "attention"):
        with pytest.raises(NotFittedError):
            getattr(AttentionClassifier(), ask)(["text"])
