"""The sweeps of Lu et al. (2021), small enough to run through: every claim is judged, every figure
drawn.
"""

from typing import Any

import numpy as np
import pytest
import xarray as xr

from attnlab import AttnlabError
from attnlab.claims import reproduce, resolve
from attnlab.report import claims_page, render
from attnlab.studies import ABLATION, REFERENCE, TopicSettings, _lu2021, train_topic
from attnlab.studies._measure import log_agreement, predicted_errors
from attnlab.sweeps import RunContext

_TINY: dict[str, Any] = {
    "sentences": 80,
    "test_sentences": 20,
    "dictionary": 40,
    "noise_words": 5,
    "steps": 60,
    "rows": 20,
}


@pytest.fixture
def tiny(monkeypatch):
    """All studies with tiny runs; the ablations keep the steps at which they are read."""
    whole = _lu2021.arm_plan

    def small(work, name, arms, seeds):
        if work == _lu2021.WORK:
            short = _TINY if name != "ablation" else _TINY | {"steps": 6000, "rows": 2}
            arms = {
                label: {**arm, **short, **({"dictionary": 8} if "dictionary" in arm else {})}
                for label, arm in arms.items()
            }
        return whole(work, name, arms, 2)

    monkeypatch.setattr(_lu2021, "arm_plan", small)


def test_every_claim_is_judged_and_drawn(tiny, tmp_path):
    done = reproduce(resolve(["lu2021"]), tmp_path, scale="quick", processes=0, progress=False)
    assert len(done.claims) == 13
    for entry in done.claims:
        assert entry["verdict"] in ("holds", "fails", "inconclusive", "reported"), entry["reason"]
        measured = [c for c in entry["criteria"] if c["reason"] != "nothing could be measured"]
        # In so few steps no score has risen under a trained head: there is nothing to predict.
        assert measured or entry["id"] in ("lu2021.reduced_tc", "lu2021.reduced_tl"), entry["id"]
        assert entry["controls"]
    page = claims_page(done.claims, done.data, done.about)
    drawn = {section.id: [f.id for f in section.figures] for section in page.sections}
    assert all(drawn.values()), drawn
    assert not any(name.endswith(".criteria") for names in drawn.values() for name in names), drawn
    assert "<script" in render(page)


def test_a_paper_sized_plan_asks_for_what_the_paper_did():
    plan = REFERENCE.plan("paper", 16)
    fixed = [r.settings for r in plan.runs if r.settings["arm"] == "fixed"]
    assert len(fixed) == 16
    built = TopicSettings(**fixed[3])
    assert (built.sentences, built.dictionary, built.noise_words) == (4000, 5000, 20)
    assert (built.steps, built.step_size) == (5000, 0.1)
    # Every choice of query, keys, embeddings and head but none at all.
    trained = {
        (r.settings["head"], frozenset(r.settings["trained"]))
        for r in ABLATION.plan("paper", 16).runs
    }
    assert len({parts for _, parts in trained}) == 15


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
    assert np.isclose(found.final_error.item(), 0.1)
    assert np.isclose(
        found.onset_error.item(), 0.0
    )  # both reach half of their own last value at the same step
    assert np.isinf(found.halved_onset_error.item())  # a score that never rises has no onset
    unsettled = predicted_errors(data.assign(loss=loss + 1))
    assert np.isnan(unsettled.final_error.item())
    assert not unsettled.settled.item()


def test_agreement_is_weighed_in_log_time():
    step = np.arange(0, 5001, 20)
    dip = np.where(step < 200, -step, step - 400.0)  # a score that falls early ...
    data = xr.Dataset(
        {"score": ("step", dip), "norm": ("step", step.astype(float))}, {"step": step}
    )  # ... with no norm
    assert float(log_agreement(data)) < 0.99


def test_settings_are_checked_at_once():
    with pytest.raises(
        AttnlabError, match="head='cubic': expected one of fixed, linear, two_layer, deep"
    ):
        TopicSettings(head="cubic")
    with pytest.raises(AttnlabError, match="record='all'"):
        TopicSettings(record="all")
    with pytest.raises(AttnlabError, match="rows=0"):
        TopicSettings(rows=0)


def test_contextual_runs_record_what_others_do():
    context = RunContext(root_seed=0, index=0, hash="00" * 16)
    plain = train_topic(TopicSettings(**_TINY, record="curves"), context)
    conv = train_topic(TopicSettings(**_TINY, record="curves", reach=1), context)
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
    assert float(conv.query_norm) == pytest.approx(
        float(plain.query_norm), rel=1e-12
    )  # paired starts
    assert float(conv.loss[-1]) < float(conv.loss[0])
