"""Verdict logic: every branch of it, on numbers whose verdict is known."""

import json
import math
import re
from dataclasses import replace
from typing import Literal, cast

import numpy as np
import pytest
import xarray as xr
from markupsafe import escape

from attnlab._errors import AttnlabError
from attnlab.cli._commands import show
from attnlab.lab import (
    Claim,
    Claims,
    ClaimSettings,
    Control,
    Criterion,
    Grid,
    Sweep,
    TextTable,
    _experiment,
    contradicts,
    every_run,
    given_interval,
    mean,
    pooled_median,
    pooled_p95,
    read_record,
    reproduce,
    share,
)
from attnlab.papers import claims, resolve
from attnlab.stats import interval_of


def values(numbers):
    return lambda data: xr.DataArray(np.asarray(numbers, float), dims="seed")


def ends(*numbers):
    return lambda data: xr.DataArray(
        np.asarray(numbers, float), dims="end", attrs={"kind": "at least", "seeds": 8}
    )


def claim(
    *criteria, control_value=1.0, should: Literal["reject", "accept"] = "reject", **more
) -> Claim:
    control = Control(
        "wrong", "must fail", (Criterion("c", values([control_value]), every_run <= 0.5),), should
    )
    return Claim(
        id="x.y",
        title="t",
        statement="s",
        sweeps=(),
        criteria=criteria,
        controls=(control,),
        how_measured="h",
        refuted_by="r",
        **more,
    )


NEAR = np.linspace(0.9, 1.1, 16)


@pytest.mark.parametrize(
    ("criterion", "verdict"),
    [
        (Criterion("b", values([0.1, 0.2]), every_run <= 0.2), "holds"),
        (Criterion("b", values([0.1, 0.3]), every_run <= 0.2), "fails"),
        (Criterion("b", values([0.1, 0.3]), pooled_median <= 0.2), "holds"),
        (Criterion("b", values([0.1, 0.3]), every_run >= 0.2), "fails"),
        (Criterion("b", values([np.nan, 0.1]), every_run <= 0.2), "holds"),
        (Criterion("b", values([np.nan]), every_run <= 0.2), "inconclusive"),
        (Criterion("e", values(NEAR), mean <= 1.2), "holds"),
        (Criterion("e", values(NEAR), mean <= 0.8), "fails"),
        (Criterion("e", values(NEAR), mean <= 1.0), "inconclusive"),
        (Criterion("e", values(NEAR), mean.between(0.9, 1.1)), "holds"),
        (Criterion("e", values(NEAR), mean.between(1.2, 1.3)), "fails"),
        (Criterion("e", values(NEAR), mean.between(1.0, 1.3)), "inconclusive"),
        (Criterion("e", values(NEAR[:7]), mean <= 1.2), "inconclusive"),
        (Criterion("i", ends(5, 4, np.inf), given_interval >= 3.5), "holds"),
        (Criterion("i", ends(5, 3, 8), given_interval >= 3.5), "inconclusive"),
        (Criterion("i", ends(2, 0, 3), given_interval >= 3.5), "fails"),
        (Criterion("i", ends(0, -0.1, 0.1), given_interval.between(-0.2, 0.2)), "holds"),
        (Criterion("i", ends(np.nan, np.nan, np.nan), given_interval <= 1.0), "inconclusive"),
        (Criterion("i", ends(np.nan, 4096, np.inf), given_interval >= 4096.0), "holds"),
        (Criterion("s", values([1] * 16), share >= 0.75), "holds"),
        (Criterion("s", values([1] * 4 + [0] * 12), share >= 0.75), "fails"),
        (Criterion("s", values([1] * 12 + [0] * 4), share >= 0.75), "inconclusive"),
    ],
)
def test_one_criterion(criterion, verdict):
    entry = claim(criterion).judge({})
    assert entry["verdict"] == verdict
    assert entry["criteria"][0]["verdict"] == verdict
    if verdict != "holds":
        assert entry["reason"]


