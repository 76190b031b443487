"""A study of texts: what is prepared, students against scikit-learn, where training stopped,
answers in words.
"""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from attnlab import load_classifier
from attnlab._errors import AttnlabError
from attnlab.data import Corpus
from attnlab.models import literal_logits
from attnlab.report import study_page
from attnlab.studies import (
    TextSource,
    TextStudy,
    _own_text,
    _text,
    _text_prepare,
    _text_sample,
    _text_stopped,
    prepare_texts,
    study_texts,
)
from attnlab.studies._compare_words import WordSettings, fit_words
from attnlab.studies._own_text import default_sizes, shown_pairs
from attnlab.studies._text import text_parts
from attnlab.studies._text_answers import common_level, pays
from attnlab.studies._text_prepare import open_prepared
from attnlab.studies._text_stopped import compact_model, where_stopped
from attnlab.studies._text_students import tf_idf_curve
from attnlab.studies._text_try import try_arms
from attnlab.sweeps import RunContext

TELLING = {"pos": ["good", "great", "lovely"], "neg": ["bad", "dull", "awful"]}
EVIL = "<img src=x onerror=alert(1)>"


def rows(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Texts in which one word tells the label; one text in twenty has an unfriendly word in it."""
    draw = random.Random(seed)
    found = []
    for k in range(count):
        label = ("pos", "neg")[k % 2]
        words = [draw.choice(TELLING[label]), *(f"w{draw.randrange(60)}" for _ in range(6))]
        draw.shuffle(words)
        found.append((" ".join(words + ([EVIL] if k % 20 == 0 else [])), label))
    return found


def write(path: Path, table: list[tuple[str, str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("review", "sentiment"), *table])
    return str(path)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A whole study, small."""
    folder = tmp_path_factory.mktemp("study")
    file = write(folder / "reviews.csv", rows(240))
    study = TextStudy(
        TextSource((file,)),
        seeds=2,
        sizes=(24, 96, 192),
        fit_steps=60,
        training_seeds=2,
        training_steps=480,
        embedding_dim=8,
    )
    stages: list[str] = []
    out = study_texts(
        study,
        folder / "out",
        processes=0,
        progress=False,
        on_stage=stages.append,
        command="attnlab …",
    )
    assert "reading the texts" in stages
    return folder, study, out


def test_equal_texts_are_used_once_and_every_part_has_its_own(tmp_path):
    table = rows(60)
    file = write(
        tmp_path / "a.csv",
        [*table, table[0], (table[1][0], "pos" if table[1][1] == "neg" else "neg")],
    )
    prepared = prepare_texts(TextSource((file,)))
    told = {entry["reason"]: entry["count"] for entry in prepared.reading["dropped"]}
    assert told == {"duplicate": 1, "contradictory duplicate": 2}
    assert prepared.reading["rows"] == 62
    assert prepared.reading["kept"] == 59
    parts = [set(prepared.texts[name]) for name in ("train", "valid", "test")]
    assert sum(map(len, parts)) == len(set.union(*parts))
    seen = {word for text in parts[0] for word in text.lower().replace("<", " ").split()}
    assert {word for word in prepared.vocabulary.words if word.startswith("w")} <= seen


def test_leaks_between_given_files_are_reported_and_kept(tmp_path):
    table = rows(80)
    files = [
        write(tmp_path / name, part)
        for name, part in (("a", table[:60]), ("b", table[50:70]), ("c", table[66:]))
    ]
    prepared = prepare_texts(TextSource((files[0],), (files[1],), (files[2],), format="csv"))
    assert [
        (entry["count"], "valid" in entry["reason"]) for entry in prepared.reading["leaks"]
    ] == [(10, True)]
    assert len(prepared.valid) == 20


def test_stored_corpora_open_as_they_were(tmp_path):
    prepared = prepare_texts(TextSource((write(tmp_path / "a.csv", rows(60)),)))
    place = prepared.save(tmp_path / "corpus")
    train, _, test, texts, content = open_prepared(place)
    assert (train, test, content) == (prepared.train, prepared.test, prepared.hash)
    assert texts == prepared.texts["train"]
    assert prepared.save(tmp_path / "corpus") == place
    assert text_parts(str(place)).train == train


def test_a_stream_prepares_what_reading_at_once_does(tmp_path):
    table = rows(150)
    twice = [*table[:90], table[3], (table[4][0], "pos"), ("", "neg")]
    files = [
        write(tmp_path / name, part)
        for name, part in (("a", twice), ("b", table[80:110]), ("c", table[110:]))
    ]
    source = TextSource((files[0],), (files[1],), (files[2],), format="csv", max_words=40)
    once, streamed = (
        prepare_texts(source),
        prepare_texts(source, folder=tmp_path / "corpus", stream_bytes=0),
    )
    assert (streamed.train, streamed.valid, streamed.test) == (once.train, once.valid, once.test)
    assert (streamed.hash, streamed.reading) == (once.hash, once.reading)
    assert streamed.vocabulary.counts.tolist() == once.vocabulary.counts.tolist()
    assert {name: tuple(texts) for name, texts in streamed.texts.items()} == once.texts
    train, _, _, texts, _ = open_prepared(streamed.save(tmp_path / "corpus"))
    assert (train, tuple(texts)) == (once.train, once.texts["train"])
    assert (
        prepare_texts(source, folder=tmp_path / "corpus").place is None
    )  # small files are read at once


def test_a_split_made_in_a_stream_is_opened_again_and_made_anew_for_changed_files(tmp_path):
    file = write(tmp_path / "a.csv", rows(200))
    told: list[int] = []
    first = prepare_texts(
        TextSource((file,)), folder=tmp_path / "corpus", stream_bytes=0, on_rows=told.append
    )
    assert [len(part) for part in (first.train, first.valid, first.test)] == [160, 20, 20]
    assert "hash of each text" in first.reading["split"]
    again = prepare_texts(
        TextSource((file,)), folder=tmp_path / "corpus", stream_bytes=0, on_rows=told.append
    )
    assert (again.hash, again.reading, told) == (first.hash, first.reading, [200])
    write(tmp_path / "a.csv", rows(220, seed=1))
    changed = prepare_texts(
        TextSource((file,)), folder=tmp_path / "corpus", stream_bytes=0, on_rows=told.append
    )
    assert told == [200, 220]
    assert changed.hash != first.hash


def test_figures_of_many_texts_say_what_they_look_at(tmp_path, monkeypatch):
    """A study through the stream, with limits so low that everything is sampled."""
    monkeypatch.setattr(_text_prepare, "STREAM_BYTES", 0)
    monkeypatch.setattr(_own_text, "_FULL_BATCH", 0)
    for module, names in (
        (_text_sample, ("TRAINING", "MEASURED", "CURVATURE", "LENGTHS")),
        (_text, ("TRAINING", "MEASURED")),
        (_text_stopped, ("CURVATURE",)),
        (_own_text, ("LENGTHS",)),
    ):
        for name in names:
            monkeypatch.setattr(module, name, 15)
    file = write(tmp_path / "reviews.csv", rows(200))
    study = TextStudy(
        TextSource((file,)),
        seeds=1,
        sizes=(24, 96),
        fit_steps=20,
        training_seeds=2,
        training_steps=48,
        embedding_dim=8,
        variants=(),
    )
    out = study_texts(study, tmp_path / "out", processes=0, progress=False)
    told = {
        (entry["figure"], entry["what"]): (entry["used"], entry["of"])
        for entry in out.about["reading"]["sampled"]
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
    figures = {figure.id: figure for figure in study_page(out.data, out.about).sections[0].figures}
    assert figures["sampled"].table["used"][:2] == [15, 96]


def test_fewer_permutations_of_very_many_words():
    corpus = Corpus.from_tokens([["a", "b"]] * 3, labels=[0, 1, 1])
    assert _text_sample.permutations_for(corpus, 200) == 200
    many = SimpleNamespace(words=range(10_000_000))
    assert _text_sample.permutations_for(many, 200) == 40  # pyright: ignore[reportArgumentType]
    assert _text_sample.permutations_for(SimpleNamespace(words=range(10**9)), 200) == 20  # pyright: ignore


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
    links = [card["link"] for card in out.about["cards"]]
    assert [link for k, link in enumerate(links) if link not in links[:k]] == [
        "data",
        "pays",
        "words",
        "good",
        "try",
    ]
    assert out.about["verdicts"]["pays"]["verdict"] in (
        "saves",
        "no advantage",
        "costs",
        "inconclusive",
    )
    telling = {word for words in TELLING.values() for word in words}
    assert set(out.data["words"].word.values[:6].tolist()) <= telling
    weights = out.data["sentences"].weight.sum("place").values
    np.testing.assert_allclose(weights, 1.0, atol=1e-6)
    assert "no minimum" in " ".join(out.about["summary"])


def test_what_to_try_is_ranked_by_what_the_variants_runs_say(done):
    """Against one variant fitted here, by itself."""
    folder, study, out = done
    tried = out.about["verdicts"]["try"]
    assert set(tried["order"]) == set(study.variants)
    assert tried["advice"] == " ".join(out.about["advice"])
    assert "takes 8 seeds, these are 2" in tried["advice"]
    (place,) = (folder / "out" / "corpus").iterdir()
    available = len(prepare_texts(study.source).train)
    step_size = float(
        out.data["curves"].step_size.sel(student="attention-pooling").isel(size=-1).median()
    )
    arms = try_arms(
        ("sparsemax",),
        place,
        out.about["content"],
        available=available,
        steps=study.fit_steps,
        step_size=step_size,
    )
    alone = [
        float(
            fit_words(WordSettings(seed=k, **arms["sparsemax"]), RunContext(0, 0, "")).accuracy[0]
        )
        for k in range(study.seeds)
    ]
    assert tried["accuracy"]["sparsemax"] == pytest.approx(float(np.median(alone)))
    ranking = out.data["variants"]
    assert ranking.centre.values.tolist() == sorted(ranking.centre.values.tolist(), reverse=True)


def test_a_study_without_variants_has_nothing_to_try(done):
    folder, study, _ = done
    again = study_texts(replace(study, variants=()), folder / "out", processes=0, progress=False)
    assert "variants" not in again.data
    assert "try" not in again.about["verdicts"]


def test_pairs_that_the_first_seed_lacks_are_left_out():
    """Two of three: the third was another seed's, and stands there as nothing."""
    weight = np.full((3, 2, 4), 0.3)
    weight[2] = np.nan
    first = xr.Dataset(
        {
            "pair_weight": (("pair", "side", "step"), weight),
            "pair_sentence": ("pair", ["a b", "c d", ""]),
            "pair_competitor": (("pair", "side"), [["a", "b"], ["c", "d"], ["", ""]]),
            "loss": ("step", np.zeros(4)),
        }
    )
    pairs = shown_pairs(first)["pairs"]
    assert pairs.word.values.tolist() == [["a", "b"], ["c", "d"]]
    assert set(pairs.data_vars) == {"weight", "sentence", "word"}
    assert shown_pairs(first[["loss"]]) == {}


def test_the_stored_model_answers_as_the_study_says(done):
    folder, study, out = done
    prepared = prepare_texts(study.source)
    classifier = load_classifier(folder / "out" / "model")
    classes = np.asarray(prepared.test.classes)
    share = float(
        (classifier.predict(list(prepared.texts["test"])) == classes[prepared.test.labels]).mean()
    )
    assert share == pytest.approx(float(out.data["ends"].accuracy_test[0]))


def test_a_finished_study_computes_nothing_again(done):
    folder, study, out = done
    events: list = []
    again = study_texts(study, folder / "out", processes=0, progress=False, on_event=events.append)
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
    found = pays(curves(attention, mean), None, {})
    assert found.record["verdict"] == verdict
    assert words in found.cards[0]["text"]
    assert "cannot be said" in found.extrapolation[0]  # three sizes are too few


def test_curves_that_cross_are_said_to():
    """Attention is ahead with few labels and behind with all of them."""
    found = pays(curves([0.7, 0.85, 0.87], [0.6, 0.7, 0.92]), 0.8, {})
    assert found.record["verdict"] == "saves"
    assert "But the curves cross: with all labels attention is 5." in found.cards[0]["text"]
    assert "points less accurate" in found.record["words"]
    assert found.record["difference"][0] == pytest.approx(-0.05, abs=2e-3)
    assert "cross" not in pays(curves([0.7, 0.85, 0.92], [0.6, 0.7, 0.92]), 0.8, {}).record["words"]


def test_few_seeds_are_inconclusive_and_say_how_many_more():
    found = pays(curves([0.7, 0.85, 0.9], [0.6, 0.7, 0.9], seeds=3), 0.8, {})
    assert found.record["verdict"] == "inconclusive"
    assert "5 more seeds" in found.cards[0]["text"]


def test_the_level_is_what_both_reach_less_a_point():
    assert common_level(curves([0.6, 0.7, 0.903], [0.6, 0.7, 0.874]).accuracy) == pytest.approx(
        0.86
    )


def test_sizes_fit_small_and_large_data():
    assert default_sizes(50)[-1] == 50
    assert default_sizes(50)[0] == 16
    assert default_sizes(1_000_000)[-1] == 16_384
    assert len(default_sizes(8000)) == 7


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"target": 80}, "between 0 and 1"),
        ({"seeds": 0}, "seeds=0"),
    ],
)
def test_nonsense_is_refused(wrong, message):
    with pytest.raises(AttnlabError, match=message):
        TextStudy(TextSource(("a.csv",)), **wrong)
    with pytest.raises(AttnlabError, match="validation files without"):
        TextSource(("a.csv",), valid=("b.csv",))
