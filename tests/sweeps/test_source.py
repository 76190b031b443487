"""By which code a run was made: what counts as an edit, and what becomes of runs that were made
before it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.sweeps import Plan, Processes, Results, Store, run_plan
from attnlab.sweeps._source import CodeChanged, source_of
from attnlab.sweeps._work import load_work

STUDY = '''
"""What the file is about."""
from __future__ import annotations
import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
import numpy as np
import xarray as xr
from attnlab.sweeps import RunContext
from own_helper import halve
import own_package as package

if TYPE_CHECKING:
    from own_types import Anything

FACTOR = 2.0
TABLE = {"one": 1.0}
TABLE["two"] = 2.0
LEVEL = 0.9

@dataclass(frozen=True)
class Settings:
    """What may be set."""
    seed: int
    scale: float = 1.0

def doubled(function):
    @functools.wraps(function)
    def wrapped(settings, context):
        return 2 * function(settings, context)
    return wrapped

def _helper(x: Unit) -> float:
    # why it is so
    return FACTOR * x + TABLE["two"]

class Unit(float):
    width = 3

@doubled
def work(settings: Settings, context: RunContext) -> xr.Dataset:
    """Some numbers."""
    from own_inner import shifted
    draw = np.random.default_rng(int(context.hash[:8], 16)).normal()
    value = _helper(settings.scale) + halve(draw) + shifted(1.0) + package.passed_on(1.0)
    return xr.Dataset({"value": value})

def other_work(settings: Settings, context: RunContext) -> xr.Dataset:
    return xr.Dataset({"value": 0.0})

def criterion(data):
    return data.value < LEVEL

def figure(data):
    from own_figures import draw
    return draw(data, criterion)

os.environ["OWN_SETTING"] = "1"

if __name__ == "__main__":
    print(figure(None))
'''
FOLDER = {
    "study.py": STUDY,
    "own_helper.py": "from own_deeper import HALF\n\ndef halve(x):\n    return HALF * x\n",
    "own_deeper.py": "HALF = 0.5\n",
    "own_inner.py": "def shifted(x):\n    return x + 1\n",
    "own_types.py": "Anything = int\n",
    "own_figures.py": "def draw(*given):\n    return given\n",
    "own_package/__init__.py": "from own_package._one import passed_on\nfrom ._two import unused\n",
    "own_package/_one.py": "from . import _three\n\ndef passed_on(x):\n    return _three.deep(x)\n",
    "own_package/_two.py": "def unused(x):\n    return x\n",
    "own_package/_three.py": "def deep(x):\n    return x\n",
}
KEEPS = {
    "a comment": ("study.py", "# why it is so", "# why it is otherwise"),
    "a docstring": ("study.py", '"""Some numbers."""', '"""Other numbers, in\n    more words."""'),
    "the file's docstring": ("study.py", "What the file is about", "What else the file is about"),
    "a docstring of the settings": ("study.py", "What may be set.", "All that may be set."),
    "layout": (
        "study.py",
        "_helper(settings.scale) + halve(draw)",
        "(_helper(settings.scale)\n        + halve(draw))",
    ),
    "the order of definitions": (
        "study.py",
        "def _helper(x: Unit) -> float:\n    # why it is so\n    return FACTOR * x + "
        'TABLE["two"]\n\n'
        "class Unit(float):\n    width = 3\n",
        "class Unit(float):\n    width = 3\n\ndef _helper(x: Unit) -> float:\n    return FACTOR * "
        'x + TABLE["two"]\n',
    ),
    "another work function": ("study.py", '{"value": 0.0}', '{"value": 1.0}'),
    "a criterion": ("study.py", "data.value < LEVEL", "data.value > LEVEL"),
    "a threshold": ("study.py", "LEVEL = 0.9", "LEVEL = 0.8"),
    "a figure": ("study.py", "draw(data, criterion)", "draw(criterion)"),
    "a module of figures": ("own_figures.py", "return given", "return None"),
    "what only runs as a script": ("study.py", "print(figure(None))", "print(figure(1))"),
    "an import for type checkers": ("own_types.py", "int", "float"),
    "a new import that others use": (
        "study.py",
        "def figure(data):",
        "import math\n\ndef figure(data, size=math.pi):",
    ),
    "a module that the package passes on for others": (
        "own_package/_two.py",
        "return x",
        "return -x",
    ),
    "a new name that the package passes on": (
        "own_package/__init__.py",
        "import unused",
        "import unused as spare",
    ),
}
MAKES_STALE = {
    "the body": ("study.py", "+ shifted(1.0)", "- shifted(1.0)"),
    "an error that is raised": (
        "study.py",
        "    draw = np",
        "    raise RuntimeError\n    draw = np",
    ),
    "a default of the settings": ("study.py", "scale: float = 1.0", "scale: float = 2.0"),
    "a helper": ("study.py", "FACTOR * x", "FACTOR / x"),
    "a constant": ("study.py", "FACTOR = 2.0", "FACTOR = 3.0"),
    "an entry of a table": ("study.py", 'TABLE["two"] = 2.0', 'TABLE["two"] = 3.0'),
    "the order of assignments": (
        "study.py",
        'TABLE = {"one": 1.0}\nTABLE["two"] = 2.0\n',
        'TABLE["two"] = 2.0\nTABLE = {"one": 1.0}\n',
    ),
    "a decorator": ("study.py", "return 2 * function", "return 3 * function"),
    "a decorator taken away": ("study.py", "@doubled\n", ""),
    "an annotation": ("study.py", "width = 3", "width = 4"),
    "what the file does on import": ("study.py", '"OWN_SETTING"] = "1"', '"OWN_SETTING"] = "2"'),
    "where a name comes from": ("study.py", "from own_helper import", "from own_figures import"),
    "an imported module": ("own_helper.py", "HALF * x", "HALF / x"),
    "a module that this one imports": ("own_deeper.py", "0.5", "0.25"),
    "a module that is imported in the function": ("own_inner.py", "x + 1", "x + 2"),
    "a module that the package passes on": ("own_package/_one.py", "deep(x)", "deep(-x)"),
    "a module inside of the package": ("own_package/_three.py", "return x", "return -x"),
    "what the package does on import": (
        "own_package/__init__.py",
        "from ._two",
        "import own_types\nfrom ._two",
    ),
}


def write(folder: Path, edit: tuple[str, str, str] | None = None) -> Path:
    """The study and its modules in a folder, with one edit; the study's path."""
    for name, text in FOLDER.items():
        if edit is not None and edit[0] == name:
            assert text.count(edit[1]) == 1, "an edit that edits nothing tests nothing"
            text = text.replace(edit[1], edit[2])
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "study.py"