def test_a_given_interval_with_an_open_end_is_json():
    entry = claim(Criterion("i", ends(5, 4, np.inf), given_interval >= 3.5)).judge({})
    record = json.loads(json.dumps(entry["criteria"][0], allow_nan=False))
    assert record["interval"] == [4.0, None]
    assert record["bounded"] == "at least"
    assert entry["seeds"] == 8
    with pytest.raises(AttnlabError, match="length 3"):
        Criterion("i", values([1.0]), given_interval <= 3.5).judge({})


def test_a_claim_needs_all_and_fails_by_one():
    good, bad = (
        Criterion(n, values([v]), every_run <= 0.5) for n, v in (("good", 0.1), ("bad", 0.9))
    )
    open_one = Criterion("open", values(NEAR), mean <= 1.0)
    assert claim(good, good).judge({})["verdict"] == "holds"
    assert claim(good, bad, open_one).judge({})["verdict"] == "fails"
    assert "'bad' fails" in claim(good, bad).judge({})["reason"]
    assert claim(good, open_one).judge({})["verdict"] == "inconclusive"


def test_a_control_that_does_not_come_out_makes_the_verdict_inconclusive():
    good = Criterion("good", values([0.1]), every_run <= 0.5)
    entry = claim(good, control_value=0.1).judge({})
    assert entry["verdict"] == "inconclusive"
    assert "'wrong' should have been rejected but came out 'holds'" in entry["reason"]
    assert entry["controls"][0]["ok"] is False
    assert claim(good, control_value=0.1, should="accept").judge({})["verdict"] == "holds"
    assert claim(good, control_value=0.9, should="accept").judge({})["verdict"] == "inconclusive"


def test_without_data_a_claim_is_not_run():
    entry = claim(Criterion("good", values([0.1]), every_run <= 0.5)).judge(None, absent="no file")
    assert (entry["verdict"], entry["reason"], entry["criteria"]) == ("not run", "no file", [])
    assert not contradicts(entry)


def test_only_a_decided_verdict_contradicts():
    good, bad = (Criterion("c", values([v]), every_run <= 0.5) for v in (0.1, 0.9))
    assert not contradicts(claim(good).judge({}))
    assert contradicts(claim(bad).judge({}))
    assert contradicts(claim(good, expected="fails").judge({}))
    assert not contradicts(claim(bad, expected="fails").judge({}))
    assert not contradicts(claim(good, control_value=0.1, expected="fails").judge({}))


def test_claims_that_could_not_fail_are_refused():
    with pytest.raises(AttnlabError, match="no criterion"):
        claim()
    with pytest.raises(AttnlabError, match="no control"):
        replace(claim(Criterion("c", values([1]), every_run <= 1.0)), controls=())
    with pytest.raises(AttnlabError, match="the lower threshold first"):
        Criterion("c", values([1]), every_run.between(2.0, 1.0))
    with pytest.raises(AttnlabError, match="'seed' among them"):
        Criterion("c", lambda d: xr.DataArray([1.0], dims="run"), every_run <= 1.0).judge({})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Criterion("c", values([1]), 1.0), "expected a comparison such as"),  # pyright: ignore
        (lambda: Control("c", "s", ()), "no criterion"),
        (
            lambda: Control("c", "s", (Criterion("c", values([1]), every_run <= 1.0),), "rejects"),  # pyright: ignore
            "should=",
        ),
    ],
)
def test_mistyped_words_are_refused(make, message):
    with pytest.raises(AttnlabError, match=message):
        make()


def test_an_infinite_value_does_not_pass_and_the_worst_value_counts():
    assert Criterion("c", values([np.inf, 0.1]), every_run <= 1.0).judge({}).verdict == "fails"
    assert Criterion("c", values([np.inf, *NEAR]), mean <= 2.0).judge({}).verdict == "inconclusive"
    assert Criterion("c", values([0.0, 7.0]), every_run >= 1.0).judge({}).verdict == "fails"
    assert Criterion("c", values([0.0, 7.0]), every_run <= 1.0).judge({}).verdict == "fails"


