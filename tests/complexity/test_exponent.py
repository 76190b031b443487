"""The exponent of needed samples in the number of features."""

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity import exponent
from tests.complexity.curves import SIZES

P = np.array([16.0, 32.0, 64.0, 128.0])


def growing(power, rng=None, scale=0.1, seeds=16, own=0.3):
    """errors = scale · p^power / n: they reach .1 at n = 10 · scale · p^power."""
    curve = scale * P**power / SIZES[:, None]
    noise = 0 if rng is None else rng.normal(0, own, (seeds, len(SIZES), len(P)))
    values = curve * np.exp(noise + np.zeros((seeds, 1, 1)))
    return xr.DataArray(
        values, dims=("seed", "size", "features"), coords={"size": SIZES, "features": P}
    )


def test_a_power_is_recovered_and_its_needed_samples_are_kept():
    found = exponent(growing(1.0, scale=1.0), 0.1)
    assert found.kind == "exact"
    assert found.value == pytest.approx(
        1, abs=1e-9
    )  # p doubles as the sizes do: no bias of interpolation
    values = [one.value for one in found.needed]
    assert found.value == pytest.approx(np.polyfit(np.log(P), np.log(values), 1)[0])
    assert str(found) == "the exponent of needed samples is 1.00 (95 % interval 1 to 1)"


@pytest.mark.parametrize(("power", "scale"), [(0.0, 5.0), (0.5, 4.0), (1.0, 1.0)])
def test_intervals_cover_the_exponent(power, scale):
    rng, inside = np.random.default_rng(0), 0
    for k in range(40):
        found = exponent(growing(power, rng, scale), 0.1, resamples=300, seed=k)
        inside += found.interval.low - 0.01 <= power <= found.interval.high + 0.01
    assert inside >= 34


def test_what_lies_off_the_grid_bounds_the_exponent():
    steep = exponent(growing(1.0, scale=4.0), 0.1)
    assert steep.off_grid == {64.0: "not reached", 128.0: "not reached"}
    assert steep.kind == "at least"
    assert steep.value < 1
    assert steep.interval.high == np.inf
    assert "is at least" in str(steep)
    assert str(steep).endswith("not reached at 64; not reached at 128)")
    early = exponent(growing(1.0, scale=0.06), 0.1)
    assert early.off_grid == {16.0: "already met"}
    assert early.kind == "at least"
    never = exponent(growing(0.0, scale=1e6), 0.1)
    assert (never.kind, np.isnan(never.value)) == ("unknown", True)
    assert "is unknown" in str(never)


def test_the_bound_holds_for_the_wider_grid():
    whole = growing(1.0, scale=1.0)
    narrow = exponent(whole.isel(size=slice(0, -1)), 0.1)
    assert narrow.kind == "at least"
    assert narrow.value <= exponent(whole, 0.1).value


def test_each_p_may_have_its_own_sizes():
    errors = growing(1.0, scale=1.0)
    errors = errors.where((errors["size"] > 16) | (errors["features"] < 64))
    assert exponent(errors, 0.1).value == pytest.approx(1)


def test_few_seeds_have_no_interval():
    found = exponent(growing(1.0, scale=1.0).isel(seed=slice(3)), 0.1)
    assert (found.interval.low, found.interval.high) == (-np.inf, np.inf)


def test_what_is_no_family_of_curves_is_refused():
    errors = growing(1.0)
    with pytest.raises(AttnlabError, match="expected"):
        exponent(errors.isel(features=0), 0.1)
    with pytest.raises(AttnlabError, match="at least two"):
        exponent(errors.isel(features=[0]), 0.1)


def test_each_seed_has_an_exponent_of_its_own_where_its_curves_cross():
    rng = np.random.default_rng(0)
    errors = growing(1.0, rng, 1.0).assign_coords(seed=range(16))
    found = exponent(errors, 0.1)
    for k, seed in enumerate(found.per_seed["seed"].values):
        alone = errors.isel(seed=[k] * 2).assign_coords(
            seed=[0, 1]
        )  # a curve and its copy: their median is the curve
        single = exponent(alone, 0.1)
        if single.kind == "exact":
            assert float(found.per_seed.sel(seed=seed)) == pytest.approx(single.value, rel=1e-9)
        else:
            assert np.isnan(float(found.per_seed.sel(seed=seed)))
