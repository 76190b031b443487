"""One run on made-up reviews against the same run put together by hand; sources and their mistakes."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from attnlab.studies import TextSettings, _text, _text_pooling, text_parts, text_study, train_text
from attnlab.studies._study import split_arms
from attnlab.studies._text_claims import measure_text

from attnlab import AttnlabError
from attnlab._errors import MissingData
from attnlab.data import Corpus, Texts, _movies
from attnlab.dynamics import attended, deletion_test, excess_purity, text_sen
from attnlab.models import WordAttentionConfig
from attnlab.runs import RunContext, run_plan
from attnlab.training import Every, GradientDescent, Loss, Norms, Scores, train
from tests.studies.texts import BAD, GOOD, sentences, write_folder

CONTEXT = RunContext(root_seed=0, index=0, hash="00" * 16)
TINY = {
    "embedding_dim": 6,
    "steps": 1500,
    "every": 50,
    "key_dim": 4,
    "query_std": 0.8,
    "top": 8,
    "dtype": "float64",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(write_folder(tmp_path_factory.mktemp("texts") / "made"))


@pytest.fixture(scope="module")
def run(folder):
    return train_text(TextSettings(source=folder, seed=2, surroundings=True, **TINY), CONTEXT)


@pytest.fixture(scope="module")
def by_hand(folder):
    """All words at every recorded step, and a run that ends where validation is best."""
    parts = text_parts(folder)
    config = WordAttentionConfig.for_corpus(parts.train, embedding_dim=6, key_dim=4, query_std=0.8)
    rule = GradientDescent(0.1)
    whole = train(
        config,
        parts.train,
        steps=1500,
        seeds=[2],
        optimizer=rule,
        when=Every(50),
        record=(Loss("valid"), Scores(), Norms()),
        splits={"valid": parts.valid},
    ).data.isel(seed=0)
    best = int(whole.step[int(np.argmin(whole.loss_valid.values))])
    model = train(
        config, parts.train, steps=best, seeds=[2], optimizer=rule, when=Every(best)
    ).model(2)
    return parts, whole, best, model


def test_the_source_is_read_as_it_stands(folder):
    parts = text_parts(folder)
    lines = [line.split() for line in sentences(120, 0)]
    expected = Corpus.from_tokens([line[1:-1] for line in lines], [line[0] for line in lines])
    assert parts.train == expected
    assert parts.sentences[3] == " ".join(lines[3][1:])
    assert parts.test.vocabulary == parts.train.vocabulary
    assert not parts.is_sst2


def test_curves_and_tables_are_those_of_the_recorded_words(run, by_hand):
    parts, whole, best, _ = by_hand
    assert int(run.best_step) == best
    assert 0 < best < 1500
    words = excess_purity(parts.train, seed=0)
    for prefix, least in (("attended", False), ("least_attended", True)):
        curves = attended(whole.score, parts.train, words, least=least)
        for name in ("purity", "null", "excess", "frequency"):
            np.testing.assert_allclose(run[f"{prefix}_{name}"], curves[name], atol=1e-9)
    for moment, step in (("best", best), ("final", 1500)):
        table = run.sel(moment=moment)
        order = np.argsort(-whole.score.sel(step=step).values)[:8]
        assert table.top_word.values.tolist() == [parts.train.vocabulary[w] for w in order]
        np.testing.assert_allclose(
            table.top_score, whole.score.sel(step=step).values[order], rtol=1e-9
        )
        np.testing.assert_array_equal(table.top_excess, words.excess.values[order])
    assert set(run.top_word.sel(moment="best").values[:6].tolist()) == {*GOOD, *BAD}
    relation = text_sen(whole, parts.train, step=best, words=8)
    np.testing.assert_allclose(run.sen_error, relation.sen_error, rtol=1e-6)
    assert run.sen_error_refined.notnull().any()
    assert (run.sen_error_wrong_query > run.sen_error).any()


def test_the_deletion_test_takes_the_best_model(run, by_hand):
    parts, _, _, model = by_hand
    expected = deletion_test(model, parts.test, seed=2)
    for name, values in expected.data_vars.items():
        np.testing.assert_array_equal(run[f"deletion_{name}"], values)
    assert run.deletion_flips.values[0] > run.deletion_flips.values[1]


def test_permuted_labels_are_drawn_by_the_seed_and_keep_the_classes(folder, run):
    settings = TextSettings(source=folder, seed=2, permuted=True, **TINY)
    (corpus, words), (again, _), (other, _) = (
        _text._training(dataclasses.replace(settings, seed=seed), 0) for seed in (2, 2, 3)
    )
    true = text_parts(folder).train
    assert corpus == again
    assert corpus != other
    assert corpus != true
    assert corpus.labels.sum() == true.labels.sum()
    leaning = words.excess.sel(word=[*GOOD, *BAD])
    assert (
        float(leaning.mean())
        < 0.3
        < float(excess_purity(true, seed=0).excess.sel(word=[*GOOD, *BAD]).mean())
    )
    control = train_text(settings, CONTEXT)
    assert (
        float(control.accuracy_test.isel(step=-1)) < 0.75 < float(run.accuracy_test.isel(step=-1))
    )


def test_runs_belong_to_their_texts(folder, tmp_path):
    with pytest.raises(AttnlabError, match="not those that the plan was made for"):
        train_text(TextSettings(source=folder, data="0" * 16, **TINY), CONTEXT)
    same = text_parts(str(write_folder(tmp_path / "copy")))
    assert same.hash == text_parts(folder).hash
    (tmp_path / "copy" / "made.up.test").write_text("1 witty .\n0 dull .\n", "utf-8")
    text_parts.cache_clear()
    assert text_parts(str(tmp_path / "copy")).hash != same.hash


def test_one_file_has_a_fixed_split(tmp_path):
    file = tmp_path / "all.txt"
    file.write_text("\n".join(sentences(200, 5)), "utf-8")
    parts = text_parts(str(file))
    assert [len(part) for part in (parts.train, parts.valid, parts.test)] == [160, 20, 20]
    text_parts.cache_clear()
    assert text_parts(str(file)).hash == parts.hash


def test_rotten_tomatoes_are_split_and_their_absence_is_told(monkeypatch):
    lines = [line.split(" ", 1) for line in sentences(100, 1)]
    made = Texts.of(
        [text for _, text in lines],
        ["negative" if label == "0" else "positive" for label, _ in lines],
    )
    monkeypatch.setattr("attnlab.data.load_movie_reviews", lambda source: made)
    text_parts.cache_clear()
    assert [
        len(part)
        for part in (text_parts("rotten-tomatoes").train, text_parts("rotten-tomatoes").test)
    ] == [80, 10]
    monkeypatch.undo()
    monkeypatch.setattr(_movies, "_PACKAGE", "a-package-that-nobody-has")
    text_parts.cache_clear()
    with pytest.raises(MissingData, match=r"attnlab\[data\]"):
        text_study().plan("quick", 8)
    text_parts.cache_clear()


def test_a_folder_must_say_which_file_is_which(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "other.train").write_text("1 a\n0 b\n")
    with pytest.raises(
        AttnlabError,
        match=r"one file with 'train' in its name.* found 2: made.up.train, other.train",
    ):
        text_parts(str(tmp_path))
    (tmp_path / "other.train").unlink()
    (tmp_path / "made.up.dev").unlink()
    with pytest.raises(
        AttnlabError, match=r"'dev' or 'valid'.* found 0: made.up.test, made.up.train"
    ):
        text_parts(str(tmp_path))


def test_settings_are_checked_at_once():
    with pytest.raises(AttnlabError, match="head='two_layer': expected one of fixed, linear"):
        TextSettings(head="two_layer")
    with pytest.raises(AttnlabError, match="every=0: expected at least 1"):
        TextSettings(every=0)
    with pytest.raises(AttnlabError, match="step_size=0"):
        TextSettings(step_size=0.0)


def test_the_plan_asks_for_what_theory_does(folder):
    study = text_study(folder)
    assert text_study(folder) is study  # equal studies of one name are one
    arms = {name: [] for name in ("linear", "fixed", "permuted")}
    for asked in study.plan("paper", 16).runs:
        assert asked.settings["data"] == text_parts(folder).hash
        arms[asked.settings["arm"]].append(TextSettings(**asked.settings))
    assert [len(runs) for runs in arms.values()] == [16, 16, 4]
    fixed, linear = arms["fixed"][0], arms["linear"][0]
    assert (fixed.head, fixed.embedding_dim, fixed.steps, fixed.step_size) == (
        "fixed",
        200,
        12_000,
        0.1,
    )
    assert (linear.head, linear.embedding_dim, linear.steps, linear.embedding_std) == (
        "linear",
        100,
        30_000,
        1e-6,
    )
    assert all(run.permuted for run in arms["permuted"])


def test_what_claims_judge_of_a_run():
    step = np.arange(0, 60, 10)
    curves = {
        "accuracy_test": [0.5, 0.6, 0.7, 0.8, 0.75, 0.7],
        "attended_purity": [0.9, 0.1, 0.2, 0.3, 0.5, 0.6],
        "attended_excess": [0.0, 0.1, 0.2, 0.25, 0.3, 0.28],
        "attended_frequency": [5.0, 90.0, 80.0, 70.0, 40.0, 30.0],
        "least_attended_purity": [0.9, 0.3, 0.1, 0.3, 0.1, 0.2],
        "least_attended_frequency": [5.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    }
    data = xr.Dataset(
        {name: (("seed", "step"), [values]) for name, values in curves.items()}, {"step": step}
    )
    found = measure_text(data.assign(best_step=("seed", [30]))).isel(seed=0)
    assert float(found.best_accuracy) == 0.8
    assert float(found.best_excess) == 0.25
    assert float(found.highest_excess) == 0.3
    assert float(found.purity_trend) == pytest.approx(1)  # step 0 does not count
    assert float(found.frequency_trend) == pytest.approx(-1)
    assert float(found.least_purity_trend) < 0.5
    assert float(found.least_frequency_trend) == pytest.approx(1)
    assert float(found.late_purity_rise) == pytest.approx(0.3)
    assert float(found.late_excess_rise) == pytest.approx(0.03)


def test_the_pooling_study_measures_what_its_runs_hold(folder, tmp_path, monkeypatch):
    """From a plan on files to the table that the claim judges."""
    small = {"quick": {"step_sizes": (0.03,), "steps": 60}}
    monkeypatch.setattr(_text_pooling, "_GRIDS", small)
    study = _text_pooling.text_pooling_study.__wrapped__(str(folder))
    results = run_plan(study.plan("quick", 2), tmp_path / "runs", processes=0, progress=False)
    assert results.ok
    arms = split_arms(results.dataset())
    table = study.measure(arms)["text pooling"]
    ends = [float(arm.accuracy.isel(size=-1).mean()) for arm in arms.values()]
    assert float(table.attrs["level"]) == pytest.approx(
        np.floor(100 * (min(ends) - 0.01) + 1e-9) / 100
    )
    assert set(table.student.values.tolist()) == {"mean-pooling", "attention-pooling"}