def test_the_catalogue():
    assert list(claims()) == [c.id for c in resolve([])]
    assert [c.id for c in resolve(["lu2021.sen", "lu2021"])].count("lu2021.sen") == 1
    with pytest.raises(AttnlabError, match=r"did you mean 'lu2021.sen'"):
        resolve(["lu2021.senn"])


def toy_sweep(
    tmp_path, body="return xr.Dataset({'value': settings.size + 0.001 * settings.seed})"
) -> Sweep:
    """A sweep of a work function in a file of its own, as a user would write it."""
    file = tmp_path / "toy_work.py"
    file.write_text(
        "from dataclasses import dataclass\nimport xarray as xr\n\n\n"
        "@dataclass(frozen=True)\nclass Toy:\n    arm: str = ''\n    seed: int = 0\n    size: "
        "float = 0.0\n\n\n"
        f"def work(settings: Toy, context):\n    {body}\n"
    )
    arms = {"small": {"size": 1.0}, "large": {"size": 5.0}}
    return Sweep(
        "toy",
        f"{file}:work",
        lambda scale, seeds: Grid(arms, seeds),
        lambda data: {
            "toy": cast(
                xr.Dataset,
                xr.concat(
                    [data[a] for a in arms], dim=xr.DataArray(list(arms), dims="size", name="size")
                ),
            )
        },
    )


def toy_claim(sweep: Sweep) -> Claim:
    def size(name):
        return lambda data: data["toy"].value.sel(size=name)

    return Claim(
        id="toy.small",
        title="Small is small",
        statement="The small ones stay below two.",
        sweeps=(sweep,),
        criteria=(Criterion("value", size("small"), mean <= 2.0),),
        controls=(
            Control(
                "large",
                "must be rejected",
                (Criterion("value", size("large"), mean <= 2.0),),
            ),
        ),
        how_measured="by adding",
        refuted_by="a large one",
    )


def test_reproduce_stores_what_it_found_and_reads_it_back(tmp_path):
    done = reproduce([toy_claim(toy_sweep(tmp_path))], tmp_path / "out", processes=0)
    entry = done.content["claims"][0]
    assert (entry["verdict"], entry["seeds"]) == ("holds", 8)
    assert entry["runs"] == {"asked": 16, "finished": 16, "failed": 0, "causes": []}
    assert entry["criteria"][0]["statistic"] == pytest.approx(1.0035)
    record = json.loads((tmp_path / "out" / "record.json").read_text("utf-8"))
    assert record["schema"] == 1
    assert record["content"] == done.content
    back = read_record(tmp_path / "out")
    assert back.data["toy"].identical(done.data["toy"])
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out" / "runs").rglob("*.zip")}
    again = reproduce([toy_claim(toy_sweep(tmp_path))], tmp_path / "out", processes=0)
    assert again.content["claims"] == done.content["claims"]
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "out" / "runs").rglob("*.zip")}


def test_names_that_look_alike_do_not_overwrite_each_other(tmp_path):
    sweep = toy_sweep(tmp_path)
    twins = replace(
        sweep,
        measure=lambda arms: {"toy": arms["small"], "α": arms["small"], "β": arms["large"]},
    )
    one = replace(
        toy_claim(twins),
        id="toy.b",
        criteria=(Criterion("c", lambda d: d["β"].value, every_run <= 9.0),),
        controls=(
            Control("small", "s", (Criterion("c", lambda d: d["α"].value, every_run <= 0.5),)),
        ),
    )
    done = reproduce([one], tmp_path / "out", processes=0)
    back = read_record(tmp_path / "out")
    assert float(back.data["α"].value[0]) == 1.0
    assert float(back.data["β"].value[0]) == 5.0
    assert done.content["claims"][0]["command"] == "attnlab reproduce toy.b --scale quick"
    with pytest.raises(AttnlabError, match="two sweeps are named 'toy'"):
        reproduce([one, toy_claim(sweep)], tmp_path / "out", processes=0)


