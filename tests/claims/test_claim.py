"""Verdict logic: every branch of it, on numbers whose verdict is known."""

import json
from typing import Literal

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.claims import CLAIMS, Claim, Control, Criterion, contradicts, read_reproduction, reproduce, resolve
from attnlab.studies import Study, arm_plan


def values(numbers):
    return lambda data: xr.DataArray(np.asarray(numbers, float), dims="seed")


def ends(*numbers):
    return lambda data: xr.DataArray(np.asarray(numbers, float), dims="end", attrs={"kind": "at least", "seeds": 8})


def claim(*criteria, control_value=1.0, should: Literal["reject", "accept"] = "reject", **more) -> Claim:
    control = Control("wrong", "must fail", (Criterion("c", "bound", values([control_value]), 0.5),), should)
    return Claim(
        id="x.y", title="t", statement="s", source="o", studies=(), criteria=criteria, controls=(control,),
        how_measured="h", refuted_by="r", **more,
    )  # fmt: skip


NEAR = np.linspace(0.9, 1.1, 16)


@pytest.mark.parametrize(
    ("criterion", "verdict"),
    [
        (Criterion("b", "bound", values([0.1, 0.2]), 0.2), "holds"),
        (Criterion("b", "bound", values([0.1, 0.3]), 0.2), "fails"),
        (Criterion("b", "bound", values([0.1, 0.3]), 0.2, "<=", "median"), "holds"),
        (Criterion("b", "bound", values([0.1, 0.3]), 0.2, ">=", "min"), "fails"),
        (Criterion("b", "bound", values([np.nan, 0.1]), 0.2), "holds"),
        (Criterion("b", "bound", values([np.nan]), 0.2), "inconclusive"),
        (Criterion("e", "estimate", values(NEAR), 1.2, "<=", "mean"), "holds"),
        (Criterion("e", "estimate", values(NEAR), 0.8, "<=", "mean"), "fails"),
        (Criterion("e", "estimate", values(NEAR), 1.0, "<=", "mean"), "inconclusive"),
        (Criterion("e", "estimate", values(NEAR), (0.9, 1.1), "in", "mean"), "holds"),
        (Criterion("e", "estimate", values(NEAR), (1.2, 1.3), "in", "mean"), "fails"),
        (Criterion("e", "estimate", values(NEAR), (1.0, 1.3), "in", "mean"), "inconclusive"),
        (Criterion("e", "estimate", values(NEAR[:7]), 1.2, "<=", "mean"), "inconclusive"),
        (Criterion("i", "interval", ends(5, 4, np.inf), 3.5, ">="), "holds"),
        (Criterion("i", "interval", ends(5, 3, 8), 3.5, ">="), "inconclusive"),
        (Criterion("i", "interval", ends(2, 0, 3), 3.5, ">="), "fails"),
        (Criterion("i", "interval", ends(0, -0.1, 0.1), (-0.2, 0.2), "in"), "holds"),
        (Criterion("i", "interval", ends(np.nan, np.nan, np.nan), 1.0), "inconclusive"),
        (Criterion("i", "interval", ends(np.nan, 4096, np.inf), 4096.0, ">="), "holds"),
        (Criterion("s", "share", values([1] * 16), 0.75, ">="), "holds"),
        (Criterion("s", "share", values([1] * 4 + [0] * 12), 0.75, ">="), "fails"),
        (Criterion("s", "share", values([1] * 12 + [0] * 4), 0.75, ">="), "inconclusive"),
    ],
)
def test_one_criterion(criterion, verdict):
    entry = claim(criterion).judge({})
    assert entry["verdict"] == verdict
    assert entry["criteria"][0]["verdict"] == verdict
    if verdict != "holds":
        assert entry["reason"]


def test_a_given_interval_with_an_open_end_is_json():
    entry = claim(Criterion("i", "interval", ends(5, 4, np.inf), 3.5, ">=")).judge({})
    record = json.loads(json.dumps(entry["criteria"][0], allow_nan=False))
    assert record["interval"] == [4.0, None]
    assert record["bounded"] == "at least"
    assert entry["seeds"] == 8
    with pytest.raises(AttnlabError, match="length 3"):
        Criterion("i", "interval", values([1.0]), 3.5).judge({})


def test_a_claim_needs_all_and_fails_by_one():
    good, bad = (Criterion(n, "bound", values([v]), 0.5) for n, v in (("good", 0.1), ("bad", 0.9)))
    open_one = Criterion("open", "estimate", values(NEAR), 1.0, "<=", "mean")
    assert claim(good, good).judge({})["verdict"] == "holds"
    assert claim(good, bad, open_one).judge({})["verdict"] == "fails"
    assert "'bad' fails" in claim(good, bad).judge({})["reason"]
    assert claim(good, open_one).judge({})["verdict"] == "inconclusive"


