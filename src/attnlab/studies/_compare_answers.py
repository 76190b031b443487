"""From the runs of many variants to a ranking with groups of equals, and to advice in words made
from the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

import numpy as np
import xarray as xr

from attnlab.complexity import Question, tabulate
from attnlab.stats import Ranking, interval_of, rank_variants

LEVEL = 0.05  # of all pairs together
WORTHWHILE = 1.25  # a ratio of errors from which on a difference is worth a word of advice
LONGER = 4  # times the steps, to see what is speed
SETTLED = 0.05  # training has come to its end if they change the median error by less than this


def default_level(scores: xr.DataArray, *, falling: bool) -> float:
    """What the reference reaches with half of the largest size: rounded so that it is met there.

    ``scores`` has dims (seed, size). Errors are rounded up to two digits, accuracies down to a
    whole percent.

    >>> curve = xr.DataArray([[0.5, 0.212, 0.1]] * 2, dims=("seed", "size"), coords={"size": [64, 128, 256]})
    >>> default_level(curve, falling=True)
    0.22
    """
    middle = scores.median("seed") if falling else scores.mean("seed")
    value = float(middle.isel(size=max(0, scores.sizes["size"] - 2)))
    if not falling:
        return float(np.floor(100 * value) / 100)
    digits = 1 - int(np.floor(np.log10(value)))
    return float(round(np.ceil(value * 10**digits) / 10**digits, digits))


def measure_comparison(
    arms: Mapping[str, xr.Dataset], *, score: str, against: str, level: float | None = None
) -> dict[str, xr.Dataset]:
    """All answers about some variants; ``arms`` are data sets (seed, size) by variant.

    - ``"compare"``: what ``tabulate`` says, with ``student`` for the variant;
    - ``"ranking"``: dims (student, other), students from the best to the worst by the ``score`` at
      the largest size: ``centre``, its median with ``_low`` and ``_high``; ``ratio``: of its error
      to that of ``against``, paired, with its ends; ``p``: of every two, corrected for all;
      ``group``: letters, two students that share one cannot be told apart; medians of ``entropy``,
      and where they were recorded of ``onset``, ``sharpness`` and ``attention``.
    """
    falling = score == "error"
    level = default_level(arms[against][score], falling=falling) if level is None else level
    question = Question(level, score, falling, "median" if falling else "mean", against)
    table = tabulate(
        {(variant, "task"): data for variant, data in arms.items()}, question, dim="task"
    )
    last = {variant: data.isel(size=-1) for variant, data in arms.items()}
    seeds = sorted({int(k) for data in arms.values() for k in data.seed.values})
    values = {
        variant: data[score].reindex(seed=seeds).values.astype(float)
        for variant, data in last.items()
    }
    order = rank_variants(values, smaller_is_better=falling, level=LEVEL)
    ranking = _ranked(order, values, last, against, falling)
    told = {
        "score": score,
        "against": against,
        "size": int(table["size"].values.max()),
        "seeds": len(seeds),
        "level": LEVEL,
        "falling": int(falling),
    }
    return {"compare": table, "ranking": ranking.assign_attrs(told)}


def _ranked(
    order: Ranking,
    values: Mapping[str, np.ndarray],
    last: Mapping[str, xr.Dataset],
    against: str,
    falling: bool,
) -> xr.Dataset:
    names = list(order.names)
    ends = [_interval(values[name]) for name in names]
    ratios = [_ratio(values[name], values[against], falling) for name in names]
    columns: dict[str, Any] = {
        "centre": [end[0] for end in ends],
        "centre_low": [end[1] for end in ends],
        "centre_high": [end[2] for end in ends],
        "group": letters(order),
        "ratio": [end[0] for end in ratios],
        "ratio_low": [end[1] for end in ratios],
        "ratio_high": [end[2] for end in ratios],
        "runs": [int(np.isfinite(values[name]).sum()) for name in names],
    }
    for name in ("entropy", "attention", "onset", "sharpness"):
        found = [
            _median(last[variant][name]) if name in last[variant] else np.nan for variant in names
        ]
        columns |= {name: found} if np.isfinite(found).any() else {}
    matrix = {"p": (("student", "other"), order.p), "pairs": (("student", "other"), order.pairs)}
    return xr.Dataset(
        {name: ("student", np.array(column)) for name, column in columns.items()} | matrix,
        {"student": names, "other": names},
    )


def _median(values: xr.DataArray) -> float:
    known = values.values[np.isfinite(values.values)]
    return float(np.median(known)) if known.size else float("nan")


def _interval(values: np.ndarray) -> tuple[float, float, float]:
    found = interval_of(values[np.isfinite(values)], "median")
    return found.estimate, found.low, found.high


def _ratio(values: np.ndarray, other: np.ndarray, falling: bool) -> tuple[float, float, float]:
    """Of errors; of shares of wrong answers for accuracies. Nan where the other one makes no
    errors.
    """
    both = np.isfinite(values) & np.isfinite(other)
    a, b = ((x[both] if falling else 1 - x[both]) for x in (values, other))
    if not len(b) or np.median(b) <= 0:
        return np.nan, np.nan, np.nan
    if np.array_equal(a, b):  # a variant over itself
        return 1.0, 1.0, 1.0
    if min(a.min(), b.min()) <= 0:
        return float(np.median(a) / np.median(b)), np.nan, np.nan
    found = interval_of(a / b, "median ratio")
    return found.estimate, found.low, found.high


def letters(order: Ranking) -> list[str]:
    """The groups of every name as letters: A for the group of the best."""
    return [
        "".join(ascii_uppercase[k % 26] for k, g in enumerate(order.groups) if name in g)
        for name in order.names
    ]


def hopeless(arms: Mapping[str, xr.Dataset], *, score: str) -> xr.Dataset:
    """Which variants are proved worse than the best so far, at the largest size: dims (student,).

    ``difference`` is the median over paired seeds of what a variant has more error (less accuracy)
    than the best, with a 99 % interval ``low``, ``high``; ``dropped``: the interval lies wholly
    above 0. Fewer than 8 seeds prove nothing.
    """
    sign = 1.0 if score == "error" else -1.0
    last = {variant: sign * data[score].isel(size=-1) for variant, data in arms.items()}
    best = min(last, key=lambda variant: float(last[variant].median()))
    rows = []
    for scores in last.values():
        mine, its = xr.align(scores, last[best], join="inner")
        differences = (mine - its).dropna("seed").values
        found = interval_of(differences, "median", confidence=0.99) if len(differences) else None
        rows.append(
            (np.nan, np.nan, np.nan) if found is None else (found.estimate, found.low, found.high)
        )
    columns = dict(zip(("difference", "low", "high"), np.array(rows).T, strict=True))
    data = xr.Dataset(
        {name: ("student", column) for name, column in columns.items()}, {"student": list(last)}
    )
    return data.assign(dropped=data.low > 0).assign_attrs(best=best)


def advise(data: Mapping[str, xr.Dataset], *, what: str) -> list[str]:
    """The paragraph of advice, sentence by sentence; ``what`` says on which task. Every number is
    measured.

    ``data`` is what ``measure_comparison`` returns (of one size, the ``"ranking"`` alone), and
    ``"longer"``, what ``compare_longer`` returns, if it was run.
    """
    ranking = data["ranking"]
    names = [str(name) for name in ranking.student.values]
    against, size = str(ranking.attrs["against"]), int(ranking.attrs["size"])
    equals = [name for name in names[1:] if not apart(ranking, names[0], name)]
    sentences = [_best_sentence(ranking, names[0], equals, what, size)]
    sentences += [_against_sentence(ranking, names[0], equals, against)]
    sentences += _avoid_sentence(ranking, names, equals, against)
    if "compare" in data:
        sentences += _samples_sentence(data["compare"], [names[0], *equals], against)
    sentences += _attention_sentence(ranking, names[0])
    if "longer" in data:
        sentences += _speed_sentence(data["longer"], names[0], against)
    return sentences


def apart(ranking: xr.Dataset, a: str, b: str) -> bool:
    """Whether two variants are told apart."""
    return bool(ranking.p.sel(student=a, other=b) < ranking.attrs["level"])


def shown(value: float) -> str:
    """A number for a sentence."""
    return f"{value:.3g}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _best_sentence(ranking: xr.Dataset, best: str, equals: list[str], what: str, size: int) -> str:
    score, one = str(ranking.attrs["score"]), ranking.sel(student=best)
    word = "lowest" if ranking.attrs["falling"] else "highest"
    ends = (
        f" [{shown(float(one.centre_low))}, {shown(float(one.centre_high))}]"
        if np.isfinite(one.centre_low)
        else ""
    )
    same = (
        f", and cannot be told from {_listed(equals)}"
        if equals
        else ", and is told apart from every other variant"
    )
    if ranking.sizes["student"] == 1:
        same = ""
    return f"{what} with {size} samples, {best} has the {word} median {score}, {shown(float(one.centre))}{ends}{same}."


def seeds_needed(variants: int) -> int:
    """The fewest seeds that can tell two of so many variants apart, all pairs corrected together.

    The least p-value of n seeds is 2/2ⁿ, times the number of pairs.

    >>> seeds_needed(2), seeds_needed(4), seeds_needed(8)
    (6, 8, 11)
    """
    pairs = max(1, variants * (variants - 1) // 2)
    return int(np.floor(np.log2(2 * pairs / LEVEL))) + 1


def _against_sentence(ranking: xr.Dataset, best: str, equals: list[str], against: str) -> str:
    seeds, variants = int(ranking.attrs["seeds"]), ranking.sizes["student"]
    if seeds < seeds_needed(variants):
        return (
            f"No answer yet: to tell {variants} variants apart takes {seeds_needed(variants)} "
            f"seeds, these are {seeds}."
        )
    if against in (best, *equals):
        return f"Keep {against}: no variant is better by what {seeds} seeds can tell."
    named = [f"{name} ({_times(ranking.sel(student=name))})" for name in [best, *equals]]
    error = _error(bool(ranking.attrs["falling"]))
    return f"Instead of {against} try {_listed(named)}; in brackets the {error} over that of {against}."


def _error(falling: bool) -> str:
    return "error" if falling else "share of wrong answers"


def _times(one: xr.Dataset) -> str:
    value, low, high = (float(one[f"ratio{end}"]) for end in ("", "_low", "_high"))
    if not np.isfinite(value):
        return "ratio unknown"
    if value == 0:
        return "no errors"
    return f"× {shown(value)}" + (f" [{shown(low)}, {shown(high)}]" if np.isfinite(low) else "")


def _avoid_sentence(
    ranking: xr.Dataset, names: list[str], equals: list[str], against: str
) -> list[str]:
    """Variants that are told apart from the best and from the reference, and worse than it by
    enough to matter.
    """
    bad = [
        name
        for name in names[1:]
        if name not in equals
        and apart(ranking, name, against)
        and float(ranking.ratio.sel(student=name)) >= WORTHWHILE
    ]
    if not bad:
        return []
    return [f"Avoid {_listed([f'{name} ({_times(ranking.sel(student=name))})' for name in bad])}."]


def _samples_sentence(table: xr.Dataset, good: list[str], against: str) -> list[str]:
    """What the best variants save in samples, where that is known."""
    level = shown(float(table.attrs["level"]))
    score = str(table.attrs["score"])
    for name in good:
        if name == against:
            continue
        one = table.sel(student=name).isel(task=0)
        if str(one.verdict.values) in ("saves", "costs"):
            more = "fewer" if str(one.verdict.values) == "saves" else "more"
            value, ends = float(one.ratio), [float(one.ratio_low), float(one.ratio_high)]
            value, ends = (
                (value, ends) if more == "fewer" else (1 / value, [1 / ends[1], 1 / ends[0]])
            )
            sign = {"at least": "at least ", "at most": "at most "}.get(
                str(one.ratio_kind.values), ""
            )
            high = "" if np.isinf(ends[1]) else f", {shown(ends[1])}"
            span = f"[{shown(ends[0])}{high}" + ("]" if high else ", ∞)")
            return [
                f"For an {score} of {level}, {name} needs {sign}{shown(value)} {span} "
                f"times {more} samples than {against}."
            ]
    return []


def _attention_sentence(ranking: xr.Dataset, best: str) -> list[str]:
    one = ranking.sel(student=best)
    words = float(np.exp(one.entropy))
    said = f"There {best} attends to about {shown(words)} words at a time"
    if "attention" in one and np.isfinite(float(one.attention)):
        said += f", with {float(one.attention):.0%} of its attention on those that matter".replace(
            "%", " %"
        )
    return [f"{said}."]


def compare_longer(
    arms: Mapping[str, xr.Dataset],
    longer: Mapping[str, xr.Dataset],
    *,
    score: str,
    steps: int,
    against: str,
) -> xr.Dataset:
    """What four times the steps change, at the largest size: dims (student,), of some variants.

    ``before`` and ``after``: median errors (shares of wrong answers) with ``steps`` and with four
    times as many; ``ratio``: the error with ``steps`` over that of ``against`` with four times as
    many, paired, with ``_low`` and ``_high``: near 1 where what a variant has gained is speed.
    """
    falling = score == "error"
    columns: dict[str, list[float]] = {
        n: [] for n in ("before", "after", "ratio", "ratio_low", "ratio_high")
    }
    for name in longer:
        short, long, other = xr.align(
            arms[name][score].isel(size=-1, drop=True),
            longer[name][score].isel(size=-1, drop=True),
            longer[against][score].isel(size=-1, drop=True),
            join="inner",
        )
        before, after = (
            float(x.median()) if falling else 1 - float(x.median()) for x in (short, long)
        )
        found = (
            before,
            after,
            *_ratio(short.values.astype(float), other.values.astype(float), falling),
        )
        for column, value in zip(columns.values(), found, strict=True):
            column.append(value)
    data = {name: ("student", values) for name, values in columns.items()}
    return xr.Dataset(
        data,
        {"student": list(longer)},
        {"steps": steps, "against": against, "times": LONGER, "falling": int(falling)},
    )


def _speed_sentence(longer: xr.Dataset, best: str, against: str) -> list[str]:
    """Whether what was found is speed: what four times the steps change."""
    steps, times = int(longer.attrs["steps"]), int(longer.attrs["times"])
    before, after = longer.before.values, longer.after.values
    if not (before > 0).all():  # some variant makes no errors: there is nothing left to gain
        return []
    moved = dict(zip(map(str, longer.student.values), (after / before).tolist(), strict=True))
    told = _listed([f"that of {name} × {shown(value)}" for name, value in moved.items()])
    error = _error(bool(longer.attrs["falling"]))
    what = f"With {times * steps} instead of {steps} steps the {error} changes: {told}"
    if all(abs(value - 1) < SETTLED for value in moved.values()):
        return [f"{what}. Training had come to its end, so that the differences are not of speed."]
    if best == against or best not in moved:
        return [
            f"{what}. Training had not come to its end: compare again with --steps {times * steps}."
        ]
    return [
        f"{what}; {best} with {steps} steps has {_times(longer.sel(student=best))} of the {error} "
        f"of {against} with "
        f"{times * steps}. Training had not come to its end, and part of the difference is speed: "
        "compare again with "
        f"--steps {times * steps} before believing that one variant learns what another cannot."
    ]
