"""Claims about minima, from points of which one small search gives all but what a test sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from attnlab.papers import claims
from attnlab.papers.liu2021.point_runs import find_points
from attnlab.papers.liu2021.point_settings import FLATNESS, PointSettings
from attnlab.papers.liu2021.point_sweeps import SIZES, Flatness, Minima, flatness, minima
from attnlab.papers.liu2021.stationary_points import Saddles, counterexample, saddles
from attnlab.report import Figure
from attnlab.sweeps import RunContext

SEEDS, STARTS = 8, 3
MODELS = ("known-attention", "known-weights-plain", "self-attention", "baseline", "shuffled labels")
WITH_SADDLES = ("known-attention", "self-attention", "multi-layer", "baseline")
# Of each model its curvature, and how many parameters are live.
FLAT = {
    "known-attention": (0.2, 12),
    "narrow-baseline": (0.9, 12),
    "baseline": (1.0, 36),
    "self-attention": (0.9, 35),
    "words-baseline": (1.0, 35),
}
KINDS = np.resize(np.array(["minimum", "saddle", "not stationary", "saddle"]), (SEEDS, STARTS))
Data = dict[str, xr.Dataset]


class Points:
    """Makes what an arm's runs found: real points, with some of their columns replaced."""

    def __init__(self):
        settings = PointSettings(
            model="known-attention",
            samples=16,
            starts=STARTS,
            l2=1e-2,
            test_points=50,
            saddles=True,
            flat="all",
        )
        found = find_points(settings, RunContext(root_seed=0, index=0, hash="0" * 64))
        self.found = found.expand_dims(seed=np.arange(SEEDS))
        self.rng = np.random.default_rng(0)

    def __call__(self, level: float, **columns: Any) -> xr.Dataset:
        """Errors near ``level`` at minima of which two are equal, unless ``columns`` say otherwise."""
        shape = (SEEDS, STARTS)
        given = {
            "kind": "minimum",
            "error": level * np.exp(0.1 * self.rng.standard_normal(shape)),
            "value": 1.0 + self.rng.random(shape),
            "loss": 0.1,
            "group": np.arange(STARTS) // 2,
        } | columns
        assert set(given) <= set(self.found)
        values = {name: np.broadcast_to(value, shape) for name, value in given.items()}
        return self.found.assign({k: (("seed", "start"), v) for k, v in values.items()})


@pytest.fixture(scope="module")
def data() -> Data:
    points = Points()
    levels = {"known-attention": 0.04, "known-weights-plain": 0.06, "shuffled labels": 2.0}
    arms = {
        f"{model}/{n}": points(levels.get(model, 0.5) * (SIZES[0] / n) ** 0.75)
        for model in MODELS
        for n in SIZES
    }
    # At paper scale some arms have fewer problems: the rest is nan.
    arms |= {f"multi-layer/{n}": points(0.4).isel(seed=slice(4)) for n in SIZES}
    of_any_kind = {model: points(1.0, kind=KINDS) for model in WITH_SADDLES}
    flat = {}
    for model, (scale, live) in FLAT.items():
        measures: dict[str, Any] = {f"flat_{name}": scale for name in FLATNESS}
        for l2 in (1e-3, 2e-3):
            found = points(0.1, loss=100 * l2, **measures)
            flat[f"{model}/{l2}"] = found.assign(live=found.live * 0 + live)
    return minima.measured(arms) | saddles.measured(of_any_kind) | flatness.measured(flat)


def drawn(name: str, data: Data) -> dict[str, Any]:
    draw = claims()[f"liu2021.{name}"].figures
    assert draw is not None
    return {figure.id: figure for figure in draw(data)}


def tones(figure: Figure) -> dict[str, tuple[str, ...]]:
    assert figure.grid is not None
    return dict(zip(figure.grid.rows, figure.grid.tones, strict=True))


def test_minima_are_measured_per_problem(data):
    good = Minima.good(data)
    assert dict(good.sizes) == {"model": 6, "samples": 2, "seed": SEEDS}
    assert (good.sel(model="known-attention") == 1).all()
    assert (good.sel(model="baseline") == 0).all()
    assert (Minima.certified(data).sel(model=list(MODELS)) == 1).all()
    assert (Minima.distinct(data, model="baseline") == 2).all()
    fall = Minima.fall(data, model="known-weights-plain").median()
    np.testing.assert_allclose(fall, -0.75, atol=0.1)
    assert int(good.sel(model="multi-layer", samples=128).notnull().sum()) == 4


