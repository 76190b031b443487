"""What moved between two folders of results, against Student's paired test and by hand."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from attnlab import AttnlabError
from attnlab.lab import (
    Claim,
    Criterion,
    Grid,
    compare_records,
    mean,
    pooled_max,
    read_record,
    reproduce,
    run,
)
from attnlab.sweeps import save_record
from tests.lab.test_claim import toy_claim, toy_sweep
from tests.lab.toy import Toy, ToySettings

# A number in (0, 1) for each seed, the same in all versions of the work function.
NOISE = "((settings.seed * 0.6180339887) % 1)"


def noise(seed: int) -> float:
    return (seed * 0.6180339887) % 1


def claim(tmp_path, value: str, *, first: int = 0, name: str = "out") -> Claim:
    """A claim about the mean of ``value``, an expression of a run's settings."""
    folder = tmp_path / f"work-{name}"
    folder.mkdir(exist_ok=True)
    sweep = toy_sweep(folder, f"return xr.Dataset({{'value': settings.size + {value}}})")
    grid = lambda scale, seeds: Grid(sweep.grid(scale, seeds).arms, seeds, first=first)  # noqa: E731
    return toy_claim(replace(sweep, grid=grid))


def results(tmp_path, name: str, value: str, *, seeds: int = 8, first: int = 0, **more):
    """A folder of results of that claim."""
    one = replace(claim(tmp_path, value, first=first, name=name), **more)
    reproduce([one], tmp_path / name, seeds=seeds, processes=0)
    return tmp_path / name


def own(comparison):
    """The claim's own figure."""
    return next(figure for figure in comparison.figures if figure.what == "value")


def test_equal_results_have_not_moved(tmp_path):
    a, b = (results(tmp_path, name, NOISE) for name in "ab")
    found = compare_records(a, b)
    assert not found.moved
    assert found.verdicts == found.asked_otherwise == found.only_before == found.only_after == ()
    assert [(f.what, f.how, f.moved) for f in found.figures] == [
        ("value", "same", False),
        ("control large: value", "same", False),
    ]
    assert found.judged == 0


def test_a_difference_is_judged_on_shared_seeds_as_students_paired_test_does(tmp_path):
    """The noise of seeds is 30 times the shift: the two intervals overlap, the pairs do not lie."""
    shift = "0.01 + 0.004 * (settings.seed % 3)"
    a = results(tmp_path, "a", NOISE)
    b = results(tmp_path, "b", f"{NOISE} + {shift}", seeds=12)
    figure = own(compare_records(a, b))
    before = np.array([1 + noise(seed) for seed in range(8)])
    after = before + [0.01 + 0.004 * (seed % 3) for seed in range(8)]
    paired = stats.ttest_rel(after, before)
    assert (figure.how, figure.moved, figure.seeds) == ("paired seeds", True, 8)
    assert figure.difference == pytest.approx((after - before).mean())
    assert figure.interval == pytest.approx(tuple(paired.confidence_interval(0.95)))
    assert figure.before == pytest.approx(before.mean())
    assert compare_records(a, b).moved


def test_a_difference_that_seeds_do_not_share_has_not_moved(tmp_path):
    a = results(tmp_path, "a", NOISE)
    b = results(tmp_path, "b", f"{NOISE} + 0.3 * (-1) ** settings.seed * (1 + settings.seed)")
    figure = own(compare_records(a, b))
    assert (figure.how, figure.moved) == ("paired seeds", False)
    assert figure.interval is not None
    assert figure.interval[0] < 0 < figure.interval[1]


def test_the_same_shift_of_every_seed_has_moved(tmp_path):
    a, b = results(tmp_path, "a", "0.25"), results(tmp_path, "b", "0.5")
    figure = own(compare_records(a, b))
    assert (figure.how, figure.moved, figure.interval) == ("paired seeds", True, (0.25, 0.25))


def test_rounding_is_no_difference(tmp_path):
    a = results(tmp_path, "a", NOISE)
    b = results(tmp_path, "b", f"{NOISE} + 1e-15 * (1 + settings.seed)")
    assert (own(compare_records(a, b)).how, compare_records(a, b).moved) == ("same", False)


def test_more_seeds_alone_move_nothing(tmp_path):
    a, b = results(tmp_path, "a", NOISE), results(tmp_path, "b", NOISE, seeds=16)
    figure = own(compare_records(a, b))
    assert figure.before != figure.after
    assert (figure.how, figure.moved, figure.difference) == ("paired seeds", False, 0.0)


@pytest.mark.parametrize(("shift", "moved"), [(0.1, False), (9.0, True)])
def test_without_shared_seeds_intervals_must_not_overlap(tmp_path, shift, moved):
    a = results(tmp_path, "a", NOISE)
    b = results(tmp_path, "b", f"{NOISE} + {shift}", first=100)
    figure = own(compare_records(a, b))
    assert (figure.how, figure.moved, figure.seeds) == ("intervals", moved, 0)


