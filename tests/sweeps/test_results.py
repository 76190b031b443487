"""One labelled data set of all runs, whatever the runs look like."""

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.sweeps import Plan, Results, run_plan
from attnlab.sweeps._combine import combine
from attnlab.sweeps.store._stack import Stack


def test_a_product_has_its_fields_for_dimensions(works, tmp_path):
    plan = Plan(f"{works}:numbers", name="p", grid={"seed": [0, 1, 2], "scale": [1.0, 10.0]})
    results = run_plan(plan, tmp_path, processes=0)
    data = results.dataset()
    assert dict(data.sizes) == {"seed": 3, "scale": 2, "step": 3}
    assert data.value.dims == ("seed", "scale", "step")
    assert data.step.values.tolist() == [0, 1, 2]
    assert data.time.dims == ("step",)
    for run in plan.runs:
        alone = results.run(run.index)
        point = data.sel(seed=run.settings["seed"], scale=run.settings["scale"])
        np.testing.assert_array_equal(point.value, alone.value)
        assert point["count"].item() == 2**60 + run.settings["seed"]
        assert point.word.item() == alone.word.item()
    assert data.flag.dtype == bool
    assert data.attrs["same"] == [1, 2]
    assert "seed_of_run" not in data.attrs
    assert (data.attrs["plan"], data.attrs["asked"], data.attrs["finished"]) == ("p", 6, 6)


def test_a_list_has_runs_for_a_dimension_and_settings_for_coordinates(works, tmp_path):
    settings = [{"seed": 5, "scale": 2}, {"seed": 7, "widths": (9,), "limit": 3}]
    data = run_plan(
        Plan.of_list(f"{works}:numbers", "l", settings), tmp_path, processes=0
    ).dataset()
    assert data.value.dims == ("run", "step")
    assert data.seed.dims == ("run",)
    assert data.seed.values.tolist() == [5, 7]
    assert data.scale.values.tolist() == [2.0, 1.0]
    assert data.widths.values.tolist() == ["(1, 2)", "(9,)"]
    assert data.limit.values.tolist() == ["None", "3"]


def test_missing_runs_are_nan_and_the_rest_stays(works, tmp_path):
    results = run_plan(
        Plan(f"{works}:fragile", name="p", grid={"seed": list(range(8))}), tmp_path, processes=0
    )
    data = results.dataset()
    gone = [1, 3, 5, 7]
    assert np.isnan(data.value.sel(seed=gone)).all()
    assert not np.isnan(data.value.sel(seed=[0, 2, 4, 6])).any()
    assert np.isnan(data.flag.sel(seed=gone)).all()
    assert data.word.sel(seed=gone).values.tolist() == [""] * 4


def test_failures_are_grouped_by_cause(works, tmp_path):
    plan = Plan(f"{works}:fragile", name="p", grid={"seed": list(range(9))})
    results = run_plan(plan, tmp_path, processes=0)
    assert (results.asked, results.finished, results.failed, results.missing) == (9, 5, 4, 0)
    assert [(group.cause, group.count, group.runs) for group in results.failures] == [
        ("RuntimeError: the model diverged", 2, (1, 5)),
        ("SystemExit: leaving", 2, (3, 7)),
    ]
    assert "in fragile" in results.failures[0].traceback
    assert not results.ok
    assert Results.read(tmp_path, failure_limit=0.5).ok
    assert run_plan(plan, tmp_path, processes=0, retry_failed=False).failed == 4


def test_only_some_variables(works, tmp_path):
    results = run_plan(
        Plan(f"{works}:numbers", name="p", grid={"seed": [0, 1]}), tmp_path, processes=0
    )
    assert set(results.select(["value"]).variables) == {"value", "step", "time", "seed"}
    assert set(results.select(["count"]).variables) == {"count", "seed"}
    with pytest.raises(AttnlabError, match=r"no variable 'valeu': did you mean 'value'\?"):
        results.select(["valeu"])
    with pytest.raises(AttnlabError, match="runs 0 to 1"):
        results.run(2)


