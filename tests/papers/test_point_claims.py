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
from attnlab.papers.liu2021.stationary_points import Saddles, saddles
from attnlab.report import Figure
from attnlab.sweeps import RunContext

SEEDS, STARTS = 8, 3
MODELS = ("known-attention", "known-weights-plain", "self-attention", "baseline", "shuffled labels")
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
    of_any_kind = {model: points(1.0, kind=KINDS) for model in ("known-attention", "baseline")}
    flat = {}
    for model, scale in {
        "known-attention": 0.2,
        "baseline": 1.0,
        "self-attention": 0.9,
        "words-baseline": 1.0,
    }.items():
        measures: dict[str, Any] = {f"flat_{name}": scale for name in FLATNESS}
        for l2 in (1e-3, 2e-3):
            flat[f"{model}/{l2}"] = points(0.1, loss=100 * l2, **measures)
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


def test_only_equal_training_errors_are_compared(data):
    # Two penalties whose training errors differ twofold: of four pairs two match. The control has
    # five other seeds.
    assert (Flatness.pairs(data, model=["known-attention", "self-attention"]) == 2).all()
    assert (Flatness.pairs(data, model="baseline") == 5 * 2).all()
    for model, ratio in {"known-attention": 0.2, "baseline": 1.0, "self-attention": 0.9}.items():
        np.testing.assert_allclose(Flatness.ratio(data, model=model), ratio)


def test_thresholds_mark_what_is_asked(data):
    shares = drawn("local_minima_known", data)["minima_shares"]
    # 8 problems prove no more than 0.63
    assert tones(shares)["known gate"] == ("mixed", "")
    assert "asked: ≥ 0.95" in shares.grid.cells[0][0]
    exponents = drawn("error_falls_with_n", data)["fall_exponents"]
    assert tones(exponents)["known weights, no w_V"] == ("good",)
    assert tones(exponents)["baseline"] == ("",)


def test_dots_are_certified_points_only(data):
    rows = drawn("stationary_points", data)["saddle_errors"].table["row"]
    assert rows.count("saddles of the known gate") == int((KINDS == "saddle").sum())
    errors = drawn("local_minima_known", data)["minima_errors_small"]
    assert errors.table["row"].count("multi-layer") == 4 * STARTS


def test_half_and_equal_flatness_are_drawn(data):
    shapes = drawn("flatness_known", data)["flat_known"].plotly["layout"]["shapes"]
    assert {shape["x0"] for shape in shapes} == {0.5, 1.0}


def test_nothing_found_is_drawn_as_nothing(data):
    saddle_points, ratios = Saddles.of(data), Flatness.of(data)
    learned = ratios.model == "self-attention"
    none = data | {
        Saddles.label: saddle_points.assign({Saddles.saddle_error: Saddles.error(data) * np.nan}),
        Flatness.label: ratios.assign({Flatness.ratio: Flatness.ratio(data).where(~learned)}),
    }
    assert set(drawn("stationary_points", none)["saddle_errors"].table["row"]) == {
        "minima of the known gate"
    }
    figures = drawn("flatness_learned", none)
    assert set(figures["flat_learned"].table["is"]) == {"unknown"}
    assert all("known gate" in row for row in figures["flat_seeds"].table["row"])


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
