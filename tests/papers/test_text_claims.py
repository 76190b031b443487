"""The claims on text: where they are judged, where only reported, and whether their controls can
tell.
"""

import numpy as np
import pytest
import xarray as xr

from attnlab import AttnlabError
from attnlab.data import _text_parts
from attnlab.lab import contradicts
from attnlab.papers import claims, resolve
from tests.papers.texts import write_folder

IDS = [
    "lu2021.text_sen",
    "lu2021.text_purity",
    "lu2021.text_excess",
    "lu2021.text_accuracy",
    "lu2021.text_competition",
]


@pytest.fixture
def folder(tmp_path):
    return str(write_folder(tmp_path / "made"))


@pytest.fixture
def judged(folder, monkeypatch):
    """The claims as on SST-2, which is known by its numbers of sentences."""
    monkeypatch.setattr(_text_parts, "_SST2", (120, 40, 60))
    return {claim.id: claim for claim in resolve(IDS, corpus=folder)}


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
        "best_purity": 0.6,
        "least_contested": 0.18,
        "best_contested": 0.62,
        "best_clear": 0.95,
        "last_contested": 0.8,
        "last_clear": 0.9,
    }
    found = {}
    for arm in ("fixed", "linear", "permuted"):
        values = good | (
            {
                "highest_excess": 0.2,
                "best_accuracy": 0.51,
                "best_purity": 0.2,
                "least_contested": 0.5,
                "last_contested": 0.9,
                "last_clear": 0.5,
            }
            if arm == "permuted"
            else {}
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


def test_they_are_judged_on_both_corpora_that_have_thresholds_and_elsewhere_reported(
    judged, tmp_path
):
    assert list(judged) == IDS
    for claim in judged.values():
        assert claim.judge(arms())["verdict"] == "holds"
    tomatoes = {claim.id: claim for claim in resolve(IDS, corpus="rotten-tomatoes")}
    assert {sweep.name for claim in tomatoes.values() for sweep in claim.sweeps} == {"text"}
    at_75 = arms(fixed_best_accuracy=0.75, linear_best_accuracy=0.75)
    for claim in tomatoes.values():
        assert claim.judge(at_75)["verdict"] == "holds"
    assert judged["lu2021.text_accuracy"].judge(at_75)["verdict"] == "fails"
    other = str(write_folder(tmp_path / "other", sizes=(60, 30, 30)))
    for claim in resolve(IDS, corpus=other):
        assert claim.judge(arms())["verdict"] == "reported"
        assert not contradicts(claim.judge(arms(fixed_best_accuracy=0.1, fixed_best_excess=0.1)))


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("lu2021.text_sen", {"linear_sen_error": 0.13}),
        ("lu2021.text_purity", {"fixed_best_purity": 0.4}),
        ("lu2021.text_competition", {"fixed_least_contested": 0.35}),
        ("lu2021.text_competition", {"linear_best_contested": 0.5}),
        ("lu2021.text_competition", {"linear_best_clear": 0.65}),
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
        ("lu2021.text_purity", {"permuted_best_purity": 0.5}),
        (
            "lu2021.text_competition",
            {"permuted_least_contested": 0.2, "permuted_last_clear": 0.9},
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


def test_a_wrong_path_is_told_at_once(tmp_path):
    with pytest.raises(AttnlabError, match="nowhere"):
        claims(str(tmp_path / "nowhere"))
    (claim,) = resolve(["lu2021.text_sen"], corpus=str(write_folder(tmp_path / "mine")))
    assert claim.sweeps[0].name == "text mine"