def test_a_search_that_did_not_end_counts_for_nothing(data):
    error, saddle_error, certified = (
        variable(data, model="known-attention")
        for variable in (Saddles.error, Saddles.saddle_error, Saddles.certified)
    )
    np.testing.assert_array_equal(error.isnull(), KINDS == "not stationary")
    np.testing.assert_array_equal(saddle_error.notnull(), KINDS == "saddle")
    np.testing.assert_allclose(certified, (KINDS != "not stationary").mean(axis=1))


def test_a_problem_counts_only_if_all_its_minima_are_good():
    points = Points()
    errors = np.full((SEEDS, STARTS), 0.04)
    errors[0, 1] = 0.5  # one bad minimum, and one bad point that is none
    errors[1, 2] = 0.5
    kinds = np.full((SEEDS, STARTS), "minimum", object)
    kinds[1, 2], kinds[2] = "saddle", "not stationary"
    values = np.arange(SEEDS * STARTS, dtype=float).reshape(SEEDS, STARTS)
    arm = points(1.0, error=errors, kind=kinds, value=values[:, ::-1])
    arms = {f"{model}/{n}": arm for model in MODELS for n in SIZES}
    found = minima.measured(arms)
    every = Minima.every(found, model="known-attention", samples=128).values
    np.testing.assert_array_equal(every, [0, 1, np.nan, 1, 1, 1, 1, 1])
    lowest = Minima.lowest(found, model="known-attention", samples=128).values
    np.testing.assert_allclose(lowest, [0.04, 0.04, np.nan, *[0.04] * 5])
    np.testing.assert_allclose(Minima.good(found, model="baseline", samples=512)[:2], [2 / 3, 1])


def of_problems(good: int, problems: int) -> dict[str, Any]:
    """What is said of the gate if all minima are good in so many of its problems."""
    share = xr.DataArray(np.arange(problems) < good, {"seed": range(problems)}).astype(float)
    others = xr.zeros_like(share)
    every = xr.concat([share, others], xr.DataArray(["known-attention", "baseline"], dims="model"))
    every = every.assign_coords(model=["known-attention", "baseline"])
    good_ones = (every["model"] == "known-attention") * xr.ones_like(every)
    table = xr.Dataset(
        {Minima.every: every, Minima.good: good_ones, Minima.certified: xr.ones_like(every)}
    )
    table = table.expand_dims(samples=[128]).reindex(
        model=["known-attention", "baseline", "known-weights-plain"], fill_value=1.0
    )
    return claims()["liu2021.local_minima_known"].judge({Minima.label: table})


@pytest.mark.parametrize(
    ("good", "problems", "verdict"),
    [(36, 36, "holds"), (35, 35, "inconclusive"), (108, 112, "holds"), (60, 80, "fails")],
)
def test_so_many_problems_decide_whether_every_minimum_is_good(good, problems, verdict):
    entry = of_problems(good, problems)
    assert entry["criteria"][2]["verdict"] == verdict
    # A share of 0.95 of the minima takes 72 problems without an exception.
    assert entry["criteria"][0]["verdict"] == ("holds" if problems >= 72 else "inconclusive")
    assert entry["controls"][0]["ok"]


def test_flatness_is_compared_per_live_parameter_and_at_equal_penalties(data):
    for model, other in {
        "known-attention": "baseline",
        "narrow-baseline": "baseline",
        "self-attention": "words-baseline",
    }.items():
        (own, live), (base, of_base) = FLAT[model], FLAT[other]
        expected = (own / live) / (base / of_base)
        np.testing.assert_allclose(Flatness.each(data, model=model), expected)
        np.testing.assert_allclose(Flatness.equal(data, model=model), expected)
        np.testing.assert_allclose(Flatness.live(data, model=model), live)


def test_only_equal_training_errors_are_compared(data):
    # Two penalties whose training errors differ twofold: of four pairs two match.
    assert (Flatness.pairs(data) == 2).all()
    np.testing.assert_allclose(Flatness.penalty(data), 1)
    for model, ratio in {"known-attention": 0.2, "self-attention": 0.9}.items():
        np.testing.assert_allclose(Flatness.ratio(data, model=model), ratio)


