"""A configuration of one's own: trained, predicted, told."""

import json
import subprocess
import sys

import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.dynamics import ReducedModel, reduced_flow
from attnlab.papers.lu2021.runs import topic_task
from attnlab.report import dynamics_page, render
from attnlab.studies import TopicSettings, explore, foretell, predict, read_exploration

_SMALL = TopicSettings(
    sentences=200,
    test_sentences=50,
    dictionary=150,
    noise_words=6,
    steps=400,
    rows=40,
    query_norm=1.0,
)


def test_explore_trains_compares_and_can_be_read_again(tmp_path):
    done = explore(_SMALL, tmp_path, seeds=2, until=1e4, processes=0, progress=False)
    run = done.data["dynamics"]
    assert dict(run.score.sizes) == {"seed": 2, "step": 41, "word": 8}
    for name in (
        "norm",
        "attention",
        "loss",
        "sen_error",
        "predicted_score",
        "onset",
        "predicted_onset",
        "phase",
    ):
        assert name in run
    assert dict(done.data["prediction"].score.sizes)["seed"] == 2
    assert len(done.about["summary"]) == 5
    again = read_exploration(tmp_path)
    assert np.array_equal(again.data["dynamics"].score.values, run.score.values)
    assert again.about == json.loads(json.dumps(done.about))
    html = render(dynamics_page(again.data, again.about))
    assert "reduced model" in html
    # Nothing is computed twice; other settings get a sweep of their own.
    stored = sorted(p.name for p in (tmp_path / "runs").iterdir())
    explore(_SMALL, tmp_path, seeds=2, until=1e4, processes=0, progress=False)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == stored


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
    settings = TopicSettings(**{**_SMALL.__dict__, "steps": 40, **changes})
    done = explore(settings, tmp_path, seeds=1, until=100.0, processes=0, progress=False)
    assert set(done.about["absent"]) == absent
    assert ("predicted_score" in done.data["dynamics"]) == ("prediction" not in absent)
    html = render(dynamics_page(done.data, done.about))
    for reason in done.about["absent"].values():
        assert reason.replace("'", "&#x27;") in html


def test_prediction_without_training_is_the_reduced_flow():
    import jax

    found = predict(_SMALL, seeds=2, until=1e6)
    key, _ = jax.random.split(jax.random.fold_in(jax.random.key(0), 1))
    model = ReducedModel.for_task(topic_task(_SMALL), key=key, query_norm=1.0)
    expected = reduced_flow(model, found.time.values)
    assert np.allclose(found.score.sel(seed=1).values, expected.score.values, rtol=1e-12)
    assert (found.onset > 0).all()
    kinked = predict(TopicSettings(**{**_SMALL.__dict__, "head": "two_layer"}), seeds=1)
    assert float(kinked.time[-1]) == pytest.approx(40.0)  # as far as its descent goes
    with pytest.raises(AttnlabError, match="no prediction: the query is trained"):
        predict(TopicSettings(trained=("keys", "query")))


def test_runs_that_all_fail_say_why(tmp_path):
    settings = TopicSettings(**{**_SMALL.__dict__, "sentences": 3})
    with pytest.raises(
        AttnlabError, match=r"all 2 runs failed: the topic word .* occurs in none of 3 sentences"
    ):
        explore(settings, tmp_path, seeds=2, processes=0, progress=False)


def test_foretelling_writes_a_page_of_its_own(tmp_path):
    done = foretell(_SMALL, tmp_path, seeds=2, until=1e6)
    assert set(read_exploration(tmp_path).data) == {"prediction"}
    assert "nothing was trained" in render(dynamics_page(done.data, done.about))


def _attnlab(*words, cwd):
    return subprocess.run(
        [sys.executable, "-m", "attnlab", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command(tmp_path):
    small = (
        "--sentences",
        "200",
        "--dictionary",
        "150",
        "--noise-words",
        "6",
        "--steps",
        "300",
        "--seeds",
        "1",
    )
    done = _attnlab("dynamics", *small, "--processes", "0", "--until", "1000", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "After 300 steps the score" in done.stdout
    assert (tmp_path / "dynamics" / "report.html").is_file()
    record = json.loads((tmp_path / "dynamics" / "dynamics.json").read_text("utf-8"))
    assert record["about"]["command"].startswith("attnlab dynamics --sentences 200")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--trained", "keys,querry"), "'querry' is not a part"),
        (("--topic-probabilities", "0.5,x"), "expected numbers like 0.5,0.3,0.2"),
        (("--topics", "1"), "at least 2 topics"),
        (("--head-scale", "-1"), "a scale must be"),
        (("--predict-only", "--momentum", "0.9"), "no prediction"),
        (("--until", "0"), "until=0.0: expected a finite time"),
        (("--until", "inf", "--head", "two_layer"), "until=inf"),
        (("--step-size", "0", "--predict-only"), "step_size=0.0 must be positive"),
        (("--batch-size", "9999"), "batch_size=9999: expected 1 to 4000"),
        (("--optimizer", "adam", "--momentum", "0.9"), "Adam has its own"),
    ],
)
def test_mistakes_are_named(tmp_path, words, message):
    done = _attnlab("dynamics", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_without_a_record_is_named(tmp_path):
    with pytest.raises(AttnlabError, match=r"has no dynamics.json; run `attnlab dynamics"):
        read_exploration(tmp_path)
