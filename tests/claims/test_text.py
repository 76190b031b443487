"""The claims on text: where they are judged, where only reported, and whether their controls can
tell.
"""

import numpy as np
import pytest
import xarray as xr
from attnlab.claims import Claim, contradicts, reproduce, text_claims
from attnlab.studies import _text, _text_claims, text_parts, text_study

from attnlab import AttnlabError
from tests.studies.texts import write_folder

IDS = ["lu2021.text_sen", "lu2021.text_purity", "lu2021.text_excess", "lu2021.text_accuracy"]


@pytest.fixture
def folder(tmp_path):
    return str(write_folder(tmp_path / "made"))


@pytest.fixture
def judged(folder, monkeypatch):
    """The claims as on SST-2, which is known by its numbers of sentences."""
    monkeypatch.setattr(_text, "_SST2", (120, 40, 60))
    return {claim.id: claim for claim in text_claims(folder)}


def arms(**changed) -> dict[str, xr.Dataset]:
    """Measurements that keep all claims, but for those that are named, as
    ``linear_best_accuracy=0.5``.
    """
    good = {
        "sen_error": 0.06,
        "sen_error_wrong_query": 0.21,
        "purity_trend": 0.99,
        "frequency_trend": -0.99,
        "least_purity_trend": -0.5,
        "least_frequency_trend": 0.1,
        "best_excess": 0.43,
        "best_accuracy": 0.80,
        "highest_excess": 0.45,
    }
    found = {}
    for arm in ("fixed", "linear", "permuted"):
        values = good | (
            {"highest_excess": 0.2, "best_accuracy": 0.51} if arm == "permuted" else {}
        )
        values |= {
            name.removeprefix(f"{arm}_"): v
            for name, v in changed.items()
            if name.startswith(f"{arm}_")
        }
        found[f"text {arm}"] = xr.Dataset(
            {
                name: (("seed", "rank"), np.full((3, 100), value))
                if name.startswith("sen")
                else ("seed", [value] * 3)
                for name, value in values.items()
            }
        )
    return found


def test_on_sst2_they_are_judged_and_elsewhere_reported(folder, judged):
    assert list(judged) == IDS
    for claim in judged.values():
        assert claim.judge(arms())["verdict"] == "holds"
    elsewhere = [claim for source in ("rotten-tomatoes",) for claim in text_claims(source)]
    for claim in elsewhere:
        assert claim.judge(arms())["verdict"] == "reported"
        assert not contradicts(claim.judge(arms(fixed_best_accuracy=0.1, fixed_best_excess=0.1)))
    assert {study.name for claim in elsewhere for study in claim.studies} == {"text"}


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("lu2021.text_sen", {"linear_sen_error": 0.13}),
        ("lu2021.text_purity", {"fixed_purity_trend": 0.89}),
        ("lu2021.text_purity", {"linear_frequency_trend": -0.89}),
        ("lu2021.text_excess", {"fixed_best_excess": 0.34}),
        ("lu2021.text_accuracy", {"fixed_best_accuracy": 0.785}),
        ("lu2021.text_accuracy", {"linear_best_accuracy": 0.775}),
    ],
)
def test_each_criterion_can_fail(judged, claim, changed):
    for name, one in judged.items():
        assert one.judge(arms(**changed))["verdict"] == ("fails" if name == claim else "holds")


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        (
            "lu2021.text_sen",
            {"fixed_sen_error_wrong_query": 0.05, "linear_sen_error_wrong_query": 0.05},
        ),
        (
            "lu2021.text_purity",
            {
                f"{head}_least_{name}_trend": value
                for head in ("fixed", "linear")
                for name, value in (("purity", 0.95), ("frequency", -0.95))
            },
        ),
        ("lu2021.text_excess", {"permuted_highest_excess": 0.36}),
        ("lu2021.text_accuracy", {"permuted_best_accuracy": 0.8}),
    ],
)
def test_a_control_that_passes_makes_it_inconclusive(judged, claim, changed):
    for name, one in judged.items():
        assert one.judge(arms(**changed))["verdict"] == (
            "inconclusive" if name == claim else "holds"
        )


def test_they_run_through_and_are_not_run_without_runs(folder, tmp_path, monkeypatch):
    whole = _text_claims.arm_plan
    tiny = {
        "embedding_dim": 4,
        "steps": 100,
        "every": 20,
        "permutations": 20,
        "query_std": 1.0,
        "top": 10,
    }

    def small(work, name, arms, seeds):
        return whole(work, name, {label: {**arm, **tiny} for label, arm in arms.items()}, seeds)

    monkeypatch.setattr(_text_claims, "arm_plan", small)
    done = reproduce(text_claims(folder), tmp_path / "out", seeds=2, processes=0, progress=False)
    assert [entry["id"] for entry in done.claims] == IDS
    for entry in done.claims:
        assert entry["runs"] == {"asked": 4, "finished": 4, "failed": 0, "causes": []}
        assert entry["verdict"] in ("reported", "inconclusive"), entry["reason"]
    assert {name: data.sizes["seed"] for name, data in done.data.items()} == {
        "text linear": 1,
        "text fixed": 2,
        "text permuted": 1,
    }
    assert done.data["text fixed"].attrs["content"] == text_parts(folder).hash
    absent: Claim = text_claims(folder)[0]
    assert absent.judge(None, absent="no data")["verdict"] == "not run"


def test_a_wrong_path_is_told_at_once(tmp_path):
    with pytest.raises(AttnlabError, match="nowhere"):
        text_claims(str(tmp_path / "nowhere"))
    assert text_study(str(write_folder(tmp_path / "mine"))).name == "text mine"