def test_one_certified_bad_point_refutes_a_universal_statement(data):
    claim = claims()["liu2021.stationary_points"]
    table = Saddles.of(data)
    entry = claim.judge(data)
    assert entry["verdict"] == claim.expected == "fails"
    good = table.assign({Saddles.error: 0.01 * table[Saddles.error]})
    assert claim.judge(data | {Saddles.label: good})["verdict"] == "holds"
    assert counterexample(good, "known-attention") is None
    errors = good[Saddles.error].copy()
    errors.loc[{"model": "known-attention", "seed": 3, "start": 0}] = 0.2
    one = table.assign({Saddles.error: errors})
    entry = claim.judge(data | {Saddles.label: one})
    assert [c["verdict"] for c in entry["criteria"]] == ["fails", "holds", "holds"]
    point = counterexample(one, "known-attention")
    assert point is not None
    assert point["point"].item() == (3, 0)
    (row,) = drawn("stationary_points", data | {Saddles.label: one})["counterexamples"].grid.cells
    assert row[0] == "0.2"


def test_a_bad_lowest_minimum_is_noticed(data):
    table = Minima.of(data)
    bad = table.assign({Minima.lowest: table[Minima.lowest] + 1})
    entry = claims()["liu2021.stationary_points"].judge(data | {Minima.label: bad})
    assert entry["verdict"] == "inconclusive"
    assert not entry["controls"][0]["ok"]


def test_thresholds_mark_what_is_asked(data):
    shares = drawn("local_minima_known", data)["minima_shares"]
    # 8 problems prove no more than 0.63
    assert tones(shares)["known gate"] == ("mixed", "", "", "")
    assert "8 of 8; asked: ≥ 0.9" in shares.grid.cells[0][0]
    exponents = drawn("error_falls_with_n", data)["fall_exponents"]
    assert tones(exponents)["known weights, no w_V"] == ("good",)
    assert tones(exponents)["baseline"] == ("",)


def test_dots_are_certified_points_only(data):
    rows = drawn("stationary_points", data)["saddle_errors"].table["row"]
    assert rows.count("saddles of the known gate") == int((KINDS == "saddle").sum())
    errors = drawn("local_minima_known", data)["minima_errors_small"]
    assert errors.table["row"].count("two learned layers") == 4 * STARTS


def test_half_and_equal_flatness_are_drawn(data):
    shapes = drawn("flatness_known", data)["flat_known"].plotly["layout"]["shapes"]
    assert {shape["x0"] for shape in shapes} == {0.5, 1.0}


def test_nothing_found_is_drawn_as_nothing(data):
    saddle_points, ratios = Saddles.of(data), Flatness.of(data)
    learned = ratios.model == "self-attention"
    none = data | {
        Saddles.label: saddle_points.assign({Saddles.saddle_error: Saddles.error(data) * np.nan}),
        Flatness.label: ratios.assign(
            {
                name: ratios[name].where(~learned)
                for name in (Flatness.ratio, Flatness.each, Flatness.equal)
            }
        ),
    }
    assert set(drawn("stationary_points", none)["saddle_errors"].table["row"]) == {
        "lowest minima of the known gate",
        "minima of the known gate",
    }
    figures = drawn("flatness_learned", none)
    assert set(figures["flat_learned"].table["is"]) == {"unknown"}
    assert all("known gate" in row for row in figures["flat_seeds"].table["row"])


def test_problems_that_were_not_asked_for_are_not_missing(data):
    few = Minima.of(data).copy()
    asked = few["asked"].copy()
    asked.loc[{"model": "known-attention", "seed": [6, 7]}] = False
    falls = few[Minima.fall].where(asked.all("samples"))
    few = few.assign({Minima.fall: falls}).assign_coords(asked=asked)
    gate, _ = claims()["liu2021.error_falls_with_n"].judge({Minima.label: few})["criteria"]
    assert (gate["usable"], gate["asked"]) == (6, 6)


def test_paper_scale_adds_two_layers_and_classification():
    grid = minima.grid("paper", 2)
    assert grid.arms["baseline, labels/512"] == {
        "model": "baseline",
        "classes": 2,
        "samples": 512,
        "drawn": 512,
    }
    assert isinstance(grid.seeds, dict)
    assert (grid.seeds["multi-layer/128"], grid.seeds["baseline/128"]) == (2, 6)
    assert grid.seeds["known-attention/128"] == 28


def test_quick_scale_has_enough_problems_to_decide():
    seeds = minima.grid("quick", 8).seeds
    assert isinstance(seeds, dict)
    assert seeds["known-attention/128"] == seeds["known-attention/512"] >= 72