def test_a_record_becomes_a_section_with_its_numbers(tmp_path):
    claim = toy_claim(toy_sweep(tmp_path))
    done = reproduce([claim], tmp_path / "out", processes=0)
    (section,) = Claims(lambda: {claim.id: claim}).sections(done)
    (criterion,) = section.criteria
    assert (section.verdict, criterion.verdict, criterion.relation) == ("holds", "holds", "≤")
    assert criterion.statistic == pytest.approx(1.0035)
    assert criterion.interval is not None
    assert criterion.interval[0] < 1.0035 < criterion.interval[1]
    assert [(control.id, control.should, control.ok) for control in section.controls] == [
        ("large", "reject", True)
    ]
    assert section.facts == {"Seeds": "8", "Runs": "16 asked, 16 finished, 0 failed"}
    assert [figure.id for figure in section.figures] == ["toy.small.criteria"]


def test_a_figure_that_raises_is_replaced_by_a_notice_on_the_page(tmp_path):
    def figures(data):
        return [data["tyo"]]

    claim = replace(toy_claim(toy_sweep(tmp_path)), figures=figures)
    done = reproduce([claim], tmp_path / "out", processes=0)
    assert done.content["claims"][0]["verdict"] == "holds"
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    notice = str(escape("The figures cannot be drawn: KeyError: 'tyo' (test_claim.py, line "))
    assert notice in page
    assert "data-figure=" not in page


def test_a_mistake_in_a_measurement_is_named(tmp_path):
    sweep = toy_sweep(tmp_path)
    wrong = Criterion("c", lambda data: data["tyo"].value, every_run <= 1.0)
    claim = replace(
        toy_claim(sweep), id="toy.c", criteria=(wrong,), controls=(Control("x", "y", (wrong,)),)
    )
    with pytest.raises(
        AttnlabError,
        match=r"judging the claim 'toy.c' raises KeyError: 'tyo' \(test_claim.py, line",
    ):
        reproduce([claim], tmp_path / "out", processes=0)


def test_a_study_all_of_whose_runs_fail_is_not_run(tmp_path):
    done = reproduce(
        [toy_claim(toy_sweep(tmp_path, "raise ValueError('no luck')"))],
        tmp_path / "out",
        processes=0,
    )
    assert done.content["claims"][0]["verdict"] == "not run"
    causes = [{"cause": "ValueError: no luck", "count": 16}]
    assert done.content["claims"][0]["runs"] == {
        "asked": 16,
        "finished": 0,
        "failed": 16,
        "causes": causes,
    }
    assert not done.ok


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda out: (out / "record.json").unlink(), "has no record.json"),
        (lambda out: (out / "record.json").write_text("{}"), "is not a record of attnlab"),
        (
            lambda out: (out / "record.json").write_text('{"kind": "attnlab record", "schema": 9}'),
            "schema 9",
        ),
        (
            lambda out: (out / "data" / next((out / "data").iterdir()).name).write_bytes(
                b"PK junk"
            ),
            "checksum differs",
        ),
    ],
)
def test_a_damaged_folder_is_refused_in_words(tmp_path, damage, message):
    reproduce([toy_claim(toy_sweep(tmp_path))], tmp_path / "out", processes=0)
    damage(tmp_path / "out")
    with pytest.raises(AttnlabError, match=message):
        read_record(tmp_path / "out")


def judged(numbers, requires, **coords):
    found = xr.DataArray(
        numbers, dims="seed", coords={"seed": np.arange(len(numbers)) + 100, **coords}
    )
    return Criterion("c", lambda data: found, requires).judge({})


def test_every_verdict_says_how_many_runs_are_within_and_which_is_the_worst():
    result = judged([0.1] * 7 + [0.2] * 7 + [0.3, 0.52], mean <= 0.5)
    assert result.verdict == "holds"
    assert result.reading == "holds"
    assert result.exceptions == "15 of 16, worst seed 115: 0.52"
    record = result.record()
    assert (record["within"], record["worst"]) == (15, {"seed": 115, "value": 0.52})
    entry = claim(result.criterion).judge({})
    assert entry["exceptions"] == result.exceptions


