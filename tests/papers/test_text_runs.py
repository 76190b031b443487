"""One run on made-up reviews against the same run put together by hand, and what claims judge."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from attnlab import AttnlabError, complexity
from attnlab._errors import MissingData
from attnlab.data import Corpus, text_parts
from attnlab.dynamics import attended, deletion_test, excess_purity, text_sen
from attnlab.lab import Grid, split_arms
from attnlab.models import WordAttentionConfig
from attnlab.papers.liu2021 import text as pooling
from attnlab.papers.liu2021.text_imdb import imdb_sweep
from attnlab.papers.liu2021.word_runs import divided_again, fit_words
from attnlab.papers.liu2021.word_settings import WordSettings
from attnlab.papers.lu2021.text_runs import train_text
from attnlab.papers.lu2021.text_settings import TextSettings
from attnlab.papers.lu2021.text_sweeps import judged_part, text_sweep
from attnlab.sweeps import RunContext, run_plan
from attnlab.training import Every, GradientDescent, Loss, Norms, Scores, train
from tests.papers.texts import BAD, GOOD, write_folder

pytestmark = pytest.mark.slow

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


def test_permuted_labels_are_drawn_by_the_seed(folder, run):
    settings = TextSettings(source=folder, seed=2, permuted=True, **TINY)
    control, again = (train_text(settings, CONTEXT) for _ in range(2))
    other = train_text(dataclasses.replace(settings, seed=3), CONTEXT)
    np.testing.assert_array_equal(control.loss, again.loss)
    assert (control.loss != other.loss).any()
    last = control.isel(step=-1)
    assert float(last.accuracy_test) < 0.75 < float(run.accuracy_test.isel(step=-1))
    assert float(last.attended_excess) < float(run.attended_excess.isel(step=-1))


def test_a_padding_word_is_a_word_of_dense_rectangles():
    """The authors' model: every sentence is a row of as many places, filled up with one more word
    whose embedding and key are trained. Against dense arrays and their derivative.
    """
    tokens = [["a", "b", "a"], ["c"], ["b", "c", "c", "a"], ["a"]]
    corpus = Corpus.from_tokens(tokens, labels=[0, 1, 1, 0]).padded(4)
    config = WordAttentionConfig.for_corpus(
        corpus, embedding_dim=3, embedding_std=0.7, key_std=0.5, query_std=0.8
    )
    model = config.init(jax.random.key(1))
    places = jnp.array([[0, 0, 1, 3], [2, 3, 3, 3], [0, 1, 2, 2], [0, 3, 3, 3]])

    def dense(keys, embeddings):
        weights = jax.nn.softmax(keys[places] @ model.query, axis=1)
        logits = jax.vmap(model.head)(jnp.einsum("nl,nld->nd", weights, embeddings[places]))
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(4), corpus.labels])

    keys, embeddings = model.keys, model.embeddings
    for _ in range(3):
        by_key, by_embedding = jax.grad(dense, argnums=(0, 1))(keys, embeddings)
        keys, embeddings = keys - 0.5 * by_key, embeddings - 0.5 * by_embedding
        assert float(jnp.abs(by_embedding[3]).max()) > 1e-3  # the padding word moves
    moved = train(lambda _: model, corpus, steps=3, optimizer=GradientDescent(0.5)).model(0)
    np.testing.assert_allclose(moved.embeddings, embeddings, atol=1e-12)
    moved_scores = np.asarray(moved.keys) @ np.asarray(moved.query)
    np.testing.assert_allclose(moved_scores, keys @ model.query, atol=1e-12)


def test_padding_is_a_setting_of_a_run(folder, run):
    padded = train_text(TextSettings(source=folder, seed=2, padding=True, **TINY), CONTEXT)
    parts = text_parts(folder)
    longest = int(parts.train.lengths.max())
    at_start = float(padded.sel(moment="final").top_others.max())
    assert at_start == longest - 1  # the others of every word, padding included
    assert (padded.loss != run.loss).any()
    assert parts.train.padded(longest).lengths.tolist() == [longest] * len(parts.train)
    with pytest.raises(AttnlabError, match="'w1' is in the vocabulary"):
        parts.train.padded(longest, "w1")
    with pytest.raises(AttnlabError, match="length=0"):
        parts.train.padded(0)


def test_runs_belong_to_their_texts(folder, tmp_path):
    with pytest.raises(AttnlabError, match="not those that the plan was made for"):
        train_text(TextSettings(source=folder, data="0" * 16, **TINY), CONTEXT)
    same = text_parts(str(write_folder(tmp_path / "copy")))
    assert same.hash == text_parts(folder).hash
    (tmp_path / "copy" / "made.up.test").write_text("1 witty .\n0 dull .\n", "utf-8")
    text_parts.cache_clear()
    assert text_parts(str(tmp_path / "copy")).hash != same.hash


def test_settings_are_checked_at_once():
    with pytest.raises(AttnlabError, match="head='two_layer': expected one of fixed, linear"):
        TextSettings(head="two_layer")
    with pytest.raises(AttnlabError, match="every=0: expected at least 1"):
        TextSettings(every=0)
    with pytest.raises(AttnlabError, match="step_size=0"):
        TextSettings(step_size=0.0)


def test_the_plan_asks_for_what_theory_does(folder):
    sweep = text_sweep(folder)
    assert text_sweep(folder) is sweep  # claims of one corpus share its runs
    arms = {name: [] for name in ("linear", "fixed", "permuted", "padded")}
    for asked in sweep.plan("paper", 16).runs:
        assert asked.settings["data"] == text_parts(folder).hash
        arms[asked.settings["arm"]].append(TextSettings(**asked.settings))
    assert [len(runs) for runs in arms.values()] == [16, 16, 4, 4]
    assert all(run.padding for run in arms["padded"])
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
        "purer_leads": [0.5, 0.3, 0.2, 0.6, 0.7, 0.9],
        "clear_leads": [0.5, 0.9, 0.9, 0.95, 0.8, 0.7],
        "least_attended_purity": [0.9, 0.3, 0.1, 0.3, 0.1, 0.2],
        "least_attended_frequency": [5.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    }
    data = xr.Dataset(
        {name: (("seed", "step"), [values]) for name, values in curves.items()}, {"step": step}
    )
    found = judged_part(data.assign(best_step=("seed", [30]))).isel(seed=0)
    assert float(found.best_accuracy) == 0.8
    assert float(found.best_excess) == 0.25
    assert float(found.highest_excess) == 0.3
    assert float(found.least_contested) == 0.2
    assert (float(found.best_contested), float(found.last_contested)) == (0.6, 0.9)
    assert (float(found.best_clear), float(found.last_clear)) == (0.95, 0.7)
    assert float(found.purity_trend) == pytest.approx(1)  # step 0 does not count
    assert float(found.frequency_trend) == pytest.approx(-1)
    assert float(found.least_purity_trend) < 0.5
    assert float(found.least_frequency_trend) == pytest.approx(1)
    assert float(found.late_purity_rise) == pytest.approx(0.3)
    assert float(found.late_excess_rise) == pytest.approx(0.03)


def test_the_pooling_sweep_measures_what_its_runs_hold(folder, tmp_path):
    """From a plan on files to the table that the claim judges."""
    sweep = pooling.pooling_sweep(folder)
    small = {"step_sizes": (0.03,), "widen": 0, "steps": 60}
    arms = {label: {**arm, **small} for label, arm in sweep.grid("quick", 2).arms.items()}
    plan = Grid(arms, 2).plan(sweep.work, sweep.name)
    results = run_plan(plan, tmp_path / "runs", processes=0, progress=False)
    assert results.ok
    found = split_arms(results.dataset())
    table = sweep.measured(found)["text pooling"]
    ends = [float(arm.accuracy.isel(size=-1).mean()) for arm in found.values()]
    assert float(table.attrs["level"]) == pytest.approx(
        np.floor(100 * (min(ends) - 0.01) + 1e-9) / 100
    )
    assert set(table.student.values.tolist()) == {"mean-pooling", "attention-pooling"}
    assert pooling.WORTHWHILE == complexity.WORTHWHILE


def test_every_seed_divides_the_texts_by_itself_and_its_students_alike(folder):
    parts = text_parts(folder)
    given = parts.train, parts.valid, parts.test
    whole = sorted(str(part.sentence(n)) for part in given for n in range(len(part)))
    first, again, other = (divided_again(given, (0, seed)) for seed in (4, 4, 5))
    for mine, same in zip(first, again, strict=True):
        assert mine == same
    assert first[2] != other[2] != parts.test
    for division in (first, other):
        assert [len(part) for part in division] == [len(part) for part in given]
        assert sorted(str(p.sentence(n)) for p in division for n in range(len(p))) == whole
        shares = [float(np.mean(part.labels)) for part in division]
        np.testing.assert_allclose(shares, 0.5, atol=0.03)
    arms = pooling.both_poolings(folder, (30, 60))
    assert all(arm["resplit"] and arm["widen"] for arm in arms.values())
    settings = {**arms["mean-pooling"], "steps": 5, "widen": 0, "seed": 4}
    found = fit_words(WordSettings(**settings, answers=True), CONTEXT)
    truth = first[2].labels
    assert float(found.accuracy[-1]) == pytest.approx(float((found.answers == truth).mean()))


def test_imdb_is_for_paper_scale():
    with pytest.raises(MissingData, match="--scale paper"):
        imdb_sweep().plan("quick", 8)


def test_the_level_is_what_both_reach_less_a_point():
    ends = {"attention-pooling": 0.903, "mean-pooling": 0.874}
    accuracy = xr.DataArray(
        [[[end]] for end in ends.values()], {"student": list(ends)}, ("student", "seed", "size")
    )
    assert pooling.common_level(accuracy) == pytest.approx(0.86)