def hash_of(path: Path, name: str = "work") -> str:
    return source_of("<study>", path, name).hash


@pytest.mark.parametrize("what", KEEPS)
def test_an_edit_that_cannot_matter_keeps_the_source(tmp_path, what):
    assert hash_of(write(tmp_path / "a")) == hash_of(write(tmp_path / "b", KEEPS[what]))


@pytest.mark.parametrize("what", MAKES_STALE)
def test_an_edit_that_may_matter_changes_the_source(tmp_path, what):
    assert hash_of(write(tmp_path / "a")) != hash_of(write(tmp_path / "b", MAKES_STALE[what]))


@pytest.mark.parametrize(
    ("use", "edited", "counts"),
    [
        ("package._two.unused(1.0)", "own_package/_two.py", True),
        ("package.unused(1.0)", "own_package/_two.py", True),
        (
            "getattr(package, 'unused')(1.0)",
            "own_package/_two.py",
            True,
        ),  # the whole package, as nobody can tell
        ("package.passed_on(1.0)", "own_package/_two.py", False),
        ("package.__name__", "own_package/_two.py", False),
    ],
)
def test_a_package_counts_as_far_as_it_is_used(tmp_path, use, edited, counts):
    hashes = []
    for place, line in (("a", "return x"), ("b", "return 3 * x")):
        path = write(tmp_path / place, ("study.py", "package.passed_on(1.0)", use))
        text = (tmp_path / place / edited).read_text()
        (tmp_path / place / edited).write_text(text.replace("return x", line))
        hashes.append(hash_of(path))
    assert (hashes[0] != hashes[1]) == counts