@pytest.fixture
def combined(works):
    """Combine given data sets as the runs of a plan over seeds."""

    def build(*runs: xr.Dataset) -> xr.Dataset:
        plan = Plan(f"{works}:numbers", name="p", grid={"seed": list(range(len(runs)))})
        stacks = [Stack.of_run(run.hash, data) for run, data in zip(plan.runs, runs, strict=True)]
        return combine(plan, stacks[::-1])

    return build


def test_different_labels_are_put_side_by_side(combined):
    data = combined(
        xr.Dataset({"v": ("step", [1.0, 2.0])}, {"step": [0, 10]}),
        xr.Dataset({"v": ("step", [3.0, 4.0])}, {"step": [5, 10]}),
    )
    assert data.step.values.tolist() == [0, 5, 10]
    np.testing.assert_array_equal(data.v, [[1, np.nan, 2], [np.nan, 3, 4]])


def test_lengths_without_labels_end_in_nan(combined):
    data = combined(
        xr.Dataset({"v": ("k", [1, 2])}), xr.Dataset({"v": ("k", [3])}), xr.Dataset({"w": 1})
    )
    np.testing.assert_array_equal(data.v, [[1, 2], [3, np.nan], [np.nan, np.nan]])
    np.testing.assert_array_equal(data.w, [np.nan, np.nan, 1])


def test_coordinates_that_differ_get_the_plans_dimensions(combined):
    one, two = (
        xr.Dataset({"v": ("k", [1, 2])}, {"time": ("k", [0.0, t]), "unit": 3}) for t in (1.0, 2.0)
    )
    data = combined(one, two)
    assert data.time.dims == ("seed", "k")
    assert "time" in data.coords
    assert data.unit.dims == ()


def test_what_repeats_a_setting_is_dropped(combined):
    runs = [xr.Dataset({"v": (("seed", "k"), [[s, 1.0]])}, {"seed": [s]}) for s in range(3)]
    data = combined(*runs)
    assert data.v.dims == ("seed", "k")
    assert data.v[:, 0].values.tolist() == [0, 1, 2]


def test_what_is_only_named_like_a_setting_is_renamed(combined):
    data = combined(*[xr.Dataset({"v": ("seed", [s, s])}, {"seed": [10, 11]}) for s in range(2)])
    assert data.v.dims == ("seed", "seed_in_run")
    assert data.seed_in_run.values.tolist() == [10, 11]


def test_a_measured_variable_is_kept_even_where_it_equals_a_setting(combined):
    data = combined(*[xr.Dataset({"seed": s, "v": 1.0}) for s in range(2)])
    assert data.seed_in_run.values.tolist() == [0, 1]


def test_labels_that_are_nan_are_no_obstacle_where_all_agree(combined):
    runs = [xr.Dataset({"v": ("k", [s, 2.0])}, {"k": [1.0, np.nan]}) for s in range(2)]
    np.testing.assert_array_equal(combined(*runs).v, [[0, 2], [1, 2]])


def test_contradictions_are_named(combined):
    with pytest.raises(AttnlabError, match="'v' has dimensions"):
        combined(xr.Dataset({"v": ("k", [1])}), xr.Dataset({"v": 1}))
    with pytest.raises(AttnlabError, match="labels in some runs"):
        combined(xr.Dataset({"v": ("k", [1])}, {"k": [1]}), xr.Dataset({"v": ("k", [1])}))
    with pytest.raises(AttnlabError, match="repeats labels"):
        combined(
            xr.Dataset({"v": ("k", [1, 2])}, {"k": [1, 1]}),
            xr.Dataset({"v": ("k", [1])}, {"k": [2]}),
        )


def test_a_sweep_without_a_finished_run_is_empty_and_says_so(works, tmp_path):
    results = run_plan(
        Plan(f"{works}:fragile", name="p", grid={"seed": [1, 5]}), tmp_path, processes=0
    )
    assert results.dataset().sizes == {"seed": 2}
    assert results.dataset().attrs["finished"] == 0
    assert not results.ok