def test_few_seeds_without_an_interval_are_shown_and_not_judged(tmp_path):
    most = Criterion("value", lambda data: data["toy"].value.sel(size="small"), pooled_max <= 2)
    a = results(tmp_path, "a", "0", seeds=4, criteria=(most,))
    b = results(tmp_path, "b", "0.5", seeds=4, criteria=(most,))
    found = compare_records(a, b)
    figure = own(found)
    assert (figure.how, figure.moved, figure.difference) == ("no interval", None, 0.5)
    assert not found.moved


def test_verdicts_move_and_other_questions_are_named(tmp_path):
    a = results(tmp_path, "a", NOISE)
    stricter = Criterion("value", lambda data: data["toy"].value.sel(size="small"), mean <= 1.0)
    b = results(tmp_path, "b", NOISE, criteria=(stricter,))
    found = compare_records(a, b)
    moves = [(v.claim, v.what, v.before, v.after) for v in found.verdicts]
    assert moves == [
        ("toy.small", "", "holds", "fails"),
        ("toy.small", "value", "holds", "fails"),
    ]
    assert found.asked_otherwise == (
        "toy.small, value: estimate mean <= 2.0 -> estimate mean <= 1.0",
    )
    assert (own(found).moved, found.moved) == (False, True)
    json.dumps(found.as_json(), allow_nan=False)


def test_another_statistic_is_another_question_and_not_a_figure_that_moved(tmp_path):
    a = results(tmp_path, "a", NOISE)
    most = Criterion("value", lambda data: data["toy"].value.sel(size="small"), pooled_max <= 2)
    found = compare_records(a, results(tmp_path, "b", NOISE, criteria=(most,)))
    assert [figure.what for figure in found.figures] == ["control large: value"]
    assert found.asked_otherwise == ("toy.small, value: estimate mean <= 2.0 -> bound max <= 2.0",)


def test_claims_that_only_one_folder_has_are_named(tmp_path):
    a = results(tmp_path, "a", NOISE)
    b = results(tmp_path, "b", NOISE, id="toy.other")
    found = compare_records(a, b)
    assert (found.only_before, found.only_after) == (("toy.small",), ("toy.other",))
    assert (found.figures, found.moved) == ((), False)


def test_answers_of_a_command_without_claims_are_compared_by_their_headlines(tmp_path):
    for name, exponent in (("a", 2), ("b", 2), ("c", 3)):
        run(Toy(), ToySettings(exponent=exponent), tmp_path / name, processes=0)
    same = compare_records(tmp_path / "a", tmp_path / "b")
    assert [(f.claim, f.before, f.how, f.moved) for f in same.figures] == [
        ("mean", "4.66667", "same", False)
    ]
    other = compare_records(tmp_path / "a", tmp_path / "c")
    assert [(f.after, f.how, f.moved) for f in other.figures] == [("12", "no interval", None)]


def test_folders_that_cannot_be_compared_are_refused_in_words(tmp_path):
    a = results(tmp_path, "a", NOISE)
    with pytest.raises(AttnlabError, match=r"has no record\.json; run `attnlab reproduce --out"):
        compare_records(a, tmp_path)
    with pytest.raises(AttnlabError, match=r"does not exist|has no record"):
        compare_records(tmp_path / "nowhere", a)
    run(Toy(), ToySettings(), tmp_path / "toy", processes=0)
    with pytest.raises(AttnlabError, match="expected two folders of the same command"):
        compare_records(a, tmp_path / "toy")


def test_a_record_of_another_version_is_refused_in_words(tmp_path):
    a = results(tmp_path, "a", NOISE)
    record = read_record(a)
    content = deepcopy(record.content)
    del content["claims"][0]["criteria"][0]["by_seed"]
    old = {"experiment": record.experiment, "about": record.about, "content": content}
    save_record(tmp_path / "old", "record.json", 1, old, {})
    with pytest.raises(AttnlabError, match="another version of attnlab wrote one of them"):
        compare_records(tmp_path / "old", a)


def test_comparing_changes_no_folder(tmp_path):
    a, b = (results(tmp_path, name, NOISE) for name in "ab")
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    compare_records(a, b)
    assert files == {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}


def test_the_example_of_the_ledger_runs(tmp_path, monkeypatch, capsys):
    results(tmp_path, "results", NOISE)
    results(tmp_path, "results-after-the-edit", f"{NOISE} + 5")
    text = (Path(__file__).resolve().parents[2] / "docs/ledger.md").read_text("utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/ledger.md", "exec"), {"__name__": "example"})
    assert "holds -> fails" in capsys.readouterr().out
