"""A study of texts: students against scikit-learn, where training stopped, answers in words."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from attnlab import AttnlabError, lab, load_classifier, study_texts
from attnlab.data import TextSource, _prepare, prepare_texts, thinning
from attnlab.models import literal_logits
from attnlab.papers.liu2021.word_runs import tf_idf_curve
from attnlab.questions.texts import Study, StudySettings
from attnlab.questions.texts._answers import pays
from attnlab.questions.texts._stopped import compact_model, where_stopped
from attnlab.questions.texts._study import default_sizes
from attnlab.questions.texts._work import competing
from tests.data.reviews import TELLING, rows, write

pytestmark = pytest.mark.slow

SMALL = {
    "seeds": 2,
    "sizes": (24, 96, 192),
    "fit_steps": 60,
    "training_seeds": 2,
    "training_steps": 480,
    "embedding_dim": 8,
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A whole study, small."""
    folder = tmp_path_factory.mktemp("study")
    file = write(folder / "reviews.csv", rows(240))
    stages: list[str] = []
    out = study_texts(
        file, folder / "out", processes=0, progress=False, on_stage=stages.append, **SMALL
    )
    assert "reading the texts" in stages
    return folder, StudySettings(files=(file,), **SMALL), out


def test_figures_of_many_texts_say_what_they_look_at(tmp_path, monkeypatch):
    """A study through the stream, with limits so low that everything is sampled."""
    monkeypatch.setattr(_prepare, "STREAM_BYTES", 0)
    monkeypatch.setattr(thinning, "FULL_BATCH", 0)
    for name in ("TRAINING", "MEASURED", "CURVATURE", "LENGTHS"):
        monkeypatch.setattr(thinning, name, 15)
    file = write(tmp_path / "reviews.csv", rows(200))
    small = SMALL | {"seeds": 1, "sizes": (24, 96), "fit_steps": 20, "training_steps": 48}
    out = study_texts(
        file, tmp_path / "out", processes=0, progress=False, what_to_try=False, **small
    )
    told = {
        (entry["figure"], entry["what"]): (entry["used"], entry["of"])
        for entry in out.content["reading"]["sampled"]
    }
    assert told["learning curves", "labels"] == (96, 160)
    assert told["words per text", "training texts"] == (15, 160)
    assert told["loss and accuracy along training", "test texts"] == (15, 20)
    assert told["attended words and words that compete", "training texts"] == (15, 160)
    assert not [
        key for key in told if "permutations" in key[1]
    ]  # so few words are permuted as often as asked
    assert out.data["lengths"].sizes["sentence"] == 15
    shares = np.concatenate(
        [out.data["training"][name].values.ravel() for name in ("accuracy", "accuracy_test")]
    )
    np.testing.assert_allclose(shares * 15, np.round(shares * 15), atol=1e-4)  # of 15 texts
    assert int(out.data["deletion"].sentences) + int(out.data["deletion"].left_out) == 15
    figures = {figure.id: figure for figure in Study().sections(out)[0].figures}
    assert figures["sampled"].table["used"][:2] == [15, 96]


def test_tf_idf_is_scikit_learns(tmp_path):
    prepared = prepare_texts(TextSource((write(tmp_path / "a.csv", rows(200)),)))
    found = tf_idf_curve(prepared.train, prepared.valid, prepared.test, (160,), strengths=(3.0,))
    words = TfidfVectorizer(sublinear_tf=True, token_pattern=r"[^\s<>=()]+")
    classes = np.asarray(prepared.train.classes)
    model = LogisticRegression(C=3.0, max_iter=1000)
    model.fit(words.fit_transform(prepared.texts["train"]), classes[prepared.train.labels])
    expected = model.score(words.transform(prepared.texts["test"]), classes[prepared.test.labels])
    assert float(found.accuracy[0]) == pytest.approx(
        expected, abs=0.06
    )  # tokens of the evil words differ a little


def test_the_compact_model_is_the_function_it_stands_for(tmp_path):
    prepared = prepare_texts(TextSource((write(tmp_path / "a.csv", rows(60)),)))
    rng = np.random.default_rng(0)
    count = len(prepared.vocabulary)
    score, table = rng.normal(size=count), rng.normal(size=(count, 1))
    logits = np.asarray(literal_logits(compact_model(score, table, 2), prepared.test))
    for n in range(len(prepared.test)):
        span = slice(prepared.test.offsets[n], prepared.test.offsets[n + 1])
        words, counts = prepared.test.words[span], prepared.test.counts[span]
        weights = counts * np.exp(score[words])
        assert logits[n, 0] - logits[n, 1] == pytest.approx(
            float(weights @ table[words, 0] / weights.sum())
        )


