"""The guidelines: when a variant has settled, ratios at every number of steps, the map; each claim
can hold, fail and stay open.
"""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnlab.papers import claims
from attnlab.papers.liu2021 import prior_helps, sparse_hurts_dense
from attnlab.papers.liu2021.variant_figures import steps_figures
from attnlab.papers.liu2021.variant_sweeps import (
    DenseTeacher,
    HardTeacher,
    compare_steps,
    ladders,
)

CLAIMS = claims()


def even_runs(error: float, seeds: int = 8, spread: float = 0.1) -> xr.Dataset:
    luck = np.exp(spread * np.random.default_rng(0).normal(size=seeds))
    luck = luck / np.median(luck)
    columns = {"error": error * luck, "entropy": luck, "attention": luck}
    columns["weight_decay"] = np.resize([0.0, 0.1, 0.1, 0.1], seeds)
    return xr.Dataset(
        {name: ("seed", values) for name, values in columns.items()},
        {"seed": range(100, 100 + seeds)},
    )


def ladder(falls: dict[str, tuple[float, ...]], seeds: int = 8) -> xr.Dataset:
    arms = {
        (v, 1500 * 4**k): even_runs(e, seeds)
        for v, errors in falls.items()
        for k, e in enumerate(errors)
    }
    return compare_steps(arms, list(falls))


def test_a_variant_has_settled_where_four_times_the_steps_hardly_move_it():
    found = ladder(
        {"softmax": (0.2, 0.1, 0.097), "cool": (0.1, 0.09, 0.05), "quick": (0.05, 0.049, 0.02)}
    )
    np.testing.assert_allclose(
        found.moved.sel(variant="softmax").values[:2], [0.5, 0.03], rtol=1e-6
    )
    assert np.isnan(found.moved.sel(steps=24_000)).all()
    assert str(found.converged_kind.sel(variant="cool").values) == (
        "not known: cool has not settled, from 6000 to 24000 steps its median error moves by 44 %"
    )
    assert np.isinf(float(found.converged_high.sel(variant="cool")))
    # "quick" settles after 6000 steps, softmax after 24 000: each is taken where it has.
    assert float(found.converged.sel(variant="quick")) == pytest.approx(0.049 / 0.097)
    assert str(found.converged_kind.sel(variant="quick").values) == "exact"


def test_ratios_are_of_equal_steps_or_of_four_times_as_many():
    found = ladder({"softmax": (0.2, 0.1), "cool": (0.1, 0.05)})
    assert float(found.ratio.sel(variant="cool", steps=1500)) == pytest.approx(0.5)
    assert float(found.longer.sel(variant="cool", steps=1500)) == pytest.approx(1.0)
    assert str(found.longer_kind.sel(variant="cool", steps=6000).values) == "not run"
    low, high = (
        float(found[f"ratio_{end}"].sel(variant="cool", steps=1500)) for end in ("low", "high")
    )
    assert low <= 0.5 <= high
    few = ladder({"softmax": (0.2, 0.1), "cool": (0.1, 0.05)}, seeds=4)
    assert "an interval needs at least 8" in str(
        few.ratio_kind.sel(variant="cool", steps=1500).values
    )


def test_the_table_says_how_often_tuning_chose_the_end_of_its_grid():
    found = ladder({"softmax": (0.2, 0.1), "softmax:0.25": (0.1, 0.05)})
    _, table = steps_figures(found, "x", "here")
    assert table.grid is not None
    assert table.grid.columns[-1] == "weight decay 0.1 chosen"
    assert [row[-1] for row in table.grid.cells] == ["75 %"] * 4


def test_an_arm_that_was_not_run_is_no_number():
    arms = {
        ("softmax", 1500): even_runs(0.2),
        ("softmax", 6000): even_runs(0.2),
        ("top1", 1500): even_runs(0.9),
    }
    found = compare_steps(arms, ["softmax", "top1"])
    assert str(found.ratio_kind.sel(variant="top1", steps=6000).values) == "not run"
    assert float(found.ratio.sel(variant="top1", steps=1500)) == pytest.approx(4.5)
    assert "not run with more steps" in str(found.converged_kind.sel(variant="top1").values)


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_the_plans_ask_for_paired_seeds_that_the_protocol_has_not_seen(scale):
    for sweep in (ladders, prior_helps.prior, sparse_hurts_dense.sparsity_map):
        plan = sweep.plan(scale, 8)
        seeds: dict[str, list[int]] = {}
        for run in plan.runs:
            seeds.setdefault(run.settings["arm"], []).append(run.settings["seed"])
        assert len({tuple(each) for each in seeds.values()}) == 1
        assert min(next(iter(seeds.values()))) == 100


def runs(error: float, number: int) -> xr.Dataset:
    """Eight seeds whose luck is nearly the same whatever is run."""
    shared, own = np.random.default_rng(0), np.random.default_rng(number)
    luck = np.exp(0.1 * shared.normal(size=8) + 0.01 * own.normal(size=8))
    columns = dict.fromkeys(
        ("error", "entropy", "attention", "weight_decay"), ("seed", error * luck)
    )
    return xr.Dataset(columns, {"seed": range(100, 108)})


def map_of(factor: float) -> xr.Dataset:
    """The map where sparsemax has factor · relevant · (1 + noise) times the error of softmax."""
    arms = {}
    for number, run in enumerate(sparse_hurts_dense.sparsity_map.plan("quick", 8).runs):
        s = run.settings
        error = 0.1 if s["variant"] == "softmax" else factor * 0.1 * s["relevant"]
        error *= 1 if s["variant"] == "softmax" else 1 + s["noise_std"]
        arms[s["arm"]] = runs(error, number).expand_dims(size=[512])
    return sparse_hurts_dense.sparsity_map.measured(arms)[sparse_hurts_dense.SparsityMap.label]


