"""The claims about guidelines, judged on made-up measurements: each can hold, fail and stay open."""

import numpy as np
import pytest
import xarray as xr

from attnlab.claims._guidelines import GUIDELINES
from attnlab.studies._guidelines import compare_steps

CLAIMS = {claim.id: claim for claim in GUIDELINES}


def runs(error: float, number: int) -> xr.Dataset:
    """Eight seeds whose luck is nearly the same whatever is run."""
    shared, own = np.random.default_rng(0), np.random.default_rng(number)
    luck = np.exp(0.1 * shared.normal(size=8) + 0.01 * own.normal(size=8))
    columns = dict.fromkeys(("error", "entropy", "attention"), ("seed", error * luck))
    return xr.Dataset(columns, {"seed": range(100, 108)})


def teacher(**falls: tuple[float, ...]) -> xr.Dataset:
    """Errors after 1500, 6000, … steps."""
    names = {
        "softmax": "softmax",
        "cool": "softmax:0.25",
        "hot": "softmax:4",
        "sparse": "sparsemax",
        "top": "top1",
    }
    asked = [(v, k, error) for v, errors in falls.items() for k, error in enumerate(errors)]
    arms = {
        (names[v], 1500 * 4**k): runs(error, number)
        for number, (v, k, error) in enumerate(asked, start=1)
    }
    return compare_steps(arms, [names[v] for v in falls])


def verdict(name: str, data: dict[str, xr.Dataset]) -> str:
    return CLAIMS[name].judge(data)["verdict"]


def hard(**changed: tuple[float, ...]) -> dict[str, xr.Dataset]:
    falls = {"softmax": (0.2, 0.1, 0.1), "cool": (0.1, 0.1, 0.1), "hot": (0.4, 0.2, 0.2)}
    return {"hard teacher": teacher(**(falls | changed))}


def test_a_gain_that_is_speed_fails_at_convergence():
    assert verdict("liu2021.sparse_helps_hard", hard()) == "fails"
    assert CLAIMS["liu2021.sparse_helps_hard"].expected == "fails"


def test_a_gain_that_lasts_is_not_called_speed():
    # Then softmax trained four times as long does not catch up, and that control speaks up.
    entry = CLAIMS["liu2021.sparse_helps_hard"].judge(hard(cool=(0.04, 0.04, 0.04)))
    assert entry["criteria"][0]["verdict"] == "holds"
    assert [c["ok"] for c in entry["controls"]] == [True, False]


def test_nothing_is_judged_before_training_has_settled():
    entry = CLAIMS["liu2021.sparse_helps_hard"].judge(hard(softmax=(0.2, 0.1, 0.05)))
    assert entry["verdict"] == "inconclusive"
    assert "softmax has not settled" in entry["reason"]
    assert "moves by 50 %" in entry["reason"]


def test_without_a_gain_at_1500_steps_the_comparison_sees_nothing():
    entry = CLAIMS["liu2021.sparse_helps_hard"].judge(hard(cool=(0.2, 0.2, 0.2)))
    assert entry["verdict"] == "inconclusive"
    assert "'1500 steps'" in entry["reason"]


@pytest.mark.parametrize(
    ("cool", "top", "expected"),
    [(0.1, 5.0, "fails"), (0.3, 5.0, "holds"), (0.1, 0.1, "inconclusive")],
)
def test_sparse_attention_on_a_dense_teacher(cool, top, expected):
    data = {
        "dense teacher": teacher(
            softmax=(0.1, 0.1), cool=(cool, cool), sparse=(cool, cool), top=(top,)
        )
    }
    assert verdict("liu2021.sparse_hurts_dense", data) == expected


def test_a_high_temperature_is_reported_setting_by_setting():
    entry = CLAIMS["liu2021.high_temperature_hurts"].judge(hard())
    assert entry["verdict"] == "reported"
    assert [c["verdict"] for c in entry["criteria"]] == ["holds", "holds"]
    slow = CLAIMS["liu2021.high_temperature_hurts"].judge(hard(hot=(0.4, 0.2, 0.1)))
    assert [c["verdict"] for c in slow["criteria"]] == ["holds", "inconclusive"]


def prior(
    right: tuple[float, float, float], wrong: tuple[float, float, float]
) -> dict[str, xr.Dataset]:
    columns = {
        "student": ["softmax", "softmax+prior:1", "softmax+wrong-prior:1"],
        "task": ["hard"],
        "seed": range(16),
    }
    ends = np.array([(np.nan,) * 3, right, wrong])
    data = {
        f"ratio{tail}": (("student", "task"), ends[:, [k]])
        for k, tail in enumerate(("", "_low", "_high"))
    }
    return {
        "prior": xr.Dataset(
            data | {"ratio_kind": (("student", "task"), [["not run"], ["exact"], ["exact"]])},
            columns,
        )
    }


def test_a_prior_must_help_and_a_wrong_one_must_not():
    good, bad, vague = (1.7, 1.4, 1.9), (0.4, 0.0, 0.5), (1.4, 1.1, 1.9)
    assert verdict("liu2021.prior_helps", prior(good, bad)) == "holds"
    assert verdict("liu2021.prior_helps", prior(bad, bad)) == "fails"
    assert verdict("liu2021.prior_helps", prior(vague, bad)) == "inconclusive"
    assert verdict("liu2021.prior_helps", prior(good, good)) == "inconclusive"