def test_an_estimate_holds_on_average_where_a_run_lies_far_beyond():
    result = judged([*np.linspace(0.1, 0.2, 15), 0.9], mean <= 0.5)
    assert (result.verdict, result.reading) == ("holds", "holds on average")
    assert claim(result.criterion).judge({})["reading"] == "holds on average"
    within = judged([*np.linspace(0.1, 0.2, 15), 0.9], every_run <= 0.5)
    assert (within.verdict, within.value) == ("fails", 0.9)


@pytest.mark.parametrize(
    ("requires", "worst"),
    [(every_run <= 0.5, 0.7), (every_run >= 0.5, 0.2), (every_run.between(0.35, 0.6), 0.2)],
)
def test_every_run_is_judged_by_its_worst_entry(requires, worst):
    found = xr.DataArray([[0.4, 0.7], [0.2, 0.5]], dims=("seed", "word"))
    result = Criterion("c", lambda data: found, requires).judge({})
    assert (result.verdict, result.value) == ("fails", worst)


def test_few_runs_say_how_many_may_violate():
    assert (
        "4 runs: up to 53\u00a0% of runs may violate"
        in judged([0.1] * 4, every_run <= 0.5).exceptions
    )
    assert "up to 53" in judged([0.1] * 4, pooled_p95 <= 0.5).exceptions


def test_a_share_says_how_many_runs_its_threshold_needs():
    result = judged([1.0] * 16, share >= 0.95)
    assert result.verdict == "inconclusive"
    assert result.reason == "16 runs prove only ≥ 0.79; ≥ 0.95 needs 72 without an exception"
    assert judged([1.0] * 72, share >= 0.95).verdict == "holds"
    few = judged([0.0] * 8, share <= 0.25)
    assert few.reason == "8 runs prove only ≤ 0.37; ≤ 0.25 needs 13 without an exception"
    with pytest.raises(AttnlabError, match="between 0 and 1"):
        judged([2.0] * 16, share >= 0.95)


def test_a_problem_with_several_starts_counts_by_its_own_share():
    starts = np.ones((20, 9))
    starts[0, :3] = 0.0
    found = xr.DataArray(starts, dims=("seed", "start"))
    result = Criterion("c", lambda data: found, share >= 0.5).judge({})
    assert result.value == pytest.approx((19 + 6 / 9) / 20)
    assert result.exceptions == "19.7 of 20, worst seed 0: 0.667"


def test_runs_that_are_missing_count_as_unknown_in_a_share():
    whole = judged([1.0] * 20, share >= 0.75)
    gaps = judged([1.0] * 16 + [np.nan] * 4, share >= 0.75)
    assert (whole.verdict, gaps.verdict) == ("holds", "inconclusive")
    assert gaps.value == 1.0
    assert gaps.interval is not None
    assert gaps.interval[0] < 0.6
    assert "16 of 20 runs usable" in gaps.exceptions


def test_seeds_that_were_never_asked_for_are_not_missing():
    asked = ("seed", [True] * 8 + [False] * 24)
    result = judged([*NEAR[:8], *[np.nan] * 24], mean <= 1.2, asked=asked)
    assert (result.runs.asked, result.runs.usable) == (8, 8)
    assert "usable" not in result.exceptions


def test_equal_values_are_not_estimated():
    result = judged([1.0] * 16, mean >= 0.95)
    assert (result.verdict, result.interval) == ("inconclusive", None)
    assert "all 16 values are equal: only 'every run' or a share" in result.reason


def test_an_undecided_estimate_says_how_many_more_runs_would_decide():
    result = judged(NEAR, mean <= 1.01)
    assert result.verdict == "inconclusive"
    assert re.search(r"about \d+ more runs would decide, with 80 % power", result.reason)


def test_the_runs_of_a_given_interval_are_counted_by_their_own_values():
    def measure(data):
        found = xr.DataArray([5.0, 4.0, 7.0], dims="end")
        own = {0: 5.0, 1: 2.0, 2: math.inf, 3: math.nan}
        return found.assign_attrs(kind="exact", seeds=3, asked=4, by_seed=own)

    result = Criterion("c", measure, given_interval >= 3.5).judge({})
    assert result.exceptions == "2 of 3, worst seed 1: 2; 3 of 4 runs usable"
    assert result.reading == "holds"
    json.dumps(result.record(), allow_nan=False)


