"""Lu et al. (2021): grids, work function, measurements and shared figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import attnlab as al
from attnlab import AttnlabError
from attnlab.papers import claims
from attnlab.papers.lu2021.ablation_sweeps import ablation
from attnlab.papers.lu2021.capacity import falls
from attnlab.papers.lu2021.context import at_fallen_loss, loss_left
from attnlab.papers.lu2021.figures import far_figures, phase_figure, phase_table, sen_relation
from attnlab.papers.lu2021.promotion import growth
from attnlab.papers.lu2021.reduced_tl import run_predicted
from attnlab.papers.lu2021.runs import train_topic
from attnlab.papers.lu2021.settings import TopicSettings
from attnlab.papers.lu2021.sweeps import (
    LEAST_DIP,
    RandomLabels,
    Reference,
    Relation,
    TwoLayerRuns,
    predicted_errors,
    reference,
    starts,
)
from attnlab.sweeps import RunContext
from tests.papers.test_every_claim import measured

pytestmark = pytest.mark.slow

TINY: dict[str, Any] = {
    "sentences": 80,
    "test_sentences": 20,
    "dictionary": 40,
    "noise_words": 5,
    "steps": 60,
    "rows": 20,
}
OWN = [claim for name, claim in claims().items() if name.startswith("lu2021.")]


def test_a_paper_sized_grid_asks_for_what_the_paper_did():
    fixed = [run for run in reference.grid("paper", 16).runs() if run["arm"] == "fixed"]
    assert len(fixed) == 16
    built = TopicSettings(**fixed[3])
    assert (built.sentences, built.dictionary, built.noise_words) == (4000, 5000, 20)
    assert (built.steps, built.step_size) == (5000, 0.1)


def test_ablations_at_paper_scale_try_every_choice_of_trained_parts():
    arms = ablation.grid("paper", 16).arms.values()
    assert len({frozenset(arm["trained"]) for arm in arms}) == 15  # all but none at all


def test_the_reduced_model_is_compared_at_equal_steps():
    step = np.arange(0, 11)
    score = xr.DataArray(
        np.linspace(0, 2, 11)[None, :, None], {"step": step}, ("seed", "step", "word")
    )
    loss = xr.DataArray(np.linspace(1, 0.01, 11)[None, :], {"step": step}, ("seed", "step"))
    data = xr.Dataset(
        {"score": score, "loss": loss, "predicted_score": 1.1 * score, "halved_score": 0 * score}
    )
    found = predicted_errors(data)
    assert np.isclose(found[Reference.final_error].item(), 0.1)
    # Both reach half of their own last value at the same step.
    assert np.isclose(found[Reference.onset_error].item(), 0.0)
    # A score that never rises has no onset.
    assert np.isinf(found[Reference.halved_onset_error].item())
    unsettled = predicted_errors(data.assign(loss=loss + 1))
    assert np.isnan(unsettled[Reference.final_error].item())
    assert not unsettled[Reference.settled].item()


def test_growth_with_a_part_frozen_is_compared_where_the_loss_has_halved():
    step = np.arange(0, 5)
    norm = xr.DataArray(
        [[0, 1, 2, 3, 4], [0, 0.5, 1, 3, 8], [0, 0, 0, 0, 0]],
        {"setting": ["full", "keys frozen", "embeddings frozen"], "step": step},
        ("setting", "step"),
    ).astype(float)
    loss = xr.DataArray([1.0, 0.8, 0.5, 0.1, 0.01], {"step": step}, ("step",))
    table = xr.Dataset({"mean_norm": norm, "mean_score": norm, "loss": loss.broadcast_like(norm)})
    table = xr.concat([table, table + 7], dim=xr.DataArray([4, 5], dims="seed", name="seed"))
    table["loss"] = table.loss.where(table.seed == 4)  # the other run failed
    data = {"ablation": table}
    assert growth("norm")(data).values.tolist()[0] == 0.5
    assert growth("score")(data).values.tolist()[0] == 0.0
    assert np.isnan(growth("norm")(data).values[1])
    assert growth("norm", next_seed=True)(data).values.tolist()[0] == 1.0


def test_a_run_is_predicted_if_all_its_words_are():
    word = ["a", "b"]
    dims, coords = ("seed", "word"), {"seed": range(5), "word": word}
    late = [[0.01, 0.03], [0.01, 0.05], [0.01, np.inf], [0.01, 0.02], [np.nan, np.nan]]
    off = [[0.1, 0.1], [0.1, 0.1], [0.1, 0.1], [0.2, 0.1], [np.nan, np.nan]]
    loss = [[1.0], [1.0], [1.0], [1.0], [np.nan]]
    table = xr.Dataset(
        {"onset_error": (dims, late), "final_error": (dims, off), "loss": (("seed", "step"), loss)},
        coords,
    )
    found = run_predicted(TwoLayerRuns.onset_error, TwoLayerRuns.final_error)
    np.testing.assert_array_equal(found({"two-layer runs": table}).values, [1, 0, 0, 0, np.nan])
    unsettled = table.assign(final_error=table.final_error * np.nan)
    assert found({"two-layer runs": unsettled}).values.tolist()[:2] == [1, 0]


def test_the_loss_that_is_left_when_the_context_is_the_words():
    step = np.arange(3)
    share = xr.DataArray(
        [[[0.1, 0.6, 0.9], [0.1, 0.2, 0.3]]],
        {"seed": [0], "word": ["a", "b"], "step": step},
        ("seed", "word", "step"),
    )
    loss = xr.DataArray([[2.0, 1.5, 1.0]], {"seed": [0], "step": step}, ("seed", "step"))
    data = {"labels at random": xr.Dataset({"context_share": share, "loss": loss})}
    # One word never makes up half of the context.
    assert loss_left(RandomLabels)(data).values.tolist() == [[0.75, 0.0]]
    at_fallen = at_fallen_loss(RandomLabels, RandomLabels.context_share)(data).values
    assert 0.1 < at_fallen[0, 0] < 0.6


def test_a_dip_from_a_third_of_the_start_is_nine_times_less_deep():
    assert np.isclose(LEAST_DIP[0.3] / LEAST_DIP[0.1], 9)


def test_settings_are_checked_at_once():
    with pytest.raises(
        AttnlabError, match="head='cubic': expected one of fixed, linear, two_layer, deep"
    ):
        TopicSettings(head="cubic")
    with pytest.raises(AttnlabError, match="frozen_context=True without reach"):
        TopicSettings(frozen_context=True)
    with pytest.raises(AttnlabError, match="expected plain descent with a fixed or linear head"):
        TopicSettings(loss_floor=1e-9, head="two_layer")
    with pytest.raises(AttnlabError, match="record='all'"):
        TopicSettings(record="all")
    with pytest.raises(AttnlabError, match="rows=0"):
        TopicSettings(rows=0)


def test_contextual_runs_record_what_others_do():
    context = RunContext(root_seed=0, index=0, hash="00" * 16)
    plain = train_topic(TopicSettings(**TINY, record="curves"), context)
    conv = train_topic(TopicSettings(**TINY, record="curves", reach=1), context)
    for name in (
        "score",
        "norm",
        "attention",
        "loss",
        "accuracy_test",
        "separation_score",
        "query_norm",
    ):
        assert conv[name].dims == plain[name].dims
    assert conv.word.values.tolist() == plain.word.values.tolist()
    # Starts are paired.
    assert float(conv.query_norm) == pytest.approx(float(plain.query_norm), rel=1e-12)
    assert float(conv.loss[-1]) < float(conv.loss[0])
    frozen = train_topic(
        TopicSettings(**TINY, record="curves", reach=1, frozen_context=True), context
    )
    assert float(frozen.loss[-1]) < float(frozen.loss[0])
    # What stands in front of a word's own key is C₀ q, and of its embedding nothing.
    assert float(frozen.query_norm) != pytest.approx(float(conv.query_norm), rel=1e-3)
    np.testing.assert_allclose(frozen.norm, frozen.embedding_norm, rtol=1e-12)


def test_an_order_of_heads_is_unknown_where_a_run_failed_and_unasked_where_none_was_made():
    final = xr.DataArray(
        [[3.0, 1.0, np.nan, 3.0], [2.0, 2.0, 2.0, np.nan]],
        {"setting": ["fixed", "linear"], "seed": range(4)},
        ("setting", "seed"),
    )
    asked = [[True, True, True, True], [True, True, True, False]]
    table = xr.Dataset({"final_score": final}, {"asked": (("setting", "seed"), asked)})
    found = falls("fixed", "linear")({"capacity": table})
    assert found.seed.values.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.values, [1.0, 0.0, np.nan])


def test_runs_in_which_nothing_happens_are_judged_and_drawn():
    runs = {label: one for sweep in (reference, starts) for label, one in measured(sweep).items()}
    nothing = ("sen_error", "score_error", "final_error", "onset", "dip_step", "fall_together")
    data = {}
    for label, one in runs.items():
        names = [str(name) for name in one.data_vars]
        unknown = [name for name in names if any(part in name for part in nothing)]
        data[label] = one.assign({name: one[name].astype(float).where(False) for name in unknown})
        if "depth" in one:
            data[label] = data[label].assign(depth=0.0 * one["depth"])
            if "dip" in one:
                data[label] = data[label].assign(dip=0.0 * one["depth"])
    drawn = [claim for claim in OWN if set(claim.sweeps) <= {reference, starts}]
    assert len(drawn) == 7
    for claim in drawn:
        assert claim.judge(data)["verdict"] != "not run"
        assert claim.figures is not None
        assert claim.figures(data)


def test_words_that_start_large_are_drawn_against_their_own_predictions():
    run = measured(reference)["reference"].sel(head="fixed")
    assert "score s" in sen_relation(run).table
    large = run.assign({Relation.predicted_scaled_norm: run[Relation.predicted_scaled_norm] + 1})
    assert "|q||ν| predicted from s and |ν₀|" in sen_relation(large).table


def test_rates_of_the_limit_are_drawn_only_if_it_is_near():
    (rate,) = (claim for claim in OWN if claim.id == "lu2021.rate")
    far = measured(rate.sweeps[0])["asymptotics"].sel(head="fixed", drop=True)
    near = far.sel(time=slice(0, 1e4))
    titles = ("loss", "score", "attention")
    names = [[f.id for f in far_figures(one, prefix="f", titles=titles)] for one in (far, near)]
    assert names == [["f_loss", "f_score", "f_attention"], ["f_loss", "f_attention"]]


def story() -> xr.Dataset:
    """Four seeds of two words that dip, wait, rise and saturate; one word of one seed never rises."""
    step = np.arange(0, 2001, 10)
    rise = 4 / (1 + np.exp(-(np.log(step + 1) - np.log(300)) * 4))
    dip = -0.05 * np.exp(-(((step - 60) / 30.0) ** 2)) + 0.05 * np.exp(-4)
    score = np.tile(np.where(step > 0, rise + dip, 0.0), (4, 2, 1))
    score[0, 1] = 0.0
    dims = ("seed", "word", "step")
    coords = {"seed": range(4), "word": ["good", "bad"], "step": step}
    run = xr.Dataset({"score": (dims, score), "norm": (dims, 1 + score)}, coords)
    return run.merge(al.dynamics.phases(run))


def test_the_phases_of_a_word_are_told_in_order():
    figure = phase_figure(story(), id="f", title="t")
    assert figure.choices[:2] == ("good, seed 0", "bad, seed 0")
    columns = {name: figure.table[name] for name in ("seed", "word", "phase")}
    first = [
        phase
        for seed, word, phase in zip(*columns.values(), strict=True)
        if (seed, word) == ("0", "good")
    ]
    assert list(dict.fromkeys(first)) == ["suppressed", "waiting", "rising", "saturated"]


def test_the_table_of_phases_holds_every_word_of_every_seed():
    figure = phase_table(story(), id="f", title="t")
    assert figure.grid is not None
    assert figure.grid.rows == ("good", "bad")
    assert len(figure.table["word"]) == 8
    assert figure.grid.cells[0][0] == "4 of 4"
    assert "not in 1" in figure.grid.cells[1][2], "one word of one seed has no onset"
