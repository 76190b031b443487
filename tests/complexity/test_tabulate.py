"""Made-up curves whose needed samples, ratios and exponents are known."""

import numpy as np
import pytest
import xarray as xr

from attnlab.complexity import Question, end_values, tabulate


def _curve(n, scale, seeds=8):
    sizes = np.asarray(n, float)
    error = scale / sizes[None] * np.linspace(0.9, 1.1, seeds)[:, None]
    part = xr.DataArray(error, dims=("seed", "size"), coords={"seed": range(seeds), "size": sizes})
    return xr.Dataset({"error": part, "settling": 0 * part, "train_loss": part, "valid_loss": part})


def test_answers_of_made_up_curves_are_the_known_ones():
    """error = c·p/n for one student and c/n for the other: n(ε) = c·p/ε, exponents 1 and 0, ratio
    p.
    """
    n = np.geomspace(4, 4096, 41)
    arms = {("baseline", p): _curve(n, 1.0 * p) for p in (4, 16, 64)}
    arms |= {("known", p): _curve(n, 1.0) for p in (4, 16, 64)}
    found = tabulate(arms, Question(0.1), further=True)
    np.testing.assert_allclose(found.needed.sel(student="baseline"), [40, 160, 640], rtol=0.02)
    np.testing.assert_allclose(found.ratio.sel(student="known"), [4, 16, 64], rtol=0.03)
    np.testing.assert_allclose(found.exponent, [1, 0], atol=0.01)
    assert set(found.verdict.sel(student="known").values.tolist()) == {"saves"}
    assert found.verdict.sel(student="baseline").values.tolist() == ["", "", ""]
    assert (found.unsettled == 0).all()
    np.testing.assert_allclose(
        found.extrapolated.sel(student="baseline"), [40, 160, 640], rtol=0.05
    )
    ends = end_values(found, "ratio", student="known", features=16)
    assert ends[1] <= ends[0] <= ends[2]
    assert (ends.attrs["kind"], ends.attrs["seeds"], ends.attrs["asked"]) == ("exact", 8, 8)
    np.testing.assert_allclose(list(ends.attrs["by_seed"].values()), float(ends[0]), rtol=0.05)


def test_what_a_grid_does_not_reach_is_never_an_infinite_ratio():
    arms = {
        ("baseline", 0): _curve([4, 8, 16], 100.0),
        ("good", 0): _curve([4, 8, 16], 1.0),
        ("best", 0): _curve([4, 8, 16], 0.01),
    }
    found = tabulate(arms, Question(0.1), dim="setting").isel(setting=0)
    assert found.needed_kind.values.tolist() == ["not reached", "crossed", "already met"]
    assert found.ratio_kind.values.tolist() == ["not run", "at least", "at least"]
    assert np.isfinite(found.ratio[1:]).all()
    assert float(found.ratio[1]) == pytest.approx(16 / float(found.needed[1]))


def test_fits_that_still_fall_are_counted():
    data = _curve([8, 16], 1.0)
    data["settling"] = data.settling + 0.2
    data["train_loss"] = xr.where(data.size == 8, 1e-6, data.train_loss)
    found = tabulate(
        {("a", 0): data, ("b", 0): _curve([8, 16], 1.0)}, Question(0.1, against="a"), dim="s"
    )
    assert found.unsettled.values.ravel().tolist() == [
        0.5,
        0.0,
    ]  # a loss of 1e-6 has nowhere to fall