def test_a_study_answers_every_question(done):
    _, _, out = done
    assert set(out.data) >= {
        "curves",
        "needed",
        "lengths",
        "training",
        "words",
        "sen",
        "sentences",
        "ends",
        "agreement",
    }
    links = [card["link"] for card in out.content["cards"]]
    assert list(dict.fromkeys(links)) == ["data", "pays", "words", "training", "good", "try"]
    assert not out.about["cards"]
    assert out.about["summary"] == [out.content["verdicts"]["answer"]["sentence"]]
    assert out.content["verdicts"]["pays"]["verdict"] in (
        "saves",
        "no advantage",
        "costs",
        "inconclusive",
    )
    telling = {word for words in TELLING.values() for word in words}
    assert set(out.data["words"].word.values[:6].tolist()) <= telling
    weights = out.data["sentences"].weight.sum("place").values
    np.testing.assert_allclose(weights, 1.0, atol=1e-6)
    assert "no minimum" in " ".join(str(line) for line in Study().shown(out))


def test_what_to_try_is_a_ranking_with_advice(done):
    _, settings, out = done
    tried = out.content["verdicts"]["try"]
    assert set(tried["order"]) == set(settings.variants)
    assert tried["sentence"] in tried["advice"]
    ranking = out.data["variants"]
    assert ranking.value.values.tolist() == sorted(ranking.value.values.tolist(), reverse=True)
    assert ranking.sel(student="softmax").gain == 0


def test_a_study_without_variants_has_nothing_to_try(done):
    folder, settings, _ = done
    asked = replace(settings, what_to_try=False)
    again = lab.run(Study(), asked, folder / "out", processes=0, progress=False)
    assert "variants" not in again.data
    assert "try" not in again.content["verdicts"]


def test_texts_in_memory_are_studied_as_files_are(done, tmp_path):
    _, _, file = done
    texts, labels = zip(*rows(240), strict=True)
    more = {"processes": 0, "progress": False, "what_to_try": False, **SMALL}
    out = study_texts(texts, tmp_path / "out", labels=labels, **more)
    assert out.content["content"] == file.content["content"]
    xr.testing.assert_equal(out.data["curves"], file.data["curves"])
    with pytest.raises(AttnlabError, match="240 texts and 239 labels"):
        study_texts(texts, tmp_path / "other", labels=labels[1:])


def test_pairs_that_the_first_seed_lacks_are_left_out():
    """Two of three: the third was another seed's, and stands there as nothing."""
    weight = np.full((3, 2, 4), 0.3)
    weight[2] = np.nan
    first = xr.Dataset(
        {
            "pair_weight": (("pair", "side", "step"), weight),
            "pair_score": (("pair", "side", "step"), weight),
            "pair_norm": (("pair", "side", "step"), weight),
            "pair_sentence": ("pair", ["a b", "c d", ""]),
            "pair_competitor": (("pair", "side"), [["a", "b"], ["c", "d"], ["", ""]]),
            "loss": ("step", np.zeros(4)),
        }
    )
    pairs = competing(first)["pairs"]
    assert pairs.word.values.tolist() == [["a", "b"], ["c", "d"]]
    assert set(pairs.data_vars) == {"weight", "score", "norm", "sentence", "word"}
    assert competing(first[["loss"]]) == {}


def test_the_stored_model_answers_as_the_study_says(done):
    folder, settings, out = done
    prepared = prepare_texts(settings.source())
    classifier = load_classifier(folder / "out" / "model")
    classes = np.asarray(prepared.test.classes)
    share = float(
        (classifier.predict(list(prepared.texts["test"])) == classes[prepared.test.labels]).mean()
    )
    assert share == pytest.approx(float(out.data["ends"].accuracy_test[0]))


def test_a_finished_study_computes_nothing_again(done):
    folder, settings, out = done
    events: list = []
    again = lab.run(
        Study(), settings, folder / "out", processes=0, progress=False, on_event=events.append
    )
    assert not [event for event in events if getattr(event, "kind", "") == "finished"]
    xr.testing.assert_equal(again.data["curves"], out.data["curves"])


