"""Which student is best with all labels, and which variant of attention: scores and sentences, all
from the same answers to the same test texts, so that nothing on a page contradicts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.questions.texts._tables import (
    MAJORITY,
    STUDENTS,
    Answered,
    Confused,
    Scores,
    Tried,
)
from attnlab.report import counted

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.stats import Interval, Score

ATTENTION = "attention-pooling"
NAMES = {
    ATTENTION: "attention pooling",
    "mean-pooling": "mean pooling",
    "tf-idf": "TF-IDF",
}


def _scores(answered: xr.Dataset) -> dict[str, Mapping[str, Score]]:
    """Every score of every student; those that always name the largest class have one run."""
    truth, classes = answered[Answered.truth].values, answered.sizes["class"]
    said = answered[Answered.said].transpose("student", "seed", "text")
    found = {
        str(name): al.stats.answer_scores(said.sel(student=name).values, truth, classes)
        for name in said["student"].values
    }
    most = np.full((1, len(truth)), int(answered.attrs["majority"]))
    return found | {MAJORITY: al.stats.answer_scores(most, truth, classes)}


def scoreboard(answered: xr.Dataset) -> xr.Dataset:
    """The `Scores` of the students, best accuracy first, and of naming the largest class."""
    scores = _scores(answered)
    order = [*_by_accuracy(scores, STUDENTS), MAJORITY]
    ends = [[one.interval() for one in scores[name].values()] for name in order]
    columns = {
        Scores.value: [[one.estimate for one in row] for row in ends],
        Scores.low: [[max(one.low, 0.0) for one in row] for row in ends],
        Scores.high: [[min(one.high, 1.0) for one in row] for row in ends],
    }
    kinds = list(al.stats.SCORES)
    return al.lab.dataset(
        {name: al.lab.labelled(rows, student=order, score=kinds) for name, rows in columns.items()}
    )


def confusion(answered: xr.Dataset) -> xr.Dataset:
    """What the student of the highest accuracy says of the texts of each class."""
    best = _by_accuracy(_scores(answered), STUDENTS)[0]
    names = [str(name) for name in answered[Answered.name].values]
    truth = answered[Answered.truth].values
    said = answered[Answered.said].sel(student=best).transpose("seed", "text").values
    found: dict[str, list[list[float]]] = {"share": [], "low": [], "high": []}
    counts = [int((truth == label).sum()) for label in range(len(names))]
    for label, count in enumerate(counts):
        shares = [float((said[:, truth == label] == k).mean()) for k in range(len(names)) if count]
        ends = [al.stats.share_interval(min(s, 1.0) * count, count) for s in shares]
        absent = [float("nan")] * len(names)
        found["share"].append(shares or absent)
        found["low"].append([one.low for one in ends] or absent)
        found["high"].append([one.high for one in ends] or absent)
    table: dict[str, Any] = {
        Confused.variables[name]: al.lab.labelled(rows, true=names, said=names)
        for name, rows in found.items()
    }
    table[Confused.texts] = al.lab.labelled(counts, true=names)
    return al.lab.dataset(table).assign_attrs(student=best)


def verdict(answered: xr.Dataset) -> dict[str, Any]:
    """The answer in one sentence, and what it rests on.

    ``best``: the students that nothing here is better than, by an interval over seeds and texts;
    ``attention``: ``"best"``, ``"equal"`` or ``"behind"``; ``beats_majority``.
    """
    scores = _scores(answered)
    order = _by_accuracy(scores, STUDENTS)
    first = order[0]
    equal = [first, *(name for name in order[1:] if not _ahead(scores, first, name))]
    beats = _ahead(scores, first, MAJORITY)
    place = "behind" if ATTENTION not in equal else "best" if equal == [ATTENTION] else "equal"
    return {
        "sentence": _sentence(scores, equal, place, beats, answered),
        "best": equal,
        "attention": place,
        "beats_majority": beats,
        "majority": float(scores[MAJORITY]["accuracy"].runs.mean()),
    }


def _sentence(
    scores: Mapping[str, Mapping[str, Score]],
    equal: Sequence[str],
    place: str,
    beats: bool,
    answered: xr.Dataset,
) -> str:
    def right(name: str) -> str:
        return said_percent(scores[name]["accuracy"].interval())

    labels = f"With your {counted(answered.attrs['size'])} labels"
    first = equal[0]
    if not beats:
        share = f"{100 * scores[MAJORITY]['accuracy'].runs.mean():.0f}\u00a0%"
        return (
            f"{labels} nothing tried here is better than always naming the largest class, which is "
            f"right in {share} of the test texts: {NAMES[first]}, the best, is right in {right(first)}."
        )
    if len(equal) == 1:
        others = [name for name in STUDENTS if name != first]
        second = _by_accuracy(scores, others)[0]
        said = f"{labels} {NAMES[first]} is best: {right(first)} of the test texts are right"
        if place == "best":
            return f"{said}; {NAMES[second]}, the next, has {right(second)}."
        return f"{said}; attention pooling is not better here ({right(ATTENTION)})."
    listed = " and ".join(f"{NAMES[name]} ({right(name)})" for name in equal)
    if len(equal) == len(STUDENTS):
        said = f"{labels} it makes no difference that can be told which you take: {listed}"
        return f"{said}; attention pooling has no advantage here."
    if place == "equal":
        return f"{labels} {listed} cannot be told apart; attention pooling has no advantage here."
    return (
        f"{labels} {listed} are best and cannot be told apart; attention pooling is not better here "
        f"({right(ATTENTION)})."
    )


def tried(
    answered: xr.Dataset, entropies: Mapping[str, float], students: Mapping[str, str], *, steps: int
) -> tuple[xr.Dataset, dict[str, Any]]:
    """Variants of attention by accuracy, and a record of the advice; the first is what others are
    compared with.

    ``students``: by variant, under which name its answers stand.
    """
    all_scores = _scores(answered)
    scores = {variant: all_scores[name] for variant, name in students.items()}
    against = next(iter(scores))
    order = _by_accuracy(scores, list(scores))
    own = {name: scores[name]["accuracy"].interval() for name in order}
    gains = {name: _gain(scores, name, against) for name in order}
    columns = {
        Tried.value: [own[name].estimate for name in order],
        Tried.low: [own[name].low for name in order],
        Tried.high: [own[name].high for name in order],
        Tried.gain: [gains[name].estimate for name in order],
        Tried.gain_low: [gains[name].low for name in order],
        Tried.gain_high: [gains[name].high for name in order],
        Tried.entropy: [entropies[name] for name in order],
    }
    table = al.lab.dataset(
        {name: al.lab.labelled(values, student=order) for name, values in columns.items()}
    )
    facts = {
        "against": against,
        "size": int(answered.attrs["size"]),
        "seeds": answered.sizes["seed"],
        "texts": answered.sizes["text"],
        "steps": steps,
    }
    sentences = _advice(gains, order, facts, all_scores, students)
    return table.assign_attrs(facts), {
        "order": order,
        "best": [order[0], *(name for name in order[1:] if not _ahead(scores, order[0], name))],
        "sentence": sentences[0],
        "advice": " ".join(sentences),
        "accuracy": {name: own[name].estimate for name in order},
    }


def _advice(
    gains: Mapping[str, Interval],
    order: Sequence[str],
    facts: Mapping[str, Any],
    scores: Mapping[str, Mapping[str, Score]],
    students: Mapping[str, str],
) -> list[str]:
    """What to do about attention: only gains whose interval excludes 0 are reasons."""
    against = facts["against"]
    better = [f"{name} ({_points(gains[name])})" for name in order if gains[name].low > 0]
    worse = [f"{name} ({_points(gains[name])})" for name in order if gains[name].high < 0]
    if better:
        said = [f"Instead of {against} try {' or '.join(better)}."]
    else:
        said = [
            f"Of the ways to attend, none is better than {against} by what {facts['texts']} test "
            f"texts and {facts['seeds']} seeds can tell."
        ]
    if worse:
        said.append(f"Avoid {' and '.join(worse)}.")
    ahead = [
        NAMES[name]
        for name in STUDENTS
        if name not in students.values()
        and all(_ahead(scores, name, student) for student in students.values())
    ]
    if ahead:
        said.append(f"{' and '.join(ahead)} is better than all of them.")
    return said


def _points(gain: Interval) -> str:
    return f"{100 * gain.estimate:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}] points"


def said_percent(found: Interval) -> str:
    """A share with its interval, in whole per cent.

    >>> from attnlab.stats import Interval
    >>> said_percent(Interval(0.731, 0.768, 0.75)).replace("\u00a0", " ")
    '75 % [73, 77]'
    """
    low, high = max(found.low, 0.0), min(found.high, 1.0)
    return f"{100 * found.estimate:.0f}\u00a0% [{100 * low:.0f}, {100 * high:.0f}]"


def _by_accuracy(scores: Mapping[str, Mapping[str, Score]], names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: -float(scores[name]["accuracy"].runs.mean()))


def _gain(scores: Mapping[str, Mapping[str, Score]], name: str, other: str) -> Interval:
    return (scores[name]["accuracy"] - scores[other]["accuracy"]).interval()


def _ahead(scores: Mapping[str, Mapping[str, Score]], name: str, other: str) -> bool:
    """Whether one is more accurate than the other, on other texts and with other seeds, too."""
    return _gain(scores, name, other).low > 0