def test_a_control_that_does_not_come_out_makes_the_verdict_inconclusive():
    good = Criterion("good", "bound", values([0.1]), 0.5)
    entry = claim(good, control_value=0.1).judge({})
    assert entry["verdict"] == "inconclusive"
    assert "'wrong' should have been rejected but came out 'holds'" in entry["reason"]
    assert entry["controls"][0]["ok"] is False
    assert claim(good, control_value=0.1, should="accept").judge({})["verdict"] == "holds"
    assert claim(good, control_value=0.9, should="accept").judge({})["verdict"] == "inconclusive"


def test_without_data_a_claim_is_not_run():
    entry = claim(Criterion("good", "bound", values([0.1]), 0.5)).judge(None, absent="no file")
    assert (entry["verdict"], entry["reason"], entry["criteria"]) == ("not run", "no file", [])
    assert not contradicts(entry)


def test_only_a_decided_verdict_contradicts():
    good, bad = (Criterion("c", "bound", values([v]), 0.5) for v in (0.1, 0.9))
    assert not contradicts(claim(good).judge({}))
    assert contradicts(claim(bad).judge({}))
    assert contradicts(claim(good, expected="fails").judge({}))
    assert not contradicts(claim(bad, expected="fails").judge({}))
    assert not contradicts(claim(good, control_value=0.1, expected="fails").judge({}))


def test_claims_that_could_not_fail_are_refused():
    with pytest.raises(AttnlabError, match="no criterion"):
        claim()
    with pytest.raises(AttnlabError, match="no control"):
        Claim("x", "t", "s", "o", (), (Criterion("c", "bound", values([1]), 1.0),), (), "h", "r")
    with pytest.raises(AttnlabError, match="two thresholds"):
        Criterion("c", "bound", values([1]), 1.0, "in")
    with pytest.raises(AttnlabError, match="'seed' among them"):
        Criterion("c", "bound", lambda d: xr.DataArray([1.0], dims="run"), 1.0).judge({})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Criterion("c", "bounds", values([1]), 1.0), "kind='bounds'"),  # pyright: ignore
        (lambda: Criterion("c", "bound", values([1]), 1.0, "<"), "relation='<'"),  # pyright: ignore
        (lambda: Control("c", "s", ()), "no criterion"),
        (lambda: Control("c", "s", (Criterion("c", "bound", values([1]), 1.0),), "rejects"), "should="),  # pyright: ignore
    ],
)
def test_mistyped_words_are_refused(make, message):
    with pytest.raises(AttnlabError, match=message):
        make()


def test_an_infinite_value_does_not_pass_and_the_worst_value_counts():
    assert Criterion("c", "bound", values([np.inf, 0.1]), 1.0).judge({}).verdict == "fails"
    assert Criterion("c", "estimate", values([np.inf, *NEAR]), 2.0, "<=", "mean").judge({}).verdict == "inconclusive"
    assert Criterion("c", "bound", values([0.0, 7.0]), 1.0, ">=").judge({}).verdict == "fails"
    assert Criterion("c", "bound", values([0.0, 7.0]), 1.0, "<=").judge({}).verdict == "fails"


def test_the_catalogue():
    assert list(CLAIMS) == [c.id for c in resolve([])]
    assert {
        "laws.score_sum",
        "laws.balance",
        "laws.query_balance",
        "laws.identity",
        "laws.optimizers",
        "lu2021.sen",
    } <= {*CLAIMS}
    assert [c.id for c in resolve(["lu2021.sen", "lu2021"])].count("lu2021.sen") == 1
    with pytest.raises(AttnlabError, match=r"did you mean 'laws.identity'"):
        resolve(["laws.identiy"])


def toy_study(tmp_path, body="return xr.Dataset({'value': settings.size + 0.001 * settings.seed})") -> Study:
    """A study of a work function in a file of its own, as a user would write it."""
    file = tmp_path / "toy_work.py"
    file.write_text(
        "from dataclasses import dataclass\nimport xarray as xr\n\n\n"
        "@dataclass(frozen=True)\nclass Toy:\n    arm: str = ''\n    seed: int = 0\n    size: float = 0.0\n\n\n"
        f"def work(settings: Toy, context):\n    {body}\n"
    )
    arms = {"small": {"size": 1.0}, "large": {"size": 5.0}}
    return Study(
        "toy",
        lambda scale, seeds: arm_plan(f"{file}:work", "toy", arms, seeds),
        lambda data: {
            "toy": xr.concat([data[a] for a in arms], dim=xr.DataArray(list(arms), dims="size", name="size"))
        },
    )