def test_whoever_may_reach_every_name_of_its_file_counts_whole(tmp_path):
    reflective = ("study.py", "_helper(settings.scale)", "globals()['_helper'](settings.scale)")
    hashes = []
    for level in ("0.9", "0.8"):
        path = write(tmp_path / level, reflective)
        path.write_text(path.read_text().replace("LEVEL = 0.9", f"LEVEL = {level}"))
        hashes.append(hash_of(path))
    assert hashes[0] != hashes[1]


def test_a_star_import_counts_whole(tmp_path):
    star = ("study.py", "from own_helper import halve", "from own_helper import *")
    write(tmp_path / "a", star)
    path = write(tmp_path / "b", star)
    path.with_name("own_helper.py").write_text(
        FOLDER["own_helper.py"].replace("HALF * x", "HALF + x")
    )
    assert hash_of(tmp_path / "a" / "study.py") != hash_of(path)


def test_works_of_attnlab_reach_what_trains_and_not_what_judges():
    source = load_work("attnlab.papers.lu2021.runs:train_topic").source
    root = Path(sys.modules["attnlab"].__file__ or "").parent
    names = {path.relative_to(root).as_posix() for path in source.files}
    assert {
        "papers/lu2021/runs.py",
        "training/_drive.py",
        "models/_incidence.py",
        "models/_native.cc",
    } <= names
    assert {"_precision.py", "data/_topic.py", "dynamics/_reduced.py"} <= names
    rooms = {name.split("/")[0] for name in names}
    assert rooms.isdisjoint({"lab", "questions", "report", "cli", "complexity", "landscape"})
    assert {name for name in names if name.startswith("sweeps/")} == {
        "sweeps/__init__.py",
        "sweeps/_context.py",
    }
    assert load_work("attnlab.papers.lu2021.runs:flow_far").source.hash != source.hash


def test_installed_packages_do_not_count(tmp_path, monkeypatch):
    installed = tmp_path / "lib" / "site-packages"
    installed.mkdir(parents=True)
    monkeypatch.syspath_prepend(str(installed))
    hashes = []
    for place, value in (("a", 1), ("b", 2)):
        (installed / "own_installed.py").write_text(f"THING = {value}\n")
        hashes.append(
            hash_of(
                write(
                    tmp_path / place,
                    ("study.py", "import functools", "import own_installed, functools"),
                )
            )
        )
    assert hashes[0] == hashes[1]


# From here on with runs. Other code lies in another folder under the same file name, so that it is
# the same sweep.

RUNS = """
import dataclasses
import numpy as np
import xarray as xr

@dataclasses.dataclass(frozen=True)
class Settings:
    seed: int

def work(settings: Settings, context) -> xr.Dataset:
    draw = np.random.default_rng(int(context.hash[:8], 16)).normal()
    return xr.Dataset({"value": 0.0 + draw})

def criterion(data):
    return data.value < 1
"""
RAISES = ("    draw =", "    raise RuntimeError('edited')\n    draw =")
SHIFTED = ("0.0 + draw", "100.0 + draw")
HALF_FAILS = ("    draw =", "    assert settings.seed < 2\n    draw =")


@pytest.fixture
def plan_by(tmp_path):
    """A plan for some seeds, by the code with some edits."""

    def made(seeds, *edits: tuple[str, str]) -> Plan:
        text = RUNS
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        folder = tmp_path / f"code{abs(hash(text))}"
        folder.mkdir(exist_ok=True)
        if not (folder / "study.py").exists():
            (folder / "study.py").write_text(text)
        return Plan(f"{folder / 'study.py'}:work", name="p", grid={"seed": list(range(seeds))})

    return made


def values(results: Results) -> list[float]:
    return results.dataset().value.values.tolist()