def test_the_map_has_every_cell_and_its_own_ratio():
    found = map_of(1.0)
    expected = found.relevant * (1 + found.noise)
    np.testing.assert_allclose(found.ratio.sel(variant="sparsemax"), expected, rtol=0.02)
    assert bool((found.ratio_low <= found.ratio).all())


def curve(factor: float, spread: float = 0.05) -> xr.Dataset:
    """Errors factor · 64/n, with a luck of each seed that is the same whatever the factor."""
    sizes = np.array([64, 128, 256, 512])
    luck = np.exp(spread * np.random.default_rng(0).normal(size=(8, 4)))
    return xr.Dataset(
        {"error": (("seed", "size"), factor * 64 / sizes * luck)},
        {"seed": range(8), "size": sizes},
    )


def test_a_prior_that_halves_the_error_saves_samples():
    arms = {
        "softmax": curve(2.0),
        "softmax+prior:1": curve(1.0),
        "softmax+wrong-prior:1": curve(8.0),
    }
    table = prior_helps.prior.measure(arms)[prior_helps.Prior.label]
    right, wrong = (
        table.sel(student=name, task="hard")
        for name in ("softmax+prior:1", "softmax+wrong-prior:1")
    )
    assert float(right.ratio) == pytest.approx(2, rel=0.1)
    assert str(wrong.needed_kind.values) == "not reached"


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
    return {HardTeacher.label: teacher(**(falls | changed))}


def test_a_gain_that_more_steps_bring_too_fails():
    assert verdict("liu2021.sparse_helps_hard", hard()) == "fails"
    assert CLAIMS["liu2021.sparse_helps_hard"].expected == "fails"


def test_a_gain_that_more_steps_do_not_bring_holds():
    entry = CLAIMS["liu2021.sparse_helps_hard"].judge(hard(cool=(0.04, 0.04, 0.04)))
    assert entry["verdict"] == "holds"
    assert all(control["ok"] for control in entry["controls"])


def test_without_a_gain_at_1500_steps_the_comparison_sees_nothing():
    entry = CLAIMS["liu2021.sparse_helps_hard"].judge(hard(cool=(0.2, 0.2, 0.2)))
    assert entry["verdict"] == "inconclusive"
    assert "'1500 steps'" in entry["reason"]


def test_a_high_temperature_with_the_same_gain_is_noticed():
    entry = CLAIMS["liu2021.sparse_helps_hard"].judge(hard(hot=(0.1, 0.1, 0.1)))
    assert [c["ok"] for c in entry["controls"]] == [True, False]


@pytest.mark.parametrize(
    ("cool", "top", "expected"),
    [(0.1, 5.0, "fails"), (0.3, 5.0, "holds"), (0.1, 0.1, "inconclusive")],
)
def test_sparse_attention_on_a_dense_teacher(cool, top, expected):
    data = {
        DenseTeacher.label: teacher(
            softmax=(0.1, 0.1, 0.1),
            cool=(9.0, cool, cool),
            sparse=(9.0, cool, cool),
            top=(top,),
        )
    }
    assert verdict("liu2021.sparse_hurts_dense", data) == expected


def test_the_dense_teacher_is_met_from_a_start_that_is_not_the_answer():
    for run in ladders.plan("quick", 1).runs:
        hard = run.settings["relevant"] == 1
        assert run.settings["query_std"] == (0.1 if hard else 1.0)


def test_a_high_temperature_can_hold_and_fail_with_either_number_of_steps():
    def judged(**changed: tuple[float, ...]) -> tuple[str, list[str]]:
        entry = CLAIMS["liu2021.high_temperature_hurts"].judge(hard(**changed))
        return entry["verdict"], [c["verdict"] for c in entry["criteria"]]

    assert judged() == ("holds", ["holds", "holds"])
    assert judged(hot=(0.4, 0.1, 0.1)) == ("fails", ["holds", "fails"])


def test_a_prior_must_help_and_a_wrong_one_must_not():
    def judged(right: float, wrong: float, spread: float = 0.05) -> str:
        """What is said of a prior with so many times the error of softmax, and of a wrong one."""
        factors = {"softmax": 2.0, "softmax+prior:1": right, "softmax+wrong-prior:1": wrong}
        arms = {name: curve(factor, spread) for name, factor in factors.items()}
        return CLAIMS["liu2021.prior_helps"].judge(prior_helps.prior.measure(arms))["verdict"]

    assert judged(1.0, 3.0) == "holds"
    assert judged(2.0, 3.0) == "fails"
    assert judged(1.5, 3.0, spread=1.0) == "inconclusive"
    assert judged(1.0, 1.0) == "inconclusive"


def test_the_map_is_one_drawing_for_each_variant_and_marks_what_is_sure():
    figure = sparse_hurts_dense.map_figure(map_of(0.5))
    assert figure.choices == ()  # at quick scale there is one variant besides softmax
    heat = figure.plotly["data"][0]
    assert heat["x"] == ["1 of 16", "4 of 16", "16 of 16"]
    assert heat["z"][0] == pytest.approx([-1, 1, 2], abs=0.03)  # log₂ of the ratio, cut off at 4
    assert heat["text"][0][0].startswith("<b>0.5")