def toy_claim(study: Study) -> Claim:
    def size(name):
        return lambda data: data["toy"].value.sel(size=name)

    return Claim(
        "toy.small", "Small is small", "The small ones stay below two.", "nowhere", (study,),
        (Criterion("value", "estimate", size("small"), 2.0, "<=", "mean"),),
        (Control("large", "must be rejected", (Criterion("value", "estimate", size("large"), 2.0, "<=", "mean"),)),),
        "by adding", "a large one",
    )  # fmt: skip


def test_reproduce_stores_what_it_found_and_reads_it_back(tmp_path):
    done = reproduce([toy_claim(toy_study(tmp_path))], tmp_path / "out", processes=0)
    entry = done.claims[0]
    assert (entry["verdict"], entry["seeds"]) == ("holds", 8)
    assert entry["runs"] == {"asked": 16, "finished": 16, "failed": 0}
    assert entry["criteria"][0]["statistic"] == pytest.approx(1.0035)
    record = json.loads((tmp_path / "out" / "claims.json").read_text("utf-8"))
    assert record["schema"] == 1
    assert record["claims"] == done.claims
    back = read_reproduction(tmp_path / "out")
    assert back.data["toy"].identical(done.data["toy"])
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out" / "runs").rglob("*.zip")}
    again = reproduce([toy_claim(toy_study(tmp_path))], tmp_path / "out", processes=0)
    assert again.claims == done.claims
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "out" / "runs").rglob("*.zip")}


def test_names_that_look_alike_do_not_overwrite_each_other(tmp_path):
    study = toy_study(tmp_path)
    twins = Study("toy", study.plan, lambda arms: {"toy": arms["small"], "α": arms["small"], "β": arms["large"]})
    one = Claim(
        "toy.b", "t", "s", "o", (twins,), (Criterion("c", "bound", lambda d: d["β"].value, 9.0),),
        (Control("small", "s", (Criterion("c", "bound", lambda d: d["α"].value, 0.5),)),), "h", "r",
    )  # fmt: skip
    done = reproduce([one], tmp_path / "out", processes=0)
    back = read_reproduction(tmp_path / "out")
    assert float(back.data["α"].value[0]) == 1.0
    assert float(back.data["β"].value[0]) == 5.0
    assert done.claims[0]["command"] == "attnlab reproduce toy.b --scale quick"
    with pytest.raises(AttnlabError, match="two different studies are named 'toy'"):
        reproduce([one, toy_claim(study)], tmp_path / "out", processes=0)


def test_a_mistake_in_a_measurement_is_named(tmp_path):
    study = toy_study(tmp_path)
    wrong = Criterion("c", "bound", lambda data: data["tyo"].value, 1.0)
    claim = Claim("toy.c", "t", "s", "o", (study,), (wrong,), (Control("x", "y", (wrong,)),), "h", "r")
    with pytest.raises(AttnlabError, match=r"judging the claim 'toy.c' raises KeyError: 'tyo' \(test_claim.py, line"):
        reproduce([claim], tmp_path / "out", processes=0)


def test_a_study_all_of_whose_runs_fail_is_not_run(tmp_path):
    done = reproduce([toy_claim(toy_study(tmp_path, "raise ValueError('no luck')"))], tmp_path / "out", processes=0)
    assert done.claims[0]["verdict"] == "not run"
    assert done.claims[0]["runs"] == {"asked": 16, "finished": 0, "failed": 16}
    assert not done.ok


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda out: (out / "claims.json").unlink(), "has no claims.json"),
        (lambda out: (out / "claims.json").write_text("{}"), "is not a record of attnlab"),
        (
            lambda out: (out / "claims.json").write_text('{"schema": 9, "claims": [], "data": {}, "about": {}}'),
            "schema 9",
        ),
        (lambda out: (out / "data" / next((out / "data").iterdir()).name).write_bytes(b"PK junk"), "cannot be read"),
    ],
)
def test_a_damaged_folder_is_refused_in_words(tmp_path, damage, message):
    reproduce([toy_claim(toy_study(tmp_path))], tmp_path / "out", processes=0)
    damage(tmp_path / "out")
    with pytest.raises(AttnlabError, match=message):
        read_reproduction(tmp_path / "out")