def test_an_error_put_into_a_work_function_shows(plan_by, tmp_path):
    before = run_plan(plan_by(4), tmp_path / "s", processes=0)
    assert (before.finished, before.stale) == (4, 0)
    after = run_plan(plan_by(4, RAISES), tmp_path / "s", processes=0)
    assert (after.finished, after.failed, after.stale) == (0, 4, 4)
    assert "edited" in after.failures[0].cause
    back = run_plan(plan_by(4), tmp_path / "s", processes=0)
    assert (back.finished, back.failed, back.stale) == (4, 0, 0), (
        "nor is a failure of other code one of this code"
    )
    assert values(back) == values(before)


def test_runs_of_other_code_are_kept_and_computed_again_with_the_same_random_numbers(
    plan_by, tmp_path
):
    first = values(run_plan(plan_by(4), tmp_path / "s", processes=0))
    edited = run_plan(plan_by(4, SHIFTED), tmp_path / "s", processes=0)
    assert (edited.finished, edited.stale, edited.reused) == (4, 4, 0)
    np.testing.assert_allclose(np.array(values(edited)) - 100, first, atol=1e-12)
    assert [run.hash for run in plan_by(4).runs] == [run.hash for run in plan_by(4, SHIFTED).runs]
    assert len(list((tmp_path / "s" / "blocks").glob("*.zip"))) == 2, "never merged"
    again = run_plan(plan_by(4), tmp_path / "s", processes=0)
    assert values(again) == first
    assert again.stale == 4


@pytest.mark.parametrize(
    ("given", "root_seed", "expected"),
    [
        ({}, 0, "c19911faa4b85bd7d844f4c5"),
        ({"widths": (4,), "limit": 2, "scale": 0.5}, 7, "b725ff5b3548578b60c2fe4f"),
    ],
)
def test_random_keys_are_those_of_the_first_release(works, given, root_seed, expected):
    work = f"{works}:numbers"
    plan = Plan(work, name="p", base=given, grid={"seed": [3]}, root_seed=root_seed)
    assert plan.runs[0].hash[:24] == expected


def test_an_edit_of_a_criterion_computes_nothing(plan_by, tmp_path):
    run_plan(plan_by(4), tmp_path / "s", processes=0)
    events = []
    plan = plan_by(4, ("data.value < 1", "data.value < 2"))
    results = run_plan(plan, tmp_path / "s", processes=0, on_event=events.append)
    assert (results.finished, results.stale, events) == (4, 0, [])


def test_keep_uses_runs_of_other_code_and_says_so(plan_by, tmp_path):
    first = values(run_plan(plan_by(4), tmp_path / "s", processes=0))
    kept = run_plan(plan_by(6, SHIFTED), tmp_path / "s", processes=0, keep=True)
    assert (kept.finished, kept.stale, kept.reused) == (6, 0, 4)
    assert values(kept)[:4] == first
    assert min(values(kept)[4:]) > 50
    assert values(Results.read(tmp_path / "s")) == values(kept), "who reads later uses them too"
    fresh = run_plan(plan_by(6, SHIFTED), tmp_path / "s", processes=0)
    assert (fresh.finished, fresh.stale, fresh.reused) == (6, 4, 0)
    assert min(values(fresh)) > 50


def test_of_two_versions_the_fresh_one_counts_and_then_the_latest(plan_by, tmp_path):
    third = ("0.0 + draw", "200.0 + draw")
    fourth = ("0.0 + draw", "300.0 + draw")
    run_plan(plan_by(4), tmp_path / "s", processes=0)
    run_plan(plan_by(3, SHIFTED), tmp_path / "s", processes=0)
    run_plan(plan_by(2, third), tmp_path / "s", processes=0)
    run_plan(plan_by(1, fourth), tmp_path / "s", processes=0)
    kept = run_plan(plan_by(5, fourth), tmp_path / "s", processes=0, keep=True)
    assert np.round(np.array(values(kept)), -2).tolist() == [300, 200, 100, 0, 300]
    assert (kept.finished, kept.reused, kept.stale) == (5, 3, 1)
    assert float(kept.run(0).value) > 250


