"""Rankings and advice from made-up curves whose truth is known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import xarray as xr

from attnlab.papers.liu2021.word_settings import TEXT_STEP_SIZES, TEXT_WIDEN
from attnlab.questions._ranking import advise, default_level, measure_comparison, seeds_needed
from attnlab.questions.compare import CompareSettings, _Texts, compare_longer, dominated

SIZES = np.array([64, 128, 256, 512])


def arm(
    factor: float,
    seeds: int = 16,
    seed: int = 0,
    spread: float = 0.05,
    *,
    score: str = "error",
    **more: Any,
):
    """Errors factor · 50/n, with a common luck of each seed and a little of the variant's own."""
    shared = np.exp(0.3 * np.random.default_rng(99).normal(size=(seeds, 1)))
    own = np.exp(spread * np.random.default_rng(seed).normal(size=(seeds, len(SIZES))))
    error = factor * 50 / SIZES * shared * own
    values = error if score == "error" else 1 - np.minimum(error, 0.99)
    columns = {
        score: values,
        "valid_loss": error,
        "train_loss": error / 2,
        "entropy": 0 * error + np.log(2.0),
    }
    columns |= {"settling": 0 * error, "step_size": 0 * error + 0.01, "weight_decay": 0 * error}
    data = xr.Dataset(
        {n: (("seed", "size"), v) for n, v in columns.items()},
        {"seed": range(seeds), "size": SIZES},
    )
    return data.assign({name: ("seed", np.full(seeds, value)) for name, value in more.items()})


def arms(**more: Any) -> dict[str, xr.Dataset]:
    factors = {"softmax": 1.0, "cool": 0.5, "cooler": 0.5, "bad": 3.0}
    return {name: arm(factor, seed=k, **more) for k, (name, factor) in enumerate(factors.items())}


def test_the_ranking_has_the_true_order_groups_and_ratios():
    data = measure_comparison(arms(), score="error", against="softmax")
    ranking = data["ranking"]
    names = ranking.student.values.tolist()
    assert set(names[:2]) == {"cool", "cooler"}
    assert names[2:] == ["softmax", "bad"]
    assert ranking.group.values.tolist() == ["A", "A", "B", "C"]
    np.testing.assert_allclose(ranking.ratio.values, [0.5, 0.5, 1, 3], rtol=0.06)
    assert bool((ranking.ratio_low <= ranking.ratio).all())
    assert float(ranking.ratio_high.sel(student="cool")) < 0.6
    assert int(ranking.attrs["size"]) == 512
    table = data["compare"]
    ratio = table.ratio.sel(student="cool").isel(task=0)
    assert float(ratio) == pytest.approx(
        2, rel=0.1
    )  # errors fall like 1/n: half of the error is half of the samples
    assert str(table.verdict.sel(student="bad").values[0]) == "costs"


def test_advice_says_what_the_numbers_say():
    data = measure_comparison(arms(), score="error", against="softmax")
    said = " ".join(advise(data, what="On a made-up task"))
    best, second = (str(name) for name in data["ranking"].student.values[:2])
    assert said.startswith(
        f"On a made-up task with 512 samples, {best} has the lowest median error, 0.0"
    )
    assert f"cannot be told from {second}." in said
    times = re.search(rf"Instead of softmax try {best} \(× ([0-9.]+) \[", said)
    assert times is not None
    assert float(times[1]) == pytest.approx(0.5, rel=0.06)
    assert "Avoid bad (× 3" in said or "Avoid bad (× 2.9" in said
    assert f"{best} needs" in said
    assert "times fewer samples than softmax" in said
    assert "attends to about 2 words" in said
    assert "--steps" not in said


def test_advice_keeps_softmax_where_nothing_is_better_and_asks_for_more_seeds():
    two = {"softmax": arm(1.0, seed=1), "other": arm(1.0, seed=2)}
    said = " ".join(advise(measure_comparison(two, score="error", against="softmax"), what="Here"))
    assert "Keep softmax: no variant is better by what 16 seeds can tell." in said
    assert "Avoid" not in said
    few = {name: data.isel(seed=slice(5)) for name, data in arms().items()}
    said = " ".join(advise(measure_comparison(few, score="error", against="softmax"), what="Here"))
    assert "No answer yet: to tell 4 variants apart takes 8 seeds, these are 5." in said


def test_so_many_seeds_can_tell_and_one_fewer_cannot():
    for variants in (2, 3, 4, 8):
        for seeds, can in ((seeds_needed(variants), True), (seeds_needed(variants) - 1, False)):
            runs = {str(k): arm(2.0**k, seeds, k, 0.0) for k in range(variants)}
            ranking = measure_comparison(runs, score="error", against="0")["ranking"]
            assert (float(ranking.p.min()) < 0.05) == can


