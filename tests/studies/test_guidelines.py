"""The sweeps of the guidelines: when a variant has settled, ratios at every number of steps, the
map, the bound.
"""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from attnlab import AttnlabError
from attnlab.models import entropy_bound
from attnlab.studies import _compare_entropy as entropy
from attnlab.studies import _guidelines as guidelines
from attnlab.studies._guidelines import compare_steps
from attnlab.sweeps import RunContext


def runs(error: float, seeds: int = 8, spread: float = 0.1) -> xr.Dataset:
    luck = np.exp(spread * np.random.default_rng(0).normal(size=seeds))
    luck = luck / np.median(luck)
    columns = {"error": error * luck, "entropy": luck, "attention": luck}
    return xr.Dataset(
        {name: ("seed", values) for name, values in columns.items()},
        {"seed": range(100, 100 + seeds)},
    )


def ladder(falls: dict[str, tuple[float, ...]], seeds: int = 8) -> xr.Dataset:
    arms = {
        (v, 1500 * 4**k): runs(e, seeds)
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


def test_an_arm_that_was_not_run_is_no_number():
    arms = {("softmax", 1500): runs(0.2), ("softmax", 6000): runs(0.2), ("top1", 1500): runs(0.9)}
    found = compare_steps(arms, ["softmax", "top1"])
    assert str(found.ratio_kind.sel(variant="top1", steps=6000).values) == "not run"
    assert float(found.ratio.sel(variant="top1", steps=1500)) == pytest.approx(4.5)
    assert "not run with more steps" in str(found.converged_kind.sel(variant="top1").values)


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_the_plans_ask_for_paired_seeds_that_the_protocol_has_not_seen(scale):
    for study in (guidelines.LADDERS, guidelines.PRIOR, guidelines.SPARSITY_MAP):
        plan = study.plan(scale, 8)
        seeds: dict[str, list[int]] = {}
        for run in plan.runs:
            seeds.setdefault(run.settings["arm"], []).append(run.settings["seed"])
        assert len({tuple(each) for each in seeds.values()}) == 1
        assert min(next(iter(seeds.values()))) == 100


def test_the_map_has_every_cell_and_its_own_ratio():
    plan = guidelines.SPARSITY_MAP.plan("quick", 8)
    arms = {}
    for run in plan.runs:
        s = run.settings
        error = 0.1 if s["variant"] == "softmax" else 0.1 * s["relevant"] * (1 + s["noise_std"])
        arms[s["arm"]] = runs(error).expand_dims(size=[512])
    found = guidelines.SPARSITY_MAP.measure(arms)["map"]
    expected = found.relevant * (1 + found.noise)
    np.testing.assert_allclose(found.ratio.sel(variant="sparsemax"), expected, rtol=1e-9)
    assert bool((found.ratio_low <= found.ratio + 1e-9).all())


def test_a_prior_that_halves_the_error_saves_samples():
    sizes = np.array([64, 128, 256, 512])

    def curve(factor: float) -> xr.Dataset:
        error = factor * 64 / sizes * np.exp(0.05 * np.random.default_rng(0).normal(size=(8, 4)))
        return xr.Dataset({"error": (("seed", "size"), error)}, {"seed": range(8), "size": sizes})

    arms = {
        "softmax": curve(2.0),
        "softmax+prior:1": curve(1.0),
        "softmax+wrong-prior:1": curve(8.0),
    }
    table = guidelines.PRIOR.measure(arms)["prior"]
    assert float(table.ratio.sel(student="softmax+prior:1", task="hard")) == pytest.approx(
        2, rel=0.1
    )
    assert (
        str(table.needed_kind.sel(student="softmax+wrong-prior:1", task="hard").values)
        == "not reached"
    )


def test_the_bound_is_the_models_and_is_met_at_the_extremal_row():
    sigma = np.linspace(0.0, 20.0, 50)
    for words in (2, 3, 17):
        bound = np.asarray(entropy_bound(jnp.asarray(sigma), words))
        np.testing.assert_allclose(
            entropy.literal_bound(sigma, words), bound, rtol=1e-9, atol=1e-14
        )
        rows = entropy.extremal_logits(sigma, words)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), sigma, rtol=1e-12, atol=1e-14)
        weights = entropy.softmax(rows)
        np.testing.assert_allclose(
            -np.sum(weights * np.log(weights), axis=1), bound, rtol=1e-9, atol=1e-15
        )


def test_no_row_is_below_the_bound_and_many_are_below_a_wrong_one():
    found = entropy.fit_entropy(entropy.EntropySettings(rows=700), RunContext(0, 0, "0" * 16))
    assert float(found.least) >= -1e-12
    assert float(found.tight) <= 1e-6
    assert float(found.wrong) < -1e-3
    assert set(found.words.values.tolist()) == set(map(float, entropy.WORDS))
    rows = entropy.random_logits(np.random.default_rng(0), 500, 8)
    np.testing.assert_allclose(rows.mean(axis=1), 0, atol=1e-12)
    assert np.linalg.norm(rows, axis=1).min() < 0.1
    assert np.linalg.norm(rows, axis=1).max() > 10
    with pytest.raises(AttnlabError, match="at least 7"):
        entropy.EntropySettings(rows=3)


def test_all_rows_are_asked_for_whatever_the_seeds():
    for seeds in (8, 7):
        plan = entropy.ENTROPY.plan("quick", seeds)
        assert sum(run.settings["rows"] for run in plan.runs) >= entropy.ROWS
