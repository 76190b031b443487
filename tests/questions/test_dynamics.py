"""``attnlab dynamics``: one configuration trained, predicted, drawn."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import attnlab as al
from attnlab import AttnlabError
from attnlab.lab import Record, options, page, read_record
from attnlab.papers.lu2021.runs import topic_task
from attnlab.papers.lu2021.settings import TopicSettings
from attnlab.questions.dynamics import Course, DynamicsSettings, Prediction, question
from attnlab.report import render

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {
    "sentences": 200,
    "dictionary": 150,
    "noise_words": 6,
    "steps": 400,
    "query_norm": 1.0,
}


def ask(folder: Path, **changes: Any) -> Record:
    given = {"seeds": 2, "until": 1e4, **SMALL, **changes}
    return al.questions.ask("dynamics", folder, processes=0, progress=False, **given)


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A small configuration, run once for the tests that only read it."""
    return ask(tmp_path_factory.mktemp("dynamics"))


def figures_of(record: Record) -> dict[str, list[str]]:
    return {s.id: [figure.id for figure in s.figures] for s in page(question, record).sections}


def test_training_and_theory_can_be_read_again(record):
    run = Course.of(record.data)
    assert dict(run.score.sizes) == {"seed": 2, "step": 201, "word": 8}
    assert Prediction.score(record.data).sizes["seed"] == 2
    assert len(record.about["summary"]) == 5
    again = read_record(record.folder)
    assert np.array_equal(Course.score(again.data).values, run.score.values)
    assert again.about == record.about
    assert figures_of(again) == {
        "happened": ["loss", "learned", "words_score", "words_norm", "dynamics_endings"],
        "relation": ["sen_relation", "sen_error"],
        "reduced": ["reduced_overlay", "reduced_onset", "reduced_error"],
        "predicted": ["far_words", "far_loss", "far_attention"],
        "phases": ["phase_story", "phase_table"],
        "again": [],
    }


def test_runs_are_named_by_their_settings(tmp_path):
    tiny = {"steps": 5, "seeds": 1}
    ask(tmp_path, **tiny)
    stored = sorted(p.name for p in (tmp_path / "runs").iterdir())
    ask(tmp_path, **tiny, until=1e5)  # the prediction alone changes
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == stored
    ask(tmp_path, **tiny, momentum=0.5)
    assert len(list((tmp_path / "runs").iterdir())) == 2


@pytest.mark.parametrize(
    ("changes", "absent"),
    [
        ({"trained": ("keys", "embeddings", "query")}, {"prediction", "relation"}),
        ({"momentum": 0.9}, {"prediction"}),
        ({"trained": ("embeddings",)}, {"relation"}),
        ({"label_noise": 0.5}, {"prediction"}),
        ({"topic_words_in_sentence": 2}, {"prediction"}),
        ({"reach": 1, "head": "two_layer"}, {"prediction"}),
    ],
)
def test_what_theory_cannot_say_is_said(tmp_path, changes, absent):
    record = ask(tmp_path, seeds=1, steps=40, until=100.0, **changes)
    assert set(record.about["absent"]) == absent
    assert (Course.predicted_score in Course.of(record.data)) == ("prediction" not in absent)
    drawn = render(page(question, record))
    for reason in record.about["absent"].values():
        assert reason.replace("'", "&#x27;") in drawn


def test_a_relation_is_not_drawn_where_no_score_has_risen(record):
    run = Course.of(record.data)
    still = run.assign({Course.sen_error: run[Course.sen_error].where(False)})
    data = {**record.data, Course.label: still}
    sections = {s.id: s for s in page(question, dataclasses.replace(record, data=data)).sections}
    assert sections["relation"].figures == ()
    assert sections["relation"].body == (
        "The relation is not shown: no score has risen above 0.05.",
    )


def test_a_word_cannot_run_a_script(record):
    evil = "<img src=x onerror=alert(1)>"
    run = Course.of(record.data)
    words = [evil, *run["word"].values.tolist()[1:]]
    data = {**record.data, Course.label: run.assign_coords(word=words)}
    assert evil not in render(page(question, dataclasses.replace(record, data=data)))


def test_theory_alone_has_a_page_of_its_own(tmp_path):
    record = ask(tmp_path, predict_only=True, until=1e6)
    assert set(read_record(tmp_path).data) == {Prediction.label}
    assert "nothing was trained" in render(page(question, record))
    assert figures_of(record)["predicted"] == [
        "far_words",
        "far_loss",
        "far_score",
        "far_attention",
    ]


def test_a_prediction_without_training_is_the_reduced_flow():
    settings = DynamicsSettings(**SMALL).topic()
    found = al.reduced_prediction(settings, seeds=2, until=1e6)
    key, _ = jax.random.split(jax.random.fold_in(jax.random.key(0), 1))
    model = al.ReducedModel.for_task(topic_task(settings), key=key, query_norm=1.0)
    expected = al.reduced_flow(model, found.time.values)
    assert np.allclose(found.score.sel(seed=1).values, expected.score.values, rtol=1e-12)
    assert (found.onset > 0).all()
    kinked = al.reduced_prediction(dataclasses.replace(settings, head="two_layer"), seeds=1)
    assert float(kinked.time[-1]) == pytest.approx(40.0)  # as far as its descent goes
    with pytest.raises(AttnlabError, match="no prediction: the query is trained"):
        al.reduced_prediction(al.TopicSettings(trained=("keys", "query")))
    with pytest.raises(AttnlabError, match="seeds=0: expected at least 1"):
        al.reduced_prediction(settings, seeds=0)


def test_the_defaults_are_the_reference_setting():
    reference = TopicSettings()
    own = {"seeds", "predict_only", "until"}
    for field in options(DynamicsSettings):
        assert field.name in own or field.default == getattr(reference, field.name), field
    assert DynamicsSettings().topic() == dataclasses.replace(reference, rows=200)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trained": ("keys", "querry")}, "'querry' is not a part"),
        ({"topic_probabilities": (0.5, 0.6)}, "expected 4 positive numbers that sum to 1"),
        ({"topics": 1}, "--topics 1: expected at least 2"),
        ({"head_scale": -1.0}, "--head-scale -1.0: expected at least 0"),
        ({"head": "heavy"}, "--head heavy: expected one of fixed, linear"),
        ({"predict_only": True, "momentum": 0.9}, "no prediction"),
        ({"until": 0.0}, "--until 0.0: expected a number above 0"),
        ({"until": 0.05}, "--until 0.05: expected a finite time above one step, 0.1"),
        ({"until": float("inf"), "head": "two_layer"}, "--until inf"),
        ({"step_size": 0.0}, "--step-size 0.0: expected a number above 0"),
        ({"batch_size": 9999}, "batch_size=9999: expected 1 to 200"),
        ({"optimizer": "adam", "momentum": 0.9}, "Adam has its own"),
    ],
)
def test_mistakes_are_named_before_anything_is_run(tmp_path, changes, message):
    with pytest.raises(AttnlabError) as raised:
        ask(tmp_path, **changes)
    assert message in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def test_runs_that_all_fail_say_why(tmp_path):
    cause = r"all 2 runs failed: the topic word .* occurs in none of 3 sentences"
    with pytest.raises(AttnlabError, match=cause):
        ask(tmp_path, sentences=3)
