"""Plans: what is asked for, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.sweeps import Plan, RunContext

EXAMPLE = "attnlab.sweeps._example:work"


def test_a_product_varies_its_last_field_fastest(works):
    plan = Plan(
        f"{works}:numbers", name="p", base={"size": 4}, grid={"seed": [0, 1], "scale": [1, 2.5]}
    )
    points = [
        (run.index, run.settings["seed"], run.settings["scale"], run.settings["size"])
        for run in plan.runs
    ]
    assert points == [(0, 0, 1.0, 4), (1, 0, 2.5, 4), (2, 1, 1.0, 4), (3, 1, 2.5, 4)]
    assert plan.shape == {"seed": 2, "scale": 2}
    assert plan.runs[0].settings["widths"] == (1, 2)


def test_hashes_are_what_they_always_were():
    plan = Plan(EXAMPLE, name="any", grid={"number": [1, 2.5]}, root_seed=3)
    assert plan.runs[0].hash == "01f7e3c5b78d45cd6e7e79fdb074fccf3bb97da960f22ef5614b49875fe45cd0"
    assert plan.runs[1].hash == "19d3bd78c5f83d893f350bfcc6303c8f7f2dcc907a7268352f94c78e4366a92e"


def test_another_process_finds_the_same_hashes():
    code = f"from attnlab.sweeps import Plan; print(Plan({EXAMPLE!r}, name='n', grid={{'number': [7]}}).runs[0].hash)"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert printed == Plan(EXAMPLE, name="other", base={"number": 7.0}).runs[0].hash


def test_a_hash_depends_on_content_and_not_on_place(works):
    small = Plan(f"{works}:numbers", name="p", grid={"seed": [2]})
    large = Plan(f"{works}:numbers", name="p", grid={"seed": [0, 1, 2]})
    assert small.runs[0].hash == large.runs[2].hash
    seen = {
        small.runs[0].hash,
        Plan(f"{works}:numbers", name="p", grid={"seed": [2]}, root_seed=1).runs[0].hash,
        Plan(f"{works}:numbers", name="p", grid={"seed": [2]}, base={"size": 4}).runs[0].hash,
        Plan(f"{works}:numbers_v2", name="p", grid={"seed": [2]}).runs[0].hash,
        Plan(f"{works}:fragile", name="p", grid={"seed": [2]}).runs[0].hash,
    }
    assert len(seen) == 5


def test_a_file_may_move(works, tmp_path):
    moved = tmp_path / "_works.py"
    moved.write_bytes(Path(works).read_bytes())
    here, there = (Plan(f"{path}:numbers", name="p", grid={"seed": [0]}) for path in (works, moved))
    assert here.runs[0].hash == there.runs[0].hash


def test_the_version_enters_the_hash(works):
    assert Plan(f"{works}:numbers_v2", name="p", grid={"seed": [0]}).version == 2


@pytest.mark.parametrize("kind", ["product", "list"])
def test_json_and_back(works, kind):
    work = f"{works}:numbers"
    if kind == "product":
        plan = Plan(
            work,
            name="p",
            base={"widths": [3]},
            grid={"seed": range(2), "limit": [None, 5]},
            root_seed=4,
        )
    else:
        plan = Plan.of_list(
            work, name="p", settings=[{"seed": 1}, {"seed": 2, "widths": (4,)}], root_seed=4
        )
    again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert again == plan
    assert again.runs == plan.runs


def test_numpy_values_are_python_values(works):
    plan = Plan(
        f"{works}:numbers", name="p", grid={"seed": np.arange(2), "scale": [np.float64(0.5)]}
    )
    assert type(plan.runs[1].settings["seed"]) is int
    assert type(plan.runs[1].settings["scale"]) is float


def test_keys_differ_between_runs_and_stay_when_the_plan_grows(works):
    import jax

    def keys(plan):
        return [
            tuple(jax.random.key_data(run.context(plan.root_seed).key()).tolist())
            for run in plan.runs
        ]

    small = keys(Plan(f"{works}:numbers", name="p", grid={"seed": [1, 2]}))
    large = keys(Plan(f"{works}:numbers", name="p", grid={"seed": [0, 1, 2]}))
    assert large[1:] == small
    assert len(set(large)) == 3
    context = RunContext(root_seed=5, index=0, hash="0000000100000002" + "0" * 48)
    by_hand = jax.random.fold_in(jax.random.fold_in(jax.random.key(5), 1), 2)
    assert (jax.random.key_data(context.key()) == jax.random.key_data(by_hand)).all()


@pytest.mark.parametrize(
    ("base", "grid", "words"),
    [
        (
            {"sede": 0},
            {},
            r"Numbers has no field 'sede': did you mean 'seed'\? Known: seed, size, scale",
        ),
        ({"seed": 0}, {"scales": [1]}, "did you mean 'scale'"),
        ({"seed": "0"}, {}, r"Numbers.seed: got '0' \(str\), expected int"),
        ({"seed": True}, {}, r"got True \(bool\), expected int"),
        ({"seed": 0, "scale": float("nan")}, {}, "expected a finite float"),
        ({"seed": 0, "widths": (1, "a")}, {}, "expected tuple"),
        ({"seed": 0, "limit": 0.5}, {}, r"Numbers.limit: got 0.5 \(float\), expected int \| None"),
        ({}, {}, "Numbers.seed has no default"),
        ({"seed": 0}, {"seed": [1]}, "seed given both in base and in grid"),
        ({}, {"seed": [1, 2, 1]}, "runs 0 and 2 have equal settings"),
        ({}, {"seed": []}, "is empty"),
        ({}, {"seed": 3}, "expected a list of values"),
        ({"seed": 0}, {"label": "abc"}, "expected a list of values"),
    ],
)
def test_mistakes_are_named(works, base, grid, words):
    with pytest.raises(AttnlabError, match=words):
        Plan(f"{works}:numbers", name="p", base=base, grid=grid)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        ("nowhere", "expected 'package.module:function'"),
        ("__main__:f", "name the file"),
        ("attnlab.nowhere:f", "cannot be imported"),
        ("missing.py:f", "does not exist"),
        ("{works}:number", "did you mean 'numbers'"),
        ("{works}:untyped", "expected .settings: SomeFrozenDataclass"),
        ("{works}:loosely_typed", "settings of type dict: expected a frozen dataclass"),
        ("attnlab.sweeps:run_plan", "Plan.base is of type .* stored as JSON"),
    ],
)
def test_work_functions_that_are_none_are_named(works, work, words):
    with pytest.raises(AttnlabError, match=words):
        Plan(work.format(works=works), name="p")


def test_a_root_seed_and_a_name_are_needed(works):
    with pytest.raises(AttnlabError, match="root_seed=-1"):
        Plan(f"{works}:numbers", name="p", base={"seed": 0}, root_seed=-1)
    with pytest.raises(AttnlabError, match="expected a name"):
        Plan(f"{works}:numbers", name=" ", base={"seed": 0})
    with pytest.raises(AttnlabError, match="at least one run"):
        Plan.of_list(f"{works}:numbers", name="p", settings=[])


def test_importing_the_rooms_loads_nothing_heavy():
    heavy = {"jax", "zarr", "xarray", "distributed"}
    code = f"import attnlab.sweeps, attnlab.stats, sys; assert {heavy}.isdisjoint(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