def test_failed_runs_are_asked_for_and_not_usable(tmp_path):
    body = (
        "if settings.size == 1.0 and settings.seed == 3:\n        raise ValueError('no luck')\n"
        "    return xr.Dataset({'value': settings.size + 0.001 * settings.seed})"
    )
    done = reproduce(
        [toy_claim(toy_sweep(tmp_path, body))], tmp_path / "out", seeds=12, processes=0
    )
    entry = done.content["claims"][0]
    assert entry["runs"]["causes"] == [{"cause": "ValueError: no luck", "count": 1}]
    assert (entry["criteria"][0]["asked"], entry["criteria"][0]["usable"]) == (12, 11)
    assert 3 not in entry["criteria"][0]["seeds"]
    assert "11 of 12 runs usable" in entry["exceptions"]


def test_each_look_is_recorded_and_the_same_look_only_once(tmp_path):
    asked = [toy_claim(toy_sweep(tmp_path))]
    for seeds in (4, 4, 8):
        done = reproduce(asked, tmp_path / "out", seeds=seeds, processes=0)
    looks = [(look["seeds"], look["verdict"]) for look in done.content["claims"][0]["looks"]]
    assert looks == [(4, "inconclusive"), (8, "holds")]
    assert read_record(tmp_path / "out").content["looks"] == done.content["looks"]


def test_fresh_seeds_are_other_runs_beside_those_that_were_seen(tmp_path):
    asked = [toy_claim(toy_sweep(tmp_path))]
    for first in (0, 1000):
        done = reproduce(asked, tmp_path / "out", seeds=8, first_seed=first, processes=0)
    entry = done.content["claims"][0]
    assert entry["criteria"][0]["seeds"] == [*range(1000, 1008)]
    assert [look["first_seed"] for look in entry["looks"]] == [0, 1000]
    assert entry["command"].endswith("--seeds 8 --first-seed 1000")
    assert len(list((tmp_path / "out").rglob("plan.json"))) == 2


def test_seeds_are_added_until_a_claim_is_decided(tmp_path):
    # The mean of seeds 0 … n − 1 of ±1 in turn is near 0; its interval shrinks below 0.6 between 16
    # and 32 seeds.
    body = "return xr.Dataset({'value': settings.size * (0.0 if settings.size < 2 else 1.0) + (-1.0) ** settings.seed})"
    one = toy_claim(toy_sweep(tmp_path, body))
    criterion = replace(one.criteria[0], requires=mean <= 0.6)
    done = reproduce(
        [replace(one, criteria=(criterion,))], tmp_path / "out", until="decided", processes=0
    )
    looks = done.content["claims"][0]["looks"]
    assert [look["seeds"] for look in looks] == [8, 16, 32]
    assert [look["verdict"] for look in looks] == ["inconclusive", "inconclusive", "holds"]
    assert [round(1 - look["confidence"], 4) for look in looks] == [0.0097, 0.0083, 0.013]
    assert done.content["claims"][0]["command"].endswith("--until decided")
    with pytest.raises(AttnlabError, match="give one of the two"):
        reproduce([one], tmp_path / "out", until="decided", seeds=8, processes=0)


def test_all_looks_together_err_in_at_most_one_of_twenty_cases():
    """A mean that lies exactly at the threshold is called either way in at most 5 % of sequences of
    looks.
    """
    rng, wrong, repeats = np.random.default_rng(0), 0, 2000
    for _ in range(repeats):
        runs = rng.normal(size=64)
        for count, confidence in ClaimSettings(until="decided").looks:
            found = interval_of(runs[:count], "mean", confidence=confidence)
            if not found.low <= 0 <= found.high:
                wrong += 1
                break
    assert wrong / repeats <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / repeats)
    assert wrong > 0