def test_what_four_times_the_steps_change_is_told_as_speed():
    runs = arms()
    data = measure_comparison(runs, score="error", against="softmax")
    best = str(data["ranking"].student.values[0])
    # Softmax trained four times as long has the error of the best, which itself is at its end.
    longer = {"softmax": 0.5 * runs["softmax"][["error"]], best: runs[best][["error"]]}
    data["longer"] = compare_longer(runs, longer, score="error", steps=1500, against="softmax")
    found = data["longer"].sel(student=best)
    assert float(found.ratio) == pytest.approx(1, rel=0.1)
    assert (
        float(
            data["longer"].after.sel(student="softmax")
            / data["longer"].before.sel(student="softmax")
        )
        == 0.5
    )
    said = advise(data, what="Here")[-1]
    assert said.startswith(
        "With 6000 instead of 1500 steps the error changes: that of softmax × 0.5"
    )
    assert "part of the difference is speed" in said
    assert "--steps 6000" in said
    settled = {name: runs[name][["error"]] for name in ("softmax", best)}
    data["longer"] = compare_longer(runs, settled, score="error", steps=1500, against="softmax")
    assert "not of speed" in advise(data, what="Here")[-1]


def test_accuracies_are_ranked_from_above_and_compared_by_wrong_answers():
    data = measure_comparison(arms(score="accuracy"), score="accuracy", against="softmax")
    ranking = data["ranking"]
    assert ranking.student.values.tolist()[2:] == ["softmax", "bad"]
    assert float(ranking.ratio.sel(student="bad")) == pytest.approx(3, rel=0.06)
    said = " ".join(advise(data, what="Here"))
    assert "has the highest mean accuracy" in said
    assert "in brackets the share of wrong answers over that of softmax" in said
    perfect = {"a": arm(0.0, score="accuracy"), "b": arm(1.0, score="accuracy")}
    found = measure_comparison(perfect, score="accuracy", against="a", level=0.5)["ranking"]
    assert np.isnan(found.ratio.values).all()


def test_the_level_is_met_by_the_reference_with_half_of_the_data():
    for factor in (1.0, 0.37, 20.0):
        curve = arm(factor).error
        level = default_level(curve, falling=True)
        middle = curve.median("seed").values
        assert middle[2] <= level < 1.2 * middle[2]
    accuracy = arm(1.0, score="accuracy").accuracy
    level = default_level(accuracy, falling=False)
    assert 0 <= float(accuracy.mean("seed")[2]) - level < 0.01


def test_only_what_an_interval_proves_worse_is_dropped():
    found = dominated(
        {name: data.isel(seed=slice(8)) for name, data in arms().items()}, score="error"
    )
    assert found.dropped.values.tolist() == [1, 0, 0, 1]
    assert bool((found.low.values[found.dropped.values > 0] > 0).all())
    assert found.attrs["best"] in ("cool", "cooler")
    few = dominated(
        {name: data.isel(seed=slice(5)) for name, data in arms().items()}, score="error"
    )
    assert not few.dropped.any()
    noisy = {"a": arm(1.0, 8, 1, 2.0), "b": arm(1.1, 8, 2, 2.0)}
    assert not dominated(noisy, score="error").dropped.any()
    high = dominated(arms(score="accuracy"), score="accuracy")
    assert high.dropped.values.tolist() == [1, 0, 0, 1]


def test_advice_warns_where_tuning_ended_at_an_end():
    made = arms()
    free = {name: one.assign(at_end=one.error > np.inf) for name, one in made.items()}
    data = measure_comparison(free, score="error", against="softmax")
    assert "Caution" not in " ".join(advise(data, what="Here"))
    cut = free | {"bad": made["bad"].assign(at_end=made["bad"].error > 0)}
    data = measure_comparison(cut, score="error", against="softmax")
    assert "Caution: the best tuning of bad was often an end" in " ".join(advise(data, what="Here"))


def test_step_sizes_that_are_named_are_all_that_is_tried():
    texts = CompareSettings(files=("a.csv",), step_sizes=(0.01, 0.1))
    found = texts.fit(_Texts("folder", "0" * 16, 100))
    assert (found["step_sizes"], found["widen"]) == ((0.01, 0.1), 0)
    found = CompareSettings(files=("a.csv",)).fit(_Texts("folder", "0" * 16, 100))
    assert (found["step_sizes"], found["widen"]) == (TEXT_STEP_SIZES, TEXT_WIDEN)
