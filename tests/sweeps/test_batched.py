"""Work functions that compute several runs in one call."""

from typing import Any

import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.sweeps import Plan, Processes, Results, batched, run_plan
from attnlab.sweeps.executors._chunks import Chunks
from tests.sweeps import _works

pytestmark = pytest.mark.slow

SCRIPT = """
from attnlab.sweeps import Plan, run_plan
plan = Plan({work!r}, name="p", base={base!r}, grid={{"seed": list(range({runs}))}})
results = run_plan(plan, {folder!r}, processes=2)
"""


def numbers_plan(works: str, seeds, work: str = "many_numbers", **base: Any) -> Plan:
    return Plan(f"{works}:{work}", name="p", base=base, grid={"seed": list(seeds)})


def test_a_run_alone_equals_the_run_in_any_group_bit_for_bit(works, tmp_path, same_bits):
    def computed(folder: str, grid, processes: int) -> Results:
        plan = Plan(f"{works}:descents", name="p", base={"steps": 200}, grid=grid)
        return run_plan(plan, tmp_path / folder, processes=processes)

    grid = {"width": [4, 8], "seed": list(range(11))}
    whole = computed("whole", grid, 0).dataset()
    assert whole.loss.shape == (2, 11, 200)
    same_bits(computed("workers", grid, 2).dataset(), whole)
    for seed in (0, 3, 10):
        alone = computed(f"alone{seed}", {"width": [8], "seed": [seed]}, 0).dataset()
        same_bits(alone, whole.sel(width=[8], seed=[seed]))
    # A grid that grows computes what is new, in other groups.
    computed("grown", {"width": [4, 8], "seed": [0, 1, 5]}, 0)
    same_bits(computed("grown", grid, 0).dataset(), whole)
    # The oracle: the same settings and keys, one by one.
    plan = Plan(f"{works}:descents", name="p", base={"steps": 200}, grid=grid)
    for run in (plan.runs[2], plan.runs[-1]):
        one = _works.descent(_works.Descent(**run.settings), run.context(0))
        many = whole.sel({name: run.settings[name] for name in grid})
        assert np.allclose(one.loss, many.loss, rtol=1e-4, atol=1e-6)


def test_a_failing_run_fails_alone(works, tmp_path, same_bits):
    results = run_plan(numbers_plan(works, range(11), label="fragile"), tmp_path / "a", processes=1)
    assert (results.finished, results.failed) == (9, 2)
    assert [(group.cause, len(group.runs)) for group in results.failures] == [
        ("RuntimeError: the model diverged", 2)
    ]
    missing = np.isnan(results.dataset().value.isel(step=1).values)
    assert np.flatnonzero(missing).tolist() == [5, 6]
    plain = numbers_plan(works, [4, 7], "numbers", label="fragile")
    expected = run_plan(plan=plain, folder=tmp_path / "b", processes=0).dataset()
    same_bits(results.dataset()[["value"]].sel(seed=[4, 7]), expected[["value"]])


def test_killed_in_the_middle_the_same_call_goes_on(
    works, tmp_path, start_script, wait_for, same_bits
):
    folder, base = tmp_path / "sweep", {"seconds": 0.3}
    work = f"{works}:many_numbers"
    parent = start_script(SCRIPT.format(work=work, base=base, runs=30, folder=str(folder)))
    wait_for(lambda: len(list(folder.glob("blocks/*.zip"))) >= 2)
    parent.kill()
    parent.wait()
    kept = Results.read(folder).finished
    assert 0 < kept < 30
    resumed = run_plan(numbers_plan(works, range(30), seconds=0.3), folder, processes=2)
    whole = run_plan(numbers_plan(works, range(30)), tmp_path / "whole", processes=0)
    same_bits(resumed.dataset(), whole.dataset())


@pytest.mark.parametrize("seeds", [range(6), [2, 3]], ids=["full group", "group not full"])
def test_of_a_group_that_takes_too_long_only_the_slow_run_fails(works, tmp_path, seeds):
    with Processes(1, time_limit=5.0) as executor:
        plan = numbers_plan(works, seeds, label="slow")
        results = run_plan(plan, tmp_path, executor=executor)
    assert (results.finished, results.failed) == (len(seeds) - 1, 1)
    (group,) = results.failures
    assert group.cause == "took longer than the time limit of 5 s"
    assert len(group.runs) == 1


def test_chunks_hold_whole_groups_of_one_kind(works):
    plan = Plan(f"{works}:descents", name="p", grid={"width": [4, 8], "seed": list(range(10))})
    for observed in (1e-3, 1.0, 100.0):
        chunks = Chunks(plan.runs, 2, 4)
        handed_out = []
        for chunk in chunks:
            handed_out.append(chunk)
            chunks.observe([observed] * len(chunk))
        assert sorted(run.index for chunk in handed_out for run in chunk) == list(range(20))
        groups = [len(chunk) for chunk in handed_out if len({run.kind for run in chunk}) == 1]
        assert all(size % 4 == 0 or size % 4 == 2 for size in groups)
        assert sum(size % 4 != 0 for size in groups) <= 2


def test_mistakes_are_named(works, tmp_path):
    results = run_plan(numbers_plan(works, [0], "too_few"), tmp_path, processes=0)
    (group,) = results.failures
    assert "returned 1 of them: expected a list of 2 data sets" in group.cause
    with pytest.raises(AttnlabError, match="expected \\(settings: list"):
        numbers_plan(works, [0], "one_setting")
    for size in (0, 2.0, sorted):
        with pytest.raises(AttnlabError, match="whole number ≥ 1"):
            batched(size)  # type: ignore[arg-type]