def test_a_grid_that_grows_keeps_what_is_fresh(plan_by, tmp_path):
    run_plan(plan_by(2), tmp_path / "s", processes=0)
    run_plan(plan_by(3, SHIFTED), tmp_path / "s", processes=0)
    events = []
    grown = run_plan(plan_by(6, SHIFTED), tmp_path / "s", processes=0, on_event=events.append)
    assert (events[0].finished, grown.finished, grown.stale) == (3, 6, 2)


def test_failures_of_other_code_stay_theirs(plan_by, tmp_path):
    failing = run_plan(plan_by(4, HALF_FAILS), tmp_path / "s", processes=0)
    assert (failing.finished, failing.failed) == (2, 2)
    other = run_plan(plan_by(4, RAISES), tmp_path / "s", processes=0, retry_failed=False)
    assert (other.finished, other.failed, other.stale) == (0, 4, 2)
    again = run_plan(plan_by(4, HALF_FAILS), tmp_path / "s", processes=0, retry_failed=False)
    assert (again.finished, again.failed) == (2, 2)
    assert "AssertionError" in again.failures[0].cause


def test_reading_imports_nothing_and_knows_what_counts(plan_by, tmp_path):
    run_plan(plan_by(4), tmp_path / "s", processes=0)
    edited = plan_by(2, SHIFTED)
    run_plan(edited, tmp_path / "s", processes=0)
    grown = plan_by(4, SHIFTED)
    with Store.open(tmp_path / "s", grown):
        pass
    for code in tmp_path.glob("code*"):
        (code / "study.py").unlink()
    read = Results.read(tmp_path / "s")
    assert (read.finished, read.missing, read.stale) == (2, 2, 4)
    assert min(values(read)[:2]) > 50


@pytest.mark.parametrize("executor", [Processes(2), None])
def test_code_that_is_edited_while_a_sweep_begins(plan_by, tmp_path, executor):
    """Workers load the file after the sweep has started; this process has loaded it, and continues with
    what it has.
    """
    plan = plan_by(4)
    file = Path(plan.work.rpartition(":")[0])

    def edit(event):
        file.write_text(file.read_text().replace(*SHIFTED))

    if executor is None:
        results = run_plan(plan, tmp_path / "s", processes=0, on_event=edit)
        assert max(values(results)) < 50
        with pytest.raises(
            AttnlabError, match="was edited after this process had loaded it; restart Python"
        ):
            run_plan(plan, tmp_path / "s", processes=0)
        return
    with pytest.raises(
        CodeChanged, match=r"study.py:work changed while the sweep was under way.*start the same"
    ):
        run_plan(plan, tmp_path / "s", executor=executor, on_event=edit)
    assert Results.read(tmp_path / "s").finished == 0


@pytest.mark.parametrize(
    ("edit", "refused"), [("VALUE = 2.0  # a comment", False), ("VALUE = 3.0", True)]
)
def test_a_module_that_is_edited_before_the_work_function_loads_it(
    tmp_path, monkeypatch, edit, refused
):
    name = f"own_lazy_{refused}".lower()
    (tmp_path / f"{name}.py").write_text("VALUE = 2.0")
    text = RUNS.replace("0.0 + draw", "0.0 + VALUE").replace(
        "    draw =", f"    from {name} import VALUE\n    draw ="
    )
    (tmp_path / "study.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    plan = Plan(f"{tmp_path / 'study.py'}:work", name="p", grid={"seed": [0, 1]})

    def change(event):
        (tmp_path / f"{name}.py").write_text(edit)

    if refused:
        with pytest.raises(
            CodeChanged, match=f"{name}.py was edited while the sweep was under way"
        ):
            run_plan(plan, tmp_path / "s", processes=0, on_event=change)
        assert Results.read(tmp_path / "s").finished == 0
    else:
        assert values(run_plan(plan, tmp_path / "s", processes=0, on_event=change)) == [2.0, 2.0]