def test_the_gradient_where_training_stopped_is_the_losss_own(tmp_path):
    """Against finite differences of the cross-entropy in scores over |q| and the table."""
    prepared = prepare_texts(TextSource((write(tmp_path / "a.csv", rows(60)),)))
    rng = np.random.default_rng(0)
    count = len(prepared.vocabulary)
    score, table, norm = rng.normal(size=count), rng.normal(size=(count, 1)), 0.7
    found = where_stopped(
        [compact_model(score, table, 2)], [norm], prepared.train, prepared.test, [0]
    )

    def loss(sigma, u):
        logits = literal_logits(compact_model(norm * sigma, u[:, None], 2), prepared.train)
        picked = logits - jnp.log(jnp.exp(logits).sum(1, keepdims=True))
        return -float(picked[jnp.arange(len(prepared.train)), prepared.train.labels].mean())

    start, step = np.concatenate([score / norm, table[:, 0]]), 1e-5
    worst = 0.0
    for place in range(0, 2 * count, 9):
        ends = [
            loss(*np.split(start + sign * step * np.eye(2 * count)[place], 2)) for sign in (1, -1)
        ]
        worst = max(worst, abs(ends[0] - ends[1]) / (2 * step))
    assert float(found.data["ends"].gradient[0]) >= worst - 1e-6
    assert found.absent["path"].startswith("one seed")


def curves(attention: list[float], mean: list[float], seeds: int = 8) -> xr.Dataset:
    table = np.stack([np.tile(values, (seeds, 1)) for values in (attention, mean, mean)])
    table = table + 1e-3 * np.random.default_rng(0).normal(size=table.shape)
    names = ["attention-pooling", "mean-pooling", "tf-idf"]
    data = xr.Dataset(
        {"accuracy": (("student", "seed", "size"), table)},
        {"student": names, "size": [10, 100, 1000]},
    )
    return data.assign(step_size=data.accuracy * 0 + 0.01)


@pytest.mark.parametrize(
    ("attention", "mean", "verdict", "words"),
    [
        ([0.7, 0.85, 0.9], [0.6, 0.7, 0.9], "saves", "Attention saves"),
        ([0.9, 0.9, 0.9], [0.6, 0.7, 0.9], "saves", "Attention saves at least"),
        ([0.6, 0.7, 0.9], [0.6, 0.7, 0.9], "no advantage", "no advantage"),
        ([0.6, 0.7, 0.9], [0.7, 0.85, 0.9], "costs", "no advantage: costs"),
    ],
)
def test_verdicts_in_words(attention, mean, verdict, words):
    _, record = pays(curves(attention, mean), None)
    assert record["verdict"] == verdict
    assert words in record["words"]
    assert "cannot be said" in record["one_more_point"]  # three sizes are too few


def test_curves_that_cross_are_said_to():
    """Attention is ahead with few labels and behind with all of them."""
    _, record = pays(curves([0.7, 0.85, 0.87], [0.6, 0.7, 0.92]), 0.8)
    assert record["verdict"] == "saves"
    assert "But the curves cross: with all labels attention is 5." in record["words"]
    assert "points less accurate" in record["words"]
    assert record["difference"][0] == pytest.approx(-0.05, abs=2e-3)
    _, record = pays(curves([0.7, 0.85, 0.92], [0.6, 0.7, 0.92]), 0.8)
    assert "cross" not in record["words"]


def test_few_seeds_are_inconclusive_and_say_how_many_more():
    _, record = pays(curves([0.7, 0.85, 0.9], [0.6, 0.7, 0.9], seeds=3), 0.8)
    assert record["verdict"] == "inconclusive"
    assert "5 more seeds" in record["words"]


def test_tuning_that_ends_at_an_end_of_its_range_is_said_beside_the_verdict():
    data = curves([0.7, 0.85, 0.9], [0.6, 0.7, 0.9])
    free = data.assign(at_end=data.accuracy * 0)
    assert "Caution" not in pays(free, None)[1]["words"]
    ends = np.zeros((3, 8, 3))
    ends[0, :2] = 1  # attention pooling, a quarter of the fits
    ends[2] = np.nan  # TF-IDF has no step size
    _, record = pays(free.assign(at_end=(free.accuracy.dims, ends)), None)
    assert "Caution: the best step size of attention pooling was often an end" in record["words"]
    assert "an end of its range in 25\u00a0% of the fits" in " ".join(record["tuned"])


def test_sizes_fit_small_and_large_data():
    assert default_sizes(50)[-1] == 50
    assert default_sizes(50)[0] == 16
    assert default_sizes(1_000_000)[-1] == 16_384
    assert len(default_sizes(8000)) == 7


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"level": 80}, "--level 80: expected an accuracy between 0 and 1"),
        ({"seeds": 0}, "--seeds 0"),
        ({"training_steps": 0}, "training_steps=0"),
        ({"files": ()}, "no file was given"),
        ({"valid": ("b.csv",)}, "validation files without"),
        ({"scale": "thorough"}, "--scale thorough: expected one of quick, paper"),
    ],
)
def test_nonsense_is_refused(wrong, message):
    with pytest.raises(AttnlabError, match=message):
        StudySettings(**{"files": ("a.csv",), **wrong})