def test_every_claim_is_one_line_and_details_are_asked_for(tmp_path):
    claim = toy_claim(toy_sweep(tmp_path))
    claims = Claims(lambda: {claim.id: claim})
    done = reproduce([claim], tmp_path / "out", processes=0)
    table, *_ = claims.shown(done)
    assert isinstance(table, TextTable)
    assert table.rows == (("toy.small", "holds", "1 [1, 1.01]", "≤ 2", "8/8", "1/1", "value"),)
    details, *_ = claims.details(done)
    assert isinstance(details, TextTable)
    assert [row[:3] for row in details.rows[:1]] == [
        ("toy.small", "holds", "value\n8 of 8, worst seed 7: 1.01")
    ]
    detailed = claims.bound(ClaimSettings(details=True))
    assert next(iter(detailed.shown(done))) == details


def test_a_verdict_is_reported_and_drawn_as_soon_as_its_sweeps_are_done(tmp_path, monkeypatch):
    monkeypatch.setattr(_experiment, "_FIRST_DRAFT", 0.0)
    first = toy_claim(toy_sweep(tmp_path))
    later = replace(
        toy_sweep(tmp_path), name="second", measure=lambda arms: {"toy2": arms["small"]}
    )
    second = replace(
        first,
        id="toy.second",
        sweeps=(later,),
        criteria=(Criterion("value", lambda data: data["toy2"].value, mean <= 2.0),),
        controls=(
            Control("c", "s", (Criterion("value", lambda data: data["toy2"].value, mean <= 0.5),)),
        ),
    )
    page, seen = tmp_path / "out" / "report.html", []

    def on_stage(message):
        seen.append((message, page.read_text("utf-8") if page.exists() else ""))

    reproduce([first, second], tmp_path / "out", processes=0, on_stage=on_stage)
    assert [message for message, _ in seen] == [
        "sweep 1 of 2: toy",
        "  toy.small holds: value 1 [1, 1.01] (≤ 2)",
        "sweep 2 of 2: second",
        "  toy.second holds: value 1 [1, 1.01] (≤ 2)",
    ]
    draft = seen[2][1]
    assert "1 of 2 claims are still to be judged" in draft
    assert 'http-equiv="refresh"' in draft
    assert 'id="toy.small"' in draft
    final = page.read_text("utf-8")
    assert "still to be judged" not in final
    assert 'http-equiv="refresh"' not in final


def test_a_measurement_that_asks_no_seed_decides_nothing():
    nothing = xr.DataArray(np.zeros((0, 3)), dims=("seed", "word"))
    for requires in (share >= 0.5, every_run <= 1.0, mean <= 1.0):
        found = Criterion("none", lambda data: nothing, requires).judge({})
        assert (found.verdict, found.reason) == ("inconclusive", "nothing could be measured")


def test_cautions_stand_under_the_verdict_and_do_not_change_it(tmp_path, capsys):
    plain = toy_claim(toy_sweep(tmp_path))
    words = "tuning chose the end of its grid: 3 of 8 fits, <step size> 0.1"
    careful = replace(plain, id="toy.careful", cautions=lambda data: [words])
    chosen = {one.id: one for one in (plain, careful)}
    told: list[str] = []
    done = reproduce(list(chosen.values()), tmp_path / "out", processes=0, on_stage=told.append)
    first, second = done.content["claims"]
    assert (first["verdict"], first["cautions"]) == (second["verdict"], []) == ("holds", [])
    assert second["cautions"] == [words]
    assert f"    caution: {words}" in told

    show(Claims(lambda: chosen).shown(done))
    lines = capsys.readouterr().out.splitlines()
    place = next(k for k, line in enumerate(lines) if "toy.careful" in line)
    assert lines[place + 1] == f"    caution: {words}"
    assert sum("caution" in line for line in lines) == 1
    details = next(iter(Claims(lambda: chosen).details(done)))
    assert isinstance(details, TextTable)
    assert ("", "", f"caution: {words}", "", "") in details.rows
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert f'<p class="caution">Caution: {escape(words)}</p>' in page
    assert page.count('class="caution"') == 1


def test_a_claim_that_did_not_run_has_no_caution():
    def cautions(data):
        raise AssertionError("there are no data")

    assert (
        claim(Criterion("c", values([0.1]), every_run <= 0.5), cautions=cautions).judge(None)[
            "cautions"
        ]
        == []
    )
