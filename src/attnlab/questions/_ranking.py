"""From the runs of many variants to a ranking with groups of equals, and to advice in words made
from the numbers: what ``compare``, ``advise`` and ``study`` share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import attnlab as al
from attnlab.lab import Data, Table, variable
from attnlab.papers.liu2021.curve_sweeps import Curves
from attnlab.papers.liu2021.variant_sweeps import MOVED, WORTHWHILE
from attnlab.report import Figure, heat_table, interval, number

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.stats import Ranking as Order

LEVEL = 0.05  # of all pairs together
_NOTEWORTHY = 0.05  # share of a variant's fits from which on a caution speaks of them


class Compared(Curves, label="compare"):
    """Learning curves of all variants on one task."""

    entropy = variable("mean entropy of attention")
    attention = variable("attention on the words that matter", optional=True)
    onset = variable("step at which attention, or the score, has gone half its way", optional=True)
    sharpness = variable("λ_max of the training loss where training stopped", optional=True)


class Ranking(Table, label="ranking"):
    """Variants (student, other) from the best to the worst, by the score at the largest size.

    Its attributes are ``score``, ``statistic``, ``against``, ``size``, ``seeds``, ``level`` and
    ``falling``.
    """

    centre = variable("median error, or mean accuracy, as learning curves show it")
    centre_low = variable("low end of its interval")
    centre_high = variable("high end of its interval")
    group = variable("letters; two variants that share one cannot be told apart")
    ratio = variable("error over that of the reference, paired")
    ratio_low = variable("low end of its interval")
    ratio_high = variable("high end of its interval")
    runs = variable("how many seeds finished")
    entropy = variable("median entropy of attention", optional=True)
    attention = variable("median attention on the words that matter", optional=True)
    onset = variable("median onset", optional=True)
    sharpness = variable("median λ_max where training stopped", optional=True)
    p = variable("p-value of every two, corrected for all")
    pairs = variable("how many seeds every two share")


class Longer(Table, label="longer"):
    """What LONGER times the steps change, at the largest size (student), of some variants.

    Its attributes are ``steps``, ``times``, ``against`` and ``falling``.
    """

    before = variable("median error, or mean share of wrong answers")
    after = variable("the same with LONGER times the steps")
    ratio = variable("error over that of the reference with LONGER times the steps, paired")
    ratio_low = variable("low end of its interval")
    ratio_high = variable("high end of its interval")


def measure_comparison(
    arms: Mapping[str, xr.Dataset], *, score: str, against: str, level: float | None = None
) -> dict[str, xr.Dataset]:
    """The tables `Compared` and `Ranking` of some variants; ``arms`` are data sets (seed, size).

    ``score`` is "error" or "accuracy", ``against`` the reference; ``level`` is where needed samples
    are compared (by default what the reference reaches with half of the data).
    """
    falling = score == "error"
    level = default_level(arms[against][score], falling=falling) if level is None else level
    question = al.complexity.Question(level, score, falling, statistic(falling), against)
    curves = {(variant, "task"): data for variant, data in arms.items()}
    table = al.complexity.tabulate(curves, question, dim="task")
    last = {variant: data.isel(size=-1) for variant, data in arms.items()}
    seeds = sorted({int(k) for data in arms.values() for k in data.seed.values})
    values = {
        variant: data[score].reindex(seed=seeds).values.astype(float)
        for variant, data in last.items()
    }
    order = al.stats.rank_variants(
        values, smaller_is_better=falling, level=LEVEL, statistic=statistic(falling)
    )
    ranking = _ranked(order, values, last, against, falling).assign_attrs(
        score=score,
        statistic=statistic(falling),
        against=against,
        size=int(table["size"].values.max()),
        seeds=len(seeds),
        level=LEVEL,
        falling=int(falling),
    )
    return {Compared.label: table, Ranking.label: ranking}


def default_level(scores: xr.DataArray, *, falling: bool) -> float:
    """What the reference reaches with half of the largest size: rounded so that it is met there.

    ``scores`` has dims (seed, size). Errors are rounded up to two digits, accuracies down to a
    whole percent.

    >>> import xarray as xr
    >>> sizes = {"size": [64, 128, 256]}
    >>> curve = xr.DataArray([[0.5, 0.212, 0.1]] * 2, dims=("seed", "size"), coords=sizes)
    >>> default_level(curve, falling=True)
    0.22
    """
    middle = scores.median("seed") if falling else scores.mean("seed")
    value = float(middle.isel(size=max(0, scores.sizes["size"] - 2)))
    if not falling:
        return float(np.floor(100 * value) / 100)
    digits = 1 - int(np.floor(np.log10(value)))
    return float(round(np.ceil(value * 10**digits) / 10**digits, digits))


def _ranked(
    order: Order,
    values: Mapping[str, np.ndarray],
    last: Mapping[str, xr.Dataset],
    against: str,
    falling: bool,
) -> xr.Dataset:
    names = list(order.names)
    centres = np.array([_centre_interval(values[name], falling) for name in names])
    ratios = np.array([error_ratio(values[name], values[against], falling) for name in names])
    columns: dict[str, Any] = {
        Ranking.centre: centres[:, 0],
        Ranking.centre_low: centres[:, 1],
        Ranking.centre_high: centres[:, 2],
        Ranking.group: letters(order),
        Ranking.ratio: ratios[:, 0],
        Ranking.ratio_low: ratios[:, 1],
        Ranking.ratio_high: ratios[:, 2],
        Ranking.runs: [int(np.isfinite(values[name]).sum()) for name in names],
    }
    for name in (Ranking.entropy, Ranking.attention, Ranking.onset, Ranking.sharpness):
        found = [_median(last[variant], name) for variant in names]
        if np.isfinite(found).any():
            columns[name] = found
    table = {name: al.lab.labelled(column, student=names) for name, column in columns.items()}
    for name, matrix in ((Ranking.p, order.p), (Ranking.pairs, order.pairs)):
        table[name] = al.lab.labelled(matrix, student=names, other=names)
    return al.lab.dataset(table)


def _median(data: xr.Dataset, name: str) -> float:
    """The median over seeds of what is known; nan where nothing is."""
    values = data[name].values if name in data else np.array([])
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else float("nan")


def statistic(falling: bool) -> Literal["median", "mean"]:
    """What stands for all seeds: the median of errors, which may be very large in some seeds, and
    the mean of accuracies, as in learning curves.
    """
    return "median" if falling else "mean"


def centre(values: np.ndarray, falling: bool) -> float:
    """That statistic of some scores."""
    return float(np.median(values) if falling else np.mean(values))


def _centre_interval(values: np.ndarray, falling: bool) -> tuple[float, float, float]:
    found = al.stats.interval_of(values[np.isfinite(values)], statistic(falling))
    return found.estimate, found.low, found.high


def error_ratio(values: np.ndarray, other: np.ndarray, falling: bool) -> tuple[float, float, float]:
    """Median ratio of errors over paired seeds, with its interval; for accuracies (not ``falling``)
    of shares of wrong answers. Nan where the other one makes no errors.
    """
    both = np.isfinite(values) & np.isfinite(other)
    a, b = ((x[both] if falling else 1 - x[both]) for x in (values, other))
    if not len(b) or np.median(b) <= 0:
        return np.nan, np.nan, np.nan
    if np.array_equal(a, b):  # a variant over itself
        return 1.0, 1.0, 1.0
    if min(a.min(), b.min()) <= 0:
        return float(np.median(a) / np.median(b)), np.nan, np.nan
    found = al.stats.interval_of(a / b, "median ratio")
    return found.estimate, found.low, found.high


def letters(order: Order) -> list[str]:
    """The groups of every name as letters: A for the group of the best."""
    return [
        "".join(ascii_uppercase[k % 26] for k, g in enumerate(order.groups) if name in g)
        for name in order.names
    ]


def apart(ranking: xr.Dataset, a: str, b: str) -> bool:
    """Whether two variants are told apart."""
    return bool(ranking[Ranking.p].sel(student=a, other=b) < ranking.attrs["level"])


def seeds_needed(variants: int) -> int:
    """The fewest seeds that can tell two of so many variants apart, all pairs corrected together.

    The least p-value of n seeds is 2/2ⁿ, times the number of pairs.

    >>> seeds_needed(2), seeds_needed(4), seeds_needed(8)
    (6, 8, 11)
    """
    pairs = max(1, variants * (variants - 1) // 2)
    return int(np.floor(np.log2(2 * pairs / LEVEL))) + 1


def advise(data: Data, *, what: str) -> list[str]:
    """The paragraph of advice, sentence by sentence; ``what`` says on which task. Every number is
    measured.

    ``data`` has the `Ranking`; where they were measured also `Compared` and `Longer`.
    """
    ranking = Ranking.of(data)
    names = [str(name) for name in ranking["student"].values]
    best, against = names[0], str(ranking.attrs["against"])
    equals = [name for name in names[1:] if not apart(ranking, best, name)]
    sentences = [
        _best_sentence(ranking, best, equals, what),
        _against_sentence(ranking, best, equals, against),
        *_avoid_sentence(ranking, names, equals, against),
    ]
    if Compared.label in data:
        sentences += _samples_sentence(Compared.of(data), [best, *equals], against)
        sentences += _tuning_sentence(Compared.of(data))
    sentences.append(_attention_sentence(ranking, best))
    if Longer.label in data:
        sentences += _speed_sentence(Longer.of(data), best, against)
    return sentences


def _best_sentence(ranking: xr.Dataset, best: str, equals: list[str], what: str) -> str:
    attrs, one = ranking.attrs, ranking.sel(student=best)
    word = "lowest" if attrs["falling"] else "highest"
    middle = number(float(one[Ranking.centre]))
    low, high = float(one[Ranking.centre_low]), float(one[Ranking.centre_high])
    ends = f" [{number(low)}, {number(high)}]" if np.isfinite(low) else ""
    if ranking.sizes["student"] == 1:
        same = ""
    elif equals:
        same = f", and cannot be told from {_listed(equals)}"
    else:
        same = ", and is told apart from every other variant"
    return (
        f"{what} with {int(attrs['size'])} samples, {best} has the {word} {attrs['statistic']} "
        f"{attrs['score']}, {middle}{ends}{same}."
    )


def _against_sentence(ranking: xr.Dataset, best: str, equals: list[str], against: str) -> str:
    seeds, variants = int(ranking.attrs["seeds"]), ranking.sizes["student"]
    if seeds < seeds_needed(variants):
        return (
            f"No answer yet: to tell {variants} variants apart takes {seeds_needed(variants)} "
            f"seeds, these are {seeds}."
        )
    if against in (best, *equals):
        return f"Keep {against}: no variant is better by what {seeds} seeds can tell."
    named = _listed([_with_ratio(ranking, name) for name in [best, *equals]])
    error = _error(bool(ranking.attrs["falling"]))
    return f"Instead of {against} try {named}; in brackets the {error} over that of {against}."


def _avoid_sentence(
    ranking: xr.Dataset, names: list[str], equals: list[str], against: str
) -> list[str]:
    """Variants that are told apart from the best and from the reference, and worse than it by
    enough to matter.
    """
    bad = [
        _with_ratio(ranking, name)
        for name in names[1:]
        if name not in equals
        and apart(ranking, name, against)
        and float(ranking[Ranking.ratio].sel(student=name)) >= WORTHWHILE
    ]
    return [f"Avoid {_listed(bad)}."] if bad else []


def _samples_sentence(table: xr.Dataset, good: list[str], against: str) -> list[str]:
    """What the best variants save in samples, where that is known."""
    for name in good:
        one = table.sel(student=name).isel(task=0)
        verdict = str(one[Compared.verdict].values)
        if name != against and verdict in ("saves", "costs"):
            level, score = number(float(table.attrs["level"])), table.attrs["score"]
            return [
                f"For an {score} of {level}, {name} needs {_times_samples(one)} than {against}."
            ]
    return []


def _times_samples(one: xr.Dataset) -> str:
    """“at least 2 [1.5, 3] times fewer samples”, of a variant that saves or costs some."""
    saves = str(one[Compared.verdict].values) == "saves"
    value, low, high = (
        float(one[name]) for name in (Compared.ratio, Compared.ratio_low, Compared.ratio_high)
    )
    if not saves:
        value, low, high = 1 / value, 1 / high, 1 / low
    kind = str(one[Compared.ratio_kind].values)
    sign = f"{kind} " if kind in ("at least", "at most") else ""
    span = f"[{number(low)}, ∞)" if np.isinf(high) else f"[{number(low)}, {number(high)}]"
    return f"{sign}{number(value)} {span} times {'fewer' if saves else 'more'} samples"


def _tuning_sentence(table: xr.Dataset) -> list[str]:
    """A caution where tuning ended at an end of its grid, although the grid went on."""
    if Compared.at_end not in table:
        return []
    ran = table[Compared.valid_loss].notnull()
    at_end = (table[Compared.at_end].where(ran, 0).astype(bool) & ran).sum(["task", "seed", "size"])
    share = at_end / ran.sum(["task", "seed", "size"])
    cut = [str(name) for name in table["student"].values if share.sel(student=name) > _NOTEWORTHY]
    if not cut:
        return []
    return [
        f"Caution: the best tuning of {_listed(cut)} was often an end of the range that was tried, "
        "even after it was widened."
    ]


def _attention_sentence(ranking: xr.Dataset, best: str) -> str:
    one = ranking.sel(student=best)
    words = float(np.exp(one[Ranking.entropy]))
    said = f"There {best} attends to about {number(words)} words at a time"
    if Ranking.attention in one and np.isfinite(float(one[Ranking.attention])):
        share = f"{float(one[Ranking.attention]):.0%}".replace("%", " %")
        said += f", with {share} of its attention on those that matter"
    return f"{said}."


def _speed_sentence(longer: xr.Dataset, best: str, against: str) -> list[str]:
    """Whether what was found is speed: what LONGER times the steps change."""
    steps, times = int(longer.attrs["steps"]), int(longer.attrs["times"])
    before, after = longer[Longer.before].values, longer[Longer.after].values
    if not (before > 0).all():  # some variant makes no errors: there is nothing left to gain
        return []
    names = [str(name) for name in longer["student"].values]
    moved = dict(zip(names, (after / before).tolist(), strict=True))
    told = _listed([f"that of {name} × {number(value)}" for name, value in moved.items()])
    error = _error(bool(longer.attrs["falling"]))
    what = f"With {times * steps} instead of {steps} steps the {error} changes: {told}"
    if all(abs(value - 1) < MOVED for value in moved.values()):
        return [f"{what}. Training had come to its end, so that the differences are not of speed."]
    if best == against or best not in moved:
        return [
            f"{what}. Training had not come to its end: compare again with --steps {times * steps}."
        ]
    return [
        f"{what}; {best} with {steps} steps has {_times(longer.sel(student=best))} of the {error} "
        f"of {against} with {times * steps}. Training had not come to its end, and part of the "
        f"difference is speed: compare again with --steps {times * steps} before believing that "
        "one variant learns what another cannot."
    ]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _error(falling: bool) -> str:
    return "error" if falling else "share of wrong answers"


def _with_ratio(ranking: xr.Dataset, name: str) -> str:
    return f"{name} ({_times(ranking.sel(student=name))})"


def _times(one: xr.Dataset) -> str:
    """The ratio of `Ranking` or `Longer` for a sentence."""
    value, low, high = (
        float(one[name]) for name in (Ranking.ratio, Ranking.ratio_low, Ranking.ratio_high)
    )
    if not np.isfinite(value):
        return "ratio unknown"
    if value == 0:
        return "no errors"
    return f"× {number(value)}" + (f" [{number(low)}, {number(high)}]" if np.isfinite(low) else "")


_TOLD_APART = (
    "Two variants that share a letter cannot be told apart (Wilcoxon's signed-rank test on paired "
    f"seeds, all pairs corrected together by Holm's method, {100 * LEVEL:g} %)."
)
_TITLES = {
    Ranking.entropy: "words",
    Ranking.attention: "on right words",
    Ranking.onset: "onset",
    Ranking.sharpness: "λ_max",
}
_MEANINGS = {
    Ranking.entropy: "Words: e to the mean entropy of attention, so many are attended to.",
    Ranking.attention: "On right words: attention on those that matter.",
    Ranking.onset: "Onset: the step at which attention on right words is halfway to its end (the "
    "score or the error, where no words are known to matter).",
    Ranking.sharpness: "λ_max: of the training loss where training stopped, which does not say how "
    "flat a minimum is.",
}


def rank_table(ranking: xr.Dataset) -> Figure:
    """The variants from the best to the worst, with their groups of equals."""
    attrs = ranking.attrs
    rows = [str(name) for name in ranking["student"].values]
    extra = [name for name in _TITLES if name in ranking]
    uneven = len(set(ranking[Ranking.runs].values.tolist())) > 1
    cells = []
    for name in rows:
        one = ranking.sel(student=name)
        ratio = "1" if name == attrs["against"] else ended(one, Ranking.ratio)
        row = [str(one[Ranking.group].values), ended(one, Ranking.centre), ratio]
        for key in extra:
            value = float(one[key])
            row.append(number(np.exp(value) if key == Ranking.entropy else value))
        cells.append([*row, *([str(int(one[Ranking.runs]))] if uneven else [])])
    columns = [
        "group",
        f"{attrs['statistic']} {attrs['score']}, 95 % interval",
        f"{_error(bool(attrs['falling']))} over that of {attrs['against']}",
        *(_TITLES[key] for key in extra),
        *(["seeds"] if uneven else []),
    ]
    return heat_table(
        rows,
        columns,
        cells,
        id="ranking",
        title="From the best to the worst",
        tones=[["good" if "A" in row[0] else "", *[""] * (len(row) - 1)] for row in cells],
        caption=" ".join([_TOLD_APART, *(_MEANINGS[key] for key in extra)]),
    )


def ended(one: xr.Dataset, name: str) -> str:
    """A number with its interval, where there is one."""
    value, low, high = (float(one[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return f"{number(value)} {interval((low, high))}" if np.isfinite(low) else number(value)


def apart_table(ranking: xr.Dataset) -> Figure:
    """The corrected p-value of every two variants."""
    names = [str(name) for name in ranking["student"].values]
    p, level = ranking[Ranking.p].values, float(ranking.attrs["level"])
    cells, tones = [], []
    for i in range(len(names)):
        shown_p = ["< 0.001" if value < 0.001 else number(float(value), 2) for value in p[i]]
        tone = ["good" if value < level else "" for value in p[i]]
        shown_p[i] = tone[i] = ""
        cells.append(shown_p)
        tones.append(tone)
    return heat_table(
        names,
        names,
        cells,
        id="apart",
        title="Which pairs can be told apart",
        tones=tones,
        caption="p-values of all pairs after Holm's correction; marked: told apart, below "
        f"{level:g}. Few seeds cannot tell much: with 8, no p-value is below 0.0078 even before "
        "the correction.",
    )
